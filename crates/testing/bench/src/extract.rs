//! What a document costs: read, mapped and written in this process, warm, and the same in a child for each. The
//! documents must be trusted ones: here they are read without a sandbox.

use anyhow::{Context as _, bail};
use clap::Args;
use ode_cli::{self as output, files};
use ode_invoice::write::{Format, Provenance, write};
use ode_invoice::{Choice, Registry};
use ode_xml::{Ask, Converter, Options};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// With what.
#[derive(Debug, Args)]
pub(crate) struct Extract {
    /// Directory with PDFs that you trust
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How to read them: a mapping's name, or auto for the one that fits best
    #[arg(long, value_name = "NAME", default_value = "auto")]
    mapping: String,
    /// Folder with mappings beside those that ship
    #[arg(long, env = "ODE_MAPPINGS", value_name = "DIR")]
    mappings: Option<PathBuf>,
    /// How often each document is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
}

/// Deep nesting is read by recursion, so the reader wants this much stack.
pub(super) const STACK_BYTES: usize = 64 << 20;
/// Largest file that is read.
pub(super) const BYTES_MAX: u64 = 50 << 20;

/// Processor time of the steps, summed up.
#[derive(Debug, Default)]
struct Cost {
    documents: u32,
    read: Duration,
    extract: Duration,
    write: Duration,
}

pub(crate) async fn run(args: Extract) -> anyhow::Result<ExitCode> {
    let files = pdfs(&args.directory)?;
    let registry = ode_xml::registry(args.mappings.as_deref())?;
    let name = (args.mapping != "auto").then_some(args.mapping.clone());
    if let Some(name) = &name {
        registry.current().get(name)?;
    }
    let count = files.len();
    let here = std::thread::Builder::new().stack_size(STACK_BYTES);
    let here = here.spawn({
        let (files, name) = (files.clone(), name.clone());
        move || measure(&files, &registry, name.as_deref(), args.repeat)
    })?;
    let cost = here.join().map_err(|_| anyhow::anyhow!("A document made the reader fail"))??;
    if cost.documents == 0 {
        bail!("None of the {count} PDFs in {} can be mapped.", args.directory.display());
    }
    let child = children(&files, name, args.mappings).await?;
    let each = |time: Duration| round(time.as_secs_f64() * 1000.0 / f64::from(cost.documents));
    let total = each(cost.read + cost.extract + cost.write);
    let done = cost.documents / args.repeat;
    output::line(json!({
        "peer": "ode", "phase": "extract", "documents": done, "refused": count - done as usize,
        "repeat": args.repeat, "cpu_ms_per_document": total, "documents_per_cpu_s": round(1000.0 / total),
        "read_ms": each(cost.read), "extract_ms": each(cost.extract), "write_ms": each(cost.write),
        "child": child,
    }))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn round(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

pub(super) fn pdfs(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("Cannot read {}", directory.display());
    let entries = std::fs::read_dir(directory).with_context(cannot)?;
    let mut files =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().with_context(cannot)?;
    files.retain(|path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pdf")));
    if files.is_empty() {
        bail!("There are no PDFs in {}. Name a directory with some.", directory.display());
    }
    files.sort();
    Ok(files)
}

/// Every document once to warm up, then as often as asked.
fn measure(files: &[PathBuf], registry: &Registry, name: Option<&str>, repeat: u32) -> anyhow::Result<Cost> {
    let choice = name.map_or(Choice::Auto, Choice::Named);
    let mut cost = Cost::default();
    for file in files {
        let bytes: std::sync::Arc<[u8]> = files::read(file, BYTES_MAX)?.into();
        let mut warm = Cost::default();
        if one(bytes.clone(), registry, choice, &mut warm).is_some() {
            for _ in 0..repeat {
                one(bytes.clone(), registry, choice, &mut cost);
            }
        }
    }
    Ok(cost)
}

/// One document; none where it is refused, which then counts for nothing.
fn one(bytes: std::sync::Arc<[u8]>, registry: &Registry, choice: Choice<'_>, cost: &mut Cost) -> Option<()> {
    let began = cpu_time(ClockId::ThreadCPUTime);
    let document = ode_pdf::read_here(bytes, &ode_pdf::Limits::default(), &[]).ok()?;
    let read = cpu_time(ClockId::ThreadCPUTime);
    let extraction = ode_invoice::extract(&document, registry, choice).ok()?;
    let extracted = cpu_time(ClockId::ThreadCPUTime);
    std::hint::black_box(write(&extraction.record, Format::Own, Provenance::Left));
    cost.documents += 1;
    cost.read += read - began;
    cost.extract += extracted - read;
    cost.write += cpu_time(ClockId::ThreadCPUTime) - extracted;
    Some(())
}

pub(super) fn cpu_time(clock: ClockId) -> Duration {
    clock_gettime(clock).try_into().unwrap_or_default()
}

/// The same with a child for each document, one after another: what a person who converts one file waits for.
async fn children(
    files: &[PathBuf],
    name: Option<String>,
    mappings: Option<PathBuf>,
) -> anyhow::Result<Value> {
    let converter = Converter::new(Options { mappings, ..Options::default() })?;
    let ask = Ask { mapping: name, page_only: true, ..Ask::default() };
    let (mut documents, mut wall) = (0_u32, Duration::ZERO);
    let before = (cpu_time(ClockId::ProcessCPUTime), reaped_cpu_time());
    for file in files {
        let document = files::read(file, BYTES_MAX)?;
        let began = Instant::now();
        // A document that is refused has cost as much as one that is not.
        let _ = converter.convert(&ask, document.into()).await;
        wall += began.elapsed();
        documents += 1;
    }
    let own = cpu_time(ClockId::ProcessCPUTime) - before.0;
    let reaped = before.1.zip(reaped_cpu_time()).map(|(before, after)| after.saturating_sub(before));
    let each = |time: Duration| round(time.as_secs_f64() * 1000.0 / f64::from(documents));
    Ok(json!({
        "documents": documents, "wall_ms_per_document": each(wall), "cpu_ms_per_document": reaped.map(|time| each(own + time)),
    }))
}

/// Processor time of the children that have ended, in steps of 10 ms; none without /proc.
fn reaped_cpu_time() -> Option<Duration> {
    /// The kernel tells every program this, whatever it counts in itself.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may hold anything: 11 fields, this process's own two times, its children's two.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}
