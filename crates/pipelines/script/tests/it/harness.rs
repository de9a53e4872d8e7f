//! What the tests share: a folder with one script and a data directory, and ways to look at processes from outside.

use ode_child::{Grace, Program};
use ode_script::{Catalog, News, Order, Outcome, Report, Runner, Script, Settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Long enough for anything that should happen at all, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One script and where it is run.
pub(crate) struct Site {
    root: PathBuf,
    _temp: Option<tempfile::TempDir>,
}

impl Site {
    /// A script that this program runs: `sh`, `python3` or `node`.
    pub(crate) fn new(program: &str, text: &str) -> Self {
        Self::with(program, text, "")
    }

    /// The same with more lines in its manifest.
    pub(crate) fn with(program: &str, text: &str, manifest: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let site = Self { root: temp.path().to_owned(), _temp: Some(temp) };
        let folder = site.root.join("scripts/sample");
        std::fs::create_dir_all(&folder).unwrap();
        let name = if program == "node" { "run.mjs" } else { "run" };
        let manifest = format!(
            "type = \"sample\"\ntitle = \"Sample\"\nversion = 1\ncommand = [{program:?}, {name:?}]\n\
             payload = \"payload.json\"\n{manifest}\n"
        );
        let payload = json!({ "properties": { "password": { "x-ode-secret": true } } });
        std::fs::write(folder.join("script.toml"), manifest).unwrap();
        std::fs::write(folder.join("payload.json"), payload.to_string()).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
        site
    }

    /// One that another process has made.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root, _temp: None }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn script(&self) -> Arc<Script> {
        Catalog::load(&self.root.join("scripts"), None).unwrap().get("sample").unwrap()
    }

    pub(crate) fn settings(&self) -> Settings {
        let keeper = ["--exact", "parts::plays_its_part", "--nocapture", "--test-threads=1"];
        let grace = Grace { interrupt: Duration::from_millis(200), terminate: Duration::from_millis(200) };
        Settings {
            grace,
            allow_no_sandbox: true,
            ..Settings::new(&self.root.join("data"), Program::this_binary(keeper).unwrap())
        }
    }

    pub(crate) fn runner(&self) -> Runner {
        Runner::new(self.settings()).unwrap()
    }

    pub(crate) fn order(&self) -> Order {
        let script = self.script();
        let (input, secrets) = script.split(json!({ "name": "Trattoria", "password": "hunter2" }));
        Order::new("JOB_1", script, input, secrets)
    }

    /// Runs the script and keeps what was told.
    pub(crate) async fn run(&self) -> (Report, Vec<News>) {
        let mut told = Vec::new();
        let report = self.runner().run(self.order(), |news| told.push(news), std::future::pending()).await;
        (report.unwrap(), told)
    }

    /// The private directories that are there.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.root.join("data/script-runs")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Checks that there is neither a process nor a directory of this site.
    pub(crate) fn assert_empty(&self) {
        let word = self.root.to_str().unwrap();
        assert!(processes(word).is_empty(), "processes are left: {:?}", processes(word));
        assert_eq!(self.directories(), Vec::<PathBuf>::new(), "directories are left");
    }
}

/// The data of a result.
pub(crate) fn data(report: &Report) -> &Value {
    match &report.outcome {
        Outcome::Done(done) => &done.data,
        other => panic!("it was not done: {other:?}"),
    }
}

/// The code of a failure.
pub(crate) fn code(report: &Report) -> &str {
    match &report.outcome {
        Outcome::Failed(failed) => &failed.code,
        other => panic!("it did not fail: {other:?}"),
    }
}

pub(crate) fn lines(told: &[News]) -> Vec<&str> {
    told.iter()
        .filter_map(|news| if let News::Log(line) = news { Some(line.text.as_str()) } else { None })
        .collect()
}

/// The processes, zombies left out, whose environment or command line contains a word.
pub(crate) fn processes(word: &str) -> Vec<i32> {
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let contains = |pid: i32, file: &str| {
        let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(word.len()).any(|window| window == word.as_bytes())
    };
    let own = std::process::id().cast_signed();
    numbers.filter(|pid| *pid != own && (contains(*pid, "environ") || contains(*pid, "cmdline"))).collect()
}

/// Waits until `is_so`, and says what was waited for if it never comes.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}
