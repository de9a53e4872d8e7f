//! Runs scripts: one process for each attempt, in a directory of its own, with nothing of either left at the end.

use crate::Error;
use crate::artifacts;
use crate::browser::{self, Browser};
use crate::order::{Failed, News, Order, Outcome, Report, code};
use crate::outcome;
use crate::scratch::{Runs, Scratch};
use crate::script::Script;
use crate::spare::{self, Spare, SparesByCommand};
use crate::teller::Teller;
use ode_child::{Limits, Notice, PROTOCOL, Program, Redactor, Spares, Spec, Supervisor, Work};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A payload that is larger belongs into a file that the script fetches.
const PAYLOAD_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// One line of what a script tells; its result is one.
const EVENT_BYTES_MAX: usize = 256 * 1024;
/// How often progress that was held back is told.
const TELL_INTERVAL: Duration = Duration::from_millis(250);
/// How often what others left is looked for, and what waits in vain is closed.
const CARE_INTERVAL: Duration = Duration::from_secs(30);
/// What a script sees of our own environment, besides what the protocol gives it.
const INHERITED: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// How scripts are run here.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where runs have their private directories while they last.
    pub data: PathBuf,
    /// Our own binary as the keeper of what scripts start.
    pub keeper: Program,
    /// The browser that scripts are given; found by itself if none is named.
    pub browser: Option<PathBuf>,
    /// Whether a browser may run without its own sandbox, which as root it cannot have.
    pub allow_no_sandbox: bool,
    /// How many processes of each kind wait for work; none wait at 0.
    pub spares: usize,
    /// After how long without work those that wait are closed.
    pub spare_idle: Duration,
    /// Where scripts find files that payloads name.
    pub files: Option<PathBuf>,
    /// How patiently a script is ended.
    pub grace: ode_child::Grace,
}

impl Settings {
    /// The usual: one spare, closed after five minutes, and the browser's sandbox.
    pub fn new(data: &Path, keeper: Program) -> Self {
        Self {
            data: data.to_owned(),
            keeper,
            browser: None,
            allow_no_sandbox: false,
            spares: 1,
            spare_idle: Duration::from_secs(300),
            files: None,
            grace: ode_child::Grace::PATIENT,
        }
    }
}

/// Runs scripts. Cheap to clone; needs a tokio runtime.
#[derive(Clone)]
pub struct Runner {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    settings: Settings,
    supervisor: Supervisor,
    runs: Runs,
    spares: SparesByCommand,
}

/// What a script reads on its stdin.
#[derive(Serialize)]
struct Payload<'a> {
    protocol: u32,
    job_id: &'a str,
    attempt: u32,
    #[serde(rename = "type")]
    name: &'a str,
    input: &'a Value,
    secrets: &'a crate::Secrets,
    checkpoints: &'a BTreeMap<String, Value>,
    /// How long it has from now on.
    deadline_ms: u64,
    browser: Option<&'a Browser>,
    site: Option<&'a str>,
    dry_run: bool,
    /// The script's own file, for a spare, which was started for none.
    script: Option<&'a str>,
    files_dir: Option<&'a Path>,
    trace: crate::Trace,
}

