//! One file for each command.

pub(crate) mod cleanup;
pub(crate) mod convert;
pub(crate) mod demo_site;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod jobs;
pub(crate) mod keep;
pub(crate) mod keys;
pub(crate) mod migrate;
pub(crate) mod printful_sim;
pub(crate) mod serve;
mod site;
mod watch;
pub(crate) mod webhooks;
pub(crate) mod work;
pub(crate) mod workers;
