//! `ode jobs` and `ode workers`: what is asked for, seen and done.

use crate::harness::{Ode, Ran, headings, id_of, on_both};
use ode_job::{Ended, ErrorCode, Failure, LogLevel};
use serde_json::{Value, json};

on_both!(
    an_added_job_is_listed_and_shown_under_its_reference_and_its_id,
    a_job_keeps_what_it_was_given,
    a_list_is_filtered_and_goes_on_where_it_ended,
    a_history_says_who_did_what,
    a_log_is_read_without_what_would_steer_a_terminal,
    a_cancelled_job_is_retried,
    a_running_job_is_asked_to_stop,
    one_refusal_does_not_keep_the_others_from_being_asked,
    a_failed_job_says_why_and_where_to_read_more,
    no_worker_is_no_error,
);

fn an_added_job_is_listed_and_shown_under_its_reference_and_its_id(ode: &Ode) {
    let said = ode.ok(["jobs", "add", "xml", "invoice"]);
    let [reference, state] = said.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(reference.starts_with("JOB_"), "{said}");
    assert_eq!(state, "queued");

    let list = ode.ok(["jobs", "list"]);
    assert_eq!(headings(&list), ["REFERENCE", "PIPELINE", "TYPE", "STATE", "TRIES", "CREATED", "ERROR"]);
    let line = list.lines().nth(1).unwrap();
    assert!(line.starts_with(&format!("{reference}  xml       invoice  queued  0")), "{list}");

    let by_reference = ode.ok(["jobs", "show", reference]);
    let id = id_of(ode, reference).to_string();
    assert_eq!(ode.ok(["jobs", "show", &id]), by_reference);
    for line in [
        format!("job        {id}"),
        format!("reference  {reference}"),
        "pipeline   xml (invoice)".to_owned(),
        "state      queued".to_owned(),
        "tries      0 (0 of 3 retries used)".to_owned(),
        "input      {}".to_owned(),
    ] {
        assert!(by_reference.lines().any(|shown| shown == line), "{line:?} is not in {by_reference}");
    }
}

fn a_job_keeps_what_it_was_given(ode: &Ode) {
    let added = ode.json([
        "jobs",
        "add",
        "script",
        "greet",
        "--input",
        r#"{"name": "Ada", "n": -1}"#,
        "--config",
        r#"{"headless": true}"#,
        "--external-id",
        "order 42",
        "--priority",
        "-7",
        "--run-at",
        "2999-12-24T18:00:00Z",
    ]);
    let expected = json!({
        "pipeline": "script", "type": "greet", "state": "pending", "phase": "held", "priority": -7,
        "external_id": "order 42", "input": { "name": "Ada", "n": -1 }, "config": { "headless": true },
        "run_at": "2999-12-24T18:00:00Z", "attempt_count": 0, "result": null, "error_code": null,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&added[field], value, "{field}");
    }
    let reference = added["reference"].as_str().unwrap();
    let shown = ode.json(["jobs", "show", reference]);
    for beside in ["artifacts", "revisions", "checks"] {
        assert_eq!(shown[beside], json!([]));
    }
    for (field, value) in added.as_object().unwrap() {
        assert_eq!(&shown[field], value, "{field}");
    }
    let list = ode.ok(["jobs", "list"]);
    assert!(list.contains("pending, due in "), "{list}");
}

fn a_list_is_filtered_and_goes_on_where_it_ended(ode: &Ode) {
    let jobs: Vec<String> = ["xml", "html", "script", "html"].iter().map(|kind| ode.add(kind)).collect();
    let listed = |args: &[&str]| -> Vec<String> {
        let page = ode.json(["jobs", "list"].iter().chain(args));
        let jobs = page["jobs"].as_array().unwrap();
        jobs.iter().map(|job| job["reference"].as_str().unwrap().to_owned()).collect()
    };
    let newest_first: Vec<String> = jobs.iter().rev().cloned().collect();
    assert_eq!(listed(&[]), newest_first);
    assert_eq!(listed(&["--pipeline", "html"]), [jobs[3].clone(), jobs[1].clone()]);
    assert_eq!(listed(&["--state", "queued"]), [jobs[2].clone(), jobs[0].clone()]);
    assert_eq!(listed(&["--phase", "failed"]), [""; 0]);
    assert_eq!(listed(&["--limit", "3", "--before", &jobs[3]]), newest_first[1..]);

    // The rest of a list is asked for with what its end says.
    let first = ode.run(["jobs", "list", "--limit", "3"]);
    assert_eq!(first.stdout.lines().count(), 4);
    assert_eq!(first.stderr, format!("\nThere are more: add --before {}\n", jobs[1]));
    let page = ode.json(["jobs", "list", "--limit", "3"]);
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(listed(&["--before", cursor]), [jobs[0].clone()]);
    assert_eq!(ode.json(["jobs", "list"])["next_cursor"], Value::Null);

    let none = ode.run(["jobs", "list", "--phase", "cancelled"]);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "No jobs like that.\n"));
}

