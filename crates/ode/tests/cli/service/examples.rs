//! The examples of docs/service.md, as they stand there.

use super::{Site, key, pdf};
use crate::harness::Ode;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../../../docs/service.md");

/// The blocks of this language, in order.
pub(super) fn blocks(language: &str) -> Vec<&'static str> {
    let start = format!("```{language}\n");
    PAGE.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[track_caller]
fn run(mut command: Command, site: &Site, key: &str, folder: &Path) -> String {
    let ode = Path::new(env!("CARGO_BIN_EXE_ode")).parent().unwrap();
    let path = format!("{}:{}", ode.display(), std::env::var("PATH").unwrap());
    command.current_dir(folder).env("PATH", path).env("ODE_API_KEY", key);
    command.env("ODE_URL", format!("http://{}", site.serving.address()));
    command.env("ODE_DOCUMENT", site.put("doc.pdf", &pdf("RE-1")));
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

fn program(name: &str, option: &str, code: &str) -> Command {
    let mut command = Command::new(name);
    command.args([option, code]);
    command
}

#[test]
fn the_examples_of_the_documents_run() {
    let ode = Ode::sqlite();
    let (site, folder) = (Site::start(&ode), tempfile::tempdir().unwrap());
    let key = key(&ode, "acme");
    std::fs::write(folder.path().join("report.pdf"), pdf("RE-2")).unwrap();
    let sh = blocks("sh");
    run(program("sh", "-ec", sh[0]), &site, &key, folder.path());
    assert!(std::fs::read(folder.path().join("report.zip")).unwrap().starts_with(b"PK"));
    let said = run(program("python3", "-c", blocks("python")[0]), &site, &key, folder.path());
    assert!(said.contains("html index.html "), "{said}");
    let code = folder.path().join("example.mjs");
    std::fs::write(&code, blocks("js")[0]).unwrap();
    let mut node = Command::new("node");
    node.arg(&code);
    assert_eq!(run(node, &site, &key, folder.path()), "<!DOCTYPE html>\n");
    run(program("sh", "-ec", sh[1]), &site, &key, folder.path());
    assert!(std::fs::read_to_string(folder.path().join("report/index.html")).unwrap().contains("RE-2"));
}

#[test]
fn the_client_tells_what_is_wrong() {
    let ode = Ode::sqlite();
    let site = Site::start(&ode);
    let url = format!("http://{}", site.serving.address());
    let ran = |args: &[&str], key: &str| {
        let mut command = crate::harness::bare();
        command.arg("client").args(args).args(["--url", &url]).env("ODE_API_KEY", key);
        crate::harness::Ran::of(&mut command)
    };
    let key = key(&ode, "acme");
    ran(&["submit", "s3://a-b/c.pdf"], "").assert_wrong_use(&["ODE_API_KEY"]);
    ran(&["submit", "s3://closed/c.pdf"], &key).assert_refused(&["not below a place", "FORBIDDEN"]);
    ran(&["submit", "nowhere.pdf"], &key).assert_refused(&["nowhere.pdf cannot be read"]);
    ran(&["wait", "0198c0de-7a31-7c52-9d2e-5b1f4d0a9e77"], &key).assert_refused(&["NOT_FOUND"]);
    ran(&["fetch", "x", "--out", "y"], &key).assert_refused(&["NOT_FOUND"]);
    let broken = site.put("broken.pdf", b"%PDF-1.7 nothing");
    let submitted = ran(&["submit", &broken], &key);
    let waited = ran(&["wait", submitted.stdout.trim()], &key);
    assert_eq!(waited.code, Some(1), "{waited:?}");
    assert!(waited.stdout.contains("failed: "), "{waited:?}");
}
