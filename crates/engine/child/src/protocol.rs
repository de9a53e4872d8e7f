//! The lines that a child writes on its event channel, and what they may say.
//!
//! | line | meaning |
//! | --- | --- |
//! | `{"t":"hello","protocol":1,"enforcement":"full"}` | how far the sandbox came; our own children |
//! | `{"t":"plan","steps":[{"id":"login","title":"Sign in"}]}` | the steps it is going to take |
//! | `{"t":"step","id":"login","state":"started"}` | `started`, `done`, `skipped` or `failed` |
//! | `{"t":"progress","percent":40,"message":"…","step":2,"steps":5}` | all but `percent` optional |
//! | `{"t":"log","level":"info","msg":"…"}` | `debug`, `info`, `warn` or `error` |
//! | `{"t":"mask","value":"…"}` | a secret: hidden from now on in all that it says |
//! | `{"t":"checkpoint","key":"uploaded","data":{}}` | done, and need not be done again |
//! | `{"t":"artifact","name":"page-1.svg","offset":0,"bytes":123}` | a part of the output |
//! | `{"t":"artifact","name":"failure.png","kind":"screenshot","path":"failure.png"}` | a file of its own |
//! | `{"t":"result","success":true,"partial":false,"message":"…","data":…}` | success; data is the caller's business |
//! | `{"t":"result","success":false,"message":"…","error":{"code":"…","retryable":false}}` | failure |
//!
//! Exactly one `result` ends the conversation. Unknown kinds are ignored, so that a newer child can speak to an older
//! supervisor. Every text is redacted before it is cut or looked at; the data of a result, which may hold a secret on
//! purpose, is not.

use crate::lines::clean;
use crate::outcome::Summary;
use crate::redact::Redactor;
use crate::sandbox::Enforcement;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Length of a message that is passed on; the rest is cut.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Length of a code or a name.
const NAME_BYTES_MAX: usize = 200;
/// Length of the trace of an error.
const STACK_BYTES_MAX: usize = 16 * 1024;
/// A program that plans more steps is not telling people anything.
const STEPS_MAX: usize = 100;
/// What a failure is called whose program did not name it.
const NAMELESS: &str = "failed";

/// How important a line of a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Debug,
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

/// A step that a program is going to take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The name that the program uses.
    pub id: String,
    /// What people read.
    pub title: String,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It has begun.
    Started,
    Done,
    /// It had been done before, or there was nothing to do.
    Skipped,
    Failed,
}

/// A file that a child produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// What the child calls it: data, never to be used as a path.
    pub name: String,
    /// What the child says it is, such as `screenshot`.
    pub kind: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// A short word for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Whether trying again could help.
    pub retryable: bool,
    /// Where in the program it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

impl Failure {
    /// This input will never work.
    pub fn rejected(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, stack: None }
    }

    /// It may work another time.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: true, stack: None }
    }
}

/// One line, understood.
#[derive(Debug)]
pub(crate) enum Event {
    Hello(Enforcement),
    Plan(Vec<Step>),
    Step(String, StepState),
    Progress(Progress),
    Log(Level, String),
    Mask(Value),
    Checkpoint(String, Value),
    Artifact(Artifact),
    Result(Box<RawValue>, Summary),
    Error(Failure),
    Unknown,
}

/// Why a line is not an event of the protocol. It may repeat what stands in the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Garbage(pub(crate) String);

/// What a line lacks.
fn lacks(field: &'static str) -> impl FnOnce() -> Garbage {
    move || Garbage(format!("it has no {field:?}"))
}

fn misread(error: serde_json::Error) -> Garbage {
    let kind = if error.is_data() { "it is no event" } else { "it is not one JSON object" };
    Garbage(format!("{kind}: {}", error.to_string().replace(" at line 1 column ", " at character ")))
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
    enforcement: Option<Enforcement>,
    percent: Option<f32>,
    message: Option<String>,
    msg: Option<String>,
    step: Option<u32>,
    /// How many there are in `progress`, which they are in `plan`.
    #[serde(borrow)]
    steps: Option<&'a RawValue>,
    id: Option<String>,
    state: Option<StepState>,
    level: Option<Level>,
    name: Option<String>,
    kind: Option<String>,
    offset: Option<u64>,
    bytes: Option<u64>,
    path: Option<String>,
    key: Option<String>,
    value: Option<Value>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    success: Option<bool>,
    partial: Option<bool>,
    error: Option<Told>,
}

/// What a program tells about its failure.
#[derive(Deserialize)]
struct Told {
    code: Option<String>,
    message: Option<String>,
    #[serde(default)]
    retryable: bool,
    stack: Option<String>,
}

