//! Lists, histories, downloads and links.

use super::client::{Client, Makes, pdf, until, web, web_with, work};
use super::documents::remove_results;
use crate::harness::{Ode, on_both};
use ode_job::ErrorCode;
use serde_json::{Value, json};

on_both!(
    a_result_is_downloaded_once_it_is_there,
    a_download_after_expiry_says_that_retention_removed_it,
    a_part_of_a_result_can_be_fetched,
    only_a_whole_download_counts,
    a_result_that_goes_with_its_first_download_is_not_lost_to_a_glance,
    a_retry_is_offered_only_where_it_can_help,
    a_link_works_without_a_cookie_until_it_is_too_old,
    the_list_comes_in_parts_and_can_be_narrowed,
    the_list_tells_what_changed_since,
    a_job_is_cancelled_retried_and_stopped_by_its_owner,
);

fn path(job: &Value, of: &str) -> String {
    format!("/api/jobs/{}{of}", job["id"].as_str().unwrap())
}

fn a_result_is_downloaded_once_it_is_there(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("Rechnung \"März\".pdf", &pdf(1));
    let download = path(&job, "/download");
    browser.get(&download).assert_problem(409, "NOT_READY");
    assert_eq!(browser.get(&download).json()["title"], "Conversion not finished yet");
    work(ode, Makes::Nothing);
    browser.get(&download).assert_problem(409, "NOT_READY");
    let second = browser.uploaded("b.pdf", &pdf(2));
    work(ode, Makes::Xml("<invoice>ä</invoice>"));
    let answer = browser.get(&path(&second, "/download"));
    assert_eq!((answer.code(), answer.body.as_str()), (200, "<invoice>ä</invoice>"));
    assert_eq!(answer.header("content-type"), "application/xml");
    assert_eq!(answer.header("content-length"), "21");
    assert_eq!(
        answer.header("content-disposition"),
        "attachment; filename=\"b.xml\"; filename*=UTF-8''b.xml"
    );
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    let shown = browser.get(&path(&second, "")).json();
    assert_eq!((&shown["status"], &shown["is_downloadable"]), (&json!("complete"), &json!(true)));
    assert_eq!(shown["links"]["download"], path(&second, "/download"));
    // The same by the name that people use.
    let reference = format!("/api/jobs/{}/download", second["reference"].as_str().unwrap());
    assert_eq!(browser.get(&reference).body, "<invoice>ä</invoice>");
    // A failed job has none, and says so.
    let third = browser.uploaded("c.pdf", &pdf(3));
    work(ode, Makes::Failure(ErrorCode::Gw4xx));
    let failed = browser.get(&path(&third, "/download"));
    failed.assert_problem(409, "GW_4XX");
    assert_eq!(
        failed.json()["detail"],
        "This document was not converted: Couldn't convert with this mapping."
    );
}

fn a_download_after_expiry_says_that_retention_removed_it(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Xml("<a/>"));
    remove_results(ode);
    let answer = browser.get(&path(&job, "/download"));
    answer.assert_problem(404, "EXPIRED");
    assert_eq!(answer.json()["title"], "File was removed by retention. Re-upload to regenerate");
    let shown = browser.get(&path(&job, "")).json();
    assert_eq!((&shown["is_downloadable"], &shown["is_expired"]), (&json!(false), &json!(true)));
}

fn a_part_of_a_result_can_be_fetched(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Xml("0123456789"));
    let download = path(&job, "/download");
    let whole = browser.get(&download);
    assert_eq!(whole.header("accept-ranges"), "bytes");
    let part = |range: &str| browser.with("Range", range).get(&download);
    let answer = part("bytes=2-4");
    assert_eq!((answer.code(), answer.body.as_str()), (206, "234"), "{answer:?}");
    assert_eq!(answer.header("content-range"), "bytes 2-4/10");
    assert_eq!((part("bytes=7-").body.as_str(), part("bytes=-2").body.as_str()), ("789", "89"));
    let beyond = part("bytes=10-");
    beyond.assert_problem(416, "INVALID");
    assert_eq!(beyond.header("content-range"), "bytes */10");
    // What changed meanwhile is sent whole, and what did not is not sent again.
    let tag = whole.header("etag");
    assert_eq!(browser.with("Range", "bytes=0-1").with("If-Range", tag).get(&download).code(), 206);
    assert_eq!(browser.with("Range", "bytes=0-1").with("If-Range", "\"x\"").get(&download).code(), 200);
    assert_eq!(browser.with("If-None-Match", tag).get(&download).code(), 304);
}

