//! From a document to its files: kept, published, listed, shown, packed, and removed again.

use super::{Site, pdf, request, sha256};
use crate::harness::{Ode, on_both};
use crate::web::client::{Client, files, until};
use serde_json::{Value, json};

on_both!(
    a_document_is_converted_published_listed_shown_and_removed,
    a_document_that_cannot_be_read_fails_with_its_reason_in_the_log,
    a_job_that_waits_is_called_off_by_its_removal,
    two_jobs_do_not_share_a_prefix,
);

fn a_document_is_converted_published_listed_shown_and_removed(ode: &Ode) {
    let site = Site::start(ode);
    let content = pdf("RE-4711");
    let asked = json!({ "external_id": "one", "input_s3_path": site.put("doc.pdf", &content),
        "input_sha256": sha256(&content), "output_s3_prefix": site.prefix("one/") });
    let id = site.client.submitted(&asked);
    let job = site.client.ended(&id);
    assert_eq!((&job["status"], &job["progress"]), (&json!("completed"), &json!(100)), "{job}");
    assert_eq!(job["engine_version"], env!("CARGO_PKG_VERSION"));
    assert!(job["started_at"].is_string() && job["finished_at"].is_string(), "{job}");
    check_telemetry(&job["telemetry"], content.len());
    let assets =
        site.client.get(&format!("/v1/jobs/{id}/assets")).json()["assets"].as_array().unwrap().clone();
    assert!(
        assets.iter().any(|asset| asset["asset_type"] == "html" && asset["path"] == "index.html"),
        "{assets:?}"
    );
    for asset in &assets {
        check_asset(&site, asset);
    }
    assert!(std::fs::read_to_string(site.output.join("one/index.html")).unwrap().contains("RE-4711"));
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(site.output.join("one/manifest.json")).unwrap()).unwrap();
    assert_eq!(
        (&manifest["job_id"], manifest["files"].as_array().unwrap().len()),
        (&json!(id), assets.len())
    );
    check_view(&site, &id);
    let zip = site.client.get(&format!("/v1/jobs/{id}/download"));
    assert_eq!((zip.code(), zip.header("content-type")), (200, "application/zip"));
    assert!(zip.body.starts_with("PK") && zip.header("content-disposition").contains("one.zip"));
    has_said(&site.client, &id, "info");
    let events = site.client.get(&format!("/v1/jobs/{id}/events")).json();
    assert_eq!(events["events"].as_array().unwrap().last().unwrap()["to"], "completed", "{events}");
    let removed = site.client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"");
    assert_eq!(removed.code(), 204, "{removed:?}");
    assert!(!site.output.join("one").exists(), "what was published goes with the job");
    assert_eq!(files(ode), Vec::<std::path::PathBuf>::new(), "and so do its files");
    site.client.get(&format!("/v1/jobs/{id}")).assert_problem(404, "NOT_FOUND");
    // The name is free again.
    site.client.submitted(&asked);
}

/// Lines are written by a task of their own, and may come a moment after the end.
fn has_said(client: &Client, id: &str, level: &str) {
    until("the log tells of it", || {
        let logs = client.get(&format!("/v1/jobs/{id}/logs")).json();
        logs["logs"].as_array().unwrap().iter().any(|line| line["level"] == level)
    });
}

fn check_telemetry(telemetry: &Value, bytes_in: usize) {
    assert_eq!((&telemetry["pages"], &telemetry["bytes_in"]), (&json!(1), &json!(bytes_in)), "{telemetry}");
    for name in ["peak_memory_bytes", "bytes_out"] {
        assert!(telemetry[name].as_u64().unwrap() > 0, "{name}: {telemetry}");
    }
    assert!(telemetry["cpu_ms"].is_u64(), "{telemetry}");
    for stage in ["read", "convert", "store", "publish"] {
        assert!(telemetry["stages_ms"][stage].is_u64(), "{stage}: {telemetry}");
    }
}

