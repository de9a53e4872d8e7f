//! Results on local disk: whole or not there, and never outside their root.

use super::super::{Destination, Places, PlacesConfig};
use super::*;
use ode_job::{JobId, Owner};
use uuid::Uuid;

const JOB: JobId = JobId(Uuid::from_u128(1));
const OTHER: JobId = JobId(Uuid::from_u128(2));

fn places(root: &Path) -> Places {
    let roots = vec![format!("file://{}", root.display())];
    Places::open(&PlacesConfig { inputs: roots.clone(), outputs: roots, s3_endpoint: None }).unwrap()
}

fn files(page: &str) -> Vec<File> {
    let file = |name: &str, content: &str| File {
        role: "asset".into(),
        name: name.into(),
        content_type: "text/plain".into(),
        content: content.to_owned().into(),
    };
    vec![file("index.html", page), file("fonts/a.woff2", "font")]
}

async fn publish(
    places: &Places,
    address: &str,
    (job, fence): (JobId, i64),
    page: &str,
) -> Result<(), Failure> {
    places.publish(to(address, job, fence), &files(page)).await
}

fn to(address: &str, job: JobId, fence: i64) -> Destination<'_> {
    Destination { owner: Owner::Operator, job, fence, address }
}

#[tokio::test]
async fn a_result_appears_whole_is_replaced_by_a_later_attempt_and_goes_with_its_job() {
    let dir = tempfile::tempdir().unwrap();
    let (places, address) = (places(dir.path()), format!("file://{}/a/b", dir.path().display()));
    publish(&places, &address, (JOB, 2), "two").await.unwrap();
    let page = || fs::read_to_string(dir.path().join("a/b/index.html")).unwrap();
    assert_eq!(page(), "two");
    assert_eq!(fs::read_to_string(dir.path().join("a/b/fonts/a.woff2")).unwrap(), "font");
    publish(&places, &address, (JOB, 3), "three").await.unwrap();
    assert_eq!(page(), "three");
    let late = publish(&places, &address, (JOB, 2), "late").await.unwrap_err();
    assert_eq!((late.code, page()), (ErrorCode::Conflict, "three".into()));
    let other = publish(&places, &address, (OTHER, 1), "other").await.unwrap_err();
    assert!(other.message.contains(&JOB.to_string()) && page() == "three", "{other}");
    assert_eq!(fs::read_dir(dir.path().join(STAGING)).unwrap().count(), 0, "nothing is left behind");
    places.withdraw(to(&address, OTHER, i64::MAX)).await.unwrap();
    assert_eq!(page(), "three");
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
    assert!(!dir.path().join("a/b").exists());
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
}

#[tokio::test]
async fn a_folder_with_other_files_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("a")).unwrap();
    fs::write(dir.path().join("a/precious"), "mine").unwrap();
    let address = format!("file://{}/a", dir.path().display());
    assert!(publish(&places(dir.path()), &address, (JOB, 1), "page").await.is_err());
    assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_result_goes_without_what_others_put_below_it() {
    let dir = tempfile::tempdir().unwrap();
    let (places, address) = (places(dir.path()), format!("file://{}/a", dir.path().display()));
    let below = format!("{address}/fonts/below");
    publish(&places, &address, (JOB, 1), "page").await.unwrap();
    publish(&places, &below, (OTHER, 1), "other").await.unwrap();
    let other = || fs::read_to_string(dir.path().join("a/fonts/below/index.html"));
    // Nor can another attempt make room for itself.
    let again = publish(&places, &address, (JOB, 2), "again").await.unwrap_err();
    assert_eq!((again.code, other().unwrap()), (ErrorCode::Conflict, "other".into()));
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
    for gone in ["index.html", "manifest.json", "fonts/a.woff2"] {
        assert!(!dir.path().join("a").join(gone).exists(), "{gone}");
    }
    assert_eq!(other().unwrap(), "other");
    places.withdraw(to(&below, OTHER, i64::MAX)).await.unwrap();
    assert!(other().is_err());
}

/// The manifest of the result at a folder, with another file in the place of the font.
fn listing(folder: &Path, name: &str) -> Vec<u8> {
    let mut manifest: Published = serde_json::from_slice(&fs::read(folder.join(MANIFEST)).unwrap()).unwrap();
    manifest.files[1].path = name.into();
    manifest.to_json()
}

#[tokio::test]
async fn a_manifest_that_names_files_outside_of_its_folder_removes_nothing() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (places, address) = (places(dir.path()), format!("file://{}/a/b", dir.path().display()));
    let (folder, outside) = (dir.path().join("a/b"), elsewhere.path().join("precious"));
    publish(&places, &address, (JOB, 1), "page").await.unwrap();
    for precious in [&outside, &dir.path().join("a/precious"), &folder.join("precious")] {
        fs::write(precious, "mine").unwrap();
    }
    let original = fs::read(folder.join(MANIFEST)).unwrap();
    for name in [outside.to_str().unwrap(), "../precious", "fonts/../../precious", "./precious", ""] {
        fs::write(folder.join(MANIFEST), listing(&folder, name)).unwrap();
        places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
        assert!(outside.exists() && dir.path().join("a/precious").exists(), "{name}");
        assert!(folder.join("index.html").exists(), "{name}: it is not taken for ours");
        assert_eq!(publish(&places, &address, (JOB, 2), "two").await.unwrap_err().code, ErrorCode::Conflict);
        fs::write(folder.join(MANIFEST), &original).unwrap();
    }
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "all but what is not the job's");
}