impl Runner {
    /// Gets ready to run scripts, and ends what a runner that died has left here.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let runs = Runs::open(&settings.data)?;
        let supervisor = Supervisor::new()?;
        let shared = Arc::new(Shared { settings, supervisor, runs, spares: SparesByCommand::default() });
        let care = Arc::downgrade(&shared);
        tokio::spawn(async move {
            while let Some(shared) = care.upgrade() {
                shared.runs.sweep().await;
                shared.close_idle();
                drop(shared);
                tokio::time::sleep(CARE_INTERVAL).await;
            }
        });
        Ok(Self { shared })
    }

    /// Has processes wait for this script from now on, if its manifest asks for that.
    pub fn warm(&self, script: &Script) {
        if let Some(spares) = self.shared.spares(script) {
            spares.refill();
        }
    }

    /// Closes the processes that have waited in vain for long enough; this also happens by itself.
    pub fn close_idle(&self) {
        self.shared.close_idle();
    }

    /// How many processes wait for work.
    pub fn spares_ready(&self) -> usize {
        self.shared.spares.count()
    }

    /// Runs one attempt to its end, with every process of it gone and its directory removed.
    ///
    /// It ends early when `stop` is ready. Dropping the returned future ends it as well.
    pub async fn run(
        &self,
        order: Order,
        mut told: impl FnMut(News) + Send,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Report, Error> {
        let began = Instant::now();
        let browser = match self.shared.needs(&order.script) {
            Ok(browser) => browser,
            Err(failed) => return Ok(Report::of_failure(failed)),
        };
        let redactor = Redactor::new(order.secrets.values());
        if redactor.is_overfull() {
            return Ok(Report::of_failure(outcome::many_secrets("The job was sent with")));
        }
        let work = self.shared.work(&order, browser.as_ref(), &redactor)?;
        let (spare, was_spare) = self.shared.take(&order.script, order.traceparent.as_deref()).await?;
        let Spare { waiting, mut scratch } = spare;
        told(News::Started(waiting.record().clone()));
        let teller = Mutex::new(Teller::new(told, &order.script.manifest.steps));
        let hear = |notice: Notice| teller.lock().unwrap_or_else(PoisonError::into_inner).hear(notice);
        let ran = waiting.within(order.limits()).run(work, hear, stop);
        let ended = telling(ran, || teller.lock().unwrap_or_else(PoisonError::into_inner).tell()).await?;
        scratch.has_ended();
        let mut teller = teller.into_inner().unwrap_or_else(PoisonError::into_inner);
        let artifacts =
            artifacts::collect(scratch.artifacts(), &ended.artifacts, &redactor, |line| teller.log(line));
        scratch.remove().await;
        let report = Report {
            log_bytes_dropped: ended.log_bytes_dropped,
            outcome: outcome::of(&order.script, ended, &redactor, |line| teller.log(line)),
            artifacts,
            duration: began.elapsed(),
            was_spare,
        };
        teller.finish(&report.outcome);
        Ok(report)
    }
}

/// Waits for a run and has what was held back told now and then.
async fn telling<T>(run: impl Future<Output = T>, tell: impl Fn()) -> T {
    let mut run = pin!(run);
    loop {
        tokio::select! {
            ended = &mut run => return ended,
            () = tokio::time::sleep(TELL_INTERVAL) => tell(),
        }
    }
}

impl Order {
    /// How long it may take.
    pub fn time(&self) -> Duration {
        let manifest = self.script.manifest.timeout;
        self.timeout.map_or(manifest, |timeout| timeout.min(manifest))
    }

    fn limits(&self) -> Limits {
        Limits {
            wall_clock: self.time(),
            resident_bytes: Some(self.script.manifest.memory_bytes_max),
            ..limits()
        }
    }
}

/// What holds for every script.
fn limits() -> Limits {
    Limits { payload_bytes: PAYLOAD_BYTES_MAX, event_bytes: EVENT_BYTES_MAX, ..Limits::program() }
}

impl Shared {
    fn close_idle(&self) {
        self.spares.close_idle(self.settings.spare_idle);
    }

    /// Whether what a script needs is there: its program, and the browser that is given to it if it drives one.
    fn needs(&self, script: &Script) -> Result<Option<Browser>, Failed> {
        let argv = script.argv(&script.manifest.command);
        installed(argv.first().map_or("", |program| program))?;
        script.manifest.browser.then(|| self.browser()).transpose()
    }

    fn browser(&self) -> Result<Browser, Failed> {
        browser::find(self.settings.browser.as_deref(), self.settings.allow_no_sandbox)
    }

