//! Options about scans, of every command that converts.

use crate::OcrOptions;
use clap::{Args, ValueEnum};
use std::time::Duration;

/// Options about scans.
#[derive(Debug, Args)]
pub struct OcrArgs {
    /// Whether scanned pages are read with tesseract where that is installed
    #[arg(long, value_enum, env = "ODE_OCR", default_value_t = When::Auto)]
    ocr: When,
    /// Languages of scans as tesseract calls them, such as eng+ind [default: up to three that are installed]
    #[arg(long, env = "ODE_OCR_LANGUAGES", value_name = "NAMES", value_parser = languages)]
    ocr_languages: Option<String>,
    /// How long the scans of one document may take together; pages past it stay unread
    #[arg(long, env = "ODE_OCR_SECONDS", value_name = "N", default_value_t = 15,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    ocr_seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// Where tesseract is installed
    Auto,
    /// Never
    Off,
}

impl OcrArgs {
    pub fn options(&self) -> OcrOptions {
        OcrOptions {
            is_on: self.ocr == When::Auto,
            languages: self.ocr_languages.clone(),
            time_max: Duration::from_secs(self.ocr_seconds),
        }
    }
}

/// Only names, so that nothing else reaches tesseract's command line.
fn languages(names: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    if names.split('+').all(is_name) {
        Ok(names.to_owned())
    } else {
        Err("give names joined by +, such as eng+ind; `tesseract --list-langs` lists them".to_owned())
    }
}
