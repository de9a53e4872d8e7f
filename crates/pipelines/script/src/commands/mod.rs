//! `ode scripts` and `ode seal`.

mod make;
mod run;
mod scripts;
mod seal;
mod validate;

pub use scripts::{SCRIPTS_EXAMPLES, ScriptsCommand, run_scripts};
pub use seal::{SEAL_EXAMPLES, SealCommand, run_seal};
