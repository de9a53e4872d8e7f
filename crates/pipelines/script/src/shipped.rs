//! The scripts that are built into the program, unpacked so that other programs can run them.

use crate::Error;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Unpacks the shipped scripts below a data directory, unless they are there, and says where. The folder is named
/// by what is in it: another version of ODE has another.
pub fn unpack(data: &Path) -> Result<PathBuf, Error> {
    let folder = unpacked(data);
    if folder.is_dir() {
        return Ok(folder);
    }
    // Whoever comes second finds the first one's folder in place, whole.
    let half = data.join("scripts").join(format!("unpacking-{}", uuid::Uuid::new_v4().simple()));
    let unpacked = write(&half).and_then(|()| std::fs::rename(&half, &folder));
    match unpacked {
        Ok(()) => Ok(folder),
        Err(error) => {
            // What is left of it would only be in the way; the error above is the one that matters.
            let _ = std::fs::remove_dir_all(&half);
            if folder.is_dir() { Ok(folder) } else { Err(Error::file(&folder, error)) }
        }
    }
}

/// Where the shipped scripts are once they are unpacked.
pub fn unpacked(data: &Path) -> PathBuf {
    data.join("scripts").join(digest())
}

fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, contents) in FILES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, contents)?;
    }
    Ok(())
}

fn digest() -> String {
    let mut digest = Sha256::new();
    for (name, contents) in FILES {
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name.as_bytes());
        digest.update((contents.len() as u64).to_le_bytes());
        digest.update(contents);
    }
    // Sixteen digits tell versions apart; the whole would make long paths.
    hex::encode(digest.finalize())[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_scripts_are_unpacked_once_and_can_be_read() {
        let data = tempfile::tempdir().unwrap();
        let folder = unpack(data.path()).unwrap();
        assert_eq!(unpack(data.path()).unwrap(), folder);
        for (name, contents) in FILES {
            assert_eq!(std::fs::read(folder.join(name)).unwrap(), *contents, "{name}");
        }
        for script in crate::Catalog::load(&folder, None).unwrap().iter() {
            for example in script.examples() {
                assert_eq!(script.check(example), Ok(()), "an example of {}", script.name());
                let mut elsewhere = example.clone();
                elsewhere["siteUrl"] = "file:///etc/passwd".into();
                assert!(script.check(&elsewhere).is_err(), "{} goes to any site", script.name());
            }
        }
        assert_eq!(std::fs::read_dir(data.path().join("scripts")).unwrap().count(), 1);
    }
}
