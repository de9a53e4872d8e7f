//! `ode scripts run` and `ode scripts test`: scripts here and now, in the same runner that jobs have.

use super::scripts::{chosen, one};
use crate::Folders;
use crate::{Done, Failed, Level, News, Order, Outcome, Report, Runner, Script, in_words, join};
use anyhow::{Context as _, bail};
use clap::Args;
use ode_child::Program;
use ode_cli::{self as output, WrongUse};
use ode_demo_site::{Options, Site};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// What to run, and with what.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// The script's type
    name: String,
    /// File with the payload as JSON; - reads standard input [default: the first example of the schema]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Site to work on, unless the payload names one
    #[arg(long, env = "ODE_SCRIPT_SITE", value_name = "URL")]
    site: Option<String>,
    /// Go through everything and change nothing, if the script can
    #[arg(long)]
    dry_run: bool,
    /// Seconds that it may take, if that is less than its manifest says
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Folder for the files that it makes
    #[arg(long, value_name = "DIR")]
    artifacts: Option<PathBuf>,
    /// Show the secrets of the result, too
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    browser: Browser,
}

/// What to test.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Types to test [default: all that have examples]
    types: Vec<String>,
    #[command(flatten)]
    browser: Browser,
}

#[derive(Debug, Args)]
struct Browser {
    /// Let browsers run without their own sandbox, which they cannot have as root
    #[arg(long, env = "ODE_BROWSER_NO_SANDBOX")]
    browser_no_sandbox: bool,
}

