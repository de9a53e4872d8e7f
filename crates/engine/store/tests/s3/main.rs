//! Files and callers' places on a real S3-compatible server, reached through a proxy that has its moods: answers of 5xx,
//! slow ones, ones that end early, connections that are lost. Whatever happens, nothing is lost, nothing is half there,
//! and no byte differs.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use ode_job::File;
use ode_job::{ErrorCode, FailureKind, JobId, Owner};
use ode_store::{Blobs, BlobsConfig, Destination, MANIFEST, Places, PlacesConfig, Published};
use ode_testing::{Mood, Proxy};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// A bucket of its own, behind a proxy.
struct Bucket {
    name: String,
    directory: PathBuf,
    proxy: Proxy,
}

impl Bucket {
    /// Nothing where no server was started; that is told, so that nobody takes a skipped test for one that passed.
    fn new() -> Option<Self> {
        let (Ok(url), Ok(root)) = (std::env::var("ODE_TEST_S3_URL"), std::env::var("ODE_TEST_S3_ROOT"))
        else {
            eprintln!("skipped: no S3 server. `tests/run` starts one");
            return None;
        };
        let name = format!("test-{}", Uuid::new_v4().simple());
        let directory = PathBuf::from(root).join(&name);
        std::fs::create_dir(&directory).unwrap();
        let upstream = url.strip_prefix("http://").unwrap().parse().unwrap();
        Some(Bucket { name, directory, proxy: Proxy::start(upstream) })
    }

    fn blobs(&self) -> Blobs {
        Blobs::open(&BlobsConfig::S3 { bucket: self.name.clone(), endpoint: Some(self.proxy.url()) }).unwrap()
    }

    fn places(&self) -> Places {
        let roots = vec![format!("s3://{}", self.name)];
        let config =
            PlacesConfig { inputs: roots.clone(), outputs: roots, s3_endpoint: Some(self.proxy.url()) };
        Places::open(&config).unwrap()
    }

    fn address(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.name)
    }

    /// What really lies in the bucket.
    fn read(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(self.directory.join(key)).ok()
    }

    /// How many files lie below a prefix.
    fn count(&self, prefix: &str) -> usize {
        fn below(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
            entries.map(|path| if path.is_dir() { below(&path) } else { 1 }).sum()
        }
        below(&self.directory.join(prefix))
    }

    fn published(&self, prefix: &str) -> Option<Published> {
        self.read(&format!("{prefix}/{MANIFEST}")).map(|text| serde_json::from_slice(&text).unwrap())
    }
}

const JOB: JobId = JobId(Uuid::from_u128(1));
const OTHER: JobId = JobId(Uuid::from_u128(2));

