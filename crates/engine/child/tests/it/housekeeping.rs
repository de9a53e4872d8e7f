//! Nothing is left behind: no descriptor, no zombie, no process of a supervisor that died. And the spares.

use crate::harness::{part, result, stranger, wait_until, worker};
use crate::parts::Act;
use ode_child::{Limits, Orphans, Record, Spares, Spec, Supervisor, Work, end_orphan};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A part: supervises one child of the kind that is asked for, and tells its record.
pub(crate) fn supervises_until_it_is_killed() -> ExitCode {
    let spec = match std::env::var("KIND").unwrap().as_str() {
        "kept" => Spec { grace: ode_child::Grace::NONE, ..crate::harness::script(SCRIPT) },
        "open" => Spec { keeper: None, ..crate::harness::script(SCRIPT) },
        _ => worker(),
    };
    runtime().block_on(async {
        let waiting = Supervisor::new().unwrap().start(&spec).await.unwrap();
        println!("\nRECORD {}", serde_json::to_string(waiting.record()).unwrap());
        let tell = |notice| {
            if let ode_child::Notice::Log(line) = notice {
                println!("\n{}", line.text);
            }
        };
        waiting.run(Work::new(&Act::Hang).unwrap(), tell, std::future::pending()).await.unwrap();
    });
    ExitCode::SUCCESS
}

const SCRIPT: &str = "setsid sleep 86400 & (setsid sleep 86400 &); echo ready; wait";

/// Starts such a supervisor and waits until its child is at work.
fn supervisor(kind: &str) -> (Child, Record) {
    let part = part();
    let mut command = Command::new(part.path);
    command.args(part.arguments).env("PART", "supervisor").env("KIND", kind);
    let mut process = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut record = None;
    for line in BufReader::new(process.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(text) = line.strip_prefix("RECORD ") {
            record = serde_json::from_str(text).ok();
        }
        if line == "ready" {
            return (process, record.unwrap());
        }
    }
    panic!("the supervisor ended as {:?} before its child was ready", process.wait());
}

fn kill(process: &mut Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

mod orphans {
    use super::*;
    use crate::harness::processes;
    use rustix::process::{Pid, Signal, kill_process};

    fn alive(record: &Record) -> usize {
        processes(&record.run, &record.run).len()
    }

    #[test]
    fn our_own_child_dies_with_its_supervisor() {
        let (mut supervisor, record) = supervisor("own");
        assert_eq!(alive(&record), 1);
        kill(&mut supervisor);
        wait_until("the end of an orphaned child", || alive(&record) == 0);
        assert_eq!(end_orphan(&record), Orphans::None);
    }

    #[test]
    fn a_kept_tree_dies_with_its_supervisor() {
        let (mut supervisor, record) = supervisor("kept");
        wait_until("the keeper, the script and two others", || alive(&record) >= 4);
        kill(&mut supervisor);
        wait_until("the end of an orphaned tree", || alive(&record) == 0);
    }

    #[test]
    fn orphans_are_found_and_ended_by_their_record() {
        let (mut supervisor, record) = supervisor("open");
        kill(&mut supervisor);
        wait_until("all three, whom nobody watches over", || alive(&record) == 3);
        assert_eq!(end_orphan(&record), Orphans::Ended(3));
        wait_until("that init reaps them", || alive(&record) == 0);
        assert_eq!(end_orphan(&record), Orphans::None);
    }

    #[test]
    fn orphans_are_found_though_the_first_process_is_gone() {
        let (mut supervisor, record) = supervisor("kept");
        let keeper = Pid::from_raw(record.pid).unwrap();
        kill_process(keeper, Signal::STOP).unwrap();
        kill(&mut supervisor);
        kill_process(keeper, Signal::KILL).unwrap();
        wait_until("the end of the keeper", || {
            !std::path::Path::new(&format!("/proc/{}", record.pid)).exists()
        });
        assert_eq!(alive(&record), 3, "the script and two others");
        assert_eq!(end_orphan(&record), Orphans::Ended(3));
        wait_until("that init reaps them", || alive(&record) == 0);
    }

    #[test]
    fn another_process_with_the_same_number_is_left_alone() {
        let mut innocent = Command::new("sleep").arg("86400").spawn().unwrap();
        let (mut supervisor, record) = supervisor("own");
        kill(&mut supervisor);
        wait_until("the end of an orphaned child", || alive(&record) == 0);
        let number = innocent.id().cast_signed();
        // The clock of start times has steps of 10 ms, and the two may have started in one of them.
        let record = Record { pid: number, started: record.started + 1, ..record };
        assert_eq!(end_orphan(&record), Orphans::None);
        assert!(innocent.try_wait().unwrap().is_none(), "it was ended though it started at another time");
        kill(&mut innocent);
    }
}

/// A part: runs children of every kind and counts what they leave. In a process of its own, because other tests
/// open descriptors and start processes too.
pub(crate) fn counts_what_200_runs_leave() -> ExitCode {
    let runtime = runtime();
    let supervisor = Supervisor::new().unwrap();
    let round = |count: usize| {
        runtime.block_on(async {
            for number in 0..count {
                one_of_many(&supervisor, number).await;
            }
        });
        wait_until("that every child is reaped", || children() == 0);
    };
    // The runtime and the standard library open some things for good the first time.
    round(8);
    let before = descriptors();
    round(200);
    let after = descriptors();
    println!("\nCOUNT {before} {after}");
    ExitCode::SUCCESS
}

async fn one_of_many(supervisor: &Supervisor, number: usize) {
    let (spec, act) = match number % 8 {
        0 => (worker(), Act::Fail { retryable: true }),
        1 => (worker(), Act::Exit(3)),
        2 => (stranger("twice"), Act::Panic),
        3 => (worker(), Act::Hang),
        4 if number % 40 == 4 => (crate::harness::script("setsid sleep 86400 & exit 0"), Act::Panic),
        _ => (worker(), Act::Echo(json!("x".repeat(100_000)))),
    };
    if number % 8 == 6 {
        // Given up while it is being started, sooner or later; where it was quicker, it is dropped unfed.
        let patience = Duration::from_micros(20 * number as u64);
        let _ = tokio::time::timeout(patience, supervisor.start(&spec)).await;
        return;
    }
    let waiting = supervisor.start(&spec).await.unwrap();
    match number % 8 {
        // Dropped before it is fed.
        5 => {}
        // Dropped while it runs.
        3 => {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let mut sender = Some(sender);
            let listen = move |_| {
                let _ = sender.take().map(|sender| sender.send(()));
            };
            let run = waiting.run(Work::new(&act).unwrap(), listen, std::future::pending());
            tokio::select! {
                report = run => panic!("{report:?}"),
                _ = receiver => {}
            }
        }
        _ => drop(waiting.run(Work::new(&act).unwrap(), |_| (), std::future::pending()).await.unwrap()),
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/dev/fd").unwrap().count()
}

/// Our children, zombies included.
fn children() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let of_thread = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path().join("children")).unwrap_or_default()
    };
    threads.map(of_thread).map(|text| text.split_whitespace().count()).sum()
}

