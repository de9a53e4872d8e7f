//! The pipeline from outside, in the program that has it: uploaded, counted, seen by its owner alone, and on the command line.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ode-words");
const TEXT: &str = "BT /F1 12 Tf 72 200 Td (the cat and the hat) Tj ET";
/// Between two looks at a job; a job that takes a thousand of them will not end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 1000;

fn ode(data: &Path, args: &[&str]) -> Output {
    Command::new(PROGRAM).arg("--data").arg(data).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `ode serve` on a free port; ended when it is dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(data: &Path) -> Self {
        let args = ["serve", "--listen", "127.0.0.1:0", "--gateway", "off"];
        let mut command = Command::new(PROGRAM);
        command.arg("--data").arg(data).args(args).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url =
            lines.find_map(|line| line.unwrap().strip_prefix("ODE is listening on ").map(str::to_owned));
        Server { process, url: url.unwrap() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Somebody with a browser.
struct Visitor<'a> {
    server: &'a Server,
    client: Client,
    cookie: String,
}

impl<'a> Visitor<'a> {
    async fn new(server: &'a Server) -> Self {
        let client = Client::new();
        let page = client.get(&server.url).send().await.unwrap();
        let cookie = page.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        Visitor { server, client, cookie }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let request = self.client.get(format!("{}{path}", self.server.url)).header(COOKIE, &self.cookie);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).await.1).unwrap()
    }

    async fn upload(&self, name: &str, pdf: &[u8]) -> Value {
        let part = |headers: &str, content: &[u8]| {
            let head = format!("--edge\r\nContent-Disposition: form-data; {headers}\r\n\r\n");
            [head.as_bytes(), content, b"\r\n"].concat()
        };
        let file = format!("name=\"file\"; filename=\"{name}\"\r\nContent-Type: application/pdf");
        let body = [part("name=\"mapping\"", b"words"), part(&file, pdf), b"--edge--\r\n".to_vec()].concat();
        let request = self.client.post(format!("{}/api/upload", self.server.url));
        let request = request.header(CONTENT_TYPE, "multipart/form-data; boundary=edge");
        let response = request.header(COOKIE, &self.cookie).body(body).send().await.unwrap();
        serde_json::from_str(&response.text().await.unwrap()).unwrap()
    }

    async fn wait_for_end(&self, id: &str) -> Value {
        for _ in 0..LOOKS_MAX {
            let job = self.json(&format!("/api/jobs/{id}")).await;
            if job["phase"] == "done" || job["phase"] == "failed" {
                return job;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        panic!("the job {id} does not end");
    }
}

#[tokio::test]
async fn an_uploaded_document_is_counted_and_seen_by_its_owner_alone() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let (owner, other) = (Visitor::new(&server).await, Visitor::new(&server).await);
    let uploaded = owner.upload("cat.pdf", &ode_testing::pdf::one_page(TEXT)).await;
    let id = uploaded["job"]["id"].as_str().unwrap_or_else(|| panic!("{uploaded}"));
    let job = owner.wait_for_end(id).await;
    assert_eq!((&job["pipeline"], &job["status"]), (&json!("words"), &json!("counted")), "{job}");

    let count = owner.json(&format!("/api/words/{id}")).await;
    let numbers = [&count["pages"], &count["words"], &count["distinct"]];
    assert_eq!(numbers, [&json!(1), &json!(5), &json!(4)], "{count}");
    assert_eq!(count["most"][0], json!({ "word": "the", "count": 2 }));
    let download = job["links"]["download"].as_str().unwrap_or_else(|| panic!("no download: {job}"));
    assert_eq!(owner.json(download).await, count);
    let (status, page) = owner.get(&format!("/words/{id}")).await;
    assert_eq!(status, 200);
    assert!(page.contains("<h1>cat.pdf</h1>") && page.contains("5 words on 1 pages"), "{page}");
    for path in [format!("/api/words/{id}"), format!("/words/{id}"), format!("/api/jobs/{id}")] {
        assert_eq!(other.get(&path).await.0, 404, "{path}");
    }
    let api = owner.json("/api/openapi.json").await;
    assert!(api["paths"]["/api/words/{id}"].is_object(), "the description lacks the address");

    // The operator's commands know it without a line of theirs.
    let listed = ode(data.path(), &["jobs", "list", "--pipeline", "words", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["jobs"][0]["id"], id);
}

#[tokio::test]
async fn a_document_that_cannot_be_read_fails_with_its_code() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let visitor = Visitor::new(&server).await;
    let uploaded = visitor.upload("torn.pdf", b"%PDF-1.7\nno document follows\n%%EOF\n").await;
    let id = uploaded["job"]["id"].as_str().unwrap_or_else(|| panic!("{uploaded}"));
    let job = visitor.wait_for_end(id).await;
    assert_eq!((&job["status"], &job["error"]["code"]), (&json!("failed"), &json!("UNREADABLE")), "{job}");
}

#[test]
fn the_command_counts_without_a_job_and_names_what_it_cannot_read() {
    let data = tempfile::tempdir().unwrap();
    let (good, bad) = (data.path().join("cat.pdf"), data.path().join("bad.pdf"));
    std::fs::write(&good, ode_testing::pdf::one_page(TEXT)).unwrap();
    std::fs::write(&bad, "no document").unwrap();
    let counted = ode(data.path(), &["words", good.to_str().unwrap()]);
    assert!(counted.status.success(), "{}", text(&counted.stderr));
    let row = text(&counted.stdout).lines().nth(1).unwrap_or_default().to_owned();
    assert_eq!(row.split_whitespace().skip(1).collect::<Vec<_>>(), ["1", "5", "4"], "{row}");

    let refused = ode(data.path(), &["words", bad.to_str().unwrap()]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("bad.pdf: ") && said.contains("NOT_PDF"), "{said}");
}

#[test]
fn the_program_lists_the_command_and_its_option() {
    let data = tempfile::tempdir().unwrap();
    let help = text(&ode(data.path(), &["--help"]).stdout);
    assert!(help.contains("  words "), "{help}");
    assert!(text(&ode(data.path(), &["worker", "--help"]).stdout).contains("--words-at-once"));
}
