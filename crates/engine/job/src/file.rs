//! Documents that jobs are made from, and files that attempts make.

use bytes::Bytes;

/// A document that was stored with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What its owner calls it. Never part of a path.
    pub name: String,
    pub content: Bytes,
}

/// Files that are kept of an attempt that failed, too: they show why.
pub const SHOWS_WHY: [&str; 2] = ["screenshot", "log"];

/// A file an attempt made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// What it is to the job.
    pub role: String,
    /// Its name within the job.
    pub name: String,
    pub content_type: String,
    pub content: Bytes,
}
