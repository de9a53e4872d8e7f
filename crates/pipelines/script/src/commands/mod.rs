//! `ode scripts` and `ode seal`.

mod make;
mod run;
mod scripts;
mod seal;
mod validate;

use crate::Folders;
use ode_cli::Schema;
use ode_pipeline::{Call, Command};
use scripts::{ScriptsCommand, run_scripts};
use seal::{SealCommand, run_seal};

const HEADING: &str = "Scripts";

pub(super) fn commands() -> Vec<Command> {
    let scripts = async |call: Call, command: ScriptsCommand| {
        run_scripts(&Folders::new(&call.settings, call.options()?), command).await
    };
    let seal = async |call: Call, command: SealCommand| {
        let store = call.settings.store("cli", Schema::Check).await?;
        run_seal(&Folders::new(&call.settings, call.options()?), &store, command).await
    };
    vec![Command::new("scripts", HEADING, scripts), Command::new("seal", HEADING, seal)]
}
