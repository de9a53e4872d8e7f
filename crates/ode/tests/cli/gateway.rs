//! `ode gateway`: documents over HTTP, each answer it can give, mappings that change, and how it ends.

use crate::convert::{Desk, blank, invoice};
use crate::harness::block_on;
use crate::serve::{Answer, PATIENCE, Serving, assert_stopped, hear};
use ode_job::{ErrorCode, FailureKind};
use ode_testing::pdf::one_page;
use ode_xml::{ClientLimits, GatewayClient, Output};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn start(desk: &Desk, more: &[&str]) -> Serving {
    let mut args = vec!["gateway", "--listen", "127.0.0.1:0"];
    args.extend(more);
    Serving::start(&mut desk.command(args))
}

/// A part of a form: its name, a file's name, its contents.
pub(crate) type Part<'a> = (&'a str, &'a [u8]);

fn form(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in parts {
        let file = if *name == "file" { "; filename=\"secret-name.pdf\"" } else { "" };
        write!(body, "--B\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n").unwrap();
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--B--\r\n");
    body
}

/// Sends the head of a request with a body of this length.
fn announce(serving: &Serving, length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "POST /process HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=B";
    write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n").unwrap();
    stream
}

fn send(serving: &Serving, parts: &[Part<'_>]) -> TcpStream {
    let body = form(parts);
    let mut stream = announce(serving, body.len());
    stream.write_all(&body).unwrap();
    stream
}

pub(crate) fn post(serving: &Serving, parts: &[Part<'_>]) -> Answer {
    hear(send(serving, parts))
}

#[track_caller]
fn assert_problem(answer: &Answer, status: u16, code: &str) {
    assert!(answer.status.starts_with(&format!("HTTP/1.1 {status} ")), "{answer:?}");
    assert!(answer.headers.contains("content-type: application/problem+json"), "{answer:?}");
    let problem = answer.json();
    assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{answer:?}");
    assert!(problem["title"].is_string() && problem["type"].is_string(), "{answer:?}");
    assert!(problem["detail"].as_str().unwrap().ends_with(['.', '?']), "{answer:?}");
}

/// Waits until there is what is looked for.
#[track_caller]
pub(crate) fn await_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A metric's value.
fn metric(serving: &Serving, name: &str) -> u64 {
    let metrics = serving.get("/metrics").body;
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

/// A living process whose parent this is, once it has become the converter: to halt it earlier would also halt the
/// thread that starts it.
fn child_of(serving: &Serving) -> Option<Pid> {
    let parent = serving.child.id().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).find_map(|id| {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{id}/{name}")).ok();
        let stat = read("stat")?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let is_child = fields.next()? != "Z" && fields.next()? == parent;
        (is_child && read("cmdline")?.contains("\0child\0")).then(|| Pid::from_raw(id))?
    })
}

fn is_alive(child: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// A request whose child has been started and holds still.
fn held(serving: &Serving) -> (TcpStream, Pid) {
    // Much to read, so that it is still at it when it is found.
    let words = "(word) Tj 0 -1 Td ".repeat(60_000);
    let document = one_page(&format!("BT /F1 1 Tf 10 290 Td {words} ET"));
    let stream = send(serving, &[("file", &document), ("mapping", b"generic_invoice_v1")]);
    let child = await_some("the child", || child_of(serving));
    kill_process(child, Signal::STOP).unwrap();
    (stream, child)
}

#[test]
fn an_invoice_becomes_xml() {
    let desk = Desk::new();
    let serving = start(&desk, &[]);
    assert!(serving.first_line.starts_with("The gateway is listening on http://127.0.0.1:"));
    let file: Part<'_> = ("file", &invoice("INV-7"));
    let answer = post(&serving, &[file, ("mapping", b"generic_invoice_v1")]);
    assert_eq!(answer.status, "HTTP/1.1 200 OK", "{answer:?}");
    assert!(answer.body.contains(">INV-7</invoice_number>") && !answer.body.contains(" box="), "{answer:?}");
    for header in
        ["content-type: application/xml", "ode-mapping: generic_invoice_v1", "ode-findings: ", "ode-pages: 1"]
    {
        assert!(answer.headers.contains(header), "{header}: {answer:?}");
    }
    // The version may be left out, and the mapping be chosen by what is on the page.
    for mapping in ["generic_invoice", "auto"] {
        let answer = post(&serving, &[("mapping", mapping.as_bytes()), file]);
        assert!(answer.headers.contains("ode-mapping: generic_invoice_v1"), "{answer:?}");
    }
    // Where none is named, it is the one that ships for that.
    let answer = post(&serving, &[file]);
    assert!(answer.headers.contains("ode-mapping: pt_simon_invoice_v1"), "{answer:?}");
    for (output, root) in [("own", "</invoice>"), ("ubl", "</Invoice>"), ("cii", "CrossIndustryInvoice>")] {
        let answer = post(&serving, &[file, ("mapping", b"auto"), ("output", output.as_bytes())]);
        assert!(answer.body.trim_end().ends_with(root) && answer.body.contains(">INV-7<"), "{answer:?}");
    }
    let answer = post(&serving, &[file, ("mapping", b"auto"), ("provenance", b"true")]);
    assert!(answer.body.contains(" page=\"1\"") && answer.body.contains(" box=\""), "{answer:?}");
    assert_eq!(metric(&serving, "ode_gateway_conversions_total{code=\"OK\"}"), 8);
    assert_stopped(&serving.stop(Signal::INT));
}

#[test]
fn each_refusal_has_its_status_and_its_code() {
    let desk = Desk::new();
    let serving = start(&desk, &[]);
    let file: Part<'_> = ("file", &invoice("INV-7"));
    let note = one_page("BT /F1 10 Tf 50 200 Td (Nothing that anybody knows) Tj ET");
    let damaged =
        b"%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF\n";
    let whole = invoice("INV-7");
    let cases: [(&[Part<'_>], u16, &str); 12] = [
        (&[("mapping", b"auto")], 400, "INVALID"),
        (&[file, ("output", b"pdf")], 400, "INVALID"),
        (&[file, ("shape", b"round")], 400, "INVALID"),
        (&[file, ("mapping", b"nobody_v1")], 422, "UNKNOWN_MAPPING"),
        (&[file, ("mapping", b"../../etc/passwd")], 422, "UNKNOWN_MAPPING"),
        (&[("file", b"GIF89a")], 415, "NOT_PDF"),
        (&[("file", b"")], 415, "NOT_PDF"),
        (&[("file", b"")], 415, "NOT_PDF"),
        (&[("file", damaged)], 422, "UNREADABLE"),
        (&[("file", &whole[..whole.len() * 2 / 3])], 422, "TRUNCATED"),
        (&[("file", &blank())], 422, "NO_TEXT"),
        (&[("file", &note), ("mapping", b"auto")], 422, "NO_MAPPING"),
    ];
    for (parts, status, code) in cases {
        assert_problem(&post(&serving, parts), status, code);
    }
    let near = post(&serving, &[file, ("mapping", b"generic_invoice_v2")]).json();
    assert!(near["detail"].as_str().unwrap().contains("generic_invoice_v1"), "{near}");
    // Refused by what it says it is, with nothing of it sent.
    assert_problem(&hear(announce(&serving, 60 << 20)), 413, "TOO_LARGE");
    assert_problem(&serving.get("/nonsense"), 404, "NOT_FOUND");
    assert_problem(&serving.get("/process"), 405, "INVALID");
    assert_eq!(serving.get("/healthz").status, "HTTP/1.1 200 OK");
    assert_eq!(metric(&serving, "ode_gateway_conversions_total{code=\"TOO_LARGE\"}"), 1);
    assert_stopped(&serving.stop(Signal::INT));
}

#[test]
fn a_document_that_is_too_large_is_refused_while_it_is_being_sent() {
    let desk = Desk::new();
    let serving = start(&desk, &[]);
    let document = vec![b'x'; (50 << 20) + 1];
    assert_problem(&post(&serving, &[("file", &document)]), 413, "TOO_LARGE");
    assert!(child_of(&serving).is_none());
    assert_stopped(&serving.stop(Signal::TERM));
}

#[test]
fn who_comes_when_all_places_are_taken_is_told_to_come_back() {
    let desk = Desk::new();
    let serving = start(&desk, &["--at-once", "1"]);
    let body = form(&[("file", &invoice("INV-7")), ("mapping", b"auto")]);
    // One that could run and three that would wait for it, all of which are still on their way.
    let mut waiting: Vec<TcpStream> = (0..4).map(|_| announce(&serving, body.len())).collect();
    await_some("the fourth", || (metric(&serving, "ode_gateway_in_flight") == 4).then_some(()));
    let answer = post(&serving, &[("file", b"%PDF-")]);
    assert_problem(&answer, 503, "BUSY");
    assert!(answer.headers.contains("retry-after: "), "{answer:?}");
    // Those that have a place are served, one after the other.
    for stream in &mut waiting {
        stream.write_all(&body).unwrap();
    }
    for stream in waiting {
        let answer = hear(stream);
        assert_eq!(answer.status, "HTTP/1.1 200 OK", "{answer:?}");
    }
    assert_eq!(metric(&serving, "ode_gateway_conversions_total{code=\"BUSY\"}"), 1);
    assert_eq!(metric(&serving, "ode_gateway_seconds_count"), 4);
    assert_stopped(&serving.stop(Signal::TERM));
}

#[test]
fn what_runs_when_it_is_stopped_gets_its_answer() {
    let desk = Desk::new();
    let serving = start(&desk, &[]);
    let (stream, child) = held(&serving);
    serving.signal(Signal::TERM);
    let address = serving.address();
    await_some("its deafness", || TcpStream::connect(address).is_err().then_some(()));
    kill_process(child, Signal::CONT).unwrap();
    let answer = hear(stream);
    assert!(answer.status == "HTTP/1.1 200 OK" && answer.body.contains("<?xml "), "{answer:?}");
    assert_stopped(&serving.ended());
    assert!(!is_alive(child));
}

#[test]
fn what_does_not_end_in_time_is_cut_off_and_leaves_no_child() {
    let desk = Desk::new();
    let serving = start(&desk, &["--grace", "0"]);
    let (stream, child) = held(&serving);
    assert_stopped(&serving.stop(Signal::TERM));
    await_some("the child's end", || (!is_alive(child)).then_some(()));
    drop(stream);
}

#[test]
fn who_hangs_up_ends_the_conversion() {
    let desk = Desk::new();
    let serving = start(&desk, &[]);
    let (stream, child) = held(&serving);
    drop(stream);
    await_some("the child's end", || (!is_alive(child)).then_some(()));
    await_some("the free place", || (metric(&serving, "ode_gateway_in_flight") == 0).then_some(()));
    assert_stopped(&serving.stop(Signal::TERM));
}

#[test]
fn our_own_client_and_it_understand_each_other() {
    let desk = Desk::new();
    let serving = start(&desk, &["--at-once", "1"]);
    let client =
        GatewayClient::new(&format!("http://{}", serving.address()), ClientLimits::default()).unwrap();
    let process = |document: &[u8], mapping: &str, output| {
        let call = block_on(client.process(document.to_vec().into(), mapping, output));
        call.outcome.map(|processed| processed.xml)
    };
    let xml = process(&invoice("INV-7"), "auto", None).unwrap();
    assert!(String::from_utf8(xml).unwrap().contains(">INV-7</invoice_number>"));
    let xml = process(&invoice("INV-7"), "auto", Some(Output::Ubl)).unwrap();
    assert!(String::from_utf8(xml).unwrap().contains("<cbc:ID>INV-7</cbc:ID>"));
    for (document, mapping, code) in [
        (b"GIF89a".to_vec(), "auto", ErrorCode::NotPdf),
        (blank(), "auto", ErrorCode::NoText),
        (invoice("INV-7"), "nobody_v1", ErrorCode::UnknownMapping),
        (vec![b'x'; (50 << 20) + 1], "auto", ErrorCode::TooLarge),
        (vec![b'x'; 60 << 20], "auto", ErrorCode::TooLarge),
    ] {
        let failure = process(&document, mapping, None).unwrap_err();
        assert_eq!((failure.code, failure.kind), (code, FailureKind::Rejected), "{failure:?}");
    }
    let _held: Vec<TcpStream> = (0..4).map(|_| announce(&serving, 1000)).collect();
    await_some("the fourth", || (metric(&serving, "ode_gateway_in_flight") == 4).then_some(()));
    let failure = process(&invoice("INV-7"), "auto", None).unwrap_err();
    let kind = FailureKind::Retryable { after: Some(Duration::from_secs(2)) };
    assert_eq!((failure.code, failure.kind), (ErrorCode::Busy, kind), "{failure:?}");
}

/// A mapping of this version for the invoices of these tests.
fn mapping(version: u32) -> String {
    format!(
        "schema = 1\nname = \"acme\"\nversion = {version}\nstatus = \"live\"\nextends = \"generic_invoice_v1\"\n\n\
         [match]\nall = [\"Acme Supplies\"]\n"
    )
}

fn mappings(serving: &Serving) -> Value {
    serving.get("/mappings").json()
}

fn find(mappings: &Value, id: &str) -> Option<Value> {
    mappings["mappings"].as_array().unwrap().iter().find(|mapping| mapping["id"] == id).cloned()
}

#[test]
fn mappings_change_while_it_runs_and_a_bad_one_changes_nothing() {
    let desk = Desk::new();
    desk.put("own/acme.toml", mapping(1));
    // As people write it: from where they are.
    let serving = start(&desk, &["--mappings", "own"]);
    let expected = json!({
        "id": "acme_v1", "name": "acme", "version": 1, "status": "live", "kind": "invoice",
        "outputs": ["own", "ubl", "cii"],
    });
    assert_eq!(find(&mappings(&serving), "acme_v1"), Some(expected));
    assert_eq!(mappings(&serving)["mistakes"], json!([]));
    let file: Part<'_> = ("file", &invoice("INV-7"));
    let convert = |name: &str| post(&serving, &[file, ("mapping", name.as_bytes())]);
    assert!(convert("auto").headers.contains("ode-mapping: acme_v1"));

    desk.put("own/acme.toml", mapping(2) + "colour = 1\n");
    let mistake = await_some("the mistake", || mappings(&serving)["mistakes"][0].as_str().map(str::to_owned));
    assert!(mistake.starts_with("acme.toml:9:1: "), "{mistake}");
    assert!(find(&mappings(&serving), "acme_v1").is_some());
    assert!(convert("acme").headers.contains("ode-mapping: acme_v1"));
    assert_eq!(metric(&serving, "ode_gateway_mapping_mistakes"), 1);

    desk.put("own/acme.toml", mapping(3));
    await_some("the new version", || find(&mappings(&serving), "acme_v3"));
    assert_eq!(mappings(&serving)["mistakes"], json!([]));
    assert!(convert("acme").headers.contains("ode-mapping: acme_v3"));
    assert_problem(&convert("acme_v1"), 422, "UNKNOWN_MAPPING");

    std::fs::remove_file(desk.path("own/acme.toml")).unwrap();
    await_some("the old order", || find(&mappings(&serving), "acme_v3").is_none().then_some(()));
    assert!(convert("auto").headers.contains("ode-mapping: generic_invoice_v1"));
    let ran = serving.stop(Signal::TERM);
    assert_stopped(&ran);
    assert!(ran.stderr.contains("acme.toml:9:1"), "{ran:?}");
}

#[test]
fn nothing_is_left_of_the_copies_of_mappings() {
    let desk = Desk::new();
    desk.put("own/acme.toml", mapping(1));
    desk.put("tmp/keep", "");
    let mut command = desk.command(["gateway", "--listen", "127.0.0.1:0", "--mappings", "own"]);
    let serving = Serving::start(command.env("TMPDIR", desk.path("tmp")));
    desk.put("own/acme.toml", mapping(2));
    await_some("the new version", || find(&mappings(&serving), "acme_v2"));
    let copies = |folder: &Path| std::fs::read_dir(folder).unwrap().count() - 1;
    assert_eq!(copies(&desk.path("tmp")), 1);
    assert_stopped(&serving.stop(Signal::TERM));
    assert_eq!(copies(&desk.path("tmp")), 0);
}

#[test]
fn it_does_not_start_with_mappings_that_are_wrong() {
    let desk = Desk::new();
    desk.put("own/acme.toml", "schema = 1\nname =\n");
    desk.run(["gateway", "--listen", "127.0.0.1:0", "--mappings", "own"])
        .assert_refused(&["The mappings cannot be used", "acme.toml:2:"]);
    desk.run(["gateway", "--listen", "127.0.0.1:0", "--mappings", "nowhere"])
        .assert_refused(&["The mappings cannot be used", "nowhere"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    desk.run(["gateway", "--listen", &address]).assert_refused(&["Another program listens", "--listen"]);
    desk.run(["gateway", "--at-once", "0"]).assert_refused(&["--at-once"]);
}

#[test]
fn what_is_converted_is_in_no_log() {
    let desk = Desk::new();
    let mut command: Command = desk.command(["gateway", "--listen", "127.0.0.1:0", "--log", "debug"]);
    let serving = Serving::start(&mut command);
    let file: Part<'_> = ("file", &invoice("INV-SECRET"));
    assert_eq!(post(&serving, &[file, ("mapping", b"auto")]).status, "HTTP/1.1 200 OK");
    assert_problem(&post(&serving, &[("file", b"INV-SECRET")]), 415, "NOT_PDF");
    let ran = serving.stop(Signal::TERM);
    assert_stopped(&ran);
    assert!(ran.stderr.contains("answered a request to convert: OK"), "{ran:?}");
    assert!(!ran.stderr.contains("SECRET") && !ran.stderr.contains("secret-name"), "{ran:?}");
}

#[test]
fn versions_that_are_not_live_run_beside_the_live_one_and_their_differences_are_counted() {
    let desk = Desk::new();
    desk.put("own/acme_v1.toml", mapping(1));
    desk.put("own/acme_v2.toml", mapping(2).replace("live", "canary"));
    let other = mapping(3).replace("live", "draft") + "\n[fields.buyer_reference]\nvalue = \"Z-1\"\n";
    desk.put("own/acme_v3.toml", other);
    let serving = start(&desk, &["--mappings", "own"]);
    for _ in 0..2 {
        let answer = post(&serving, &[("file", &invoice("INV-7")), ("mapping", b"auto")]);
        assert!(
            answer.headers.contains("ode-mapping: acme_v1") && !answer.body.contains("Z-1"),
            "{answer:?}"
        );
    }
    let runs = |mapping: &str, outcome: &str| {
        let labels = format!("{{mapping=\"{mapping}\",outcome=\"{outcome}\"}}");
        metric(&serving, &format!("ode_gateway_shadow_runs_total{labels}"))
    };
    assert_eq!((runs("acme_v2", "same"), runs("acme_v2", "different")), (2, 0));
    assert_eq!((runs("acme_v3", "same"), runs("acme_v3", "different")), (0, 2));
    let field = "ode_gateway_shadow_differences_total{mapping=\"acme_v3\",field=\"buyer_reference\"}";
    assert_eq!(metric(&serving, field), 2);
}

#[test]
fn what_is_asked_for_in_the_address_is_refused_and_not_overlooked() {
    let desk = Desk::new();
    let serving = start(&desk, &[]);
    let body = form(&[("file", &invoice("INV-7"))]);
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "POST /process?mapping=auto HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=B";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(&body).unwrap();
    let answer = hear(stream);
    assert_problem(&answer, 400, "INVALID");
    assert!(answer.body.contains("fields of the form"), "{answer:?}");
}
