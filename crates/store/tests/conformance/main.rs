//! Each behaviour of the store once, run on SQLite and on PostgreSQL.
//!
//! A behaviour is an `async fn name(store: Store)`; `on_both!` makes it two tests. What only one database can
//! show is in `postgres_only`.

mod access;
mod claims;
mod ends;
mod harness;
mod invariants;
mod model;
mod people;
mod reading;
mod requests;
mod schema;
mod workers;
