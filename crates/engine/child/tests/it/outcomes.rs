//! Every way a run can end, and what is passed on while it lasts.

use crate::harness::{limited, logs, own, result, run, run_aloud, stranger, violation, worker};
use crate::parts::Act;
use ode_child::{
    Enforcement, Error, Grace, Input, Level, Limits, Notice, Outcome, Place, Program, Progress, Sandbox,
    Source, Spec, Supervisor, Violation, Work,
};
use serde_json::json;
use std::io::{Seek, Write};
use std::time::Duration;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_child_answers_with_its_result() {
    let report = run(&worker(), &Act::Echo(json!({ "some": ["value", 1, null] }))).await;
    assert_eq!(result(&report), json!({ "some": ["value", 1, null] }));
    assert_eq!(report.enforcement, Enforcement::Full);
    assert!(report.status.success() && report.artifacts.is_empty());
}

#[tokio::test]
async fn a_child_says_that_it_failed_and_whether_to_try_again() {
    for retryable in [true, false] {
        let report = run(&worker(), &Act::Fail { retryable }).await;
        match report.outcome {
            Outcome::Failed(failure) => assert_eq!(failure.retryable, retryable, "{failure:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_child_that_cannot_prepare_says_so() {
    let report = run(&own("unprepared"), &Act::Panic).await;
    assert!(matches!(report.outcome, Outcome::Failed(failure) if failure.code == "SETTINGS"));
}

#[tokio::test]
async fn a_payload_that_is_not_understood_is_a_failure() {
    let waiting = Supervisor::new().unwrap().start(&worker()).await.unwrap();
    let work = Work::new(&json!({ "Dance": true })).unwrap();
    let report = waiting.run(work, |_| (), std::future::pending()).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Failed(failure) if failure.code == "payload"));
}

#[tokio::test]
async fn what_a_child_says_is_passed_on() {
    let (report, said) = run_aloud(&worker(), &Act::Speak).await;
    let progress =
        Progress { percent: 25.0, message: Some("half".to_owned()), step: Some(2), steps: Some(4) };
    assert!(said.contains(&Notice::Progress(progress)), "{said:?}");
    let logs = logs(&said);
    for (source, level, text) in [
        (Source::Events, Level::Warn, "beware"),
        (Source::Stdout, Level::Info, "to stdout"),
        (Source::Stderr, Level::Warn, "to stderr"),
    ] {
        assert!(
            logs.iter().any(|line| (line.source, line.level, &*line.text) == (source, level, text)),
            "{logs:?}"
        );
    }
    let artifacts: Vec<_> = report.artifacts.iter().map(|artifact| report.read(artifact).unwrap()).collect();
    assert_eq!(artifacts, [&b"first"[..], b"", b"third"]);
    assert_eq!(report.artifacts[2].place, Place::Output { offset: 5, bytes: 5 });
}

#[tokio::test]
async fn an_input_arrives_whole_from_memory_and_from_a_file() {
    let bytes: Vec<u8> = (0..3 * MIB).map(|index| (index % 251) as u8).collect();
    let sum: u64 = bytes.iter().map(|&byte| u64::from(byte)).sum();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file.rewind().unwrap();
    let supervisor = Supervisor::new().unwrap();
    for input in [Input::Bytes(bytes.clone().into()), Input::File(file)] {
        let work = Work::new(&Act::ReadInput).unwrap().with_input(input);
        let report = supervisor.run(&worker(), work, |_| (), std::future::pending()).await.unwrap();
        assert_eq!(result(&report), json!([bytes.len(), sum]));
    }
    let report = run(&worker(), &Act::ReadInput).await;
    assert_eq!(result(&report), json!([0, 0]));
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_sent() {
    let limits = Limits { payload_bytes: 10, input_bytes: 10, ..Limits::default() };
    let supervisor = Supervisor::new().unwrap();
    let spec = limited(worker(), limits);
    let work = Work::new(&"more than ten bytes").unwrap();
    let refused = supervisor.run(&spec, work, |_| (), std::future::pending()).await;
    assert!(matches!(refused, Err(Error::PayloadTooLarge { bytes: 21, bytes_max: 10 })));
    let work = Work::new(&1).unwrap().with_input(Input::Bytes(vec![0; 11].into()));
    let refused = supervisor.run(&spec, work, |_| (), std::future::pending()).await;
    assert!(matches!(refused, Err(Error::InputTooLarge { bytes: 11, bytes_max: 10 })));
}

#[tokio::test]
async fn a_program_that_is_not_there_cannot_be_started() {
    let spec = Spec::own(Program::new("/nowhere/at/all", [""; 0]));
    let refused = Supervisor::new().unwrap().start(&spec).await.err();
    assert!(
        matches!(&refused, Some(Error::Start { program, .. }) if program.ends_with("all")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_child_that_takes_too_long_is_ended() {
    let limits = Limits { wall_clock: Duration::from_millis(300), ..Limits::default() };
    let report = run(&limited(worker(), limits), &Act::Hang).await;
    assert!(matches!(report.outcome, Outcome::TimedOut), "{:?}", report.outcome);
    assert!(report.usage.wall_clock >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_child_ends_when_the_caller_wishes() {
    let waiting = Supervisor::new().unwrap().start(&worker()).await.unwrap();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let listen = |notice: Notice| {
        if matches!(notice, Notice::Log(line) if line.text == "ready") {
            sender.take().unwrap().send(()).unwrap();
        }
    };
    let stop = async { receiver.await.unwrap() };
    let report = waiting.run(Work::new(&Act::Hang).unwrap(), listen, stop).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Stopped), "{:?}", report.outcome);
}

#[tokio::test]
async fn a_child_that_spins_runs_out_of_processor_time() {
    let limits = Limits { cpu_seconds: Some(1), ..Limits::default() };
    let report = run(&limited(worker(), limits), &Act::Spin).await;
    assert!(matches!(report.outcome, Outcome::CpuExceeded), "{:?}", report.outcome);
    assert!(report.usage.cpu >= Duration::from_millis(700), "{:?}", report.usage);
}

#[tokio::test]
async fn a_child_that_allocates_too_much_runs_out_of_memory() {
    let report = run(&worker(), &Act::Allocate(600 * MIB)).await;
    assert!(matches!(report.outcome, Outcome::OutOfMemory), "{:?}", report.outcome);
    let report = run(&worker(), &Act::Allocate(300 * MIB)).await;
    assert!(matches!(report.outcome, Outcome::Finished(_)), "{:?}", report.outcome);
}

#[tokio::test]
async fn a_child_that_is_watched_runs_out_of_memory_too() {
    let limits =
        Limits { resident_bytes: Some(100 * MIB as u64), address_space_bytes: None, ..Limits::default() };
    let mut spec = crate::harness::script("x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done");
    spec.limits = limits;
    spec.grace = Grace::NONE;
    let report = run(&spec, &Act::Panic).await;
    assert!(matches!(report.outcome, Outcome::OutOfMemory), "{:?}", report.outcome);
}

#[tokio::test]
async fn a_child_that_writes_too_much_is_ended() {
    let limits = Limits { output_bytes: 5 * MIB as u64, ..Limits::default() };
    let report = run(&limited(worker(), limits.clone()), &Act::Write(1024 * MIB)).await;
    assert!(matches!(report.outcome, Outcome::OutputTooLarge), "{:?}", report.outcome);
    let report = run(&limited(worker(), limits), &Act::Write(5 * MIB)).await;
    assert!(matches!(report.outcome, Outcome::Finished(_)), "{:?}", report.outcome);
    assert_eq!(report.artifacts.len(), 5);
}

#[tokio::test]
async fn output_past_the_limit_is_refused_even_from_an_open_child() {
    let limits = Limits { output_bytes: MIB as u64, ..Limits::default() };
    let spec = Spec { sandbox: Sandbox::Off, ..limited(worker(), limits) };
    let report = run(&spec, &Act::Write(2 * MIB)).await;
    assert!(matches!(report.outcome, Outcome::OutputTooLarge), "{:?}", report.outcome);
    assert_eq!(report.enforcement, Enforcement::None);
}

#[tokio::test]
async fn a_crash_tells_how_and_the_last_words() {
    for (act, signal, exit, words) in [
        (Act::Panic, None, Some(101), "as it was told"),
        (Act::Abort, Some(6), None, ""),
        (Act::Exit(3), None, Some(3), "last words"),
    ] {
        let report = run(&worker(), &act).await;
        match report.outcome {
            Outcome::Crashed(crash) => {
                assert_eq!((crash.signal, crash.exit), (signal, exit), "{act:?}");
                assert!(crash.stderr.join("\n").contains(words), "{act:?}: {:?}", crash.stderr);
            }
            other => panic!("{act:?} ended as {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_child_that_breaks_the_protocol_is_told_apart() {
    for (part, expected) in [
        ("silent", Violation::NoResult),
        ("twice", Violation::SecondAnswer),
        ("after", Violation::EventAfterAnswer),
        ("late", Violation::EventAfterAnswer),
        ("garbage", Violation::Garbage),
        ("many events", Violation::ManyEvents),
        ("long event", Violation::LongEvent),
        ("bad artifact", Violation::MissingArtifact),
    ] {
        assert_eq!(violation(&run(&stranger(part), &Act::Panic).await), expected, "{part}");
    }
}

#[tokio::test]
async fn a_child_that_is_a_little_odd_is_understood() {
    for part in ["some garbage", "no line end", "unknown"] {
        assert_eq!(result(&run(&stranger(part), &Act::Panic).await), json!(1), "{part}");
    }
}

#[tokio::test]
async fn a_result_stands_though_the_child_never_goes() {
    let report = run(&stranger("lingering"), &Act::Panic).await;
    assert_eq!(result(&report), json!("given"));
    assert!(!report.status.success(), "it was ended");
}

#[tokio::test]
async fn a_flood_of_prints_is_cut_and_harms_nobody() {
    let limits = Limits { log_bytes: 10_000, log_line_bytes: 100, ..Limits::default() };
    let (report, said) =
        run_aloud(&limited(worker(), limits), &Act::Print { lines: 5_000, bytes: 2_000 }).await;
    assert_eq!(result(&report), json!(null));
    let logs = logs(&said);
    let bytes: usize = logs.iter().map(|line| line.text.len()).sum();
    assert!(bytes <= 10_000 && bytes > 9_000, "{bytes} bytes were passed on");
    assert!(logs.iter().all(|line| line.text.len() <= 100));
    assert!(report.log_bytes_dropped > 900_000, "{} bytes were dropped", report.log_bytes_dropped);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let (_, said) = run_aloud(&worker(), &Act::Print { lines: 1, bytes: 2 }).await;
    let lines = logs(&said);
    assert_eq!(lines.iter().filter(|line| line.text == "aa\u{fffd}\u{fffd}").count(), 2, "{lines:?}");
}

#[tokio::test]
async fn a_payload_larger_than_a_pipe_arrives_while_the_child_talks() {
    let payload = Act::Echo(json!("x".repeat(900_000)));
    let report = run(&worker(), &payload).await;
    assert_eq!(result(&report).as_str().map(str::len), Some(900_000));
    let report = run(&stranger("slow reader"), &payload).await;
    assert!(result(&report).as_u64().is_some_and(|bytes| bytes > 900_000));
}

#[tokio::test]
async fn a_child_that_does_not_read_its_payload_can_still_answer() {
    let report = run(&stranger("deaf"), &Act::Echo(json!("x".repeat(900_000)))).await;
    assert_eq!(result(&report), json!(1));
}

#[tokio::test]
async fn a_child_sees_nothing_of_our_environment() {
    let names = result(&run(&worker(), &Act::Environment).await);
    assert_eq!(names, json!(["ODE_CHILD_SETUP", "ODE_EVENTS_FD", "ODE_PROTOCOL", "ODE_RUN", "PART"]));
}
