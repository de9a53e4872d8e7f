//! Jobs: accepting them, finding them, and what people do with them.

pub(crate) mod beside;
pub(crate) mod bulk;
pub(crate) mod checks;
pub(crate) mod documents;
pub(crate) mod enqueue;
pub(crate) mod keyed;
pub(crate) mod mint;
pub(crate) mod overview;
pub(crate) mod owned;
pub(crate) mod people;
pub(crate) mod read;
pub(crate) mod twins;