/// What is listed is what is fetched and what was published.
fn check_asset(site: &Site, asset: &Value) {
    let fetched = Client::stranger(&site.serving).get(asset["url"].as_str().unwrap());
    assert_eq!(fetched.code(), 200, "{asset}: {fetched:?}");
    assert!(fetched.header("content-security-policy").starts_with("sandbox"), "{fetched:?}");
    let path = asset["s3_path"].as_str().unwrap().strip_prefix("file://").unwrap();
    let published = std::fs::read(path).unwrap();
    assert_eq!(asset["content_hash"], sha256(&published), "{asset}");
    assert_eq!(asset["file_size_bytes"], published.len(), "{asset}");
}

fn check_view(site: &Site, id: &str) {
    let view = site.client.get(&format!("/v1/jobs/{id}/view"));
    assert_eq!(view.code(), 303, "{view:?}");
    let stranger = Client::stranger(&site.serving);
    let page = stranger.get(view.header("location"));
    assert!(page.code() == 200 && page.body.contains("RE-4711"), "{page:?}");
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("sandbox")
            && !policy.contains("allow-same-origin")
            && !policy.contains("script-src")
    );
    let style = view.header("location").replace("index.html", "style.css");
    assert_eq!(stranger.get(&style).header("access-control-allow-origin"), "*");
    // A link for one job opens no other, and none that was changed.
    let wrong = view.header("location").replacen(id, "00000000-0000-7000-8000-000000000000", 1);
    stranger.get(&wrong).assert_problem(404, "NOT_FOUND");
    let wrong = view.header("location").replacen('-', "-0", 1);
    stranger.get(&wrong).assert_problem(404, "NOT_FOUND");
}

#[test]
fn a_visitor_sees_a_document_as_a_page() {
    let ode = Ode::sqlite();
    let site = Site::start(&ode);
    let visitor = Client::browser(&site.serving);
    let answer = visitor.upload(&[("report.pdf", &pdf("RE-4711"))], &[("mapping", "html5")]);
    assert_eq!(answer.code(), 201, "{answer:?}");
    let id = answer.json()["job"]["id"].as_str().unwrap().to_owned();
    until("it is ready", || visitor.get(&format!("/api/jobs/{id}")).json()["phase"] == "done");
    let job = visitor.get(&format!("/api/jobs/{id}")).json();
    assert_eq!((&job["label"], &job["is_expired"]), (&json!("Ready"), &json!(false)), "{job}");
    let view = job["links"]["view"].as_str().unwrap();
    for page in ["/".to_owned(), "/?show=ready".to_owned(), format!("/jobs/{id}")] {
        let page = visitor.get(&page);
        assert!(page.body.contains(&format!("href=\"{view}\"")), "{page:?}");
        assert!(!page.body.contains("Removed"), "{page:?}");
    }
    let link = visitor.get(view);
    assert_eq!(link.code(), 303, "{link:?}");
    let shown = Client::stranger(&site.serving).get(link.header("location"));
    assert!(shown.code() == 200 && shown.body.contains("RE-4711"), "{shown:?}");
    assert!(shown.header("content-security-policy").starts_with("sandbox"), "{shown:?}");
    let zip = visitor.get(&format!("/api/jobs/{id}/download"));
    assert!(zip.code() == 200 && zip.body.starts_with("PK"), "{zip:?}");
    assert!(zip.header("content-disposition").contains("report.zip"), "{zip:?}");
    Client::browser(&site.serving).get(view).assert_problem(404, "NOT_FOUND");
}

