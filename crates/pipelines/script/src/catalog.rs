//! All scripts there are: those that came with ODE, and the operator's own, which replace ours by their type.

use crate::Error;
use crate::script::{MANIFEST, Origin, Script};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scripts may stand in a folder of this name beside what they share, or right in the directory.
const TYPES: &str = "types";

/// The scripts that can be run, by type.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    scripts: BTreeMap<String, Arc<Script>>,
}

impl Catalog {
    /// Reads the shipped scripts, as [`unpack`](crate::unpack) left them, and the operator's own.
    pub fn load(shipped: &Path, overlay: Option<&Path>) -> Result<Self, Error> {
        let mut catalog = Self::default();
        catalog.add(shipped, Origin::Shipped)?;
        if let Some(own) = overlay {
            catalog.add(own, Origin::Own)?;
        }
        Ok(catalog)
    }

    /// A script by its type.
    pub fn get(&self, name: &str) -> Option<Arc<Script>> {
        self.scripts.get(name).cloned()
    }

    /// All scripts, by type.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Script>> {
        self.scripts.values()
    }

    fn add(&mut self, root: &Path, origin: Origin) -> Result<(), Error> {
        let mut found = BTreeMap::new();
        for folder in folders(root)? {
            let script = Script::read(&folder, origin)?;
            if let Some(twin) = found.insert(script.name().to_owned(), Arc::new(script)) {
                let name = twin.name().to_owned();
                return Err(Error::Twins { name, one: twin.folder.clone(), other: folder });
            }
        }
        self.scripts.extend(found);
        Ok(())
    }
}

/// The folders of a directory that have a manifest.
fn folders(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let types = root.join(TYPES);
    let roots = [root.to_owned(), types];
    let mut found = Vec::new();
    for root in roots.iter().filter(|root| root.is_dir() || *root == &roots[0]) {
        for entry in std::fs::read_dir(root).map_err(|error| Error::file(root, error))? {
            let path = entry.map_err(|error| Error::file(root, error))?.path();
            if path.join(MANIFEST).is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, folder: &str, name: &str, title: &str) {
        let folder = root.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "type = {name:?}\ntitle = {title:?}\nversion = 1\ncommand = [\"sh\"]\n[payload]\ntype = \"object\"\n"
        );
        std::fs::write(folder.join(MANIFEST), text).unwrap();
    }

    #[test]
    fn own_scripts_replace_ours_by_type() {
        let (shipped, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(shipped.path(), "types/a", "a", "Ours");
        write(shipped.path(), "types/b", "b", "Ours");
        write(own.path(), "anything", "b", "Own");
        write(own.path(), "types/c", "c", "Own");
        std::fs::create_dir(own.path().join("no-script")).unwrap();
        let catalog = Catalog::load(shipped.path(), Some(own.path())).unwrap();
        let seen: Vec<_> =
            catalog.iter().map(|script| (script.name(), script.manifest.title.as_str())).collect();
        assert_eq!(seen, [("a", "Ours"), ("b", "Own"), ("c", "Own")]);
        assert_eq!(catalog.get("b").unwrap().origin, Origin::Own);
        assert!(catalog.get("d").is_none());
    }

    #[test]
    fn two_scripts_of_one_type_are_refused() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "one", "a", "One");
        write(root.path(), "other", "a", "Other");
        let error = Catalog::load(root.path(), None).unwrap_err().to_string();
        assert!(error.contains("one") && error.contains("other"), "{error}");
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Catalog::load(Path::new("/nowhere/at/all"), None).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
