//! Documents, corrections and the time left, on both databases.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use ode_job::estimate::TimeLeft;
use ode_job::record::About;
use ode_job::{Ended, JobId, NewJob};
use ode_store::sql::params;
use ode_store::trial::{claim_one, worker};
use ode_store::{Blobs, BlobsConfig, Error, Finish, OwnedJob, Store, Stored, on_both};
use ode_xml::sql::{Revision, revise, revisions, training_samples};
use ode_xml::{job_kind, machine};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

mod harness {
    /// How a store at this address is opened.
    pub(crate) fn config(url: String) -> ode_store::Config {
        ode_store::declare(&[&ode_xml::DECLARATION]).unwrap();
        ode_store::Config::new(url)
    }
}

on_both!(
    people_read_the_same_of_a_document_in_sql,
    a_correction_is_kept_with_its_place_and_becomes_an_example,
    corrections_go_with_their_job,
    the_time_left_counts_those_before_and_who_works,
);

fn blobs() -> (TempDir, Blobs) {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&BlobsConfig::Local(directory.path().join("files"))).unwrap();
    (directory, blobs)
}

async fn put(blobs: &Blobs, job: JobId, fence: i64, content: &'static str) -> Stored {
    blobs.put(job, fence, 0, vec![content.into()]).await.unwrap().remove(0)
}

/// An uploaded document of this size.
async fn upload(store: &Store, blobs: &Blobs, bytes: u64) -> JobId {
    let stored = put(blobs, JobId(Uuid::now_v7()), 0, "%PDF-1.7 and so on").await;
    let source = stored.artifact("source", "invoice.pdf", "application/pdf");
    let document = json!({ "name": "invoice.pdf", "bytes": bytes, "sha256": stored.sha256 });
    let new = NewJob::new(machine::XML, "plain_v1", json!({ "document": document }));
    store.enqueue_file(new, source).await.unwrap().id()
}

/// A document that was uploaded and converted.
async fn converted(store: &Store, blobs: &Blobs) -> JobId {
    let id = upload(store, blobs, 18).await;
    let claimed = claim_one(store, machine::LANE, worker(store).await).await;
    assert_eq!(claimed.lease.job(), id);
    let stored = put(blobs, id, claimed.lease.fence(), "<a/>").await;
    let artifacts = vec![stored.artifact("result", "invoice.xml", "application/xml")];
    let end =
        Finish { result: Some(json!({ "pages": 1 })), artifacts, ..Finish::new(claimed, Ended::Succeeded) };
    store.finish(vec![end]).await.unwrap();
    id
}

async fn number(store: &Store, sql: &'static str, id: JobId) -> i64 {
    store.sql().read(sql, params![id]).await.unwrap()[0].int("number").unwrap()
}

async fn people_read_the_same_of_a_document_in_sql(store: Store) {
    let (_directory, blobs) = blobs();
    let id = converted(&store, &blobs).await;
    store.record_download(id).await.unwrap();
    let OwnedJob { record, files, .. } = store.jobs_by_id(std::iter::once(id)).await.unwrap().remove(0);
    let document = record.document().unwrap();
    let sql = |value: &Option<String>| format!("'{}'", value.as_deref().unwrap());
    let same = format!(
        "SELECT count(*) AS number FROM documents WHERE id = $1 AND upload_path = {} AND result_path = {} AND sha256 = {}
            AND original_filename = {} AND bytes = {} AND download_count = {} AND mapping = 'plain_v1'
            AND first_downloaded_at IS NOT NULL AND expires_at > {{now}}",
        sql(&files.source_path),
        sql(&files.result_path),
        sql(&document.sha256),
        sql(&document.name),
        document.bytes.unwrap(),
        files.download_count,
    );
    let same: &'static str = same.leak();
    assert_eq!(number(&store, same, id).await, 1, "{same}");
}

fn correction() -> Revision {
    Revision {
        field: "lines.0.total".into(),
        before: Some("10.00".into()),
        after: Some("11.00".into()),
        page: Some(1),
        area: Some([10.0, 20.5, 60.0, 30.0]),
    }
}

async fn a_correction_is_kept_with_its_place_and_becomes_an_example(store: Store) {
    let (_directory, blobs) = blobs();
    let id = converted(&store, &blobs).await;
    let author = Some(Uuid::from_u128(7));
    revise(store.sql(), id, &correction(), author).await.unwrap();
    let revised = revisions(store.sql(), id).await.unwrap();
    assert_eq!(
        revised.iter().map(|one| (&one.revision, one.author)).collect::<Vec<_>>(),
        [(&correction(), author)]
    );
    let samples = training_samples(store.sql(), Uuid::nil()).await.unwrap();
    assert_eq!(samples.len(), 1);
    let sample: Value = serde_json::to_value(&samples[0]).unwrap();
    assert_eq!(
        (&sample["field"], &sample["read"], &sample["expected"]),
        (&json!("lines.0.total"), &json!("10.00"), &json!("11.00"))
    );
    assert_eq!(
        (&sample["mapping"], &sample["page"], &sample["box"]),
        (&json!("plain_v1"), &json!(1), &json!([10.0, 20.5, 60.0, 30.0]))
    );
    assert!(sample["document_sha256"].is_string());
    assert_eq!(training_samples(store.sql(), samples[0].id).await.unwrap(), [], "nothing new since");
    let nothing = Revision { after: Some("10.00".into()), ..correction() };
    assert!(revise(store.sql(), id, &nothing, None).await.is_err(), "an edit that changes nothing");
    let nobody = JobId(Uuid::now_v7());
    assert!(matches!(revise(store.sql(), nobody, &correction(), None).await, Err(Error::NotFound(_))));
    assert_eq!(training_samples(store.sql(), Uuid::nil()).await.unwrap().len(), 1);
}

async fn corrections_go_with_their_job(store: Store) {
    let (_directory, blobs) = blobs();
    let id = converted(&store, &blobs).await;
    revise(store.sql(), id, &correction(), None).await.unwrap();
    store.delete_job(id, &blobs).await.unwrap();
    assert_eq!(revisions(store.sql(), id).await.unwrap(), []);
    assert_eq!(training_samples(store.sql(), Uuid::nil()).await.unwrap(), []);
}

async fn the_time_left_counts_those_before_and_who_works(store: Store) {
    let (_directory, blobs) = blobs();
    let done = converted(&store, &blobs).await;
    for _ in 0..2 {
        converted(&store, &blobs).await;
    }
    let ids = [upload(&store, &blobs, 18).await, upload(&store, &blobs, 18).await];
    let times_left = job_kind().times_left.unwrap();
    assert_eq!(times_left(&store, &ids).await.unwrap().len(), 0, "nobody works");
    let worker = worker(&store).await;
    let slots = BTreeMap::from([(machine::LANE, 1)]);
    store.describe(worker, &About { slots, breakers: Vec::new() }).await.unwrap();
    let left = times_left(&store, &[ids[0], ids[1], done]).await.unwrap();
    assert_eq!(left.len(), 2, "what has ended has no time left");
    let about = |id: &JobId| match left[id] {
        TimeLeft::About(left) => left,
        TimeLeft::Overdue => panic!("{left:?}"),
    };
    assert!(about(&ids[1]) >= about(&ids[0]), "the second waits for the first: {left:?}");
    assert!(about(&ids[0]) < Duration::from_secs(10), "they took no time: {left:?}");
    assert_eq!(times_left(&store, &[]).await.unwrap().len(), 0);
}
