//! `ode doctor`: checks what ODE stands on and whether it works, and says what to do where it does not hold. It changes nothing: what
//! is not there yet is not made.

use crate::output::{self, Cell, Table};
use crate::wire;
use clap::{ArgMatches, Args};
use ode_cli::{Schema, Settings};
use ode_store::{Finding, Store};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How to show it.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Below this share of free space, uploads will soon have to pause.
const FREE_MIN: f64 = 0.10;
/// A file store that takes longer is not one to work with. (Its client would try for minutes.)
const FILES_TIMEOUT: Duration = Duration::from_secs(10);
const DATABASE_ADVICE: &str = "Check --data and --database, and that the server runs.";
const FILES_ADVICE: &str = "Check --storage: ODE must be able to write, read and delete there.";

pub(crate) async fn run(settings: &Settings, typed: &ArgMatches, args: &Doctor) -> anyhow::Result<ExitCode> {
    let mut findings = check_database(settings).await;
    findings.push(check_files(settings).await);
    findings.extend(check_disks(settings));
    findings.push(check_redis(settings).await);
    for pipeline in wire::pipelines() {
        findings.extend(pipeline.check(settings, typed)?);
    }
    if args.json {
        output::json(&findings)?;
    } else {
        print(&findings)?;
    }
    let is_ok = findings.iter().all(|finding| finding.is_ok);
    Ok(if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(findings: &[Finding]) -> anyhow::Result<()> {
    let mut table = Table::new(["CHECK", "", "FOUND"]);
    for finding in findings {
        let news = if finding.is_ok { "ok" } else { "BAD" };
        table.row([
            finding.name.as_str().into(),
            Cell::news(news, finding.is_ok),
            finding.found.as_str().into(),
        ]);
    }
    table.print()?;
    for finding in findings {
        if let Some(advice) = &finding.advice {
            output::line(format!("\n{}: {advice}", finding.name))?;
        }
    }
    Ok(())
}

async fn check_database(settings: &Settings) -> Vec<Finding> {
    if let Some(file) = settings.missing_file() {
        return vec![check_unmade("database", "database", &file, DATABASE_ADVICE)];
    }
    // Redis has a finding of its own, and must not spoil this one.
    let settings = Settings { redis: None, ..settings.clone() };
    match settings.store("cli", Schema::Ignore).await {
        Ok(store) => check_store(&store).await,
        Err(error) => vec![Finding::bad("database", output::sentence(&error), DATABASE_ADVICE)],
    }
}

async fn check_store(store: &Store) -> Vec<Finding> {
    let schema = match store.check_schema().await {
        Ok(()) => Finding::ok("schema", format!("version {}", ode_store::schema_newest())),
        Err(error) => {
            Finding::bad("schema", error.to_string(), "Run `ode migrate up`, or use the matching ode.")
        }
    };
    let is_ours = schema.is_ok;
    match store.health().await {
        Ok(mut findings) => {
            findings.insert(0, schema);
            // The tables of another version may look otherwise.
            if is_ours {
                findings.extend(check_work(store).await);
            }
            findings
        }
        Err(error) => {
            vec![schema, Finding::bad("database", error.to_string(), DATABASE_ADVICE)]
        }
    }
}

/// Whether anybody works on what waits, and whether what they depend on is there.
async fn check_work(store: &Store) -> Vec<Finding> {
    match store.overview().await {
        Ok(overview) => overview.findings(),
        Err(error) => vec![Finding::bad("workers", error.to_string(), DATABASE_ADVICE)],
    }
}

async fn check_files(settings: &Settings) -> Finding {
    if let Some(directory) = settings.files_directory().filter(|directory| !directory.exists()) {
        return check_unmade("files", "directory", &directory, FILES_ADVICE);
    }
    let written = async { anyhow::Ok(settings.blobs()?.check().await?) };
    match tokio::time::timeout(FILES_TIMEOUT, written).await {
        Ok(Ok(())) => Finding::ok("files", "written, read and deleted"),
        Ok(Err(error)) => Finding::bad("files", output::sentence(&error), FILES_ADVICE),
        Err(_) => Finding::bad("files", format!("no answer within {FILES_TIMEOUT:?}"), FILES_ADVICE),
    }
}

/// Whether what is not there yet can be made.
fn check_unmade(name: &str, what: &str, path: &Path, advice: &str) -> Finding {
    use rustix::fs::{Access, access};
    let (path, above) = (path.display(), existing(path));
    let problem = match access(above, Access::WRITE_OK | Access::EXEC_OK) {
        _ if !above.is_dir() => Some("it is not a directory".to_owned()),
        Ok(()) => None,
        Err(error) => Some(output::sentence(&error.into())),
    };
    match problem {
        None => Finding::ok(name, format!("no {what} yet at {path}; `ode serve` makes one")),
        Some(problem) => {
            let above = above.display();
            Finding::bad(name, format!("{path} cannot be made in {above}: {problem}"), advice)
        }
    }
}

/// The path itself, or the nearest directory above it that is there.
fn existing(path: &Path) -> &Path {
    let found = path.ancestors().find(|ancestor| ancestor.exists());
    found.unwrap_or_else(|| Path::new("."))
}

/// The disks of the database and of the files, which are usually one.
fn check_disks(settings: &Settings) -> Vec<Finding> {
    let files = settings.storage.as_ref().and_then(|_| settings.files_directory());
    let files = files.as_deref().map(|directory| check_disk("disk of the files", existing(directory)));
    std::iter::once(check_disk("disk", existing(&settings.data))).chain(files).collect()
}

fn check_disk(name: &str, place: &Path) -> Finding {
    let disk = match rustix::fs::statvfs(place) {
        Ok(disk) => disk,
        Err(error) => {
            let found = format!("{}: {error}", place.display());
            return Finding::bad(name, found, "Check that --data is a directory on a mounted disk.");
        }
    };
    let share = 1.0 - ode_store::disk::used_share(place).unwrap_or_default();
    let free = disk.f_bavail as f64 * disk.f_frsize as f64 / 1e9;
    let found = format!("{free:.1} GB free ({:.0} %)", share * 100.0);
    if share >= FREE_MIN {
        Finding::ok(name, found)
    } else {
        Finding::bad(name, found, "Free some space, or move --data: uploads pause when the disk is full.")
    }
}

async fn check_redis(settings: &Settings) -> Finding {
    let Some(url) = &settings.redis else { return Finding::ok("redis", "not configured, not needed") };
    let said = match ode_store::ping_redis(url).await {
        Ok(()) => return Finding::ok("redis", "answers"),
        // In the store's words Redis is a database; here the finding's name says which.
        Err(ode_store::Error::Unavailable(said)) => said,
        Err(error) => error.to_string(),
    };
    Finding::bad(
        "redis",
        output::sentence(&anyhow::anyhow!(said)),
        "Start it, or leave --redis out: without it wake-ups come by the database, a little later.",
    )
}
