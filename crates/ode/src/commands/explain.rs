//! `ode explain`: what an error code means and what to do about it.

use crate::output::Table;
use clap::Args;
use ode_job::ErrorCode;
use std::process::ExitCode;

/// Which code.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code, such as GW_5XX; without it, all codes are listed
    code: Option<String>,
}

pub(crate) fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    let Some(code) = &args.code else {
        let mut table = Table::new(["CODE", "RETRIED", "MEANING"]);
        for code in ErrorCode::ALL {
            let retried = if code.is_retryable() { "yes" } else { "no" };
            table.row([code.as_str().into(), retried.into(), code.sentence().into()]);
        }
        table.print();
        return Ok(ExitCode::SUCCESS);
    };
    let code: ErrorCode = code.trim().to_uppercase().parse()?;
    println!("{}", code.page().trim_end());
    Ok(ExitCode::SUCCESS)
}