fn only_a_whole_download_counts(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Xml("0123456789"));
    let download = path(&job, "/download");
    let tag = browser.get(&download).header("etag").to_owned();
    let count = || browser.get(&path(&job, "")).json()["download_count"].clone();
    until("the first one counts", || count() == 1);
    browser.send("HEAD", &download, "", b"");
    browser.with("Range", "bytes=0-4").get(&download);
    browser.with("Range", "bytes=0-").get(&download);
    browser.with("If-None-Match", &tag).get(&download);
    let link = browser.post(&path(&job, "/link")).json()["url"].as_str().unwrap().to_owned();
    browser.get(&link);
    until("the second one counts", || count() == 2);
    let events = browser.get(&path(&job, "/events")).json();
    let told =
        events["events"].as_array().unwrap().iter().filter(|event| event["event"] == "downloaded").count();
    assert_eq!(told, 2, "{events}");
    assert!(browser.get(&path(&job, "")).json()["first_downloaded_at"].is_string());
}

fn a_result_that_goes_with_its_first_download_is_not_lost_to_a_glance(ode: &Ode) {
    ode.sql("UPDATE retention_policy SET delete_on_download = TRUE");
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("a.pdf", &pdf(1));
    work(ode, Makes::Xml("0123456789"));
    let download = path(&job, "/download");
    for _ in 0..3 {
        assert_eq!(browser.send("HEAD", &download, "", b"").code(), 200);
        assert_eq!(browser.with("Range", "bytes=0-4").get(&download).code(), 206);
    }
    assert_eq!(browser.get(&download).body, "0123456789");
    until("it is gone", || browser.get(&download).code() == 404);
    browser.get(&download).assert_problem(404, "EXPIRED");
    // In a browser window that is a page.
    let page = browser.with("Accept", "text/html,*/*;q=0.8").get(&download);
    assert_eq!((page.code(), page.header("content-type")), (404, "text/html; charset=utf-8"));
    assert!(page.body.contains("File was removed by retention"), "{page:?}");
}

fn a_retry_is_offered_only_where_it_can_help(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let failed = |number: usize, code: ErrorCode| {
        let job = browser.uploaded("a.pdf", &pdf(number));
        work(ode, Makes::Failure(code));
        browser.get(&path(&job, "")).json()
    };
    let hopeless = failed(1, ErrorCode::Encrypted);
    assert_eq!(hopeless["links"]["retry"], json!(null));
    assert_eq!(hopeless["links"]["delete"], path(&hopeless, ""));
    browser.post(&path(&hopeless, "/retry")).assert_problem(409, "ENCRYPTED");
    let passing = failed(2, ErrorCode::Gw5xx);
    assert_eq!(passing["links"]["retry"], path(&passing, "/retry"));
    ode.sql_of_retention("DELETE FROM job_artifact WHERE role = 'source'");
    browser.post(&path(&passing, "/retry")).assert_problem(409, "EXPIRED");
    let still = browser.get(&path(&passing, "")).json();
    assert_eq!(
        (&still["status"], &still["error"]),
        (&json!("failed"), &passing["error"]),
        "nothing was changed"
    );
    assert_eq!(still["links"]["retry"], json!(null));
}

fn a_link_works_without_a_cookie_until_it_is_too_old(ode: &Ode) {
    let serving = web(ode);
    let (browser, stranger) = (Client::browser(&serving), Client::stranger(&serving));
    let job = browser.uploaded("a.pdf", &pdf(1));
    browser.post(&path(&job, "/link")).assert_problem(409, "NOT_READY");
    work(ode, Makes::Xml("<a/>"));
    let made = browser.post(&path(&job, "/link"));
    assert_eq!(made.code(), 201, "{made:?}");
    let url = made.json()["url"].as_str().unwrap().to_owned();
    let answer = stranger.get(&url);
    assert_eq!((answer.code(), answer.body.as_str()), (200, "<a/>"), "{answer:?}");
    assert!(answer.header("content-disposition").starts_with("attachment"), "{answer:?}");
    assert_eq!(answer.header("set-cookie"), "");
    // A longer life, another job, another signature: none of them is what was signed.
    let other = browser.uploaded("b.pdf", &pdf(2));
    let (id, other) = (job["id"].as_str().unwrap(), other["id"].as_str().unwrap());
    let wrong = [
        url.replace("expires=", "expires=9"),
        url.replace(id, other),
        url.replace("signature=", "signature=0"),
        url.split('&').next().unwrap().to_owned(),
        url.split('?').next().unwrap().to_owned(),
    ];
    for wrong in wrong {
        stranger.get(&wrong).assert_problem(404, "NOT_FOUND");
    }
}

#[test]
fn a_link_that_is_too_old_does_not_work() {
    let ode = Ode::sqlite();
    let serving = web_with(&ode, &["--link-minutes", "0"]);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("a.pdf", &pdf(1));
    work(&ode, Makes::Xml("<a/>"));
    let url = browser.post(&path(&job, "/link")).json()["url"].as_str().unwrap().to_owned();
    until("it is too old", || browser.get(&url).code() == 404);
    browser.get(&url).assert_problem(404, "NOT_FOUND");
}

