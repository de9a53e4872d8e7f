//! The files of a result.

use sha2::{Digest as _, Sha256};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssetKind {
    Html,
    /// Its style sheet.
    Css,
    Js,
    Svg,
    Font,
    Image,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Where it belongs, relative to the folder of the result.
    pub path: String,
    pub kind: AssetKind,
    pub bytes: Vec<u8>,
}

/// A file as the manifest tells of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// Where it belongs, relative to the folder of the result.
    pub path: String,
    pub kind: AssetKind,
    pub bytes: usize,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

impl Asset {
    /// What the manifest says of it.
    pub fn entry(&self) -> Entry {
        let sha256 = hex::encode(Sha256::digest(&self.bytes));
        Entry { path: self.path.clone(), kind: self.kind, bytes: self.bytes.len(), sha256 }
    }
}
