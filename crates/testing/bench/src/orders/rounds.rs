//! Rounds: a few orders at a time, whose workers meet the same end, while the provider has faults for each.

use super::Orders;
use super::plan::{Plan, Trouble};
use anyhow::Context as _;
use ode_job::{Artifact, Ended, JobId, NewJob, State, WorkerId};
use ode_print::request::{Money, OrderAsk};
use ode_print::sql;
use ode_printful_sim::{Fault, FaultKind, On, Options, Simulator, Switches};
use ode_store::{ClaimRequest, Config, Finish, Store};
use rustix::process::Signal;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long all orders of a round may take.
const ROUND_MAX: Duration = Duration::from_secs(120);
/// How long the troubles of its workers may take to come.
const STAGE_MAX: Duration = Duration::from_secs(12);
/// How often it is looked how far they are.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Workers that stand still for this long have all come as far as they will.
const STILL_FOR: Duration = Duration::from_millis(400);
/// Long enough to count as lost, with the silence that the workers are given.
const ASLEEP_FOR: Duration = Duration::from_millis(1500);
/// Seconds that a worker may be silent.
const SILENCE: &str = "0.6";
/// Processes that share the orders of a round.
const WORKERS: usize = 2;
/// A thread that has met its end stands still, and others must go on.
const THREADS: &str = "8";

/// One order that was tried.
pub(super) struct Run {
    pub(super) job: JobId,
    pub(super) plan: String,
    /// How many of its troubles it met.
    pub(super) met: usize,
}

impl Run {
    fn external_id(&self) -> String {
        self.job.0.simple().to_string()
    }
}

pub(super) struct Bench {
    pub(super) store: Store,
    pub(super) simulator: Simulator,
    url: String,
    directory: PathBuf,
    /// The programs that the workers are, in turn.
    programs: Vec<PathBuf>,
    organisation: Uuid,
    pub(super) kills: BTreeMap<String, usize>,
}

impl Bench {
    pub(super) async fn open(args: &Orders, directory: &Path) -> anyhow::Result<Self> {
        let sqlite = || format!("sqlite:{}", directory.join("orders.db").display());
        let url = args.database.clone().unwrap_or_else(sqlite);
        let store = Store::open(Config { actor: "bench".into(), ..Config::new(&url) }).await?;
        store.migrate_up().await?;
        let organisation = Uuid::new_v4();
        sql::set_spend_cap(store.sql(), organisation, "USD", Money(10_000), Money(i64::from(u32::MAX) * 100))
            .await?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let options = Options {
            switches: Switches { unique: !args.not_unique, confirm_once: !args.confirm_often },
            rate_per_minute: 0,
            fetch_files: false,
            file_delay: Duration::from_millis(5),
            hang: Duration::from_secs(2),
            ..Options::default()
        };
        let simulator = Simulator::start(listener, options)?;
        let directory = directory.to_owned();
        let programs = [std::env::current_exe()?].into_iter().chain(args.beside.clone()).collect();
        Ok(Bench { store, simulator, url, directory, programs, organisation, kills: BTreeMap::new() })
    }

    pub(super) fn struck(&self) -> BTreeMap<FaultKind, u64> {
        self.simulator.struck()
    }

    /// Asks for a few orders, and lets happen to them what is planned, one trouble after the other.
    pub(super) async fn round(&mut self, plans: &[&(usize, Plan)]) -> anyhow::Result<Vec<Run>> {
        let mut runs = Vec::new();
        for (number, plan) in plans {
            let name = format!("{number}: {}", plan.name());
            runs.push(Run { job: self.exported().await?, plan: name, met: 0 });
        }
        let troubles = plans.first().map(|(_, plan)| plan.of_workers()).unwrap_or_default();
        self.arm(plans, &runs, 0);
        for run in &runs {
            sql::ask_order(&self.store, run.job, self.organisation, &ask()).await?;
        }
        for (stage, trouble) in troubles.into_iter().enumerate() {
            for met in self.trouble_workers(trouble, &runs).await? {
                *self.kills.entry(trouble.name()).or_default() += 1;
                runs.iter_mut().filter(|run| run.job == met).for_each(|run| run.met += 1);
            }
            self.arm(plans, &runs, stage + 1);
        }
        let mut workers = self.spawn(None)?;
        let placed = self.wait(&runs).await;
        end(&mut workers);
        placed?;
        for (run, (_, plan)) in runs.iter_mut().zip(plans) {
            let planned = plan.0.len() - plan.of_workers().len();
            run.met += planned.saturating_sub(self.simulator.waiting(&run.external_id()).len());
        }
        Ok(runs)
    }

