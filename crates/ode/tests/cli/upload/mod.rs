//! Documents on their way to XML in the real binary: with the built-in converter, with a gateway elsewhere that does
//! everything a gateway should not, through crashes, outages and full disks.

mod cleanup;
mod disks;
mod gateways;

use crate::convert::invoice;
use crate::harness::{Ode, on_both};
use crate::serve::{PATIENCE, Serving, assert_stopped};
use crate::standin::{Mood, StandIn};
use ode_job::estimate::TimeLeft;
use ode_job::{EventRecord, JobId, JobRecord, JobRef, NewJob};
use ode_store::{Blobs, BlobsConfig};
use ode_testing::pdf::Builder;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use uuid::Uuid;

on_both!(
    an_upload_becomes_xml_with_its_findings_and_history,
    five_uploads_are_three_that_convert_and_two_that_wait,
    documents_that_cannot_be_converted_fail_at_once_with_their_code,
    scenario_4_a_worker_killed_in_the_middle_loses_nothing,
    mode_1_a_worker_that_hangs_loses_its_job_to_another,
    mode_6_a_broken_mapping_is_not_rolled_out_and_a_mended_one_is,
    mode_7_two_connections_are_enough_for_many_jobs_and_readers,
    the_time_left_is_right_within_half_once_ten_files_were_seen,
);

/// Longer than anything here takes, unless it is stuck.
const LONG: Duration = Duration::from_secs(60);

fn blobs(ode: &Ode) -> Blobs {
    Blobs::open(&BlobsConfig::Local(ode.data().join("files"))).unwrap()
}

/// Uploads documents as the web side does; answers their jobs.
fn upload(ode: &Ode, mapping: &str, documents: &[Vec<u8>]) -> Vec<JobId> {
    upload_to(ode, &blobs(ode), mapping, documents)
}

/// The same with files that are kept elsewhere.
fn upload_to(ode: &Ode, blobs: &Blobs, mapping: &str, documents: &[Vec<u8>]) -> Vec<JobId> {
    ode.with_store(async |store| {
        let mut ids = Vec::new();
        for document in documents {
            let stored = blobs.put(JobId(Uuid::now_v7()), 0, 0, vec![document.clone().into()]).await;
            let stored = stored.unwrap().remove(0);
            let facts = json!({ "name": "invoice.pdf", "bytes": stored.bytes, "sha256": stored.sha256 });
            let source = stored.artifact("source", "invoice.pdf", "application/pdf");
            let job = NewJob::new(ode_xml::machine::XML, mapping, json!({ "document": facts }));
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
        let mut builder = Builder::new();
        builder.page("/MediaBox[0 0 100 100]", "");
        builder.trailer("/Encrypt<</Filter/Standard/V 4/R 4/Length 128/P -4/O(00000000000000000000000000000000)/U(00000000000000000000000000000000)/CF<</StdCF<</CFM/AESV2/Length 16>>>>/StmF/StdCF/StrF/StdCF>>/ID[(0000000000000000)(0000000000000000)]").bytes()
    };
    let documents = [
        b"Dear Sir or Madam".to_vec(),
        whole[..whole.len() / 3].to_vec(),
        Builder::new().bytes(),
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
    let read = ode_xml::job_kind().times_left.unwrap();
    let left = ode.with_store(async |store| read(&store, &ids).await.unwrap());
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
            let revision = ode_xml::sql::Revision {
                field: field.into(),
                before: Some("30.00".into()),
                after: Some(after.into()),
                page: Some(1),
                area: Some([480.0, 550.0, 520.0, 560.0]),
            };
            ode_xml::sql::revise(store.sql(), ids[0], &revision, None).await.unwrap();
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
