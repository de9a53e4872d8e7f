//! The manifest of a script, `script.toml`: what it is called, how it is started, what it takes and gives, and how
//! long, how often and how large it may be.

use ode_child::Step;
use ode_job::new::{RETRIES_MAX, TIMEOUT_MAX};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// A manifest, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The name that jobs ask for it by, such as `add-item-tags`.
    pub name: String,
    /// What it does, for people.
    pub title: String,
    /// Counted up by whoever changes it.
    pub version: u32,
    /// The program and its arguments. One that is a file of the script's folder is given with its whole path.
    pub command: Vec<String>,
    /// The same for a process that may wait for its payload, with a browser open, before it knows for which type.
    pub spare: Option<Vec<String>>,
    /// What it tells its progress in.
    pub steps: Vec<Step>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How often it is tried again.
    pub max_retries: u32,
    /// How long to wait before the first of those; each later one waits twice as long.
    pub retry_delay: Duration,
    /// Jobs with the same key never run at once. `{field}` stands for a field of the payload.
    pub concurrency_key: Option<String>,
    /// Memory of all its processes together.
    pub memory_bytes_max: u64,
    /// Whether a spare may run it.
    pub pool: Pool,
    /// Whether it drives a browser, which it is then told where to find.
    pub browser: bool,
    /// Whether it may record what the browser does.
    pub trace: Trace,
    pub(crate) payload: SchemaAt,
    pub(crate) result: Option<SchemaAt>,
}

/// Where a script gets its process from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// A new one for each attempt.
    #[default]
    None,
    /// One that waits already, used once, if there is one.
    Spare,
}

/// Whether a script records what the browser does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trace {
    /// Never: a recording holds what was typed, passwords included.
    #[default]
    Off,
    /// When it fails. What holds a secret is dropped.
    OnFailure,
}

/// A schema in a file beside the manifest, or in the manifest itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "the name of a JSON Schema file, or a table that is the schema")]
pub(crate) enum SchemaAt {
    File(String),
    Here(Value),
}

/// What is wrong with a manifest, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestError {
    /// Line and column, both from 1, where it is known.
    pub at: Option<(usize, usize)>,
    pub message: String,
}

const TIMEOUT_S: u64 = 300;
const RETRIES: u32 = 3;
const RETRY_DELAY_S: u64 = 5;
const RETRY_DELAY_S_MAX: u64 = 3600;
const MEMORY_MB: u64 = 1024;
const MEMORY_MB_RANGE: std::ops::RangeInclusive<u64> = 32..=65_536;
const STEPS_MAX: usize = 100;
/// What stands where types do in the addresses of the API.
const RESERVED: [&str; 2] = ["batch", "jobs"];
const NAME_CHARS_MAX: usize = 63;
/// Titles are shown in lists.
const TITLE_CHARS_MAX: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "type")]
    name: String,
    title: String,
    version: u32,
    command: Vec<String>,
    spare: Option<Vec<String>>,
    payload: SchemaAt,
    result: Option<SchemaAt>,
    #[serde(default)]
    steps: Vec<Step>,
    timeout_s: Option<u64>,
    max_retries: Option<u32>,
    retry_delay_s: Option<u64>,
    concurrency_key: Option<String>,
    max_memory_mb: Option<u64>,
    #[serde(default)]
    pool: Pool,
    browser: Option<bool>,
    #[serde(default)]
    trace: Trace,
}

impl Manifest {
    pub fn read(text: &str) -> Result<Self, ManifestError> {
        let file: File = toml::from_str(text).map_err(|error| ManifestError {
            at: error.span().map(|span| line_and_column(text, span.start)),
            message: error.message().to_owned(),
        })?;
        file.check().map_err(|(key, message)| ManifestError { at: line_of(text, key), message })?;
        Ok(Self {
            name: file.name,
            title: file.title,
            version: file.version,
            command: file.command,
            spare: file.spare,
            steps: file.steps,
            timeout: Duration::from_secs(file.timeout_s.unwrap_or(TIMEOUT_S)),
            max_retries: file.max_retries.unwrap_or(RETRIES),
            retry_delay: Duration::from_secs(file.retry_delay_s.unwrap_or(RETRY_DELAY_S)),
            concurrency_key: file.concurrency_key,
            memory_bytes_max: file.max_memory_mb.unwrap_or(MEMORY_MB) * 1024 * 1024,
            pool: file.pool,
            browser: file.browser.unwrap_or(file.pool == Pool::Spare),
            trace: file.trace,
            payload: file.payload,
            result: file.result,
        })
    }
}

