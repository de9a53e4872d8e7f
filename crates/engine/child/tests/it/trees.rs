//! Foreign programs and the processes they start, lose, hide and freeze: none outlives its run.

use crate::harness::{PATIENCE, Shared, logs, processes, result, run, script, stop_at, wait_until};
use crate::parts::Act;
use ode_child::{Grace, Limits, Notice, Outcome, Program, Spec, Supervisor, Waiting, Work};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A grace that does not keep the tests waiting.
const SHORT: Grace = Grace { interrupt: Duration::from_millis(100), terminate: Duration::from_millis(100) };

/// A number of seconds that no other test sleeps, so that those who sleep it can be found.
fn unique_sleep() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("86400.{}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn start(spec: &Spec) -> Waiting {
    Supervisor::new().unwrap().start(spec).await.unwrap()
}

/// Starts the script, stops it once it says `ready`, and checks that nobody is left who is of this run or sleeps as
/// long as only this test does.
async fn check_stopped(text: &str, sleep: &str) {
    let spec = Spec { grace: SHORT, ..script(text) };
    let waiting = start(&spec).await;
    let run = waiting.record().run.clone();
    let report = stop_at(waiting, "ready").await;
    assert!(matches!(report.outcome, Outcome::Stopped), "{text}: {:?}", report.outcome);
    assert_eq!(processes(&run, sleep), [0; 0], "{text}");
}

#[tokio::test]
async fn a_script_that_ignores_signals_ends() {
    let sleep = unique_sleep();
    check_stopped(&format!("trap '' INT TERM HUP; echo ready; while :; do sleep {sleep}; done"), &sleep)
        .await;
}

#[tokio::test]
async fn grandchildren_end_that_left_the_group_and_the_session() {
    let sleep = unique_sleep();
    check_stopped(&format!("setsid sleep {sleep} & setsid setsid sleep {sleep} & echo ready; wait"), &sleep)
        .await;
}

#[tokio::test]
async fn grandchildren_end_that_forked_twice_and_hid_their_environment() {
    let sleep = unique_sleep();
    let daemon = format!("env -i setsid sh -c '(sleep {sleep} &) & exit'");
    check_stopped(&format!("{daemon}; ({daemon} &); echo ready; while :; do sleep {sleep}; done"), &sleep)
        .await;
}

#[tokio::test]
async fn frozen_grandchildren_end() {
    let sleep = unique_sleep();
    check_stopped(&format!("setsid sleep {sleep} & kill -STOP $!; echo ready; wait"), &sleep).await;
}

#[tokio::test]
async fn a_script_that_keeps_starting_others_ends() {
    let sleep = unique_sleep();
    let text = format!(
        "trap '' INT TERM; i=0; while :; do setsid sleep {sleep} & i=$((i+1)); [ $i = 20 ] && echo ready; \
         [ $((i % 20)) = 0 ] && sleep 0.05; done"
    );
    check_stopped(&text, &sleep).await;
}

#[tokio::test]
async fn a_script_past_its_time_ends_with_all_it_started() {
    let sleep = unique_sleep();
    let limits = Limits { wall_clock: Duration::from_millis(500), ..Limits::program() };
    let spec = Spec { grace: SHORT, limits, ..script(&format!("setsid sleep {sleep} & sleep {sleep}")) };
    let report = run(&spec, &Act::Panic).await;
    assert!(matches!(report.outcome, Outcome::TimedOut), "{:?}", report.outcome);
    assert_eq!(processes(&sleep, &sleep), [0; 0]);
}

#[tokio::test]
async fn what_a_script_leaves_behind_ends_with_it() {
    let sleep = unique_sleep();
    let text = format!("env -i setsid sleep {sleep} & echo '{{\"t\":\"result\",\"data\":1}}' >&3");
    let report = run(&script(&text), &Act::Panic).await;
    assert_eq!(result(&report), json!(1));
    assert!(report.status.success());
    assert_eq!(processes(&sleep, &sleep), [0; 0]);
}

