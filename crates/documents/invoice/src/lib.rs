//! Text with boxes and a mapping in, values with their provenance out, and from those XML. It has never
//! heard of a job.

pub mod compare;
mod credit;
pub mod embedded;
pub mod engine;
pub mod error;
mod facts;
mod field;
pub mod finding;
mod label;
pub mod learn;
pub mod mapping;
pub mod matching;
mod pattern;
pub mod preview;
mod rates;
pub mod record;
pub mod registry;
pub mod rules;
pub mod sheet;
mod shipped;
mod subtotals;
mod table;
pub mod terms;
pub mod tools;
pub mod values;
pub mod write;

pub use engine::Extraction;
pub use error::{ExtractError, MappingError};
pub use facts::plain as value_text;
pub use finding::FindingCode;
pub use mapping::Mapping;
pub use matching::MatchReport;
pub use record::{Cell, Field, Finding, Place, Record, Row, Severity, Table, Typed, Value};
pub use registry::{Choice, Options, Registry, extract};
