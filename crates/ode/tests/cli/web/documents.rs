//! What is taken in and what is not, and that the same document is not worked on twice.

use super::client::{
    Client, FORM, Makes, all_jobs, files, form, hear, large_pdf, pdf, until, web, web_with, work,
};
use crate::harness::{Ode, on_both};
use crate::serve::Serving;
use ode_job::ErrorCode;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Write as _;

on_both!(
    one_pdf_makes_exactly_one_job,
    the_same_pdf_again_is_answered_with_the_job_it_has,
    a_failed_twin_does_not_stand_in_the_way,
    a_twin_whose_result_is_gone_does_not_stand_in_the_way,
    ten_uploads_of_one_file_at_once_make_one_job,
    where_results_are_shared_a_document_is_converted_once_for_all,
    many_files_are_each_told_what_became_of_them,
    what_is_refused_leaves_nothing,
    the_five_fixtures_are_answered_as_promised,
    a_failed_job_is_told_in_friendly_words,
);

fn one_pdf_makes_exactly_one_job(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let content = pdf(1);
    let answer = browser.upload(&[("März 1.pdf", &content)], &[("mapping", "generic_invoice_v1")]);
    assert_eq!(answer.code(), 201, "{answer:?}");
    let job = &answer.json()["job"];
    assert_eq!(answer.header("location"), format!("/api/jobs/{}", job["id"].as_str().unwrap()));
    assert_eq!((&job["filename"], &job["bytes"]), (&json!("März 1.pdf"), &json!(content.len())));
    assert_eq!((&job["status"], &job["label"]), (&json!("queued"), &json!("Waiting")));
    assert_eq!(job["mapping"], "generic_invoice_v1");
    let jobs = all_jobs(ode);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    let document = &jobs[0]["input"]["document"];
    assert_eq!((&document["sha256"], &document["storage"]), (&job["sha256"], &json!("local")));
    // The file is where the job says, under a name of ours, and the job owns it.
    let shown = ode.json(["jobs", "show", job["id"].as_str().unwrap()]);
    let source = &shown["artifacts"][0];
    assert_eq!((&source["role"], &source["path"]), (&json!("source"), &document["path"]));
    let path = ode.data().join("files").join(source["path"].as_str().unwrap());
    assert_eq!(std::fs::read(path).unwrap(), content);
    assert!(!source["path"].as_str().unwrap().contains("rz"), "{source}");
    assert_eq!(browser.list()["jobs"].as_array().unwrap().len(), 1);
}

fn the_same_pdf_again_is_answered_with_the_job_it_has(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let first = browser.uploaded("a.pdf", &pdf(1));
    let again = || browser.upload(&[("b.pdf", &pdf(1))], &[]);
    let answer = again();
    assert_eq!((answer.code(), &answer.json()["job"]["id"]), (202, &first["id"]), "{answer:?}");
    assert_eq!(answer.json()["files"][0]["is_duplicate"], true);
    work(ode, Makes::Xml("<a/>"));
    let answer = again();
    assert_eq!((answer.code(), &answer.json()["job"]["id"]), (200, &first["id"]), "{answer:?}");
    assert_eq!(answer.json()["job"]["status"], "complete");
    assert_eq!(all_jobs(ode).len(), 1);
    until("files of duplicates are removed", || files(ode).len() == 2);
    // Another mapping, another output, another visitor: each is another job.
    let other = browser.upload(&[("a.pdf", &pdf(1))], &[("mapping", "generic_invoice_v1")]);
    assert_eq!(other.code(), 201, "{other:?}");
    let other = browser.upload(&[("a.pdf", &pdf(1))], &[("output", "ubl")]);
    assert_eq!(other.code(), 201, "{other:?}");
    Client::browser(&serving).uploaded("a.pdf", &pdf(1));
    assert_eq!(all_jobs(ode).len(), 4);
}

fn a_failed_twin_does_not_stand_in_the_way(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let first = browser.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Failure(ErrorCode::Gw4xx));
    let second = browser.uploaded("a.pdf", &pdf(1));
    assert_ne!(first["id"], second["id"]);
    assert_eq!(browser.upload(&[("a.pdf", &pdf(1))], &[]).json()["job"]["id"], second["id"]);
}

fn a_twin_whose_result_is_gone_does_not_stand_in_the_way(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let first = browser.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Xml("<a/>"));
    remove_results(ode);
    let second = browser.uploaded("a.pdf", &pdf(1));
    assert_ne!(first["id"], second["id"]);
}

/// What retention does to results that are too old.
pub(super) fn remove_results(ode: &Ode) {
    ode.sql_of_retention("DELETE FROM job_artifact WHERE role = 'result'");
}

