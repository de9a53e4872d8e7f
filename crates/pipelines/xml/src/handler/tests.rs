//! The handler on a store in memory: what it asks of its context, and what it makes of what it is told.

use super::*;
use crate::conversion::stub::{self, Document};
use crate::remote::{ClientLimits, GatewayClient};
use ode_job::NewJob;
use ode_job::breaker::BreakerPolicy;
use ode_worker::trial::{Trial, Tried};
use serde_json::Map;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn job(mapping: &str, config: Value) -> NewJob {
    let mut job = NewJob::new(crate::machine::XML, mapping, json!({}));
    job.config = config;
    job
}

/// The second attempt at a job with this mapping and configuration.
async fn run(handler: &XmlHandler, mapping: &str, config: Value) -> Tried {
    run_on(&Trial::open(&crate::DECLARATION).await.unwrap(), handler, mapping, config).await
}

async fn run_on(trial: &Trial, handler: &XmlHandler, mapping: &str, config: Value) -> Tried {
    let document = Some(("März.pdf", &b"%PDF-1.7"[..]));
    let mut claimed = trial.claim(job(mapping, config), document).await.unwrap();
    claimed.attempt = 2;
    trial.run(handler, &claimed).await
}

/// Converts here, in children that do what the document says.
async fn built_in() -> XmlHandler {
    XmlHandler::new(Route::BuiltIn(Arc::new(stub::converter(None).await)), 3)
}

/// The second attempt at converting this document here.
async fn run_here(document: Document, mapping: &str, config: Value) -> Tried {
    let trial = Trial::open(&crate::DECLARATION).await.unwrap();
    let text = document.text();
    let mut claimed = trial.claim(job(mapping, config), Some(("März.pdf", text.as_bytes()))).await.unwrap();
    claimed.attempt = 2;
    trial.run(&built_in().await, &claimed).await
}

fn failing(code: ErrorCode) -> Document {
    Document { fails: Some(code.as_str().into()), ..Document::default() }
}

fn finding(code: &str, severity: &str) -> Finding {
    Finding { severity: severity.into(), code: code.into(), field: None, message: "Look.".into() }
}

#[tokio::test]
async fn a_document_becomes_a_result_with_its_findings_and_particulars() {
    let findings = vec![finding("TOTAL_MISMATCH", "error"), finding("FIELD_MISSING", "review")];
    let Tried { result, notes, files, checks } =
        run_here(Document { findings, ..Document::default() }, "auto", json!({ "output": "ubl" })).await;
    let result = result.unwrap();
    assert_eq!(
        (&result["mapping"], &result["output"], &result["pages"], &result["gateway"]),
        (&json!("best_v1"), &json!("ubl"), &json!(3), &json!("built-in"))
    );
    assert_eq!(result["findings"][0]["code"], "TOTAL_MISMATCH");
    assert_eq!(files.len(), 2);
    assert_eq!((files[0].role.as_str(), files[0].name.as_str()), ("result", "März.xml"));
    assert_eq!(files[0].content_type, "application/xml");
    assert_eq!((files[1].role.as_str(), files[1].name.as_str()), ("asset", "places.json"));
    let kinds: Vec<_> = checks.iter().map(|check| (check.kind, check.severity)).collect();
    assert_eq!(kinds, [(CheckKind::Arithmetic, Severity::Error), (CheckKind::Schema, Severity::Review)]);
    assert_eq!((&notes["gateway"], &notes["attempt_count"]), (&json!("built-in"), &json!(2)));
    assert!(notes["duration_ms"].is_u64());
}

#[tokio::test]
async fn a_mapping_that_does_not_exist_is_a_refusal_by_the_gateway() {
    let failure = run_here(failing(ErrorCode::UnknownMapping), "x", json!({})).await.result.unwrap_err();
    assert_eq!((failure.code, failure.kind), (ErrorCode::Gw4xx, FailureKind::Rejected));
    assert!(failure.message.contains("secret words"), "{failure}");
}

#[tokio::test]
async fn what_is_wrong_with_a_document_keeps_its_code_and_is_not_tried_again() {
    for code in [ErrorCode::NotPdf, ErrorCode::Unreadable, ErrorCode::TooLarge, ErrorCode::NoText] {
        let tried = run_here(failing(code), "auto", json!({})).await;
        let failure = tried.result.unwrap_err();
        assert_eq!((failure.code, failure.kind), (code, FailureKind::Rejected));
        assert!(tried.notes.contains_key("duration_ms"));
    }
}

