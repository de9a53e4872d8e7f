//! Documents on their way to XML in the real binary: with the built-in converter, with a gateway elsewhere that does
//! everything a gateway should not, through crashes, outages and full disks.

use crate::convert::invoice;
use crate::harness::{Ode, on_both};
use crate::serve::{PATIENCE, Serving, assert_stopped};
use crate::standin::{Mood, StandIn};
use crate::web::client::Client;
use jiff::Timestamp;
use ode_job::estimate::TimeLeft;
use ode_job::{Artifact, EventRecord, JobId, JobRecord, JobRef, NewJob, Pipeline};
use ode_store::{Blobs, BlobsConfig, Retention};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Read as _;
use std::time::{Duration, Instant};
use uuid::Uuid;

on_both!(
    an_upload_becomes_xml_with_its_findings_and_history,
    five_uploads_are_three_that_convert_and_two_that_wait,
    documents_that_cannot_be_converted_fail_at_once_with_their_code,
    scenario_1_a_gateway_that_takes_200_seconds_is_given_up_after_180,
    scenario_2_a_502_is_tried_again_with_growing_pauses,
    scenario_3_a_full_disk_is_a_storage_issue_that_passes,
    scenario_4_a_worker_killed_in_the_middle_loses_nothing,
    scenario_5_an_unknown_mapping_fails_as_refused_by_the_gateway,
    mode_1_a_worker_that_hangs_loses_its_job_to_another,
    mode_2_a_dead_gateway_is_left_alone_and_no_try_is_used_up,
    mode_3_the_backup_works_while_the_first_gateway_is_away,
    mode_4_a_full_disk_pauses_uploads_until_there_is_room,
    mode_6_a_broken_mapping_is_not_rolled_out_and_a_mended_one_is,
    mode_7_two_connections_are_enough_for_many_jobs_and_readers,
    the_time_left_is_right_within_half_once_ten_files_were_seen,
    a_long_outage_fails_what_waits_and_a_retry_works_when_it_is_over,
    a_gateway_that_is_not_there_or_says_too_much_is_a_gateway_that_fails,
    a_cleanup_killed_at_each_named_point_is_gone_on_with,
    a_deletion_killed_half_way_is_gone_on_with,
);

/// Longer than anything here takes, unless it is stuck.
const LONG: Duration = Duration::from_secs(60);

fn blobs(ode: &Ode) -> Blobs {
    Blobs::open(&BlobsConfig::Local(ode.data().join("files"))).unwrap()
}

/// Uploads documents as the web side does; answers their jobs.
fn upload(ode: &Ode, mapping: &str, documents: &[Vec<u8>]) -> Vec<JobId> {
    let blobs = blobs(ode);
    ode.with_store(async |store| {
        let mut ids = Vec::new();
        for document in documents {
            let stored = blobs.put(JobId(Uuid::now_v7()), 0, 0, document.clone()).await.unwrap();
            let facts = json!({ "name": "invoice.pdf", "bytes": stored.bytes, "sha256": stored.sha256 });
            let source = Artifact {
                role: "source".into(),
                name: "invoice.pdf".into(),
                storage: stored.storage.into(),
                path: stored.path,
                content_type: "application/pdf".into(),
                bytes: stored.bytes,
                sha256: stored.sha256,
            };
            let job = NewJob::new(Pipeline::Xml, mapping, json!({ "document": facts }));
            ids.push(store.enqueue_file(job, source).await.unwrap().id());
        }
        ids
    })
}

fn invoices(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| invoice(&format!("INV-{number}"))).collect()
}

fn record(ode: &Ode, id: JobId) -> JobRecord {
    ode.with_store(async |store| store.job(JobRef::Id(id)).await.unwrap())
}

fn events(ode: &Ode, id: JobId) -> Vec<EventRecord> {
    ode.with_store(async |store| store.events(id).await.unwrap())
}

fn words(ode: &Ode, id: JobId) -> Vec<String> {
    events(ode, id).iter().map(|event| event.event.to_string()).collect()
}