impl File {
    /// What the types do not say; the key that it is about comes first.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let is_name = |text: &str| {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !text.is_empty()
                && text.len() <= NAME_CHARS_MAX
                && text.chars().all(is_plain)
                && !text.starts_with('-')
        };
        let refuse = |key, message: String| Err((key, message));
        if !is_name(&self.name) {
            return refuse("type", format!("a type is named by up to {NAME_CHARS_MAX} of a-z, 0-9 and -"));
        }
        if RESERVED.contains(&self.name.as_str()) {
            return refuse(
                "type",
                format!("`{}` is an address of its own below /v1/scripts; choose another name", self.name),
            );
        }
        if self.title.trim().is_empty() || self.title.chars().count() > TITLE_CHARS_MAX {
            return refuse("title", format!("a title has 1 to {TITLE_CHARS_MAX} characters"));
        }
        for (key, argv) in [("command", Some(&self.command)), ("spare", self.spare.as_ref())] {
            if argv.is_some_and(|argv| argv.first().is_none_or(String::is_empty)) {
                return refuse(key, format!("`{key}` names a program: {key} = [\"node\", \"run.mjs\"]"));
            }
        }
        if self.pool == Pool::Spare && self.spare.is_none() {
            return refuse("pool", "a pool of spares needs `spare`, the command that waits".to_owned());
        }
        self.check_bounds()?;
        let mut ids: Vec<&str> = self.steps.iter().map(|step| step.id.as_str()).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse("id", format!("there are two steps `{}`", pair[0]));
        }
        match self.concurrency_key.as_deref().map(crate::concurrency::fields) {
            Some(Err(message)) => refuse("concurrency_key", message),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    fn check_bounds(&self) -> Result<(), (&'static str, String)> {
        let within = |key, value: Option<u64>, min: u64, max: u64| match value {
            Some(value) if !(min..=max).contains(&value) => Err((key, format!("`{key}` is {min} to {max}"))),
            Some(_) | None => Ok(()),
        };
        within("timeout_s", self.timeout_s, 1, TIMEOUT_MAX.as_secs())?;
        within("max_retries", self.max_retries.map(u64::from), 0, RETRIES_MAX.into())?;
        within("retry_delay_s", self.retry_delay_s, 0, RETRY_DELAY_S_MAX)?;
        within("max_memory_mb", self.max_memory_mb, *MEMORY_MB_RANGE.start(), *MEMORY_MB_RANGE.end())?;
        within("steps", Some(self.steps.len() as u64), 0, STEPS_MAX as u64)
    }
}

pub(crate) fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let head = &text[..byte.min(text.len())];
    let line = head.matches('\n').count() + 1;
    (line, head.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

/// Where a key is set.
fn line_of(text: &str, key: &str) -> Option<(usize, usize)> {
    let is_set = |line: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let line = text.lines().position(is_set)?;
    let indent = text.lines().nth(line)?.chars().take_while(|c| c.is_whitespace()).count();
    Some((line + 1, indent + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = r#"
type = "say-hello"
title = "Say hello"
version = 1
command = ["sh", "run.sh"]
payload = "payload.json"
"#;

    fn check(more: &str, at: (usize, usize), message: &str) {
        let error = Manifest::read(&format!("{LEAST}{more}")).unwrap_err();
        assert_eq!(error.at, Some(at), "{more}: {error:?}");
        assert!(error.message.contains(message), "{more}: {error:?}");
    }

    #[test]
    fn the_least_manifest_has_the_usual_limits() {
        let manifest = Manifest::read(LEAST).unwrap();
        assert_eq!(manifest.timeout, Duration::from_secs(300));
        assert_eq!((manifest.max_retries, manifest.retry_delay), (3, Duration::from_secs(5)));
        assert_eq!((manifest.pool, manifest.trace), (Pool::None, Trace::Off));
        assert_eq!(manifest.payload, SchemaAt::File("payload.json".to_owned()));
    }

    #[test]
    fn a_schema_may_stand_in_the_manifest() {
        let text = LEAST.replace("payload = \"payload.json\"\n", "");
        let text =
            format!("{text}\n[payload]\ntype = \"object\"\n[payload.properties.name]\ntype = \"string\"\n");
        let manifest = Manifest::read(&text).unwrap();
        assert!(
            matches!(manifest.payload, SchemaAt::Here(value) if value["properties"]["name"]["type"] == "string")
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_line_and_column() {
        check("tmeout_s = 3", (7, 1), "unknown field `tmeout_s`");
        check("timeout_s = \"3\"", (7, 13), "invalid type");
        check("  timeout_s = 0", (7, 3), "1 to 604800");
        check("max_retries = 101", (7, 1), "0 to 100");
        check("pool = \"spare\"", (7, 1), "needs `spare`");
        check("spare = []", (7, 1), "names a program");
        check("concurrency_key = \"{\"", (7, 1), "{field}");
        check("[[steps]]\nid = \"a\"\ntitle = \"A\"\nwait = 1", (10, 1), "unknown field");
        check(
            "[[steps]]\nid = \"a\"\ntitle = \"A\"\n[[steps]]\nid = \"a\"\ntitle = \"B\"",
            (8, 1),
            "two steps",
        );
        for wrong in ["Say Hello", "batch", "jobs"] {
            let error = Manifest::read(&LEAST.replace("say-hello", wrong)).unwrap_err();
            assert_eq!(error.at, Some((2, 1)), "{wrong}");
        }
    }
}
