//! A browser of few words, and a worker that does what it is told.

use crate::convert::invoice;
use crate::harness::Ode;
use crate::serve::{Answer, PATIENCE, Serving};
use ode_job::{Artifact, Claimed, Ended, ErrorCode, Failure, WorkerId};
use ode_store::{Blobs, BlobsConfig, ClaimRequest, Finish};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use uuid::Uuid;

/// The web side alone: what workers do is up to the test.
pub(crate) fn web(ode: &Ode) -> Serving {
    web_with(ode, &[])
}

pub(crate) fn web_with(ode: &Ode, more: &[&str]) -> Serving {
    let mut args = vec!["web", "--listen", "127.0.0.1:0"];
    args.extend(more);
    Serving::start(&mut ode.command(args))
}

/// Somebody who asks: a browser with its cookie, or a program with its key.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) headers: Vec<(String, String)>,
}

impl Client {
    /// One who brings nothing.
    pub(crate) fn stranger(serving: &Serving) -> Self {
        Client { address: serving.address(), headers: Vec::new() }
    }

    /// A browser that was here before.
    pub(crate) fn browser(serving: &Serving) -> Self {
        let stranger = Client::stranger(serving);
        let answer = stranger.get("/api/jobs");
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        stranger.with("Cookie", &cookie)
    }

    /// A program with this key.
    pub(crate) fn program(serving: &Serving, key: &str) -> Self {
        Client::stranger(serving).with("Authorization", &format!("Bearer {key}"))
    }

    /// The same with one header more.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", b"")
    }

    pub(crate) fn post(&self, path: &str) -> Answer {
        self.send("POST", path, "", b"")
    }

    pub(crate) fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Answer {
        let mut stream = self.open(method, path, kind, body.len());
        // Who is refused early may close before all is sent; the answer says why.
        let _ = stream.write_all(body);
        hear(stream)
    }

    /// Sends the head of a request.
    pub(crate) fn open(&self, method: &str, path: &str, kind: &str, length: usize) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if !self.headers.iter().any(|(name, _)| name == "Connection") {
            head.push_str("Connection: close\r\n");
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !kind.is_empty() {
            head.push_str(&format!("Content-Type: {kind}\r\n"));
        }
        if method != "GET" {
            head.push_str(&format!("Content-Length: {length}\r\n"));
        }
        write!(stream, "{head}\r\n").unwrap();
        stream
    }

    pub(crate) fn upload(&self, files: &[(&str, &[u8])], fields: &[(&str, &str)]) -> Answer {
        self.send("POST", "/api/upload", FORM, &form(files, fields))
    }

    /// Uploads one document and answers its job.
    #[track_caller]
    pub(crate) fn uploaded(&self, name: &str, content: &[u8]) -> Value {
        let answer = self.upload(&[(name, content)], &[]);
        assert_eq!(answer.code(), 201, "{answer:?}");
        answer.json()["job"].clone()
    }

    pub(crate) fn list(&self) -> Value {
        let answer = self.get("/api/jobs");
        assert_eq!(answer.code(), 200, "{answer:?}");
        answer.json()
    }
}

pub(crate) const FORM: &str = "multipart/form-data; boundary=B";

pub(crate) fn form(files: &[(&str, &[u8])], fields: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, content) in files {
        write!(body, "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n")
            .unwrap();
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    for (name, value) in fields {
        write!(body, "--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").unwrap();
    }
    body.extend_from_slice(b"--B--\r\n");
    body
}

/// An answer to its end, or to where the other side broke off.
pub(crate) fn hear(mut stream: TcpStream) -> Answer {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let (status, headers) = head.split_once("\r\n").unwrap();
    Answer { status: status.to_owned(), headers: headers.to_owned(), body: body.to_owned() }
}

impl Answer {
    pub(crate) fn code(&self) -> u16 {
        self.status.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// A header's value, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.headers.split("\r\n").filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }

    /// It is a problem document with this status and code, in sentences.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!(self.code(), status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{self:?}");
        assert_eq!(problem["type"], format!("urn:ode:error:{code}"));
        assert!(problem["title"].is_string(), "{self:?}");
        assert!(problem["detail"].as_str().unwrap().ends_with('.'), "{self:?}");
    }
}

/// A document that differs from others by its number.
pub(crate) fn pdf(number: usize) -> Vec<u8> {
    invoice(&format!("INV-{number}"))
}

/// One of this size.
pub(crate) fn large_pdf(bytes: usize) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let end = b"\nstartxref\n9\n%%EOF\n";
    file.resize(bytes - end.len(), b' ');
    file.extend_from_slice(end);
    file
}

/// What a worker makes of the oldest job that waits.
pub(crate) enum Makes {
    Xml(&'static str),
    Failure(ErrorCode),
    /// A failure that passes.
    Setback(ErrorCode),
    /// It takes it, and is still at it.
    Nothing,
}

pub(crate) fn work(ode: &Ode, makes: Makes) {
    ode.with_store(async |store| {
        let (worker, silence) = (WorkerId(Uuid::new_v4()), Duration::from_secs(3600));
        store.register(worker, "test", "0").await.unwrap();
        store.beat(worker, silence, 1, false).await.unwrap();
        let (lane, count, after, lease) = (ode_xml::machine::LANE, 1, Uuid::nil(), silence);
        let request = ClaimRequest { lane, worker, count, after, lease, attempt_timeout: lease };
        let job = store.claim(request).await.unwrap().remove(0);
        let (ended, artifacts) = match makes {
            Makes::Nothing => return,
            Makes::Failure(code) => (Ended::Failed(Failure::rejected(code, code.sentence())), Vec::new()),
            Makes::Setback(code) => (Ended::Failed(Failure::retryable(code, code.sentence())), Vec::new()),
            Makes::Xml(xml) => (Ended::Succeeded, vec![stored(ode, &job, xml).await]),
        };
        let result = (ended == Ended::Succeeded).then(|| json!({ "pages": 1 }));
        store.finish(vec![Finish { result, artifacts, ..Finish::new(job, ended) }]).await.unwrap();
    });
}

async fn stored(ode: &Ode, job: &Claimed, xml: &str) -> Artifact {
    let blobs = Blobs::open(&BlobsConfig::Local(ode.data().join("files"))).unwrap();
    let content = vec![xml.to_owned().into()];
    let stored = blobs.put(job.lease.job(), job.lease.fence(), 0, content).await.unwrap();
    stored[0].artifact("result", "invoice.xml", "application/xml")
}

/// Every file in the file store.
pub(crate) fn files(ode: &Ode) -> Vec<std::path::PathBuf> {
    fn walk(directory: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(&ode.data().join("files"), &mut found);
    found
}

/// All jobs, as the operator sees them.
pub(crate) fn all_jobs(ode: &Ode) -> Vec<Value> {
    ode.json(["jobs", "list", "--limit", "1000"])["jobs"].as_array().unwrap().clone()
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE * 3;
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
