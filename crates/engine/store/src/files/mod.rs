//! Files of jobs: where they lie, how they come in, and how what is left of them goes.

pub(crate) mod blobs;
pub mod disk;
pub(crate) mod incoming;
pub(crate) mod leftovers;
pub(crate) mod local;
pub(crate) mod parts;
pub(crate) mod places;
pub(crate) mod sweep;
