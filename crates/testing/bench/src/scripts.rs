//! What scripts cost. `login`: the reference login on a demo site, by a process that is started for it and by one that
//! waited with its browser open, in turns. `submit`: asking for one over HTTP while thousands wait.

use super::client::Visitor;
use super::web::{Place, Server, percentiles};
use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use ode_child::Program;
use ode_cli as output;
use ode_demo_site::{Options, Owner, Site};
use ode_script::{Catalog, News, Order, Outcome, Runner, Script, Settings, StepState};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// With what.
#[derive(Debug, Args)]
pub(crate) struct Scripts {
    /// The measurement
    #[arg(value_enum, default_value = "login")]
    phase: Phase,
    /// Where jobs wait: the database of DATABASE_URL, or SQLite
    #[arg(value_enum, default_value = "sqlite")]
    place: Place,
    /// Jobs that wait already when submitting is measured
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    queued: usize,
    /// Folder of the scripts that come with ODE, with their packages installed
    #[arg(long, value_name = "DIR", default_value = "scripts")]
    folder: PathBuf,
    /// How often each way is measured
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Seconds that a waiting process is given to open its browser before each round
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    settle: f64,
    /// The browser to use [default: the one that jobs use]
    #[arg(long, value_name = "FILE")]
    browser: Option<PathBuf>,
    /// Let the browser run without its own sandbox, which it cannot have as root
    #[arg(long, env = "ODE_BROWSER_NO_SANDBOX")]
    browser_no_sandbox: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// Signing in, by a process that waited and by a new one
    Login,
    /// Asking for a script while others wait
    Submit,
}

/// How many ask at once while the line is made.
const ASKING: usize = 8;
/// How many are measured, one after the other.
const MEASURED: usize = 1000;
/// The step that ends when the page after the login is there.
const STEP: &str = "sign-in";
/// A spare that has not come by then will not.
const SPARE_PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn run(args: &Scripts) -> anyhow::Result<ExitCode> {
    let measured = match args.phase {
        Phase::Login => logins(args).await?,
        Phase::Submit => submits(args).await?,
    };
    output::line(measured)?;
    Ok(ExitCode::SUCCESS)
}

async fn submits(args: &Scripts) -> anyhow::Result<Value> {
    let own = tempfile::tempdir().context("No temporary directory could be made")?;
    std::fs::create_dir(own.path().join("wait"))?;
    std::fs::write(
        own.path().join("wait/script.toml"),
        "type = \"wait\"\ntitle = \"Wait\"\nversion = 1\ncommand = [\"true\"]\n[payload]\ntype = \"object\"\n",
    )?;
    let server = Server::start(args.place, Some(own.path()))?;
    let mut keys = std::process::Command::new(std::env::current_exe()?);
    keys.args(["keys", "create", "--organisation", "bench", "--data"]).arg(server.directory.path());
    let made = keys.args(args.place.arguments()?).output().context("No key could be made")?;
    let key = String::from_utf8(made.stdout)?.trim().to_owned();
    let asking = (0..ASKING).map(|_| {
        let (address, key, count) = (server.address, key.clone(), args.queued / ASKING);
        tokio::spawn(async move { ask(address, &key, count).await })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await??;
    }
    let mut measured = percentiles(ask(server.address, &key, MEASURED).await?);
    measured["peer"] = json!("ode");
    measured["phase"] = json!("submit");
    measured["queued"] = json!(args.queued);
    Ok(measured)
}

/// How long each of so many requests took.
async fn ask(address: SocketAddr, key: &str, count: usize) -> anyhow::Result<Vec<Duration>> {
    let mut visitor = Visitor::arrive(address).await?;
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        visitor.ask("wait", key, r#"{"input": {}}"#).await?;
        took.push(began.elapsed());
    }
    Ok(took)
}

async fn logins(args: &Scripts) -> anyhow::Result<Value> {
    let place = tempfile::tempdir().context("No temporary directory could be made")?;
    let script = reference(&args.folder, place.path())?;
    let any = "127.0.0.1:0";
    let site = Site::start(TcpListener::bind(any).await?, TcpListener::bind(any).await?, Options::default())?;
    let address = format!("http://{}", site.admin());
    let serving = tokio::spawn(site.run());
    let runner = |spares| {
        let mut settings = Settings::new(place.path(), Program::this_binary(["child", "keep"])?);
        (settings.spares, settings.browser) = (spares, args.browser.clone());
        settings.allow_no_sandbox = args.browser_no_sandbox;
        anyhow::Ok(Runner::new(settings)?)
    };
    let (cold, warm) = (runner(0)?, runner(1)?);
    let (mut cold_ms, mut spare_ms) = (Vec::new(), Vec::new());
    // The first round warms the caches of the system and is not counted.
    for round in 0..=args.rounds {
        wait_for_spare(&warm, &script, args.settle).await?;
        let took =
            [login(&cold, &script, &address, false).await?, login(&warm, &script, &address, true).await?];
        if round > 0 {
            cold_ms.push(took[0]);
            spare_ms.push(took[1]);
        }
    }
    serving.abort();
    let (cold, spare) = (Spread::of(cold_ms), Spread::of(spare_ms));
    Ok(json!({
        "peer": "ode", "phase": "login", "rounds": args.rounds, "cold_ms": cold, "spare_ms": spare,
        "times_faster": (10.0 * cold.p50 / spare.p50).round() / 10.0,
    }))
}

/// Middle and ends, in milliseconds.
#[derive(serde::Serialize)]
struct Spread {
    min: f64,
    p50: f64,
    max: f64,
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        let at = |index: usize| times.get(index).map_or(0.0, |time| (time.as_secs_f64() * 1000.0).round());
        Self { min: at(0), p50: at(times.len() / 2), max: at(times.len().saturating_sub(1)) }
    }
}

