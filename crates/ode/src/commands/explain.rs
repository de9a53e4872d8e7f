//! `ode explain`: what an error code means and what to do about it.

use crate::names::named;
use crate::output::{self, Table};
use clap::Args;
use ode_job::ErrorCode;
use std::process::ExitCode;

/// Which code.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code, such as GW_5XX; without it, all codes are listed
    #[arg(value_parser = named::<ErrorCode>(), hide_possible_values = true)]
    code: Option<ErrorCode>,
}

pub(crate) fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    match args.code {
        Some(code) => output::line(code.page().trim_end())?,
        None => list()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> anyhow::Result<()> {
    let mut table = Table::new(["CODE", "RETRIED", "MEANING"]);
    for code in ErrorCode::ALL {
        let retried = if code.is_retryable() { "yes" } else { "no" };
        table.row([code.as_str().into(), retried.into(), code.sentence().into()]);
    }
    table.print()
}
