//! The upload service over HTTP, as browsers and programs meet it: the real binary on both databases.

mod access;
pub(crate) mod client;
mod documents;
mod limits;
mod live;
mod maps;
mod order_database;
mod order_faults;
mod order_following;
mod order_network;
mod order_versions;
mod orders;
mod results;
mod review;
mod watch;
