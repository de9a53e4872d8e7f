//! Who may do what in the database itself: the API role, its organisation, and jobs made in SQL. Only PostgreSQL has roles.

mod cancelling;
mod enqueueing;
mod guest;
mod shared;
mod sight;
mod views;