#[tokio::test]
async fn a_job_without_a_document_says_how_to_send_one() {
    let trial = Trial::open(&crate::DECLARATION).await.unwrap();
    let claimed = trial.claim(job("auto", json!({})), None).await.unwrap();
    let failure = trial.run(&built_in().await, &claimed).await.result.unwrap_err();
    assert_eq!((failure.code, failure.kind), (ErrorCode::Invalid, FailureKind::Rejected));
    assert!(failure.message.contains("POST /api/upload"), "{failure}");
}

#[tokio::test]
async fn an_output_that_does_not_exist_is_refused() {
    for output in [json!("pdf"), json!(7)] {
        let tried = run_here(Document::default(), "auto", json!({ "output": output })).await;
        let failure = tried.result.unwrap_err();
        assert_eq!(failure.code, ErrorCode::Invalid);
        assert!(failure.message.contains("own, ubl, cii"), "{failure}");
    }
}

#[test]
fn a_results_name_is_the_documents_and_never_a_path() {
    fn check(name: &str, expected: &str) {
        assert_eq!(result_name(name), expected, "{name}");
    }
    check("invoice.pdf", "invoice.xml");
    check("March 2026.final.PDF", "March 2026.final.xml");
    check("no ending", "no ending.xml");
    check("../../etc/passwd.pdf", "passwd.xml");
    check("C:\\docs\\a.pdf", "a.xml");
    check(".pdf", "document.xml");
    check("", "document.xml");
    check("a\r\nb.pdf", "ab.xml");
    check(&"x".repeat(500), &format!("{}.xml", "x".repeat(120)));
}

/// A gateway that answers every call as its switch says; how often it was called.
fn gateway(status: Arc<Mutex<&'static str>>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            // The whole request comes in one go: it is short.
            let _ = stream.read(&mut [0; 8192]);
            let status = *status.lock().unwrap();
            let head = "content-type: application/xml\r\ncontent-length: 4\r\nconnection: close";
            let _ = write!(stream, "HTTP/1.1 {status}\r\n{head}\r\n\r\n<a/>");
        }
    });
    (address, calls)
}

const OK: &str = "200 OK";
const DOWN: &str = "502 Bad Gateway";

/// Opens on two failures, and asks again after a blink.
const TOUCHY: BreakerPolicy =
    BreakerPolicy { calls_min: 2, cool_down: Duration::from_millis(50), ..ode_job::BreakerPolicy::FEW_CALLS };

fn remote(addresses: &[&str]) -> XmlHandler {
    let client = |address: &&str| GatewayClient::new(address, ClientLimits::default()).unwrap();
    let gateways = Gateways::new(addresses.iter().map(client), TOUCHY);
    XmlHandler::new(Route::Remote(Arc::new(gateways)), 3)
}

async fn attempt(trial: &Trial, handler: &XmlHandler) -> (Result<Value, Failure>, Map<String, Value>) {
    let Tried { result, notes, .. } = run_on(trial, handler, "auto", json!({})).await;
    (result, notes)
}

#[tokio::test]
async fn gateway_and_status_are_told_whether_it_worked_or_not() {
    let trial = Trial::open(&crate::DECLARATION).await.unwrap();
    let status = Arc::new(Mutex::new(OK));
    let (address, _) = gateway(status.clone());
    let handler = remote(&[&address]);
    let (outcome, notes) = attempt(&trial, &handler).await;
    assert_eq!(outcome.unwrap()["gateway"], json!(address));
    assert_eq!((&notes["gateway"], &notes["http_status"]), (&json!(address), &json!(200)));
    *status.lock().unwrap() = DOWN;
    let (outcome, notes) = attempt(&trial, &handler).await;
    let failure = outcome.unwrap_err();
    assert_eq!((failure.code, failure.kind), (ErrorCode::Gw5xx, FailureKind::Retryable { after: None }));
    assert_eq!(notes["http_status"], json!(502));
}

