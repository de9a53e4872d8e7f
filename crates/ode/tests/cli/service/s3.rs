//! Everything on S3: storage, documents and results, on a real S3-compatible server.

use super::{key, pdf, request};
use crate::harness::Ode;
use crate::serve::Serving;
use crate::web::client::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use uuid::Uuid;

/// Buckets of their own: for documents, for results and for what is ours.
struct Buckets {
    url: String,
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
        Some(Buckets { url, inputs, outputs, own, root: root.into() })
    }

    /// A command of an installation that keeps everything there.
    fn command(&self, ode: &Ode, args: &[&str]) -> Command {
        let mut command = ode.command(args);
        command.args(["--s3-endpoint", &self.url]);
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
}

#[test]
fn documents_and_results_on_s3() {
    let Some(buckets) = Buckets::new() else { return };
    let ode = Ode::sqlite();
    let serving =
        Serving::start(&mut buckets.command(&ode, &["serve", "--listen", "127.0.0.1:0", "--gateway", "off"]));
    let client = Client::program(&serving, &key(&ode, "acme"));
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
    let page = Client::stranger(&serving).get(client.job(&second)["links"]["view"].as_str().unwrap());
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
    let Some(buckets) = Buckets::new() else { return };
    let ode = Ode::sqlite();
    let web = Serving::start(&mut buckets.command(&ode, &["web", "--listen", "127.0.0.1:0"]));
    let client = Client::program(&web, &key(&ode, "acme"));
    let id = client.submitted(&buckets.request("one", "RE-1"));
    let worker = || buckets.command(&ode, &["worker", "--silence", "1", "--retry-base", "0.1"]);
    // So many crashes set a job aside.
    for _ in 0..3 {
        Serving::start(worker().env("ODE_CRASH_AT", "before-manifest")).child.wait().unwrap();
    }
    let _living = Serving::start(&mut worker());
    let job = client.ended(&id);
    assert_eq!((&job["status"], &job["error"]["code"]), (&json!("failed"), &json!("POISON")), "{job}");
    assert!(buckets.folder("one").join("index.html").exists(), "the attempts came far enough to leave files");
    assert!(!buckets.folder("one").join("manifest.json").exists(), "which are no result");
    assert_eq!(client.get(&format!("/v1/jobs/{id}/assets")).json()["assets"], json!([]));
    // Workers do the same every few minutes.
    let cleaned = crate::harness::Ran::of(&mut buckets.command(&ode, &["cleanup"]));
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert_eq!(files_below(&buckets.folder("one")), Vec::<PathBuf>::new());
    assert_eq!(client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"").code(), 204);
}
