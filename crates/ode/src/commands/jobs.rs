//! `ode jobs`: looking at jobs, and acting on them.

use crate::config::{Schema, Settings};
use crate::output::{self, Cell, Table};
use clap::{Args, Subcommand};
use ode_job::{Event, JobId, JobRecord, JobRef, NewJob, Phase, Pipeline, State};
use ode_store::{ListFilter, Store};
use serde_json::{Value, json};
use std::process::ExitCode;

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum Jobs {
    /// Ask for a job
    Add(Add),
    /// List jobs, newest first
    List(List),
    /// Show everything about a job
    Show(One),
    /// Show what happened to a job
    Events(One),
    /// Show what a job's attempts logged
    Logs(Logs),
    /// Try jobs that failed again
    Retry(Some),
    /// Call off jobs that have not started
    Cancel(Some),
    /// End jobs that are running
    Stop(Some),
}

/// A new job.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// xml, html, print or script
    pipeline: Pipeline,
    /// Mapping, script type or format
    #[arg(value_name = "TYPE")]
    kind: String,
    /// What to work on, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = parse_json)]
    input: Value,
    /// How to work on it, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = parse_json)]
    config: Value,
    /// Your own id for it; a second job with the same one is refused
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    /// Higher goes first, -1000 to 1000
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Not before this moment, such as 2026-12-24T18:00:00Z
    #[arg(long, value_name = "MOMENT")]
    run_at: Option<jiff::Timestamp>,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// Which jobs to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only of this pipeline
    #[arg(long)]
    pipeline: Option<Pipeline>,
    /// Only in this state, such as queued
    #[arg(long)]
    state: Option<State>,
    /// Only in this phase: held, ready, running, done, failed, cancelled
    #[arg(long)]
    phase: Option<Phase>,
    /// How many at most
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Only older ones than this job: the cursor that the last list ended with
    #[arg(long, value_name = "JOB")]
    before: Option<JobRef>,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// One job.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// Its id, or its reference (JOB_…)
    job: JobRef,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// One job's log.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Its id, or its reference (JOB_…)
    job: JobRef,
    /// Only lines after this one
    #[arg(long, value_name = "LINE", default_value_t = 0)]
    after: i64,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// Some jobs.
#[derive(Debug, Args)]
pub(crate) struct Some {
    /// Their ids or references
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<JobRef>,
    /// For programs
    #[arg(long)]
    json: bool,
}

fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))
}

pub(crate) async fn run(settings: &Settings, command: Jobs) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Check).await?;
    match command {
        Jobs::Add(args) => add(&store, args).await,
        Jobs::List(args) => list(&store, args).await,
        Jobs::Show(args) => show(&store, &args).await,
        Jobs::Events(args) => events(&store, &args).await,
        Jobs::Logs(args) => logs(&store, &args).await,
        Jobs::Retry(args) => act(&store, &args, Event::Retried).await,
        Jobs::Cancel(args) => act(&store, &args, Event::Cancelled).await,
        Jobs::Stop(args) => act(&store, &args, Event::Stopped).await,
    }
}

