//! Scripts that hang, hide, and lose their worker: no process and no directory of them is left.

use crate::harness::{PATIENCE, Site, processes, wait_until};
use ode_script::{News, Outcome};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts others that leave the group, the session and the environment, and freezes one of them. It is ready once
/// one of them has left: the system ends what is still in the group of a frozen one when their parent goes.
const HIDING: &str = "trap '' INT TERM; mkdir -p profile; setsid sleep 86400 & kill -STOP $!
    (setsid sh -c 'echo x > $TMPDIR/profile/lock; sleep 86400' &)
    until [ -s $TMPDIR/profile/lock ]; do sleep 0.01; done; echo ready; while :; do sleep 86400; done";

#[tokio::test]
async fn a_script_that_is_stopped_leaves_nothing() {
    let site = Site::new("sh", HIDING);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let listen = |news| {
        if matches!(&news, News::Log(line) if line.text == "ready") {
            let _ = sender.take().map(|sender| sender.send(()));
        }
    };
    let stop = async { receiver.await.unwrap() };
    let report = site.runner().run(site.order(), listen, stop).await.unwrap();
    assert_eq!(report.outcome, Outcome::Stopped);
    site.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_let_go_of_leaves_nothing() {
    let site = Site::new("sh", HIDING);
    let runner = site.runner();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let listen = |news| {
        if matches!(&news, News::Log(line) if line.text == "ready") {
            let _ = sender.take().map(|sender| sender.send(()));
        }
    };
    tokio::select! {
        report = runner.run(site.order(), listen, std::future::pending()) => panic!("it ended: {report:?}"),
        ready = receiver => ready.unwrap(),
    }
    wait_until("the directory to go", || site.directories().is_empty());
    site.assert_empty();
}

/// Starts a worker of its own process, and waits until its script is ready.
fn worker(site: &Site) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "parts::plays_its_part", "--nocapture", "--test-threads=1"]);
    command.env("WORKER_IN", site.root()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(
        lines.map_while(Result::ok).any(|line| line == "ready"),
        "the worker ended: {:?}",
        process.wait()
    );
    process
}

#[test]
fn a_script_whose_worker_was_killed_leaves_nothing() {
    let site = Site::new("sh", HIDING);
    let mut worker = worker(&site);
    worker.kill().unwrap();
    worker.wait().unwrap();
    wait_until("the keeper to end the script and remove its directory", || {
        processes(site.root().to_str().unwrap()).is_empty() && site.directories().is_empty()
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_worker_ends_what_a_killed_one_and_its_killed_keeper_left() {
    let site = Site::new("sh", HIDING);
    let mut worker = worker(&site);
    let owner = std::fs::read(site.directories()[0].join("ode-run.json")).unwrap();
    let owner: serde_json::Value = serde_json::from_slice(&owner).unwrap();
    let keeper = i32::try_from(owner["run"]["pid"].as_i64().unwrap()).unwrap();
    let keeper = rustix::process::Pid::from_raw(keeper).unwrap();
    // Frozen first, so that it cannot end anything when its worker goes.
    rustix::process::kill_process(keeper, rustix::process::Signal::STOP).unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
    assert!(!processes(site.root().to_str().unwrap()).is_empty() && !site.directories().is_empty());
    let _runner = site.runner();
    wait_until("the sweep", || site.directories().is_empty());
    site.assert_empty();
}

/// A hundred attempts in four ways, ten at a time: hung until stopped, timed out, let go of, and killed with their
/// worker.
#[test]
fn a_hundred_mixed_jobs_leave_no_process_and_no_directory() {
    let began = Instant::now();
    let site = Site::new("sh", HIDING);
    std::thread::scope(|scope| {
        for part in 0..10 {
            let site = &site;
            scope.spawn(move || (0..10).for_each(|number| one_of_a_hundred(site, part + number)));
        }
    });
    wait_until("everything to be gone", || {
        processes(site.root().to_str().unwrap()).is_empty() && site.directories().is_empty()
    });
    eprintln!("100 jobs, 0 processes and 0 directories left, in {:?}", began.elapsed());
}

fn one_of_a_hundred(site: &Site, number: usize) {
    if number % 4 == 3 {
        let mut worker = worker(site);
        worker.kill().unwrap();
        worker.wait().unwrap();
        return;
    }
    crate::harness::runtime().block_on(async {
        let mut order = site.order();
        let timeout = if number.is_multiple_of(4) { Duration::from_millis(300) } else { PATIENCE };
        order.timeout = Some(timeout);
        let soon = tokio::time::sleep(Duration::from_millis(200));
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut sender = Some(sender);
        let listen = |news| {
            if matches!(&news, News::Log(line) if line.text == "ready") {
                let _ = sender.take().map(|sender| sender.send(()));
            }
        };
        let stop = async {
            match number % 4 {
                1 => receiver.await.unwrap(),
                _ => std::future::pending().await,
            }
        };
        let runner = site.runner();
        let run = runner.run(order, listen, stop);
        if number % 4 == 2 {
            tokio::select! {
                report = run => panic!("it ended: {report:?}"),
                () = soon => {}
            }
        } else {
            let expected = if number.is_multiple_of(4) { Outcome::TimedOut } else { Outcome::Stopped };
            assert_eq!(run.await.unwrap().outcome, expected);
        }
    });
}