fn a_history_says_who_did_what(ode: &Ode) {
    let reference = ode.add("xml");
    ode.ok(["jobs", "cancel", &reference]);
    let table = ode.ok(["jobs", "events", &reference]);
    assert_eq!(headings(&table), ["WHEN", "EVENT", "FROM", "TO", "BY", "PARTICULARS"]);
    assert_eq!(table.lines().count(), 4);
    let words: Vec<&str> = table.lines().nth(3).unwrap().split_whitespace().skip(2).take(4).collect();
    assert_eq!(words, ["cancelled", "queued", "failed", "cli"]);

    let events = ode.json(["jobs", "events", &reference]);
    let names: Vec<&str> =
        events.as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["created", "queued", "cancelled"]);
    assert_eq!(events[0]["from_state"], Value::Null);
    assert_eq!(events[2]["meta"]["code"], "CANCELLED");
}

fn a_log_is_read_without_what_would_steer_a_terminal(ode: &Ode) {
    let reference = ode.add("html");
    let nothing = ode.run(["jobs", "logs", &reference]);
    assert_eq!(
        (nothing.stdout.as_str(), nothing.stderr.as_str()),
        ("", "Its attempts have logged nothing.\n")
    );

    let id = id_of(ode, &reference);
    ode.with_store(async |store| {
        store.log(id, 1, LogLevel::Info, "page 1").await.unwrap();
        store.log(id, 2, LogLevel::Error, "page \x1b]0;owned\x07 2\nand its end").await.unwrap();
    });
    let lines = ode.json(["jobs", "logs", &reference]);
    assert_eq!(lines[0]["message"], "page 1");
    assert_eq!(lines[1]["level"], "error");

    let text = ode.ok(["jobs", "logs", &reference]);
    assert!(text.lines().next().unwrap().ends_with("Z  info   try 1  page 1"), "{text:?}");
    assert!(text.ends_with("Z  error  try 2  page  ]0;owned  2\n    and its end\n"), "{text:?}");
    let after = ode.json(["jobs", "logs", &reference, "--after", &lines[0]["id"].to_string()]);
    assert_eq!(after.as_array().unwrap().len(), 1);
}

fn a_cancelled_job_is_retried(ode: &Ode) {
    let reference = ode.add("html");
    assert_eq!(ode.ok(["jobs", "cancel", &reference]), format!("{reference}  failed\n"));
    assert_eq!(ode.ok(["jobs", "retry", &reference]), format!("{reference}  pending\n"));
    let job = ode.json(["jobs", "show", &reference]);
    assert_eq!((&job["state"], &job["error_code"]), (&json!("pending"), &Value::Null));
}

fn a_running_job_is_asked_to_stop(ode: &Ode) {
    let reference = ode.add("html");
    ode.start(ode_html::machine::LANE);
    let list = ode.ok(["jobs", "list", "--phase", "running"]);
    assert!(list.contains("processing 0 %"), "{list}");
    ode.run(["jobs", "cancel", &reference]).assert_refused(&[
        &reference,
        "use `ode jobs stop`",
        "(CONFLICT)",
    ]);
    assert_eq!(ode.ok(["jobs", "stop", &reference]), format!("{reference}  stopping\n"));
    let shown = ode.ok(["jobs", "show", &reference]);
    assert!(shown.contains("\nworker ") && shown.contains("\nends by "), "{shown}");
}

fn one_refusal_does_not_keep_the_others_from_being_asked(ode: &Ode) {
    let [first, second, third] = ["xml", "xml", "xml"].map(|pipeline| ode.add(pipeline));
    ode.ok(["jobs", "cancel", &second]);
    let ran = ode.run(["jobs", "cancel", &first, &second, &third]);
    assert_eq!(ran.stdout, format!("{first}  failed\n{third}  failed\n"));
    ran.assert_refused(&[&format!(
        "error: {second}: An xml job that is failed cannot be cancelled. It has already ended. (CONFLICT)"
    )]);

    let ran = Ran::of(ode.command(["jobs", "retry", &first, &second, &first]).arg("--json"));
    assert_eq!(ran.code, Some(1));
    let answers = ran.json();
    assert_eq!((&answers[0]["reference"], &answers[0]["state"]), (&json!(first), &json!("queued")));
    assert_eq!(answers[1]["id"], json!(id_of(ode, &second)));
    assert_eq!((&answers[2]["job"], &answers[2]["code"]), (&json!(first), &json!("CONFLICT")));
    assert!(answers[2]["error"].as_str().unwrap().contains("It has not ended yet."), "{answers}");
}

