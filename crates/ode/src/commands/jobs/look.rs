//! `ode jobs list`, `show`, `events` and `logs`: what can be seen of jobs.

use crate::names::named;
use crate::output::{self, Cell, Table};
use crate::wire;
use clap::Args;
use jiff::Timestamp;
use ode_job::{Artifact, Check, JobRecord, JobRef, Phase, Pipeline, State};
use ode_store::{ListFilter, Setback, Store};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::str::FromStr;

/// A job's name as it was typed, and what it means.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) typed: String,
    pub(crate) job: JobRef,
}

impl FromStr for Name {
    type Err = <JobRef as FromStr>::Err;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        Ok(Name { typed: typed.trim().to_owned(), job: typed.parse()? })
    }
}

/// Which jobs to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only of this pipeline
    #[arg(long, value_parser = named::<Pipeline>())]
    pipeline: Option<Pipeline>,
    /// Only in this state, in its pipeline's words: queued, complete, ordered …
    #[arg(long, value_parser = named::<State>(), hide_possible_values = true)]
    state: Option<State>,
    /// Only in this phase, which is the same for every pipeline
    #[arg(long, value_parser = named::<Phase>())]
    phase: Option<Phase>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Only older ones than this job: the last of the list before
    #[arg(long, value_name = "JOB")]
    before: Option<Name>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// One job.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// Its reference (JOB_…) or id
    job: Name,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// One job's log.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Its reference (JOB_…) or id
    job: Name,
    /// Only lines after this one
    #[arg(long, value_name = "LINE", default_value_t = 0)]
    after: i64,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// A type may be longer; the list shows what fits on a screen.
const KIND_CHARS_MAX: usize = 24;
/// Inputs and results may be a megabyte; a person wants to see which one it is.
const DOCUMENT_CHARS_MAX: usize = 500;
/// Lines of a log that are printed at once.
const LINES_MAX: usize = 1000;

pub(crate) async fn list(store: &Store, args: List) -> anyhow::Result<ExitCode> {
    let before = match &args.before {
        Some(before) => Some(store.resolve(before.job).await?),
        None => None,
    };
    let filter = ListFilter {
        owner: None,
        pipeline: args.pipeline,
        state: args.state,
        phase: args.phase,
        before,
        limit: args.limit.into(),
    };
    let page = store.jobs(&filter).await?;
    if args.json {
        output::json(&page)?;
        return Ok(ExitCode::SUCCESS);
    }
    if page.jobs.is_empty() {
        let is_filtered =
            before.is_some() || args.pipeline.is_some() || args.state.is_some() || args.phase.is_some();
        output::tell(if is_filtered {
            "No jobs like that."
        } else {
            "No jobs yet. `ode jobs add` asks for one."
        });
        return Ok(ExitCode::SUCCESS);
    }
    print_jobs(&page.jobs)?;
    if let Some(last) = page.next_cursor {
        output::tell(format!("\nThere are more: add --before {}", last.reference()));
    }
    Ok(ExitCode::SUCCESS)
}

fn print_jobs(jobs: &[JobRecord]) -> anyhow::Result<()> {
    let mut table = Table::new(["REFERENCE", "PIPELINE", "TYPE", "STATE", "TRIES", "CREATED", "ERROR"]);
    for job in jobs {
        table.row([
            job.reference.as_str().into(),
            job.pipeline.as_str().into(),
            Cell::start(&job.kind, KIND_CHARS_MAX),
            Cell::state(&state(job), job.phase),
            job.attempt_count.to_string().into(),
            output::ago(job.created_at).into(),
            job.error_code.as_deref().unwrap_or("").into(),
        ]);
    }
    table.print()
}

/// The state as one would say it: with the percentage while it runs, with the moment while it waits for one.
fn state(job: &JobRecord) -> String {
    match (job.phase, job.run_at) {
        (Phase::Running, _) => format!("{} {} %", job.state, job.progress.percent),
        (Phase::Held, Some(at)) => format!("{}, due {}", job.state, output::ago(at)),
        (Phase::Held | Phase::Ready | Phase::Done | Phase::Failed | Phase::Cancelled, _) => {
            job.state.to_string()
        }
    }
}

