//! What cannot be done is refused in a sentence that says what to do next, with an exit code to match.

use crate::harness::{Ode, Ran, bare, is_untouched, on_both};
use ode_job::Ended;

on_both!(
    what_is_asked_of_jobs_in_vain_is_refused_with_its_code,
    a_taken_external_id_is_told_as_such,
    more_input_than_allowed_is_refused,
);

fn what_is_asked_of_jobs_in_vain_is_refused_with_its_code(ode: &Ode) {
    let done = ode.add("html");
    ode.finish(ode_html::machine::LANE, Ended::Succeeded);
    let queued = ode.add("xml");
    let (nobody, no_reference) = ("01a1de6f-aca5-7b31-8d65-365129e57d00", "JOB_20200101_000000_00000000");
    let check = |args: &[&str], words: &[&str]| ode.run(args).assert_refused(words);

    check(
        &["jobs", "retry", &queued],
        &[&queued, "It has not ended yet.", "(CONFLICT)", "`ode explain CONFLICT`"],
    );
    check(&["jobs", "stop", &queued], &["use `ode jobs cancel` instead", "(CONFLICT)"]);
    check(&["jobs", "retry", &done], &["nothing to retry", "(CONFLICT)"]);
    check(&["jobs", "cancel", &done], &["It has already ended", "(CONFLICT)"]);
    check(&["jobs", "stop", &done], &["It has already ended", "(CONFLICT)"]);
    for command in ["show", "events", "logs", "retry", "cancel", "stop"] {
        for name in [nobody, no_reference] {
            check(&["jobs", command, name], &["There is no job", "`ode jobs list`", "(NOT_FOUND)"]);
        }
    }
    check(&["jobs", "list", "--before", no_reference], &["There is no job", "(NOT_FOUND)"]);
    let invalid = |args: &[&str], words: &[&str]| {
        let ran = ode.run([&["jobs", "add", "xml"], args].concat());
        ran.assert_wrong_use(&[words, &["(INVALID)", "`ode explain INVALID`"]].concat());
    };
    for priority in ["1001", "-1001", "5000"] {
        invalid(&["a", "--priority", priority], &["use -1000 to 1000"]);
    }
    invalid(&[""], &["between 1 and 255"]);
    invalid(&[&"x".repeat(256)], &["between 1 and 255"]);
    invalid(&["a", "--external-id", ""], &["external_id"]);
    invalid(&["a", "--external-id", "a\nb"], &["control character"]);
    invalid(&["a", "--input", "null"], &["`input` is null"]);
    invalid(&["a", "--input", r#"["\u0000"]"#], &["U+0000"]);
    assert_eq!(ode.json(["jobs", "list"])["jobs"].as_array().unwrap().len(), 2, "something was added");
}

fn a_taken_external_id_is_told_as_such(ode: &Ode) {
    let add = ["jobs", "add", "xml", "a", "--external-id", "order 42"];
    let first = ode.json(add);
    let taken = format!("external_id \"order 42\" is taken by job {}", first["id"].as_str().unwrap());
    ode.run(add).assert_refused(&[&taken, "choose another", "(DUPLICATE)"]);
}

fn more_input_than_allowed_is_refused(ode: &Ode) {
    let file = ode.path("input.json");
    let path = file.to_str().unwrap();
    // Just above the limit, and so much that it is not even read to its end.
    for bytes in [1_048_577, 20_000_000] {
        std::fs::write(&file, format!("\"{}\"", "x".repeat(bytes - 2))).unwrap();
        let ran = ode.run(["jobs", "add", "xml", "a", "--input-file", path]);
        ran.assert_wrong_use(&["the limit is 1048576", "(PAYLOAD_TOO_LARGE)"]);
    }
    let config = format!("\"{}\"", "x".repeat(102_400));
    let ran = ode.run(["jobs", "add", "xml", "a", "--config", &config]);
    ran.assert_wrong_use(&["`config`", "the limit is 102400", "(PAYLOAD_TOO_LARGE)"]);
}

#[test]
fn what_was_mistyped_is_named_with_what_may_be_typed() {
    let ode = Ode::sqlite();
    let file = ode.path("input");
    let path = file.to_str().unwrap();
    let check = |args: &[&str], words: &[&str]| ode.run(args).assert_wrong_use(words);
    let fails = |args: &[&str], words: &[&str]| ode.run(args).assert_refused(words);

    check(&["jobs", "add", "pdf", "a"], &["There is no pipeline called \"pdf\". Use one of: xml, html"]);
    check(&["jobs", "list", "--pipeline", "xlm"], &["There is no pipeline called \"xlm\"."]);
    check(&["jobs", "list", "--state", "Queud"], &["There is no state", "Did you mean queued?"]);
    check(&["jobs", "list", "--phase", "over"], &["There is no phase called \"over\". Use one of: held"]);
    check(&["jobs", "list", "--limit", "0"], &["1..=1000"]);
    check(&["jobs", "list", "--before", "x"], &["\"x\" is not a job id"]);
    check(&["jobs", "show", "42"], &["\"42\" is not a job id. Give a UUID, or a reference such as JOB_"]);
    check(&["jobs", "show"], &["required", "<JOB>"]);
    check(&["jobs", "retry"], &["required", "<JOB>"]);
    check(&["jobs", "add", "xml", "a", "--input", "{a"], &["--input is not JSON: ", "line 1 column 2"]);
    check(&["jobs", "add", "xml", "a", "--config", "]"], &["--config is not JSON: "]);
    check(&["jobs", "add", "xml", "a", "--input", &"[".repeat(1000)], &["--input is not JSON: "]);
    check(&["jobs", "add", "xml", "a", "--run-at", "soon"], &["\"soon\" is not a moment. Write it like"]);
    check(&["jobs", "add", "xml", "a", "--priority", "high"], &["--priority"]);
    check(&["jobs", "add", "xml", "a", "--input-file", path], &[path, "cannot be opened", "No such file"]);
    let twice = r#"{"a": [{"b": 1, "b": 2}]}"#;
    check(&["jobs", "add", "xml", "a", "--input", twice], &["--input has a[0].b more than once"]);
    check(&["jobs", "add", "xml", "a", "--config", twice], &["--config has a[0].b more than once"]);
    std::fs::write(&file, "{\n").unwrap();
    check(&["jobs", "add", "xml", "a", "--input-file", path], &[path, "is not JSON", "line 2 column 0"]);
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    check(&["jobs", "add", "xml", "a", "--input-file", path], &["is not text in UTF-8"]);
    check(&["jobs", "add", "xml", "a", "--input", "{}", "--input-file", path], &["cannot be used with"]);
    check(&["jobs", "list", "--log", "!!="], &["--log \"!!=\" is not understood", "ode_worker=debug"]);
    check(&["jobs", "list", "--connections", "1"], &["2..=1000"]);
    check(&["migrate", "down"], &["--to"]);
    check(&["explain", "NOTPDF"], &["There is no code", "`ode explain` lists", "Did you mean NOT_PDF?"]);
    check(&["serve", "--storage", "gs://files"], &["--storage gs://files", "s3://bucket"]);
    check(&["serve", "--storage", "s3:///"], &["--storage s3:///", "s3://bucket"]);
    check(&["serve", "--listen", "8080"], &["Cannot listen on 8080", "such as 127.0.0.1:8080"]);
    fails(&["serve", "--listen", "192.0.2.1:8080"], &["Cannot listen on 192.0.2.1:8080", "of this machine"]);
    check(&["serve", "--grace", "-1"], &["--grace"]);
    check(&["job"], &["unrecognized subcommand", "jobs"]);
    check(&["completions", "tcsh"], &["possible values: bash"]);
}

#[test]
fn a_secret_in_a_mistyped_document_is_not_repeated() {
    let ran = Ode::sqlite().run(["jobs", "add", "script", "a", "--input", r#"{"password": "hunter2""#]);
    ran.assert_refused(&["--input is not JSON"]);
    assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
}

#[test]
fn a_database_that_is_not_understood_is_refused() {
    fn check(url: &str, words: &[&str]) {
        Ran::of(bare().args(["jobs", "list", "--database", url])).assert_refused(words);
    }
    check("mysql://root:hunter2@host/name", &["\"mysql:\" is not a database", "sqlite:PATH", "(INVALID)"]);
    check("ode.db", &["is not a database ODE knows", "(INVALID)"]);
    check("postgres://host:port/name", &["address is not understood: invalid port", "Use", "(INVALID)"]);
    check("sqlite:x.db?speed=high", &["address is not understood", "(INVALID)"]);
}

#[test]
fn a_server_that_is_away_is_told_with_the_reason() {
    let url = "postgres://ode:hunter2@127.0.0.1:1/ode";
    let ran = Ran::of(bare().args(["jobs", "list", "--database", url]));
    ran.assert_refused(&[
        "cannot be reached: ",
        "Connection refused",
        "`ode doctor`",
        "(DATABASE_UNAVAILABLE)",
    ]);
    assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
}

#[test]
fn a_database_that_the_server_does_not_have_is_told_as_such() {
    let ode = Ode::postgres();
    let url = format!("{}_not", ode.url());
    let ran = Ran::of(bare().args(["jobs", "list", "--database", &url]));
    ran.assert_refused(&["does not exist", "Check --database", "(INVALID)"]);
}

#[test]
fn a_server_that_takes_no_writes_is_told_as_such() {
    let ode = Ode::postgres();
    let reference = ode.add("xml");
    ode.sql(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", ode.database_name()));
    let read_only = &["The database is read-only", "--database at the primary", "(DATABASE_READ_ONLY)"];
    ode.run(["jobs", "add", "xml", "a"]).assert_refused(read_only);
    ode.run(["jobs", "cancel", &reference]).assert_refused(read_only);
    ode.run(["serve", "--listen", "127.0.0.1:0"]).assert_refused(read_only);
    assert_eq!(ode.json(["jobs", "list"])["jobs"][0]["reference"], reference, "reading needs no writing");
}

#[test]
fn a_database_that_is_not_there_is_not_made_by_those_who_only_ask() {
    let ode = Ode::new();
    let commands: &[&[&str]] = &[
        &["jobs", "list"],
        &["jobs", "add", "xml", "a"],
        &["workers"],
        &["migrate", "down", "--to", "0", "--yes"],
    ];
    for args in commands {
        ode.run(*args).assert_refused(&["There is no database at", "`ode serve`", "--data"]);
    }
    assert!(is_untouched(&ode.data()));
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let ode = Ode::new();
    let file = ode.data().join("ode.db");
    std::fs::create_dir(ode.data()).unwrap();
    let letter = "Dear reader, ".repeat(1000);
    std::fs::write(&file, &letter).unwrap();
    for args in [&["jobs", "list"][..], &["migrate", "status"], &["serve", "--listen", "127.0.0.1:0"]] {
        ode.run(args).assert_refused(&["damaged or not a database", "restore it from a backup"]);
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), letter);
}
