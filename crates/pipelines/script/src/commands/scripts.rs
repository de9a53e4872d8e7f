//! `ode scripts`: look at scripts, make new ones, and run them here and now, without a server or a job.

use super::{make, run, validate};
use crate::Folders;
use crate::{Catalog, Origin, Script};
use anyhow::{Context as _, bail};
use clap::{Args, Parser};
use ode_cli::{self as output, Table, WrongUse};
use std::process::ExitCode;
use std::sync::Arc;

/// Look at scripts, make new ones, and run them here and now
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
pub(super) enum ScriptsCommand {
    /// List the scripts that jobs may ask for
    List(List),
    /// Make a new script that runs, to be changed into one's own
    New(make::New),
    /// Check manifests, schemas and examples, and that the programs are there
    Validate(validate::Validate),
    /// Run a script here and now
    Run(run::Run),
    /// Run scripts with the examples of their schemas, on a demo site
    Test(run::Test),
    /// Install what the scripts that come with ODE need, with npm
    Setup,
}

const EXAMPLES: &str = "\
Examples:
  ode scripts list                                    which there are, and whose
  ode scripts setup                                   once, for those that drive a browser
  ode scripts new greet --language python --scripts ./scripts
  ode scripts validate --scripts ./scripts            is everything right?
  ode scripts run greet --input payload.json --scripts ./scripts
  ode scripts test greet --scripts ./scripts          with the examples of its schema

docs/scripts.md takes you from nothing to a script of your own.";

/// How to show them.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

pub(super) async fn run_scripts(folders: &Folders, command: ScriptsCommand) -> anyhow::Result<ExitCode> {
    match command {
        ScriptsCommand::List(args) => list(folders, &args),
        ScriptsCommand::New(args) => make::run(folders, &args),
        ScriptsCommand::Validate(args) => validate::run(folders, &args),
        ScriptsCommand::Run(args) => run::run(folders, args).await,
        ScriptsCommand::Test(args) => run::test(folders, args).await,
        ScriptsCommand::Setup => setup(folders),
    }
}

fn list(folders: &Folders, args: &List) -> anyhow::Result<ExitCode> {
    let catalog = folders.catalog()?;
    if args.json {
        let about = |script: &Arc<Script>| {
            serde_json::json!({
                "type": script.name(), "title": script.manifest.title, "version": script.manifest.version,
                "origin": script.origin, "folder": script.folder, "digest": script.digest,
                "timeout_s": script.manifest.timeout.as_secs(), "max_retries": script.manifest.max_retries,
                "steps": script.manifest.steps, "payload": script.payload.document(),
                "result": script.result.as_ref().map(|schema| schema.document()),
            })
        };
        output::json(&catalog.iter().map(about).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["TYPE", "VERSION", "FROM", "TITLE"]);
    for script in catalog.iter() {
        let origin = match script.origin {
            Origin::Shipped => "ode",
            Origin::Own => "own",
        };
        let version = script.manifest.version.to_string();
        table.row([
            script.name().into(),
            version.into(),
            origin.into(),
            script.manifest.title.as_str().into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

/// Which scripts are meant: those that are named, or all.
pub(super) fn chosen(catalog: &Catalog, names: &[String]) -> anyhow::Result<Vec<Arc<Script>>> {
    if names.is_empty() {
        return Ok(catalog.iter().cloned().collect());
    }
    names.iter().map(|name| one(catalog, name)).collect()
}

pub(super) fn one(catalog: &Catalog, name: &str) -> anyhow::Result<Arc<Script>> {
    let Some(script) = catalog.get(name) else {
        let known: Vec<_> = catalog.iter().map(|script| script.name()).collect();
        bail!(WrongUse(format!("There is no script {name}. There are {}.", known.join(", "))));
    };
    Ok(script)
}

/// Packages are put beside the scripts, where node looks for them.
fn setup(folders: &Folders) -> anyhow::Result<ExitCode> {
    let folder = crate::unpack(&folders.data)?;
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    let npm = std::process::Command::new("npm").args(arguments).current_dir(&folder).status();
    let status = npm.context("npm could not be started. Install node and npm, then try again")?;
    if !status.success() {
        bail!("npm could not install the packages. Read what it said above, then try again.");
    }
    output::tell(format!("The scripts are ready in {}.", folder.display()));
    Ok(ExitCode::SUCCESS)
}
