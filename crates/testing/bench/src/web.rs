//! `ode bench web [PHASE [PLACE]]`: the upload service, against what the same bytes cost without it.
//!
//! The service is a process of its own, started anew on a temporary directory; this one is its visitors. On one
//! machine the two share the processors, so figures are lower than visitors from elsewhere would see.

use super::client::Visitor;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use ode_cli::process::raise_descriptors;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Web {
    /// The measurement; all of them, one after the other, where none is named
    phase: Option<Phase>,
    /// Where; the database of DATABASE_URL if that is set and nothing is said, else SQLite
    place: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// Files of 1 MB uploaded by 4 visitors at once, against the same bytes written durably
    Uploads,
    /// Lists read by 16 visitors at once
    Polls,
    /// 2,000 visitors who listen: memory, and how long news takes
    Streams,
    /// Memory while files of 50 MB come in
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Place {
    /// PostgreSQL
    Default,
    /// A temporary SQLite file
    Sqlite,
}

impl Place {
    fn at_hand() -> Self {
        if std::env::var_os("DATABASE_URL").is_some() { Place::Default } else { Place::Sqlite }
    }

    /// What names its database to a command.
    pub(super) fn arguments(self) -> anyhow::Result<Vec<String>> {
        if self == Place::Sqlite {
            return Ok(Vec::new());
        }
        let url = std::env::var("DATABASE_URL");
        let url = url.context("DATABASE_URL is not set: name an empty PostgreSQL database")?;
        Ok(vec!["--database".to_owned(), url])
    }
}

const MB: usize = 1 << 20;

pub(crate) async fn run(args: &Web) -> anyhow::Result<ExitCode> {
    let phases = args.phase.as_ref().map_or(Phase::value_variants(), std::slice::from_ref);
    let place = args.place.unwrap_or_else(Place::at_hand);
    for phase in phases {
        println!("{}", measure(*phase, place).await?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures one thing, on a service of its own.
async fn measure(phase: Phase, place: Place) -> anyhow::Result<Value> {
    let server = Server::start(place, None)?;
    let mut out = match phase {
        Phase::Uploads => uploads(&server).await?,
        Phase::Polls => polls(&server).await?,
        Phase::Streams => streams(&server).await?,
        Phase::Memory => memory(&server).await?,
    };
    let name = |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
    out["phase"] = json!(name(phase.to_possible_value()));
    out["place"] = json!(name(place.to_possible_value()));
    Ok(out)
}

/// What we hold ourselves to; docs/benchmarks.md has what was measured.
#[derive(Debug, Clone, Copy)]
enum Bar {
    Least(f64),
    Most(f64),
}

impl Bar {
    /// Says beside what was measured whether this figure of it holds.
    fn beside(self, mut measured: Value, figure: f64) -> Value {
        let (name, bar, holds) = match self {
            Bar::Least(bar) => ("bar_min", bar, figure >= bar),
            Bar::Most(bar) => ("bar_max", bar, figure <= bar),
        };
        (measured[name], measured["holds"]) = (json!(bar), json!(holds));
        measured
    }
}

/// The service under test. It ends with this.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) directory: TempDir,
}

impl Server {
    /// Starts it, perhaps with scripts of one's own.
    pub(super) fn start(place: Place, scripts: Option<&Path>) -> anyhow::Result<Self> {
        raise_descriptors();
        let directory = tempfile::Builder::new().prefix("ode-bench-").tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["web", "--listen", "127.0.0.1:0", "--data"]).arg(directory.path());
        // A line for each of thousands of uploads would be measured too.
        command.args(["--log", "warn", "--uploads-a-minute", "1000000000", "--polls-a-minute", "1000000000"]);
        command.args(place.arguments()?);
        if let Some(scripts) = scripts {
            command.arg("--scripts").arg(scripts);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().context("The service could not be started")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("The service has no output")?).read_line(&mut line)?;
        let address = line.trim_end().rsplit("http://").next().unwrap_or_default().parse();
        let address = address.context("The service did not say where it listens")?;
        Ok(Server { child, address, directory })
    }

    async fn visitor(&self) -> anyhow::Result<Visitor> {
        Visitor::arrive(self.address).await
    }

    /// A line of the process's own account of its memory, in megabytes.
    fn memory_mb(&self, line: &str) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let found = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
        let kilobytes: f64 =
            found.and_then(|found| found.trim().strip_suffix(" kB")).context("no such line")?.parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// Lets the highest memory so far be counted from now.
    fn forget_peak(&self) -> anyhow::Result<()> {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A document of this size that differs from every other.
fn document(bytes: usize, number: usize) -> Vec<u8> {
    let mut file = format!("%PDF-1.7\n% {number}\n").into_bytes();
    let end = b"\nstartxref\n9\n%%EOF\n";
    file.resize(bytes - end.len(), b'x');
    file.extend_from_slice(end);
    file
}

/// How many at once.
const UPLOADERS: usize = 4;
const FILES_A_ROUND: usize = 200;
/// Single rounds tell little: a disk of a virtual machine is now quick and now slow.
const ROUNDS: usize = 15;
const RATIO: Bar = Bar::Least(0.5);

async fn uploads(server: &Server) -> anyhow::Result<Value> {
    let (mut uploaded, mut written, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // Turn by turn, so that both see the same machine.
    for round in 0..ROUNDS {
        let (directory, address) = (server.directory.path().join(format!("raw-{round}")), server.address);
        let raw = tokio::task::spawn_blocking(move || write_durably(&directory)).await??;
        let through = tokio::task::spawn_blocking(move || upload_round(address, round)).await??;
        written.push(raw);
        uploaded.push(through);
        ratios.push(through / raw);
    }
    let ratio = median(&mut ratios);
    let measured = json!({
        "uploads_per_s": median(&mut uploaded), "raw_writes_per_s": median(&mut written), "ratio": ratio,
        "ratios": ratios, "file_mb": 1, "visitors": UPLOADERS, "files": FILES_A_ROUND * ROUNDS,
    });
    Ok(RATIO.beside(measured, ratio))
}

fn upload_round(address: SocketAddr, round: usize) -> anyhow::Result<f64> {
    files_a_second(|visitor| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut connected = runtime.block_on(Visitor::arrive(address))?;
        Ok(move |file| {
            let number = (round * UPLOADERS + visitor) * FILES_A_ROUND + file;
            runtime.block_on(connected.upload(&document(MB, number)))
        })
    })
}

/// What the same bytes cost without a service: written aside, synced, put in place, and the place synced.
fn write_durably(directory: &Path) -> anyhow::Result<f64> {
    std::fs::create_dir(directory)?;
    files_a_second(|writer| {
        Ok(move |file| {
            let name = |ending: &str| directory.join(format!("{writer}-{file}{ending}"));
            let mut to = File::create(name(".tmp"))?;
            to.write_all(&document(MB, file))?;
            to.sync_all()?;
            std::fs::rename(name(".tmp"), name(""))?;
            Ok(File::open(directory)?.sync_all()?)
        })
    })
}

/// Has each of several threads make ready, and then do its share of a round, file by file.
fn files_a_second<W: FnMut(usize) -> anyhow::Result<()>>(
    ready: impl Fn(usize) -> anyhow::Result<W> + Sync,
) -> anyhow::Result<f64> {
    let begin = Barrier::new(UPLOADERS + 1);
    let share = |number| {
        let work = ready(number);
        // Also by one that is not ready: the others wait for it.
        begin.wait();
        (0..FILES_A_ROUND / UPLOADERS).try_for_each(work?)
    };
    std::thread::scope(|scope| {
        let share = &share;
        let threads: Vec<_> = (0..UPLOADERS).map(|number| scope.spawn(move || share(number))).collect();
        begin.wait();
        let started = Instant::now();
        for thread in threads {
            match thread.join() {
                Ok(done) => done?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(FILES_A_ROUND as f64 / started.elapsed().as_secs_f64())
    })
}

const POLLERS: usize = 16;
const POLL_FOR: Duration = Duration::from_secs(10);
const JOBS_EACH: usize = 20;
const POLLS_PER_S: Bar = Bar::Least(3_000.0);

async fn polls(server: &Server) -> anyhow::Result<Value> {
    let mut visitors = Vec::new();
    for visitor in 0..POLLERS {
        let mut visitor_here = server.visitor().await?;
        for file in 0..JOBS_EACH {
            visitor_here.upload(&document(1000, visitor * JOBS_EACH + file)).await?;
        }
        visitors.push(visitor_here);
    }
    let started = Instant::now();
    let tasks = visitors.into_iter().map(|mut visitor| {
        tokio::spawn(async move {
            let mut took = Vec::new();
            while started.elapsed() < POLL_FOR {
                let asked = Instant::now();
                visitor.get("/api/jobs").await?;
                took.push(asked.elapsed());
            }
            anyhow::Ok(took)
        })
    });
    let mut took = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        took.extend(task.await??);
    }
    let seconds = started.elapsed().as_secs_f64();
    let per_s = took.len() as f64 / seconds;
    let measured = json!({ "polls_per_s": per_s, "took": percentiles(took), "visitors": POLLERS, "jobs_listed": JOBS_EACH });
    Ok(POLLS_PER_S.beside(measured, per_s))
}

const LISTENERS: usize = 2000;
/// Tabs and windows of one session.
const LISTENERS_EACH: usize = 20;
const LISTENERS_MB: Bar = Bar::Most(300.0);

async fn streams(server: &Server) -> anyhow::Result<Value> {
    let before = server.memory_mb("VmRSS")?;
    let (mut sessions, mut listeners) = (Vec::new(), Vec::new());
    for _ in 0..LISTENERS / LISTENERS_EACH {
        let session = server.visitor().await?;
        for _ in 0..LISTENERS_EACH {
            listeners.push(session.listen().await?);
        }
        sessions.push(session);
    }
    let held = server.memory_mb("VmRSS")?;
    let tasks: Vec<_> = listeners
        .into_iter()
        .map(|mut listener| {
            tokio::spawn(async move {
                listener.hear("event: job").await?;
                anyhow::Ok(Instant::now())
            })
        })
        .collect();
    let mut told = Vec::new();
    for (number, session) in sessions.iter_mut().enumerate() {
        session.upload(&document(1000, number)).await?;
        told.push(Instant::now());
    }
    let mut took = Vec::new();
    for (number, task) in tasks.into_iter().enumerate() {
        took.push(task.await??.saturating_duration_since(told[number / LISTENERS_EACH]));
    }
    let after = server.memory_mb("VmRSS")?;
    let measured = json!({
        "listeners": LISTENERS, "sessions": sessions.len(), "memory_before_mb": before, "memory_held_mb": held,
        "memory_after_news_mb": after, "kb_each": (held - before) * 1024.0 / LISTENERS as f64,
        "news_took": percentiles(took),
    });
    Ok(LISTENERS_MB.beside(measured, held.max(after)))
}

const LARGE: usize = 50;
const UPLOAD_MB: Bar = Bar::Most(10.0);

async fn memory(server: &Server) -> anyhow::Result<Value> {
    let (mut measured, mut most) = (Vec::new(), 0_f64);
    for at_once in [1, UPLOADERS] {
        let mut visitors = Vec::new();
        for _ in 0..at_once {
            let mut visitor = server.visitor().await?;
            // Warm: buffers that are kept are not the file's.
            visitor.upload(&document(MB, measured.len() * 100 + visitors.len())).await?;
            visitors.push(visitor);
        }
        let before = server.memory_mb("VmRSS")?;
        server.forget_peak()?;
        let started = Instant::now();
        let tasks = visitors.into_iter().enumerate().map(|(number, mut visitor)| {
            tokio::spawn(
                async move { visitor.upload(&document(LARGE * 1_000_000, at_once * 100 + number)).await },
            )
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await??;
        }
        let peak = server.memory_mb("VmHWM")?;
        let each = (peak - before) / at_once as f64;
        most = most.max(each);
        let seconds = started.elapsed().as_secs_f64();
        measured.push(json!({
            "uploads": at_once, "memory_before_mb": before, "memory_peak_mb": peak, "mb_each": each,
            "mb_per_s": (LARGE * at_once) as f64 / seconds,
        }));
    }
    Ok(UPLOAD_MB.beside(json!({ "file_mb": LARGE, "measured": measured }), most))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub(super) fn percentiles(mut took: Vec<Duration>) -> Value {
    took.sort_unstable();
    let at = |share: f64| {
        let place = (took.len().saturating_sub(1)) as f64 * share;
        took.get(place as usize).map_or(0.0, |took| took.as_secs_f64() * 1000.0)
    };
    json!({ "p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "max_ms": at(1.0), "count": took.len() })
}
