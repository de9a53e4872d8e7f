//! Everything on S3: storage, documents and results, on a real S3-compatible server behind a proxy that has its moods.

use super::{key, pdf, request, sha256};
use crate::harness::Ode;
use crate::serve::Serving;
use crate::web::client::{Client, until};
use ode_testing::{Mood, Proxy};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use uuid::Uuid;

/// Buckets of their own: for documents, for results and for what is ours.
struct Buckets {
    proxy: Proxy,
    inputs: String,
    outputs: String,
    own: String,
    root: PathBuf,
}

impl Buckets {
    fn new() -> Option<Self> {
        let (Ok(url), Ok(root)) = (std::env::var("ODE_TEST_S3_URL"), std::env::var("ODE_TEST_S3_ROOT"))
        else {
            eprintln!("skipped: no S3 server. `tests/run` starts one");
            return None;
        };
        let id = Uuid::new_v4().simple();
        let [inputs, outputs, own] = ["in", "out", "own"].map(|name| {
            let name = format!("{name}-{id}");
            std::fs::create_dir(Path::new(&root).join(&name)).unwrap();
            name
        });
        let proxy = Proxy::start(url.strip_prefix("http://").unwrap().parse().unwrap());
        Some(Buckets { proxy, inputs, outputs, own, root: root.into() })
    }

    /// A command of an installation that keeps everything there.
    fn command(&self, ode: &Ode, args: &[&str]) -> Command {
        let mut command = ode.command(args);
        command.args(["--s3-endpoint", &self.proxy.url()]);
        let roots =
            [("--input-root", &self.inputs), ("--output-root", &self.outputs), ("--storage", &self.own)];
        for (option, bucket) in roots {
            command.arg(option).arg(format!("s3://{bucket}"));
        }
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
            command.env(name, std::env::var(name).unwrap());
        }
        command
    }

    /// A request for a document that is there, with its result to be put below this prefix.
    fn request(&self, name: &str, number: &str) -> Value {
        std::fs::write(self.root.join(&self.inputs).join(format!("{name}.pdf")), pdf(number)).unwrap();
        let mut asked = request(name, &format!("s3://{}/{name}.pdf", self.inputs));
        asked["output_s3_prefix"] = json!(format!("s3://{}/results/{name}", self.outputs));
        asked
    }

    /// Where the result of such a request lies.
    fn folder(&self, name: &str) -> PathBuf {
        self.root.join(&self.outputs).join("results").join(name)
    }

    /// What lies where results are put together.
    fn staged(&self) -> Vec<PathBuf> {
        files_below(&self.root.join(&self.outputs).join(".ode-staging"))
    }

    /// A worker that tries again at once, and that is missed after a second.
    fn worker(&self, ode: &Ode) -> Command {
        self.command(ode, &["worker", "--silence", "1", "--retry-base", "0.1"])
    }

    /// The result of such a request is whole: every file that the manifest names, as it says, and no other.
    #[track_caller]
    fn assert_whole(&self, name: &str, id: &str) {
        let folder = self.folder(name);
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
        assert_eq!(manifest["job_id"], json!(id));
        let files = manifest["files"].as_array().unwrap();
        for file in files {
            let content = std::fs::read(folder.join(file["path"].as_str().unwrap())).unwrap();
            assert_eq!(json!(sha256(&content)), file["sha256"], "{file}");
        }
        assert_eq!(files_below(&folder).len(), files.len() + 1, "{manifest}");
    }
}

/// An installation that keeps everything in buckets, and one of its callers.
struct Site {
    client: Client,
    serving: Serving,
    ode: Ode,
    buckets: Buckets,
}

