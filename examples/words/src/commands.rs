//! `ode words`: the same on the command line, without a job.

use crate::child::Counter;
use anyhow::Context as _;
use clap::Parser;
use ode_child::Sandbox;
use ode_cli::{self as output, Table};
use ode_pipeline::Call;
use std::path::PathBuf;
use std::process::ExitCode;

/// Count the words of PDFs
#[derive(Debug, Parser)]
pub(crate) struct CountWords {
    /// The documents
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_: Call, args: CountWords) -> anyhow::Result<ExitCode> {
    let counter = Counter::new(1, Sandbox::BestEffort)?;
    let mut table = Table::new(["FILE", "PAGES", "WORDS", "DIFFERENT"]);
    let mut has_failed = false;
    for file in &args.files {
        let name = file.display().to_string();
        let bytes = std::fs::read(file).with_context(|| format!("{name} cannot be read"))?;
        match counter.count(bytes.into()).await {
            Ok(count) if args.json => output::json(&count)?,
            Ok(count) => {
                let numbers = [count.pages, count.words, count.distinct].map(|number| number.to_string());
                let [pages, words, distinct] = numbers;
                table.row([name.into(), pages.into(), words.into(), distinct.into()]);
            }
            Err(failure) => {
                has_failed = true;
                output::tell(format!("{name}: {} ({})", failure.message, failure.code));
            }
        }
    }
    if !args.json {
        table.print()?;
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
