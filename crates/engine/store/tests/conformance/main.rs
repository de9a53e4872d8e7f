//! Each behaviour of the store once, run on SQLite and on PostgreSQL.
//!
//! A behaviour is an `async fn name(store: Store)`, or one of a `Database` where it needs SQL of its own;
//! `on_both!` makes it two tests. What only one database can show is in `postgres_only` or `sqlite_only`, and in `access`.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod access;
mod claims;
mod documents;
mod ends;
mod harness;
mod invariants;
mod machines;
mod model;
mod people;
mod reading;
mod requests;
mod retention;
mod schema;
mod service;
mod web;
mod workers;
