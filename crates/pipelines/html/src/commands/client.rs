//! `ode client`: the html service from scripts and CI.

use crate::client::{Client, Document, Job, Order};
use anyhow::Context as _;
use clap::{Args, Parser};
use ode_cli::{self as output, WrongUse};
use ode_pipeline::Call;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use uuid::Uuid;

/// Use the html service of an ODE elsewhere, from scripts and CI
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
pub(super) enum Remote {
    /// Ask for documents to be converted; writes the id of each job
    Submit(Submit),
    /// Wait until jobs have ended; succeeds if all of them did well
    Wait(Wait),
    /// Fetch the files of a job, checked against their digests
    Fetch(Fetch),
}

const EXAMPLES: &str = "\
Examples:
  export ODE_URL=https://ode.example ODE_API_KEY=ode_…
  job=$(ode client submit report.pdf)
  ode client wait \"$job\" && ode client fetch \"$job\" --out report

  ode client submit s3://inbox/doc.pdf --external-id req_99283 --config '{\"zoom\":1.5}'";

/// Where the service is, and who asks.
#[derive(Debug, Args)]
pub(super) struct Service {
    /// Address of the service
    #[arg(long, env = "ODE_URL", value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// API key; better given in the environment, where others do not see it
    #[arg(long, env = "ODE_API_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
}

impl Service {
    fn client(&self) -> anyhow::Result<Client> {
        let key = self.key.as_deref().filter(|key| !key.is_empty());
        let missing =
            || WrongUse("There is no API key. Set ODE_API_KEY; `ode keys create` makes one.".into());
        Ok(Client::new(&self.url, key.ok_or_else(missing)?)?)
    }
}

/// What to convert.
#[derive(Debug, Args)]
pub(super) struct Submit {
    /// PDFs here, or addresses that the service can fetch from, such as s3://inbox/doc.pdf
    #[arg(required = true, value_name = "DOCUMENT")]
    documents: Vec<String>,
    /// Your own id for it, by which a second request is known [default: one made up]
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    /// How to convert, as JSON
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Place where the files are to appear as well, such as s3://outbox/doc
    #[arg(long, value_name = "PREFIX")]
    output: Option<String>,
    /// Higher goes first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    #[command(flatten)]
    service: Service,
}

/// What to wait for.
#[derive(Debug, Args)]
pub(super) struct Wait {
    /// The jobs' ids
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// Seconds to wait at most
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    #[command(flatten)]
    service: Service,
}

/// What to fetch.
#[derive(Debug, Args)]
pub(super) struct Fetch {
    /// The job's id
    #[arg(value_name = "JOB")]
    job: String,
    /// Folder for the files, which must not exist; or a file whose name ends in .zip
    #[arg(long, short, value_name = "PATH")]
    out: PathBuf,
    #[command(flatten)]
    service: Service,
}

pub(super) async fn run(_: Call, command: Remote) -> anyhow::Result<ExitCode> {
    match command {
        Remote::Submit(args) => submit(&args).await,
        Remote::Wait(args) => wait(&args).await,
        Remote::Fetch(args) => fetch(&args).await,
    }
}

async fn submit(args: &Submit) -> anyhow::Result<ExitCode> {
    let client = args.service.client()?;
    if args.documents.len() > 1 && (args.external_id.is_some() || args.output.is_some()) {
        anyhow::bail!(WrongUse(
            "--external-id and --output are for one document. Ask for each by itself.".into()
        ));
    }
    for document in &args.documents {
        let order = Order {
            external_id: args.external_id.clone().unwrap_or_else(|| Uuid::now_v7().to_string()),
            config: args.config.clone(),
            output: args.output.clone(),
            priority: args.priority,
        };
        let submitted = client.submit(&read(document).await?, &order).await?;
        output::line(submitted.job_id)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn read(document: &str) -> anyhow::Result<Document> {
    if document.contains("://") {
        return Ok(Document::At(document.to_owned()));
    }
    let path = PathBuf::from(document);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await?;
    let bytes = read.with_context(|| format!("{document} cannot be read"))?;
    Ok(Document::Content { name, bytes: bytes.into() })
}

async fn wait(args: &Wait) -> anyhow::Result<ExitCode> {
    let client = args.service.client()?;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(args.timeout);
    let mut outcome = ExitCode::SUCCESS;
    for id in &args.jobs {
        let patience = deadline.saturating_duration_since(tokio::time::Instant::now());
        let job = client.wait(id, patience).await?;
        output::line(format!("{id} {}", said(&job)))?;
        if job.status != "completed" {
            outcome = ExitCode::FAILURE;
        }
    }
    Ok(outcome)
}

fn said(job: &Job) -> String {
    match job.all["error"]["message"].as_str() {
        Some(why) => format!("{}: {why}", job.status),
        None if job.has_ended() => job.status.clone(),
        None => format!("{}: it has not ended in the time that was given", job.status),
    }
}

async fn fetch(args: &Fetch) -> anyhow::Result<ExitCode> {
    let client = args.service.client()?;
    if args.out.extension().is_some_and(|ending| ending == "zip") {
        let archive = client.archive(&args.job).await?;
        std::fs::write(&args.out, archive)
            .with_context(|| format!("{} cannot be written", args.out.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let assets = client.assets(&args.job).await?;
    if assets.is_empty() {
        anyhow::bail!("Job {} has no files. `ode client wait` tells where it stands.", args.job);
    }
    std::fs::create_dir(&args.out).with_context(|| format!("{} cannot be made", args.out.display()))?;
    for asset in &assets {
        let path = args.out.join(below(&asset.path)?);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, client.fetch(asset).await?)
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    output::line(format!("{} files are in {}", assets.len(), args.out.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// A name that leads nowhere else: what a service says is not taken on trust.
fn below(name: &str) -> anyhow::Result<&Path> {
    let path = Path::new(name);
    if path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(path);
    }
    anyhow::bail!(
        "The service names a file {name}, which would lie outside of the folder. Nothing more was fetched."
    )
}
