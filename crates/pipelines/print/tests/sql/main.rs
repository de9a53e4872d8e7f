//! Maps, prints and orders on both databases: every step that is allowed, and the database against everyone who would go
//! another way.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod harness;
mod maps;
mod orders;
mod plans;
