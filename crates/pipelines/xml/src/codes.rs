//! The codes of findings, for `ode explain`.

use ode_invoice::FindingCode;
use ode_pipeline::{Codes, KnownCode};
use std::sync::LazyLock;

pub(crate) static FINDINGS: LazyLock<Codes> = LazyLock::new(|| {
    let code = |code: &FindingCode| KnownCode {
        name: code.as_str(),
        sentence: code.sentence(),
        is_retried: None,
        page: code.page().to_owned(),
    };
    Codes { heading: "FINDING", codes: FindingCode::ALL.iter().map(code).collect() }
});
