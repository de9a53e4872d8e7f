//! Events as they happen.

use super::client::{Client, Makes, pdf, until, web, work};
use crate::harness::{Ode, on_both};
use crate::serve::{PATIENCE, assert_stopped};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

on_both!(
    what_happens_to_a_job_is_heard_as_it_happens,
    who_comes_back_hears_what_they_missed_and_nothing_twice,
    who_listens_alone_and_comes_back_hears_nothing_twice,
    after_a_restart_nothing_is_lost,
    sessions_do_not_hear_each_other,
    what_another_process_does_is_heard_too,
    who_listens_is_told_that_a_job_was_removed,
    a_stream_ends_with_its_key,
);

/// A stream that is listened to.
struct Listener {
    lines: BufReader<TcpStream>,
    last: String,
}

/// What was heard.
#[derive(Debug, PartialEq)]
struct Heard {
    kind: String,
    id: String,
    data: Value,
}

impl Listener {
    fn new(client: &Client) -> Self {
        Listener::after(client, "")
    }

    /// Goes on after a line.
    fn after(client: &Client, last: &str) -> Self {
        let client = if last.is_empty() { client.clone() } else { client.with("Last-Event-ID", last) };
        let stream = client.with("Accept", "text/event-stream").open("GET", "/api/stream", "", 0);
        let mut lines = BufReader::new(stream);
        let (mut head, mut line) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
            head.push_str(&line.to_lowercase());
        }
        assert!(
            head.starts_with("http/1.1 200") && head.contains("content-type: text/event-stream"),
            "{head}"
        );
        let mut listener = Listener { lines, last: String::new() };
        assert_eq!(listener.next().kind, "ready");
        listener
    }

    /// The next that is said.
    fn next(&mut self) -> Heard {
        let mut heard = Heard { kind: String::new(), id: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the stream ended");
            let line = line.trim_end();
            if let Some(kind) = line.strip_prefix("event: ") {
                heard.kind = kind.to_owned();
            } else if let Some(id) = line.strip_prefix("id: ") {
                heard.id = id.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                heard.data = serde_json::from_str(data).unwrap();
            } else if line.is_empty() && !heard.kind.is_empty() {
                self.last.clone_from(&heard.id);
                return heard;
            }
        }
    }

    /// The next events, by name.
    fn hear<const N: usize>(&mut self) -> [String; N] {
        std::array::from_fn(|_| {
            let heard = self.next();
            assert_eq!(heard.kind, "job", "{heard:?}");
            heard.data["event"].as_str().unwrap().to_owned()
        })
    }
}

fn what_happens_to_a_job_is_heard_as_it_happens(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let mut listener = Listener::new(&browser);
    let job = browser.uploaded("a.pdf", &pdf(1));
    let heard = listener.next();
    assert_eq!((heard.kind.as_str(), &heard.data["event"]), ("job", &"created".into()));
    assert_eq!((&heard.data["job"]["id"], &heard.data["job"]["filename"]), (&job["id"], &"a.pdf".into()));
    assert_eq!(heard.id, heard.data["seq"].to_string());
    assert_eq!(listener.hear(), ["queued"]);
    work(ode, Makes::Xml("<a/>"));
    assert_eq!(listener.hear(), ["processing"]);
    let heard = listener.next();
    assert_eq!(
        (&heard.data["event"], &heard.data["job"]["status"]),
        (&"complete".into(), &"complete".into())
    );
    // Stopping the server ends the stream in order, at once.
    assert_stopped(&serving.stop(Signal::TERM));
    let mut rest = String::new();
    listener.lines.read_to_string(&mut rest).unwrap();
}

fn who_comes_back_hears_what_they_missed_and_nothing_twice(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    // Somebody else of the same session keeps listening.
    let _tab = Listener::new(&browser);
    let mut listener = Listener::new(&browser);
    browser.uploaded("a.pdf", &pdf(1));
    assert_eq!(listener.hear(), ["created", "queued"]);
    let last = listener.last.clone();
    drop(listener);
    work(ode, Makes::Xml("<a/>"));
    let mut witness = Listener::after(&browser, &last);
    assert_eq!(witness.hear(), ["processing", "complete"]);
    browser.uploaded("b.pdf", &pdf(2));
    assert_eq!(witness.hear(), ["created", "queued"]);
}

