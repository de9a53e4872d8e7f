//! `ode doctor`: what it finds, and that it only looks.

use crate::harness::{Ode, Ran, headings, is_untouched, on_both};
use ode_job::WorkerId;
use ode_job::record::About;
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

on_both!(all_is_well_on_firm_ground, an_old_schema_is_bad_news, jobs_that_no_worker_works_on_are_bad_news,);

/// What was found under this name. How full the machine's disk is, is not for these tests to say.
fn finding<'f>(findings: &'f Value, name: &str) -> &'f Value {
    let found = findings.as_array().unwrap().iter().find(|finding| finding["name"] == name);
    found.unwrap_or_else(|| panic!("{name} was not looked at: {findings}"))
}

fn names_of_bad(findings: &Value) -> Vec<&str> {
    let bad = findings.as_array().unwrap().iter().filter(|finding| finding["is_ok"] == false);
    bad.map(|finding| finding["name"].as_str().unwrap()).filter(|name| *name != "disk").collect()
}

fn examine(ode: &Ode, args: &[&str]) -> Value {
    let ran = Ran::of(ode.command(["doctor", "--json"]).args(args));
    let findings = ran.json();
    let is_ok = findings.as_array().unwrap().iter().all(|finding| finding["is_ok"] == true);
    assert_eq!(ran.code, Some(if is_ok { 0 } else { 1 }), "{ran:?}");
    assert_eq!(ran.stderr, "");
    findings
}

fn all_is_well_on_firm_ground(ode: &Ode) {
    std::fs::create_dir_all(ode.data().join("files")).unwrap();
    let findings = examine(ode, &[]);
    assert_eq!(names_of_bad(&findings), [""; 0], "{findings}");
    for name in ["schema", "clock", "files", "disk", "redis"] {
        finding(&findings, name);
    }
    let durability = if ode.url().starts_with("sqlite:") {
        ["journal_mode", "synchronous", "quick_check"]
    } else {
        ["fsync", "synchronous_commit", "full_page_writes"]
    };
    for name in durability {
        finding(&findings, name);
    }
    let table = ode.run(["doctor"]).stdout;
    assert_eq!(headings(&table), ["CHECK", "FOUND"]);
    assert!(table.contains("redis") && table.contains("not configured, not needed"), "{table}");
}

fn an_old_schema_is_bad_news(ode: &Ode) {
    ode.ok(["migrate", "down", "--to", "1", "--yes"]);
    assert_eq!(names_of_bad(&examine(ode, &[])), ["schema"]);
    let text = ode.run(["doctor"]).stdout;
    assert!(text.contains("BAD") && text.contains("\nschema: Run `ode migrate up`"), "{text}");
}

fn jobs_that_no_worker_works_on_are_bad_news(ode: &Ode) {
    ode.with_store(async |store| {
        let id = WorkerId(Uuid::new_v4());
        store.register(id, "test", "0").await.unwrap();
        store.beat(id, Duration::from_secs(3600), 0, false).await.unwrap();
        let about = About { slots: [(ode_html::machine::LANE, 1)].into(), ..About::default() };
        store.describe(id, &about).await.unwrap();
    });
    ode.add("html");
    let findings = examine(ode, &[]);
    assert_eq!(names_of_bad(&findings), [""; 0], "{findings}");
    ode.add("script");
    ode.add("print");
    let findings = examine(ode, &[]);
    assert_eq!(names_of_bad(&findings), ["workers"], "{findings}");
    let found = &finding(&findings, "workers")["found"];
    assert_eq!(found, "1 is alive, nobody works on print.export and script");
}

#[test]
fn looking_makes_nothing() {
    let ode = Ode::new();
    let findings = examine(&ode, &[]);
    assert_eq!(names_of_bad(&findings), [""; 0], "{findings}");
    for (name, what) in [("database", "no database yet at"), ("files", "no directory yet at")] {
        let found = finding(&findings, name)["found"].as_str().unwrap();
        assert!(found.starts_with(what) && found.ends_with("; `ode serve` makes one"), "{found}");
    }
    ode.ok(["migrate", "status"]);
    let status = ode.run(["migrate", "status"]);
    assert!(
        status.stderr.contains("There is no database at") && status.stderr.contains("`ode serve` makes one")
    );
    assert!(is_untouched(&ode.data()), "looking has made {}", ode.data().display());

    let elsewhere = ode.path("other.db");
    let url = format!("sqlite:{}", elsewhere.display());
    assert_eq!(names_of_bad(&examine(&ode, &["--database", &url])), [""; 0]);
    ode.run(["jobs", "list", "--database", &url]).assert_refused(&["There is no database at", "`ode serve`"]);
    assert!(is_untouched(&elsewhere), "looking has made {url}");
}

