//! What is said to people beside the commands' own work: help, colours, completions, error codes, and what
//! happens when nobody listens.

use crate::harness::{Ode, Ran, bare};
use std::fs::File;
use std::process::Command;

/// A pipe whose reader is gone, as after `| head -1`.
fn nobody_listens() -> std::io::PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

fn alone(args: &[&str]) -> Ran {
    Ran::of(bare().args(args))
}

#[test]
fn help_is_short_or_long() {
    let (short, long) = (alone(&["jobs", "-h"]), alone(&["jobs", "--help"]));
    assert_eq!((short.code, long.code), (Some(0), Some(0)));
    for command in ["add", "list", "show", "events", "logs", "retry", "cancel", "stop"] {
        assert!(short.stdout.contains(&format!("\n  {command} ")), "{command}: {}", short.stdout);
    }
    assert!(short.stdout.contains("--database") && !short.stdout.contains("--connections"));
    assert!(long.stdout.contains("--connections") && long.stdout.contains("\nExamples:\n"));
    let all = alone(&["--help"]).stdout;
    for command in
        ["serve", "web", "worker", "jobs", "workers", "migrate", "doctor", "explain", "completions"]
    {
        assert!(all.contains(&format!("\n  {command} ")), "{command}: {all}");
    }
    assert!(all.contains("ode serve   "), "{all}");
    let at = |word: &str| all.find(word).unwrap_or_else(|| panic!("{word} is not in {all}"));
    assert!(
        at("Documents:\n  convert ") < at("Services:\n  serve ") && at("Upkeep:\n") < at("Help:\n"),
        "{all}"
    );
    assert!(alone(&["-h"]).stdout.contains("\nServices:\n"), "the short help has the groups too");
    let convert = alone(&["convert", "--help"]).stdout;
    assert!(
        !convert.contains("--database") && convert.contains("--log"),
        "only what matters here: {convert}"
    );
    assert!(!alone(&["mapping", "learn", "--help"]).stdout.contains("--database"));
    assert_eq!(alone(&["--version"]).stdout, format!("ode {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_command_is_answered_with_help() {
    for args in [&[][..], &["jobs"], &["migrate"]] {
        let ran = alone(args);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("Usage: ode"), "{ran:?}");
    }
}

#[test]
fn every_code_has_a_page() {
    let list = alone(&["explain"]).stdout;
    let errors = ode_job::ErrorCode::ALL.iter().map(|code| code.as_str());
    for code in errors.chain(ode_invoice::FindingCode::ALL.iter().map(|code| code.as_str())) {
        assert!(list.lines().any(|line| line.starts_with(&format!("{code} "))), "{code} is not listed");
        let page = alone(&["explain", code]);
        assert_eq!(page.code, Some(0));
        assert!(page.stdout.starts_with(&format!("# {code}\n")), "{page:?}");
    }
    assert_eq!(alone(&["explain", " gw_5xx"]).stdout, alone(&["explain", "GW_5XX"]).stdout);
    let own = alone(&["explain", "login_rejected"]).stdout;
    assert!(own.starts_with("# login_rejected\n") && own.contains("error.script_code"), "{own}");
}

#[test]
fn an_unknown_code_leads_to_those_near_it() {
    fn check(typed: &str, expected: &str) {
        let ran = alone(&["explain", typed]);
        ran.assert_refused(&["There is no code", "`ode explain` lists them all", expected]);
    }
    check("NOTPDF", "Did you mean NOT_PDF?");
    check("timeout", "Did you mean GW_TIMEOUT or TIMED_OUT?");
    check("TOTAL_MISSMATCH", "Did you mean TOTAL_MISMATCH or TAX_MISMATCH?");
    check("derive", "Did you mean DERIVED?");
    check("ODE-1004", "lists them all.\n");
}

#[test]
fn colours_are_shown_to_those_who_want_them() {
    let ode = Ode::sqlite();
    ode.ok(["jobs", "cancel", &ode.add("xml")]);
    let list = |set: &[(&str, &str)]| Ran::of(ode.command(["jobs", "list"]).envs(set.iter().copied())).stdout;
    let red = "\x1b[31mfailed\x1b[0m";
    assert!(!list(&[]).contains('\x1b'), "a pipe is no terminal");
    assert!(list(&[("CLICOLOR_FORCE", "1")]).contains(red));
    assert!(list(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]).contains(red));
    assert!(!list(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\x1b'));
}

#[test]
fn a_reader_that_left_has_had_enough() {
    let ode = Ode::sqlite();
    ode.add("xml");
    let commands: &[&[&str]] = &[
        &["jobs", "list"],
        &["jobs", "list", "--json"],
        &["doctor"],
        &["explain"],
        &["explain", "NOT_PDF"],
        &["migrate", "status"],
        &["completions", "zsh"],
        &["--help"],
    ];
    for args in commands {
        let mut command = ode.command(*args);
        let child = command.stdout(nobody_listens()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap());
        let is_quiet = ran.stderr.is_empty();
        // How full the machine's disk is, is not for this test to say.
        assert!(is_quiet && (ran.code == Some(0) || args == &["doctor"]), "{args:?}: {ran:?}");
    }
}

#[test]
fn an_error_that_nobody_reads_is_still_an_error() {
    let status = bare()
        .args(["jobs", "show", "--data", "/nowhere", "JOB_20200101_000000_00000000"])
        .stderr(nobody_listens())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: there is no /dev/full here");
        return;
    };
    for args in [&["explain"][..], &["explain", "NOT_PDF"], &["completions", "bash"]] {
        let mut command = bare();
        let child = command.args(args).stdout(full.try_clone().unwrap()).stderr(std::process::Stdio::piped());
        let ran = Ran::from(child.spawn().unwrap().wait_with_output().unwrap());
        ran.assert_refused(&["Standard output cannot be written: No space left on device"]);
    }
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = alone(&["completions", shell]);
        assert_eq!(ran.code, Some(0));
        for word in ["migrate", "input-file"] {
            assert!(ran.stdout.contains(word), "{shell} does not complete {word}");
        }
    }
}

#[test]
fn bash_completes_commands_and_names() {
    fn check(typed: &[&str], expected: &[&str]) {
        let script = alone(&["completions", "bash"]).stdout;
        let words: Vec<String> = typed.iter().map(|word| format!("'{word}'")).collect();
        let (last, previous) = (words.len() - 1, words.len() - 2);
        let ask = format!(
            "{script}\nCOMP_WORDS=({})\nCOMP_CWORD={last}\n_ode ode {} {}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words[last],
            words[previous],
        );
        let ran = match Command::new("bash").args(["--norc", "-c", &ask]).output() {
            Ok(output) => Ran::from(output),
            Err(error) => return eprintln!("SKIPPED: there is no bash here: {error}"),
        };
        for word in expected {
            assert!(ran.stdout.lines().any(|offered| offered == *word), "{word} for {typed:?}: {ran:?}");
        }
    }
    check(&["ode", "jo"], &["jobs"]);
    check(&["ode", "jobs", ""], &["add", "list", "show", "events", "logs", "retry", "cancel", "stop"]);
    check(&["ode", "jobs", "add", ""], &["xml", "html", "print", "script"]);
    check(
        &["ode", "jobs", "list", "--phase", ""],
        &["held", "ready", "running", "done", "failed", "cancelled"],
    );
    check(&["ode", "jobs", "list", "--state", "que"], &["queued"]);
    check(&["ode", "explain", "NOT"], &["NOT_PDF", "NOT_FOUND", "NOT_READY"]);
    check(&["ode", "migrate", ""], &["up", "down", "status"]);
}
