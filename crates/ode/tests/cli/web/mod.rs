//! The upload service over HTTP, as browsers and programs meet it: the real binary on both databases.

mod access;
pub(crate) mod client;
mod documents;
mod limits;
mod live;
mod results;
mod watch;