impl Event {
    /// Reads one line and hides the secrets in it.
    pub(crate) fn parse(line: &[u8], redactor: &Redactor) -> Result<Self, Garbage> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(misread)?;
        let text = Texts { redactor };
        Ok(match &*line.t {
            "hello" => Self::Hello(line.enforcement.unwrap_or_default()),
            "plan" => Self::Plan(text.plan(line.steps.ok_or_else(lacks("steps"))?)?),
            "step" => {
                let id = line.id.ok_or_else(lacks("id"))?;
                Self::Step(text.name(&id), line.state.ok_or_else(lacks("state"))?)
            }
            "progress" => Self::Progress(Progress {
                percent: line.percent.ok_or_else(lacks("percent"))?.clamp(0.0, 100.0),
                message: line.message.map(|message| text.message(&message)),
                step: line.step,
                steps: line.steps.and_then(|steps| steps.get().parse().ok()),
            }),
            "log" => {
                let message = line.msg.ok_or_else(lacks("msg"))?;
                Self::Log(line.level.unwrap_or(Level::Info), text.message(&message))
            }
            "mask" => Self::Mask(line.value.ok_or_else(lacks("value"))?),
            "checkpoint" => {
                let data = line.data.unwrap_or(RawValue::NULL).get();
                let data = serde_json::from_str(data).map_err(misread)?;
                Self::Checkpoint(text.name(&line.key.ok_or_else(lacks("key"))?), redactor.value(data))
            }
            "artifact" => Self::Artifact(line.artifact(&text)?),
            "result" => line.answer(&text),
            _ => Self::Unknown,
        })
    }
}

impl Line<'_> {
    fn artifact(self, text: &Texts<'_>) -> Result<Artifact, Garbage> {
        let place = match (self.offset, self.bytes, self.path) {
            (Some(offset), Some(bytes), None) => Place::Output { offset, bytes },
            (None, None, Some(path)) if stays_below(&path) => Place::File(path),
            (None, None, Some(_)) => {
                return Err(Garbage("its \"path\" leads out of ODE_ARTIFACTS".to_owned()));
            }
            _ => return Err(Garbage("it has no \"path\" below ODE_ARTIFACTS".to_owned())),
        };
        let kind = self.kind.map(|kind| text.name(&kind));
        Ok(Artifact { name: text.name(&self.name.ok_or_else(lacks("name"))?), kind, place })
    }

    /// A result that says neither is a success, unless it tells of an error.
    fn answer(self, text: &Texts<'_>) -> Event {
        let is_success = self.success.unwrap_or(self.error.is_none());
        let message = self.message.as_deref();
        if is_success {
            let message = message.map_or_else(String::new, |message| text.message(message));
            let summary = Summary { message, partial: self.partial.unwrap_or(false) };
            return Event::Result(self.data.unwrap_or(RawValue::NULL).to_owned(), summary);
        }
        let error = self.error.as_ref();
        let message = message.or_else(|| error?.message.as_deref());
        Event::Error(Failure {
            code: text.name(error.and_then(|error| error.code.as_deref()).unwrap_or(NAMELESS)),
            message: text.message(message.unwrap_or("The script failed and did not say why.")),
            retryable: error.is_some_and(|error| error.retryable),
            stack: error.and_then(|error| Some(text.stack(error.stack.as_deref()?))),
        })
    }
}

/// Makes texts fit to be seen.
struct Texts<'a> {
    redactor: &'a Redactor,
}

impl Texts<'_> {
    fn message(&self, text: &str) -> String {
        clean(self.redactor.text(text).as_bytes(), MESSAGE_BYTES_MAX)
    }

    fn name(&self, text: &str) -> String {
        clean(self.redactor.text(text).as_bytes(), NAME_BYTES_MAX)
    }

    fn stack(&self, text: &str) -> String {
        let text = self.redactor.text(text);
        let lines: Vec<String> = text.lines().map(|line| clean(line.as_bytes(), MESSAGE_BYTES_MAX)).collect();
        let mut stack = lines.join("\n");
        stack.truncate(stack.floor_char_boundary(STACK_BYTES_MAX));
        stack
    }

    fn plan(&self, steps: &RawValue) -> Result<Vec<Step>, Garbage> {
        let steps: Vec<Step> = serde_json::from_str(steps.get()).map_err(misread)?;
        if steps.len() > STEPS_MAX {
            return Err(Garbage(format!("a plan has up to {STEPS_MAX} steps")));
        }
        Ok(steps.iter().map(|step| Step { id: self.name(&step.id), title: self.name(&step.title) }).collect())
    }
}

