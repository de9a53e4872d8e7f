//! What is kept for how long: files, history, what belongs to nothing, and chores that one process does for all.

use crate::documents::{blobs, converted, files, known, put, roles, upload};
use crate::harness::{Database, claim_one, ending, finish, history, on_both, record, worker};
use crate::machines::{lane, pipeline};
use flate2::read::GzDecoder;
use ode_job::{Ended, JobId, NewJob};
use ode_store::disk::{Watermark, WatermarkConfig};
use ode_store::{Cleaned, Retention, Store};
use serde_json::{Value, json};
use std::fs::{File, FileTimes};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use uuid::Uuid;

on_both!(
    sqlite_file, postgres_database:
    documents_and_results_go_when_their_time_has_come,
    what_is_needed_is_kept_however_old,
    a_plan_says_what_a_cleanup_does_and_does_nothing,
    events_are_in_the_archive_before_they_are_gone,
    files_that_belong_to_nothing_go_when_they_are_old_enough,
    files_that_lie_in_one_go_with_the_last_of_them,
    files_that_lie_in_one_belong_to_their_job,
    jobs_whose_file_is_lost_say_so,
    a_storage_that_lacks_most_files_is_not_believed,
    while_the_disk_is_full_more_is_given_up_but_nothing_that_was_not_fetched,
    a_chore_is_one_processs_at_a_time,
);

const DAY: Duration = Duration::from_hours(24);

/// Makes the rows of all files older by so many days.
async fn age(database: &mut Database, days: i64) {
    let is_sqlite = database.url.starts_with("sqlite:");
    let micros = days * 86_400_000_000;
    let by = if is_sqlite { micros.to_string() } else { format!("interval '{days} days'") };
    let (open, close) = if is_sqlite {
        ("INSERT INTO retention_pass (open) VALUES (1)", "DELETE FROM retention_pass")
    } else {
        ("SET ode.retention = 'on'", "SET ode.retention = ''")
    };
    let older = format!("UPDATE job_artifact SET created_at = created_at - {by}");
    for statement in [open, &older, close] {
        database.sql.run(statement, &[]).await.unwrap();
    }
}

/// Keeps events for so long.
async fn keep_events(store: &Store, events: Duration) {
    store.set_retention(&Retention { events, ..Retention::default() }).await.unwrap();
}

async fn documents_and_results_go_when_their_time_has_come(mut database: Database) {
    let (directory, blobs) = blobs();
    let id = converted(&database.store, &blobs).await;
    let store = database.store.clone();
    assert_eq!(store.cleanup(&blobs).await.unwrap(), Cleaned::default(), "all of it is new");
    age(&mut database, 8).await;
    let cleaned = store.cleanup(&blobs).await.unwrap();
    assert_eq!((cleaned.sources, cleaned.results, cleaned.files_removed), (1, 0, 1));
    assert_eq!((roles(&store, id).await, files(&directory)), (vec!["result".to_owned()], 1));
    let kept = known(&store, id).await;
    assert!(kept.source_path.is_none() && kept.result_path.is_some());
    age(&mut database, 23).await;
    let cleaned = store.cleanup(&blobs).await.unwrap();
    assert_eq!((cleaned.sources, cleaned.results, cleaned.files_removed), (0, 1, 1));
    assert_eq!(files(&directory), 0);
    assert_eq!(known(&store, id).await.result_path, None);
    let events = store.events(id).await.unwrap();
    let expired: Vec<_> = events.iter().filter(|event| event.event.as_str() == "expired").collect();
    assert_eq!(expired.len(), 2);
    assert_eq!(expired[1].meta, Some(json!({ "files": ["result"], "reason": "age" })));
    assert_eq!(record(&store, id).await.state.as_str(), "complete", "the job itself stays");
    let entries = std::fs::read_dir(directory.path().join("files")).unwrap().flatten();
    let entries: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    assert_eq!(entries, ["uploads"], "no empty directories are left but those for uploads to come");
}

async fn what_is_needed_is_kept_however_old(mut database: Database) {
    let (_directory, blobs) = blobs();
    let store = database.store.clone();
    let waiting = upload(&store, &blobs, 18).await;
    age(&mut database, 50).await;
    store.cleanup(&blobs).await.unwrap();
    assert_eq!(roles(&store, waiting).await, ["source"], "it has not been converted yet");
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    store.cleanup(&blobs).await.unwrap();
    assert!(store.source(&claimed.lease).await.unwrap().is_some(), "it is being converted");
    finish(&store, claimed, Ended::Succeeded).await;
    store.cleanup(&blobs).await.unwrap();
    assert_eq!(roles(&store, waiting).await.len(), 0);
}

