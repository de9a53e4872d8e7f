//! Looking at results again: what was found out, what people correct, and why a file still waits.

use super::client::{Client, Makes, pdf, until, web, web_with, work};
use crate::harness::{Ode, on_both};
use crate::serve::Serving;
use jiff::Timestamp;
use ode_job::breaker::Standing;
use ode_job::record::About;
use ode_job::{Check, CheckKind, ErrorCode, JobId, Severity, WorkerId};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

on_both!(
    a_value_is_corrected_and_exported_with_its_place,
    a_correction_that_says_nothing_is_refused,
    a_correction_of_what_was_never_read_is_refused,
    the_page_corrects_a_value_with_a_plain_form,
    what_no_mapping_reads_is_converted_again_with_another,
    what_was_called_off_does_not_look_like_a_failure,
    what_was_found_out_is_told_by_the_api_and_the_page,
    a_file_that_waits_for_its_next_try_says_why_and_until_when,
    while_no_gateway_answers_the_list_and_the_page_say_so,
    without_script_nothing_is_deleted_before_it_was_asked,
);

const XML: &str = r#"<invoice xmlns="urn:ode:document:1"><invoice_number>INV-1</invoice_number><lines><row><total>10.00</total></row></lines></invoice>"#;
const JSON: &str = "application/json";
const URLENCODED: &str = "application/x-www-form-urlencoded";

/// A browser, and a job of theirs that is done.
fn converted(ode: &Ode) -> (Serving, Client, String) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let id = browser.uploaded("a.pdf", &pdf(1))["id"].as_str().unwrap().to_owned();
    work(ode, Makes::Xml(XML));
    (serving, browser, id)
}

/// A page as a browser asks for it.
fn page(browser: &Client, path: &str) -> String {
    let answer = browser.with("Accept", "text/html").get(path);
    assert_eq!(answer.code(), 200, "{answer:?}");
    answer.body
}

#[track_caller]
fn assert_told(page: &str, words: &[&str]) {
    for word in words {
        assert!(page.contains(word), "{word:?} is not on the page:\n{page}");
    }
}

fn a_value_is_corrected_and_exported_with_its_place(ode: &Ode) {
    let (_serving, browser, id) = converted(ode);
    let address = format!("/api/jobs/{id}/revisions");
    assert_eq!(browser.get(&address).json(), json!({ "revisions": [] }));
    let correction = json!({
        "field": "lines.0.total", "before": "10.00", "after": "11.00", "page": 1, "box": [10.0, 20.5, 60.0, 30.0],
    });
    let made = browser.send("POST", &address, JSON, correction.to_string().as_bytes());
    assert_eq!(made.code(), 201, "{made:?}");
    let made = made.json();
    for (name, value) in correction.as_object().unwrap() {
        assert_eq!(&made[name], value, "{name}");
    }
    assert!(made["created_at"].is_string() && made["id"].is_string(), "{made}");
    let again = browser.send("POST", &address, JSON, correction.to_string().as_bytes());
    assert_eq!((again.code(), again.json()), (201, made.clone()), "sent twice");
    assert_eq!(browser.get(&address).json(), json!({ "revisions": [made] }));
    let lines = ode.ok(["export", "training"]);
    let samples: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(samples.len(), 1, "{lines}");
    assert_eq!(
        (&samples[0]["job_id"], &samples[0]["read"], &samples[0]["expected"], &samples[0]["box"]),
        (&json!(id), &json!("10.00"), &json!("11.00"), &correction["box"])
    );
    let shown = ode.ok(["jobs", "show", &id]);
    assert!(shown.contains("lines.0.total: 10.00 → 11.00"), "{shown}");
    let links = browser.get(&format!("/api/jobs/{id}")).json()["links"].clone();
    assert_eq!(links["revisions"], address);
}