#[tokio::test]
async fn a_script_is_first_asked_politely() {
    let grace = Grace { interrupt: PATIENCE, terminate: PATIENCE };
    let text = "trap 'echo cleaned up; exit 0' INT; echo ready; sleep 86400 & wait";
    let waiting = start(&Spec { grace, ..script(text) }).await;
    let heard = Shared::default();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let listen = |notice: Notice| {
        heard.push(notice);
        if heard.has_line("ready") {
            let _ = sender.take().map(|sender| sender.send(()));
        }
    };
    let stop = async { receiver.await.unwrap() };
    let report = waiting.run(Work::new(&()).unwrap(), listen, stop).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Stopped), "{:?}", report.outcome);
    assert!(heard.has_line("cleaned up") && report.status.success());
}

#[tokio::test]
async fn a_keeper_ends_as_its_program_did() {
    for (text, signal, exit) in [("exit 7", None, Some(7)), ("kill -SEGV $$", Some(11), None)] {
        let report = run(&script(text), &Act::Panic).await;
        match report.outcome {
            Outcome::Crashed(crash) => assert_eq!((crash.signal, crash.exit), (signal, exit), "{text}"),
            other => panic!("{text} ended as {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_program_that_a_keeper_cannot_start_is_named() {
    let spec = Spec { program: Program::new("/nowhere/at/all", [""; 0]), ..script("") };
    match run(&spec, &Act::Panic).await.outcome {
        Outcome::Crashed(crash) => {
            assert_eq!(crash.exit, Some(127));
            assert!(crash.stderr.join("\n").contains("/nowhere/at/all"), "{:?}", crash.stderr);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_script_gets_its_payload_and_nothing_of_ours() {
    let text = "read line; echo \"${ODE_CHILD_SETUP-hidden} $ODE_PROTOCOL $ODE_EVENTS_FD\"; \
                echo \"{\\\"t\\\":\\\"result\\\",\\\"data\\\":$line}\" >&3";
    let mut said = Vec::new();
    let work = Work::new(&json!({ "name": "value" })).unwrap();
    let waiting = start(&script(text)).await;
    let report = waiting.run(work, |notice| said.push(notice), std::future::pending()).await.unwrap();
    assert_eq!(result(&report), json!({ "name": "value" }));
    let lines: Vec<String> = logs(&said).into_iter().map(|line| line.text).collect();
    assert!(lines.contains(&"hidden 1 3".to_owned()), "{lines:?}");
}

#[tokio::test]
async fn the_tree_ends_though_its_keeper_was_killed() {
    let sleep = unique_sleep();
    let waiting = start(&script(&format!("setsid sleep {sleep} & echo ready; wait"))).await;
    let keeper = Pid::from_raw(waiting.record().pid).unwrap();
    let listen = |notice| {
        if matches!(notice, Notice::Log(line) if line.text == "ready") {
            kill_process(keeper, Signal::KILL).unwrap();
        }
    };
    let report = waiting.run(Work::new(&()).unwrap(), listen, std::future::pending()).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Crashed(crash) if crash.signal == Some(9)));
    assert_eq!(processes(&sleep, &sleep), [0; 0]);
}

#[tokio::test]
async fn the_tree_ends_when_nobody_waits_for_it_any_more() {
    let sleep = unique_sleep();
    let spec = Spec { grace: SHORT, ..script(&format!("setsid sleep {sleep} & echo ready; wait")) };
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let waiting = start(&spec).await;
    let name = waiting.record().run.clone();
    let listen = move |notice| {
        if matches!(notice, Notice::Log(line) if line.text == "ready") {
            let _ = sender.take().map(|sender| sender.send(()));
        }
    };
    let run = waiting.run(Work::new(&()).unwrap(), listen, std::future::pending());
    tokio::select! {
        report = run => panic!("it ended by itself: {report:?}"),
        ready = receiver => ready.unwrap(),
    }
    wait_until("the end of a tree nobody waits for", || processes(&name, &sleep).is_empty());
}

#[tokio::test]
async fn a_program_without_keeper_ends_with_its_group_and_all_who_carry_its_name() {
    let sleep = unique_sleep();
    let text = format!(
        "trap '' INT TERM; setsid sleep {sleep} & sleep {sleep} & echo ready; while :; do wait; done"
    );
    let kept = script(&text);
    let spec = Spec { keeper: None, grace: SHORT, ..kept };
    let waiting = start(&spec).await;
    let name = waiting.record().run.clone();
    let report = stop_at(waiting, "ready").await;
    assert!(matches!(report.outcome, Outcome::Stopped), "{:?}", report.outcome);
    assert_eq!(processes(&name, &sleep), [0; 0]);
}