#[test]
fn two_hundred_runs_leave_no_descriptor_and_no_zombie() {
    let part = part();
    let mut command = Command::new(part.path);
    command.args(part.arguments).env("PART", "accountant");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let counted = text.lines().find_map(|line| line.strip_prefix("COUNT "));
    let counted = counted.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
    let (before, after) = counted.split_once(' ').unwrap();
    assert_eq!(before, after, "descriptors before and after");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spares_are_handed_out_once_each() {
    let spares = Spares::new(Supervisor::new().unwrap(), worker(), 2);
    let mut seen = std::collections::HashSet::new();
    for number in 0..20 {
        let waiting = spares.take().await.unwrap();
        assert!(seen.insert(waiting.record().run.clone()), "a child was handed out twice");
        let work = Work::new(&Act::Echo(json!(number))).unwrap();
        let report = waiting.run(work, |_| (), std::future::pending()).await.unwrap();
        assert_eq!(result(&report), json!(number));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spare_that_died_while_it_waited_is_passed_over() {
    use rustix::process::{Pid, Signal, kill_process};
    let name = format!("spare-{}", std::process::id());
    let mut spec = worker();
    spec.environment.push(("SPARE".into(), name.clone().into()));
    let spares = Spares::new(Supervisor::new().unwrap(), spec, 1);
    let waiting = || crate::harness::processes(&name, &name);
    wait_until("the spare child", || waiting().len() == 1);
    let doomed = waiting()[0];
    kill_process(Pid::from_raw(doomed).unwrap(), Signal::KILL).unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{doomed}/stat")).unwrap();
    // The thread of the test harness in it has to go first.
    let is_dead =
        || std::fs::read_dir(format!("/proc/{doomed}/task")).unwrap().count() == 1 && stat().contains(") Z ");
    wait_until("its death", is_dead);
    let taken = spares.take().await.unwrap();
    let work = Work::new(&Act::Echo(json!(1))).unwrap();
    let report = taken.run(work, |_| (), std::future::pending()).await.unwrap();
    assert_eq!(result(&report), json!(1));
}

#[tokio::test]
async fn the_time_a_child_waits_for_its_payload_does_not_count() {
    let limits = Limits { wall_clock: Duration::from_secs(2), ..Limits::default() };
    let waiting = Supervisor::new().unwrap().start(&Spec { limits, ..worker() }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let work = Work::new(&Act::Echo(json!(1))).unwrap();
    let report = waiting.run(work, |_| (), std::future::pending()).await.unwrap();
    assert_eq!(result(&report), json!(1));
}

#[test]
fn a_command_for_children_refuses_to_run_alone() {
    let part = part();
    let mut command = Command::new(part.path);
    command.args(part.arguments).env("PART", "worker").env_remove("ODE_CHILD_SETUP").stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("under a supervisor"), "{output:?}");
}

#[tokio::test]
async fn many_children_run_side_by_side() {
    let supervisor = Supervisor::new().unwrap();
    let runs: Vec<_> = (0..20)
        .map(|number| {
            let supervisor = supervisor.clone();
            tokio::spawn(async move {
                let work = Work::new(&Act::Echo(json!(number))).unwrap();
                let report = supervisor.run(&worker(), work, |_| (), std::future::pending()).await.unwrap();
                assert_eq!(result(&report), json!(number));
            })
        })
        .collect();
    for run in runs {
        run.await.unwrap();
    }
}
