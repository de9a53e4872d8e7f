//! What a foreign program tells, besides how it ended: steps, checkpoints, long logs, and secrets that must not show.

use crate::harness::{logs, run_aloud, script};
use crate::parts::Act;
use ode_child::{HIDDEN, Limits, Notice, Outcome, Redactor, Report, Spec, StepState, Supervisor, Work};
use serde_json::json;

async fn run_with(redactor: Redactor, text: &str) -> (Report, Vec<Notice>) {
    let mut said = Vec::new();
    let waiting = Supervisor::new().unwrap().start(&script(text)).await.unwrap();
    let work = Work::new(&()).unwrap().with_redactor(redactor);
    let report = waiting.run(work, |notice| said.push(notice), std::future::pending()).await.unwrap();
    (report, said)
}

#[tokio::test]
async fn steps_and_checkpoints_are_told_in_order() {
    let text = r#"echo '{"t":"plan","steps":[{"id":"a","title":"A"}]}' >&3
        echo '{"t":"step","id":"a","state":"started"}' >&3
        echo '{"t":"checkpoint","key":"uploaded","data":{"rows":3}}' >&3
        echo '{"t":"result","success":true,"partial":true,"message":"3 of 5","data":[1]}' >&3"#;
    let (report, said) = run_with(Redactor::default(), text).await;
    let said: Vec<Notice> = said.into_iter().filter(|notice| !matches!(notice, Notice::Log(_))).collect();
    assert!(matches!(&said[0], Notice::Plan(steps) if steps[0].title == "A"), "{said:?}");
    assert_eq!(said[1], Notice::Step("a".to_owned(), StepState::Started));
    assert_eq!(said[2], Notice::Checkpoint { key: "uploaded".to_owned(), data: json!({ "rows": 3 }) });
    assert!(matches!(&report.outcome, Outcome::Finished(data) if data.get() == "[1]"));
    assert!(report.summary.partial && report.summary.message == "3 of 5");
}

#[tokio::test]
async fn secrets_are_hidden_wherever_they_are_printed() {
    let text = r#"echo "typed hunter2"; printf 'hun' >&2; sleep 0.2; echo 'ter2' >&2
        echo 'no event hunter2' >&3
        echo '{"t":"log","msg":"said hunter2"}' >&3
        echo '{"t":"result","success":false,"message":"hunter2","error":{"stack":"hunter2"}}' >&3"#;
    let (report, said) = run_with(Redactor::new(&[json!("hunter2")]), text).await;
    let told = format!("{said:?} {report:?}");
    assert!(!told.contains("hunter2"), "{told}");
    let mut lines: Vec<String> = logs(&said).into_iter().map(|line| line.text).collect();
    lines.retain(|line| line.contains(HIDDEN));
    lines.sort();
    let misread = "A line was not understood, because it is not one JSON object: expected ident at character 2: no event ***";
    assert_eq!(lines, ["***", misread, "said ***", "typed ***"]);
}

#[tokio::test]
async fn a_secret_that_was_masked_first_is_never_shown() {
    // Both are there before anybody looks.
    let text = r#"i=0; while [ $i -lt 50 ]; do
        echo "{\"t\":\"mask\",\"value\":\"born-$i-late\"}" >&3; echo "got born-$i-late"; i=$((i+1)); done
        echo '{"t":"result"}' >&3"#;
    let (_, said) = run_with(Redactor::default(), text).await;
    assert_eq!(logs(&said).iter().filter(|line| line.text == "got ***").count(), 50, "{said:?}");
}

#[tokio::test]
async fn of_a_long_log_the_beginning_and_the_end_are_told() {
    let text =
        r#"i=1000; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i+1)); done; echo '{"t":"result"}' >&3"#;
    let limits = Limits { log_bytes: 640, log_tail_bytes: 640, ..Limits::program() };
    let (report, said) = run_aloud(&Spec { limits, ..script(text) }, &Act::Panic).await;
    let lines: Vec<String> = logs(&said).into_iter().map(|line| line.text).collect();
    let gap = format!("({} bytes of the log were left out here)", report.log_bytes_dropped);
    let at = lines.iter().position(|line| *line == gap).unwrap();
    assert!(lines[..at].contains(&"line 1000".to_owned()), "{lines:?}");
    assert_eq!(
        lines[at + 1..].join(" "),
        (1990..2000).map(|i| format!("line {i}")).collect::<Vec<_>>().join(" ")
    );
}
