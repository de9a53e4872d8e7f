//! `ode explain`: what the code of an error, of a finding or of a script means, and what to do about it.

use crate::names::{Code, named};
use crate::output::{self, Table};
use crate::wire;
use clap::Args;
use ode_job::ErrorCode;
use std::process::ExitCode;

/// Which code.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code, such as GW_5XX, TOTAL_MISMATCH or login_rejected; without it, all codes are listed
    #[arg(value_parser = named::<Code>(), hide_possible_values = true)]
    code: Option<Code>,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  ode explain                    every code, in a line each
  ode explain NOT_PDF            why a document was refused, and what helps
  ode explain TOTAL_MISMATCH     what a finding about a result means
  ode explain login_rejected     what a script means by its own code";

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
        errors.row([code.as_str().into(), said(code.is_retryable()).into(), code.sentence().into()]);
    }
    errors.print()?;
    for codes in wire::codes() {
        output::print("\n")?;
        let has_retries = codes.codes.iter().any(|code| code.is_retried.is_some());
        let mut table = match has_retries {
            true => Table::new([codes.heading, "RETRIED", "MEANING"]),
            false => Table::new([codes.heading, "MEANING"]),
        };
        for code in &codes.codes {
            match code.is_retried {
                Some(is_retried) => {
                    table.row([code.name.into(), said(is_retried).into(), code.sentence.into()])
                }
                None => table.row([code.name.into(), code.sentence.into()]),
            }
        }
        table.print()?;
    }
    Ok(())
}

fn said(is_retried: bool) -> &'static str {
    if is_retried { "yes" } else { "no" }
}
