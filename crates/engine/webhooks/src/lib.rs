//! Messages to owners when their jobs end, as [Standard Webhooks](https://www.standardwebhooks.com) has them: signed, sent
//! at least once under one id, tried again for about a day, and never sent to an address inside our own network unless the
//! operator allowed it.
//!
//! Which messages there are is the store's to say; this crate sends them and tells it how that went.

mod guard;
mod sender;
mod signature;

pub use guard::{BadAllowed, Guard};
pub use sender::{JobAddress, METRICS, Options, Sender};
pub use signature::{message_id, message_name, secret_text, sign};

/// Why messages cannot be sent at all.
#[derive(Debug, thiserror::Error)]
#[error("Nothing can be sent from here: {0}")]
pub struct Error(String);
