//! Named points at which a test may end this process, as a power cut would.

use ode_job::JobId;
use std::path::Path;
use std::sync::OnceLock;

/// What the environment asks for: the point, and where the jobs that are to die there are named.
struct Wanted {
    point: Option<String>,
    armed: Option<String>,
}

fn wanted() -> &'static Wanted {
    static WANTED: OnceLock<Wanted> = OnceLock::new();
    WANTED.get_or_init(|| {
        let text = |name: &str| std::env::var(name).ok();
        Wanted { point: text("ODE_CRASH_AT"), armed: text("ODE_CRASH_ARMED") }
    })
}

/// Ends the process at once if `ODE_CRASH_AT` names this point. Costs a comparison when it does not.
pub fn point(name: &str) {
    point_of(name, []);
}

/// The same on behalf of these jobs. Where `ODE_CRASH_ARMED` names a directory, only a job that has a file there meets
/// its end, and once: the file is renamed, and this thread stands still until the process is killed from outside, so
/// that the others of a batch come as far.
pub fn point_of(name: &str, jobs: impl IntoIterator<Item = JobId>) {
    let Wanted { point, armed } = wanted();
    if point.as_deref() != Some(name) {
        return;
    }
    let Some(armed) = armed else { return kill() };
    let is_met = |job: JobId| {
        let file = Path::new(armed).join(job.to_string());
        std::fs::rename(&file, file.with_extension("met")).is_ok()
    };
    // Every one of the batch meets it, not the first alone.
    if jobs.into_iter().filter(|job| is_met(*job)).count() > 0 {
        loop {
            std::thread::park();
        }
    }
}

fn kill() {
    let me = rustix::process::getpid();
    // There is nobody left to tell if this fails; the caller then simply goes on.
    let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
}
