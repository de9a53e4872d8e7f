//! A script as it was found: its manifest, its schemas, its folder, and the digest of what is in it.

use crate::Error;
use crate::manifest::{Manifest, SchemaAt};
use crate::schema::Schema;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The file that makes a folder a script.
pub const MANIFEST: &str = "script.toml";
/// More files than this are not a script but a whole program, and only the first are counted in its digest.
const FILES_MAX: usize = 1000;

/// A script, ready to be run.
#[derive(Debug)]
pub struct Script {
    /// What it says of itself.
    pub manifest: Manifest,
    /// What it takes.
    pub payload: Schema,
    /// What the `data` of its result is, if the manifest says.
    pub result: Option<Schema>,
    /// Where it is.
    pub folder: PathBuf,
    /// Whose it is.
    pub origin: Origin,
    /// The SHA-256 of its files, so that a run can be explained later.
    pub digest: String,
}

/// Whose a script is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It came with ODE.
    Shipped,
    /// It is in the operator's own directory.
    Own,
}

impl Script {
    /// Reads the script in a folder.
    pub fn read(folder: &Path, origin: Origin) -> Result<Self, Error> {
        let folder = folder.canonicalize().map_err(|error| Error::file(folder, error))?;
        let path = folder.join(MANIFEST);
        let text = read_text(&path)?;
        let manifest = Manifest::read(&text).map_err(|error| Error::Manifest { path, error })?;
        let payload = read_schema(&folder, &manifest.payload)?;
        let result = manifest.result.as_ref().map(|at| read_schema(&folder, at)).transpose()?;
        let digest = digest(&folder)?;
        Ok(Self { manifest, payload, result, folder, origin, digest })
    }

    /// The name that jobs ask for it by.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// The payloads that its schema gives as examples.
    pub fn examples(&self) -> &[Value] {
        self.payload.document().get("examples").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What is to be done about the programs of its commands that are not here.
    pub fn missing_programs(&self) -> Vec<String> {
        let commands = [Some(&self.manifest.command), self.manifest.spare.as_ref()].into_iter().flatten();
        let programs = commands.filter_map(|command| self.argv(command).into_iter().next());
        let missing = programs.filter(|program| crate::browser::program(program).is_none());
        missing.map(|program| format!("{program} is not installed here")).collect()
    }

    /// The first of the script's own files in its command.
    pub(crate) fn own_file(&self) -> Option<String> {
        let argv = self.argv(&self.manifest.command).into_iter().zip(&self.manifest.command);
        argv.skip(1).find(|(whole, written)| whole != *written).map(|(whole, _)| whole.into_owned())
    }

    /// The command with the script's own files by their whole paths.
    pub fn argv<'a>(&self, command: &'a [String]) -> Vec<std::borrow::Cow<'a, str>> {
        let whole = |argument: &'a String| {
            let file = self.folder.join(argument);
            let is_own = !argument.starts_with('-') && file.is_file();
            match file.to_str().filter(|_| is_own) {
                Some(path) => path.to_owned().into(),
                None => argument.as_str().into(),
            }
        };
        command.iter().map(whole).collect()
    }
}

fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error::file(path, error))
}

fn read_schema(folder: &Path, at: &SchemaAt) -> Result<Schema, Error> {
    let (path, document) = match at {
        SchemaAt::Here(document) => (folder.join(MANIFEST), document.clone()),
        SchemaAt::File(name) => {
            let path = folder.join(name);
            let text = read_text(&path)?;
            let document: Value = serde_json::from_str(&text)
                .map_err(|error| Error::Schema { path: path.clone(), message: error.to_string() })?;
            (path, document)
        }
    };
    Schema::read(document).map_err(|error| Error::Schema { path, message: error.to_string() })
}

/// The digest of all files of a folder, with their names.
fn digest(folder: &Path) -> Result<String, Error> {
    let mut names = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| Error::file(folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::file(folder, error))?;
        if entry.path().is_file() && names.len() < FILES_MAX {
            names.push(entry.file_name());
        }
    }
    names.sort();
    let mut digest = Sha256::new();
    for name in names {
        let path = folder.join(&name);
        let contents = std::fs::read(&path).map_err(|error| Error::file(&path, error))?;
        digest.update(name.as_encoded_bytes());
        digest.update([0]);
        digest.update((contents.len() as u64).to_le_bytes());
        digest.update(contents);
    }
    Ok(crate::hex(&digest.finalize()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A script with this schema for its payload.
    pub(crate) fn script(payload: &str) -> Script {
        script_with("", payload)
    }

    /// The same with more lines in its manifest.
    pub(crate) fn script_with(manifest: &str, payload: &str) -> Script {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "type = \"sample\"\ntitle = \"Sample\"\nversion = 1\ncommand = [\"sh\", \"run.sh\", \"-x\"]\n\
             payload = \"payload.json\"\n{manifest}\n"
        );
        std::fs::write(folder.path().join(MANIFEST), text).unwrap();
        std::fs::write(folder.path().join("payload.json"), payload).unwrap();
        std::fs::write(folder.path().join("run.sh"), "true").unwrap();
        let script = Script::read(folder.path(), Origin::Own).unwrap();
        let argv = script.argv(&script.manifest.command);
        assert_eq!((&*argv[0], &*argv[2]), ("sh", "-x"));
        assert!(argv[1].ends_with("/run.sh") && argv[1].starts_with('/'), "{argv:?}");
        script
    }

    #[test]
    fn a_wrong_schema_is_named_by_its_file_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let text = "type = \"a\"\ntitle = \"A\"\nversion = 1\ncommand = [\"sh\"]\npayload = \"p.json\"\n";
        std::fs::write(folder.path().join(MANIFEST), text).unwrap();
        std::fs::write(folder.path().join("p.json"), r#"{ "type": "objekt" }"#).unwrap();
        let error = Script::read(folder.path(), Origin::Own).unwrap_err().to_string();
        assert!(error.contains("p.json") && error.contains("/type"), "{error}");
    }
}