impl Site {
    /// Everything in one process.
    fn whole() -> Option<Self> {
        Self::with(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--gateway",
            "off",
            "--retry-base",
            "0.1",
            "--silence",
            "1",
        ])
    }

    /// Without a worker.
    fn web() -> Option<Self> {
        Self::with(&["web", "--listen", "127.0.0.1:0"])
    }

    fn with(options: &[&str]) -> Option<Self> {
        let (buckets, ode) = (Buckets::new()?, Ode::sqlite());
        let serving = Serving::start(&mut buckets.command(&ode, options));
        let client = Client::program(&serving, &key(&ode, "acme"));
        Some(Site { client, serving, ode, buckets })
    }
}

/// What only the storage is asked to copy has.
const COPY: &str = "x-amz-copy-source";

#[test]
fn documents_and_results_on_s3() {
    let Some(site) = Site::whole() else { return };
    let Site { client, buckets, serving, .. } = &site;
    let id = client.submitted(&buckets.request("one", "RE-4711"));
    let job = client.ended(&id);
    assert_eq!(job["status"], "completed", "{job}");
    let folder = buckets.folder("one");
    assert!(std::fs::read_to_string(folder.join("index.html")).unwrap().contains("RE-4711"));
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["job_id"], json!(id));
    // An upload goes to our own bucket, in a form.
    let answer = client.submit_file(&pdf("RE-4712"), &[("external_id", "two")]);
    let second = answer.json()["job_id"].as_str().unwrap().to_owned();
    assert_eq!(client.ended(&second)["status"], "completed");
    let page = Client::stranger(serving).get(client.job(&second)["links"]["view"].as_str().unwrap());
    assert!(page.body.contains("RE-4712"), "{page:?}");
    for id in [&id, &second] {
        assert_eq!(client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"").code(), 204);
    }
    assert!(!folder.join("manifest.json").exists() && !folder.join("index.html").exists());
    // What is not there, and a bucket that is not open.
    let missing =
        client.ended(&client.submitted(&request("three", &format!("s3://{}/none.pdf", buckets.inputs))));
    assert_eq!(missing["error"]["code"], "NOT_FOUND", "{missing}");
    client
        .submit(&request("four", &format!("s3://{}/doc.pdf", buckets.own)))
        .assert_problem(403, "FORBIDDEN");
}

/// Files below a folder, at any depth.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn a_job_that_takes_its_workers_down_leaves_nothing_at_its_prefix() {
    let Some(site) = Site::web() else { return };
    let Site { client, buckets, ode, .. } = &site;
    let id = client.submitted(&buckets.request("one", "RE-1"));
    let worker = || buckets.worker(ode);
    // So many crashes set a job aside.
    for _ in 0..3 {
        Serving::start(worker().env("ODE_CRASH_AT", "before-manifest")).child.wait().unwrap();
    }
    assert!(buckets.folder("one").join("index.html").exists(), "the attempts came far enough to leave files");
    assert!(!buckets.folder("one").join("manifest.json").exists(), "which are no result");
    assert_eq!(client.get(&format!("/v1/jobs/{id}/assets")).json()["assets"], json!([]));
    let _living = Serving::start(&mut worker());
    let job = client.ended(&id);
    assert_eq!((&job["status"], &job["error"]["code"]), (&json!("failed"), &json!("POISON")), "{job}");
    until("what they left is taken away", || files_below(&buckets.folder("one")).is_empty());
    assert_eq!(client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"").code(), 204);
}

#[test]
fn an_attempt_that_takes_over_takes_away_first_what_the_lost_one_left() {
    let Some(site) = Site::web() else { return };
    let Site { client, buckets, ode, .. } = &site;
    let id = client.submitted(&buckets.request("one", "RE-1"));
    let worker = || buckets.worker(ode);
    Serving::start(worker().env("ODE_CRASH_AT", "before-manifest")).child.wait().unwrap();
    assert!(buckets.folder("one").join("index.html").exists(), "it came far enough to leave files");
    // The next one has nothing to show for a while.
    buckets.proxy.set_for(&format!("get /{}/", buckets.inputs), Mood::Held, 1);
    let _living = Serving::start(&mut worker());
    buckets.proxy.wait_for_held();
    assert_eq!(files_below(&buckets.folder("one")), Vec::<PathBuf>::new());
    buckets.proxy.release();
    assert_eq!(client.ended(&id)["status"], "completed");
    buckets.assert_whole("one", &id);
}

