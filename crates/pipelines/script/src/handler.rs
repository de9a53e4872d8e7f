//! What the script pipeline does with a claimed job: its secrets opened, its script run, what it made kept.

use super::reporter::ScriptReporter;
use crate::record::{Run, SCRIPT_CODE, SecretPart};
use crate::{
    Bond, Catalog, Done, Error, Failed, Keyring, Order, Outcome, Report, Runner, Script, SealTo, Secrets,
    in_words, sql,
};
use async_trait::async_trait;
use ode_job::{Claimed, ErrorCode, Failure, LogLevel, RetryPolicy};
use ode_job::{File, SHOWS_WHY};
use ode_worker::{Context, Handler, Limits, unreached};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An attempt whose script says nothing else may take this long.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(300);
/// A script that is ended gets some seconds to close its browser; then it is killed, and what it saw is kept.
const END_WITHIN: Duration = Duration::from_secs(30);
/// How long a job waits for somebody to bring the key that opens its secrets.
const KEY_PAUSE: Duration = Duration::from_secs(30);

/// How long secrets that came of a script wait for somebody to look at them.
const RESULT_SECRET_KEPT: Duration = Duration::from_hours(7 * 24);

/// The site that scripts work on unless their payload names another.
pub type Site = Option<String>;

/// The handler of the script lane.
#[derive(Clone)]
pub struct ScriptHandler {
    runner: Runner,
    catalog: Catalog,
    keys: Arc<Mutex<Keyring>>,
    site: Site,
    at_once: usize,
}

impl ScriptHandler {
    /// Runs these scripts, so many at a time, with these keys for what is sealed to workers.
    #[must_use]
    pub fn new(runner: Runner, catalog: Catalog, keys: Keyring, at_once: usize) -> Self {
        let keys = Arc::new(Mutex::new(keys));
        ScriptHandler { runner, catalog, keys, site: None, at_once: at_once.max(1) }
    }

    /// The same for this site.
    #[must_use]
    pub fn with_site(self, site: Site) -> Self {
        ScriptHandler { site, ..self }
    }

    /// The secrets that were sent with a job. Keys may have been added since we last read them.
    async fn secrets(&self, job: &Claimed, context: &Context<'_>) -> Result<Secrets, Failure> {
        let sealed = sql::held_secret(context.held()).await.map_err(|error| unreached(&error))?;
        let Some(sealed) = sealed else { return Ok(Secrets::default()) };
        let bond = Bond { owner: job.owner.key(), part: SecretPart::Input };
        let opened = self.keys().open(bond, &sealed);
        let opened = match opened {
            Err(Error::NoKey(_)) => self.reread().and_then(|keys| keys.open(bond, &sealed)),
            opened => opened,
        };
        opened.map_err(unopened)
    }

    fn keys(&self) -> Keyring {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reread(&self) -> Result<Keyring, Error> {
        let keys = self.keys().reread()?;
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = keys.clone();
        Ok(keys)
    }

    async fn order(
        &self,
        job: &Claimed,
        script: Arc<Script>,
        context: &Context<'_>,
    ) -> Result<Order, Failure> {
        // One that was made in SQL may have its secrets where they were sent; from here on they are hidden all the same.
        let (input, mut secrets) = script.split(job.input.clone());
        let sealed = self.secrets(job, context).await?;
        for name in sealed.names() {
            secrets.insert(name, sealed.get(name).cloned().unwrap_or_default());
        }
        let mut order = Order::new(job.lease.job().reference(), script, input, secrets);
        order.attempt = job.attempt;
        order.checkpoints = sql::checkpoints(context.held()).await.map_err(|error| unreached(&error))?;
        order.timeout = job.timeout;
        order.site.clone_from(&self.site);
        Ok(order)
    }
}

#[async_trait]
impl Handler for ScriptHandler {
    fn limits(&self) -> Limits {
        Limits { concurrency: self.at_once, attempt_timeout: ATTEMPT_TIMEOUT, retry: RetryPolicy::default() }
    }

    fn end_within(&self) -> Duration {
        END_WITHIN
    }

