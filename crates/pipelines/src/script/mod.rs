//! The script pipeline: a program that works on another site, run as one supervised process.

mod handler;
mod told;

pub use handler::{ScriptHandler, Site};
