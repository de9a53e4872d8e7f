//! Who draws maps: children of this program.

use ode_child::{PoolOptions, Sandbox};
use ode_print::Drawer;

/// A drawer, ready to work; `at_once` maps at a time, or one for each processor.
pub(super) fn drawer(at_once: Option<usize>, sandbox: Sandbox) -> Result<Drawer, ode_child::Error> {
    let options = PoolOptions { sandbox, ..ode_print::pool_options() };
    Drawer::new(PoolOptions { at_once: at_once.unwrap_or(options.at_once), ..options })
}
