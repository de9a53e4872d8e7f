//! What is removed when its time has come, also by a process that is killed on the way.

use super::{all, blobs, invoices, upload, wait, words, worker};
use crate::convert::invoice;
use crate::harness::{Ode, on_both};
use crate::serve::{PATIENCE, Serving, assert_stopped};
use crate::web::client::Client;
use ode_store::Retention;
use rustix::process::Signal;
use serde_json::json;
use std::io::Read as _;
use std::time::{Duration, Instant};

on_both!(a_cleanup_killed_at_each_named_point_is_gone_on_with, a_deletion_killed_half_way_is_gone_on_with,);

/// How many files lie below the storage.
fn files(ode: &Ode) -> usize {
    fn count(path: &std::path::Path) -> usize {
        let Ok(entries) = std::fs::read_dir(path) else { return 0 };
        entries.flatten().map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
    }
    count(&ode.data().join("files"))
}

fn archived_files(ode: &Ode) -> usize {
    let years = std::fs::read_dir(ode.data().join("files/archive/events")).unwrap().flatten();
    years.map(|year| std::fs::read_dir(year.path()).unwrap().count()).sum()
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
            let known = store.jobs_by_id(std::iter::once(*id)).await.unwrap().remove(0).files;
            assert_eq!(known.result_path, None);
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
