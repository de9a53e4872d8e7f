//! `ode doctor`: checks what ODE stands on, and says what to do where it does not hold.

use crate::config::{Schema, Settings};
use crate::output::{self, Cell, Table};
use clap::Args;
use ode_store::{Finding, Store};
use std::process::ExitCode;

/// How to show it.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// For programs
    #[arg(long)]
    json: bool,
}

/// Below this share of free space, uploads will soon have to pause.
const FREE_MIN: f64 = 0.10;

pub(crate) async fn run(settings: &Settings, args: &Doctor) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    match settings.store("cli", Schema::Ignore).await {
        Ok(store) => findings.extend(check_database(&store).await),
        Err(error) => {
            findings.push(Finding::bad(
                "database",
                error.to_string(),
                "Check --database and that the server runs.",
            ));
        }
    }
    findings.push(check_files(settings).await);
    findings.push(check_disk(settings));
    findings.push(check_redis(settings).await);
    let is_ok = findings.iter().all(|finding| finding.is_ok);
    if args.json {
        output::json(&findings)?;
    } else {
        print(&findings);
    }
    Ok(if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(findings: &[Finding]) {
    let mut table = Table::new(["CHECK", "", "FOUND"]);
    for finding in findings {
        let news = if finding.is_ok { "ok" } else { "BAD" };
        table.row([
            finding.name.as_str().into(),
            Cell::news(news, finding.is_ok),
            finding.found.as_str().into(),
        ]);
    }
    table.print();
    for finding in findings {
        if let Some(advice) = &finding.advice {
            println!("\n{}: {advice}", finding.name);
        }
    }
}

async fn check_database(store: &Store) -> Vec<Finding> {
    let schema = match store.check_schema().await {
        Ok(()) => Finding::ok("schema", format!("version {}", ode_store::SCHEMA_NEWEST)),
        Err(error) => {
            Finding::bad("schema", error.to_string(), "Run `ode migrate up`, or use the matching ode.")
        }
    };
    match store.health().await {
        Ok(mut findings) => {
            findings.insert(0, schema);
            findings
        }
        Err(error) => {
            vec![schema, Finding::bad("database", error.to_string(), "Check that the server runs.")]
        }
    }
}

async fn check_files(settings: &Settings) -> Finding {
    let advice = "Check --storage: ODE must be able to write, read and delete there.";
    match settings.blobs() {
        Ok(blobs) => match blobs.check().await {
            Ok(()) => Finding::ok("files", "written, read and deleted"),
            Err(error) => Finding::bad("files", error.to_string(), advice),
        },
        Err(error) => Finding::bad("files", format!("{error:#}"), advice),
    }
}

fn check_disk(settings: &Settings) -> Finding {
    let place = if settings.data.exists() { settings.data.as_path() } else { std::path::Path::new(".") };
    match rustix::fs::statvfs(place) {
        Ok(disk) => {
            let share = disk.f_bavail as f64 / disk.f_blocks.max(1) as f64;
            let free = disk.f_bavail as f64 * disk.f_frsize as f64 / 1e9;
            let found = format!("{free:.1} GB free ({:.0} %)", share * 100.0);
            if share >= FREE_MIN {
                Finding::ok("disk", found)
            } else {
                Finding::bad(
                    "disk",
                    found,
                    "Free some space, or move --data: uploads pause when the disk is full.",
                )
            }
        }
        Err(error) => {
            Finding::bad("disk", error.to_string(), "Check that --data is a directory on a mounted disk.")
        }
    }
}

async fn check_redis(settings: &Settings) -> Finding {
    let Some(url) = &settings.redis else { return Finding::ok("redis", "not configured, not needed") };
    match ode_store::ping_redis(url).await {
        Ok(()) => Finding::ok("redis", "answers"),
        Err(error) => Finding::bad(
            "redis",
            error.to_string(),
            "Start it, or leave --redis out: without it wake-ups come by the database, a little later.",
        ),
    }
}
