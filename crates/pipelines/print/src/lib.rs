//! Maps to print: the child process that draws them, the drawer that starts it, the handler of exports, and orders.
//!
//! Drawing itself is `ode_atlas`. Nobody but the child reads a specification or GeoJSON that came from outside.

mod drawer;
mod drawing;
mod export;
pub mod machine;
pub mod order;

pub use drawer::{Drawer, Drawn, Features, Frozen, Undrawn, pool_options};
pub use drawing::serve;
pub use export::ExportHandler;
