//! Text with boxes and a mapping in, values with their provenance out, and from those XML. It has never
//! heard of a job.

pub mod compare;
pub mod embedded;
mod facts;
pub mod record;
pub mod rules;
mod subtotals;
pub mod terms;
pub mod write;

pub use record::{Cell, Field, Finding, Place, Record, Row, Severity, Table, Typed, Value};