    /// Has the provider do wrong what is planned for this stage.
    fn arm(&self, plans: &[&(usize, Plan)], runs: &[Run], stage: usize) {
        for ((_, plan), run) in plans.iter().zip(runs) {
            for (kind, on) in plan.of_provider(stage) {
                self.simulator.add_fault(Fault::new(kind).on(on).lasting(0.3).with(&run.external_id()));
            }
        }
    }

    /// Runs workers until the trouble that waits for them has come. Answers whom it met.
    async fn trouble_workers(&self, trouble: &Trouble, runs: &[Run]) -> anyhow::Result<Vec<JobId>> {
        match trouble {
            Trouble::KilledAt(point) => self.kill_at(point, runs).await,
            Trouble::KilledAfter(after) => {
                let mut workers = self.spawn(None)?;
                let met = self.wait_for_a_start(runs).await?;
                tokio::time::sleep(*after).await;
                end(&mut workers);
                Ok(met)
            }
            Trouble::Asleep => {
                let mut sleepers = self.spawn(None)?;
                let met = self.wait_for_a_start(runs).await?;
                signal(&sleepers, Signal::STOP);
                let mut others = self.spawn(None)?;
                tokio::time::sleep(ASLEEP_FOR).await;
                signal(&sleepers, Signal::CONT);
                tokio::time::sleep(LOOK_EVERY * 8).await;
                end(&mut sleepers);
                end(&mut others);
                Ok(met)
            }
            Trouble::Provider(..) => Ok(Vec::new()),
        }
    }

