//! Directories that cannot be written, files in the way, disks that are full.

use crate::harness::{Ode, Ran};
use ode_job::NewJob;
use ode_testing::SmallDisk;
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The user `nobody`, to whom permissions apply even where the tests run as root.
const NOBODY: u32 = 65_534;

/// Runs a command as somebody who may be kept from writing. `None`, and loudly, where that cannot be had.
fn run_unprivileged(ode: &Ode, args: &[&str]) -> Option<Ran> {
    unprivileged(ode.command(args))
}

/// The same for any command.
pub(crate) fn unprivileged(mut command: Command) -> Option<Ran> {
    if rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.output() {
        Ok(output) => Some(output.into()),
        Err(error) => {
            eprintln!("SKIPPED: the binary cannot be run as another user than root: {error}");
            None
        }
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_where_the_data_directory_should_be_is_told_as_such() {
    let ode = Ode::new();
    std::fs::write(ode.data(), "a file").unwrap();
    let data = ode.data().display().to_string();
    let ran = ode.run(["serve", "--listen", "127.0.0.1:0"]);
    ran.assert_refused(&[&data, "cannot be made", "--data"]);
    ode.run(["jobs", "list"]).assert_refused(&["There is no database at", &data]);
}

#[test]
fn a_directory_that_may_not_be_made_is_told_as_such() {
    let ode = Ode::new();
    set_mode(&ode.path(""), 0o555);
    let Some(ran) = run_unprivileged(&ode, &["serve", "--listen", "127.0.0.1:0"]) else { return };
    ran.assert_refused(&["cannot be made: Permission denied", "--data"]);
    let ran = run_unprivileged(&ode, &["doctor"]).unwrap();
    assert!(ran.code == Some(1) && ran.stdout.contains("Permission denied"), "{ran:?}");
    set_mode(&ode.path(""), 0o755);
}

#[test]
fn a_directory_that_may_not_be_written_is_told_as_such() {
    let ode = Ode::new();
    std::fs::create_dir(ode.data()).unwrap();
    set_mode(&ode.path(""), 0o755);
    set_mode(&ode.data(), 0o555);
    let Some(ran) = run_unprivileged(&ode, &["serve", "--listen", "127.0.0.1:0"]) else { return };
    ran.assert_refused(&["the directory may be missing or not writable", "(DATABASE_UNAVAILABLE)"]);
    set_mode(&ode.data(), 0o755);
}

#[test]
fn a_database_that_may_not_be_written_is_told_as_such() {
    let ode = Ode::sqlite();
    set_mode(&ode.path(""), 0o755);
    for entry in std::fs::read_dir(ode.data()).unwrap() {
        set_mode(&entry.unwrap().path(), 0o444);
    }
    set_mode(&ode.data(), 0o555);
    let Some(ran) = run_unprivileged(&ode, &["jobs", "add", "xml", "a"]) else { return };
    ran.assert_refused(&["read-only", "Make the file and its directory writable", "(DATABASE_READ_ONLY)"]);
    assert!(!ran.stderr.contains("primary"), "{ran:?}");
    let doctor = run_unprivileged(&ode, &["doctor"]).unwrap();
    assert!(doctor.code == Some(1) && doctor.stdout.contains("\nwritable: Check"), "{doctor:?}");
    set_mode(&ode.data(), 0o755);
}

#[test]
fn the_data_directory_is_for_its_owner_alone() {
    let ode = Ode::sqlite();
    let mode = std::fs::metadata(ode.data()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_directory_may_have_any_name() {
    let ode = Ode::new();
    let data = ode.path("what? 100% of #1");
    for args in [&["migrate", "up"][..], &["jobs", "add", "xml", "a"], &["jobs", "list"]] {
        let mut command = crate::harness::bare();
        let ran = Ran::of(command.args(args).arg("--data").arg(&data));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert!(data.join("ode.db").is_file());
}

/// Megabytes: enough for a database with a few jobs.
pub(crate) const SMALL_MB: usize = 4;

#[test]
fn what_a_full_disk_refused_is_accepted_by_the_same_process_once_there_is_space() {
    let ode = Ode::new();
    let Some(disk) = SmallDisk::mount(ode.data(), SMALL_MB) else { return };
    ode.ok(["migrate", "up"]);
    ode.with_store(async |store| {
        let job = || NewJob::new(ode_xml::machine::XML, "a", json!("x".repeat(500_000)));
        store.enqueue(job()).await.unwrap();
        disk.fill();
        for _ in 0..2 {
            let error = store.enqueue(job()).await.unwrap_err();
            assert!(matches!(error, ode_store::Error::DiskFull(_)), "{error:?}");
        }
        disk.free();
        store.enqueue(job()).await.unwrap();
    });
    assert_eq!(ode.json(["jobs", "list"])["jobs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_full_disk_is_told_as_such_and_nothing_accepted_is_lost() {
    let ode = Ode::new();
    let Some(_disk) = SmallDisk::mount(ode.data(), SMALL_MB) else { return };
    ode.ok(["migrate", "up"]);
    let input = ode.path("input.json");
    std::fs::write(&input, format!("\"{}\"", "x".repeat(500_000))).unwrap();
    let add = ["jobs", "add", "xml", "a", "--input-file", input.to_str().unwrap()];
    let mut accepted = Vec::new();
    let refused = loop {
        let ran = ode.run(add);
        if ran.code != Some(0) {
            break ran;
        }
        accepted.push(ran.stdout.split_whitespace().next().unwrap().to_owned());
        assert!(accepted.len() < 20, "ten megabytes were stored on four");
    };
    refused.assert_refused(&["no space left", "Free some", "(DISK_FULL)"]);
    assert!(!accepted.is_empty(), "nothing was accepted: {refused:?}");

    let page = ode.json(["jobs", "list"]);
    let listed: Vec<&str> =
        page["jobs"].as_array().unwrap().iter().map(|job| job["reference"].as_str().unwrap()).collect();
    accepted.reverse();
    assert_eq!(listed, accepted);
    let ran = ode.run(["doctor"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("\ndisk: Free some space"), "{ran:?}");
}
