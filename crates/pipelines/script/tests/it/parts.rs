//! What this binary does when it is run again: keep a script, or be a worker that is killed in the middle of one.

use crate::harness::{Site, runtime};
use ode_script::{News, Runner};

#[test]
fn plays_its_part() {
    // A keeper hides what it was told from its script.
    if std::env::var_os("ODE_CHILD_SETUP").is_some() {
        // The test harness has begun a line.
        println!();
        ode_child::keeper::serve();
    }
    let Ok(folder) = std::env::var("WORKER_IN") else { return };
    // Runs the script of the folder until it is killed, and says when the script is ready.
    runtime().block_on(async {
        let site = Site::at(folder.into());
        let runner = Runner::new(site.settings()).unwrap();
        let tell = |news| {
            if matches!(&news, News::Log(line) if line.text == "ready") {
                println!("\nready");
            }
        };
        runner.run(site.order(), tell, std::future::pending()).await.unwrap();
    });
}
