//! How often one visitor may ask.

use super::client::{Client, pdf, web, web_with};
use crate::harness::{Ode, on_both};

on_both!(the_eleventh_upload_in_a_minute_is_told_to_wait, mode_5_who_polls_in_a_loop_is_told_to_wait);

fn the_eleventh_upload_in_a_minute_is_told_to_wait(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    for number in 0..10 {
        browser.uploaded("a.pdf", &pdf(number));
    }
    let answer = browser.upload(&[("a.pdf", &pdf(10))], &[]);
    answer.assert_problem(429, "RATE_LIMITED");
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=6).contains(&seconds), "{answer:?}");
    assert_eq!(answer.json()["retry_after"], seconds);
    // It is the visitor who has to wait, and only with uploads.
    assert_eq!(browser.list()["jobs"].as_array().unwrap().len(), 10);
    Client::browser(&serving).uploaded("a.pdf", &pdf(10));
}

#[test]
fn files_past_the_limit_in_one_form_are_told_to_wait_and_the_others_are_taken() {
    let ode = Ode::new();
    let serving = web_with(&ode, &["--uploads-a-minute", "2"]);
    let browser = Client::browser(&serving);
    let documents: Vec<Vec<u8>> = (0..3).map(pdf).collect();
    let sent: Vec<(&str, &[u8])> = documents.iter().map(|content| ("a.pdf", content.as_slice())).collect();
    let answer = browser.upload(&sent, &[]);
    let statuses: Vec<u64> = answer.json()["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 201, 429], "{answer:?}");
    assert_eq!(answer.json()["files"][2]["problem"]["retry_after"], 30);
}

#[test]
fn who_brings_no_cookie_is_counted_by_address() {
    let ode = Ode::new();
    let serving = web_with(&ode, &["--uploads-a-minute", "2"]);
    for number in 0..2 {
        Client::stranger(&serving).uploaded("a.pdf", &pdf(number));
    }
    let stranger = Client::stranger(&serving);
    stranger.upload(&[("a.pdf", &pdf(2))], &[]).assert_problem(429, "RATE_LIMITED");
    let elsewhere = stranger.with("X-Forwarded-For", "192.0.2.7");
    elsewhere.upload(&[("a.pdf", &pdf(2))], &[]).assert_problem(429, "RATE_LIMITED");
}

fn mode_5_who_polls_in_a_loop_is_told_to_wait(ode: &Ode) {
    let serving = web_with(ode, &["--polls-a-minute", "20"]);
    let browser = Client::browser(&serving);
    for _ in 0..20 {
        assert_eq!(browser.get("/api/jobs").code(), 200);
    }
    let answer = browser.get("/api/jobs");
    answer.assert_problem(429, "RATE_LIMITED");
    assert!(answer.header("retry-after").parse::<u64>().unwrap() <= 3, "{answer:?}");
    assert_eq!(browser.get("/api/healthz").code(), 200, "health is always told");
}

#[test]
fn processes_that_share_a_redis_count_together_and_go_on_without_it() {
    let redis =
        std::env::var("ODE_TEST_REDIS_URL").expect("run the tests with `tests/run`, which starts a Redis");
    let ode = Ode::new();
    let args = ["--redis", redis.as_str(), "--uploads-a-minute", "3"];
    let (one, two) = (web_with(&ode, &args), web_with(&ode, &args));
    let browser = Client::browser(&one);
    let elsewhere = Client { headers: browser.headers.clone(), ..Client::stranger(&two) };
    browser.uploaded("a.pdf", &pdf(0));
    elsewhere.uploaded("a.pdf", &pdf(1));
    browser.uploaded("a.pdf", &pdf(2));
    elsewhere.upload(&[("a.pdf", &pdf(3))], &[]).assert_problem(429, "RATE_LIMITED");
    browser.upload(&[("a.pdf", &pdf(3))], &[]).assert_problem(429, "RATE_LIMITED");
    // Nobody listens there: each process counts by itself.
    let away = web_with(&ode, &["--redis", "redis://127.0.0.1:1", "--uploads-a-minute", "1"]);
    let browser = Client::browser(&away);
    browser.uploaded("a.pdf", &pdf(4));
    browser.upload(&[("a.pdf", &pdf(5))], &[]).assert_problem(429, "RATE_LIMITED");
}
