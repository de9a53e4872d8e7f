//! Any bytes are converted to HTML or refused, within the limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ode_pdf_html::{ConversionConfig, Limits, Refusal, convert};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { steps_per_page_max: 50_000, ..Limits::default() };
    match convert(bytes, &ConversionConfig::default(), &limits) {
        Ok(conversion) => {
            let size: usize = conversion.assets.iter().map(|asset| asset.bytes.len()).sum();
            assert!(size <= limits.output_bytes_max(bytes.len()));
        }
        Err(refusal) => assert_ne!(refusal, Refusal::Unreadable(ode_pdf::Refusal::Failed)),
    }
});