/// Bytes that differ everywhere.
fn content(length: usize, seed: u32) -> Vec<u8> {
    (0..length).map(|at| ((at as u32).wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

fn files(count: usize) -> Vec<File> {
    let file = |number: usize| File {
        role: "asset".into(),
        name: if number == 0 { "index.html".into() } else { format!("img/{number}.png") },
        content_type: "image/png".into(),
        content: content(20_000 + number, number as u32).into(),
    };
    (0..count).map(file).collect()
}

fn to(address: &str, job: JobId, fence: i64) -> Destination<'_> {
    Destination { owner: Owner::Operator, job, fence, address }
}

/// What a place must look like: the manifest of this attempt, and every file it names with its digest.
fn assert_whole(bucket: &Bucket, prefix: &str, fence: i64) {
    let published = bucket.published(prefix).expect("it is published");
    assert_eq!((published.job_id, published.fence), (JOB, fence));
    for (file, expected) in published.files.iter().zip(files(published.files.len())) {
        assert_eq!(
            bucket.read(&format!("{prefix}/{}", file.path)).as_ref(),
            Some(&expected.content.to_vec()),
            "{}",
            file.path
        );
    }
}

/// Troubles that pass: so many requests of each kind go wrong.
const PASSING: [Mood; 5] = [
    Mood::Status(503),
    Mood::Status(500),
    Mood::Slow(Duration::from_millis(300)),
    Mood::LostBeforeAnswer,
    Mood::CutAfter(1000),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_stored_and_read_as_it_was_whatever_the_network_does() {
    let Some(bucket) = Bucket::new() else { return };
    let blobs = bucket.blobs();
    blobs.check().await.unwrap();
    for (number, mood) in PASSING.into_iter().enumerate() {
        bucket.proxy.set(mood, 2);
        let stored = blobs.put(JOB, 1, number, vec![content(100_000, 7).into()]).await.unwrap().remove(0);
        assert_eq!(stored.storage, "s3");
        bucket.proxy.set(mood, 1);
        // An answer that ends early may be told as an error, but never as the file.
        match blobs.get(&stored.path, &stored.sha256).await {
            Ok(read) => assert_eq!(read, content(100_000, 7)),
            Err(error) => assert!(matches!(mood, Mood::CutAfter(_)), "{mood:?}: {error}"),
        }
        bucket.proxy.set(Mood::Fair, 0);
        assert_eq!(blobs.get(&stored.path, &stored.sha256).await.unwrap(), content(100_000, 7));
        blobs.delete(&stored.path).await.unwrap();
        blobs.delete(&stored.path).await.unwrap();
        assert!(blobs.get(&stored.path, &stored.sha256).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_in_parts_arrives_whole_or_not_at_all() {
    let Some(bucket) = Bucket::new() else { return };
    let blobs = bucket.blobs();
    let sent = content(12 << 20, 3);
    let mut incoming = blobs.receive();
    for piece in sent.chunks(700_000) {
        incoming.write(piece).await.unwrap();
    }
    bucket.proxy.set(Mood::Status(503), 1);
    let stored = incoming.finish().await.unwrap();
    assert_eq!(stored.bytes, 12 << 20);
    assert_eq!(blobs.get(&stored.path, &stored.sha256).await.unwrap(), sent);
    // What was changed meanwhile is noticed.
    std::fs::write(bucket.directory.join(&stored.path), b"something else").unwrap();
    assert!(blobs.get(&stored.path, &stored.sha256).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_fetched_whole_or_told_why_not() {
    let Some(bucket) = Bucket::new() else { return };
    std::fs::write(bucket.directory.join("doc.pdf"), content(50_000, 1)).unwrap();
    let places = bucket.places();
    let fetch = async |key: &str, max: u64| places.fetch(Owner::Operator, &bucket.address(key), max).await;
    assert_eq!(fetch("doc.pdf", 50_000).await.unwrap(), content(50_000, 1));
    assert_eq!(fetch("doc.pdf", 49_999).await.unwrap_err().code, ErrorCode::TooLarge);
    assert_eq!(fetch("none.pdf", 50_000).await.unwrap_err().code, ErrorCode::NotFound);
    for mood in PASSING {
        bucket.proxy.set(mood, 1);
        match fetch("doc.pdf", 50_000).await {
            Ok(read) => assert_eq!(read, content(50_000, 1), "{mood:?}"),
            Err(failure) => {
                assert!(matches!(failure.kind, FailureKind::Retryable { .. }), "{mood:?}: {failure}");
            }
        }
    }
    let elsewhere = places.fetch(Owner::Operator, "s3://another-bucket/doc.pdf", 50_000).await.unwrap_err();
    assert_eq!(elsewhere.code, ErrorCode::Forbidden);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_published_whole_whatever_the_network_does() {
    let Some(bucket) = Bucket::new() else { return };
    let places = bucket.places();
    for (number, mood) in PASSING.into_iter().enumerate() {
        let (prefix, files) = (format!("out/{number}"), files(6));
        let address = bucket.address(&prefix);
        bucket.proxy.set(mood, 3);
        // An attempt that fails is made again under a higher fence, as jobs are.
        let mut fence = 1;
        while let Err(failure) = places.publish(to(&address, JOB, fence), &files).await {
            assert!(matches!(failure.kind, FailureKind::Retryable { .. }), "{mood:?}: {failure}");
            assert!(fence < 5, "{mood:?}: {failure}");
            fence += 1;
        }
        assert_whole(&bucket, &prefix, fence);
    }
}

/// Requests of a publication before the first file is copied: whether something is there, whose the prefix is, the files,
/// and a look for what attempts before it left. Where an attempt before it holds the prefix, one more tells that it is its own
/// job's.
fn until_copied(files: usize) -> usize {
    2 + files + 1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storage_that_goes_away_leaves_nothing_to_be_seen_and_the_attempt_can_be_made_again() {
    let Some(bucket) = Bucket::new() else { return };
    let (places, address) = (bucket.places(), bucket.address("out"));
    for (fence, passed) in [(2, 1), (3, 3), (4, until_copied(8) + 1)] {
        bucket.proxy.set_after(passed, Mood::Status(503), usize::MAX);
        let failure = places.publish(to(&address, JOB, fence), &files(8)).await.unwrap_err();
        assert!(matches!(failure.kind, FailureKind::Retryable { .. }), "{failure}");
        assert_eq!(bucket.count("out"), 0, "after {passed} requests");
        bucket.proxy.set(Mood::Fair, 0);
    }
    places.publish(to(&address, JOB, 5), &files(8)).await.unwrap();
    assert_whole(&bucket, "out", 5);
    assert_eq!(bucket.count(STAGING), 0, "nothing is left out of sight either");
}

const STAGING: &str = ".ode-staging";

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_out_of_sight_is_nobodys() {
    let Some(bucket) = Bucket::new() else { return };
    let places = bucket.places();
    let staged = bucket.address(&format!("{STAGING}/x"));
    assert!(places.check_input(Owner::Operator, &staged).is_err());
    assert!(places.check_output(Owner::Operator, &staged).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_jobs_for_one_prefix_never_mix_their_files() {
    let Some(bucket) = Bucket::new() else { return };
    let (places, address) = (bucket.places(), bucket.address("out"));
    // The first is in the middle of copying when the second comes.
    bucket.proxy.set_after(until_copied(8) + 2, Mood::Status(503), usize::MAX);
    places.publish(to(&address, JOB, 2), &files(8)).await.unwrap_err();
    bucket.proxy.set(Mood::Fair, 0);
    let refused = places.publish(to(&address, OTHER, 1), &files(3)).await.unwrap_err();
    assert!(matches!(refused.kind, FailureKind::Retryable { .. }), "it may go away: {refused}");
    assert!(refused.message.contains(&JOB.to_string()), "{refused}");
    // Once the first has failed for good, the prefix is free.
    places.withdraw(to(&address, JOB, 2)).await.unwrap();
    assert_eq!((bucket.count("out"), bucket.count(STAGING)), (0, 0));
    places.publish(to(&address, OTHER, 2), &files(3)).await.unwrap();
    assert_eq!(bucket.published("out").unwrap().job_id, OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_was_replaced_copies_nothing_more() {
    let Some(bucket) = Bucket::new() else { return };
    let (places, address) = (bucket.places(), bucket.address("out"));
    // It stands still between what it staged and what it is to copy; the files differ from the later attempt's.
    bucket.proxy.set_after(until_copied(8), Mood::Held, usize::MAX);
    let early = tokio::spawn({
        let (places, address) = (places.clone(), address.clone());
        async move { places.publish(to(&address, JOB, 2), &changed(files(8))).await }
    });
    bucket.proxy.wait_for_held();
    bucket.proxy.set(Mood::Fair, 0);
    places.publish(to(&address, JOB, 3), &files(8)).await.unwrap();
    bucket.proxy.release();
    early.await.unwrap().unwrap_err();
    assert_whole(&bucket, "out", 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_was_replaced_and_signs_all_the_same_is_written_over() {
    let Some(bucket) = Bucket::new() else { return };
    let (places, address) = (bucket.places(), bucket.address("out"));
    // The later attempt has copied its files, and is about to sign for them.
    bucket.proxy.set_after(until_copied(8) + 8, Mood::Held, usize::MAX);
    let later = tokio::spawn({
        let (places, address) = (places.clone(), address.clone());
        async move { places.publish(to(&address, JOB, 3), &files(8)).await }
    });
    bucket.proxy.wait_for_held();
    assert_eq!((bucket.count("out"), bucket.published("out")), (8, None));
    let early = Published { job_id: JOB, fence: 2, files: Vec::new() };
    std::fs::write(bucket.directory.join("out").join(MANIFEST), serde_json::to_vec(&early).unwrap()).unwrap();
    bucket.proxy.release();
    later.await.unwrap().unwrap();
    assert_whole(&bucket, "out", 3);
    assert_eq!(bucket.published("out").unwrap().files.len(), 8);
}

fn changed(mut files: Vec<File>) -> Vec<File> {
    files.iter_mut().for_each(|file| file.content = file.content.iter().rev().copied().collect());
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_after_one_that_published_leaves_its_own_files_and_no_others() {
    let Some(bucket) = Bucket::new() else { return };
    let (places, address) = (bucket.places(), bucket.address("out"));
    places.publish(to(&address, JOB, 1), &changed(files(8))).await.unwrap();
    places.publish(to(&address, JOB, 2), &files(3)).await.unwrap();
    assert_whole(&bucket, "out", 2);
    assert_eq!(bucket.count("out"), 4, "three files and the manifest");
    // The same once more sends and copies nothing: a look, the manifest, and two looks for what the one before it left.
    bucket.proxy.set_after(4, Mood::Status(503), usize::MAX);
    places.publish(to(&address, JOB, 3), &files(3)).await.unwrap();
    bucket.proxy.set(Mood::Fair, 0);
    assert_whole(&bucket, "out", 3);
    // One that was lost right after its manifest left more; whoever comes next takes that away.
    bucket.proxy.set_after(until_copied(3) + 3 + 1, Mood::Status(503), usize::MAX);
    places.publish(to(&bucket.address("lost"), JOB, 4), &files(3)).await.unwrap();
    bucket.proxy.set(Mood::Fair, 0);
    assert!(bucket.count(STAGING) > 0, "it came far enough to leave something");
    places.publish(to(&bucket.address("lost"), JOB, 5), &files(3)).await.unwrap();
    assert_whole(&bucket, "lost", 5);
    assert_eq!(bucket.count(STAGING), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_attempt_and_another_job_change_nothing_and_a_result_goes_with_its_job() {
    let Some(bucket) = Bucket::new() else { return };
    let (places, address) = (bucket.places(), bucket.address("out"));
    places.publish(to(&address, JOB, 3), &files(3)).await.unwrap();
    let late = places.publish(to(&address, JOB, 2), &files(2)).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::Conflict);
    let other = places.publish(to(&address, OTHER, 9), &files(2)).await.unwrap_err();
    assert!(other.message.contains(&JOB.to_string()), "{other}");
    assert_whole(&bucket, "out", 3);
    places.withdraw(to(&address, OTHER, i64::MAX)).await.unwrap();
    assert_whole(&bucket, "out", 3);
    bucket.proxy.set(Mood::LostBeforeAnswer, 1);
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
    assert_eq!((bucket.published("out"), bucket.read("out/index.html")), (None, None));
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lost_attempt_left_is_taken_away_and_nothing_else() {
    let Some(bucket) = Bucket::new() else { return };
    let (places, address) = (bucket.places(), bucket.address("out"));
    std::fs::create_dir(bucket.directory.join("out")).unwrap();
    std::fs::write(bucket.directory.join("out/theirs.txt"), "theirs").unwrap();
    let left = || std::fs::read_dir(bucket.directory.join("out/img")).into_iter().flatten().count();
    bucket.proxy.set_after(until_copied(8) + 3, Mood::Status(503), usize::MAX);
    places.publish(to(&address, JOB, 2), &files(8)).await.unwrap_err();
    bucket.proxy.set(Mood::Fair, 0);
    assert!(left() > 0, "it came far enough to leave something");
    for other in [to(&address, JOB, 1), to(&address, OTHER, 9)] {
        assert_eq!(
            places.withdraw(other).await.unwrap(),
            0,
            "a later attempt's and another job's are left alone"
        );
    }
    assert!(places.withdraw(to(&address, JOB, 2)).await.unwrap() > 0);
    assert_eq!((left(), bucket.count(STAGING)), (0, 0));
    assert_eq!(bucket.read("out/theirs.txt").as_deref(), Some(b"theirs".as_slice()));
    // A manifest that somebody else wrote keeps nobody from removing a job.
    std::fs::write(bucket.directory.join("out/manifest.json"), "{}").unwrap();
    assert_eq!(places.withdraw(to(&address, JOB, 9)).await.unwrap(), 0);
    assert!(bucket.read("out/manifest.json").is_some());
}
