//! The lines that a child writes on its event channel, and what they may say.
//!
//! | line | meaning |
//! | --- | --- |
//! | `{"type":"hello","protocol":1,"enforcement":"full"}` | how far the sandbox came; our own children |
//! | `{"type":"progress","percent":40,"message":"…","step":2,"steps":5}` | all but `percent` optional |
//! | `{"type":"log","level":"info","message":"…"}` | `debug`, `info`, `warn` or `error` |
//! | `{"type":"artifact","name":"page-1.svg","offset":0,"bytes":123}` | a part of the output |
//! | `{"type":"artifact","name":"failure.png","path":"failure.png"}` | a file below the working directory |
//! | `{"type":"result","value":…}` | success; the value is the caller's business |
//! | `{"type":"error","code":"…","message":"…","retryable":false}` | failure |
//!
//! Exactly one `result` or `error` ends the conversation. Unknown types are ignored, so that a newer child can
//! speak to an older supervisor.

use crate::lines::clean;
use crate::sandbox::Enforcement;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Length of a message that is passed on; the rest is cut.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Length of a code or a name.
const NAME_BYTES_MAX: usize = 200;

/// How important a line of a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// How something was done.
    Debug,
    /// What was done.
    Info,
    /// Something that was coped with.
    Warn,
    /// Something somebody should look at.
    Error,
}

/// How far a child is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// 0 to 100.
    pub percent: f32,
    /// What it is doing.
    pub message: Option<String>,
    /// Which step it is in, counted from 1.
    pub step: Option<u32>,
    /// How many steps there are.
    pub steps: Option<u32>,
}

/// A file that a child produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// What the child calls it: data, never to be used as a path.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// Where an artifact is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A part of the output, which has been seen to be that long.
    Output {
        /// Its first byte.
        offset: u64,
        /// Its length.
        bytes: u64,
    },
    /// A file below the child's working directory. The path is relative and names no parent, but the child may
    /// have put a symbolic link there: open it with `openat2` and `RESOLVE_BENEATH`, or look before.
    File(String),
}

/// How a child says that it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A short word for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Whether trying again could help.
    #[serde(default)]
    pub retryable: bool,
}

impl Failure {
    /// This input will never work.
    pub fn rejected(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false }
    }

    /// It may work another time.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: true }
    }
}

/// One line, understood.
#[derive(Debug)]
pub(crate) enum Event {
    Hello(Enforcement),
    Progress(Progress),
    Log(Level, String),
    Artifact(Artifact),
    Result(Box<RawValue>),
    Error(Failure),
    Unknown,
}

/// A line that is not an event of the protocol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Garbage;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    enforcement: Option<Enforcement>,
    percent: Option<f32>,
    message: Option<String>,
    step: Option<u32>,
    steps: Option<u32>,
    level: Option<Level>,
    name: Option<String>,
    offset: Option<u64>,
    bytes: Option<u64>,
    path: Option<String>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    code: Option<String>,
    #[serde(default)]
    retryable: bool,
}

impl Event {
    /// Reads one line.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, Garbage> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|_| Garbage)?;
        Ok(match &*line.kind {
            "hello" => Self::Hello(line.enforcement.unwrap_or_default()),
            "progress" => Self::Progress(Progress {
                percent: line.percent.ok_or(Garbage)?.clamp(0.0, 100.0),
                message: line.message.map(message),
                step: line.step,
                steps: line.steps,
            }),
            "log" => Self::Log(line.level.unwrap_or(Level::Info), message(line.message.ok_or(Garbage)?)),
            "artifact" => Self::Artifact(line.artifact()?),
            "result" => Self::Result(line.value.unwrap_or(RawValue::NULL).to_owned()),
            "error" => Self::Error(Failure {
                code: name(line.code.ok_or(Garbage)?),
                message: message(line.message.unwrap_or_default()),
                retryable: line.retryable,
            }),
            _ => Self::Unknown,
        })
    }
}

impl Line<'_> {
    fn artifact(self) -> Result<Artifact, Garbage> {
        let place = match (self.offset, self.bytes, self.path) {
            (Some(offset), Some(bytes), None) => Place::Output { offset, bytes },
            (None, None, Some(path)) if stays_below(&path) => Place::File(path),
            _ => return Err(Garbage),
        };
        Ok(Artifact { name: name(self.name.ok_or(Garbage)?), place })
    }
}

fn stays_below(path: &str) -> bool {
    use std::path::{Component, Path};
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_))) && !path.contains('\0')
}

fn message(text: String) -> String {
    clean(text.as_bytes(), MESSAGE_BYTES_MAX)
}

fn name(text: String) -> String {
    clean(text.as_bytes(), NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let event = Event::parse(line.as_bytes());
        assert!(format!("{event:?}").starts_with(expected), "{line} gave {event:?}, not {expected}");
    }

    #[test]
    fn lines_are_understood_or_refused() {
        check(r#"{"type":"hello","protocol":1,"enforcement":"full"}"#, "Ok(Hello(Full))");
        check(
            r#"{"type":"hello","enforcement":{"partial":{"missing":["landlock"]}}}"#,
            r#"Ok(Hello(Partial { missing: ["landlock"] }))"#,
        );
        check(r#"{"type":"hello"}"#, "Ok(Hello(None))");
        check(r#"{"type":"progress","percent":140}"#, "Ok(Progress(Progress { percent: 100.0");
        check(
            r#"{"type":"progress","percent":-1,"step":1,"steps":3}"#,
            "Ok(Progress(Progress { percent: 0.0",
        );
        check(r#"{"type":"progress"}"#, "Err");
        check(r#"{"type":"log","level":"warn","message":"a\nb"}"#, "Ok(Log(Warn, \"a\u{fffd}b\"))");
        check(r#"{"type":"result","value":{"a":[1]}}"#, r#"Ok(Result(RawValue({"a":[1]})))"#);
        check(r#"{"type":"result","value":null}"#, "Ok(Result(RawValue(null)))");
        check(r#"{"type":"result"}"#, "Ok(Result(RawValue(null)))");
        check(
            r#"{"type":"error","code":"X"}"#,
            r#"Ok(Error(Failure { code: "X", message: "", retryable: false"#,
        );
        check(r#"{"type":"error"}"#, "Err");
        check(r#"{"type":"weather","percent":3}"#, "Ok(Unknown)");
        check(r#"{"percent":3}"#, "Err");
        check("", "Err");
        check("hello", "Err");
        check("[1]", "Err");
    }

    #[test]
    fn artifacts_stay_where_they_belong() {
        check(r#"{"type":"artifact","name":"a","offset":1,"bytes":2}"#, "Ok(Artifact");
        check(r#"{"type":"artifact","name":"a","path":"b/c.png"}"#, "Ok(Artifact");
        for path in ["", "/etc/passwd", "../a", "a/../b", ".", "a\\u0000b"] {
            check(&format!(r#"{{"type":"artifact","name":"a","path":"{path}"}}"#), "Err");
        }
        check(r#"{"type":"artifact","name":"a","offset":1}"#, "Err");
        check(r#"{"type":"artifact","name":"a","offset":1,"bytes":2,"path":"b"}"#, "Err");
        check(r#"{"type":"artifact","name":"a","offset":-1,"bytes":2}"#, "Err");
    }
}
