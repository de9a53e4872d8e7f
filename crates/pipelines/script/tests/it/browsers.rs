//! A script that drives a real browser, driven here by nothing but its own debugging pipe: no package is needed.
//! Where no browser is installed these tests say so and pass.

use crate::harness::Site;
use ode_script::{News, Outcome, Runner, Settings, find_browser};
use std::time::Duration;

/// Starts the browser that the payload names, with a profile in the run's directory, as Playwright does: in a session
/// of its own. It says `ready` once the browser answers, and then hangs.
const DRIVING: &str = r#"
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
const { browser } = JSON.parse(readFileSync(0, "utf8"));
const flags = ["--headless", "--remote-debugging-pipe", "--user-data-dir=" + process.env.TMPDIR + "/profile",
  "--disable-dev-shm-usage", "about:blank"];
if (!browser.sandbox) flags.push("--no-sandbox");
const chrome = spawn(browser.executable, flags, { detached: true, stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
chrome.stdio[4].once("data", () => console.log(`browser ${chrome.pid}`));
chrome.stdio[3].write('{"id":1,"method":"Browser.getVersion"}\0');
setInterval(() => {}, 1000);
"#;

/// The browser's processes below one, by the tree of parents.
fn tree(root: i32) -> Vec<i32> {
    let children = |pid: i32| -> Vec<i32> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// Runs the script, freezes its browser with all its processes, and lets the time run out.
async fn check_frozen(site: &Site, settings: Settings) {
    let mut order = site.order();
    order.timeout = Some(Duration::from_secs(20));
    let mut frozen = 0;
    let freeze = |news: News| {
        let News::Log(line) = news else { return };
        let Some(pid) = line.text.strip_prefix("browser ").and_then(|pid| pid.parse().ok()) else { return };
        for pid in tree(pid).into_iter().filter_map(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
            frozen += 1;
        }
    };
    let runner = Runner::new(settings).unwrap();
    let report = runner.run(order, freeze, std::future::pending()).await.unwrap();
    assert_eq!(report.outcome, Outcome::TimedOut);
    assert!(frozen > 1, "the browser was not frozen");
    site.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_browser_does_not_outlive_its_timeout() {
    if let Err(missing) = find_browser(None, true) {
        eprintln!("NOT TESTED: {}", missing.message);
        return;
    }
    let site = Site::with("node", DRIVING, "browser = true");
    check_frozen(&site, site.settings()).await;
}