fn who_listens_alone_and_comes_back_hears_nothing_twice(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let mut listener = Listener::new(&browser);
    browser.uploaded("0.pdf", &pdf(1));
    assert_eq!(listener.hear(), ["created", "queued"]);
    for at in 1..4_u8 {
        let last = listener.last.clone();
        drop(listener);
        let name = format!("{at}.pdf");
        browser.uploaded(&name, &pdf(1 + usize::from(at)));
        listener = Listener::after(&browser, &last);
        for event in ["created", "queued"] {
            let Heard { data, .. } = listener.next();
            assert_eq!((&data["event"], &data["job"]["filename"]), (&event.into(), &name.as_str().into()));
        }
    }
}

fn after_a_restart_nothing_is_lost(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let mut listener = Listener::new(&browser);
    browser.uploaded("a.pdf", &pdf(1));
    assert_eq!(listener.hear(), ["created", "queued"]);
    let last = listener.last.clone();
    assert_stopped(&serving.stop(Signal::TERM));
    work(ode, Makes::Xml("<a/>"));
    let serving = web(ode);
    let browser = Client { headers: browser.headers.clone(), ..Client::stranger(&serving) };
    let mut listener = Listener::after(&browser, &last);
    // Around the break a line may come twice; each says which it is.
    let mut heard = Vec::new();
    while heard.last().is_none_or(|event| event != "complete") {
        let next = listener.next();
        if next.data["seq"].as_i64().unwrap() > last.parse().unwrap() {
            heard.push(next.data["event"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(heard, ["processing", "complete"]);
}

fn sessions_do_not_hear_each_other(ode: &Ode) {
    let serving = web(ode);
    let (one, two) = (Client::browser(&serving), Client::browser(&serving));
    let (mut ears_one, mut ears_two) = (Listener::new(&one), Listener::new(&two));
    let first = one.uploaded("a.pdf", &pdf(1));
    let second = two.uploaded("a.pdf", &pdf(1));
    for (ears, job) in [(&mut ears_one, first), (&mut ears_two, second)] {
        for _ in 0..2 {
            assert_eq!(ears.next().data["job"]["id"], job["id"]);
        }
    }
}

fn what_another_process_does_is_heard_too(ode: &Ode) {
    let (one, two) = (web(ode), web(ode));
    let browser = Client::browser(&one);
    let elsewhere = Client { headers: browser.headers.clone(), ..Client::stranger(&two) };
    let mut listener = Listener::new(&browser);
    let started = std::time::Instant::now();
    elsewhere.uploaded("a.pdf", &pdf(1));
    assert_eq!(listener.hear(), ["created", "queued"]);
    assert!(started.elapsed() < PATIENCE / 3, "{:?}", started.elapsed());
}

fn a_stream_ends_with_its_key(ode: &Ode) {
    let serving = web(ode);
    let [lost, kept] = std::array::from_fn(|_| ode.json(["keys", "create", "--organisation", "acme"]));
    let program = |key: &Value| Client::program(&serving, key["key"].as_str().unwrap());
    let (mut ears, mut others) = (Listener::new(&program(&lost)), Listener::new(&program(&kept)));
    program(&kept).uploaded("a.pdf", &pdf(1));
    assert_eq!(ears.hear(), ["created", "queued"]);
    ode.ok(["keys", "revoke", lost["id"].as_str().unwrap()]);
    until("it is refused", || program(&lost).get("/api/jobs").code() == 401);
    // What was known a moment ago may still be believed, for a second.
    let deadline = std::time::Instant::now() + std::time::Duration::from_millis(1100);
    until("the second is over", || std::time::Instant::now() > deadline);
    program(&kept).uploaded("b.pdf", &pdf(2));
    assert_eq!(others.hear(), ["created", "queued", "created", "queued"]);
    let mut rest = String::new();
    ears.lines.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("b.pdf") && !rest.contains("event: job"), "{rest}");
}

fn who_listens_is_told_that_a_job_was_removed(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let mut listener = Listener::new(&browser);
    let job = browser.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Xml("<a/>"));
    assert_eq!(listener.hear(), ["created", "queued", "processing", "complete"]);
    let path = format!("/api/jobs/{}", job["id"].as_str().unwrap());
    assert_eq!(browser.send("DELETE", &path, "", b"").code(), 204);
    assert_eq!(listener.next().kind, "resync");
    assert_eq!(browser.list()["jobs"], Value::Array(Vec::new()));
}
