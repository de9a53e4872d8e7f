//! The routes over a real socket, with the converter and a child that does what the document says.

use super::*;
use crate::conversion::stub::{self, DOCUMENT_BYTES_MAX, Document};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Nothing that a test waits for takes longer than this.
const PATIENCE: Duration = Duration::from_secs(30);
/// A gateway that serves.
struct Serving {
    runtime: Runtime,
    address: SocketAddr,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    ended: tokio::task::JoinHandle<()>,
}

impl Serving {
    fn start() -> Self {
        Serving::with(GatewayLimits::default())
    }

    fn with(limits: GatewayLimits) -> Self {
        Serving::following(limits, None)
    }

    fn following(limits: GatewayLimits, folder: Option<std::path::PathBuf>) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, converter) =
            (listener.local_addr().unwrap(), runtime.block_on(stub::converter(folder)));
        let (stop, stopped) = oneshot::channel();
        let served = serve_gateway(listener, Arc::new(converter), limits, async { drop(stopped.await) });
        let ended = runtime.spawn(served);
        Serving { runtime, address, stop: Mutex::new(Some(stop)), ended }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn say(&self, request: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        stream
    }

    fn get(&self, path: &str) -> Answer {
        hear(self.say(format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes()))
    }

    fn post(&self, parts: &[(&str, &str)]) -> Answer {
        hear(self.say(&request(&form(parts))))
    }

    /// Waits until so many requests are under way.
    fn wait_for(&self, in_flight: &str) {
        let started = Instant::now();
        while self.in_flight() != in_flight {
            assert!(started.elapsed() < PATIENCE, "{} requests are under way", self.in_flight());
            std::thread::yield_now();
        }
    }

    fn in_flight(&self) -> String {
        let metrics = self.get("/metrics").body;
        metrics.lines().find_map(|line| line.strip_prefix("ode_gateway_in_flight ")).unwrap().to_owned()
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn assert_problem(&self, status: u16, code: &str, detail: &str) {
        let body: Value =
            serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!((self.status, body["code"].as_str()), (status, Some(code)), "{self:?}");
        assert_eq!(body["status"], status, "{self:?}");
        assert_eq!(body["type"], format!("urn:ode:error:{code}"), "{self:?}");
        assert!(body["title"].is_string(), "{self:?}");
        assert!(body["detail"].as_str().unwrap().contains(detail), "{detail:?} is not said: {self:?}");
        assert!(self.headers.contains("content-type: application/problem+json"), "{self:?}");
        assert_eq!(self.headers.contains("retry-after: "), status == 503, "{self:?}");
    }
}

fn hear(mut stream: TcpStream) -> Answer {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, headers: head.to_lowercase(), body: body.to_owned() }
}

fn form(parts: &[(&str, &str)]) -> String {
    let part = |(name, value): &(&str, &str)| {
        format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"x\"\r\n\r\n{value}\r\n")
    };
    parts.iter().map(part).collect::<String>() + "--B--\r\n"
}

fn head(more: &str) -> String {
    format!(
        "POST /process HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: multipart/form-data; boundary=B\r\n\
         {more}\r\n"
    )
}

fn request(body: &str) -> Vec<u8> {
    (head(&format!("content-length: {}\r\n", body.len())) + body).into_bytes()
}

#[test]
fn a_document_becomes_xml_with_what_there_is_to_say_about_it() {
    let serving = Serving::start();
    let finding =
        Finding { severity: "review".into(), code: "A".into(), field: None, message: "Größe €".into() };
    let document = Document { findings: vec![finding; 3], ..Document::default() }.text();
    let answer = serving.post(&[("file", &document)]);
    let expected = format!("<asked output=\"own\" within=\"false\" bytes=\"{}\"/>", document.len());
    assert_eq!((answer.status, answer.body), (200, expected));
    for header in [
        "content-type: application/xml\r\n",
        "ode-mapping: pt_simon_invoice_v1\r\n",
        "ode-findings: 3\r\n",
        "\"message\":\"gr\\u00f6\\u00dfe \\u20ac\"",
    ] {
        assert!(answer.headers.contains(header), "{:?}", answer.headers);
    }
    // In any order.
    let document = Document { source: Some("embedded:ä\nb".into()), ..Document::default() }.text();
    let answer =
        serving.post(&[("provenance", "true"), ("output", "ubl"), ("file", &document), ("mapping", "auto")]);
    let expected = format!("<asked output=\"ubl\" within=\"true\" bytes=\"{}\"/>", document.len());
    assert_eq!(answer.body, expected);
    assert!(answer.headers.contains("ode-mapping: embedded:??b\r\n"), "{answer:?}");
    let metrics = serving.get("/metrics").body;
    assert!(metrics.contains("ode_gateway_conversions_total{code=\"OK\"} 2\n"), "{metrics}");
}

