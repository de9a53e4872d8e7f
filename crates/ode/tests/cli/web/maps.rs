//! Maps over HTTP: kept, frozen, looked at, printed and fetched; and through the death of whoever draws them.

use super::client::{Client, FORM, form, until, web_with};
use crate::harness::{Ode, on_both};
use crate::serve::{PATIENCE, Serving};
use ode_job::JobRef;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

on_both!(
    a_map_is_printed_and_its_picture_fetched_by_its_content,
    a_wrong_specification_is_told_with_its_place,
    the_same_request_prints_once_and_a_reprint_prints_again,
    a_kept_map_is_drawn_as_it_was_when_it_was_frozen,
    maps_of_others_are_not_found,
    a_child_killed_while_it_draws_costs_one_try,
    a_worker_killed_while_it_exports_loses_nothing,
    exports_are_worked_off_by_the_command_line_twice_at_once,
    frozen_maps_without_a_job_get_one_and_only_one,
    the_page_of_maps_prints_once_however_often_its_form_is_sent,
    the_picture_of_a_print_is_downloaded_by_its_owner_alone,
    a_failed_export_is_tried_again,
);

const JSON: &str = "application/json";
const SMALL: &str = r#"{"schema": 1, "page": {"size": "A6", "dpi": 72}, "base": {"detail": "110m"}}"#;
/// One that takes long enough to be caught at it.
const LARGE: &str =
    r#"{"schema": 1, "page": {"size": "24x36"}, "base": {"detail": "10m", "countries": "tinted"}}"#;

fn post(client: &Client, path: &str, body: &Value) -> crate::serve::Answer {
    client.send("POST", path, JSON, body.to_string().as_bytes())
}

fn export(client: &Client, spec: &str) -> Value {
    let body = format!(r#"{{"data": {spec}}}"#);
    let answer = client.send("POST", "/api/export", JSON, body.as_bytes());
    assert_eq!(answer.code(), 201, "{answer:?}");
    answer.json()
}

fn print_job(client: &Client, exported: &Value) -> Value {
    let id = exported["printJobId"].as_str().unwrap();
    let answer = client.get(&format!("/api/print-jobs/{id}"));
    assert_eq!(answer.code(), 200, "{answer:?}");
    answer.json()
}

fn complete(client: &Client, exported: &Value) -> Value {
    until("the export", || {
        let job = print_job(client, exported);
        assert_ne!(job["state"], "export_failed", "{job}");
        job["state"] == "export_complete"
    });
    print_job(client, exported)
}

/// An answer's head as text, and its body as it is.
fn fetch(client: &Client, path: &str) -> (String, Vec<u8>) {
    fetch_from(client.address, path, &client.headers)
}

fn fetch_from(address: SocketAddr, path: &str, headers: &[(String, String)]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec())
}

fn serving(ode: &Ode) -> Serving {
    Serving::start(&mut ode.command([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--gateway",
        "off",
        "--uploads-a-minute",
        "1000",
    ]))
}

fn web(ode: &Ode) -> Serving {
    web_with(ode, &["--uploads-a-minute", "1000"])
}

fn worker(ode: &Ode) -> Serving {
    Serving::start(&mut ode.command(["worker", "--retry-base", "0.1"]))
}

fn size(png: &[u8]) -> [u32; 2] {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    [16, 20].map(|at| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()))
}

