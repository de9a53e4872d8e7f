//! `ode migrate`: the schema's versions, up and down.

use crate::harness::{Ode, headings, on_both};
use serde_json::Value;

on_both!(
    versions_go_down_and_up_again,
    what_is_applied_is_shown,
    going_down_has_to_be_meant,
    a_newer_schema_is_left_alone,
    an_older_schema_is_named_with_the_way_out,
);

fn versions_go_down_and_up_again(ode: &Ode) {
    let newest = crate::harness::schema_newest();
    assert_eq!(ode.ok(["migrate", "up"]), format!("The schema is up to date (version {newest}).\n"));
    let down: String = (1..=newest).rev().map(|version| format!("Took version {version} away.\n")).collect();
    assert_eq!(ode.ok(["migrate", "down", "--to", "0", "--yes"]), down);
    let nothing = ode.ok(["migrate", "down", "--to", "0", "--yes"]);
    assert_eq!(nothing, "The schema has no version above 0; nothing was changed.\n");
    let up: String = (1..=newest).map(|version| format!("Applied version {version}.\n")).collect();
    assert_eq!(ode.ok(["migrate", "up"]), up);
    ode.add("xml");
}

fn what_is_applied_is_shown(ode: &Ode) {
    ode.ok(["migrate", "down", "--to", "1", "--yes"]);
    let ran = ode.run(["migrate", "status"]);
    assert_eq!(headings(&ran.stdout), ["VERSION", "NAME", "APPLIED"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[1].starts_with("1        0001_kernel") && lines[1].ends_with('Z'), "{ran:?}");
    assert!(lines[2].starts_with("2        0001_xml") && lines[2].ends_with("no"), "{ran:?}");
    assert!(ran.stderr.contains("`ode migrate up` applies what is missing."), "{ran:?}");
    let status = ode.json(["migrate", "status"]);
    assert_eq!(status[0]["version"], 1);
    assert!(status[0]["applied_at"].is_string());
    assert_eq!(status[1]["applied_at"], Value::Null);
}

fn going_down_has_to_be_meant(ode: &Ode) {
    ode.add("xml");
    ode.run(["migrate", "down", "--to", "0"]).assert_wrong_use(&["deletes data for good. Add --yes"]);
    for target in ["-1", "99"] {
        let ran = ode.run(["migrate", "down", "--to", target, "--yes"]);
        ran.assert_wrong_use(&[&format!("no way down to version {target}"), "`ode migrate status`"]);
    }
    assert_eq!(ode.json(["jobs", "list"])["jobs"].as_array().unwrap().len(), 1);
}

fn a_newer_schema_is_left_alone(ode: &Ode) {
    let now = if ode.url().starts_with("sqlite:") { "1" } else { "now()" };
    ode.sql(&format!("INSERT INTO ode_schema (version, name, applied_at) VALUES (99, 'future', {now})"));
    let commands: &[&[&str]] = &[
        &["jobs", "list"],
        &["workers"],
        &["migrate", "up"],
        &["migrate", "status"],
        &["migrate", "down", "--to", "0", "--yes"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["worker"],
    ];
    for args in commands {
        ode.run(*args).assert_refused(&["has schema version 99", "Use a newer ode", "(SCHEMA_MISMATCH)"]);
    }
    let shown = ode.run(["migrate", "status"]).stdout;
    assert!(shown.lines().last().is_some_and(|line| line.starts_with("99       future")), "{shown}");
}

fn an_older_schema_is_named_with_the_way_out(ode: &Ode) {
    ode.ok(["migrate", "down", "--to", "1", "--yes"]);
    ode.run(["jobs", "list"]).assert_refused(&[
        "schema version(s) behind",
        "`ode migrate up`",
        "(SCHEMA_MISMATCH)",
    ]);
    ode.ok(["migrate", "down", "--to", "0", "--yes"]);
    ode.run(["jobs", "list"]).assert_refused(&["behind", "`ode migrate up`", "(SCHEMA_MISMATCH)"]);
}

#[test]
fn an_empty_postgres_is_shown_as_it_is() {
    let ode = Ode::empty_postgres();
    let status = ode.json(["migrate", "status"]);
    assert!(status.as_array().unwrap().iter().all(|line| line["applied_at"].is_null()), "{status}");
    ode.run(["jobs", "list"]).assert_refused(&["`ode migrate up`", "(SCHEMA_MISMATCH)"]);
}
