//! Builds the shipped scripts in: every file below `scripts/`, but not what npm put there.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What npm puts beside the scripts, and what only their own tests need.
const LEFT_OUT: [&str; 2] = ["node_modules", "tests"];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../scripts").canonicalize()?;
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let mut code = "pub(crate) const FILES: &[(&str, &[u8])] = &[\n".to_owned();
    for path in files {
        let name = path.strip_prefix(&folder)?.to_str().ok_or("a name that is not UTF-8")?.to_owned();
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    code.push_str("];\n");
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("files.rs"), code)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_left_out = LEFT_OUT.iter().any(|name| entry.file_name() == *name);
        if entry.file_type()?.is_dir() && !is_left_out {
            collect(&entry.path(), files)?;
        } else if entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
