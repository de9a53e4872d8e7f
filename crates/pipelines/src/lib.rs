//! What each kind of job does with its input: one folder for each pipeline, and the registry that lists them.
//!
//! A pipeline gets a claimed job and answers a result or a failure. It never sees the store.

pub mod html;
pub mod print;
mod registry;
pub mod script;
pub mod xml;

pub use registry::{Handlers, registry};