pub(crate) async fn show(store: &Store, args: &One) -> anyhow::Result<ExitCode> {
    let job = store.job(args.job.job).await?;
    let artifacts = store.artifacts(job.id).await?;
    let setback = store.jobs_by_id(std::iter::once(job.id)).await?.pop().and_then(|job| job.setback);
    let checks = store.checks(job.id).await?;
    let mut details = Vec::new();
    for pipeline in wire::pipelines() {
        details.extend(pipeline.details(store, job.id).await?);
    }
    if args.json {
        let mut json = json!(job);
        json["artifacts"] = json!(artifacts);
        json["last_error"] = json!(setback);
        json["checks"] = json!(checks);
        for detail in details {
            json[detail.field] = detail.value;
        }
        output::json(&json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["job", &job.id.to_string()]);
    describe(&job, |name, cell| table.row([name.into(), cell]));
    if let Some(Setback { code, message }) = setback {
        table.row(["last error".into(), format!("{message} ({code})").into()]);
    }
    for Artifact { role, name, bytes, content_type, .. } in &artifacts {
        table.row(["file".into(), format!("{role} {name} ({bytes} bytes, {content_type})").into()]);
    }
    for Check { severity, code, message, .. } in &checks {
        table.row(["check".into(), format!("{severity} {code}: {message}").into()]);
    }
    for (heading, line) in
        details.iter().flat_map(|detail| detail.lines.iter().map(|line| (detail.heading, line)))
    {
        table.row([heading.into(), shortened(line).into()]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

/// Says what there is to say, line by line.
fn describe(job: &JobRecord, mut line: impl FnMut(&str, Cell)) {
    line("reference", job.reference.as_str().into());
    line("pipeline", format!("{} ({})", job.pipeline, job.kind).into());
    line("state", Cell::state(&state(job), job.phase));
    line("owner", owner(job).into());
    line("priority", job.priority.to_string().into());
    let tries = (job.attempt_count, job.retry_count, job.max_retries);
    line("tries", format!("{} ({} of {} retries used)", tries.0, tries.1, tries.2).into());
    let mut given = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            line(name, value.into());
        }
    };
    given("external id", job.external_id.clone());
    given("doing", job.progress.message.as_ref().map(|message| doing(job, message)));
    given("error", job.error_code.as_ref().map(|code| error(job, code)));
    given("detail", job.error_detail.as_deref().map(shortened));
    given("worker", job.worker_id.map(|worker| worker.to_string()));
    given("created", Some(output::moment(job.created_at)));
    let at = |at: Option<Timestamp>| at.map(output::moment);
    given("due", at(job.run_at));
    given("started", at(job.started_at));
    given("ends by", at(job.timeout_at));
    given("finished", at(job.finished_at));
    let is_empty = |json: &Value| json.as_object().is_some_and(serde_json::Map::is_empty);
    let document = |json: &Value| shortened(&json.to_string());
    given("input", Some(document(&job.input)));
    given("config", Some(&job.config).filter(|json| !is_empty(json)).map(document));
    given("metadata", Some(&job.metadata).filter(|json| !is_empty(json)).map(document));
    given("result", job.result.as_ref().map(document));
}

fn owner(job: &JobRecord) -> String {
    let owners = [("session", job.session_id), ("user", job.user_id), ("organisation", job.organisation_id)];
    let named = owners.iter().find_map(|(kind, id)| id.map(|id| format!("{kind} {id}")));
    named.unwrap_or_else(|| "the operator".to_owned())
}

fn doing(job: &JobRecord, message: &str) -> String {
    match job.progress.steps {
        0 => message.to_owned(),
        steps => format!("{message} (step {} of {steps})", job.progress.step),
    }
}

fn error(job: &JobRecord, code: &str) -> String {
    let message = job.error_message.as_deref().unwrap_or_default();
    format!("{message} ({code}); `ode explain {code}` says more")
}

/// The start of a text that may be long, and how much more there is.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(DOCUMENT_CHARS_MAX) {
        Some((at, _)) => format!("{}… ({} bytes; --json shows all)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

pub(crate) async fn events(store: &Store, args: &One) -> anyhow::Result<ExitCode> {
    let job = store.job(args.job.job).await?;
    let events = store.events(job.id).await?;
    if args.json {
        output::json(&events)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["WHEN", "EVENT", "FROM", "TO", "BY", "PARTICULARS"]);
    for event in &events {
        table.row([
            output::moment(event.at).into(),
            event.event.as_str().into(),
            event.from_state.map_or("", State::as_str).into(),
            event.to_state.as_str().into(),
            event.actor.as_str().into(),
            event.meta.as_ref().map(|meta| shortened(&meta.to_string())).unwrap_or_default().into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn logs(store: &Store, args: &Logs) -> anyhow::Result<ExitCode> {
    let job = store.job(args.job.job).await?;
    let lines = store.logs(job.id, args.after, LINES_MAX).await?;
    if args.json {
        output::json(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    if lines.is_empty() {
        output::tell(if args.after == 0 { "Its attempts have logged nothing." } else { "No more lines." });
    }
    for line in &lines {
        let (at, level) = (output::moment(line.at), line.level.as_str());
        let message: Vec<String> = line.message.lines().map(output::printable).collect();
        output::line(format!("{at}  {level:5}  try {}  {}", line.attempt, message.join("\n    ")))?;
    }
    if let Some(last) = lines.last().filter(|_| lines.len() == LINES_MAX) {
        output::tell(format!("\nThere may be more: add --after {}", last.id));
    }
    Ok(ExitCode::SUCCESS)
}
