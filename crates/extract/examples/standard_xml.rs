//! Writes records as UBL and CII, for checks by tools that are not ours.
//!
//! `standard_xml OUT FILE…`: each FILE is a truth file (`NAME.truth.json`: fields, lines and vat with a `value`
//! each) or an embedded invoice (`NAME.xml`); `OUT/NAME.ubl.xml` and `OUT/NAME.cii.xml` are written from its record,
//! and what the rules found is printed.

#[path = "../tests/truth/mod.rs"]
mod truth;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use ode_extract::write::{Format, Provenance, write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let out = arguments.next().ok_or("usage: standard_xml OUT FILE…")?;
    for path in arguments {
        let name = Path::new(&path).file_name().and_then(|name| name.to_str()).ok_or("a file has a name")?;
        let bytes = fs::read(&path)?;
        let (name, record) = match name.strip_suffix(".truth.json") {
            Some(name) => (name, truth::from_truth(&serde_json::from_slice(&bytes)?)),
            None => match ode_extract::embedded::read(name, &bytes) {
                Ok(embedded) => (name.trim_end_matches(".xml"), embedded.record),
                Err(unreadable) => {
                    println!("{name}: {}", unreadable.finding(name).message);
                    continue;
                }
            },
        };
        for finding in ode_extract::rules::check(&record) {
            println!("{name}: {:?} {}: {}", finding.severity, finding.code, finding.message);
        }
        for (format, suffix) in [(Format::Ubl, "ubl"), (Format::Cii, "cii")] {
            let written = write(&record, format, Provenance::Left);
            fs::write(Path::new(&out).join(format!("{name}.{suffix}.xml")), written.bytes)?;
        }
    }
    Ok(())
}