#[test]
fn a_form_that_is_wrong_is_refused_with_what_is_wrong() {
    let serving = Serving::start();
    let long = "x".repeat(300);
    for (parts, detail) in [
        (vec![], "no field named file"),
        (vec![("mapping", "a")], "no field named file"),
        (vec![("file", "a"), ("maping", "auto")], "a field \"maping\" that is not known"),
        (vec![("file", "a"), ("file", "b")], "the field file twice"),
        (vec![("file", "a"), ("colour", "blue")], "It takes file, mapping, output and provenance"),
        (vec![("file", "a"), ("", "blue")], "It takes file, mapping, output and provenance"),
        (vec![("file", "a"), ("mapping", &long)], "longer than 200 characters"),
        (vec![("file", "a"), ("provenance", "perhaps")], "either true or false"),
    ] {
        serving.post(&parts).assert_problem(400, "INVALID", detail);
    }
    let mut binary = request(&form(&[("file", "a"), ("mapping", "AA")]));
    let at = binary.windows(2).rposition(|pair| pair == b"AA").unwrap();
    binary[at] = 0xff;
    hear(serving.say(&binary)).assert_problem(400, "INVALID", "not text in UTF-8");
    hear(serving.say(&request("what?"))).assert_problem(400, "INVALID", "damaged or ends early");
    let cut = form(&[("file", "a")]).replace("--B--", "");
    hear(serving.say(&request(&cut))).assert_problem(400, "INVALID", "damaged or ends early");
    for types in ["application/pdf", "multipart/form-data", ""] {
        let request = format!(
            "POST /process HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: {types}\r\n\
             content-length: 1\r\n\r\na"
        );
        hear(serving.say(request.as_bytes())).assert_problem(400, "INVALID", "multipart/form-data");
    }
}

#[test]
fn too_much_is_refused_without_being_read() {
    let serving = Serving::start();
    let detail = "which is the limit";
    // Said to be too large: nothing of it is waited for.
    let declared = head("content-length: 9000000000\r\n");
    hear(serving.say(declared.as_bytes())).assert_problem(413, "TOO_LARGE", detail);
    // Larger than a document may be, though the form as a whole might be allowed.
    let document = "x".repeat(DOCUMENT_BYTES_MAX as usize + 1);
    serving.post(&[("file", &document)]).assert_problem(413, "TOO_LARGE", detail);
    let document = "x".repeat(DOCUMENT_BYTES_MAX as usize);
    assert_eq!(serving.post(&[("file", &document)]).status, 200);
    // Not said how large, and without end: refused while it is still being sent, in any field.
    for name in ["file", "mapping"] {
        let mut stream = serving.say(head("transfer-encoding: chunked\r\n").as_bytes());
        let start = form(&[(name, "")]).replace("\r\n--B--\r\n", "");
        write!(stream, "{:x}\r\n{start}\r\n", start.len()).unwrap();
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
        // It may hang up before all of this is sent, and does not wait for an end that never comes.
        for _ in 0..100 {
            if stream.write_all(chunk.as_bytes()).is_err() {
                break;
            }
        }
        let (status, code) = if name == "file" { (413, "TOO_LARGE") } else { (400, "INVALID") };
        hear(stream).assert_problem(status, code, "");
    }
}

#[test]
fn a_length_that_is_a_lie_does_no_harm() {
    let serving = Serving::start();
    // More is said than comes.
    let body = form(&[("file", "a")]).replace("--B--", "");
    let stream = serving.say((head("content-length: 5000\r\n") + &body).as_bytes());
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    (&stream).read_to_string(&mut answer).unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    // Less is said than comes.
    let body = form(&[("file", "aaaaaaaaaa")]);
    let lie = head("content-length: 60\r\n") + &body;
    hear(serving.say(lie.as_bytes())).assert_problem(400, "INVALID", "damaged or ends early");
    assert_eq!(serving.get("/healthz").status, 200);
}

#[test]
fn each_failure_has_its_status_and_our_own_faults_stay_ours() {
    let serving = Serving::start();
    for (code, status) in [
        ("INVALID", 400),
        ("TOO_LARGE", 413),
        ("NOT_PDF", 415),
        ("UNREADABLE", 422),
        ("UNKNOWN_MAPPING", 422),
        ("NO_MAPPING", 422),
        ("NO_TEXT", 422),
        ("BUSY", 503),
    ] {
        let answer = serving.post(&[("file", &failing(code))]);
        answer.assert_problem(status, code, "secret words.");
        assert!(!answer.body.contains("detail\":\"secret detail"), "{answer:?}");
    }
    for code in ["UNKNOWN", "IO_ERROR", "GW_5XX"] {
        let answer = serving.post(&[("file", &failing(code))]);
        answer.assert_problem(500, "UNKNOWN", "our fault");
        assert!(!answer.body.contains("secret"), "{answer:?}");
    }
    let metrics = serving.get("/metrics").body;
    assert!(metrics.contains("ode_gateway_conversions_total{code=\"UNKNOWN\"} 3\n"), "{metrics}");
    assert!(metrics.contains("ode_gateway_conversions_total{code=\"NOT_PDF\"} 1\n"), "{metrics}");
}

fn failing(code: &str) -> String {
    Document { fails: Some(code.into()), ..Document::default() }.text()
}

