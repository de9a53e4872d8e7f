//! `ode jobs retry`, `cancel` and `stop`: what people ask of jobs that are there.

use super::look::Name;
use crate::output;
use clap::Args;
use ode_store::{Error, Store};
use serde_json::json;
use std::process::ExitCode;

/// Some jobs.
#[derive(Debug, Args)]
pub(crate) struct Many {
    /// Their references (JOB_…) or ids
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<Name>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What is asked of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wish {
    Retry,
    Cancel,
    Stop,
}

/// Asks each job; one that refuses does not keep the others from being asked.
pub(crate) async fn act(store: &Store, args: &Many, wish: Wish) -> anyhow::Result<ExitCode> {
    let mut answers = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for name in &args.jobs {
        let outcome = ask(store, name, wish).await;
        if outcome.is_err() {
            code = ExitCode::FAILURE;
        }
        match outcome {
            Ok(answer) if args.json => answers.push(answer),
            Ok(answer) => {
                let word = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
                output::line(format!("{}  {}", word("reference"), word("state")))?;
            }
            Err(error) if args.json => {
                answers.push(json!({ "job": name.typed, "code": error.code(), "error": error.to_string() }));
            }
            Err(error) => output::error(&anyhow::Error::new(error).context(name.typed.clone())),
        }
    }
    if args.json {
        output::json(&answers)?;
    }
    Ok(code)
}

async fn ask(store: &Store, name: &Name, wish: Wish) -> Result<serde_json::Value, Error> {
    let id = store.resolve(name.job).await?;
    let state = match wish {
        Wish::Retry => store.retry(id).await?.as_str(),
        Wish::Cancel => store.cancel(id).await?.as_str(),
        // Its worker ends it a moment later, and says so in its history.
        Wish::Stop => store.stop(id).await.map(|()| "stopping")?,
    };
    Ok(json!({ "job": name.typed, "id": id, "reference": id.reference(), "state": state }))
}
