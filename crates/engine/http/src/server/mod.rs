//! HTTP itself, whatever is asked for: connections, bodies, forms, limits, and problems as answers.

pub mod body;
pub mod connections;
pub mod door;
pub mod etag;
pub mod form;
pub mod idempotency;
pub mod limits;
pub mod problem;
pub mod query;
pub mod requests;