    fn work(&self, order: &Order, browser: Option<&Browser>, redactor: &Redactor) -> Result<Work, Error> {
        let script = order.script.own_file();
        let payload = Payload {
            protocol: PROTOCOL,
            job_id: &order.job,
            attempt: order.attempt,
            name: order.script.name(),
            input: &order.input,
            secrets: &order.secrets,
            checkpoints: &order.checkpoints,
            deadline_ms: u64::try_from(order.time().as_millis()).unwrap_or(u64::MAX),
            browser,
            site: order.site.as_deref(),
            dry_run: order.dry_run,
            script: script.as_deref(),
            files_dir: self.settings.files.as_deref(),
            trace: order.script.manifest.trace,
        };
        Ok(Work::new(&payload)?.with_redactor(redactor.clone()))
    }

    /// The processes that wait for this script, if that is wanted.
    fn spares(self: &Arc<Self>, script: &Script) -> Option<Spares<Spare, Error>> {
        let size = self.settings.spares;
        let is_wanted = size > 0 && script.manifest.pool == crate::Pool::Spare;
        let command = script.manifest.spare.as_ref().filter(|_| is_wanted)?;
        let browser = self.browser().ok()?;
        let mut argv: Vec<String> = script.argv(command).into_iter().map(Cow::into_owned).collect();
        argv.extend(["--browser".to_owned(), browser.executable.to_str()?.to_owned()]);
        argv.extend((!browser.sandbox).then(|| "--no-sandbox".to_owned()));
        Some(self.spares.of(self, argv, size))
    }

    /// A process for a script: one that waits already, or a new one. Whether it waited comes with it.
    async fn take(
        self: &Arc<Self>,
        script: &Script,
        traceparent: Option<&str>,
    ) -> Result<(Spare, bool), Error> {
        if let Some(spare) = self.spares(script).as_ref().and_then(spare::take) {
            return Ok((spare, true));
        }
        let argv: Vec<String> =
            script.argv(&script.manifest.command).into_iter().map(Cow::into_owned).collect();
        Ok((self.start(&argv, traceparent).await?, false))
    }

    /// Starts a process, which waits for its payload.
    pub(crate) async fn start(&self, argv: &[String], traceparent: Option<&str>) -> Result<Spare, Error> {
        let mut scratch = self.runs.make()?;
        let (program, arguments) = argv.split_first().ok_or(ode_child::Error::ProgramName)?;
        let spec = Spec {
            environment: environment(&scratch, traceparent),
            directory: scratch.path().to_owned(),
            is_directory_own: true,
            limits: limits(),
            grace: self.settings.grace,
            ..Spec::kept(self.settings.keeper.clone(), Program::new(program, arguments))
        };
        let waiting = self.supervisor.start(&spec).await?;
        scratch.note(waiting.record())?;
        Ok(Spare { waiting, scratch })
    }
}

fn environment(scratch: &Scratch, traceparent: Option<&str>) -> Vec<(OsString, OsString)> {
    let inherited = INHERITED.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let own = [("HOME", scratch.path()), ("TMPDIR", scratch.path()), ("ODE_ARTIFACTS", scratch.artifacts())];
    let own = own.map(|(name, path)| (name.into(), path.as_os_str().to_owned()));
    let trace = traceparent.map(|trace| ("TRACEPARENT".into(), trace.into()));
    inherited.chain(own).chain(trace).collect()
}

/// Whether the program of a command is there; what to do if not.
fn installed(program: &str) -> Result<(), Failed> {
    if browser::program(program).is_some() {
        return Ok(());
    }
    Err(Failed {
        code: code::NOT_INSTALLED.to_owned(),
        message: format!(
            "{program} is not installed on the worker. Install it there, or mend the script's command."
        ),
        retryable: false,
        stack: None,
    })
}

impl Report {
    /// Nothing was run.
    fn of_failure(failed: Failed) -> Self {
        Self {
            outcome: Outcome::Failed(failed),
            artifacts: Vec::new(),
            duration: Duration::ZERO,
            log_bytes_dropped: 0,
            was_spare: false,
        }
    }
}