#[test]
fn a_worker_that_is_killed_while_it_publishes_leaves_nothing_to_be_seen_and_another_goes_on() {
    let Some(site) = Site::web() else { return };
    let Site { client, buckets, ode, .. } = &site;
    let id = client.submitted(&buckets.request("one", "RE-1"));
    let worker = || Serving::start(&mut buckets.worker(ode));
    buckets.proxy.set_for(COPY, Mood::Held, usize::MAX);
    let mut dying = worker();
    buckets.proxy.wait_for_held();
    assert_eq!(client.job(&id)["status"], "processing");
    dying.signal(Signal::KILL);
    dying.child.wait().unwrap();
    assert_eq!(files_below(&buckets.folder("one")), Vec::<PathBuf>::new(), "nothing is seen of it");
    assert!(!buckets.staged().is_empty(), "though all of it was sent");
    assert_eq!(client.get(&format!("/v1/jobs/{id}/assets")).json()["assets"], json!([]));
    buckets.proxy.set(Mood::Fair, 0);
    let _living = worker();
    assert_eq!(client.ended(&id)["status"], "completed");
    buckets.assert_whole("one", &id);
    assert_eq!(buckets.staged(), Vec::<PathBuf>::new(), "what the first left is gone too");
}

#[test]
fn a_job_removed_while_it_is_processed_takes_everything_with_it() {
    let Some(site) = Site::whole() else { return };
    let Site { client, buckets, .. } = &site;
    buckets.proxy.set_for(COPY, Mood::Held, usize::MAX);
    let id = client.submitted(&buckets.request("one", "RE-1"));
    buckets.proxy.wait_for_held();
    assert_eq!(client.job(&id)["status"], "processing");
    let own = || files_below(&buckets.root.join(&buckets.own));
    assert!(!own().is_empty() && !buckets.staged().is_empty(), "it has files already");
    until("it is gone", || {
        let code = client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"").code();
        assert!([202, 204].contains(&code), "{code}");
        code == 204
    });
    client.get(&format!("/v1/jobs/{id}")).assert_problem(404, "NOT_FOUND");
    client.get(&format!("/v1/jobs/{id}/assets")).assert_problem(404, "NOT_FOUND");
    for left in [own(), buckets.staged(), files_below(&buckets.folder("one"))] {
        assert_eq!(left, Vec::<PathBuf>::new());
    }
}

#[test]
fn a_job_that_runs_is_not_removed_and_keeps_what_it_is_publishing() {
    let Some(site) = Site::whole() else { return };
    let Site { client, buckets, .. } = &site;
    buckets.proxy.set_for(COPY, Mood::Held, usize::MAX);
    let id = client.submitted(&buckets.request("one", "RE-1"));
    buckets.proxy.wait_for_held();
    let staged = buckets.staged();
    assert!(!staged.is_empty());
    // This way stops nothing, and so nothing is withdrawn.
    client.send("DELETE", &format!("/api/jobs/{id}"), "", b"").assert_problem(409, "CONFLICT");
    assert_eq!(buckets.staged(), staged);
    buckets.proxy.release();
    assert_eq!(client.ended(&id)["status"], "completed");
    buckets.assert_whole("one", &id);
}

