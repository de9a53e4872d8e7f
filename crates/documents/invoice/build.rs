//! Builds the mappings in, as JSON. A child reads them for every document, and JSON is read several times as fast as TOML;
//! what tells which documents a mapping is for comes apart from the rest, which only the mapping that is used needs.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

/// Keys that are not needed before a mapping is used.
const BODY: [&str; 6] = ["locale", "ignore", "fields", "tables", "checks", "tests"];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../mappings");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    let mut code = "pub(crate) const MAPPINGS: &[Shipped] = &[\n".to_owned();
    for name in names {
        let text = std::fs::read_to_string(folder.join(&name))?;
        let mut table: toml::Table = toml::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        let text = serde_json::to_string(&table)?;
        table.retain(|key, _| !BODY.contains(&key));
        let head = serde_json::to_string(&table)?;
        writeln!(code, "    Shipped {{ name: {name:?}, head: {head:?}, text: {text:?} }},")?;
    }
    code.push_str("];\n");
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("mappings.rs"), code)?;
    Ok(())
}
