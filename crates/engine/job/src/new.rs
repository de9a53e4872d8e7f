//! A job as it is asked for, checked once at the door.

use crate::{Owner, Pipeline};
use jiff::Timestamp;
use serde_json::Value;
use std::ops::RangeInclusive;
use std::time::Duration;
use uuid::Uuid;

/// Higher goes first. Wide enough for any scheme, narrow enough that a slip of the finger shows.
pub const PRIORITY: RangeInclusive<i32> = -1000..=1000;
/// Longer names are data, and belong in the input.
pub const NAME_CHARS_MAX: usize = 255;
/// Inputs are read at every claim; anything larger belongs in a blob that the input points to.
pub const INPUT_BYTES_MAX: usize = 1 << 20;
/// Twice what a conversion was ever seen to need is kept exactly.
pub const CONFIG_BYTES_MAX: usize = 100 << 10;
/// Metadata is for labels and links.
pub const METADATA_BYTES_MAX: usize = 64 << 10;
/// Limits are stored in milliseconds.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);
/// No attempt takes that long; and a moment this far away is still one that a database can write down.
pub const TIMEOUT_MAX: Duration = Duration::from_hours(7 * 24);
/// A job that may be retried more often than this is not failing, it is polling.
pub const RETRIES_MAX: u32 = 100;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// The kind of work.
    pub pipeline: Pipeline,
    /// Mapping, script type or format.
    pub kind: String,
    /// Who may see it.
    pub owner: Owner,
    /// The person behind the owner, where known.
    pub created_by: Option<Uuid>,
    /// The caller's own id for it, unique for its owner.
    pub external_id: Option<String>,
    /// A second request with the same key is answered with the first one's job.
    pub idempotency_key: Option<String>,
    /// While a job with the same key is live or succeeded, that one is returned instead.
    pub dedupe_key: Option<String>,
    /// What to work on.
    pub input: Value,
    /// How to work on it.
    pub config: Value,
    /// The caller's labels.
    pub metadata: Value,
    /// Higher goes first.
    pub priority: i32,
    /// How often it may be tried again; the pipeline's own policy where absent.
    pub retries_max: Option<u32>,
    /// Not before then.
    pub run_at: Option<Timestamp>,
    /// How long one attempt may take; the pipeline's own limit where absent.
    pub timeout: Option<Duration>,
    /// Goes on to its next stage by itself (print: order once exported).
    pub advance: bool,
}

/// A request that cannot be accepted as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A name is empty or too long.
    #[error("`{field}` has {chars} characters; give it between 1 and {max}.")]
    Name {
        field: &'static str,
        /// How long it is.
        chars: usize,
        /// How long it may be.
        max: usize,
    },
    /// A name holds a control character.
    #[error("`{field}` holds a control character; use printable text.")]
    ControlCharacter { field: &'static str },
    /// The priority is out of range.
    #[error("Priority {0} is out of range; use {min} to {max}.", min = PRIORITY.start(), max = PRIORITY.end())]
    Priority(i32),
    /// More retries than allowed.
    #[error("{0} retries are too many; the limit is {RETRIES_MAX}.")]
    Retries(u32),
    /// A timeout that databases cannot tell from none at all, or one without end.
    #[error("The timeout must be between 1 millisecond and 7 days.")]
    Timeout,
    #[error("`{field}` is null; give it a value.")]
    Null { field: &'static str },
    /// A JSON document holds a character that PostgreSQL has no place for.
    #[error("`{field}` holds the character U+0000, which cannot be stored; remove it.")]
    Nul { field: &'static str },
    /// A JSON document is too large.
    #[error(
        "`{field}` has {bytes} bytes and the limit is {max}. Store the content as a file and refer to it."
    )]
    TooLarge {
        field: &'static str,
        /// Its size as JSON text.
        bytes: usize,
        /// How large it may be.
        max: usize,
    },
}

impl Invalid {
    /// Which part of a job it is about, as callers name it.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Invalid::Name { field, .. }
            | Invalid::ControlCharacter { field }
            | Invalid::Null { field }
            | Invalid::Nul { field }
            | Invalid::TooLarge { field, .. } => field,
            Invalid::Priority(_) => "priority",
            Invalid::Retries(_) => "max_retries",
            Invalid::Timeout => "timeout_ms",
        }
    }
}

