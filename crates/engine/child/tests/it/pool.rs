//! Runs in turns: what a pool makes of real children.

use crate::harness::part;
use crate::parts::Act;
use bytes::Bytes;
use ode_child::{Notice, Pool, PoolOptions, Program, Run, Sandbox, Subject};
use ode_job::ErrorCode;
use serde_json::{Value, json};

static INPUT: Bytes = Bytes::from_static(&[1, 2, 3]);

/// A pool of workers. Programs of a pool have no variables, so `env` sets the one that makes this binary a worker.
fn pool() -> Pool {
    let mut arguments = vec!["PART=worker".into(), std::env::current_exe().unwrap().into_os_string()];
    arguments.extend(part().arguments);
    let options = PoolOptions { at_once: 1, sandbox: Sandbox::Required, ..PoolOptions::default() };
    Pool::new(options, Program::new("/usr/bin/env", arguments), Subject::PDF).unwrap()
}

async fn run(act: &Act) -> Run {
    pool().turn(&INPUT).await.unwrap().run(act, INPUT.clone(), |_| ()).await.unwrap()
}

#[tokio::test]
async fn one_turn_is_enough_for_several_children() {
    let pool = pool();
    let mut turn = pool.turn(&INPUT).await.unwrap();
    for _ in 0..2 {
        let run = turn.run(&Act::ReadInput, INPUT.clone(), |_| ()).await.unwrap();
        assert_eq!(run.answer::<(usize, u64)>().unwrap(), (3, 6));
    }
}

#[tokio::test]
async fn artifacts_are_read_by_name_and_notices_passed_on() {
    let mut progress = 0;
    let count = |notice| progress += usize::from(matches!(notice, Notice::Progress(_)));
    let pool = pool();
    let run = pool.turn(&INPUT).await.unwrap().run(&Act::Speak, INPUT.clone(), count).await.unwrap();
    assert_eq!(run.answer::<Value>().unwrap(), Value::Null);
    assert_eq!(run.artifact("one").unwrap(), b"first");
    assert_eq!(run.optional_artifact("two").unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(run.optional_artifact("four").unwrap(), None);
    let failure = run.artifact("four").unwrap_err();
    assert_eq!(failure.detail.as_deref(), Some("the child gave no four"));
    assert_eq!(progress, 1);
}

#[tokio::test]
async fn an_answer_of_another_type_is_unexpected() {
    let run = run(&Act::Echo(json!("text"))).await;
    assert_eq!(run.answer::<u64>().unwrap_err().code, ErrorCode::Unknown);
    assert_eq!(run.answer::<String>().unwrap(), "text");
}

#[tokio::test]
async fn a_run_that_failed_has_its_cost() {
    let run = run(&Act::Abort).await;
    let failure = run.answer::<Value>().unwrap_err();
    assert_eq!(failure.code, ErrorCode::Unreadable);
    assert!(failure.detail.is_some_and(|detail| detail.starts_with("Crashed(")));
    assert!(!run.usage().wall_clock.is_zero());
}