#[tokio::test]
async fn while_the_breaker_is_open_nobody_calls_and_no_try_is_used_up() {
    let trial = Trial::open(&crate::DECLARATION).await.unwrap();
    let status = Arc::new(Mutex::new(DOWN));
    let (address, calls) = gateway(status.clone());
    let handler = remote(&[&address]);
    for _ in 0..2 {
        let failure = attempt(&trial, &handler).await.0.unwrap_err();
        assert!(matches!(failure.kind, FailureKind::Retryable { .. }), "{failure:?}");
    }
    assert!(matches!(handler.readiness(Timestamp::now()), Readiness::Away { .. }));
    assert_eq!(handler.breakers(Timestamp::now())[0].state, "open");
    let failure = attempt(&trial, &handler).await.0.unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Away { .. }), "{failure:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 2, "the third attempt must not call");
    // A probe that fails costs its job nothing; one that succeeds closes the breaker.
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(matches!(handler.readiness(Timestamp::now()), Readiness::Probe { .. }));
    let failure = attempt(&trial, &handler).await.0.unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Away { .. }), "{failure:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    *status.lock().unwrap() = OK;
    tokio::time::sleep(Duration::from_millis(60)).await;
    attempt(&trial, &handler).await.0.unwrap();
    assert_eq!(handler.readiness(Timestamp::now()), Readiness::Ready);
}

#[tokio::test]
async fn the_backup_takes_over_while_the_first_is_away_and_gives_back() {
    let trial = Trial::open(&crate::DECLARATION).await.unwrap();
    let (first, second) = (Arc::new(Mutex::new(DOWN)), Arc::new(Mutex::new(OK)));
    let ((first_address, _), (second_address, second_calls)) = (gateway(first.clone()), gateway(second));
    let handler = remote(&[&first_address, &second_address]);
    for _ in 0..2 {
        attempt(&trial, &handler).await.0.unwrap_err();
    }
    assert_eq!(handler.readiness(Timestamp::now()), Readiness::Ready, "the backup is there");
    let (outcome, notes) = attempt(&trial, &handler).await;
    assert_eq!(outcome.unwrap()["gateway"], json!(second_address));
    assert_eq!(notes["gateway"], json!(second_address));
    // The probe of the first fails, and the backup does the work in the same attempt.
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(attempt(&trial, &handler).await.0.unwrap()["gateway"], json!(second_address));
    *first.lock().unwrap() = OK;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(attempt(&trial, &handler).await.0.unwrap()["gateway"], json!(first_address));
    assert_eq!(second_calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_gateway_that_refuses_documents_is_there() {
    let trial = Trial::open(&crate::DECLARATION).await.unwrap();
    let (address, _) = gateway(Arc::new(Mutex::new("422 Unprocessable Content")));
    let handler = remote(&[&address]);
    for _ in 0..5 {
        let failure = attempt(&trial, &handler).await.0.unwrap_err();
        assert_eq!((failure.code, failure.kind), (ErrorCode::Gw4xx, FailureKind::Rejected));
    }
    assert_eq!(handler.readiness(Timestamp::now()), Readiness::Ready);
}

#[tokio::test]
async fn a_gateway_that_is_not_there_hands_over_to_the_backup_at_once() {
    let trial = Trial::open(&crate::DECLARATION).await.unwrap();
    let nobody = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let (backup, calls) = gateway(Arc::new(Mutex::new(OK)));
    let (outcome, notes) = attempt(&trial, &remote(&[&nobody, &backup])).await;
    assert_eq!(outcome.unwrap()["gateway"], json!(backup));
    assert_eq!((&notes["gateway"], calls.load(Ordering::SeqCst)), (&json!(backup), 1));
    // Alone, it is a failure like any other until its breaker opens.
    let failure = attempt(&trial, &remote(&[&nobody])).await.0.unwrap_err();
    assert_eq!((failure.code, failure.kind), (ErrorCode::Gw5xx, FailureKind::Retryable { after: None }));
}

#[tokio::test]
async fn findings_come_along_from_a_gateway_elsewhere() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 8192]);
        let told =
            r#"[{"severity":"review","code":"TOTAL_MISMATCH","field":null,"message":"Gr\u00f6\u00dfe"}]"#;
        let head = "content-type: application/xml\r\ncontent-length: 4\r\nconnection: close";
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\node-findings-told: {told}\r\n\r\n<a/>");
    });
    let tried = run(&remote(&[&address]), "auto", json!({ "output": "ubl" })).await;
    assert_eq!(tried.result.unwrap()["findings"][0]["message"], "Größe");
    assert_eq!(tried.checks[0].kind, CheckKind::Arithmetic);
}