#[tokio::test]
async fn a_folder_that_became_a_link_is_not_followed_to_remove_files() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (places, address) = (places(dir.path()), format!("file://{}/a", dir.path().display()));
    let folder = dir.path().join("a");
    // Neither out of the place nor to what is another's inside.
    for target in [elsewhere.path().to_owned(), folder.join("below")] {
        publish(&places, &address, (JOB, 1), "page").await.unwrap();
        fs::remove_dir_all(folder.join("fonts")).unwrap();
        fs::create_dir_all(&target).unwrap();
        fs::write(target.join("a.woff2"), "mine").unwrap();
        std::os::unix::fs::symlink(&target, folder.join("fonts")).unwrap();
        places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
        assert_eq!(fs::read_to_string(target.join("a.woff2")).unwrap(), "mine");
        assert!(!folder.join("index.html").exists() && !folder.join(MANIFEST).exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[tokio::test]
async fn a_removal_that_stopped_half_way_is_finished_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (places, address) = (places(dir.path()), format!("file://{}/a", dir.path().display()));
    let folder = dir.path().join("a");
    publish(&places, &address, (JOB, 1), "page").await.unwrap();
    fs::write(folder.join("precious"), "mine").unwrap();
    let original = fs::read(folder.join(MANIFEST)).unwrap();
    // A name that no file system takes stops it after the page.
    fs::write(folder.join(MANIFEST), listing(&folder, &"x".repeat(300))).unwrap();
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap_err();
    assert!(!folder.join("index.html").exists() && folder.join("fonts/a.woff2").exists());
    assert!(!folder.join(MANIFEST).exists(), "nobody takes the rest for a result");
    places.withdraw(to(&address, OTHER, i64::MAX)).await.unwrap();
    assert!(folder.join("fonts/a.woff2").exists(), "it is another job's");
    fs::write(folder.join(LEAVING), original).unwrap();
    fs::remove_file(folder.join("precious")).unwrap();
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe.pdf")).status().unwrap();
    assert!(made.success());
    fs::create_dir(dir.path().join("folder.pdf")).unwrap();
    for name in ["pipe.pdf", "folder.pdf"] {
        let address = format!("file://{}/{name}", dir.path().display());
        let refused = places(dir.path()).fetch(Owner::Operator, &address, 100).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotFound, "{name}");
    }
    fs::rename(dir.path().join("pipe.pdf"), dir.path().join("folder.pdf").join(MANIFEST)).unwrap();
    let address = format!("file://{}/folder.pdf", dir.path().display());
    places(dir.path()).withdraw(to(&address, JOB, i64::MAX)).await.unwrap();
}

#[tokio::test]
async fn a_link_does_not_lead_out_of_the_root() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(elsewhere.path().join("secret.pdf"), "secret").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("way")).unwrap();
    let places = places(dir.path());
    let address = format!("file://{}/way/secret.pdf", dir.path().display());
    let refused = places.fetch(Owner::Operator, &address, 100).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Forbidden);
    let address = format!("file://{}/way/out", dir.path().display());
    assert_eq!(publish(&places, &address, (JOB, 1), "page").await.unwrap_err().code, ErrorCode::Forbidden);
    assert!(!elsewhere.path().join("out").exists());
}

#[tokio::test]
async fn results_are_not_put_together_behind_a_link() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(elsewhere.path().join(format!("{JOB}-1"))).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), dir.path().join(STAGING)).unwrap();
    let (places, address) = (places(dir.path()), format!("file://{}/a", dir.path().display()));
    assert_eq!(publish(&places, &address, (JOB, 1), "page").await.unwrap_err().code, ErrorCode::IoError);
    places.withdraw(to(&address, JOB, i64::MAX)).await.unwrap_err();
    places.sweep().await;
    assert!(elsewhere.path().join(format!("{JOB}-1")).exists() && !dir.path().join("a").exists());
}

#[tokio::test]
async fn a_document_is_fetched_or_told_why_not() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.pdf"), "0123456789").unwrap();
    let places = places(dir.path());
    let at = |name: &str| format!("file://{}/{name}", dir.path().display());
    assert_eq!(places.fetch(Owner::Operator, &at("a.pdf"), 10).await.unwrap(), "0123456789");
    let code = async |name: &str, max| places.fetch(Owner::Operator, &at(name), max).await.unwrap_err().code;
    assert_eq!(code("a.pdf", 9).await, ErrorCode::TooLarge);
    assert_eq!(code("b.pdf", 9).await, ErrorCode::NotFound);
    std::os::unix::fs::symlink("nowhere", dir.path().join("link.pdf")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket.pdf")).unwrap();
    for name in ["link.pdf", "link.pdf/a.pdf", "socket.pdf"] {
        assert_eq!(code(name, 9).await, ErrorCode::NotFound, "{name}");
    }
}
