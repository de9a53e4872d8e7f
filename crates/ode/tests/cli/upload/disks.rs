//! Disks that fill up while documents are worked on.

use super::{all, events, invoices, record, remote, upload_to, wait};
use crate::convert::invoice;
use crate::harness::{Ode, on_both};
use crate::places::SMALL_MB;
use crate::serve::Serving;
use crate::standin::{Mood, StandIn};
use crate::web::client::Client;
use ode_job::JobRecord;
use ode_store::{Blobs, BlobsConfig};
use ode_test_servers::SmallDisk;
use serde_json::json;
use std::time::Duration;

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
