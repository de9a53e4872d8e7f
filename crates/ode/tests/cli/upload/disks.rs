//! Disks that fill up while documents are worked on.

use super::{all, events, invoices, record, remote, upload_to, wait, words};
use crate::convert::invoice;
use crate::harness::{Ode, on_both, run_sql};
use crate::places::SMALL_MB;
use crate::serve::{Serving, assert_stopped};
use crate::standin::{Mood, StandIn};
use crate::web::client::Client;
use ode_job::{JobId, JobRecord};
use ode_store::{Blobs, BlobsConfig};
use ode_testing::{Postgres, SmallDisk};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

on_both!(
    scenario_3_a_full_disk_is_a_storage_issue_that_passes,
    mode_4_a_full_disk_pauses_uploads_until_there_is_room,
);

fn scenario_3_a_full_disk_is_a_storage_issue_that_passes(ode: &Ode) {
    let place = ode.path("small");
    let Some(disk) = SmallDisk::mount(place.clone(), SMALL_MB) else { return };
    let gateway = StandIn::start(Mood::Slow(Duration::from_millis(500)));
    let storage = place.display().to_string();
    let blobs = Blobs::open(&BlobsConfig::Local(place.clone())).unwrap();
    let ids = {
        let ids = upload_to(ode, &blobs, "auto", &invoices(1));
        let settings =
            ["--storage", &storage, "--retries", "20", "--retry-base", "0.3", "--disk-pause", "100"];
        let _worker = remote(ode, &gateway, &settings);
        wait(ode, &ids, "it to begin", all("processing"));
        disk.fill();
        let failed = |jobs: &[JobRecord]| jobs[0].retry_count > 0;
        wait(ode, &ids, "the first failure", failed);
        let told = events(ode, ids[0]);
        let meta = told.iter().find(|event| event.event.as_str() == "failed").unwrap().meta.clone().unwrap();
        assert_eq!(
            (&meta["code"], &meta["message"]),
            (&json!("IO_ERROR"), &json!("Temporary storage issue. We'll retry"))
        );
        disk.free();
        wait(ode, &ids, "room", all("complete"));
        ids
    };
    assert_eq!(record(ode, ids[0]).state.as_str(), "complete");
}

fn mode_4_a_full_disk_pauses_uploads_until_there_is_room(ode: &Ode) {
    let place = ode.path("small");
    let Some(disk) = SmallDisk::mount(place.clone(), SMALL_MB) else { return };
    let storage = place.display().to_string();
    let serving = Serving::start(&mut ode.command(["web", "--listen", "127.0.0.1:0", "--storage", &storage]));
    let browser = Client::browser(&serving);
    browser.uploaded("a.pdf", &invoice("INV-1"));
    disk.fill();
    // Seen within a second.
    std::thread::sleep(Duration::from_millis(1100));
    let refused = browser.upload(&[("b.pdf", &invoice("INV-2"))], &[]);
    refused.assert_problem(507, "DISK_FULL");
    assert!(refused.header("retry-after").parse::<u64>().is_ok(), "{refused:?}");
    assert_eq!(browser.list()["jobs"].as_array().unwrap().len(), 1, "what is there can be read");
    disk.free();
    std::thread::sleep(Duration::from_millis(1100));
    browser.uploaded("b.pdf", &invoice("INV-2"));
}

/// Megabytes: enough for a database of PostgreSQL with a few jobs.
const DATABASE_MB: usize = 48;
/// Some are still taken, into pages that have room, before the first one needs another page.
const UPLOADS_MAX: usize = 200;

/// A text that nothing makes shorter.
fn noise(bytes: usize) -> String {
    std::iter::repeat_with(|| Uuid::new_v4().simple().to_string()).take(bytes / 32).collect()
}

#[test]
fn a_full_disk_of_postgresql_is_told_as_such_and_work_goes_on_once_there_is_space() {
    // The server's own files and its log lie elsewhere: it would end, and this is about what it says while it runs.
    let server = Postgres::start();
    let Some((disk, place)) = server.small_disk(DATABASE_MB) else { return };
    run_sql(&server.url(), &format!("CREATE TABLESPACE small LOCATION '{}'", place.display()));
    run_sql(&server.url(), "CREATE DATABASE ode TABLESPACE small");
    let ode = Ode::on(server.url_of("ode"));
    ode.ok(["migrate", "up"]);
    let mut serve = ode.command(["serve", "--listen", "127.0.0.1:0", "--mapping", "generic_invoice_v1"]);
    let serving = Serving::start(serve.args(["--uploads-a-minute", "1000"]));
    let browser = Client::browser(&serving);
    let mut taken = vec![browser.uploaded("first.pdf", &invoice("INV-0"))];
    disk.fill();

    let input = ode.path("input.json");
    std::fs::write(&input, json!(noise(500_000)).to_string()).unwrap();
    let add = ["jobs", "add", "html", "a", "--input-file", input.to_str().unwrap()];
    let told = ["no space left", "could not extend file", "Free some, then try again", "(DISK_FULL)"];
    ode.run(add).assert_refused(&told);
    let refused = loop {
        let number = taken.len();
        assert!(number < UPLOADS_MAX, "{number} documents were stored on a disk that is full");
        let answer = browser.upload(&[("more.pdf", &invoice(&format!("INV-{number}")))], &[]);
        if answer.code() != 201 {
            break answer;
        }
        taken.push(answer.json()["job"].clone());
    };
    refused.assert_problem(507, "DISK_FULL");
    assert!(refused.header("retry-after").parse::<u64>().is_ok(), "{refused:?}");
    let count = || ode.json(["jobs", "list"])["jobs"].as_array().unwrap().len();
    assert_eq!(count(), taken.len(), "what was refused has left nothing behind, and the list can be read");

    disk.free();
    ode.ok(add);
    taken.push(browser.uploaded("last.pdf", &invoice("INV-9999")));
    let ids: Vec<JobId> =
        taken.iter().map(|job| JobId(job["id"].as_str().unwrap().parse().unwrap())).collect();
    wait(&ode, &ids, "all that were taken to be converted", all("complete"));
    for id in &ids {
        let ends = words(&ode, *id).iter().filter(|word| *word == "complete").count();
        assert_eq!(ends, 1, "{:?}", words(&ode, *id));
    }
    assert_eq!(count(), taken.len() + 1);
    assert_stopped(&serving.stop(Signal::TERM));
}
