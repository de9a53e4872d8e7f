//! Text with boxes and a mapping in, values with their provenance out, and from those XML. It has never
//! heard of a job.

pub mod record;

pub use record::{Cell, Field, Finding, Place, Record, Row, Severity, Table, Typed, Value};
