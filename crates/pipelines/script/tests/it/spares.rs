//! Processes that wait for work: used once, replaced, and closed when nobody needs them.

use crate::harness::{Site, data, wait_until};
use ode_script::{Runner, Settings};
use std::time::Duration;

/// Tells its own number, so that it can be told apart from others.
const TELLING: &str = "read line; echo \"{\\\"t\\\":\\\"result\\\",\\\"data\\\":$$}\" >&3";
const SPARE: &str = "pool = \"spare\"\nspare = [\"sh\", \"run\"]";

fn settings(site: &Site) -> Settings {
    Settings { browser: Some("/bin/sh".into()), ..site.settings() }
}

async fn number(runner: &Runner, site: &Site) -> (i64, bool) {
    let report = runner.run(site.order(), |_| (), std::future::pending()).await.unwrap();
    (data(&report).as_i64().unwrap(), report.was_spare)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_is_used_once_and_replaced() {
    let site = Site::with("sh", TELLING, SPARE);
    let runner = Runner::new(settings(&site)).unwrap();
    runner.warm(&site.script());
    wait_until("a spare", || runner.spares_ready() == 1);
    let (first, was_spare) = number(&runner, &site).await;
    assert!(was_spare);
    let (second, was_spare) = number(&runner, &site).await;
    assert!(!was_spare && second != first);
    wait_until("the next spare", || runner.spares_ready() == 1);
    let (third, was_spare) = number(&runner, &site).await;
    assert!(was_spare && third != second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_that_ended_while_it_waited_is_not_used() {
    let site = Site::with("sh", TELLING, "pool = \"spare\"\nspare = [\"sh\", \"-c\", \"exit 1\"]");
    let runner = Runner::new(settings(&site)).unwrap();
    runner.warm(&site.script());
    wait_until("a spare that has ended", || {
        runner.spares_ready() == 1 && crate::harness::processes(site.root().to_str().unwrap()).is_empty()
    });
    assert!(!number(&runner, &site).await.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn spares_that_nobody_needs_are_closed_and_leave_nothing() {
    let site = Site::with("sh", TELLING, SPARE);
    let idle = Settings { spare_idle: Duration::ZERO, ..settings(&site) };
    let runner = Runner::new(idle).unwrap();
    runner.warm(&site.script());
    wait_until("a spare", || runner.spares_ready() == 1);
    runner.close_idle();
    assert_eq!(runner.spares_ready(), 0);
    wait_until("its directory to go", || site.directories().is_empty());
    site.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn spares_go_with_their_runner() {
    let site = Site::with("sh", TELLING, SPARE);
    let runner = Runner::new(settings(&site)).unwrap();
    runner.warm(&site.script());
    wait_until("a spare", || runner.spares_ready() == 1);
    drop(runner);
    wait_until("its directory to go", || site.directories().is_empty());
    site.assert_empty();
}