fn a_failed_job_says_why_and_where_to_read_more(ode: &Ode) {
    let reference = ode.add("html");
    let failure = Failure::rejected(ErrorCode::NotPdf, "Page 7 is a picture.").with_detail("magic: 89 50");
    ode.finish(ode_html::machine::LANE, Ended::Failed(failure));
    let list = ode.ok(["jobs", "list"]);
    assert!(list.trim_end().ends_with("NOT_PDF"), "{list}");
    let shown = ode.ok(["jobs", "show", &reference]);
    assert!(shown.contains("Page 7 is a picture. (NOT_PDF); `ode explain NOT_PDF` says more"), "{shown}");
    assert!(shown.contains("detail     magic: 89 50"), "{shown}");
}

fn no_worker_is_no_error(ode: &Ode) {
    let ran = ode.run(["workers"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert_eq!(ran.stderr, "No worker is running. Start one with `ode serve` or `ode worker`.\n");
    assert_eq!(ode.json(["workers"]), json!([]));
}

#[test]
fn no_jobs_is_no_error() {
    let ode = Ode::sqlite();
    let ran = ode.run(["jobs", "list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert_eq!(ran.stderr, "No jobs yet. `ode jobs add` asks for one.\n");
    assert_eq!(ode.json(["jobs", "list"]), json!({ "jobs": [], "next_cursor": null }));
}

/// Programs read this by name: a field may be added here, never renamed or dropped.
#[test]
fn the_fields_of_a_job_keep_their_names() {
    let ode = Ode::sqlite();
    ode.add("xml");
    let page = ode.json(["jobs", "list"]);
    let mut fields: Vec<&str> = page["jobs"][0].as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    let expected = "attempt_count config created_at created_by engine_version error_code error_detail \
        error_message external_id finished_at id input lease_expires_at max_retries metadata organisation_id phase \
        pipeline priority progress queued_at reference result retry_count run_at session_id started_at state \
        timeout_at type updated_at user_id worker_id";
    assert_eq!(fields, expected.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn a_list_fits_on_a_screen() {
    let ode = Ode::sqlite();
    ode.ok(["jobs", "add", "print", &"type ".repeat(51)]);
    ode.ok(["jobs", "add", "print", "poster"]);
    ode.finish(ode_print::machine::EXPORT, Ended::Failed(Failure::from(ErrorCode::GatewayUnavailable)));
    let list = ode.ok(["jobs", "list"]);
    for line in list.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    assert!(list.contains("type type type type typ…"), "{list}");
}

#[test]
fn a_large_document_is_read_from_a_file_or_from_standard_input() {
    let ode = Ode::sqlite();
    let file = ode.path("input.json");
    let text = "x".repeat(900_000);
    std::fs::write(&file, json!({ "text": text }).to_string()).unwrap();
    let job = ode.json([
        "jobs".as_ref(),
        "add".as_ref(),
        "html".as_ref(),
        "a".as_ref(),
        "--input-file".as_ref(),
        file.as_os_str(),
    ]);
    assert_eq!(job["input"]["text"], text);

    let mut command = ode.command(["jobs", "add", "html", "b", "--input-file", "-", "--json"]);
    let ran = Ran::of(command.stdin(std::fs::File::open(&file).unwrap()));
    assert_eq!(ran.json()["input"], job["input"]);

    // A person sees which document it is, not all of it.
    let shown = ode.ok(["jobs", "show", job["reference"].as_str().unwrap()]);
    assert!(shown.len() < 2000 && shown.contains("… (900011 bytes; --json shows all)"), "{shown}");
}

#[test]
fn a_done_job_shows_its_result() {
    let ode = Ode::sqlite();
    let reference = ode.add("html");
    ode.finish(ode_html::machine::LANE, Ended::Succeeded);
    let shown = ode.ok(["jobs", "show", &reference]);
    assert!(shown.contains("state      completed") && shown.contains(r#"result     {"pages":3}"#), "{shown}");
}