fn waiting() -> String {
    Document { waits: true, ..Document::default() }.text()
}

#[test]
fn a_mapping_or_output_that_does_not_exist_is_refused_before_a_child_is_started() {
    let serving = Serving::start();
    let answer = serving.post(&[("file", &waiting()), ("mapping", "no_such_v1")]);
    answer.assert_problem(422, "UNKNOWN_MAPPING", "no_such_v1");
    let both = serving.post(&[("file", &waiting()), ("output", "no_such"), ("mapping", "no_such_v1")]);
    both.assert_problem(422, "UNKNOWN_MAPPING", "no_such_v1");
    let answer = serving.post(&[("file", &waiting()), ("output", "pdf")]);
    answer.assert_problem(400, "INVALID", "own, ubl, cii");
}

#[test]
fn who_comes_when_all_places_are_taken_is_told_so_at_once() {
    let serving = Serving::with(GatewayLimits { requests: 2, ..GatewayLimits::default() });
    let body = form(&[("file", &waiting())]);
    let first = serving.say(&request(&body));
    let second = serving.say(&request(&body));
    serving.wait_for("2");
    // Nothing of its body has been sent, and nothing of it is waited for.
    let third = serving.say(head("content-length: 5000\r\nexpect: 100-continue\r\n").as_bytes());
    hear(third).assert_problem(503, "BUSY", "Try again in a moment.");
    assert_eq!(serving.in_flight(), "2");
    // Who hangs up gives up, and makes room.
    drop(first);
    serving.wait_for("1");
    assert_eq!(serving.post(&[("file", "a")]).status, 200);
    drop(second);
}

#[test]
fn who_is_too_slow_is_not_waited_for() {
    let quick = Duration::from_millis(100);
    let serving =
        Serving::with(GatewayLimits { header_read: quick, body_read: quick, ..GatewayLimits::default() });
    // Half a head, and none at all.
    for start in ["POST /process HT", ""] {
        let mut answer = String::new();
        serving.say(start.as_bytes()).read_to_string(&mut answer).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    // Half a body.
    let stream = serving.say((head("content-length: 5000\r\n") + "--B\r\n").as_bytes());
    hear(stream).assert_problem(408, "INVALID", "did not arrive within");
    assert_eq!(serving.in_flight(), "0");
}

#[test]
fn only_so_many_connections_are_open_at_a_time() {
    let quick = Duration::from_millis(100);
    let limits = GatewayLimits { connections: 1, header_read: quick, ..GatewayLimits::default() };
    let serving = Serving::with(limits);
    let silent = serving.connect();
    // Answered once the silent one has been given up.
    assert_eq!(serving.get("/healthz").status, 200);
    assert_eq!((&silent).read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn stopping_lets_what_runs_end_and_then_cuts_it_off() {
    let serving =
        Serving::with(GatewayLimits { grace: Duration::from_millis(50), ..GatewayLimits::default() });
    let mut stream = serving.say(&request(&form(&[("file", &waiting())])));
    serving.wait_for("1");
    drop(serving.stop.lock().unwrap().take());
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    let Serving { runtime, address, ended, .. } = serving;
    runtime.block_on(async { tokio::time::timeout(PATIENCE, ended).await }).unwrap().unwrap();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn what_else_can_be_asked_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::following(GatewayLimits::default(), Some(folder.path().to_owned()));
    let health: Value = serde_json::from_str(&serving.get("/healthz").body).unwrap();
    assert_eq!(health, json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }));
    // A file that is wrong is reported once it was seen, and changes nothing.
    std::fs::write(folder.path().join("b.toml"), "what is this?").unwrap();
    let started = Instant::now();
    let mappings = loop {
        let mappings: Value = serde_json::from_str(&serving.get("/mappings").body).unwrap();
        if mappings["mistakes"] != json!([]) {
            break mappings;
        }
        assert!(started.elapsed() < PATIENCE, "{mappings}");
        std::thread::yield_now();
    };
    assert!(mappings["mistakes"][0].as_str().unwrap().contains("b.toml:1"), "{}", mappings["mistakes"]);
    let mappings = mappings["mappings"].as_array().unwrap();
    let invoice = mappings.iter().find(|mapping| mapping["id"] == "pt_simon_invoice_v1").unwrap();
    let expected = json!({
        "id": "pt_simon_invoice_v1", "name": "pt_simon_invoice", "version": 1, "status": "live",
        "kind": "invoice", "outputs": ["own", "ubl", "cii"],
    });
    assert_eq!(invoice, &expected);
    let metrics = serving.get("/metrics");
    assert!(metrics.headers.contains("content-type: text/plain; version=0.0.4"), "{metrics:?}");
    assert!(metrics.body.contains("\node_gateway_mapping_mistakes 1\n"), "{metrics:?}");
    serving.get("/nonsense").assert_problem(404, "NOT_FOUND", "nothing at this address");
    let answer = serving.get("/process");
    answer.assert_problem(405, "INVALID", "does not take this method");
    assert!(answer.headers.contains("allow: post"), "{answer:?}");
}
