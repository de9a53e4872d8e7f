//! A script as it was found: its manifest, its schemas, its folder, and the digest of what is in it.

use crate::Error;
use crate::manifest::{Manifest, SchemaAt, line_and_column};
use crate::schema::Schema;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
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
    pub payload: Schema,
    /// What the `data` of its result is, if the manifest says.
    pub result: Option<Schema>,
    pub folder: PathBuf,
    pub origin: Origin,
    /// The SHA-256 of its files, so that a run can be explained later.
    pub digest: String,
}

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

    /// Files that its commands name and that are not in its folder.
    pub fn missing_files(&self) -> Vec<String> {
        let commands = [("command", Some(&self.manifest.command)), ("spare", self.manifest.spare.as_ref())];
        let arguments = commands
            .into_iter()
            .flat_map(|(key, argv)| argv.into_iter().flatten().skip(1).map(move |argument| (key, argument)));
        arguments
            .filter(|(_, argument)| is_program_file(argument) && !self.folder.join(argument).is_file())
            .map(|(key, file)| {
                format!("{MANIFEST}: `{key}` names {file}, which is not in the script's folder")
            })
            .collect()
    }

    /// Fields that its concurrency key names and that no payload has.
    pub fn unknown_fields(&self) -> Vec<String> {
        let template = self.manifest.concurrency_key.as_deref().unwrap_or_default();
        let is_unknown = |field: &&str| !self.payload.knows(&field.split('.').collect::<Vec<_>>());
        let fields = crate::concurrency::fields(template).unwrap_or_default().into_iter();
        fields
            .filter(is_unknown)
            .map(|field| {
                format!(
                    "{MANIFEST}: `concurrency_key` names {field}, which the payload's schema does not have"
                )
            })
            .collect()
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

/// How files end that programs are written in.
const PROGRAM_ENDS: [&str; 12] =
    ["mjs", "cjs", "js", "mts", "ts", "py", "sh", "bash", "rb", "pl", "php", "lua"];

/// Whether an argument can only be meant as a file of a program.
fn is_program_file(argument: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let end = argument.rsplit_once('.').map_or("", |(_, end)| end);
    !argument.starts_with('-') && argument.chars().all(is_plain) && PROGRAM_ENDS.contains(&end)
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
            let document = serde_json::from_str(&text).map_err(|error| no_json(&path, &error))?;
            return Schema::read(document).map_err(|error| {
                let at = locate(&text, &error.place).map(|byte| line_and_column(&text, byte));
                Error::Schema { path, at, message: error.to_string() }
            });
        }
    };
    Schema::read(document).map_err(|error| Error::Schema { path, at: None, message: error.to_string() })
}

fn no_json(path: &Path, error: &serde_json::Error) -> Error {
    let (at, said) = ((error.line(), error.column()), error.to_string());
    let message = said.rsplit_once(" at line ").map_or(said.as_str(), |(message, _)| message).to_owned();
    Error::Schema { path: path.to_owned(), at: Some(at), message }
}

/// Where in a JSON text the value is that a pointer names.
fn locate(text: &str, pointer: &str) -> Option<usize> {
    let mut at: &RawValue = serde_json::from_str(text).ok()?;
    for name in pointer.split('/').skip(1) {
        at = match name.parse::<usize>().ok().filter(|_| at.get().starts_with('[')) {
            Some(index) => serde_json::from_str::<Vec<&RawValue>>(at.get()).ok()?.get(index).copied()?,
            None => {
                let name = name.replace("~1", "/").replace("~0", "~");
                serde_json::from_str::<HashMap<String, &RawValue>>(at.get()).ok()?.get(&name).copied()?
            }
        };
    }
    // The value is a part of the text, so that their addresses tell where it begins.
    (at.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)
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
    Ok(hex::encode(digest.finalize()))
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
        let check = |schema: &str, place: &str, message: &str| {
            std::fs::write(folder.path().join("p.json"), schema).unwrap();
            let error = Script::read(folder.path(), Origin::Own).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains(message), "{schema}: {error}");
        };
        check(r#"{ "type": "objekt" }"#, "p.json:1:11: ", "/type");
        check("{\n  \"anyOf\": [{}, { \"minLength\": -1 }] }", "p.json:2:32: ", "/anyOf/1/minLength");
        check(
            "{\n  \"properties\": { \"a/b\": { \"tpye\": 1 } } }",
            "p.json:2:36: ",
            "`tpye` is not checked",
        );
        check("{\n  \"type\" }", "p.json:2:10: ", "expected `:`");
    }

    #[test]
    fn files_and_fields_that_are_named_and_not_there_are_told() {
        let payload = r##"{ "properties": { "login": { "$ref": "#/$defs/login" } },
            "$defs": { "login": { "properties": { "email": {} } } } }"##;
        let unknown = |key: &str| {
            script_with(&format!("concurrency_key = {key:?}"), payload).unknown_fields().join("; ")
        };
        assert_eq!(unknown("{login.email}:{login}"), "");
        assert!(unknown("{login.mail}").contains("names login.mail"), "{}", unknown("{login.mail}"));
        assert!(unknown("{email}").contains("names email"));
        // The folder of the sample is gone by now, and its run.sh with it.
        let missing = script_with("spare = [\"node\", \"-e\", \"wait.mjs\", \"a.b\"]", "{}").missing_files();
        let named = |key: &str, file: &str| {
            format!("script.toml: `{key}` names {file}, which is not in the script's folder")
        };
        assert_eq!(missing, [named("command", "run.sh"), named("spare", "wait.mjs")]);
        assert!(script_with("concurrency_key = \"{anything}\"", "{}").unknown_fields().is_empty());
    }
}
