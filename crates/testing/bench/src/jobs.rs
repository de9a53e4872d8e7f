//! `ode bench jobs PHASE CONFIG`: the job engine, in the terms of a comparison with other queues.
//!
//! The environment says how much: `N` jobs to drain, `LAT_N` single jobs `LAT_GAP_MS` apart, `BACKLOG` waiting
//! rows of which `PICKS` are worked. The database named by `DATABASE_URL` (or a temporary SQLite file for the
//! configuration `sqlite`) must be empty; it is migrated first. Handlers do nothing, so what is measured is
//! the engine: history and events are kept as always.

use anyhow::Context as _;
use async_trait::async_trait;
use clap::{Args, ValueEnum};
use ode_job::{Claimed, Failure, NewJob, Owner};
use ode_store::{ClaimRequest, Config, Store};
use ode_worker::Worker;
use ode_worker::{Context, Handler, Limits, Registry};
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// The measurement
    phase: Phase,
    /// Where: the database of DATABASE_URL, the same within one process, or SQLite
    config: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// Bulk and single enqueue, then the time until all are done in the database
    Drain,
    /// Single enqueues by 64 callers at once
    Enqueue,
    /// Enqueue to start, one job at a time
    Latency,
    /// The other process of `latency`
    LatencyWorker,
    /// Claims from a long line, with as many finished jobs behind it
    Backlog,
    /// How long a single job waits behind another owner's flood
    Fair,
    /// Queries a second of a worker with nothing to do
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// PostgreSQL, as it comes
    Default,
    /// The same; a name under which comparisons list batch configurations
    Batched,
    /// PostgreSQL, enqueued and worked in one process
    SameProcess,
    /// A temporary SQLite file
    Sqlite,
}

pub(crate) async fn run(args: &Jobs) -> anyhow::Result<ExitCode> {
    let directory = std::env::temp_dir().join(format!("ode-bench-{}", Uuid::new_v4()));
    let mut out = match args.phase {
        Phase::Drain => drain(&open(args.config, &directory).await?).await?,
        Phase::Enqueue => enqueue(&open(args.config, &directory).await?).await?,
        Phase::Latency => latency(args.config, &directory).await?,
        Phase::LatencyWorker => return latency_worker(args.config, &directory).await,
        Phase::Backlog => backlog(&open(args.config, &directory).await?).await?,
        Phase::Fair => fair(&open(args.config, &directory).await?).await?,
        Phase::Idle => idle(&open(args.config, &directory).await?).await?,
    };
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    let name = |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
    out["peer"] = json!("ode");
    out["phase"] = json!(name(args.phase.to_possible_value()));
    out["config"] = json!(name(args.config.to_possible_value()));
    println!("{out}");
    Ok(ExitCode::SUCCESS)
}

/// Opens the place to measure in. Whatever waits there would be done by workers that do nothing: there must be nothing.
async fn open(place: Place, directory: &std::path::Path) -> anyhow::Result<Store> {
    let store = connect(place, directory).await?;
    anyhow::ensure!(
        store.counts().await?.is_empty(),
        "the database has jobs already, and a benchmark would end them: name an empty one in DATABASE_URL"
    );
    Ok(store)
}

