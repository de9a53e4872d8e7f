//! Both databases under one set of statements.

pub(crate) mod connections;
pub(crate) mod db;
pub(crate) mod dialect;
pub(crate) mod health;
