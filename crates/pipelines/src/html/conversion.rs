//! What the child does.

use crate::xml::{failed, refused};
use ode_child::Failure;
use ode_child::child::Reporter;
use ode_html::{ConversionConfig, Limits, Manifest, Refusal, convert_here};
use ode_job::ErrorCode;
use std::process::ExitCode;

/// Runs as the child: locks itself in, and converts the one document it is given.
pub fn serve() -> ExitCode {
    ode_child::child::serve(|| Ok(()), |(), config: ConversionConfig, reporter| answer(&config, reporter))
}

fn answer(config: &ConversionConfig, reporter: &mut Reporter) -> Result<Manifest, Failure> {
    let io = |error: std::io::Error| failed(ErrorCode::IoError, error);
    let bytes = reporter.input().map_err(io)?;
    let conversion = convert_here(bytes, config, &Limits::default()).map_err(unconverted)?;
    for asset in &conversion.assets {
        reporter.artifact(&asset.path, &asset.bytes).map_err(io)?;
    }
    Ok(conversion.manifest())
}

fn unconverted(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Unreadable(refusal) => refused(refusal),
        Refusal::NoSuchPages { .. } | Refusal::BadZoom(_) => failed(ErrorCode::Invalid, refusal),
        Refusal::OutputTooLarge { .. } => failed(ErrorCode::TooLarge, refusal),
    }
}