fn a_document_that_cannot_be_read_fails_with_its_reason_in_the_log(ode: &Ode) {
    let site = Site::start(ode);
    let broken = b"%PDF-1.7\nnothing in it\nstartxref\n9\n%%EOF\n";
    let answer = site.client.submit_file(broken, &[("external_id", "broken"), ("config", "{\"zoom\":2}")]);
    assert_eq!(answer.code(), 202, "{answer:?}");
    let id = answer.json()["job_id"].as_str().unwrap().to_owned();
    let job = site.client.ended(&id);
    assert_eq!(job["status"], "failed", "{job}");
    assert!(job["error"]["code"].is_string(), "{job}");
    let telemetry = &job["telemetry"];
    assert_eq!(telemetry["bytes_in"], json!(broken.len()), "what is known of its cost is told: {job}");
    assert!(telemetry["peak_memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{telemetry}");
    assert!(telemetry["cpu_ms"].is_u64() && telemetry["stages_ms"]["convert"].is_u64(), "{telemetry}");
    has_said(&site.client, &id, "error");
    assert_eq!(site.client.get(&format!("/v1/jobs/{id}/assets")).json()["assets"], json!([]));
    assert_eq!(site.client.get(&format!("/v1/jobs/{id}/view")).code(), 409);
    // What is no PDF does not become a job, and the digest that is given must be the document's.
    site.client.submit_file(b"just text", &[("external_id", "text")]).assert_problem(415, "NOT_PDF");
    let asked = json!({ "external_id": "other", "input_s3_path": site.put("a.pdf", &pdf("RE-1")),
        "input_sha256": "0".repeat(64) });
    let job = site.client.ended(&site.client.submitted(&asked));
    assert_eq!(job["error"]["code"], "INVALID", "{job}");
}

fn a_job_that_waits_is_called_off_by_its_removal(ode: &Ode) {
    let serving = crate::web::client::web_with(ode, &["--input-root", ode.data().to_str().unwrap()]);
    let client = Client::program(&serving, &super::key(ode, "acme"));
    let id = client.submitted(&request("a", &format!("file://{}/a.pdf", ode.data().display())));
    assert_eq!(client.job(&id)["status"], "pending");
    client.get(&format!("/v1/jobs/{id}/view")).assert_problem(409, "NOT_READY");
    assert_eq!(client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"").code(), 204);
    client.get(&format!("/v1/jobs/{id}")).assert_problem(404, "NOT_FOUND");
}

fn two_jobs_do_not_share_a_prefix(ode: &Ode) {
    let site = Site::start(ode);
    let address = site.put("doc.pdf", &pdf("RE-1"));
    let asked = |name: &str| json!({ "external_id": name, "input_s3_path": address, "output_s3_prefix": site.prefix("same") });
    let first = site.client.submitted(&asked("first"));
    assert_eq!(site.client.ended(&first)["status"], "completed");
    let second = site.client.ended(&site.client.submitted(&asked("second")));
    assert_eq!(
        (&second["status"], &second["error"]["code"]),
        (&json!("failed"), &json!("CONFLICT")),
        "{second}"
    );
    assert!(second["error"]["message"].as_str().unwrap().contains(&first), "{second}");
    assert!(site.output.join("same/index.html").exists());
}

#[test]
fn pages_are_shown_under_another_host_name_if_there_is_one() {
    let ode = &Ode::sqlite();
    let site = Site::start_with(ode, &["--view-origin", "https://views.example"]);
    let id = site.client.submitted(&request("one", &site.put("doc.pdf", &pdf("RE-4711"))));
    let job = site.client.ended(&id);
    let view = site.client.get(&format!("/v1/jobs/{id}/view"));
    let assets = site.client.get(&format!("/v1/jobs/{id}/assets")).json();
    let links = [
        view.header("location"),
        job["links"]["view"].as_str().unwrap(),
        assets["assets"][0]["url"].as_str().unwrap(),
    ];
    let visitor = Client::stranger(&site.serving);
    for link in links {
        let path = link.strip_prefix("https://views.example").unwrap_or_else(|| panic!("{link}"));
        let shown = visitor.get(path);
        assert_eq!(shown.code(), 200, "{shown:?}");
        assert!(shown.header("content-security-policy").starts_with("sandbox"), "{shown:?}");
    }
    // What is told of the job itself stays where it is.
    assert_eq!(job["links"]["self"], format!("/v1/jobs/{id}"));
}
