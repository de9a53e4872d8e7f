//! `ode bench service DIR`: documents a second through the html service, against calling the converter directly in the
//! same run.
//!
//! The service is a process of its own on a temporary directory. It reads the documents from where they lie, converts
//! them in children and stores their files durably; the direct calls do the first two. Both get as many processors.

use super::extract::{pdfs, round};
use anyhow::{Context as _, bail};
use clap::Args;
use futures_util::{StreamExt as _, stream};
use ode_child::PoolOptions;
use ode_cli as output;
use ode_html::Converter;
use ode_html::client::Client;
use ode_pdf_html::ConversionConfig;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// With what.
#[derive(Debug, Args)]
pub(crate) struct Service {
    /// Directory with PDFs
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How often each document is converted
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// How often direct calls and service take turns; the medians are told
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// Documents that have not been converted by then never are.
const PATIENCE: Duration = Duration::from_secs(600);
/// Whoever waits shares the processors with the service, so that asking more often would be measured too.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) async fn run(args: &Service) -> anyhow::Result<ExitCode> {
    // Roots of the service are named without steps up.
    let directory = args.directory.canonicalize();
    let directory = directory.with_context(|| format!("{} cannot be read", args.directory.display()))?;
    let files = pdfs(&directory)?;
    let all: Vec<&PathBuf> = (0..args.repeat).flat_map(|_| &files).collect();
    if all.is_empty() {
        bail!("There are no PDFs in {}.", directory.display());
    }
    let server = Server::start(&directory)?;
    let (mut direct, mut service) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        direct.push(all.len() as f64 / directly(&all).await?.as_secs_f64());
        service.push(all.len() as f64 / server.convert(round, &all).await?.as_secs_f64());
    }
    let (direct, service) = (median(&mut direct), median(&mut service));
    output::line(json!({
        "peer": "ode", "phase": "service", "documents": all.len(), "rounds": args.rounds,
        "direct_documents_per_s": round(direct), "service_documents_per_s": round(service),
        "ratio": round(service / direct),
    }))?;
    Ok(ExitCode::SUCCESS)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How long the converter takes for all of them.
async fn directly(all: &[&PathBuf]) -> anyhow::Result<Duration> {
    let options = PoolOptions { patience: PATIENCE, ..ode_html::pool_options() };
    let at_once = options.at_once;
    let (converter, config) = (Converter::new(options)?, ConversionConfig::default());
    let began = Instant::now();
    let convert = |file: PathBuf| {
        let (converter, config) = (converter.clone(), config.clone());
        async move {
            let document = tokio::task::spawn_blocking(move || std::fs::read(file)).await??;
            // What cannot be read costs both sides the same.
            Ok::<_, anyhow::Error>(converter.convert(&config, document.into()).await.is_ok())
        }
    };
    let work: Vec<_> = all.iter().map(|file| convert((*file).clone())).collect();
    let mut converted = stream::iter(work).buffer_unordered(at_once);
    while let Some(done) = converted.next().await {
        done?;
    }
    Ok(began.elapsed())
}

/// The service under test. It ends with this.
struct Server {
    child: Child,
    client: Client,
    _directory: tempfile::TempDir,
}

impl Server {
    fn start(inputs: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("ode-bench-").tempdir()?;
        let program = std::env::current_exe()?;
        // On SQLite, unless a database is named.
        let ode = |args: &[&str]| {
            let mut command = Command::new(&program);
            command.args(args).arg("--data").arg(directory.path()).args(["--log", "warn"]);
            if let Ok(url) = std::env::var("DATABASE_URL") {
                command.args(["--database", &url]);
            }
            command
        };
        let key = ode(&["keys", "create", "--organisation", "bench"]).stderr(Stdio::null()).output()?;
        let mut command = ode(&["serve", "--listen", "127.0.0.1:0", "--gateway", "off"]);
        command.arg("--input-root").arg(inputs).args(["--polls-a-minute", "1000000000"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("The service has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().rsplit(' ').next().context("The service did not start")?;
        let client = Client::new(address, String::from_utf8(key.stdout)?.trim())?;
        Ok(Server { child, client, _directory: directory })
    }

    /// How long the service takes for all of them, from the request to the last file.
    async fn convert(&self, round: u32, all: &[&PathBuf]) -> anyhow::Result<Duration> {
        let address = |file: &PathBuf| {
            let path = std::path::absolute(file)?;
            Ok::<_, anyhow::Error>(format!("file://{}", path.display()))
        };
        let request = |(number, file): (usize, &&PathBuf)| {
            Ok(json!({ "external_id": format!("{round}-{number}"), "input_s3_path": address(file)? }))
        };
        let jobs = all.iter().enumerate().map(request).collect::<anyhow::Result<Vec<Value>>>()?;
        let began = Instant::now();
        self.client.submit_many(&jobs).await?;
        while self.client.has_any("pending").await? || self.client.has_any("processing").await? {
            if began.elapsed() > PATIENCE {
                bail!("The service did not convert everything within {} s.", PATIENCE.as_secs());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(began.elapsed())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which its log tells.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
