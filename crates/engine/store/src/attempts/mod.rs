//! Attempts at jobs: claims, ends, wake-ups, and the processes that make them.

pub(crate) mod chore;
pub(crate) mod claim;
pub(crate) mod finish;
pub(crate) mod hints;
pub(crate) mod rules;
pub(crate) mod wake;
pub(crate) mod workers;
