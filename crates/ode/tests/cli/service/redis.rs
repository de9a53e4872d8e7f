//! Redis is a hint: it tells sooner, and may die at any time.

use super::{key, pdf, request};
use crate::harness::Ode;
use crate::serve::Serving;
use crate::web::client::{Client, until, web_with};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A Redis of the test's own, which it may kill.
struct Redis {
    port: u16,
    server: Child,
}

impl Redis {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = std::env::var("ODE_TEST_REDIS_SERVER").expect("run the tests with `tests/run`");
        let mut command = Command::new(program);
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        let server = command.stdout(Stdio::null()).spawn().unwrap();
        until("Redis answers", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Redis { port, server }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What it answers to a command.
    fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "{command}\r\nQUIT\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.trim_end_matches("+OK\r\n").to_owned()
    }

    fn kill(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // A test that killed it already has nothing left to end.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn documents_are_converted_while_redis_dies() {
    let ode = &Ode::postgres();
    let mut redis = Redis::start();
    let url = redis.url();
    let inbox = ode.path("inbox");
    std::fs::create_dir_all(&inbox).unwrap();
    let args = ["--redis", &url, "--input-root", inbox.to_str().unwrap()];
    let web = web_with(ode, &args);
    let _worker = Serving::start(ode.command(["worker"]).args(args));
    let client = Client::program(&web, &key(ode, "acme"));
    let asked = |number: usize| {
        let name = format!("{number}.pdf");
        std::fs::write(inbox.join(&name), pdf(&format!("RE-{number}"))).unwrap();
        request(&format!("n{number}"), &format!("file://{}/{name}", inbox.display()))
    };
    let first = client.submitted(&asked(0));
    assert_eq!(client.ended(&first)["status"], "completed");
    until("a worker is known there", || redis.ask("HLEN ode:workers:active") == ":1\r\n");
    let batch: Vec<Value> = (1..25).map(asked).collect();
    let body = json!({ "jobs": batch }).to_string();
    let taken = client.send("POST", "/v1/jobs/batch", "application/json", body.as_bytes());
    redis.kill();
    assert_eq!(taken.json()["accepted"], 24, "{taken:?}");
    // What is asked for without it is done like what was asked for with it.
    let late = client.submitted(&asked(25));
    let ids = taken.json()["jobs"].as_array().unwrap().clone();
    for id in ids.iter().map(|job| job["job_id"].as_str().unwrap()).chain([late.as_str()]) {
        let job = client.ended(id);
        assert_eq!((&job["status"], &job["retry_count"]), (&json!("completed"), &json!(0)), "{job}");
    }
}