pub(crate) async fn run(folders: &Folders, args: Run) -> anyhow::Result<ExitCode> {
    let catalog = folders.catalog()?;
    let script = one(&catalog, &args.name)?;
    let payload = payload(&script, args.input.as_deref())?;
    let mut order = order(&script, payload)?;
    order.site = args.site;
    order.dry_run = args.dry_run;
    order.timeout = args.timeout.map(Duration::from_secs);
    let limit = order.time();
    let runner = runner(folders, &args.browser)?;
    let stop = async {
        // Without a handler for ctrl-C, it ends this process, and the keeper ends the script.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    };
    let report = runner.run(order, |news| show(&news), stop).await?;
    if let Some(folder) = &args.artifacts {
        write(folder, &report)?;
    }
    finish(report, limit, args.show_secrets)
}

pub(crate) async fn test(folders: &Folders, args: Test) -> anyhow::Result<ExitCode> {
    let catalog = folders.catalog()?;
    let runner = runner(folders, &args.browser)?;
    let (mut is_right, mut count) = (true, 0);
    for script in chosen(&catalog, &args.types)? {
        for (number, example) in script.examples().iter().enumerate() {
            let number = number + 1;
            let name = script.name();
            let (outcome, limit) = try_on_a_demo_site(&runner, &script, example.clone()).await?;
            let done = done(outcome, limit);
            let (word, said) = match &done {
                Ok(done) => ("ok", done.message.clone()),
                Err(failed) => ("FAILED", format!("{} ({})", failed.message, failed.code)),
            };
            output::line(format!("{word} {name}, example {number}: {said}"))?;
            is_right &= done.is_ok();
            count += 1;
        }
        if script.examples().is_empty() && !args.types.is_empty() {
            let advice = "has no examples. Add some to its payload schema as \"examples\": [{…}].";
            bail!(WrongUse(format!("{} {advice}", script.name())));
        }
    }
    output::tell(format!("Examples run: {count}."));
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Each example has a site to itself, so that what one leaves is not in the way of the next.
async fn try_on_a_demo_site(
    runner: &Runner,
    script: &Arc<Script>,
    example: Value,
) -> anyhow::Result<(Outcome, Duration)> {
    let any = "127.0.0.1:0";
    let site = Site::start(TcpListener::bind(any).await?, TcpListener::bind(any).await?, Options::default())?;
    let mut order = order(script, example)?;
    order.site = Some(format!("http://{}", site.admin()));
    let limit = order.time();
    let serving = tokio::spawn(site.run());
    let report = runner.run(order, |news| show(&news), std::future::pending()).await;
    serving.abort();
    Ok((report?.outcome, limit))
}

/// What a run did, or why it did not; one that was ended has a code as well.
fn done(outcome: Outcome, limit: Duration) -> Result<Done, Failed> {
    let ended = |code: &str, message: String| Failed {
        code: code.to_owned(),
        message,
        retryable: false,
        stack: None,
    };
    match outcome {
        Outcome::Done(done) => Ok(done),
        Outcome::Failed(failed) => Err(failed),
        Outcome::TimedOut => {
            let limit = in_words(limit);
            Err(ended("timed_out", format!("It took longer than the {limit} it may, and was ended.")))
        }
        Outcome::Stopped => Err(ended("stopped", "It was stopped.".to_owned())),
    }
}

fn runner(folders: &Folders, browser: &Browser) -> anyhow::Result<Runner> {
    let mut how = crate::Settings::new(&folders.data, Program::this_binary(["child", "keep"])?);
    how.allow_no_sandbox = browser.browser_no_sandbox;
    how.spares = 0;
    Ok(Runner::new(how)?)
}

fn payload(script: &Script, file: Option<&Path>) -> anyhow::Result<Value> {
    let Some(file) = file else {
        let none =
            || WrongUse(format!("{} has no examples. Name a file with a payload by --input.", script.name()));
        return Ok(script.examples().first().cloned().ok_or_else(none)?);
    };
    ode_cli::document::read(file)
}

fn order(script: &Arc<Script>, payload: Value) -> anyhow::Result<Order> {
    if let Err(wrong) = script.check(&payload) {
        let wrong: Vec<String> =
            wrong.iter().map(|wrong| format!("{} {}", wrong.path, wrong.message)).collect();
        bail!(WrongUse(format!("The payload is not right: {}.", wrong.join("; "))));
    }
    let (input, secrets) = script.split(payload);
    Ok(Order::new(format!("JOB_{}", uuid::Uuid::new_v4().simple()), Arc::clone(script), input, secrets))
}

/// Talk goes to standard error; the result is the only data.
fn show(news: &News) {
    match news {
        News::Started(record) => output::tell(format!("started as process {}", record.pid)),
        News::Plan(steps) => output::tell(format!("{} steps", steps.len())),
        News::Step { id, state } => output::tell(format!("step {id}: {state:?}")),
        News::Progress(progress) => {
            let message = progress.message.as_deref().unwrap_or_default();
            output::tell(format!("{:3.0} % {message}", progress.percent));
        }
        News::Log(line) => {
            let mark = if line.level == Level::Info || line.level == Level::Debug { "|" } else { "!" };
            output::tell(format!("{mark} {}", line.text));
        }
        News::Checkpoint { key, data } => output::tell(format!("checkpoint {key} {data}")),
    }
}

fn write(folder: &Path, report: &Report) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (number, artifact) in report.artifacts.iter().enumerate() {
        // A name is what the script says; it must not lead elsewhere.
        let name = artifact.name.replace(['/', '\\'], "_");
        let path = folder.join(format!("{}-{}", number + 1, name.trim_start_matches('.')));
        std::fs::write(&path, &artifact.contents)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        output::tell(format!("wrote {}", path.display()));
    }
    Ok(())
}

fn finish(report: Report, limit: Duration, show_secrets: bool) -> anyhow::Result<ExitCode> {
    let duration_ms = u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX);
    let (told, code) = match done(report.outcome, limit) {
        Ok(done) => {
            let data = if show_secrets { join(done.data, &done.secrets) } else { done.data };
            let told = json!({ "success": true, "partial": done.partial, "message": done.message, "data": data,
                "duration_ms": duration_ms });
            (told, ExitCode::SUCCESS)
        }
        Err(failed) => {
            let error = json!({ "code": failed.code, "retryable": failed.retryable, "stack": failed.stack });
            let told = json!({ "success": false, "message": failed.message, "error": error,
                "duration_ms": duration_ms });
            (told, ExitCode::FAILURE)
        }
    };
    output::json(&told)?;
    Ok(code)
}