fn ten_uploads_of_one_file_at_once_make_one_job(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let content = pdf(1);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let upload = || browser.upload(&[("a.pdf", &content)], &[]);
        let threads: Vec<_> = (0..10).map(|_| scope.spawn(upload)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut codes: Vec<u16> = answers.iter().map(|answer| answer.code()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [[201].as_slice(), &[202; 9]].concat());
    let ids: HashSet<String> = answers.iter().map(|answer| answer.json()["job"]["id"].to_string()).collect();
    assert_eq!((ids.len(), all_jobs(ode).len()), (1, 1));
    until("files of duplicates are removed", || files(ode).len() == 1);
}

fn where_results_are_shared_a_document_is_converted_once_for_all(ode: &Ode) {
    let serving = web_with(ode, &["--dedupe", "everyone"]);
    let (one, two) = (Client::browser(&serving), Client::browser(&serving));
    let first = one.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Xml("<a/>"));
    // While it is under way, nobody can wait for what is not theirs.
    one.uploaded("b.pdf", &pdf(2));
    assert_eq!(two.uploaded("b.pdf", &pdf(2))["status"], "queued");
    let three = Client::browser(&serving);
    let done = three.uploaded("c.pdf", &pdf(1));
    assert_eq!((&done["status"], &done["filename"]), (&json!("complete"), &json!("c.pdf")));
    assert_ne!(done["id"], first["id"], "it is a job of their own");
    let download = |client: &Client, job: &Value| {
        client.get(&format!("/api/jobs/{}/download", job["id"].as_str().unwrap()))
    };
    assert_eq!(download(&three, &done).body, "<a/>");
    download(&three, &first).assert_problem(404, "NOT_FOUND");
    let shown = ode.json(["jobs", "show", done["id"].as_str().unwrap()]);
    assert_eq!(shown["input"]["document"]["duplicate_of"], first["id"]);
    assert_eq!(
        ode.json(["jobs", "events", done["id"].as_str().unwrap()])[0]["meta"]["duplicate_of"],
        first["id"]
    );
    // It is known again, and it outlives the one it was made from.
    assert_eq!(three.upload(&[("c.pdf", &pdf(1))], &[]).json()["job"]["id"], done["id"]);
    assert_eq!(
        one.send("DELETE", &format!("/api/jobs/{}", first["id"].as_str().unwrap()), "", b"").code(),
        204
    );
    assert_eq!(download(&three, &done).body, "<a/>");
}

fn many_files_are_each_told_what_became_of_them(ode: &Ode) {
    let serving = web_with(ode, &["--upload-max", "1"]);
    let browser = Client::browser(&serving);
    // A picture that was meant to come as a PDF costs nobody else their place, however large it is.
    let (good, large, picture) = (pdf(1), large_pdf(1_000_001), vec![0xff; 9_000_000]);
    let sent: [(&str, &[u8]); 4] =
        [("good.pdf", &good), ("scan.jpg", &picture), ("large.pdf", &large), ("again.pdf", &good)];
    // The mapping may come after the files.
    let answer = browser.upload(&sent, &[("mapping", "generic_invoice_v1")]);
    assert_eq!(answer.code(), 201, "{answer:?}");
    let files = answer.json()["files"].as_array().unwrap().clone();
    let told = |of: fn(&Value) -> Value| files.iter().map(of).collect::<Vec<_>>();
    assert_eq!(told(|file| file["status"].clone()), [201, 415, 413, 202]);
    assert_eq!(
        told(|file| file["problem"]["code"].clone()),
        [json!(null), json!("NOT_PDF"), json!("TOO_LARGE"), json!(null)]
    );
    assert_eq!(told(|file| file["filename"].clone()), ["good.pdf", "scan.jpg", "large.pdf", "again.pdf"]);
    assert_eq!(files[0]["job"]["mapping"], "generic_invoice_v1");
    assert_eq!(files[0]["job"]["id"], files[3]["job"]["id"]);
    assert_eq!(all_jobs(ode).len(), 1);
}

