//! `ode explain`: what the code of an error or of a finding means, and what to do about it.

use crate::names::{Code, named};
use crate::output::{self, Table};
use clap::Args;
use ode_extract::FindingCode;
use ode_job::ErrorCode;
use std::process::ExitCode;

/// Which code.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code, such as GW_5XX or TOTAL_MISMATCH; without it, all codes are listed
    #[arg(value_parser = named::<Code>(), hide_possible_values = true)]
    code: Option<Code>,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  ode explain                    every code, in a line each
  ode explain NOT_PDF            why a document was refused, and what helps
  ode explain TOTAL_MISMATCH     what a finding about a result means";

pub(crate) fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    match args.code {
        Some(code) => output::line(code.page().trim_end())?,
        None => list()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> anyhow::Result<()> {
    let mut errors = Table::new(["ERROR", "RETRIED", "MEANING"]);
    for code in ErrorCode::ALL {
        let retried = if code.is_retryable() { "yes" } else { "no" };
        errors.row([code.as_str().into(), retried.into(), code.sentence().into()]);
    }
    let mut findings = Table::new(["FINDING", "MEANING"]);
    for code in FindingCode::ALL {
        findings.row([code.as_str().into(), code.sentence().into()]);
    }
    errors.print()?;
    output::print("\n")?;
    findings.print()
}
