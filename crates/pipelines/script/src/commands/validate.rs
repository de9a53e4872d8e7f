//! `ode scripts validate`: everything about scripts that can be known without running them.

use super::scripts::chosen;
use crate::Folders;
use crate::Script;
use clap::Args;
use ode_cli as output;
use std::process::ExitCode;

/// Which scripts.
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// Types to check [default: all]
    types: Vec<String>,
}

pub(crate) fn run(folders: &Folders, args: &Validate) -> anyhow::Result<ExitCode> {
    // A manifest or a schema that is wrong ends here, with its file, line and column.
    let catalog = folders.catalog()?;
    let mut is_right = true;
    for script in chosen(&catalog, &args.types)? {
        let wrong = wrong_with(&script);
        let name = script.name();
        match wrong.is_empty() {
            true => output::line(format!("{name}: right; examples: {}", script.examples().len()))?,
            false => wrong.iter().try_for_each(|wrong| output::line(format!("{name}: {wrong}")))?,
        }
        is_right &= wrong.is_empty();
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn wrong_with(script: &Script) -> Vec<String> {
    let mut wrong = script.missing_programs();
    wrong.extend(script.missing_files());
    wrong.extend(script.unknown_fields());
    for (number, example) in script.examples().iter().enumerate() {
        let found = script.check(example).err().unwrap_or_default();
        let number = number + 1;
        wrong.extend(found.iter().map(|found| format!("example {number}: {} {}", found.path, found.message)));
    }
    wrong
}