    /// Kills each order's worker at a point, once, after what the provider was to do wrong before.
    async fn kill_at(&self, point: &str, runs: &[Run]) -> anyhow::Result<Vec<JobId>> {
        let armed = tempfile::tempdir_in(&self.directory)?;
        let at = |job: JobId| armed.path().join(job.to_string());
        let mut unarmed: Vec<&Run> = runs.iter().collect();
        let mut met = HashSet::new();
        let deadline = Instant::now() + STAGE_MAX;
        let mut workers = self.spawn(Some((point, armed.path())))?;
        let mut moved_at = Instant::now();
        while Instant::now() < deadline {
            let mut is_failing = Ok(());
            unarmed.retain(|run| {
                // Nothing is read before something else went wrong, so that such a fault waits for this one.
                let waits = self.simulator.waiting(&run.external_id()).iter().any(|on| *on != On::Read);
                if !waits {
                    is_failing = std::fs::write(at(run.job), []).context("A plan cannot be written");
                }
                waits
            });
            is_failing?;
            let before = met.len();
            met.extend(runs.iter().map(|run| run.job).filter(|job| at(*job).with_extension("met").exists()));
            let states = self.states(runs).await?;
            let is_over = |(run, state): (&Run, &State)| {
                *state == ode_print::machine::ORDERED || met.contains(&run.job)
            };
            if runs.iter().zip(&states).all(is_over) {
                break;
            }
            if met.len() > before {
                moved_at = Instant::now();
            } else if !met.is_empty() && moved_at.elapsed() > STILL_FOR {
                end(&mut workers);
                workers = self.spawn(Some((point, armed.path())))?;
                moved_at = Instant::now() + STILL_FOR;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        end(&mut workers);
        Ok(met.into_iter().collect())
    }

    /// Waits until workers hold some of them, or all are placed. Answers which are held.
    async fn wait_for_a_start(&self, runs: &[Run]) -> anyhow::Result<Vec<JobId>> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            let states = self.states(runs).await?;
            let held = runs.iter().zip(&states).filter(|(_, state)| **state == ode_print::machine::ORDERING);
            let held: Vec<JobId> = held.map(|(run, _)| run.job).collect();
            if !held.is_empty() || states.iter().all(|state| *state == ode_print::machine::ORDERED) {
                return Ok(held);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(Vec::new())
    }

    /// Where each stands, in the order of the runs.
    async fn states(&self, runs: &[Run]) -> anyhow::Result<Vec<State>> {
        let jobs = self.store.jobs_by_id(runs.iter().map(|run| run.job)).await?;
        let states: BTreeMap<JobId, State> =
            jobs.iter().map(|job| (job.record.id, job.record.state)).collect();
        runs.iter().map(|run| states.get(&run.job).copied().context("A job is gone")).collect()
    }

    /// Waits until all are placed, or one has failed, or it took too long; the audit then says which.
    async fn wait(&self, runs: &[Run]) -> anyhow::Result<()> {
        let deadline = Instant::now() + ROUND_MAX;
        while Instant::now() < deadline {
            let states = self.states(runs).await?;
            if states
                .iter()
                .all(|state| matches!(*state, ode_print::machine::ORDERED | ode_print::machine::ORDER_FAILED))
            {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// A print that was exported, by nobody in particular.
    async fn exported(&self) -> anyhow::Result<JobId> {
        let id = self.store.enqueue(NewJob::new(ode_print::machine::PRINT, "map", json!({}))).await?.id();
        let worker = WorkerId(Uuid::new_v4());
        self.store.register(worker, "bench", "0").await?;
        let lease = Duration::from_secs(60);
        let request = ClaimRequest {
            lane: ode_print::machine::EXPORT,
            worker,
            count: 1,
            after: Uuid::nil(),
            lease,
            attempt_timeout: lease,
        };
        let job = self.store.claim(request).await?.pop().context("The export was taken by somebody else")?;
        let artifact = Artifact {
            role: "export".into(),
            name: "map.png".into(),
            storage: "local".into(),
            path: format!("bench/{id}.png"),
            content_type: "image/png".into(),
            bytes: 1,
            sha256: format!("{:064x}", id.0.as_u128()),
        };
        let finish = Finish { artifacts: vec![artifact], ..Finish::new(job, Ended::Succeeded) };
        self.store.finish(vec![finish]).await?;
        self.store.leave(worker).await?;
        Ok(id)
    }

    /// Starts workers, which die at a point, if one is named, with those orders that have a file in a directory.
    fn spawn(&self, crash: Option<(&str, &Path)>) -> anyhow::Result<Vec<Child>> {
        let start =
            |program: &PathBuf| self.worker(program, crash)?.spawn().context("A worker cannot be started");
        self.programs.iter().cycle().take(WORKERS).map(start).collect()
    }

    fn worker(&self, program: &Path, crash: Option<(&str, &Path)>) -> anyhow::Result<Command> {
        let mut command = Command::new(program);
        let printful = format!("http://{}", self.simulator.address());
        command.args(["worker", "--database", &self.url, "--printful-url", &printful]);
        command.args([
            "--export-base",
            "http://127.0.0.1:9",
            "--printful-timeout",
            "0.5",
            "--retry-base",
            "0.05",
        ]);
        command.args(["--printful-rate", "1000000", "--breaker-calls", "10000", "--grace", "0"]);
        command
            .arg("--data")
            .arg(&self.directory)
            .env("ODE_PRINTFUL_TOKEN", "bench")
            .env("ODE_SILENCE", SILENCE)
            .env("TOKIO_WORKER_THREADS", THREADS);
        match crash {
            Some((point, armed)) => command.env("ODE_CRASH_AT", point).env("ODE_CRASH_ARMED", armed),
            None => command.env_remove("ODE_CRASH_AT"),
        };
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.directory.join("workers.log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ok(command)
    }
}

fn ask() -> OrderAsk {
    let order = json!({
        "recipient": { "name": "Ada", "address1": "Main St 1", "city": "Springfield", "country_code": "US" },
        "variant_id": 1,
    });
    serde_json::from_value(order).expect("the order above is one")
}

/// Ends them as a power cut would.
fn end(workers: &mut [Child]) {
    for worker in workers {
        // It may have ended already; then there is nothing to do.
        let _ = worker.kill();
        let _ = worker.wait();
    }
}

fn signal(workers: &[Child], signal: Signal) {
    for worker in workers {
        // One that has ended hears nothing, which the audit sees.
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(worker), signal);
    }
}
