//! API keys, and limits on what each caller may ask for.

pub(crate) mod keys;
pub(crate) mod limiter;
