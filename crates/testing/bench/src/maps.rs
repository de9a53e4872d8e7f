//! What a poster costs: the world in Equal Earth with coasts of 1:50,000,000, a net of 10° and nothing else, which other
//! programs can be made to draw too, or any map of one's own.

use anyhow::Context as _;
use clap::Args;
use ode_atlas::{Options, Spec};
use ode_cli as output;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::io::BufWriter;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// With what.
#[derive(Debug, Args)]
pub(crate) struct Maps {
    /// A map's specification, in place of the poster of the world
    #[arg(value_name = "SPEC")]
    spec: Option<PathBuf>,
    /// The poster's size
    #[arg(long, value_name = "NAME", default_value = "18x24", conflicts_with = "spec")]
    size: String,
    /// How often it is drawn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// How many threads draw
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroUsize,
    /// Where the picture goes, to be looked at [default: nowhere]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Lines as wide in pixels as the other programs draw them.
const POSTER: &str = r#"{"schema": 1, "page": {"size": "SIZE"},
    "style": {"widths_mm": {"coast": 0.21166667, "graticule": 0.16933333, "rim": 0.508}},
    "base": {"detail": "50m", "borders": false, "graticule_deg": 10}, "furniture": {"credit": ""}}"#;

pub(crate) fn run(args: &Maps) -> anyhow::Result<ExitCode> {
    let mut cpu = Vec::new();
    let mut wall = Vec::new();
    let mut last = None;
    for _ in 0..args.repeat {
        let (began, cpu_began) = (Instant::now(), cpu_time());
        // Reading the specification is part of it: that is what `ode maps render` does.
        let json = match &args.spec {
            Some(path) => std::fs::read(path).with_context(|| format!("Cannot read {}", path.display()))?,
            None => POSTER.replace("SIZE", &args.size).into_bytes(),
        };
        let spec = Spec::parse(&json)?;
        let options = Options { threads: args.threads, preview_width: None };
        last = Some(match &args.out {
            Some(path) => {
                let file = std::fs::File::create(path)
                    .with_context(|| format!("Cannot write {}", path.display()))?;
                ode_atlas::render(&spec, &options, BufWriter::new(file))?
            }
            None => ode_atlas::render(&spec, &options, std::io::sink())?,
        });
        cpu.push(cpu_time() - cpu_began);
        wall.push(began.elapsed());
    }
    let rendered = last.context("Draw the map at least once")?;
    output::line(json!({
        "peer": "ode", "phase": "maps", "width": rendered.width, "height": rendered.height, "repeat": args.repeat,
        "threads": args.threads, "cpu_ms": median(cpu), "wall_ms": median(wall), "bytes": rendered.bytes,
        "peak_rss_mb": peak_rss_mb(),
    }))?;
    Ok(ExitCode::SUCCESS)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The middle one, in milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    (times[times.len() / 2].as_secs_f64() * 10_000.0).round() / 10.0
}

/// The most memory that this process has had, where the system tells.
fn peak_rss_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024)
}
