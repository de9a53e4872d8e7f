//! `ode serve`, `ode web`, `ode worker`: they start with nothing, answer, and stop when asked.

use crate::harness::{Ode, Ran, headings, on_both};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

on_both!(
    serving_starts_with_nothing_answers_and_stops,
    a_worker_is_seen_while_it_runs_and_gone_when_it_stopped,
);

/// Nothing that a test waits for takes longer than this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A process that serves.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) first_line: String,
    /// Read all along: a pipe holds little of what a process has to say.
    stderr: Option<JoinHandle<String>>,
}

impl Serving {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut pipe = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut said = Vec::new();
            pipe.read_to_end(&mut said).unwrap();
            String::from_utf8_lossy(&said).into_owned()
        });
        let mut first_line = String::new();
        stdout.read_line(&mut first_line).unwrap();
        if first_line.is_empty() {
            panic!("it ended instead of serving: {}", stderr.join().unwrap());
        }
        Serving { child, stdout, first_line, stderr: Some(stderr) }
    }

    fn all(ode: &Ode) -> Self {
        Serving::start(&mut ode.command(["serve", "--listen", "127.0.0.1:0"]))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let address = self.first_line.trim_end().split_once(" is listening on http://");
        address.unwrap_or_else(|| panic!("{:?}", self.first_line)).1.parse().unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        ask(self.address(), &format!("GET {path}"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to stop, and waits until it did.
    pub(crate) fn stop(self, signal: Signal) -> Ran {
        self.signal(signal);
        self.ended()
    }

    pub(crate) fn ended(mut self) -> Ran {
        let deadline = Instant::now() + PATIENCE;
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(Instant::now() < deadline, "it did not stop within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut stdout = self.first_line.clone();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Ran { code, stdout, stderr }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has usually ended; a test that failed leaves nothing behind either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: String,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub(crate) fn ask(address: SocketAddr, what: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    hear(stream)
}

/// An answer to its end.
pub(crate) fn hear(mut stream: TcpStream) -> Answer {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let (status, headers) = head.split_once("\r\n").unwrap();
    Answer { status: status.to_owned(), headers: headers.to_lowercase(), body: body.to_owned() }
}

pub(crate) fn assert_stopped(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.ends_with("\nStopped.\n"), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

fn serving_starts_with_nothing_answers_and_stops(ode: &Ode) {
    // Nothing, but for the database that a server has to have.
    ode.ok(["migrate", "down", "--to", "0", "--yes"]);
    for signal in [Signal::INT, Signal::TERM] {
        let serving = Serving::all(ode);
        let answer = serving.get("/api/healthz");
        assert_eq!(answer.status, "HTTP/1.1 200 OK", "{answer:?}");
        assert!(answer.headers.contains("content-type: application/json"), "{answer:?}");
        let expected = json!({
            "status": "ok", "version": env!("CARGO_PKG_VERSION"),
            "checks": [{ "name": "database", "ok": true }, { "name": "files", "ok": true }],
        });
        assert_eq!(answer.json(), expected);
        assert_stopped(&serving.stop(signal));
    }
}

fn a_worker_is_seen_while_it_runs_and_gone_when_it_stopped(ode: &Ode) {
    let worker = Serving::start(&mut ode.command(["worker"]));
    let workers = ode.json(["workers"]);
    assert_eq!(workers.as_array().unwrap().len(), 1);
    let id = workers[0]["id"].as_str().unwrap();
    assert_eq!(worker.first_line, format!("Worker {id} is running. Stop it with ctrl-C.\n"));
    assert_eq!(workers[0]["pid"], worker.child.id());
    assert_eq!((&workers[0]["is_alive"], &workers[0]["running"]), (&json!(true), &json!(0)));
    let table = ode.ok(["workers"]);
    assert_eq!(
        headings(&table),
        ["WORKER", "HOST", "PID", "VERSION", "STATE", "JOBS", "STARTED", "LAST", "SEEN"]
    );
    assert!(table.lines().nth(1).unwrap().starts_with(id) && table.contains("  alive  "), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
    assert_stopped(&worker.stop(Signal::TERM));
    assert_eq!(ode.json(["workers"]), json!([]));
}

#[test]
fn serving_makes_what_it_needs() {
    let ode = Ode::new();
    let serving = Serving::all(&ode);
    assert_eq!(serving.get("/api/healthz").status, "HTTP/1.1 200 OK");
    assert!(ode.data().join("ode.db").is_file() && ode.data().join("files").is_dir());
    // The command line works beside it.
    let reference = ode.add("xml");
    assert_eq!(ode.json(["jobs", "list"])["jobs"][0]["reference"], reference);
    assert_eq!(ode.json(["workers"]).as_array().unwrap().len(), 1);
    assert_stopped(&serving.stop(Signal::INT));
}

#[test]
fn what_is_not_there_is_told_as_a_problem_document() {
    let ode = Ode::new();
    let serving = Serving::all(&ode);
    let answer = serving.get("/api/nonsense");
    assert_eq!(answer.status, "HTTP/1.1 404 Not Found");
    assert!(answer.headers.contains("content-type: application/problem+json"), "{answer:?}");
    let problem = answer.json();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(404), &json!("NOT_FOUND")));
    assert!(problem["title"].is_string() && problem["detail"].is_string() && problem["type"].is_string());

    let answer = ask(serving.address(), "POST /api/healthz");
    assert_eq!(answer.status, "HTTP/1.1 405 Method Not Allowed");
    assert!(answer.headers.contains("content-type: application/problem+json"), "{answer:?}");
    assert!(answer.headers.contains("allow: get"), "{answer:?}");
    assert_eq!(answer.json()["status"], 405);
    assert!(serving.get("/").body.starts_with("<!doctype html>"));
}

#[test]
fn a_part_that_fails_is_named_without_what_is_nobodys_business() {
    let ode = Ode::postgres();
    let serving = Serving::start(&mut ode.command(["web", "--listen", "127.0.0.1:0"]));
    assert_eq!(serving.get("/api/healthz").status, "HTTP/1.1 200 OK");
    let name = ode.database_name();
    let server = Ode::empty_postgres();
    server.sql(&format!("DROP DATABASE {name} WITH (FORCE)"));
    let answer = serving.get("/api/healthz");
    assert_eq!(answer.status, "HTTP/1.1 503 Service Unavailable", "{answer:?}");
    let health = answer.json();
    assert_eq!(health["status"], "unavailable");
    assert_eq!((&health["checks"][0]["ok"], &health["checks"][1]["ok"]), (&json!(false), &json!(true)));
    assert!(health["checks"][0]["message"].is_string());
    assert!(!answer.body.contains(&name), "{answer:?}");
    assert_stopped(&serving.stop(Signal::TERM));
}

#[test]
fn a_file_store_that_is_silent_does_not_keep_the_answer_away() {
    let ode = Ode::sqlite();
    // The system takes connections for it, and nobody answers them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let mut command = ode.command(["web", "--listen", "127.0.0.1:0", "--storage", "s3://files"]);
    command.args(["--s3-endpoint", &endpoint]);
    command.envs([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "c")]);
    let serving = Serving::start(&mut command);
    let answer = serving.get("/api/healthz");
    assert_eq!(answer.status, "HTTP/1.1 503 Service Unavailable", "{answer:?}");
    assert_eq!(answer.json()["checks"][1]["message"], "No answer within 5 seconds");
}

#[test]
fn an_address_that_is_taken_is_told_as_such() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ode = Ode::new();
    let ran = ode.run(["serve", "--listen", &address]);
    ran.assert_refused(&[&format!("Another program listens on {address}"), "--listen"]);
    assert!(!ode.data().exists(), "it was made in vain");
}

#[test]
fn everything_has_a_gateway_too() {
    let ode = Ode::new();
    let mut serving =
        Serving::start(&mut ode.command(["serve", "--listen", "127.0.0.1:0", "--gateway", "127.0.0.1:0"]));
    let mut line = String::new();
    serving.stdout.read_line(&mut line).unwrap();
    let address =
        line.trim_end().strip_prefix("Its gateway is listening on http://").unwrap().parse().unwrap();
    assert_eq!(ask(address, "GET /healthz").status, "HTTP/1.1 200 OK");
    assert_eq!(serving.get("/api/healthz").status, "HTTP/1.1 200 OK");
    assert_stopped(&serving.stop(Signal::TERM));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_gateways_address_that_is_taken_is_told_as_such() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ode = Ode::new();
    let ran = ode.run(["serve", "--listen", "127.0.0.1:0", "--gateway", &address]);
    ran.assert_refused(&[&format!("Another program listens on {address}"), "--gateway off"]);
    assert!(!ode.data().exists(), "it was made in vain");
}

#[test]
fn an_address_may_be_a_name() {
    let ode = Ode::new();
    let serving = Serving::start(&mut ode.command(["web", "--listen", "localhost:0"]));
    assert_eq!(serving.get("/api/healthz").status, "HTTP/1.1 200 OK");
}

#[test]
fn two_processes_can_serve_one_directory() {
    let ode = Ode::new();
    let (first, second) = (Serving::all(&ode), Serving::all(&ode));
    assert_ne!(first.address(), second.address());
    for serving in [&first, &second] {
        assert_eq!(serving.get("/api/healthz").status, "HTTP/1.1 200 OK");
    }
    assert_eq!(ode.json(["workers"]).as_array().unwrap().len(), 2);
    assert_stopped(&first.stop(Signal::INT));
    assert_eq!(second.get("/api/healthz").status, "HTTP/1.1 200 OK");
    assert_stopped(&second.stop(Signal::INT));
}

#[test]
fn a_request_that_never_ends_does_not_keep_it_from_stopping() {
    let ode = Ode::new();
    let serving = Serving::start(&mut ode.command(["serve", "--listen", "127.0.0.1:0", "--grace", "1"]));
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.write_all(b"GET /api/healthz HTTP/1.1\r\nHost:").unwrap();
    // By the time that another request is answered, this one has arrived.
    assert_eq!(serving.get("/api/healthz").status, "HTTP/1.1 200 OK");
    assert_stopped(&serving.stop(Signal::TERM));
}

#[test]
fn who_asks_a_second_time_does_not_want_to_wait() {
    let ode = Ode::new();
    let serving = Serving::start(&mut ode.command(["serve", "--listen", "127.0.0.1:0", "--grace", "3600"]));
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.write_all(b"GET /api/healthz HTTP/1.1\r\nHost:").unwrap();
    assert_eq!(serving.get("/api/healthz").status, "HTTP/1.1 200 OK");
    serving.signal(Signal::INT);
    // It has heard the first signal when it takes no more connections.
    let (address, deadline) = (serving.address(), Instant::now() + PATIENCE);
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < deadline, "it still takes connections");
        std::thread::sleep(Duration::from_millis(5));
    }
    let ran = serving.stop(Signal::INT);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stderr.contains("Stopped at once."), "{ran:?}");
}

#[test]
fn it_goes_on_when_nobody_reads_what_it_says() {
    let ode = Ode::new();
    let (reader, nobody) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = ode.command(["serve", "--listen", "127.0.0.1:0", "--log", "debug"]);
    let mut child = command.stdout(Stdio::piped()).stderr(nobody).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim_end().rsplit("http://").next().unwrap().parse().unwrap();
    assert_eq!(ask(address, "GET /api/healthz").status, "HTTP/1.1 200 OK");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
