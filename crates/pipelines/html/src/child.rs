//! What the child does.

use ode_child::Failure;
use ode_child::child::{Reporter, failed};
use ode_job::ErrorCode;
use ode_pdf_html::{ConversionConfig, Limits, Manifest, Refusal, convert_here};
use std::process::ExitCode;

/// The file that the child hands back however the conversion went: the most memory it used, in digits. Nothing where the
/// kernel does not say.
pub(super) const PEAK_MEMORY: &str = "peak-memory";

/// Runs as the child: locks itself in, and converts the one document it is given.
pub(super) fn serve() -> ExitCode {
    ode_child::child::serve(|| Ok(()), |(), config: ConversionConfig, reporter| answer(&config, reporter))
}

fn answer(config: &ConversionConfig, reporter: &mut Reporter) -> Result<Manifest, Failure> {
    let converted = convert(config, reporter);
    if let Some(bytes) = reporter.peak_memory_bytes() {
        reporter.artifact(PEAK_MEMORY, bytes.to_string().as_bytes()).map_err(unwritten)?;
    }
    converted
}

fn convert(config: &ConversionConfig, reporter: &mut Reporter) -> Result<Manifest, Failure> {
    let bytes = reporter.input().map_err(unwritten)?;
    let conversion = convert_here(bytes, config, &Limits::default()).map_err(unconverted)?;
    for asset in &conversion.assets {
        reporter.artifact(&asset.path, &asset.bytes).map_err(unwritten)?;
    }
    Ok(conversion.manifest())
}

fn unwritten(error: std::io::Error) -> Failure {
    failed(ErrorCode::IoError, error)
}

fn unconverted(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Unreadable(refusal) => {
            failed(refusal.code().parse().unwrap_or(ErrorCode::Unreadable), refusal)
        }
        Refusal::NoSuchPages { .. } | Refusal::BadZoom(_) => failed(ErrorCode::Invalid, refusal),
        Refusal::OutputTooLarge { .. } => failed(ErrorCode::TooLarge, refusal),
    }
}