/// Waits until this is so; the jobs as they are then.
#[track_caller]
fn wait(ode: &Ode, ids: &[JobId], what: &str, is_so: impl Fn(&[JobRecord]) -> bool) -> Vec<JobRecord> {
    let deadline = Instant::now() + LONG;
    ode.with_store(async |store| {
        loop {
            let mut jobs = Vec::new();
            for id in ids {
                jobs.push(store.job(JobRef::Id(*id)).await.unwrap());
            }
            if is_so(&jobs) {
                return jobs;
            }
            assert!(Instant::now() < deadline, "waited in vain for {what}: {jobs:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

fn all(state: &str) -> impl Fn(&[JobRecord]) -> bool {
    move |jobs| jobs.iter().all(|job| job.state.as_str() == state)
}

fn worker(ode: &Ode, more: &[&str]) -> Serving {
    let args = std::iter::once("worker").chain(more.iter().copied());
    // A clock that runs a hundred times as fast, unless a test says otherwise.
    let scaled = [("ODE_RETRY_BASE", "0.05"), ("ODE_GATEWAY_TIMEOUT", "1.8")];
    Serving::start(ode.command(args).envs(scaled))
}

/// A worker that converts elsewhere.
fn remote(ode: &Ode, gateway: &StandIn, more: &[&str]) -> Serving {
    worker(ode, &[&["--gateway-url", &gateway.url], more].concat())
}

fn an_upload_becomes_xml_with_its_findings_and_history(ode: &Ode) {
    let worker = worker(ode, &[]);
    let ids = upload(ode, "generic_invoice_v1", &invoices(1));
    let job = wait(ode, &ids, "the XML", all("complete")).remove(0);
    let result = job.result.unwrap();
    assert_eq!((&result["mapping"], &result["gateway"]), (&json!("generic_invoice_v1"), &json!("built-in")));
    assert_eq!((&result["pages"], &result["output"]), (&json!(1), &json!("own")));
    let blobs = blobs(ode);
    ode.with_store(async |store| {
        let files = store.artifacts(job.id).await.unwrap();
        let xml = files.iter().find(|file| file.role == "result").unwrap();
        assert_eq!((xml.name.as_str(), xml.content_type.as_str()), ("invoice.xml", "application/xml"));
        let xml = blobs.get(&xml.path, &xml.sha256).await.unwrap();
        assert!(String::from_utf8_lossy(&xml).contains("INV-0"));
        let found = result["findings"].as_array().unwrap().len();
        assert_eq!(store.checks(job.id).await.unwrap().len(), found);
    });
    assert_eq!(words(ode, job.id), ["created", "queued", "processing", "complete"]);
    let meta = events(ode, job.id)[3].meta.clone().unwrap();
    assert_eq!((&meta["gateway"], &meta["attempt_count"]), (&json!("built-in"), &json!(1)));
    assert!(meta["duration_ms"].is_u64(), "{meta}");
    assert_stopped(&worker.stop(Signal::TERM));
}

fn five_uploads_are_three_that_convert_and_two_that_wait(ode: &Ode) {
    let gateway = StandIn::start(Mood::Slow(Duration::from_millis(1500)));
    let _worker = remote(ode, &gateway, &[]);
    let ids = upload(ode, "auto", &invoices(5));
    let count =
        |jobs: &[JobRecord], state: &str| jobs.iter().filter(|job| job.state.as_str() == state).count();
    let jobs = wait(ode, &ids, "three at a time", |jobs| count(jobs, "processing") == 3);
    assert_eq!(count(&jobs, "queued"), 2);
    wait(ode, &ids, "all of them", all("complete"));
    assert_eq!((gateway.most(), gateway.calls().len()), (3, 5));
}

fn documents_that_cannot_be_converted_fail_at_once_with_their_code(ode: &Ode) {
    let whole = invoice("INV-1");
    let encrypted = {
        let mut builder = crate::builder::Builder::new();
        builder.page("/MediaBox[0 0 100 100]", "");
        let mut bytes = builder.bytes();
        let at = bytes.windows(7).rposition(|bytes| bytes == b"trailer").unwrap();
        let dictionary = bytes[at..].windows(2).position(|bytes| bytes == b"<<").unwrap() + at + 2;
        let entry = b"/Encrypt<</Filter/Standard/V 4/R 4/Length 128/P -4/O(00000000000000000000000000000000)/U(00000000000000000000000000000000)/CF<</StdCF<</CFM/AESV2/Length 16>>>>/StmF/StdCF/StrF/StdCF>>/ID[(0000000000000000)(0000000000000000)]";
        bytes.splice(dictionary..dictionary, entry.iter().copied());
        bytes
    };
    let no_pages =
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF".to_vec();
    let documents = [
        b"Dear Sir or Madam".to_vec(),
        whole[..whole.len() / 3].to_vec(),
        no_pages,
        encrypted,
        crate::convert::blank(),
    ];
    let _worker = worker(ode, &[]);
    let ids = upload(ode, "generic_invoice_v1", &documents);
    let jobs = wait(ode, &ids, "all to fail", all("failed"));
    let codes: Vec<_> = jobs.iter().map(|job| job.error_code.clone().unwrap()).collect();
    assert_eq!(codes[0], "NOT_PDF");
    assert_eq!(codes[1..], ["TRUNCATED", "NO_PAGES", "ENCRYPTED", "NO_TEXT"]);
    for job in &jobs {
        assert_eq!((job.attempt_count, job.retry_count), (1, 0), "no second try mends {job:?}");
        assert!(!job.error_message.as_ref().unwrap().contains("::"), "{job:?}");
    }
}

fn scenario_1_a_gateway_that_takes_200_seconds_is_given_up_after_180(ode: &Ode) {
    let gateway = StandIn::start(Mood::Slow(Duration::from_secs(2)));
    let _worker = remote(ode, &gateway, &["--retries", "1"]);
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "the last try", all("failed")).remove(0);
    assert_eq!((job.error_code.as_deref(), job.attempt_count), (Some("GW_TIMEOUT"), 2));
    assert_eq!(job.error_message.as_deref(), Some("Conversion is taking too long. Retry it later"));
    let told = events(ode, job.id);
    let failed: Vec<&Value> = told
        .iter()
        .filter(|event| event.event.as_str() == "failed")
        .map(|event| event.meta.as_ref().unwrap())
        .collect();
    for meta in &failed {
        let duration = meta["duration_ms"].as_u64().unwrap();
        assert!((1750..2000).contains(&duration), "cut off at 1.8 s: {meta}");
        assert_eq!((&meta["gateway"], &meta["http_status"]), (&json!(gateway.url), &Value::Null));
    }
    let messages: Vec<_> = failed.iter().map(|meta| meta["message"].as_str().unwrap()).collect();
    let what = "Conversion is taking too long.";
    assert_eq!(messages, [format!("{what} We'll retry"), format!("{what} Retry it later")]);
    assert_eq!(
        failed.iter().map(|meta| meta["attempt_count"].clone()).collect::<Vec<_>>(),
        [json!(1), json!(2)]
    );
}

fn scenario_2_a_502_is_tried_again_with_growing_pauses(ode: &Ode) {
    let gateway = StandIn::start(Mood::Says(502));
    let _worker = remote(ode, &gateway, &["--retry-base", "0.4", "--breaker-calls", "100"]);
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "the last try", all("failed")).remove(0);
    assert_eq!((job.error_code.as_deref(), job.attempt_count, job.retry_count), (Some("GW_5XX"), 4, 3));
    assert_eq!(job.error_message.as_deref(), Some("Converter is having an issue. Retry it later"));
    assert_eq!(job.error_detail.as_deref().map(|detail| detail.contains("502")), Some(true));
    let told = events(ode, job.id);
    let pauses: Vec<f64> = told
        .iter()
        .filter(|event| event.event.as_str() == "retry")
        .map(|event| {
            let meta = event.meta.as_ref().unwrap();
            let run_at: Timestamp = meta["run_at"].as_str().unwrap().parse().unwrap();
            run_at.duration_since(event.at).as_secs_f64()
        })
        .collect();
    assert_eq!(pauses.len(), 3, "{told:?}");
    for (pause, least) in pauses.iter().zip([0.4, 0.8, 1.6]) {
        assert!((least - 0.05..=least + 0.45).contains(pause), "5 s × 2ⁿ and up to 5 s, scaled: {pauses:?}");
    }
    let first = told.iter().find(|event| event.event.as_str() == "failed").unwrap().meta.clone().unwrap();
    assert_eq!((&first["http_status"], &first["gateway"]), (&json!(502), &json!(gateway.url)));
}

fn scenario_4_a_worker_killed_in_the_middle_loses_nothing(ode: &Ode) {
    let gateway = StandIn::start(Mood::Slow(Duration::from_millis(1200)));
    let killed = remote(ode, &gateway, &[]);
    let ids = upload(ode, "auto", &invoices(2));
    wait(ode, &ids, "both to begin", all("processing"));
    killed.signal(Signal::KILL);
    let began = Instant::now();
    let _other = remote(ode, &gateway, &[]);
    let jobs = wait(ode, &ids, "another worker", all("complete"));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for job in &jobs {
        let words = words(ode, job.id);
        assert_eq!(words, ["created", "queued", "processing", "rescued", "processing", "complete"]);
        assert_eq!((job.attempt_count, job.retry_count), (2, 0));
    }
    ode.with_store(async |store| {
        for id in &ids {
            let results = store.artifacts(*id).await.unwrap();
            assert_eq!(results.iter().filter(|file| file.role == "result").count(), 1);
        }
    });
}

fn scenario_5_an_unknown_mapping_fails_as_refused_by_the_gateway(ode: &Ode) {
    let _worker = worker(ode, &[]);
    let ids = upload(ode, "no_such_mapping_v9", &invoices(1));
    let job = wait(ode, &ids, "the refusal", all("failed")).remove(0);
    assert_eq!((job.error_code.as_deref(), job.attempt_count), (Some("GW_4XX"), 1));
    assert!(job.error_message.unwrap().contains("no_such_mapping_v9"));
}

fn mode_1_a_worker_that_hangs_loses_its_job_to_another(ode: &Ode) {
    let gateway = StandIn::start(Mood::Slow(Duration::from_millis(1500)));
    let hung = remote(ode, &gateway, &[]);
    let ids = upload(ode, "auto", &invoices(1));
    wait(ode, &ids, "it to begin", all("processing"));
    hung.signal(Signal::STOP);
    let _other = remote(ode, &gateway, &[]);
    let job = wait(ode, &ids, "another worker", all("complete")).remove(0);
    let fence = job.attempt_count;
    hung.signal(Signal::CONT);
    // The one that wakes up finds its lease gone, and changes nothing.
    std::thread::sleep(Duration::from_secs(3));
    let after = record(ode, ids[0]);
    assert_eq!(
        (after.state.as_str(), after.attempt_count, after.updated_at),
        ("complete", fence, job.updated_at)
    );
}

fn mode_2_a_dead_gateway_is_left_alone_and_no_try_is_used_up(ode: &Ode) {
    let gateway = StandIn::start(Mood::Says(503));
    let worker =
        remote(ode, &gateway, &["--breaker-calls", "6", "--breaker-cool-down", "1.5", "--retry-base", "1"]);
    let ids = upload(ode, "auto", &invoices(20));
    let deadline = Instant::now() + LONG;
    let workers = loop {
        let workers = ode.json(["workers"]);
        if workers[0]["breakers"][0]["state"] == "open" {
            break workers;
        }
        assert!(Instant::now() < deadline, "{workers}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(workers[0]["breakers"][0]["name"], format!("gateway {}", gateway.url));
    let table = ode.ok(["workers"]);
    assert!(
        table.contains("AWAY SINCE") && table.contains(&gateway.url) && table.contains("open"),
        "{table}"
    );
    let calls = gateway.calls().len();
    // Three at a time until six had failed, and a probe or two before a slow machine looks.
    assert!((6..ids.len()).contains(&calls), "not every job was tried: {calls}");
    let tried = |jobs: &[JobRecord]| jobs.iter().filter(|job| job.attempt_count > 0).count();
    let jobs = wait(ode, &ids, "all to be queued but the one that probes", |jobs| {
        jobs.iter().filter(|job| job.state.as_str() != "queued").count() <= 1
    });
    assert!(jobs.iter().all(|job| job.finished_at.is_none()), "nothing ended: {jobs:#?}");
    assert!(tried(&jobs) < ids.len(), "the others wait untouched");
    // Probes go out one at a time and cost nothing.
    std::thread::sleep(Duration::from_secs(4));
    let probes = gateway.calls().len() - calls;
    assert!((1..=10).contains(&probes), "{probes} probes in 4 s at a cool-down of 1.5 s");
    assert!(tried(&wait(ode, &ids, "nothing", |_| true)) < ids.len());
    gateway.set(Mood::Well);
    let jobs = wait(ode, &ids, "all of them", all("complete"));
    assert!(
        jobs.iter().all(|job| job.retry_count <= 1),
        "nobody lost more than the try that failed: {jobs:#?}"
    );
    assert_stopped(&worker.stop(Signal::TERM));
}

fn mode_3_the_backup_works_while_the_first_gateway_is_away(ode: &Ode) {
    let (first, backup) = (StandIn::start(Mood::Says(502)), StandIn::start(Mood::Well));
    let settings = ["--gateway-backup", &backup.url, "--breaker-calls", "3", "--breaker-cool-down", "2"];
    let _worker = remote(ode, &first, &settings);
    let ids = upload(ode, "auto", &invoices(6));
    let jobs = wait(ode, &ids, "the backup", all("complete"));
    for job in &jobs {
        assert_eq!(job.result.as_ref().unwrap()["gateway"], json!(backup.url), "{job:?}");
    }
    first.set(Mood::Flapping);
    let ids = upload(ode, "auto", &invoices(12));
    wait(ode, &ids, "both together", all("complete"));
    first.set(Mood::Well);
    std::thread::sleep(Duration::from_millis(2500));
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "the first again", all("complete")).remove(0);
    assert_eq!(job.result.unwrap()["gateway"], json!(first.url));
}

fn a_long_outage_fails_what_waits_and_a_retry_works_when_it_is_over(ode: &Ode) {
    let gateway = StandIn::start(Mood::Says(502));
    let settings = [
        "--breaker-calls",
        "2",
        "--breaker-cool-down",
        "1",
        "--gateway-away-max",
        "2",
        "--retry-base",
        "0.5",
    ];
    let _worker = remote(ode, &gateway, &settings);
    let ids = upload(ode, "auto", &invoices(5));
    let jobs = wait(ode, &ids, "patience to end", all("failed"));
    let unavailable: Vec<_> =
        jobs.iter().filter(|job| job.error_code.as_deref() == Some("GATEWAY_UNAVAILABLE")).collect();
    assert!(!unavailable.is_empty(), "{jobs:#?}");
    let message = "The converter has been away for too long. Retry once it is back";
    assert!(unavailable.iter().all(|job| job.error_message.as_deref() == Some(message)));
    gateway.set(Mood::Well);
    for job in &jobs {
        ode.ok(["jobs", "retry", &job.reference]);
    }
    wait(ode, &ids, "all of them", all("complete"));
}

fn a_gateway_that_is_not_there_or_says_too_much_is_a_gateway_that_fails(ode: &Ode) {
    // Nobody listens where somebody did just now.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}");
    let alone = worker(ode, &["--gateway-url", &url]);
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "the last try", all("failed")).remove(0);
    assert_eq!(job.error_code.as_deref(), Some("GW_5XX"));
    assert_stopped(&alone.stop(Signal::TERM));
    let gateway = StandIn::start(Mood::Endless);
    let _worker = remote(ode, &gateway, &["--retries", "0", "--gateway-timeout", "20"]);
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "it to be cut off", all("failed")).remove(0);
    assert_eq!(job.error_code.as_deref(), Some("GW_5XX"));
    assert!(job.error_detail.unwrap().contains("longer than"));
}

/// How many files lie below the storage.
fn files(ode: &Ode) -> usize {
    fn count(path: &std::path::Path) -> usize {
        let Ok(entries) = std::fs::read_dir(path) else { return 0 };
        entries.flatten().map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
    }
    count(&ode.data().join("files"))
}

fn a_cleanup_killed_at_each_named_point_is_gone_on_with(ode: &Ode) {
    let worker = worker(ode, &[]);
    let ids = upload(ode, "generic_invoice_v1", &invoices(4));
    wait(ode, &ids, "the XML", all("complete"));
    assert_stopped(&worker.stop(Signal::TERM));
    let moment = Duration::from_millis(1);
    let short = Retention { sources: moment, results: moment, events: moment, ..Retention::default() };
    ode.with_store(async |store| store.set_retention(&short).await.unwrap());
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(files(ode), 12, "document, result and places of each");
    for point in ["after-expire", "after-file", "after-archive"] {
        let ran = ode.command(["cleanup"]).env("ODE_CRASH_AT", point).output().unwrap();
        assert_eq!(ran.status.code(), None, "{point}: it is killed there: {ran:?}");
        // Whatever a row names is there: nobody is promised a file that is gone.
        let blobs = blobs(ode);
        ode.with_store(async |store| {
            for id in &ids {
                for file in store.artifacts(*id).await.unwrap() {
                    blobs
                        .get(&file.path, &file.sha256)
                        .await
                        .unwrap_or_else(|error| panic!("{point}: {error}"));
                }
            }
        });
    }
    let cleaned = ode.json(["cleanup"]);
    assert_eq!(cleaned["is_storage_suspect"], false, "{cleaned}");
    let archives = std::fs::read_dir(ode.data().join("files/archive/events")).unwrap().count();
    assert!(archives > 0);
    ode.with_store(async |store| {
        for id in &ids {
            assert_eq!(store.artifacts(*id).await.unwrap(), []);
            assert_eq!(store.document(*id).await.unwrap().unwrap().result_path, None);
        }
    });
    let left = files(ode);
    let archived = archived_files(ode);
    assert_eq!(left, archived, "nothing but the archive is left");
    let again = ode.json(["cleanup"]);
    assert_eq!((&again["sources"], &again["results"], &again["orphans"]), (&json!(0), &json!(0), &json!(0)));
}

fn a_deletion_killed_half_way_is_gone_on_with(ode: &Ode) {
    let worker = worker(ode, &[]);
    let ids = upload(ode, "generic_invoice_v1", &invoices(2));
    wait(ode, &ids, "the XML", all("complete"));
    assert_stopped(&worker.stop(Signal::TERM));
    let key = ode.json(["keys", "create", "--user", "ada"])["key"].as_str().unwrap().to_owned();
    let mut command = ode.command(["web", "--listen", "127.0.0.1:0"]);
    let web = Serving::start(command.env("ODE_CRASH_AT", "after-delete"));
    let program = Client::program(&web, &key);
    let id = program.uploaded("a.pdf", &invoice("INV-9"))["id"].as_str().unwrap().to_owned();
    ode.ok(["jobs", "cancel", &id]);
    let before = files(ode);
    let mut connection = program.open("DELETE", &format!("/api/jobs/{id}"), "", 0);
    let mut answer = Vec::new();
    // Cut off or ended: there is nobody left to answer.
    let _ = connection.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    assert_eq!(web.ended().code, None, "it is killed after its rows were removed");
    assert_eq!(files(ode), before, "and before its file was");
    assert_ne!(ode.run(["jobs", "show", &id]).code, Some(0), "the job is gone");
    assert_eq!(ode.json(["cleanup"])["files_removed"], 1);
    assert_eq!(files(ode), before - 1, "only what was deleted is gone");
}

fn archived_files(ode: &Ode) -> usize {
    let years = std::fs::read_dir(ode.data().join("files/archive/events")).unwrap().flatten();
    years.map(|year| std::fs::read_dir(year.path()).unwrap().count()).sum()
}

fn scenario_3_a_full_disk_is_a_storage_issue_that_passes(ode: &Ode) {
    let place = ode.path("small");
    std::fs::create_dir(&place).unwrap();
    let Some(_disk) = Disk::mount(&place) else {
        eprintln!("SKIPPED: a small disk can only be made by root");
        return;
    };
    let gateway = StandIn::start(Mood::Slow(Duration::from_millis(500)));
    let storage = place.display().to_string();
    let ids = {
        let ids = upload_to(ode, &place);
        let settings =
            ["--storage", &storage, "--retries", "20", "--retry-base", "0.3", "--disk-pause", "100"];
        let _worker = remote(ode, &gateway, &settings);
        wait(ode, &ids, "it to begin", all("processing"));
        let filler = place.join("filler");
        let full = std::fs::write(&filler, vec![0; 64 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        let failed = |jobs: &[JobRecord]| jobs[0].retry_count > 0;
        wait(ode, &ids, "the first failure", failed);
        let told = events(ode, ids[0]);
        let meta = told.iter().find(|event| event.event.as_str() == "failed").unwrap().meta.clone().unwrap();
        assert_eq!(
            (&meta["code"], &meta["message"]),
            (&json!("IO_ERROR"), &json!("Temporary storage issue. We'll retry"))
        );
        std::fs::remove_file(filler).unwrap();
        wait(ode, &ids, "room", all("complete"));
        ids
    };
    assert_eq!(record(ode, ids[0]).state.as_str(), "complete");
}

fn upload_to(ode: &Ode, place: &std::path::Path) -> Vec<JobId> {
    let blobs = Blobs::open(&BlobsConfig::Local(place.to_owned())).unwrap();
    ode.with_store(async |store| {
        let stored = blobs.put(JobId(Uuid::now_v7()), 0, 0, invoice("INV-1")).await.unwrap();
        let source = Artifact {
            role: "source".into(),
            name: "invoice.pdf".into(),
            storage: stored.storage.into(),
            path: stored.path,
            content_type: "application/pdf".into(),
            bytes: stored.bytes,
            sha256: stored.sha256,
        };
        let job = NewJob::new(Pipeline::Xml, "auto", json!({ "document": { "bytes": stored.bytes } }));
        vec![store.enqueue_file(job, source).await.unwrap().id()]
    })
}

/// A disk of a megabyte, for as long as it is held.
struct Disk(std::path::PathBuf);

impl Disk {
    fn mount(place: &std::path::Path) -> Option<Self> {
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(place)
            .stderr(std::process::Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then(|| Disk(place.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It goes with its last user; the test is over either way.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mode_4_a_full_disk_pauses_uploads_until_there_is_room(ode: &Ode) {
    let place = ode.path("small");
    std::fs::create_dir(&place).unwrap();
    let Some(_disk) = Disk::mount(&place) else {
        eprintln!("SKIPPED: a small disk can only be made by root");
        return;
    };
    let storage = place.display().to_string();
    let serving = Serving::start(&mut ode.command(["web", "--listen", "127.0.0.1:0", "--storage", &storage]));
    let browser = Client::browser(&serving);
    browser.uploaded("a.pdf", &invoice("INV-1"));
    let filler = place.join("filler");
    std::fs::write(&filler, vec![0; 64 << 20]).unwrap_err();
    // Seen within a second.
    std::thread::sleep(Duration::from_millis(1100));
    let refused = browser.upload(&[("b.pdf", &invoice("INV-2"))], &[]);
    refused.assert_problem(507, "DISK_FULL");
    assert!(refused.header("retry-after").parse::<u64>().is_ok(), "{refused:?}");
    assert_eq!(browser.list()["jobs"].as_array().unwrap().len(), 1, "what is there can be read");
    std::fs::remove_file(filler).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    browser.uploaded("b.pdf", &invoice("INV-2"));
}

fn mode_6_a_broken_mapping_is_not_rolled_out_and_a_mended_one_is(ode: &Ode) {
    let folder = ode.path("mappings");
    std::fs::create_dir(&folder).unwrap();
    let shipped =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/generic_invoice_v1.toml");
    let good = std::fs::read_to_string(shipped).unwrap();
    std::fs::write(folder.join("generic_invoice_v1.toml"), &good).unwrap();
    let folder_text = folder.display().to_string();
    let _worker = worker(ode, &["--mappings", &folder_text]);
    std::fs::write(folder.join("generic_invoice_v1.toml"), "this is no mapping").unwrap();
    // Seen within a second or two.
    std::thread::sleep(Duration::from_millis(2500));
    let ids = upload(ode, "generic_invoice_v1", &invoices(2));
    wait(ode, &ids, "the mapping before", all("complete"));
    // A mended one is used as soon as it was found right.
    let mended = good.replace("name = \"generic_invoice\"", "name = \"mended_invoice\"");
    assert_ne!(mended, good);
    std::fs::remove_file(folder.join("generic_invoice_v1.toml")).unwrap();
    std::fs::write(folder.join("mended_invoice_v1.toml"), mended).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let ids = upload(ode, "mended_invoice_v1", &invoices(1));
    wait(ode, &ids, "the mended mapping", all("complete"));
}

fn mode_7_two_connections_are_enough_for_many_jobs_and_readers(ode: &Ode) {
    let _worker = worker(ode, &["--connections", "2", "--jobs-at-once", "8"]);
    let ids = upload(ode, "generic_invoice_v1", &invoices(24));
    for _ in 0..5 {
        ode.ok(["jobs", "list", "--connections", "2"]);
    }
    wait(ode, &ids, "all of them", all("complete"));
}

/// An invoice of about so many bytes: real ones differ by their pictures.
pub(crate) fn sized(number: usize, bytes: usize) -> Vec<u8> {
    let mut document = invoice(&format!("SIZED-{number}"));
    // Where nothing is counted in bytes from the start.
    let end = document.windows(9).rposition(|found| found == b"startxref").unwrap();
    let padding = format!("%{}\n", "x".repeat(bytes.saturating_sub(document.len())));
    document.splice(end..end, padding.bytes());
    document
}

fn the_time_left_is_right_within_half_once_ten_files_were_seen(ode: &Ode) {
    // As conversions are: some time for each, and more for large ones.
    let gateway = StandIn::start(Mood::BySize(Duration::from_millis(100), Duration::from_millis(400)));
    let _worker = remote(ode, &gateway, &["--jobs-at-once", "1"]);
    let of_sizes = |sizes: &[usize]| {
        let documents: Vec<Vec<u8>> =
            sizes.iter().enumerate().map(|(number, bytes)| sized(number, *bytes)).collect();
        upload(ode, "auto", &documents)
    };
    let kb = 1_000;
    let sizes = [5, 2_000, 40, 700, 12, 350, 1_500, 90, 1_000, 20].map(|size| size * kb);
    let ids = of_sizes(&sizes);
    wait(ode, &ids, "ten to learn from", all("complete"));
    let ids = of_sizes(&[1_200, 8, 450, 1_800, 60, 900].map(|size| size * kb));
    let began = Instant::now();
    let left = ode.with_store(async |store| store.times_left(&ids).await.unwrap());
    assert_eq!(left.len(), 6, "each of them is told: {left:?}");
    for id in &ids {
        wait(ode, &[*id], "its turn", all("complete"));
        let TimeLeft::About(told) = left[id] else { panic!("{left:?}") };
        let (told, took) = (told.as_secs_f64(), began.elapsed().as_secs_f64());
        assert!((told - took).abs() <= took / 2.0, "told {told:.2} s, took {took:.2} s");
    }
}

#[test]
fn corrections_are_exported_as_lines() {
    let ode = Ode::sqlite();
    assert_eq!(ode.ok(["export", "training"]), "");
    let ids = upload(&ode, "generic_invoice_v1", &invoices(1));
    ode.with_store(async |store| {
        for (field, after) in [("gross_total", "31.00"), ("invoice_number", "INV-2")] {
            let revision = ode_store::Revision {
                field: field.into(),
                before: Some("30.00".into()),
                after: Some(after.into()),
                page: Some(1),
                area: Some([480.0, 550.0, 520.0, 560.0]),
                author: None,
            };
            store.revise(ids[0], &revision).await.unwrap();
        }
    });
    let lines = ode.ok(["export", "training"]);
    let samples: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(samples.len(), 2);
    assert_eq!((&samples[0]["field"], &samples[0]["expected"]), (&json!("gross_total"), &json!("31.00")));
    assert_eq!(
        (&samples[1]["mapping"], &samples[1]["box"]),
        (&json!("generic_invoice_v1"), &json!([480.0, 550.0, 520.0, 560.0]))
    );
    let rest = ode.ok(["export", "training", "--after", samples[0]["id"].as_str().unwrap()]);
    assert_eq!(rest.lines().count(), 1);
}

#[test]
fn a_language_model_is_asked_only_if_wanted_and_never_in_the_way() {
    let ode = Ode::sqlite();
    let opinions = |id: JobId| {
        let checks = ode.with_store(async |store| store.checks(id).await.unwrap());
        checks.into_iter().filter(|check| check.opinion.is_some()).collect::<Vec<_>>()
    };
    let model = StandIn::start(Mood::Slow(Duration::from_secs(30)));
    let url = format!("{}/v1", model.url);
    let asking = worker(&ode, &["--model-url", &url, "--model", "small"]);
    let ids = upload(&ode, "generic_invoice_v1", &invoices(1));
    let began = Instant::now();
    wait(&ode, &ids, "the XML", all("complete"));
    assert!(began.elapsed() < Duration::from_secs(20), "nothing waits for the model");
    let deadline = Instant::now() + PATIENCE;
    while model.calls().is_empty() {
        assert!(Instant::now() < deadline, "the model was not asked");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(opinions(ids[0]), []);
    assert_stopped(&asking.stop(Signal::TERM));
    // A model that fails is tried again; one that answers is recorded.
    model.set(Mood::Says(500));
    let asking = worker(&ode, &["--model-url", &url, "--model", "small"]);
    let failed = model.calls().len() + 1;
    while model.calls().len() < failed {
        assert!(Instant::now() < deadline, "the model was not asked again");
        std::thread::sleep(Duration::from_millis(50));
    }
    model.set(Mood::Doubts);
    while opinions(ids[0]).is_empty() {
        assert!(Instant::now() < deadline + PATIENCE, "its answer was not recorded");
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = opinions(ids[0]).remove(0);
    assert_eq!((said.code.as_str(), said.message.as_str()), ("MODEL_DOUBTS", "The page says 31.00."));
    assert_stopped(&asking.stop(Signal::TERM));
    assert_eq!(record(&ode, ids[0]).state.as_str(), "complete");
    // Without an endpoint nobody is asked.
    let calls = model.calls().len();
    let quiet = worker(&ode, &[]);
    let ids = upload(&ode, "generic_invoice_v1", &invoices(1));
    wait(&ode, &ids, "the XML", all("complete"));
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(model.calls().len(), calls);
    assert_stopped(&quiet.stop(Signal::TERM));
}

#[test]
fn a_daily_cleanup_is_done_by_a_worker_and_says_what_it_did() {
    let ode = Ode::sqlite();
    let first = worker(&ode, &[]);
    let ids = upload(&ode, "generic_invoice_v1", &invoices(1));
    wait(&ode, &ids, "the XML", all("complete"));
    assert_stopped(&first.stop(Signal::TERM));
    // 0.00000002 days are under two milliseconds.
    let settings = ["--keep-documents", "0.00000002", "--cleanup-every", "0.00000002"];
    let second = worker(&ode, &settings);
    let deadline = Instant::now() + PATIENCE;
    while files(&ode) > 2 {
        assert!(Instant::now() < deadline, "the document was not removed");
        std::thread::sleep(Duration::from_millis(50));
    }
    // It looks over the storage after that, and then says what it did.
    std::thread::sleep(Duration::from_secs(1));
    let ran = second.stop(Signal::TERM);
    assert!(ran.stderr.contains("cleaned up: 1 files removed"), "{ran:?}");
    assert_eq!(words(&ode, ids[0]).last().map(String::as_str), Some("expired"));
    let plan = ode.ok(["cleanup", "--dry-run"]);
    assert!(plan.contains("Would remove 0 results older than 30 days"), "{plan}");
}