#[test]
fn a_job_that_is_retried_while_it_is_removed_stays_with_all_of_its_result() {
    let Some(site) = Site::whole() else { return };
    let Site { client, buckets, .. } = &site;
    buckets.proxy.set_for(COPY, Mood::Status(403), usize::MAX);
    let id = client.submitted(&buckets.request("one", "RE-1"));
    assert_eq!(client.ended(&id)["status"], "failed");
    // The removal is about to look what lies there.
    buckets.proxy.set_for("get /out", Mood::Held, 1);
    let removal = std::thread::spawn({
        let (client, id) = (client.clone(), id.clone());
        move || client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"")
    });
    buckets.proxy.wait_for_held();
    assert_eq!(client.send("POST", &format!("/api/jobs/{id}/retry"), "", b"").code(), 200);
    until("the new attempt has something to publish", || client.job(&id)["progress_message"] == "Publishing");
    buckets.proxy.release();
    removal.join().unwrap().assert_problem(409, "CONFLICT");
    assert_eq!(client.ended(&id)["status"], "completed");
    buckets.assert_whole("one", &id);
}

#[test]
fn whatever_the_storage_does_every_document_becomes_one_whole_result() {
    let Some(site) = Site::whole() else { return };
    let Site { client, buckets, .. } = &site;
    let read = format!("get /{}/", buckets.inputs);
    let moods = [
        ("", Mood::Status(503)),
        ("", Mood::Status(500)),
        ("", Mood::Slow(Duration::from_millis(100))),
        ("", Mood::LostBeforeAnswer),
        (read.as_str(), Mood::CutAfter(1000)),
        (COPY, Mood::LostBeforeAnswer),
        (COPY, Mood::Status(503)),
    ];
    for (number, (about, mood)) in moods.into_iter().enumerate() {
        let name = format!("n{number}");
        buckets.proxy.set_for(about, mood, 6);
        let id = client.submitted(&buckets.request(&name, &format!("RE-{number}")));
        let job = client.ended(&id);
        assert_eq!(job["status"], "completed", "{mood:?}: {job}");
        buckets.proxy.set(Mood::Fair, 0);
        buckets.assert_whole(&name, &id);
        let events = client.get(&format!("/v1/jobs/{id}/events")).json();
        let ends = events["events"].as_array().unwrap().iter().filter(|event| event["to"] == "completed");
        assert_eq!(ends.count(), 1, "{events}");
        check_assets(client, &id);
    }
    assert_eq!(buckets.staged(), Vec::<PathBuf>::new());
}

/// Every text is served as its digest says.
fn check_assets(client: &Client, id: &str) {
    let assets = client.get(&format!("/v1/jobs/{id}/assets")).json();
    let is_text = |asset: &&Value| asset["asset_type"] == "html" || asset["asset_type"] == "css";
    let texts: Vec<&Value> = assets["assets"].as_array().unwrap().iter().filter(is_text).collect();
    assert!(!texts.is_empty(), "{assets}");
    for asset in texts {
        let served = client.get(asset["url"].as_str().unwrap());
        assert_eq!(json!(sha256(served.body.as_bytes())), asset["content_hash"], "{asset}");
    }
}

#[test]
fn a_storage_that_stays_away_fails_the_job_shows_nothing_and_another_try_finishes_it() {
    let Some(site) = Site::whole() else { return };
    let Site { client, buckets, ode, .. } = &site;
    buckets.proxy.set_for(COPY, Mood::Status(503), usize::MAX);
    let id = client.submitted(&buckets.request("one", "RE-1"));
    let job = client.ended(&id);
    assert_eq!((&job["status"], &job["error"]["code"]), (&json!("failed"), &json!("IO_ERROR")), "{job}");
    assert_eq!(files_below(&buckets.folder("one")), Vec::<PathBuf>::new());
    buckets.proxy.set(Mood::Fair, 0);
    // Whatever a worker takes away meanwhile, the next attempt's files stay.
    let again = client.send("POST", &format!("/api/jobs/{id}/retry"), "", b"");
    assert_eq!(again.code(), 200, "{again:?}");
    let cleaned = crate::harness::Ran::of(&mut buckets.command(ode, &["cleanup"]));
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert_eq!(client.ended(&id)["status"], "completed");
    buckets.assert_whole("one", &id);
}