fn a_correction_that_says_nothing_is_refused(ode: &Ode) {
    let (_serving, browser, id) = converted(ode);
    let address = format!("/api/jobs/{id}/revisions");
    let send = |body: &str| browser.send("POST", &address, JSON, body.as_bytes());
    for body in [
        "",
        "[]",
        "{}",
        r#"{"field":"","after":"1"}"#,
        r#"{"field":"a"}"#,
        r#"{"field":"a","before":"1","after":"1"}"#,
        r#"{"field":"a","after":"1","page":0}"#,
        r#"{"field":"a","after":"1","box":[1,2,3,4]}"#,
        r#"{"field":"a","after":"1","page":1,"box":[1,2,3]}"#,
        r#"{"field":"a","after":"1","colour":"red"}"#,
    ] {
        send(body).assert_problem(400, "INVALID");
    }
    let long = format!(r#"{{"field":"a","after":"{}"}}"#, "x".repeat(70_000));
    send(&long).assert_problem(413, "INVALID");
    browser.send("POST", &address, "text/plain", b"{}").assert_problem(415, "INVALID");
    // What is not converted yet, or never was, has nothing to correct.
    let correction = br#"{"field":"a","after":"1"}"#;
    let waiting = browser.uploaded("b.pdf", &pdf(2))["id"].as_str().unwrap().to_owned();
    let ask = || browser.send("POST", &format!("/api/jobs/{waiting}/revisions"), JSON, correction);
    ask().assert_problem(409, "NOT_READY");
    work(ode, Makes::Failure(ErrorCode::Gw4xx));
    ask().assert_problem(409, "CONFLICT");
    assert_eq!(browser.get(&address).json(), json!({ "revisions": [] }));
}

fn a_correction_of_what_was_never_read_is_refused(ode: &Ode) {
    let (_serving, browser, id) = converted(ode);
    let address = format!("/api/jobs/{id}/revisions");
    let send = |body: &str| browser.send("POST", &address, JSON, body.as_bytes());
    let unknown = send(r#"{"field":"nosuchfield","after":"1"}"#);
    unknown.assert_problem(400, "INVALID");
    assert_told(&unknown.body, &["There is no field nosuchfield.", "invoice_number, lines.*.total"]);
    let stale = send(r#"{"field":"lines.0.total","before":"99.00","after":"11.00"}"#);
    stale.assert_problem(409, "CONFLICT");
    assert_told(&stale.body, &[r#"was read as \"10.00\""#]);
    assert_eq!(ode.ok(["export", "training"]), "");
    assert_eq!(send(r#"{"field":"due_date","after":"2026-12-01"}"#).code(), 201, "a value that was missed");
}

fn the_page_corrects_a_value_with_a_plain_form(ode: &Ode) {
    let (_serving, browser, id) = converted(ode);
    let shown = page(&browser, &format!("/jobs/{id}"));
    assert_told(&shown, &["What was read", "invoice number", "INV-1", "line 1: total", "10.00"]);
    let form = b"field=lines.0.total&before=10.00&after=1+1.00%26&page=1&box=10.0+20.5+60.0+30.0";
    let answer = browser.send("POST", &format!("/jobs/{id}/revisions"), URLENCODED, form);
    assert_eq!((answer.code(), answer.header("location")), (303, format!("/jobs/{id}#values").as_str()));
    let shown = page(&browser, &format!("/jobs/{id}"));
    assert_told(
        &shown,
        &["<del>10.00</del>", "<ins>1 1.00&#38;</ins>", "Corrections", "page 1, 10 20 60 30"],
    );
    let nothing = browser.with("Accept", "text/html").send(
        "POST",
        &format!("/jobs/{id}/revisions"),
        URLENCODED,
        b"field=a&before=1&after=1",
    );
    assert_eq!(nothing.code(), 400);
    assert_told(&nothing.body, &["The correction changes nothing."]);
    let stranger =
        browser.send("POST", "/jobs/01890000-0000-7000-8000-000000000000/revisions", URLENCODED, form);
    stranger.assert_problem(404, "NOT_FOUND");
}

fn what_no_mapping_reads_is_converted_again_with_another(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("letter.pdf", &pdf(1));
    let id = job["id"].as_str().unwrap();
    work(ode, Makes::Failure(ErrorCode::NoMapping));
    let list = page(&browser, "/");
    assert_told(
        &list,
        &[&format!("href=\"/jobs/{id}#again\""), "Convert again…", "No mapping recognises this document."],
    );
    assert!(!list.contains("ode mapping") && !list.contains("/retry\""), "{list}");
    assert_told(
        &page(&browser, &format!("/jobs/{id}")),
        &["id=\"again\"", "generic_invoice_v1", "UBL 2.1 invoice"],
    );
    let address = format!("/api/jobs/{id}/convert");
    let ask = |body: &str| browser.send("POST", &address, JSON, body.as_bytes());
    let again = r#"{"mapping":"generic_invoice_v1","output":"ubl"}"#;
    let made = ask(again);
    assert_eq!((made.code(), &made.json()["mapping"]), (201, &json!("generic_invoice_v1")), "{made:?}");
    let (made, same) = (made.json(), ask(again));
    assert_eq!((same.code(), &same.json()["id"]), (200, &made["id"]), "{same:?}");
    assert_eq!((&made["filename"], &made["sha256"]), (&job["filename"], &job["sha256"]));
    for body in ["{}", r#"{"mapping":"a b"}"#, r#"{"mapping":"auto","output":"pdf"}"#] {
        ask(body).assert_problem(400, "INVALID");
    }
    let sent =
        browser.send("POST", &format!("/jobs/{id}/convert"), URLENCODED, b"mapping=mustang_v1&output=");
    assert_eq!(sent.code(), 303, "{sent:?}");
    let newest = browser.list()["jobs"][0].clone();
    assert_eq!(sent.header("location"), format!("/jobs/{}", newest["id"].as_str().unwrap()));
    assert_eq!(newest["mapping"], "mustang_v1");
    work(ode, Makes::Xml(XML));
    until("the copy is converted", || {
        browser.list()["jobs"].to_string().contains("\"is_downloadable\":true")
    });
}

fn what_was_called_off_does_not_look_like_a_failure(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let id = browser.uploaded("a.pdf", &pdf(1))["id"].as_str().unwrap().to_owned();
    assert_eq!(browser.post(&format!("/jobs/{id}/cancel")).code(), 303);
    for path in ["/".to_owned(), format!("/jobs/{id}")] {
        let shown = page(&browser, &path);
        assert_told(
            &shown,
            &["<span class=\"badge cancelled\">Cancelled</span>", "Retry it if you still need it."],
        );
        assert!(!shown.contains("badge failed") && !shown.contains("Submit it again"), "{shown}");
    }
}

fn what_was_found_out_is_told_by_the_api_and_the_page(ode: &Ode) {
    let (_serving, browser, id) = converted(ode);
    let address = format!("/api/jobs/{id}/checks");
    assert_eq!(browser.get(&address).json(), json!({ "checks": [] }));
    let found = Check {
        kind: CheckKind::Arithmetic,
        severity: Severity::Review,
        code: "TOTAL_MISMATCH".into(),
        field: Some("gross_total".into()),
        message: "The lines add up to 10.00, the total says 11.00.".into(),
        opinion: None,
    };
    ode.with_store(async |store| store.add_checks(JobId(id.parse().unwrap()), &[found]).await.unwrap());
    let told = browser.get(&address).json();
    assert_eq!(
        told["checks"],
        json!([{
            "kind": "arithmetic", "severity": "review", "code": "TOTAL_MISMATCH", "field": "gross_total",
            "message": "The lines add up to 10.00, the total says 11.00.", "model": null, "confidence": null,
        }])
    );
    assert_told(&ode.ok(["jobs", "show", &id]), &["review TOTAL_MISMATCH: The lines add up"]);
    assert_told(
        &page(&browser, &format!("/jobs/{id}")),
        &["What to look at", "TOTAL_MISMATCH", "add up to 10.00"],
    );
}

fn a_file_that_waits_for_its_next_try_says_why_and_until_when(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let id = browser.uploaded("a.pdf", &pdf(1))["id"].as_str().unwrap().to_owned();
    assert_eq!(browser.list()["jobs"][0]["last_error"], Value::Null, "it was not tried yet");
    work(ode, Makes::Setback(ErrorCode::Gw5xx));
    let why = json!({ "code": "GW_5XX", "message": "Converter is having an issue. We'll retry" });
    let shown = browser.get(&format!("/api/jobs/{id}")).json();
    assert_eq!(
        (&shown["status"], &shown["last_error"], &shown["error"]),
        (&json!("queued"), &why, &Value::Null)
    );
    let retry_at: Timestamp = shown["retry_at"].as_str().unwrap().parse().unwrap();
    assert!(retry_at > Timestamp::now() - Duration::from_secs(1), "{retry_at}");
    assert_told(&ode.ok(["jobs", "show", &id]), &["Converter is having an issue. We'll retry (GW_5XX)"]);
    until("the list shows it", || browser.list()["jobs"][0]["last_error"] == why);
    for path in ["/".to_owned(), format!("/jobs/{id}")] {
        assert_told(
            &page(&browser, &path),
            &["Converter is having an issue. We&#39;ll retry", "Will be tried again at"],
        );
    }
}

fn while_no_gateway_answers_the_list_and_the_page_say_so(ode: &Ode) {
    const SAID: &str = "The converter is not answering. Your files wait and go on by themselves.";
    let serving = web(ode);
    let browser = Client::browser(&serving);
    assert_eq!(browser.list()["notice"], Value::Null, "nothing waits");
    let standing = |name: &str, is_away: bool| Standing {
        name: format!("gateway {name}"),
        state: if is_away { "open" } else { "closed" }.into(),
        until: None,
        away_since: is_away.then(Timestamp::now),
        calls: 10,
        failures: 10,
    };
    let says = |breakers: Vec<Standing>| {
        ode.with_store(async |store| {
            let worker = WorkerId(Uuid::from_u128(7));
            // It may be there already.
            let _ = store.register(worker, "test", "0").await;
            assert!(store.beat(worker, Duration::from_secs(3600), 0, false).await.unwrap());
            let about = About { slots: BTreeMap::from([(ode_xml::machine::LANE, 3)]), breakers };
            store.describe(worker, &about).await.unwrap();
        });
    };
    says(vec![standing("http://a", true), standing("http://b", true)]);
    browser.uploaded("a.pdf", &pdf(1));
    assert_eq!(browser.list()["notice"], SAID);
    assert_told(&page(&browser, "/"), &[SAID]);
    says(vec![standing("http://a", true), standing("http://b", false)]);
    until("the backup is there", || browser.list()["notice"] == Value::Null);
    assert!(!page(&browser, "/").contains(SAID));
}

fn without_script_nothing_is_deleted_before_it_was_asked(ode: &Ode) {
    let (_serving, browser, id) = converted(ode);
    let list = page(&browser, "/");
    assert_told(&list, &[&format!("action=\"/jobs/{id}/delete\" method=\"get\"")]);
    let asked = page(&browser, &format!("/jobs/{id}/delete"));
    assert_told(&asked, &["Delete a.pdf?", "This cannot be undone.", "method=\"post\"", "Keep it"]);
    assert_eq!(browser.list()["jobs"].as_array().unwrap().len(), 1, "asking removes nothing");
    let answer = browser.post(&format!("/jobs/{id}/delete"));
    assert_eq!((answer.code(), answer.header("location")), (303, "/"));
    assert_eq!(browser.list()["jobs"], json!([]));
    assert_eq!(browser.get(&format!("/jobs/{id}/delete")).code(), 404);
    // Other deeds are asked for on the job's own page, and a form that was sent is not sent again by reloading.
    let waiting = browser.uploaded("b.pdf", &pdf(2))["id"].as_str().unwrap().to_owned();
    for (path, leads_to) in [
        (format!("/jobs/{waiting}/delete"), format!("/jobs/{waiting}")),
        (format!("/jobs/{waiting}/cancel"), format!("/jobs/{waiting}")),
        ("/upload".to_owned(), "/".to_owned()),
    ] {
        let answer = browser.get(&path);
        assert_eq!((answer.code(), answer.header("location")), (303, leads_to.as_str()), "{path}");
    }
}

#[test]
fn a_full_disk_is_told_on_the_page_before_anything_is_sent() {
    let ode = Ode::sqlite();
    let serving = web_with(&ode, &["--disk-pause", "1", "--disk-resume", "1"]);
    let browser = Client::browser(&serving);
    assert_told(&page(&browser, "/"), &["Uploads are paused"]);
    browser.upload(&[("a.pdf", &pdf(1))], &[]).assert_problem(507, "DISK_FULL");
}