/// A script that signs in and does nothing else.
fn reference(folder: &Path, place: &Path) -> anyhow::Result<Arc<Script>> {
    let folder = folder.canonicalize().with_context(|| format!("{} is not there", folder.display()))?;
    let is_installed = folder.join("node_modules/playwright-core").is_dir();
    ensure!(is_installed, "Install the packages first: npm ci --prefix {}", folder.display());
    let own = place.join("scripts/bench-login");
    std::fs::create_dir_all(&own)?;
    let spare = folder.join("kit/spare.mjs");
    std::fs::write(
        own.join("script.toml"),
        format!(
            "type = \"bench-login\"\ntitle = \"Sign in\"\nversion = 1\ncommand = [\"node\", \"run.mjs\"]\n\
             spare = [\"node\", {spare:?}]\npool = \"spare\"\nsteps = [{{ id = {STEP:?}, title = \"Sign in\" }}]\n\
             [payload.properties.password]\ntype = \"string\"\nx-ode-secret = true\n"
        ),
    )?;
    let [kit, account] = ["kit/script.mjs", "pages/account.mjs"].map(|file| folder.join(file));
    std::fs::write(
        own.join("run.mjs"),
        format!(
            "import {{ script }} from {kit:?};\nimport {{ Account }} from {account:?};\n\
             export default script(import.meta, async ({{ job, page, input, site }}) => {{\n  \
             await job.step({STEP:?}, () => new Account(page, site).signIn(input.email, input.password));\n  \
             return {{ message: \"Signed in\", data: {{}} }};\n}});\n"
        ),
    )?;
    let catalog = Catalog::load(&place.join("scripts"), None)?;
    catalog.get("bench-login").context("The reference script is not there")
}

async fn wait_for_spare(runner: &Runner, script: &Script, settle: f64) -> anyhow::Result<()> {
    let began = Instant::now();
    runner.warm(script);
    while runner.spares_ready() == 0 {
        ensure!(began.elapsed() < SPARE_PATIENCE, "No process waits. See whether {} runs.", script.name());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_secs_f64(settle)).await;
    Ok(())
}

/// The time until the page after the login is there.
async fn login(
    runner: &Runner,
    script: &Arc<Script>,
    site: &str,
    is_spare: bool,
) -> anyhow::Result<Duration> {
    let Owner { email, password, restaurant, .. } = Owner::default();
    let payload = json!({ "email": email, "password": password, "restaurantName": restaurant });
    let (input, secrets) = script.split(payload);
    let mut order = Order::new("JOB_bench", Arc::clone(script), input, secrets);
    order.site = Some(site.to_owned());
    let began = Instant::now();
    let mut took = None;
    let told = |news| {
        if matches!(&news, News::Step { id, state: StepState::Done } if id == STEP) {
            took = Some(began.elapsed());
        }
    };
    let report = runner.run(order, told, std::future::pending()).await?;
    ensure!(matches!(report.outcome, Outcome::Done(_)), "The login failed: {:?}", report.outcome);
    ensure!(report.was_spare == is_spare, "The process that waited was not used.");
    took.context("The script did not tell that it had signed in")
}
