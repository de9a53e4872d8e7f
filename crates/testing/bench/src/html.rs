//! What HTML costs: each document converted in this process, warm, again and again. The documents must be trusted ones:
//! here they are read without a sandbox.

use super::extract::{BYTES_MAX, STACK_BYTES, cpu_time, pdfs, round};
use anyhow::bail;
use clap::Args;
use ode_cli::{self as output, files};
use ode_pdf_html::{Conversion, ConversionConfig, Limits, convert_here};
use rustix::time::ClockId;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// With what.
#[derive(Debug, Args)]
pub(crate) struct Html {
    /// Directory with PDFs that you trust
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How often each document is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
}

/// What one document took.
struct Cost {
    pages: usize,
    bytes_in: usize,
    bytes_out: usize,
    glyphs: usize,
    unknown_glyphs: usize,
    time: Duration,
}

pub(crate) fn run(args: &Html) -> anyhow::Result<ExitCode> {
    let (mut pages, mut time, mut documents) = (0, Duration::ZERO, 0_u32);
    let (mut glyphs, mut unknown_glyphs) = (0, 0);
    for file in pdfs(&args.directory)? {
        let Some(cost) = measure(&file, args.repeat)? else {
            continue;
        };
        documents += 1;
        pages += cost.pages;
        time += cost.time;
        glyphs += cost.glyphs;
        unknown_glyphs += cost.unknown_glyphs;
        output::line(json!({
            "peer": "ode", "phase": "html", "document": file.file_name().map(|name| name.to_string_lossy()),
            "pages": cost.pages, "bytes_in": cost.bytes_in, "bytes_out": cost.bytes_out,
            "glyphs": cost.glyphs, "unknown_glyphs": cost.unknown_glyphs,
            "cpu_ms": round(cost.time.as_secs_f64() * 1000.0),
        }))?;
    }
    if documents == 0 {
        bail!("None of the PDFs in {} can be converted.", args.directory.display());
    }
    output::line(json!({
        "peer": "ode", "phase": "html", "documents": documents, "pages": pages, "repeat": args.repeat,
        "glyphs": glyphs, "unknown_glyphs": unknown_glyphs,
        "pages_per_cpu_s": round(pages as f64 / time.as_secs_f64()),
    }))?;
    Ok(ExitCode::SUCCESS)
}

/// Once to warm up, then as often as asked; none where the document is refused, which then counts for nothing.
fn measure(file: &Path, repeat: u32) -> anyhow::Result<Option<Cost>> {
    let bytes: Arc<[u8]> = files::read(file, BYTES_MAX)?.into();
    let bytes_in = bytes.len();
    let work = move || {
        let config = ConversionConfig::default();
        let conversion = convert_here(bytes.clone(), &config, &Limits::default()).ok()?;
        let began = cpu_time(ClockId::ThreadCPUTime);
        for _ in 0..repeat {
            std::hint::black_box(convert_here(bytes.clone(), &config, &Limits::default()).ok());
        }
        let time = (cpu_time(ClockId::ThreadCPUTime) - began) / repeat;
        let bytes_out = conversion.assets.iter().map(|asset| asset.bytes.len()).sum();
        let Conversion { pages, glyphs, unknown_glyphs, .. } = conversion;
        Some(Cost { pages, bytes_in, bytes_out, glyphs, unknown_glyphs, time })
    };
    let here = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?;
    here.join().map_err(|_| anyhow::anyhow!("{} made the converter fail", file.display()))
}
