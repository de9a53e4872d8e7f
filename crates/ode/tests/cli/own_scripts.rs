//! `ode scripts`: from nothing to a script of one's own, and what is told where something is wrong with it.

use crate::harness::Ode;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A script in one language, in a directory of its own.
fn made(ode: &Ode, language: &str) -> PathBuf {
    let own = ode.path("own");
    ode.ok(["scripts", "new", "greet", "--language", language, "--scripts", own.to_str().unwrap()]);
    own
}

#[test]
fn a_new_script_runs_in_every_language() {
    for language in ["shell", "python", "node"] {
        let ode = Ode::new();
        let own = made(&ode, language);
        let own = own.to_str().unwrap();
        let said = ode.ok(["scripts", "validate", "greet", "--scripts", own]);
        assert!(said.contains("greet: right; examples: 1"), "{language}: {said}");
        let said = ode.ok(["scripts", "test", "greet", "--scripts", own]);
        assert!(said.contains("ok greet, example 1: Greeted Ada"), "{language}: {said}");
        let payload = ode.path("payload.json");
        std::fs::write(&payload, r#"{"name": "Grace", "password": "hunter2-canary"}"#).unwrap();
        let ran =
            ode.run(["scripts", "run", "greet", "--input", payload.to_str().unwrap(), "--scripts", own]);
        let result: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(result["data"], json!({ "greeting": "Hello, Grace!" }), "{language}");
        assert!(
            !ran.stdout.contains("canary") && !ran.stderr.contains("canary"),
            "{language}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains("step greet: Done"), "{language}: {}", ran.stderr);
    }
}

#[test]
fn own_scripts_are_listed_beside_ours() {
    let ode = Ode::new();
    let own = made(&ode, "shell");
    let said = ode.ok(["scripts", "list", "--scripts", own.to_str().unwrap()]);
    let of =
        |origin: &str| said.lines().filter(|line| line.split_whitespace().nth(2) == Some(origin)).count();
    assert_eq!((of("ode"), of("own")), (12, 1), "{said}");
}

#[test]
fn what_is_wrong_with_a_script_is_told_with_its_place() {
    let ode = Ode::new();
    let own = made(&ode, "shell");
    let manifest = own.join("greet/script.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let validate = || ode.run(["scripts", "validate", "--scripts", own.to_str().unwrap()]);
    std::fs::write(&manifest, text.replace("timeout_s", "tmeout_s")).unwrap();
    validate().assert_refused(&["script.toml:8:1", "tmeout_s"]);
    std::fs::write(&manifest, text.replace("\"sh\"", "\"no-such-program\"")).unwrap();
    let ran = validate();
    assert!(ran.stdout.contains("greet: no-such-program is not installed here"), "{}", ran.stdout);
    std::fs::write(&manifest, text.replace("run.sh", "rnu.sh")).unwrap();
    let ran = validate();
    assert!(ran.stdout.contains("`command` names rnu.sh, which is not"), "{}", ran.stdout);
    let schema = own.join("greet/payload.json");
    let right = std::fs::read_to_string(&schema).unwrap();
    std::fs::write(&schema, right.replacen("\"object\"", "\"objekt\"", 1)).unwrap();
    validate().assert_refused(&["payload.json:", "no type `objekt`"]);
    std::fs::write(&schema, right).unwrap();
    let payload = ode.path("payload.json");
    std::fs::write(&payload, r#"{"name": 3, "password": "abc"}"#).unwrap();
    std::fs::write(&manifest, &text).unwrap();
    let ran = ode.run([
        "scripts",
        "run",
        "greet",
        "--input",
        payload.to_str().unwrap(),
        "--scripts",
        own.to_str().unwrap(),
    ]);
    assert!(
        ran.stderr.contains("/name must be text") && ran.stderr.contains("/password must have at least 4"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("abc"), "{}", ran.stderr);
}

#[test]
fn a_script_is_not_made_over_another_or_under_a_wrong_name() {
    let ode = Ode::new();
    let own = made(&ode, "shell");
    let own = own.to_str().unwrap();
    ode.run(["scripts", "new", "greet", "--scripts", own]).assert_refused(&["is there already"]);
    ode.run(["scripts", "new", "../greet", "--scripts", own])
        .assert_refused(&["cannot be the name of a script"]);
    ode.run(["scripts", "run", "gret", "--scripts", own])
        .assert_refused(&["There is no script gret", "greet"]);
}