async fn add(store: &Store, args: Add) -> anyhow::Result<ExitCode> {
    let mut job = NewJob::new(args.pipeline, args.kind, args.input);
    job.config = args.config;
    job.external_id = args.external_id;
    job.priority = args.priority;
    job.run_at = args.run_at;
    let id = store.enqueue(job).await?.id();
    let job = store.job(JobRef::Id(id)).await?;
    if args.json {
        output::json(&job)?;
    } else {
        println!("{}  {}  {}", job.id, job.reference, job.state);
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(store: &Store, args: List) -> anyhow::Result<ExitCode> {
    let before = match args.before {
        Option::Some(before) => Option::Some(store.resolve(before).await?),
        None => None,
    };
    let limit = usize::from(args.limit);
    let filter = ListFilter {
        owner: None,
        pipeline: args.pipeline,
        state: args.state,
        phase: args.phase,
        before,
        limit,
    };
    let page = store.jobs(&filter).await?;
    if args.json {
        output::json(&page)?;
        return Ok(ExitCode::SUCCESS);
    }
    if page.jobs.is_empty() {
        eprintln!("No jobs.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["ID", "REFERENCE", "PIPELINE", "TYPE", "STATE", "TRIES", "CREATED", "ERROR"]);
    for job in &page.jobs {
        table.row([
            job.id.to_string().into(),
            job.reference.as_str().into(),
            job.pipeline.as_str().into(),
            job.kind.as_str().into(),
            Cell::state(&state(job), job.phase),
            job.attempt_count.to_string().into(),
            output::moment(job.created_at).into(),
            job.error_code.as_deref().unwrap_or("").into(),
        ]);
    }
    table.print();
    if let Option::Some(cursor) = page.next_cursor {
        eprintln!("\nThere are more: add --before {cursor}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The state as one would say it: with the percentage while it runs, with the moment while it waits for one.
fn state(job: &JobRecord) -> String {
    match (job.phase, job.run_at) {
        (Phase::Running, _) => format!("{} {} %", job.state, job.progress.percent),
        (Phase::Held, Option::Some(at)) => format!("{} {}", job.state, output::ago(at)),
        _ => job.state.to_string(),
    }
}

async fn show(store: &Store, args: &One) -> anyhow::Result<ExitCode> {
    let job = store.job(args.job).await?;
    let artifacts = store.artifacts(job.id).await?;
    if args.json {
        let mut json = json!(job);
        json["artifacts"] = json!(artifacts);
        output::json(&json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let at = |at: Option<jiff::Timestamp>| at.map_or_else(|| "-".to_owned(), output::moment);
    let mut table = Table::new(["job", &job.id.to_string()]);
    let mut line = |name: &str, value: Cell| table.row([name.into(), value]);
    line("reference", job.reference.as_str().into());
    line("pipeline", format!("{} ({})", job.pipeline, job.kind).into());
    line("state", Cell::state(&state(&job), job.phase));
    line("priority", job.priority.to_string().into());
    line(
        "tries",
        format!("{} ({} of {} retries used)", job.attempt_count, job.retry_count, job.max_retries).into(),
    );
    if let Option::Some(external_id) = &job.external_id {
        line("external id", external_id.as_str().into());
    }
    if let Option::Some(message) = &job.progress.message {
        line("doing", format!("{message} (step {} of {})", job.progress.step, job.progress.steps).into());
    }
    if let Option::Some(code) = &job.error_code {
        let message = job.error_message.as_deref().unwrap_or("");
        line("error", format!("{message} ({code}); `ode explain {code}` says more").into());
    }
    if let Option::Some(worker) = job.worker_id {
        line("worker", worker.to_string().into());
    }
    line("created", at(Option::Some(job.created_at)).into());
    line("started", at(job.started_at).into());
    line("finished", at(job.finished_at).into());
    line("input", job.input.to_string().into());
    if let Option::Some(result) = &job.result {
        line("result", result.to_string().into());
    }
    for file in &artifacts {
        line(
            "file",
            format!("{} {} ({} bytes, {})", file.role, file.name, file.bytes, file.content_type).into(),
        );
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}

async fn events(store: &Store, args: &One) -> anyhow::Result<ExitCode> {
    let job = store.job(args.job).await?;
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
            event.meta.as_ref().map(Value::to_string).unwrap_or_default().into(),
        ]);
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}

async fn logs(store: &Store, args: &Logs) -> anyhow::Result<ExitCode> {
    let job = store.job(args.job).await?;
    let lines = store.logs(job.id, args.after, 1000).await?;
    if args.json {
        output::json(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    if lines.is_empty() {
        eprintln!("Its attempts have logged nothing.");
    }
    for line in &lines {
        println!(
            "{}  {:5}  try {}  {}",
            output::moment(line.at),
            line.level.as_str(),
            line.attempt,
            line.message
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Acts on each job; one that refuses does not keep the others from being asked.
async fn act(store: &Store, args: &Some, event: Event) -> anyhow::Result<ExitCode> {
    let mut answers = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for name in &args.jobs {
        let outcome = match store.resolve(*name).await {
            Ok(id) => ask(store, id, event).await.map(|state| (id, state)),
            Err(error) => Err(error),
        };
        match outcome {
            Ok((id, state)) => answers.push(json!({ "id": id, "state": state })),
            Err(error) => {
                code = ExitCode::FAILURE;
                if args.json {
                    answers.push(json!({ "error": error.to_string(), "code": error.code() }));
                } else {
                    output::error(&error.into());
                }
            }
        }
    }
    if args.json {
        output::json(&answers)?;
    } else {
        for answer in &answers {
            println!("{}  {}", answer["id"].as_str().unwrap_or(""), answer["state"].as_str().unwrap_or(""));
        }
    }
    Ok(code)
}

async fn ask(store: &Store, id: JobId, event: Event) -> Result<String, ode_store::Error> {
    match event {
        Event::Retried => store.retry(id).await.map(|state| state.to_string()),
        Event::Cancelled => store.cancel(id).await.map(|state| state.to_string()),
        _ => store.stop(id).await.map(|()| "stopping".to_owned()),
    }
}