fn stays_below(path: &str) -> bool {
    use std::path::{Component, Path};
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_))) && !path.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let redactor = Redactor::new(&["hunter2".into()]);
        let event = Event::parse(line.as_bytes(), &redactor);
        assert!(format!("{event:?}").starts_with(expected), "{line} gave {event:?}, not {expected}");
    }

    #[test]
    fn lines_are_understood_or_refused() {
        check(r#"{"t":"hello","protocol":1,"enforcement":"full"}"#, "Ok(Hello(Full))");
        check(
            r#"{"t":"hello","enforcement":{"partial":{"missing":["landlock"]}}}"#,
            r#"Ok(Hello(Partial { missing: ["landlock"] }))"#,
        );
        check(r#"{"t":"hello"}"#, "Ok(Hello(None))");
        check(r#"{"t":"progress","percent":140}"#, "Ok(Progress(Progress { percent: 100.0");
        check(
            r#"{"t":"progress","percent":-1,"step":1,"steps":3}"#,
            "Ok(Progress(Progress { percent: 0.0, message: None, step: Some(1), steps: Some(3)",
        );
        check(r#"{"t":"progress"}"#, "Err");
        check(r#"{"t":"log","level":"warn","msg":"a\nb"}"#, "Ok(Log(Warn, \"a\u{fffd}b\"))");
        check(r#"{"t":"weather","percent":3}"#, "Ok(Unknown)");
        check(r#"{"percent":3}"#, "Err");
        check("", "Err");
        check("hello", "Err");
        check("[1]", "Err");
    }

    #[test]
    fn plans_steps_and_checkpoints_are_understood() {
        check(
            r#"{"t":"plan","steps":[{"id":"a","title":"A"}]}"#,
            r#"Ok(Plan([Step { id: "a", title: "A" }]))"#,
        );
        check(r#"{"t":"plan"}"#, "Err");
        check(r#"{"t":"plan","steps":3}"#, "Err");
        check(r#"{"t":"step","id":"a","state":"skipped"}"#, r#"Ok(Step("a", Skipped))"#);
        check(r#"{"t":"step","id":"a","state":"tired"}"#, "Err");
        check(r#"{"t":"checkpoint","key":"a"}"#, r#"Ok(Checkpoint("a", Null))"#);
        check(r#"{"t":"checkpoint","data":1}"#, "Err");
        check(r#"{"t":"mask","value":"x"}"#, r#"Ok(Mask(String("x")))"#);
        check(r#"{"t":"mask"}"#, "Err");
    }

    #[test]
    fn a_result_is_a_success_or_a_failure() {
        check(
            r#"{"t":"result","data":{"a":[1]}}"#,
            r#"Ok(Result(RawValue({"a":[1]}), Summary { message: "", partial: f"#,
        );
        check(r#"{"t":"result"}"#, "Ok(Result(RawValue(null)");
        check(
            r#"{"t":"result","success":true,"partial":true,"message":"3 of 5"}"#,
            "Ok(Result(RawValue(null), Summary { message: \"3 of 5\", partial: true",
        );
        check(
            r#"{"t":"result","success":false,"message":"why","error":{"code":"X","retryable":true}}"#,
            r#"Ok(Error(Failure { code: "X", message: "why", retryable: true, stack: None"#,
        );
        check(
            r#"{"t":"result","error":{"message":"m","stack":"a\nb"}}"#,
            r#"Ok(Error(Failure { code: "failed", message: "m", retryable: false, stack: Some("a\nb")"#,
        );
        check(
            r#"{"t":"result","success":false}"#,
            "Ok(Error(Failure { code: \"failed\", message: \"The script failed",
        );
    }

    #[test]
    fn secrets_are_hidden_in_all_but_the_data_of_a_result() {
        for line in [
            r#"{"t":"log","msg":"typed \u0068unter2"}"#,
            r#"{"t":"progress","percent":1,"message":"hunter2"}"#,
            r#"{"t":"step","id":"hunter2","state":"done"}"#,
            r#"{"t":"plan","steps":[{"id":"a","title":"hunter2"}]}"#,
            r#"{"t":"checkpoint","key":"hunter2","data":{"a":["hunter2"]}}"#,
            r#"{"t":"artifact","name":"hunter2","kind":"hunter2","offset":0,"bytes":1}"#,
            r#"{"t":"result","error":{"code":"hunter2","message":"hunter2","stack":"hunter2"}}"#,
            r#"{"t":"result","message":"hunter2"}"#,
        ] {
            let event =
                format!("{:?}", Event::parse(line.as_bytes(), &Redactor::new(&["hunter2".into()])).unwrap());
            assert!(event.contains("***") && !event.contains("hunter2"), "{event}");
        }
        check(r#"{"t":"result","data":"hunter2"}"#, "Ok(Result(RawValue(\"hunter2\")");
    }

    #[test]
    fn artifacts_stay_where_they_belong() {
        check(r#"{"t":"artifact","name":"a","offset":1,"bytes":2}"#, "Ok(Artifact");
        check(r#"{"t":"artifact","name":"a","path":"b/c.png"}"#, "Ok(Artifact");
        for path in ["", "/etc/passwd", "../a", "a/../b", ".", "a\\u0000b"] {
            check(&format!(r#"{{"t":"artifact","name":"a","path":"{path}"}}"#), "Err");
        }
        check(r#"{"t":"artifact","name":"a","offset":1}"#, "Err");
        check(r#"{"t":"artifact","name":"a","offset":1,"bytes":2,"path":"b"}"#, "Err");
        check(r#"{"t":"artifact","name":"a","offset":-1,"bytes":2}"#, "Err");
    }
}