async fn a_plan_says_what_a_cleanup_does_and_does_nothing(mut database: Database) {
    let (directory, blobs) = blobs();
    let store = database.store.clone();
    let id = converted(&store, &blobs).await;
    age(&mut database, 100).await;
    keep_events(&store, Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let plan = store.cleanup_plan(&blobs).await.unwrap();
    assert_eq!((plan.sources, plan.results, plan.events_archived), (1, 1, 4));
    assert_eq!((roles(&store, id).await.len(), files(&directory)), (2, 2));
    assert_eq!(history(&store, id).await.len(), 4);
    let cleaned = store.cleanup(&blobs).await.unwrap();
    assert_eq!((cleaned.sources, cleaned.results, cleaned.bytes), (plan.sources, plan.results, plan.bytes));
    assert!(cleaned.events_archived >= plan.events_archived, "what the cleanup told may be old by then");
}

/// Files below this directory.
fn below(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let of = |path: PathBuf| if path.is_dir() { below(&path) } else { vec![path] };
    entries.flatten().flat_map(|entry| of(entry.path())).collect()
}

fn archived(directory: &TempDir) -> Vec<Value> {
    let mut lines = Vec::new();
    for file in below(&directory.path().join("files/archive/events")) {
        let mut text = String::new();
        GzDecoder::new(File::open(file).unwrap()).read_to_string(&mut text).unwrap();
        lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    lines
}

async fn events_are_in_the_archive_before_they_are_gone(database: Database) {
    let (directory, blobs) = blobs();
    let store = database.store.clone();
    let id = converted(&store, &blobs).await;
    let before = store.events(id).await.unwrap();
    keep_events(&store, DAY).await;
    assert_eq!(store.cleanup(&blobs).await.unwrap().events_archived, 0, "not yet");
    keep_events(&store, Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(store.cleanup(&blobs).await.unwrap().events_archived, 4);
    let lines = archived(&directory);
    let words: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(words, before.iter().map(|event| event.event.as_str()).collect::<Vec<_>>());
    assert!(lines.iter().all(|line| line["jobs"] == json!([id])), "{lines:?}");
    assert_eq!(history(&store, id).await.len(), 0);
    // The archive is no orphan, however old it gets.
    make_old(&directory.path().join("files/archive"));
    let cleaned = store.cleanup(&blobs).await.unwrap();
    assert_eq!((cleaned.orphans, archived(&directory).len()), (0, 4));
}

/// Makes every file below older than the sweep waits.
fn make_old(path: &Path) {
    for file in below(path) {
        let times = FileTimes::new().set_modified(SystemTime::now() - 2 * DAY);
        File::options().write(true).open(file).unwrap().set_times(times).unwrap();
    }
}

async fn files_that_belong_to_nothing_go_when_they_are_old_enough(database: Database) {
    let (directory, blobs) = blobs();
    let store = database.store.clone();
    let id = converted(&store, &blobs).await;
    let root = directory.path().join("files");
    // What a crash leaves: a result whose attempt was not ended, an upload without a job, half a file.
    let live = upload(&store, &blobs, 18).await;
    put(&blobs, live, 9, "of a job that still runs").await;
    put(&blobs, JobId(Uuid::now_v7()), 1, "of nothing").await;
    std::fs::create_dir_all(root.join("uploads/ab")).unwrap();
    std::fs::write(root.join("uploads/ab/0198c0de"), b"%PDF").unwrap();
    std::fs::write(root.join("uploads/ab/0198c0df#1"), b"%P").unwrap();
    assert_eq!(store.cleanup(&blobs).await.unwrap().orphans, 0, "they are new: somebody may be at it");
    make_old(&root);
    assert_eq!(store.cleanup_plan(&blobs).await.unwrap().orphans, 3);
    let cleaned = store.cleanup(&blobs).await.unwrap();
    assert_eq!(cleaned.orphans, 3);
    assert_eq!(roles(&store, id).await.len(), 2);
    assert_eq!(files(&directory), 4, "two of the job that ended, two of the one that runs");
    assert_eq!(store.cleanup(&blobs).await.unwrap().orphans, 0);
}

async fn files_that_lie_in_one_go_with_the_last_of_them(mut database: Database) {
    let (directory, blobs) = blobs();
    let store = database.store.clone();
    let contents = vec!["%PDF-1.7".into(), "<a/>".into()];
    let stored = blobs.put(JobId(Uuid::now_v7()), 1, 0, contents).await.unwrap();
    let new = NewJob::new(pipeline::XML, "plain_v1", json!({}));
    let source = stored[0].artifact("source", "invoice.pdf", "application/pdf");
    let id = store.enqueue_file(new, source).await.unwrap().id();
    let worker = worker(&store).await;
    let mut end = ending(claim_one(&store, lane::XML, worker).await, Ended::Succeeded);
    end.artifacts.push(stored[1].artifact("result", "invoice.xml", "application/xml"));
    store.finish(vec![end]).await.unwrap();
    age(&mut database, 8).await;
    let cleaned = store.cleanup(&blobs).await.unwrap();
    assert_eq!((cleaned.sources, cleaned.files_removed, files(&directory)), (1, 0, 1));
    assert_eq!(roles(&store, id).await, ["result"]);
    assert_eq!(blobs.get(&stored[1].path, &stored[1].sha256).await.unwrap(), "<a/>");
    age(&mut database, 23).await;
    let cleaned = store.cleanup(&blobs).await.unwrap();
    assert_eq!((cleaned.results, cleaned.files_removed, files(&directory)), (1, 1, 0));
}

async fn files_that_lie_in_one_belong_to_their_job(database: Database) {
    let (directory, blobs) = blobs();
    let store = database.store.clone();
    let id = store.enqueue(NewJob::new(pipeline::HTML, "html", json!({}))).await.unwrap().id();
    let worker = worker(&store).await;
    let mut end = ending(claim_one(&store, lane::HTML, worker).await, Ended::Succeeded);
    let stored = blobs.put(id, 1, 0, vec!["<html>".into(), "p { }".into()]).await.unwrap();
    end.artifacts.push(stored[0].artifact("asset", "index.html", "text/html"));
    end.artifacts.push(stored[1].artifact("asset", "style.css", "text/css"));
    store.finish(vec![end]).await.unwrap();
    // What an attempt before it left.
    blobs.put(id, 0, 0, vec!["<html".into(), "p".into()]).await.unwrap();
    make_old(&directory.path().join("files"));
    assert_eq!(store.cleanup(&blobs).await.unwrap().orphans, 1);
    assert_eq!((roles(&store, id).await.len(), files(&directory)), (2, 1));
    store.delete_job(id, &blobs).await.unwrap();
    assert_eq!(files(&directory), 0);
}

async fn jobs_whose_file_is_lost_say_so(mut database: Database) {
    let (directory, blobs) = blobs();
    let store = database.store.clone();
    let id = converted(&store, &blobs).await;
    let result = known(&store, id).await.result_path.unwrap();
    std::fs::remove_file(directory.path().join("files").join(result)).unwrap();
    assert_eq!(store.cleanup(&blobs).await.unwrap().lost, 0, "too new to be sure");
    age(&mut database, 2).await;
    assert_eq!(store.cleanup(&blobs).await.unwrap().lost, 1);
    assert_eq!(roles(&store, id).await, ["source"]);
    let meta = store.events(id).await.unwrap().last().unwrap().meta.clone();
    assert_eq!(meta, Some(json!({ "files": ["result"], "reason": "lost" })));
}

async fn a_storage_that_lacks_most_files_is_not_believed(mut database: Database) {
    let (_directory, blobs) = blobs();
    let store = database.store.clone();
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(converted(&store, &blobs).await);
    }
    age(&mut database, 2).await;
    let (_elsewhere, empty) = self::blobs();
    let cleaned = store.cleanup(&empty).await.unwrap();
    assert!(cleaned.is_storage_suspect);
    assert_eq!(cleaned.lost, 0);
    for id in ids {
        assert_eq!(roles(&store, id).await.len(), 2);
    }
}

async fn while_the_disk_is_full_more_is_given_up_but_nothing_that_was_not_fetched(mut database: Database) {
    let (directory, blobs) = blobs();
    let store = database.store.clone();
    let fetched = converted(&store, &blobs).await;
    let unread = converted(&store, &blobs).await;
    store.record_download(fetched).await.unwrap();
    let full = WatermarkConfig { pause_at: 0.0, resume_at: 0.0 };
    let full = Watermark::new(Some(directory.path()), full);
    assert!(!full.allows_uploads());
    let young = store.relieve(&blobs, &full).await.unwrap();
    assert_eq!((young.sources, young.results), (0, 1), "documents are given an hour");
    age(&mut database, 1).await;
    let cleaned = store.relieve(&blobs, &full).await.unwrap();
    assert_eq!((cleaned.sources, cleaned.results), (2, 0));
    assert_eq!(roles(&store, fetched).await.len(), 0);
    assert_eq!(roles(&store, unread).await, ["result"], "nobody has fetched it yet");
    let roomy = Watermark::new(Some(directory.path()), WatermarkConfig { pause_at: 1.1, resume_at: 1.1 });
    store.record_download(unread).await.unwrap();
    assert_eq!(store.relieve(&blobs, &roomy).await.unwrap().results, 0, "there is room");
}

async fn a_chore_is_one_processs_at_a_time(mut database: Database) {
    let store: Store = database.store;
    let (first, second) = (worker(&store).await, worker(&store).await);
    assert!(store.take_chore("cleanup", first, DAY).await.unwrap());
    assert!(!store.take_chore("cleanup", second, DAY).await.unwrap(), "the first is at it");
    assert!(store.take_chore("relief", second, DAY).await.unwrap(), "another chore");
    assert!(store.keep_chore("cleanup", first).await.unwrap());
    assert!(!store.keep_chore("cleanup", second).await.unwrap());
    assert!(!store.end_chore("cleanup", second).await.unwrap());
    assert!(store.end_chore("cleanup", first).await.unwrap());
    let as_of_its_begin = "SELECT count(*) FROM chore WHERE name = 'cleanup' AND done_at = taken_at";
    assert_eq!(
        database.sql.number(as_of_its_begin, &[]).await,
        1,
        "who comes next looks at what came meanwhile"
    );
    assert!(!store.take_chore("cleanup", second, DAY).await.unwrap(), "it was just done");
    assert!(store.take_chore("cleanup", second, Duration::ZERO).await.unwrap());
}
