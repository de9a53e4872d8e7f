//! What the child does.

use crate::xml::{failed, refused};
use ode_child::Failure;
use ode_child::child::Reporter;
use ode_html::{ConversionConfig, Limits, Manifest, Refusal, convert_here};
use ode_job::ErrorCode;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// What the child answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) manifest: Manifest,
    /// The most memory it used; nothing where the kernel does not say.
    pub(super) peak_memory_bytes: Option<u64>,
}

/// Runs as the child: locks itself in, and converts the one document it is given.
pub fn serve() -> ExitCode {
    ode_child::child::serve(|| Ok(()), |(), config: ConversionConfig, reporter| answer(&config, reporter))
}

fn answer(config: &ConversionConfig, reporter: &mut Reporter) -> Result<Answer, Failure> {
    let io = |error: std::io::Error| failed(ErrorCode::IoError, error);
    let bytes = reporter.input().map_err(io)?;
    let conversion = convert_here(bytes, config, &Limits::default()).map_err(unconverted)?;
    for asset in &conversion.assets {
        reporter.artifact(&asset.path, &asset.bytes).map_err(io)?;
    }
    Ok(Answer { manifest: conversion.manifest(), peak_memory_bytes: reporter.peak_memory_bytes() })
}

fn unconverted(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Unreadable(refusal) => refused(refusal),
        Refusal::NoSuchPages { .. } | Refusal::BadZoom(_) => failed(ErrorCode::Invalid, refusal),
        Refusal::OutputTooLarge { .. } => failed(ErrorCode::TooLarge, refusal),
    }
}
