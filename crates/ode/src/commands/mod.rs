//! One file for each command.

pub(crate) mod bench;
pub(crate) mod child;
pub(crate) mod convert;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod gateway;
pub(crate) mod jobs;
pub(crate) mod mapping;
pub(crate) mod maps;
pub(crate) mod migrate;
pub(crate) mod serve;
pub(crate) mod workers;
