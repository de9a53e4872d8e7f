//! What a script gets, what it may say, and how its end is understood.

use crate::harness::{Site, code, data, lines};
use ode_script::{News, Outcome, StepState};
use serde_json::json;
use std::time::Duration;

/// Says something on the event channel, from a shell.
fn tell(event: &serde_json::Value) -> String {
    format!("cat >&3 <<'END'\n{event}\nEND\n")
}

#[tokio::test]
async fn a_python_script_gets_its_payload_and_gives_a_result() {
    let site = Site::new(
        "python3",
        r#"
import json, os, sys
payload = json.load(sys.stdin)
with os.fdopen(int(os.environ["ODE_EVENTS_FD"]), "w") as events:
    data = {key: payload[key] for key in ["protocol", "job_id", "attempt", "type", "input", "secrets", "dry_run"]}
    data["secrets"] = sorted(data["secrets"])
    data["length"] = len(payload["secrets"]["password"])
    data["has_time"] = 0 < payload["deadline_ms"] <= 300000
    data["is_home"] = os.getcwd() == os.environ["HOME"] == os.environ["TMPDIR"]
    print(json.dumps({"t": "result", "success": True, "message": "Done", "data": data}), file=events)
"#,
    );
    let (report, told) = site.run().await;
    let expected = json!({
        "protocol": 1, "job_id": "JOB_1", "attempt": 1, "type": "sample",
        "input": { "name": "Trattoria", "password": { "$secret": "password" } },
        "secrets": ["password"], "dry_run": false, "length": 7, "has_time": true, "is_home": true,
    });
    assert_eq!(data(&report), &expected, "{told:?}");
    assert!(matches!(&told[0], News::Started(record) if record.pid > 0 && record.started > 0));
    site.assert_empty();
}

#[tokio::test]
async fn a_script_sees_little_of_our_environment() {
    let site = Site::new("sh", "env | cut -d= -f1 | sort | tr '\\n' ' ' >&2; echo '{\"t\":\"result\"}' >&3");
    let (_, told) = site.run().await;
    let known = [
        "HOME",
        "LANG",
        "LC_ALL",
        "ODE_ARTIFACTS",
        "ODE_EVENTS_FD",
        "ODE_PROTOCOL",
        "ODE_RUN",
        "PATH",
        "PWD",
        "TMPDIR",
        "TZ",
        "OLDPWD",
        "SHLVL",
        "_",
    ];
    let told = lines(&told);
    let seen = told.iter().find(|line| line.contains("ODE_ARTIFACTS")).unwrap();
    assert!(seen.split_whitespace().all(|name| known.contains(&name)), "{seen}");
}

#[tokio::test]
async fn steps_progress_and_checkpoints_are_told() {
    let text = [
        json!({ "t": "step", "id": "login", "state": "started" }),
        json!({ "t": "step", "id": "login", "state": "done" }),
        json!({ "t": "checkpoint", "key": "uploaded", "data": { "rows": 3, "by": "hunter2" } }),
        json!({ "t": "step", "id": "upload", "state": "started" }),
        json!({ "t": "progress", "percent": 50, "message": "half" }),
        json!({ "t": "result", "success": true, "partial": true, "message": "3 of 5 for hunter2" }),
    ];
    let text: String = text.iter().map(tell).collect();
    let steps =
        "[[steps]]\nid = \"login\"\ntitle = \"Sign in\"\n[[steps]]\nid = \"upload\"\ntitle = \"Upload\"";
    let (report, told) = Site::with("sh", &text, steps).run().await;
    let Outcome::Done(done) = &report.outcome else { panic!("{report:?}") };
    assert!(done.partial && done.message == "3 of 5 for ***", "{done:?}");
    let step = |id: &str, state| News::Step { id: id.to_owned(), state };
    assert!(
        told.contains(&step("login", StepState::Done)) && told.contains(&step("upload", StepState::Started))
    );
    let data = json!({ "rows": 3, "by": "***" });
    assert!(told.contains(&News::Checkpoint { key: "uploaded".to_owned(), data }), "{told:?}");
    let last =
        told.iter().rev().find_map(|news| if let News::Progress(last) = news { Some(last) } else { None });
    assert_eq!(last.map(|last| (last.percent, last.step, last.steps)), Some((100.0, 2, 2)));
}

#[tokio::test]
async fn a_retry_gets_the_checkpoints_of_earlier_attempts() {
    let site = Site::new(
        "python3",
        "import json, sys\np = json.load(sys.stdin)\nopen(3, 'w').write(json.dumps({'t': 'result', 'data': \
         [p['attempt'], p['checkpoints']]}) + '\\n')",
    );
    let mut order = site.order();
    order.attempt = 2;
    order.checkpoints.insert("uploaded".to_owned(), json!({ "rows": 3 }));
    let report = site.runner().run(order, |_| (), std::future::pending()).await.unwrap();
    assert_eq!(data(&report), &json!([2, { "uploaded": { "rows": 3 } }]));
}

#[tokio::test]
async fn secrets_are_hidden_in_logs_errors_and_files() {
    let text = format!(
        "cat > all; password=$(sed 's/.*\"password\":\"\\([^\"$]*\\)\".*/\\1/' all); echo \"typed $password\"\n\
         echo \"$password\" | base64 >&2; echo \"log $password\" > $ODE_ARTIFACTS/run.log\n{}{}",
        tell(&json!({ "t": "artifact", "name": "run.log", "kind": "log", "path": "run.log" })),
        "echo \"{\\\"t\\\":\\\"result\\\",\\\"success\\\":false,\\\"message\\\":\\\"no $password\\\",\\\"error\\\":\
         {\\\"code\\\":\\\"login_rejected\\\",\\\"stack\\\":\\\"at $password\\\"}}\" >&3\n",
    );
    let (report, told) = Site::new("sh", &text).run().await;
    let all = format!("{report:?} {told:?}");
    assert!(!all.contains("hunter2") && !all.contains("aHVudGVyM"), "{all}");
    assert_eq!(code(&report), "login_rejected");
    assert_eq!(
        (report.artifacts[0].kind.as_str(), report.artifacts[0].contents.as_slice()),
        ("log", &b"log ***\n"[..])
    );
    assert!(lines(&told).contains(&"typed ***"), "{told:?}");
}

