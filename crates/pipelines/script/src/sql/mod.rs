//! The statements of scripts, as functions over the store's SQL. All of them work on both databases.

pub(crate) mod gate;
mod list;
mod runs;
mod seal_keys;
pub(crate) mod secrets;
mod submit;

pub use list::{ScriptFacts, ScriptFilter, script_facts, scripts};
pub use runs::{ScriptType, checkpoint, checkpoints, publish_types, record_run};
pub use seal_keys::{SealKey, SealSide, publish_seal_key, seal_key, seal_keys, web_key};
pub use secrets::{
    held_secret, keep as keep_secret, keep_result_secret, result_secret, shred_due, take_result_secret,
    turn_secrets,
};
pub use submit::{AcceptedScripts, Need, NewScript, NewScripts, submit};

/// Statements that find scripts by ids, for the test of how databases go about them.
#[doc(hidden)]
pub const BY_ID_STATEMENTS: [&str; 2] = [submit::OF_BATCH, secrets::SEALED_TO];
