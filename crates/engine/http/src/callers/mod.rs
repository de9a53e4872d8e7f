//! Callers: sessions of browsers, API keys, signing in.

pub mod caller;
pub mod session;
pub mod sign_in;
