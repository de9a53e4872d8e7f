//! Real and hostile documents: none may take the converter down, whatever happens to its bytes.

use ode_pdf_html::{ConversionConfig, Limits, Refusal, convert};
use ode_testing::pdf::damage;

const DOCUMENTS: usize = 60;
/// Damaged copies of each, unless `ODE_TEST_COPIES` asks for more.
const COPIES: u64 = 4;

#[test]
fn damaged_documents_are_converted_or_refused() {
    let seed = damage::seed();
    let copies = std::env::var("ODE_TEST_COPIES").ok().and_then(|count| count.parse().ok()).unwrap_or(COPIES);
    let (mut tried, mut converted) = (0, 0);
    for path in damage::documents(DOCUMENTS) {
        let bytes = std::fs::read(&path).unwrap();
        for copy in 0..=copies {
            let bytes = if copy == 0 { bytes.clone() } else { damage::damaged(&bytes, seed + copy) };
            let bytes_max = Limits::default().output_bytes_max(bytes.len());
            let outcome = convert(bytes, &ConversionConfig::default(), &Limits::default());
            assert_ne!(
                outcome.as_ref().err(),
                Some(&Refusal::Unreadable(ode_pdf::Refusal::Failed)),
                "copy {copy} of {} made the converter fail",
                path.display()
            );
            tried += 1;
            if let Ok(conversion) = outcome {
                converted += 1;
                let size: usize = conversion.assets.iter().map(|asset| asset.bytes.len()).sum();
                assert!(size <= bytes_max, "copy {copy} of {} gives {size} bytes", path.display());
            }
        }
    }
    assert!(tried == 0 || converted * 2 > tried, "only {converted} of {tried} were converted");
}