fn the_list_comes_in_parts_and_can_be_narrowed(ode: &Ode) {
    let serving = web_with(ode, &["--uploads-a-minute", "100"]);
    let browser = Client::browser(&serving);
    let mut ids: Vec<Value> =
        (0..7).map(|number| browser.uploaded("a.pdf", &pdf(number))["id"].clone()).collect();
    ids.reverse();
    work(ode, Makes::Xml("<a/>"));
    work(ode, Makes::Failure(ErrorCode::Gw4xx));
    let (mut found, mut cursor, mut parts) = (Vec::new(), String::new(), 0);
    loop {
        let part = browser.get(&format!("/api/jobs?limit=3{cursor}")).json();
        assert_eq!(part["active_count"], 5);
        found.extend(part["jobs"].as_array().unwrap().iter().map(|job| job["id"].clone()));
        parts += 1;
        match part["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((found, parts), (ids.clone(), 3));
    let count =
        |query: &str| browser.get(&format!("/api/jobs?{query}")).json()["jobs"].as_array().unwrap().len();
    assert_eq!(count("status=queued"), 5);
    assert_eq!(count("state=complete"), 1);
    assert_eq!(count("status=failed"), 1);
    assert_eq!(count("mapping=pt_simon_invoice_v1"), 7);
    assert_eq!(count("mapping=other"), 0);
    for wrong in
        ["status=lost", "limit=0", "limit=201", "limit=x", "cursor=x", "since=yesterday", "colour=red"]
    {
        browser.get(&format!("/api/jobs?{wrong}")).assert_problem(400, "INVALID");
    }
}

fn the_list_tells_what_changed_since(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let old = browser.uploaded("a.pdf", &pdf(1));
    browser.uploaded("b.pdf", &pdf(2));
    // As if they had been there for long, whatever the database says.
    let (undated, past) = if ode.url().starts_with("sqlite") {
        ("DROP TRIGGER job_live_touch", "1")
    } else {
        ("DROP TRIGGER job_live_touch ON job_live", "timestamptz '2020-01-01'")
    };
    ode.sql(undated);
    ode.sql(&format!("UPDATE job_live SET created_at = {past}, updated_at = {past}"));
    until("the list is read anew", || browser.list()["jobs"][0]["created_at"].as_str().unwrap() < "2021");
    let as_of = browser.list()["as_of"].as_str().unwrap().to_owned();
    let since = || browser.get(&format!("/api/jobs?since={as_of}")).json();
    assert_eq!((&since()["jobs"], &since()["active_count"]), (&json!([]), &json!(2)));
    work(ode, Makes::Xml("<a/>"));
    until("the change shows", || !since()["jobs"].as_array().unwrap().is_empty());
    let changed = since();
    assert_eq!(changed["jobs"].as_array().unwrap().len(), 1);
    assert_eq!((&changed["jobs"][0]["id"], &changed["active_count"]), (&old["id"], &json!(1)));
    // A list that is known already is not sent again.
    let list = browser.get("/api/jobs");
    let tag = list.header("etag");
    let again = browser.with("If-None-Match", tag).get("/api/jobs");
    assert_eq!((again.code(), again.body.as_str()), (304, ""), "{again:?}");
    work(ode, Makes::Xml("<b/>"));
    until("the tag changes", || browser.with("If-None-Match", tag).get("/api/jobs").code() == 200);
}

fn a_job_is_cancelled_retried_and_stopped_by_its_owner(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("a.pdf", &pdf(1));
    let refused = browser.post(&path(&job, "/stop"));
    refused.assert_problem(409, "CONFLICT");
    assert_eq!(refused.json()["detail"], "Only a job that is running can be stopped. This one is queued.");
    browser.post(&path(&job, "/retry")).assert_problem(409, "CONFLICT");
    let cancelled = browser.post(&path(&job, "/cancel")).json();
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("CANCELLED")));
    browser.post(&path(&job, "/cancel")).assert_problem(409, "CONFLICT");
    let retried = browser.post(&path(&job, "/retry")).json();
    assert_eq!((&retried["status"], &retried["error"]), (&json!("queued"), &json!(null)));
    work(ode, Makes::Nothing);
    browser.post(&path(&job, "/cancel")).assert_problem(409, "CONFLICT");
    assert_eq!(browser.post(&path(&job, "/stop")).code(), 200);
    let events = browser.get(&path(&job, "/events")).json();
    let told: Vec<&str> =
        events["events"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(told, ["created", "queued", "cancelled", "retry", "processing"]);
    assert!(!events.to_string().contains("actor"), "who did it is not the visitor's business: {events}");
}