fn a_map_is_printed_and_its_picture_fetched_by_its_content(ode: &Ode) {
    let serving = serving(ode);
    let client = Client::browser(&serving);
    let exported = export(&client, SMALL);
    let map = exported["printableMapId"].as_str().unwrap().to_owned();
    let job = complete(&client, &exported);
    assert_eq!((&job["printable_map_id"], &job["error"]), (&json!(map), &Value::Null));
    let (url, sha256) = (job["export"]["url"].as_str().unwrap(), job["export"]["sha256"].as_str().unwrap());
    let (head, png) = fetch_from(serving.address(), url, &[]);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.to_lowercase().contains("content-type: image/png") && head.contains("immutable"), "{head}");
    let digest = hex::encode(Sha256::digest(&png));
    assert_eq!((digest.as_str(), job["export"]["bytes"].as_u64()), (sha256, Some(png.len() as u64)));
    assert_eq!(size(&png), [298, 420]);
    let stranger = Client::stranger(&serving);
    let (path, query) = url.split_once('?').unwrap();
    for wrong in [
        path.to_owned(),
        format!("{path}?{}", query.replace("signature=", "signature=0")),
        format!("{path}?{}", query.replace("expires=", "expires=9")),
        format!("/exports/{}.png?{query}", "0".repeat(64)),
        format!("{}?{query}", path.trim_end_matches(".png")),
    ] {
        stranger.get(&wrong).assert_problem(404, "NOT_FOUND");
    }
    let part = stranger.with("Range", "bytes=0-7").get(url);
    assert_eq!(
        (part.code(), part.header("content-range")),
        (206, format!("bytes 0-7/{}", png.len()).as_str())
    );
    // The frozen map is the whole of it, and its picture can be looked at.
    let frozen = client.get(&format!("/api/printable-maps/{map}")).json();
    assert_eq!(
        (&frozen["data"]["page"]["dpi"], &frozen["data"]["title"]["place"]),
        (&json!(72), &json!("bottom"))
    );
    let (head, preview) = fetch(&client, &format!("/api/printable-maps/{map}/preview?width=120"));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(size(&preview)[0], 120);
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let again =
        client.with("If-None-Match", &tag).get(&format!("/api/printable-maps/{map}/preview?width=120"));
    assert_eq!(again.code(), 304);
    let events = client.get(&format!("/api/jobs/{}/events", job["id"].as_str().unwrap())).json();
    let told = events["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&told["to"], &told["meta"]["export"]["sha256"]), (&json!("export_complete"), &json!(sha256)));
}