async fn connect(place: Place, directory: &std::path::Path) -> anyhow::Result<Store> {
    let url = if place == Place::Sqlite {
        std::fs::create_dir_all(directory)?;
        format!("sqlite:{}", directory.join("bench.db").display())
    } else {
        std::env::var("DATABASE_URL").context("DATABASE_URL is not set: name an empty PostgreSQL database")?
    };
    let store = Store::open(Config { actor: "bench".into(), ..Config::new(url) }).await?;
    store.migrate_up().await?;
    Ok(store)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn job(number: u64, sent_at: Option<u64>) -> NewJob {
    let mut input = json!({ "i": number, "doc": "bench/document-000000.pdf", "op": "noop" });
    if let Some(sent_at) = sent_at {
        input["t"] = json!(sent_at);
    }
    NewJob::new(ode_html::machine::HTML, "noop", input)
}

/// Nanoseconds of the machine's steady clock, the same in every process.
fn steady_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Does nothing, and notes when.
#[derive(Default)]
struct Noop {
    done: AtomicU64,
    waits_ns: Mutex<Vec<u64>>,
}

struct NoopHandler(Arc<Noop>);

#[async_trait]
impl Handler for NoopHandler {
    fn limits(&self) -> Limits {
        Limits::default()
    }

    async fn run(&self, job: &Claimed, _: &Context<'_>) -> Result<Value, Failure> {
        if let Some(sent_at) = job.input["t"].as_u64() {
            let waited = steady_nanos().saturating_sub(sent_at);
            self.0.waits_ns.lock().expect("no code panics while holding this lock").push(waited);
        }
        self.0.done.fetch_add(1, Ordering::SeqCst);
        Ok(Value::Null)
    }
}

async fn start(store: &Store, noop: &Arc<Noop>) -> anyhow::Result<Worker> {
    let registry = Registry::new().with(ode_html::machine::LANE, NoopHandler(noop.clone()));
    Ok(Worker::start(store.clone(), None, registry, ode_worker::Config::default()).await?)
}

fn percentiles(mut nanos: Vec<u64>) -> Value {
    nanos.sort_unstable();
    let at = |share: f64| {
        let index = ((share * nanos.len() as f64) as usize).min(nanos.len().saturating_sub(1));
        nanos.get(index).map_or(0.0, |nanos| *nanos as f64 / 1e6)
    };
    json!({ "p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "max_ms": at(1.0), "count": nanos.len() })
}

fn per_second(count: u64, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

async fn bulk(store: &Store, count: u64, owner: Owner) -> anyhow::Result<()> {
    for from in (0..count).step_by(1000) {
        let jobs = (from..count.min(from + 1000)).map(|i| job(i, None).owned_by(owner));
        store.enqueue_many(jobs.collect()).await?;
    }
    Ok(())
}

/// Waits until nothing is live, or the time is up.
async fn drained(store: &Store, noop: &Noop, target: u64, cap: Duration) -> anyhow::Result<bool> {
    let began = Instant::now();
    loop {
        if noop.done.load(Ordering::SeqCst) >= target && store.live_count().await? == 0 {
            return Ok(true);
        }
        if began.elapsed() > cap {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn drain(store: &Store) -> anyhow::Result<Value> {
    const SINGLE: u64 = 300;
    let (n, cap) = (number("N", 50_000), Duration::from_secs(number("CAP_S", 30)));
    let began = Instant::now();
    bulk(store, n, Owner::Operator).await?;
    let enqueue_per_s = per_second(n, began);
    let began = Instant::now();
    for i in 0..SINGLE {
        store.enqueue(job(i, None)).await?;
    }
    let enqueue_single_per_s = per_second(SINGLE, began);
    let noop = Arc::new(Noop::default());
    let began = Instant::now();
    let worker = start(store, &noop).await?;
    let is_drained = drained(store, &noop, n + SINGLE, cap).await?;
    let done = noop.done.load(Ordering::SeqCst);
    let drain_per_s = per_second(done, began);
    worker.stop().await?;
    let mut out = json!({
        "n": n, "done": done, "enqueue_per_s": enqueue_per_s, "enqueue_single_per_s": enqueue_single_per_s,
        "drain_per_s": drain_per_s,
    });
    if !is_drained {
        out["capped"] = json!(true);
    }
    Ok(out)
}

async fn enqueue(store: &Store) -> anyhow::Result<Value> {
    const CALLERS: u64 = 64;
    let each = number("N", 50_000) / CALLERS;
    let began = Instant::now();
    let calls = (0..CALLERS).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            for i in 0..each {
                store.enqueue(job(i, None)).await?;
            }
            Ok::<_, ode_store::Error>(())
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await??;
    }
    Ok(
        json!({ "n": each * CALLERS, "callers": CALLERS, "enqueue_single_per_s": per_second(each * CALLERS, began) }),
    )
}

async fn latency(place: Place, directory: &std::path::Path) -> anyhow::Result<Value> {
    const WARM_UP: u64 = 20;
    let (count, gap) = (number("LAT_N", 300), Duration::from_millis(number("LAT_GAP_MS", 20)));
    let store = open(place, directory).await?;
    let noop = Arc::new(Noop::default());
    let is_here = matches!(place, Place::SameProcess | Place::Sqlite);
    let worker = if is_here { Some(start(&store, &noop).await?) } else { None };
    let other = if is_here { None } else { Some(spawn_worker(place)?) };
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut commits = Vec::new();
    for i in 0..count + WARM_UP {
        let sent_at = steady_nanos();
        store.enqueue(job(i, (i >= WARM_UP).then_some(sent_at))).await?;
        if i >= WARM_UP {
            commits.push(steady_nanos() - sent_at);
        }
        tokio::time::sleep(gap).await;
    }
    let mut out = json!({ "n": count, "commit": percentiles(commits) });
    if let Some(worker) = worker {
        worker.stop().await?;
        let waits =
            std::mem::take(&mut *noop.waits_ns.lock().expect("no code panics while holding this lock"));
        out["lat"] = percentiles(waits);
    }
    if let Some(mut other) = other {
        writeln!(other.stdin.take().context("the other process has an input")?, "stop")?;
        let answer = other.wait_with_output()?;
        out["lat"] = serde_json::from_slice(&answer.stdout).context("the other process did not answer")?;
    }
    Ok(out)
}

fn spawn_worker(place: Place) -> anyhow::Result<std::process::Child> {
    let config = place.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let me = std::env::current_exe()?;
    let mut command = std::process::Command::new(me);
    command.args(["bench", "jobs", "latency-worker", &config]);
    Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

async fn latency_worker(place: Place, directory: &std::path::Path) -> anyhow::Result<ExitCode> {
    let store = connect(place, directory).await?;
    let noop = Arc::new(Noop::default());
    let worker = start(&store, &noop).await?;
    tokio::task::spawn_blocking(|| std::io::stdin().lock().read_line(&mut String::new())).await??;
    worker.stop().await?;
    let waits = std::mem::take(&mut *noop.waits_ns.lock().expect("no code panics while holding this lock"));
    println!("{}", percentiles(waits));
    Ok(ExitCode::SUCCESS)
}

/// Claims from a line of `BACKLOG` with as many finished jobs behind it, and from one of ten, for comparison.
async fn backlog(store: &Store) -> anyhow::Result<Value> {
    let (backlog, picks) = (number("BACKLOG", 1_000_000), number("PICKS", 5000));
    let noop = Arc::new(Noop::default());
    bulk(store, 1000, Owner::Operator).await?;
    let empty = claims(store, 1000).await?;
    bulk(store, backlog, Owner::Operator).await?;
    let worker = start(store, &noop).await?;
    drained(store, &noop, backlog, Duration::from_secs(300)).await?;
    worker.stop().await?;
    bulk(store, backlog, Owner::Operator).await?;
    let began = Instant::now();
    let full = claims(store, picks).await?;
    Ok(json!({
        "backlog": backlog, "history": backlog, "done": picks, "drain_per_s": per_second(picks, began),
        "claim_few": percentiles(empty), "claim": percentiles(full),
    }))
}

/// Claims and ends jobs one at a time; answers how long each claim took.
async fn claims(store: &Store, count: u64) -> anyhow::Result<Vec<u64>> {
    let worker = ode_job::WorkerId(Uuid::new_v4());
    store.register(worker, "bench", "0").await?;
    let mut times = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        let request = ClaimRequest {
            lane: ode_html::machine::LANE,
            worker,
            count: 1,
            after: Uuid::nil(),
            lease: Duration::from_secs(300),
            attempt_timeout: Duration::from_secs(300),
        };
        let claimed = store.claim(request).await?;
        times.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let ended = claimed.into_iter().map(|job| ode_store::Finish::new(job, ode_job::Ended::Succeeded));
        store.finish(ended.collect()).await?;
    }
    store.leave(worker).await?;
    Ok(times)
}

/// How long jobs of a quiet owner wait: in an empty system, and while another's flood is worked off.
async fn fair(store: &Store) -> anyhow::Result<Value> {
    const TRIES: u64 = 50;
    let flood = number("N", 100_000);
    let noop = Arc::new(Noop::default());
    let quiet = Owner::Organisation(Uuid::from_u128(0xa11ce));
    let crowd = Owner::Organisation(Uuid::from_u128(0xb0b));
    let single = |i| async move {
        store.enqueue(job(i, Some(steady_nanos())).owned_by(quiet)).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok::<_, ode_store::Error>(())
    };
    let take = || std::mem::take(&mut *noop.waits_ns.lock().expect("no code panics while holding this lock"));
    let worker = start(store, &noop).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for i in 0..TRIES {
        single(i).await?;
    }
    worker.stop().await?;
    let alone = take();
    bulk(store, flood, crowd).await?;
    let worker = start(store, &noop).await?;
    let mut behind = 0;
    let before = noop.done.load(Ordering::SeqCst);
    let is_flooded = || noop.done.load(Ordering::SeqCst) - before + 1000 < flood;
    while behind < TRIES && is_flooded() {
        single(behind).await?;
        behind += 1;
    }
    drained(store, &noop, flood, Duration::from_secs(120)).await?;
    worker.stop().await?;
    Ok(json!({ "flood": flood, "alone": percentiles(alone), "behind_flood": percentiles(take()) }))
}

async fn idle(store: &Store) -> anyhow::Result<Value> {
    const SECONDS: u64 = 20;
    let worker = start(store, &Arc::new(Noop::default())).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = store.statements_sent();
    tokio::time::sleep(Duration::from_secs(SECONDS)).await;
    let queries = store.statements_sent() - before;
    worker.stop().await?;
    Ok(json!({ "seconds": SECONDS, "queries_per_s": queries as f64 / SECONDS as f64 }))
}