#[test]
fn a_place_that_cannot_be_made_is_bad_news() {
    let ode = Ode::new();
    std::fs::write(ode.data(), "a file").unwrap();
    let findings = examine(&ode, &[]);
    assert_eq!(names_of_bad(&findings), ["database", "files"], "{findings}");
    let found = finding(&findings, "database")["found"].as_str().unwrap();
    assert!(found.ends_with("it is not a directory"), "{found}");
}

#[test]
fn a_file_that_is_no_database_is_bad_news() {
    let ode = Ode::new();
    std::fs::create_dir(ode.data()).unwrap();
    std::fs::write(ode.data().join("ode.db"), "Dear reader, ".repeat(1000)).unwrap();
    let findings = examine(&ode, &[]);
    let found = finding(&findings, "database")["found"].as_str().unwrap();
    assert!(found.contains("damaged or not a database"), "{found}");
}

#[test]
fn a_server_that_may_lose_jobs_is_bad_news() {
    let ode = Ode::postgres();
    ode.sql(&format!("ALTER DATABASE {} SET synchronous_commit = off", ode.database_name()));
    let findings = examine(&ode, &[]);
    assert_eq!(names_of_bad(&findings), ["synchronous_commit"]);
    let advice = finding(&findings, "synchronous_commit")["advice"].as_str().unwrap();
    assert!(advice.contains("a crash loses jobs that were accepted"), "{advice}");
}

#[test]
fn a_server_that_takes_no_writes_is_bad_news() {
    let ode = Ode::postgres();
    ode.sql(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", ode.database_name()));
    assert_eq!(names_of_bad(&examine(&ode, &[])), ["transaction_read_only"]);
}

#[test]
fn a_server_that_is_away_is_bad_news_and_the_rest_is_checked_all_the_same() {
    let ode = Ode::new();
    let findings = examine(&ode, &["--database", "postgres://ode@127.0.0.1:1/ode"]);
    assert_eq!(names_of_bad(&findings), ["database"]);
    let found = finding(&findings, "database")["found"].as_str().unwrap();
    assert!(found.contains("Connection refused"), "{found}");
    finding(&findings, "files");
}

#[test]
fn redis_is_asked_whether_it_is_there() {
    let ode = Ode::sqlite();
    let redis = std::env::var("ODE_TEST_REDIS_URL").expect(
        "ODE_TEST_REDIS_URL is not set: run the tests with `tests/run`, which starts a server for them",
    );
    assert_eq!(finding(&examine(&ode, &["--redis", &redis]), "redis")["found"], "answers");
    for (url, said) in
        [("redis://127.0.0.1:1", "Redis: Connection refused"), ("nonsense", "--redis is not understood. Use")]
    {
        let findings = examine(&ode, &["--redis", url]);
        assert_eq!(names_of_bad(&findings), ["redis"], "{findings}");
        let found = finding(&findings, "redis")["found"].as_str().unwrap();
        assert!(found.starts_with(said), "{found}");
    }
}

#[test]
fn a_file_store_that_is_away_is_bad_news_before_long() {
    let ode = Ode::sqlite();
    let began = std::time::Instant::now();
    let mut command = ode.command(["doctor", "--json", "--storage", "s3://files"]);
    command.args(["--s3-endpoint", "http://127.0.0.1:1"]);
    command.envs([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "c")]);
    let ran = Ran::of(&mut command);
    assert_eq!(names_of_bad(&ran.json()), ["files"], "{ran:?}");
    assert!(began.elapsed().as_secs() < 30, "took {:?}", began.elapsed());
}

#[test]
fn files_on_a_disk_of_their_own_are_looked_at_too() {
    let ode = Ode::sqlite();
    let files = ode.path("elsewhere");
    let findings = examine(&ode, &["--storage", files.to_str().unwrap()]);
    assert!(finding(&findings, "disk of the files")["found"].as_str().unwrap().contains("GB free"));
    assert!(is_untouched(&files));
}