fn a_wrong_specification_is_told_with_its_place(ode: &Ode) {
    let serving = web(ode);
    let client = Client::browser(&serving);
    let check = |spec: &str, path: &str, word: &str| {
        let answer = client.send("POST", "/api/export", JSON, format!(r#"{{"data": {spec}}}"#).as_bytes());
        answer.assert_problem(422, "BAD_MAP");
        let problem = answer.json();
        assert_eq!(problem["path"].as_str().unwrap_or(""), path, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    };
    check(r#"{"schema": 2}"#, "schema", "Write 1");
    check(r#"{"schema": 1, "page": {"dpi": 5000}}"#, "page.dpi", "36 to 600");
    check(r#"{"schema": 1, "colour": "red"}"#, "colour", "Nothing here is called");
    check(r#"{"schema": 1, "projection": {"name": "globe"}}"#, "projection.name", "orthographic");
    let feature = |geometry: &str| {
        format!(
            r#"{{"schema": 1, "layers": [{{"data": {{"type": "FeatureCollection", "features": [
                {{"type": "Feature", "properties": {{}}, "geometry": {geometry}}}]}}}}]}}"#
        )
    };
    let place = "layers[0].data.features[0].geometry.coordinates";
    check(&feature(r#"{"type": "Point", "coordinates": [0, 91]}"#), place, "-90 to 90");
    check(&feature(r#"{"type": "Point", "coordinates": [1e300, 0]}"#), place, "longitude");
    check(&feature(r#"{"type": "LineString", "coordinates": [[0, 0]]}"#), place, "at least 2");
    for body in ["", "{", "[]", "{}", r#"{"data": }"#, r#"{"data": {"schema": NaN}}"#, r#"{"map": 1}"#] {
        client.send("POST", "/api/export", JSON, body.as_bytes()).assert_problem(400, "INVALID");
    }
    let deep = format!(r#"{{"data": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    client.send("POST", "/api/export", JSON, deep.as_bytes()).assert_problem(422, "BAD_MAP");
    let large = format!(r#"{{"data": "{}"}}"#, "x".repeat(17 << 20));
    client.send("POST", "/api/export", JSON, large.as_bytes()).assert_problem(413, "PAYLOAD_TOO_LARGE");
    let kept = json!({ "name": "Ours", "data": { "type": "FeatureCollection", "features": [{}] } });
    let answer = post(&client, "/api/user-maps", &kept);
    answer.assert_problem(422, "BAD_MAP");
    assert!(answer.json()["path"].as_str().unwrap().starts_with("features[0]"), "{answer:?}");
    assert_eq!(client.get("/api/printable-maps").json()["printable_maps"], json!([]), "nothing was kept");
}

fn the_same_request_prints_once_and_a_reprint_prints_again(ode: &Ode) {
    let serving = web(ode);
    let client = Client::browser(&serving);
    let keyed = client.with("Idempotency-Key", "poster-1");
    let body = format!(r#"{{"data": {SMALL}}}"#);
    let first = keyed.send("POST", "/api/export", JSON, body.as_bytes());
    let second = keyed.send("POST", "/api/export", JSON, body.as_bytes());
    assert_eq!((first.code(), second.code()), (201, 200));
    assert_eq!(first.json(), second.json());
    keyed.send("POST", "/api/export", JSON, br#"{"data": {"schema": 1}}"#).assert_problem(400, "INVALID");
    let (job, map) = (first.json()["printJobId"].clone(), first.json()["printableMapId"].clone());
    let path = format!("/api/print-jobs/{}/reprint", job.as_str().unwrap());
    let reprint = client.post(&path).json();
    assert_eq!(reprint["printableMapId"], map);
    assert_ne!(reprint["printJobId"], job);
    let again = client.post(&format!("/api/printable-maps/{}/export", map.as_str().unwrap()));
    assert_eq!((again.code(), &again.json()["printableMapId"]), (201, &map));
    let jobs = client.get("/api/print-jobs?state=pending_export&limit=2").json();
    assert_eq!(jobs["print_jobs"].as_array().unwrap().len(), 2);
    let rest =
        client.get(&format!("/api/print-jobs?cursor={}", jobs["next_cursor"].as_str().unwrap())).json();
    assert_eq!((rest["print_jobs"].as_array().unwrap().len(), &rest["next_cursor"]), (1, &Value::Null));
    client.post(&format!("/api/print-jobs/{}/retry", job.as_str().unwrap())).assert_problem(409, "CONFLICT");
}

fn a_kept_map_is_drawn_as_it_was_when_it_was_frozen(ode: &Ode) {
    let serving = web(ode);
    let client = Client::browser(&serving);
    let place = |lon: f64| {
        json!({ "type": "FeatureCollection", "features": [{ "type": "Feature", "id": 7, "properties": { "name": "Here" },
            "geometry": { "type": "Point", "coordinates": [lon, 52.5] } }] })
    };
    let made = post(&client, "/api/user-maps", &json!({ "name": "Ours", "data": place(13.4) }));
    assert_eq!(made.code(), 201, "{made:?}");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let spec = json!({ "schema": 1, "page": { "size": "A6", "dpi": 72 }, "layers": [{ "style": { "marker": "pin" } }] });
    let exported = post(&client, "/api/export", &json!({ "userMapId": id, "data": spec }));
    assert_eq!(exported.code(), 201, "{exported:?}");
    let put = json!({ "name": "Ours", "data": place(0.0), "version": 1 });
    let address = format!("/api/user-maps/{id}");
    let changed = client.send("PUT", &address, JSON, put.to_string().as_bytes());
    assert_eq!((changed.code(), &changed.json()["version"]), (200, &json!(2)));
    client.send("PUT", &address, JSON, put.to_string().as_bytes()).assert_problem(409, "CONFLICT");
    assert_eq!(client.get(&address).json()["data"]["features"][0]["id"], 7, "all of the GeoJSON is kept");
    assert_eq!(client.send("DELETE", &address, "", b"").code(), 204);
    client.get(&address).assert_problem(404, "NOT_FOUND");
    let map = exported.json()["printableMapId"].as_str().unwrap().to_owned();
    let frozen = client.get(&format!("/api/printable-maps/{map}")).json();
    let layer = &frozen["data"]["layers"][0];
    assert_eq!((&layer["style"]["marker"], &frozen["user_map_version"]), (&json!("pin"), &json!(1)));
    assert_eq!(layer["data"]["features"][0]["geometry"]["coordinates"], json!([13.4, 52.5]));
    let preview = post(&client, "/api/export/preview?width=64", &json!({ "data": spec }));
    assert_eq!((preview.code(), preview.header("content-type")), (200, "image/png"));
}

fn maps_of_others_are_not_found(ode: &Ode) {
    let serving = web(ode);
    let (ours, theirs) = (Client::browser(&serving), Client::browser(&serving));
    let features = json!({ "type": "FeatureCollection", "features": [] });
    let kept = post(&ours, "/api/user-maps", &json!({ "name": "Ours", "data": features })).json();
    let exported = export(&ours, SMALL);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (kept, map, job) =
        (text(&kept["id"]), text(&exported["printableMapId"]), text(&exported["printJobId"]));
    for path in [
        format!("/api/user-maps/{kept}"),
        format!("/api/printable-maps/{map}"),
        format!("/api/printable-maps/{map}/preview"),
        format!("/api/print-jobs/{job}"),
        "/api/user-maps/nothing".into(),
    ] {
        theirs.get(&path).assert_problem(404, "NOT_FOUND");
    }
    for path in [
        format!("/api/printable-maps/{map}/export"),
        format!("/api/print-jobs/{job}/reprint"),
        format!("/api/print-jobs/{job}/retry"),
    ] {
        theirs.post(&path).assert_problem(404, "NOT_FOUND");
    }
    let body = json!({ "userMapId": kept });
    post(&theirs, "/api/export", &body).assert_problem(404, "NOT_FOUND");
    theirs.send("DELETE", &format!("/api/user-maps/{kept}"), "", b"").assert_problem(404, "NOT_FOUND");
    assert_eq!(post(&ours, "/api/export", &body).code(), 201);
}

/// The children of this process that draw.
fn drawing_children(parent: u32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let is_child = read("status").contains(&format!("PPid:\t{parent}\n"));
        is_child && read("cmdline").contains("child\0map")
    })
    .collect()
}

fn exporting(ode: &Ode, exported: &Value) -> bool {
    let name: JobRef = exported["printJobId"].as_str().unwrap().parse().unwrap();
    ode.with_store(async |store| store.job(name).await.unwrap().state.as_str() == "exporting")
}

fn a_child_killed_while_it_draws_costs_one_try(ode: &Ode) {
    let serving = web(ode);
    let client = Client::browser(&serving);
    let exported = export(&client, LARGE);
    let worker = worker(ode);
    let mut killed = Vec::new();
    until("a child to kill", || {
        killed = drawing_children(worker.child.id());
        killed.iter().for_each(|pid| {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        });
        !killed.is_empty()
    });
    let job = complete(&client, &exported);
    assert_eq!(job["attempt_count"], 2, "{job}");
    let (_, png) = fetch(&client, job["export"]["url"].as_str().unwrap());
    assert_eq!(size(&png), [7200, 10_800]);
}

fn a_worker_killed_while_it_exports_loses_nothing(ode: &Ode) {
    let serving = web(ode);
    let client = Client::browser(&serving);
    let exported = export(&client, LARGE);
    let killed = worker(ode);
    until("the export to begin", || exporting(ode, &exported));
    killed.signal(Signal::KILL);
    let _other = worker(ode);
    let job = complete(&client, &exported);
    assert_eq!((&job["attempt_count"], &job["retry_count"]), (&json!(2), &json!(0)), "{job}");
    let events = client.get(&format!("/api/jobs/{}/events", job["id"].as_str().unwrap())).json();
    let words: Vec<&str> =
        events["events"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(words, ["created", "processing", "rescued", "processing", "complete"]);
    let (_, png) = fetch(&client, job["export"]["url"].as_str().unwrap());
    assert_eq!(size(&png), [7200, 10_800]);
}

fn exports_are_worked_off_by_the_command_line_twice_at_once(ode: &Ode) {
    let spec = ode.path("map.json");
    std::fs::write(&spec, SMALL).unwrap();
    let jobs: Vec<Value> = (0..6).map(|_| ode.json(["print", "export", spec.to_str().unwrap()])).collect();
    assert_eq!(ode.json(["export:queue"]).as_array().unwrap().len(), 6);
    assert_eq!(ode.json(["export:queue", "--dry-run"]).as_array().unwrap().len(), 6);
    let start = || {
        let mut command = ode.command(["export:queue", "--here"]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut both = [start(), start()];
    for one in &mut both {
        assert!(one.wait().unwrap().success());
    }
    assert_eq!(ode.json(["export:queue"]), json!([]));
    ode.with_store(async |store| {
        for job in &jobs {
            let job = store.job(job["printJobId"].as_str().unwrap().parse().unwrap()).await.unwrap();
            assert_eq!((job.state.as_str(), job.attempt_count), ("export_complete", 1));
            assert_eq!(store.artifacts(job.id).await.unwrap().len(), 1);
        }
    });
    let bad = ode.path("bad.json");
    std::fs::write(&bad, r#"{"schema": 1, "page": {"dpi": 1}}"#).unwrap();
    ode.run(["print", "export", bad.to_str().unwrap()]).assert_refused(&["At page.dpi", "36 to 600"]);
}

fn frozen_maps_without_a_job_get_one_and_only_one(ode: &Ode) {
    ode.ok(["migrate", "up"]);
    let text = r#"{"schema":1}"#;
    let sha256 = hex::encode(Sha256::digest(text));
    for number in 1..=3 {
        let id = format!("00000000-0000-7000-8000-00000000000{number}");
        let id = if ode.url().starts_with("sqlite") {
            format!("x'{}'", id.replace('-', ""))
        } else {
            format!("'{id}'")
        };
        ode.sql(&format!(
            "INSERT INTO printable_maps (id, data, sha256) VALUES ({id}, '{text}', '{sha256}')"
        ));
    }
    assert_eq!(ode.json(["print", "backfill", "--dry-run"]).as_array().unwrap().len(), 3);
    let start = || ode.command(["print", "backfill"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut both = [start(), start()];
    for one in &mut both {
        assert!(one.wait().unwrap().success());
    }
    assert_eq!(ode.json(["print", "backfill"]), json!([]));
    assert_eq!(ode.json(["export:queue"]).as_array().unwrap().len(), 3);
}

/// What a form without files is sent as.
const PLAIN_FORM: &str = "application/x-www-form-urlencoded";

fn the_page_of_maps_prints_once_however_often_its_form_is_sent(ode: &Ode) {
    let serving = serving(ode);
    let client = Client::browser(&serving);
    let page = client.with("Accept", "text/html");
    assert!(page.get("/maps").body.contains("No maps yet"));
    let send = |file: &str| {
        let form = form(&[("Our journeys.geojson", file.as_bytes())], &[]);
        page.send("POST", "/maps", FORM, &form)
    };
    assert_eq!(send(r#"{"type": "FeatureCollection", "features": []}"#).code(), 303);
    let refused = send(r#"{"schema": 1, "page": {"size": "A7"}}"#);
    assert!(refused.code() == 422 && refused.body.contains("<h1>"), "{refused:?}");
    let jobs = || client.get("/api/print-jobs").json()["print_jobs"].as_array().unwrap().clone();
    let made = jobs();
    let (map, job) = (made[0]["printable_map_id"].as_str().unwrap(), made[0]["id"].as_str().unwrap());
    let shown = client.get(&format!("/api/printable-maps/{map}")).json();
    assert_eq!((&shown["title"], &shown["page_size"]), (&json!("Our journeys"), &json!("18x24")), "{shown}");
    until("the export", || jobs()[0]["state"] == "export_complete");
    assert!(page.get("/maps").body.contains("Reprint"));
    for _ in 0..2 {
        let asked = format!("after={job}");
        let answer = page.send("POST", &format!("/maps/{map}/print"), PLAIN_FORM, asked.as_bytes());
        assert_eq!(answer.code(), 303, "{answer:?}");
    }
    assert_eq!(jobs().len(), 2, "asked for twice after the same print");
    assert!(page.get("/maps").body.contains("Earlier prints"));
    let stranger = Client::browser(&serving).with("Accept", "text/html");
    let theirs = stranger.send(
        "POST",
        &format!("/maps/{map}/print"),
        PLAIN_FORM,
        b"after=00000000-0000-0000-0000-000000000000",
    );
    assert_eq!(theirs.code(), 404, "{theirs:?}");
    assert_eq!(stranger.post(&format!("/print-jobs/{job}/retry")).code(), 404);
}

fn the_picture_of_a_print_is_downloaded_by_its_owner_alone(ode: &Ode) {
    let (web, path) = (web(ode), |id: &Value| format!("/api/print-jobs/{}/download", id.as_str().unwrap()));
    let client = Client::browser(&web);
    let exported = export(&client, SMALL);
    let path = path(&exported["printJobId"]);
    client.get(&path).assert_problem(409, "NOT_READY");
    let _worker = worker(ode);
    complete(&client, &exported);
    let (head, png) = fetch(&client, &path);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("attachment; filename=\"JOB_"), "{head}");
    assert_eq!(size(&png), [298, 420]);
    Client::browser(&web).get(&path).assert_problem(404, "NOT_FOUND");
}

fn a_failed_export_is_tried_again(ode: &Ode) {
    let web = web(ode);
    let client = Client::browser(&web);
    let exported = export(&client, SMALL);
    let id = exported["printJobId"].as_str().unwrap();
    let path = format!("/api/print-jobs/{id}/retry");
    client.post(&path).assert_problem(409, "CONFLICT");
    let lost = ode_job::Failure::rejected(ode_job::ErrorCode::IoError, "The disk was away");
    ode.finish(ode_print::machine::EXPORT, ode_job::Ended::Failed(lost));
    assert_eq!(print_job(&client, &exported)["state"], "export_failed");
    assert!(client.with("Accept", "text/html").get("/maps").body.contains("Retry"));
    assert_eq!(client.post(&format!("/print-jobs/{id}/retry")).code(), 303);
    let _worker = worker(ode);
    complete(&client, &exported);
}