    async fn run(&self, job: &Claimed, context: &Context<'_>) -> Result<Value, Failure> {
        let script = self.catalog.get(&job.kind).ok_or_else(|| unknown(&job.kind))?;
        let order = self.order(job, script.clone(), context).await?;
        context.note("script_version", script.manifest.version.into());
        let reporter = ScriptReporter::new(context, started(&script));
        let run = self.runner.run(order, |news| reporter.receive(news), context.asked_to_end());
        let report = reporter.during(run).await.map_err(|error| unstarted(&error))?;
        finish(job, &script, context, report).await
    }
}

/// What is recorded of an attempt before its first word.
fn started(script: &Script) -> Run {
    let manifest = &script.manifest;
    Run {
        version: manifest.version.to_string(),
        digest: script.digest.clone(),
        steps: manifest.steps.iter().cloned().map(Into::into).collect(),
        ..Run::default()
    }
}

/// Keeps what the run made, and says what came of it.
async fn finish(
    job: &Claimed,
    script: &Script,
    context: &Context<'_>,
    report: Report,
) -> Result<Value, Failure> {
    let Report { outcome, artifacts, duration, log_bytes_dropped, .. } = report;
    if log_bytes_dropped > 0 {
        let line = format!("{log_bytes_dropped} bytes of the log were left out: there were too many");
        context.log(LogLevel::Warn, &line);
    }
    let is_done = matches!(outcome, Outcome::Done(_));
    let files = artifacts.into_iter().map(|artifact| file(job.attempt, artifact));
    let (kept, left): (Vec<File>, Vec<File>) =
        files.partition(|file| is_done || SHOWS_WHY.contains(&file.role.as_str()));
    for File { name, .. } in left {
        let line = format!("The file {name} was not kept, because this attempt did not succeed");
        context.log(LogLevel::Info, &line);
    }
    context.keep(kept).await?;
    match outcome {
        Outcome::Done(done) => result(job, context, done, duration).await,
        Outcome::Failed(failed) => {
            context.note(SCRIPT_CODE, failed.code.as_str().into());
            Err(failure(job, script, failed))
        }
        Outcome::TimedOut => Err(timed_out(job, script)),
        Outcome::Stopped => Err(ErrorCode::Stopped.into()),
    }
}

/// The result as everybody may see it; its secrets go under seal.
async fn result(
    job: &Claimed,
    context: &Context<'_>,
    done: Done,
    duration: Duration,
) -> Result<Value, Failure> {
    if !done.secrets.is_empty() {
        let key = sql::web_key(context.held()).await.map_err(|error| unreached(&error))?;
        let to = key.and_then(|key| SealTo::new(&key.public)).ok_or_else(no_web_key)?;
        let bond = Bond { owner: job.owner.key(), part: SecretPart::Result };
        let sealed = to.seal(bond, &done.secrets).map_err(unopened)?;
        let kept = sql::keep_result_secret(context.held(), &sealed, RESULT_SECRET_KEPT).await;
        kept.map_err(|error| unreached(&error))?;
    }
    let mut result = Map::from_iter([
        ("success".to_owned(), Value::Bool(true)),
        ("message".to_owned(), done.message.into()),
        ("data".to_owned(), done.data),
        ("duration_ms".to_owned(), json!(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))),
    ]);
    if done.partial {
        result.insert("partial".into(), true.into());
    }
    Ok(Value::Object(result))
}

/// A file under a name that contains the attempt: each may leave one of the same name.
fn file(attempt: u32, artifact: crate::Artifact) -> File {
    let extension = artifact.name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let content_type = match extension {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "json" => "application/json",
        "txt" | "log" => "text/plain; charset=utf-8",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    };
    let role = match artifact.kind.as_str() {
        "screenshot" => "screenshot",
        "log" | "page" | "trace" => "log",
        _ => "asset",
    };
    File {
        role: role.into(),
        name: format!("{attempt}/{}", artifact.name),
        content_type: content_type.into(),
        content: artifact.contents.into(),
    }
}

/// Why a script failed, with its own word for it, and whether trying again could help.
fn failure(job: &Claimed, script: &Script, failed: Failed) -> Failure {
    let code = if failed.code == crate::code::OUT_OF_MEMORY {
        ErrorCode::ScriptMemory
    } else {
        ErrorCode::ScriptFailed
    };
    let message = format!("{} ({})", failed.message.trim_end_matches('.'), failed.code);
    let may_retry = failed.retryable && is_retried(job, script);
    let failure = if may_retry {
        Failure::retryable(code, message).paced(script.manifest.retry_delay)
    } else {
        Failure::rejected(code, message)
    };
    failure.with_detail(failed.stack.unwrap_or_default())
}

/// Whether the type allows another try, where the job itself does not say.
fn is_retried(job: &Claimed, script: &Script) -> bool {
    job.retries_max.is_some() || job.retries < script.manifest.max_retries
}

fn timed_out(job: &Claimed, script: &Script) -> Failure {
    let limit = job.timeout.unwrap_or(script.manifest.timeout).min(script.manifest.timeout);
    let limit = in_words(limit);
    let message =
        format!("It took longer than the {limit} it may, and was ended with all that it had started");
    Failure::rejected(ErrorCode::TimedOut, message)
}

fn unknown(kind: &str) -> Failure {
    let message = format!(
        "There is no script of the type {kind} here. See which there are with `ode scripts list`, or give their directory with --scripts"
    );
    Failure::rejected(ErrorCode::Invalid, message)
}

fn unopened(error: Error) -> Failure {
    match error {
        Error::NoKey(_) | Error::KeyFile(_) | Error::File { .. } => {
            let message = "The secrets of this job cannot be opened by this worker. The operator must bring it its keys";
            Failure::away(ErrorCode::SecretsSealed, message, KEY_PAUSE).with_detail(error.to_string())
        }
        error => Failure::rejected(ErrorCode::SecretsSealed, error.to_string()),
    }
}

fn no_web_key() -> Failure {
    let message = "Secrets came of this script, and there is no key to seal them to, so they were dropped. Start `ode web` once";
    Failure::rejected(ErrorCode::SecretsSealed, message)
}

/// The program could not even be started.
fn unstarted(error: &Error) -> Failure {
    Failure::retryable(ErrorCode::IoError, "The script could not be started").with_detail(error.to_string())
}
