//! A worker in a process of its own: this test binary, run again with one test that works until it is ended.

use crate::harness::{QUICK_SILENCE, open, quick, registry};
use ode_store::{Blobs, BlobsConfig};
use ode_worker::Worker;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How to run it.
#[derive(Default, Clone)]
pub(crate) struct Plan {
    pub(crate) url: String,
    pub(crate) redis: Option<String>,
    pub(crate) crash_at: Option<&'static str>,
    /// With the product's own timing instead of the tests'.
    pub(crate) is_unhurried: bool,
}

/// Starts it.
pub(crate) fn spawn(plan: &Plan) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child::works_until_it_is_ended", "--nocapture"]);
    command.env("ODE_CHILD_DATABASE", &plan.url);
    for (name, value) in [("ODE_CHILD_REDIS", plan.redis.as_deref()), ("ODE_CRASH_AT", plan.crash_at)] {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if plan.is_unhurried {
        command.env("ODE_CHILD_UNHURRIED", "1");
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Ends it as a power cut would.
pub(crate) fn kill(child: &mut Child) {
    // It may have ended itself already.
    let _ = child.kill();
    child.wait().unwrap();
}

/// Sends it a signal.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Not a test of its own: without the variable, which only [`spawn`] sets, there is nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_until_it_is_ended() {
    let Ok(url) = std::env::var("ODE_CHILD_DATABASE") else { return };
    let is_unhurried = std::env::var("ODE_CHILD_UNHURRIED").is_ok();
    let silence = if is_unhurried { ode_store::Config::new("").silence_max } else { QUICK_SILENCE };
    let store = open(&url, std::env::var("ODE_CHILD_REDIS").ok(), silence).await;
    let config = if is_unhurried { ode_worker::Config::default() } else { quick() };
    let config = ode_worker::Config { grace: Duration::from_secs(2), ..config };
    let files = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&BlobsConfig::Local(files.path().into())).unwrap();
    let worker = Worker::start(store, Some(blobs), registry(), config).await.unwrap();
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    terminate.recv().await;
    worker.stop().await.unwrap();
}