#[tokio::test]
async fn a_job_with_more_secrets_than_can_be_hidden_is_refused() {
    let site = Site::new("sh", "exit 0");
    let mut order = site.order();
    order.secrets.insert("keys".to_owned(), json!("k".repeat(8 * 1024 * 1024)));
    let report = site.runner().run(order, |_| (), std::future::pending()).await.unwrap();
    assert_eq!(code(&report), "many_secrets");
    site.assert_empty();
}

#[tokio::test]
async fn the_secrets_of_a_result_come_apart_from_it() {
    let text = tell(&json!({ "t": "mask", "value": "key-123456" }))
        + &tell(
            &json!({ "t": "result", "message": "Made key-123456", "data": { "key": "key-123456", "label": "a" } }),
        );
    let schema = "[result.properties.key]\ntype = \"string\"\nx-ode-secret = true\n\
                  [result.properties.label]\ntype = \"string\"";
    let (report, _) = Site::with("sh", &text, schema).run().await;
    let Outcome::Done(done) = report.outcome else { panic!("{report:?}") };
    assert_eq!(done.data, json!({ "key": { "$secret": "key" }, "label": "a" }));
    assert_eq!(done.secrets.get("key"), Some(&json!("key-123456")));
    assert_eq!(done.message, "Made ***");
}

#[tokio::test]
async fn a_result_that_breaks_its_promise_is_a_failure_that_shows_nothing_of_it() {
    let text = tell(&json!({ "t": "result", "data": { "count": "key-123456" } }));
    let (report, _) = Site::with("sh", &text, "[result.properties.count]\ntype = \"integer\"").run().await;
    assert_eq!(code(&report), "bad_result");
    assert!(!format!("{report:?}").contains("key-123456"));
}

#[tokio::test]
async fn each_way_to_end_has_its_outcome() {
    for (program, text, manifest, expected) in [
        ("sh", "exit 0", "", "no_result"),
        ("sh", "echo oops >&2; exit 3", "", "crashed"),
        ("sh", "kill -SEGV $$", "", "crashed"),
        ("sh", "no-such-program-anywhere", "", "not_installed"),
        ("no-such-program-anywhere", "", "", "not_installed"),
        ("sh", "echo '{\"t\":\"result\"}' >&3; echo '{\"t\":\"result\"}' >&3; sleep 60", "", "protocol"),
        (
            "python3",
            "x = bytearray(200_000_000)\nimport time\ntime.sleep(60)",
            "max_memory_mb = 100",
            "out_of_memory",
        ),
        ("sh", "echo '{\"t\":\"result\",\"success\":false,\"error\":{\"code\":\"mine\"}}' >&3", "", "mine"),
    ] {
        let site = Site::with(program, text, manifest);
        let (report, _) = site.run().await;
        assert_eq!(code(&report), expected, "{text}: {report:?}");
        site.assert_empty();
    }
}

#[tokio::test]
async fn why_a_line_or_a_file_was_not_taken_is_told() {
    let text = [
        "printf '\\377hunter2' > $ODE_ARTIFACTS/a.bin\n",
        &tell(&json!({ "t": "artifact", "name": "a.bin", "path": "a.bin" })),
        &tell(&json!({ "t": "artifact", "name": "b.bin", "path": "../b.bin" })),
        &tell(&json!({ "t": "step", "id": "hunter2", "state": "hunter2" })),
        "echo '{\"t\":\"result\",\"success\":true,' >&3\n",
    ];
    let (report, told) = Site::new("sh", &text.concat()).run().await;
    let Outcome::Failed(failed) = &report.outcome else { panic!("{report:?}") };
    assert_eq!(failed.code, "no_result");
    assert!(failed.message.contains("it is not one JSON object: EOF"), "{}", failed.message);
    let said = lines(&told).join("\n");
    assert!(said.contains("The file a.bin was left out: it holds a secret."), "{said}");
    assert!(said.contains("because its \"path\" leads out of ODE_ARTIFACTS: {"), "{said}");
    assert!(said.contains("it is no event: unknown variant `***`"), "{said}");
    assert!(report.artifacts.is_empty() && !format!("{report:?} {told:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_failure_after_the_result_is_a_warning() {
    let (report, told) =
        Site::new("sh", "echo '{\"t\":\"result\",\"message\":\"ok\"}' >&3; exit 4").run().await;
    assert!(matches!(report.outcome, Outcome::Done(_)), "{report:?}");
    assert!(lines(&told).iter().any(|line| line.contains("code 4")), "{told:?}");
}

#[tokio::test]
async fn the_time_of_an_order_is_never_more_than_that_of_the_manifest() {
    for (manifest, timeout) in [("timeout_s = 1", None), ("", Some(1)), ("timeout_s = 1", Some(60))] {
        let site = Site::with("sh", "sleep 86400", manifest);
        let mut order = site.order();
        order.timeout = timeout.map(Duration::from_secs);
        let report = site.runner().run(order, |_| (), std::future::pending()).await.unwrap();
        assert_eq!(report.outcome, Outcome::TimedOut, "{manifest} {timeout:?}");
        site.assert_empty();
    }
}