fn what_is_refused_leaves_nothing(ode: &Ode) {
    let serving = web_with(ode, &["--upload-max", "1", "--uploads-a-minute", "1000"]);
    let browser = Client::browser(&serving);
    let one = |content: &[u8]| browser.upload(&[("a.pdf", content)], &[]);
    let whole = pdf(1);
    one(b"just text, whatever its name says").assert_problem(415, "NOT_PDF");
    one(b"").assert_problem(415, "NOT_PDF");
    assert_eq!(one(b"").json()["detail"], "This file is empty. Export or download it again.");
    one(&whole[..whole.len() / 2]).assert_problem(422, "TRUNCATED");
    one(&large_pdf(1_000_001)).assert_problem(413, "TOO_LARGE");
    assert_eq!(one(&large_pdf(1_000_001)).json()["title"], "File exceeds 1 MB limit");
    browser.upload(&[("a.pdf", &whole)], &[("mapping", &"m".repeat(101))]).assert_problem(400, "INVALID");
    one(&large_pdf(4_000_000)).assert_problem(413, "TOO_LARGE");
    browser.upload(&[("a.pdf", &whole)], &[("output", "html")]).assert_problem(400, "INVALID");
    browser.upload(&[("a.pdf", &whole)], &[("mapping", "../etc")]).assert_problem(400, "INVALID");
    browser.upload(&[("a.pdf", &whole)], &[("colour", "red")]).assert_problem(400, "INVALID");
    browser.upload(&[], &[("mapping", "auto")]).assert_problem(400, "INVALID");
    browser.send("POST", "/api/upload", "application/pdf", &whole).assert_problem(415, "INVALID");
    browser.send("POST", "/api/upload", FORM, b"--B\r\nContent-Dispo").assert_problem(400, "INVALID");
    // One that breaks off in the middle of a file.
    let body = form(&[("a.pdf", &large_pdf(1_000_000))], &[]);
    let mut stream = browser.open("POST", "/api/upload", FORM, body.len());
    stream.write_all(&body[..body.len() / 2]).unwrap();
    drop(stream);
    assert!(all_jobs(ode).is_empty());
    until("no file is left", || files(ode).is_empty());
    // As large as may be, to the byte, is not too large.
    assert_eq!(one(&large_pdf(1_000_000)).code(), 201);
}

fn the_five_fixtures_are_answered_as_promised(ode: &Ode) {
    let serving = Serving::start(&mut ode.command(["serve", "--listen", "127.0.0.1:0", "--mapping", "auto"]));
    let browser = Client::browser(&serving);
    let send = |name: &str, content: &[u8]| browser.upload(&[(name, content)], &[]);
    let (valid, whole) = (crate::upload::sized(1, 1_000_000), pdf(2));
    send("invalid.pdf", b"Dear Sir or Madam, this is a letter.").assert_problem(415, "NOT_PDF");
    let oversized = send("oversized.pdf", &large_pdf(51_000_000));
    oversized.assert_problem(413, "TOO_LARGE");
    assert_eq!(oversized.json()["title"], "File exceeds 50 MB limit");
    send("corrupt.pdf", &whole[..whole.len() / 2]).assert_problem(422, "TRUNCATED");
    assert!(all_jobs(ode).is_empty(), "what is refused at the door is no job");
    let empty = ode_testing::pdf::Builder::new().bytes();
    let (valid, empty) = (browser.uploaded("valid.pdf", &valid), browser.uploaded("empty.pdf", &empty));
    let shown = |job: &Value| browser.get(&format!("/api/jobs/{}", job["id"].as_str().unwrap())).json();
    until("both have ended", || {
        [&valid, &empty]
            .iter()
            .all(|job| ["complete", "failed"].contains(&shown(job)["status"].as_str().unwrap()))
    });
    let (valid, empty) = (shown(&valid), shown(&empty));
    assert_eq!((&valid["status"], &valid["is_downloadable"]), (&json!("complete"), &json!(true)), "{valid}");
    assert_eq!(
        (&empty["status"], &empty["error"]["code"]),
        (&json!("failed"), &json!("NO_PAGES")),
        "{empty}"
    );
}

fn a_failed_job_is_told_in_friendly_words(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Failure(ErrorCode::Gw5xx));
    let shown = browser.get(&format!("/api/jobs/{}", job["id"].as_str().unwrap())).json();
    assert_eq!((&shown["status"], &shown["label"]), (&json!("failed"), &json!("Failed")));
    let error = json!({ "code": "GW_5XX", "message": "Converter is having an issue. Retry it later" });
    assert_eq!(shown["error"], error);
    assert!(shown["failed_at"].is_string() && shown["completed_at"].is_null() && shown["result"].is_null());
}

#[test]
fn who_is_refused_early_hears_why() {
    let ode = Ode::new();
    let serving = web_with(&ode, &["--upload-max", "1"]);
    let browser = Client::browser(&serving);
    // Announces far more than it may send, and goes on sending for a while.
    let body = form(&[("a.pdf", &large_pdf(8 << 20))], &[]);
    let mut stream = browser.open("POST", "/api/upload", FORM, 1 << 40);
    let _ = stream.write_all(&body[..body.len() - 10]);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let answer = hear(stream);
    assert!([400, 413].contains(&answer.code()), "{answer:?}");
    assert!(files(&ode).is_empty());
}
