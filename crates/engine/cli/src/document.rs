//! JSON documents on the command line and in files.

use crate::WrongUse;
use anyhow::{Context as _, bail};
use ode_job::{Invalid, repeated_name};
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Parses a document that an option or a file of this name gives.
pub fn parse(name: &str, text: &str) -> anyhow::Result<Value> {
    if let Some(path) = repeated_name(text.as_bytes(), "") {
        bail!(WrongUse(format!("{name} has {path} more than once. Keep one of them.")));
    }
    serde_json::from_str(text)
        .map_err(|error| WrongUse(format!("{name} is not JSON: {error}. Correct it and try again.")).into())
}

/// A document may be spread over many more bytes than it has when it is stored; past this it is not read on.
const FILE_BYTES_MAX: usize = 8 * ode_job::new::INPUT_BYTES_MAX;

/// Reads a JSON document from a file, or from standard input for `-`.
pub fn read(path: &Path) -> anyhow::Result<Value> {
    let name = path.display();
    let mut source: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(path).map_err(|error| {
            WrongUse(format!(
                "{name} cannot be opened: {error}. Give a file that is there, or - for standard input."
            ))
        })?),
    };
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    source.by_ref().take(limit).read_to_end(&mut bytes).with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() > FILE_BYTES_MAX {
        let (field, bytes, max) = ("input", bytes.len(), ode_job::new::INPUT_BYTES_MAX);
        return Err(ode_store::Error::from(Invalid::TooLarge { field, bytes, max }).into());
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| WrongUse(format!("{name} is not text in UTF-8. Give a JSON document.")))?;
    parse(&name.to_string(), &text)
}