impl NewJob {
    /// A job with nothing but the necessary.
    pub fn new(pipeline: Pipeline, kind: impl Into<String>, input: Value) -> Self {
        NewJob {
            pipeline,
            kind: kind.into(),
            owner: Owner::Operator,
            created_by: None,
            external_id: None,
            idempotency_key: None,
            dedupe_key: None,
            input,
            config: Value::Object(serde_json::Map::new()),
            metadata: Value::Object(serde_json::Map::new()),
            priority: 0,
            retries_max: None,
            run_at: None,
            timeout: None,
            advance: false,
        }
    }

    /// The same job for this owner.
    pub fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// Says what is wrong with it, if anything is.
    pub fn check(&self) -> Result<(), Invalid> {
        check_name("type", Some(&self.kind))?;
        check_name("external_id", self.external_id.as_deref())?;
        check_name("idempotency_key", self.idempotency_key.as_deref())?;
        check_name("dedupe_key", self.dedupe_key.as_deref())?;
        if !PRIORITY.contains(&self.priority) {
            return Err(Invalid::Priority(self.priority));
        }
        if let Some(retries) = self.retries_max.filter(|retries| *retries > RETRIES_MAX) {
            return Err(Invalid::Retries(retries));
        }
        if self.timeout.is_some_and(|timeout| !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&timeout)) {
            return Err(Invalid::Timeout);
        }
        if self.input.is_null() {
            return Err(Invalid::Null { field: "input" });
        }
        check_document("input", &self.input, INPUT_BYTES_MAX)?;
        check_document("config", &self.config, CONFIG_BYTES_MAX)?;
        check_document("metadata", &self.metadata, METADATA_BYTES_MAX)
    }
}

fn check_name(field: &'static str, name: Option<&str>) -> Result<(), Invalid> {
    let Some(name) = name else { return Ok(()) };
    let chars = name.chars().count();
    if chars == 0 || chars > NAME_CHARS_MAX {
        return Err(Invalid::Name { field, chars, max: NAME_CHARS_MAX });
    }
    if name.chars().any(char::is_control) {
        return Err(Invalid::ControlCharacter { field });
    }
    Ok(())
}

fn check_document(field: &'static str, json: &Value, max: usize) -> Result<(), Invalid> {
    let bytes = json_bytes(json);
    if bytes > max {
        return Err(Invalid::TooLarge { field, bytes, max });
    }
    if holds_nul(json) {
        return Err(Invalid::Nul { field });
    }
    Ok(())
}

/// Goes as deep as the document does, which a parser of JSON has bounded.
fn holds_nul(json: &Value) -> bool {
    match json {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The length of a document as JSON text, without writing it anywhere.
fn json_bytes(json: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, json)
        .expect("counting bytes cannot fail, and a Value is always valid JSON");
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(change: impl FnOnce(&mut NewJob)) -> Result<(), Invalid> {
        let mut job = NewJob::new(crate::machine::tests::PLAIN, "html5", json!({}));
        change(&mut job);
        job.check()
    }

    #[test]
    fn plain_jobs_pass() {
        assert_eq!(check(|_| ()), Ok(()));
        assert_eq!(check(|job| job.priority = *PRIORITY.end()), Ok(()));
        assert_eq!(check(|job| job.config = json!({ "note": "x".repeat(50 * 1024) })), Ok(()));
    }

    #[test]
    fn each_limit_is_told_with_its_name_and_number() {
        let message = |change: fn(&mut NewJob)| check(change).unwrap_err().to_string();
        assert_eq!(message(|job| job.priority = 1001), "Priority 1001 is out of range; use -1000 to 1000.");
        assert_eq!(message(|job| job.kind.clear()), "`type` has 0 characters; give it between 1 and 255.");
        assert!(message(|job| job.external_id = Some("x".repeat(256))).contains("256 characters"));
        assert!(message(|job| job.external_id = Some("a\u{0}b".into())).contains("control character"));
        assert!(message(|job| job.retries_max = Some(101)).contains("limit is 100"));
        assert!(message(|job| job.timeout = Some(Duration::from_micros(999))).contains("1 millisecond"));
        assert!(message(|job| job.timeout = Some(Duration::MAX)).contains("7 days"));
        assert!(message(|job| job.input = Value::Null).contains("`input` is null"));
        assert!(message(|job| job.config = json!([{ "a\0": 1 }])).contains("U+0000"));
        assert!(
            message(|job| job.input = json!("x".repeat(INPUT_BYTES_MAX)))
                .contains("`input` has 1048578 bytes")
        );
    }
}
