//! Secrets under seal: whoever has the public half of a key can seal, only who has the other half can open.
//!
//! Each seal has a key of its own for its content (XChaCha20-Poly1305). That key is sealed in turn to the reader's
//! X25519 key, by an ephemeral key that is forgotten at once. What it is bound to (whose it is, and its own name) is part
//! of both, so that a seal which somebody moved to another job does not open. Forgetting the sealed key is enough to
//! forget the content; turning it to a new reader's key does not touch the content.

use crate::Error;
use crate::payload::Secrets;
use crate::record::{Sealed, SecretPart};
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use uuid::Uuid;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// Keys are known by so much of their digest.
const ID_BYTES: usize = 8;
/// Names what is sealed, and how; another way would have another name.
const CONTENT: &[u8] = b"ode secret 1 content";
const WRAPPED: &[u8] = b"ode secret 1 key";

/// What a seal is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bond {
    /// Whose secrets they are.
    pub owner: Uuid,
    /// Whether they were sent or came of it.
    pub part: SecretPart,
}

impl Bond {
    fn bytes(self, what: &[u8], id: Uuid) -> Vec<u8> {
        [what, self.owner.as_bytes(), id.as_bytes(), self.part.as_str().as_bytes()].concat()
    }
}

/// The public half of a key: with it one can seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealTo(PublicKey);

impl SealTo {
    /// The key with these bytes, if they are one.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; KEY_BYTES] = bytes.try_into().ok()?;
        Some(SealTo(PublicKey::from(bytes)))
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        self.0.as_bytes()
    }

    /// What it is called.
    #[must_use]
    pub fn id(&self) -> String {
        hex::encode(&Sha256::digest(self.bytes())[..ID_BYTES])
    }

    /// Seals secrets.
    pub fn seal(&self, bond: Bond, secrets: &Secrets) -> Result<Sealed, Error> {
        let text = Zeroizing::new(serde_json::to_vec(secrets).map_err(|_| Error::Unsealable)?);
        let id = Uuid::now_v7();
        let key = Zeroizing::new(random::<KEY_BYTES>()?);
        let nonce = random::<NONCE_BYTES>()?;
        let payload = Payload { msg: &text, aad: &bond.bytes(CONTENT, id) };
        let content = cipher(&key).encrypt(&XNonce::from(nonce), payload).map_err(|_| Error::Unsealable)?;
        let wrapped = self.wrap(bond, id, &key)?;
        Ok(Sealed { id, key_id: self.id(), wrapped, content: [&nonce[..], &content].concat() })
    }

    /// Seals a content's key: the ephemeral public key, then what was sealed with its help.
    fn wrap(&self, bond: Bond, id: Uuid, key: &[u8; KEY_BYTES]) -> Result<Vec<u8>, Error> {
        let ephemeral = StaticSecret::from(random::<KEY_BYTES>()?);
        let from = PublicKey::from(&ephemeral);
        let shared = ephemeral.diffie_hellman(&self.0);
        // A point of low order would make the shared key known to everybody.
        if !shared.was_contributory() {
            return Err(Error::Unsealable);
        }
        let wrapping = wrapping_key(shared.as_bytes(), &from, &self.0)?;
        let payload = Payload { msg: key, aad: &bond.bytes(WRAPPED, id) };
        // Used once, so that its nonce need not differ from any other.
        let sealed = cipher(&wrapping).encrypt(&XNonce::default(), payload).map_err(|_| Error::Unsealable)?;
        Ok([&from.as_bytes()[..], &sealed].concat())
    }
}

/// The private halves that one side has: the newest, to which others seal, and earlier ones that may still be needed.
#[derive(Clone)]
pub struct Keyring {
    path: PathBuf,
    keys: Vec<StaticSecret>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("path", &self.path).field("keys", &self.ids()).finish()
    }
}

/// What stands at the top of a file of keys.
const HEADER: &str =
    "# Private keys. Whoever reads this file can open secrets of scripts. One a line, the newest last.\n";

impl Keyring {
    /// Reads a file of keys; none if there is no such file.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file(path, error)),
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys = lines.map(parse_key).collect::<Option<Vec<_>>>().filter(|keys| !keys.is_empty());
        let keys = keys.ok_or_else(|| Error::KeyFile(path.to_owned()))?;
        Ok(Some(Keyring { path: path.to_owned(), keys }))
    }

    /// Makes a file with a first key. Whoever is second finds it there.
    pub fn make(path: &Path) -> Result<Self, Error> {
        let key = StaticSecret::from(random::<KEY_BYTES>()?);
        if let Some(folder) = path.parent() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| Error::file(folder, error))?;
        }
        let made = Keyring { path: path.to_owned(), keys: vec![key] };
        match made.write(path) {
            Err(Error::File { error, .. }) if error.kind() == ErrorKind::AlreadyExists => {
                Keyring::read(path)?.ok_or_else(|| Error::KeyFile(path.to_owned()))
            }
            written => written.map(|()| made),
        }
    }

    /// The same with a new key, which is in the file when this returns.
    pub fn with_new_key(&self) -> Result<Self, Error> {
        let mut next = self.clone();
        next.keys.push(StaticSecret::from(random::<KEY_BYTES>()?));
        next.replace()?;
        Ok(next)
    }

    /// The same without the keys that `is_needed` does not name; the newest stays.
    pub fn without_old_keys(&self, is_needed: impl Fn(&str) -> bool) -> Result<Self, Error> {
        let mut next = self.clone();
        let newest = self.newest();
        next.keys.retain(|key| {
            let public = SealTo(PublicKey::from(key));
            public == newest || is_needed(&public.id())
        });
        next.replace()?;
        Ok(next)
    }

    /// The key to seal to.
    #[must_use]
    pub fn newest(&self) -> SealTo {
        let newest = self.keys.last().expect("a keyring is made with a key and never loses its newest");
        SealTo(PublicKey::from(newest))
    }

    /// The names of its keys, the newest last.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.keys.iter().map(|key| SealTo(PublicKey::from(key)).id()).collect()
    }

    /// The same with what others have added to the file meanwhile.
    pub fn reread(&self) -> Result<Self, Error> {
        Keyring::read(&self.path)?.ok_or_else(|| Error::KeyFile(self.path.clone()))
    }

    /// Opens a seal.
    pub fn open(&self, bond: Bond, sealed: &Sealed) -> Result<Secrets, Error> {
        let key = self.unwrap_key(bond, sealed)?;
        let (nonce, content) = sealed.content.split_first_chunk::<NONCE_BYTES>().ok_or(Error::BrokenSeal)?;
        let payload = Payload { msg: content, aad: &bond.bytes(CONTENT, sealed.id) };
        let text = cipher(&key).decrypt(&XNonce::from(*nonce), payload).map_err(|_| Error::BrokenSeal)?;
        serde_json::from_slice(&Zeroizing::new(text)).map_err(|_| Error::BrokenSeal)
    }

    /// Turns a seal to another key; the content stays as it is.
    pub fn turn(&self, bond: Bond, sealed: &Sealed, to: &SealTo) -> Result<Sealed, Error> {
        let key = self.unwrap_key(bond, sealed)?;
        let wrapped = to.wrap(bond, sealed.id, &key)?;
        Ok(Sealed { key_id: to.id(), wrapped, ..sealed.clone() })
    }

    fn unwrap_key(&self, bond: Bond, sealed: &Sealed) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
        let is_meant = |key: &&StaticSecret| SealTo(PublicKey::from(*key)).id() == sealed.key_id;
        let secret = self.keys.iter().find(is_meant).ok_or_else(|| Error::NoKey(sealed.key_id.clone()))?;
        let (from, wrapped) = sealed.wrapped.split_first_chunk::<KEY_BYTES>().ok_or(Error::BrokenSeal)?;
        let from = PublicKey::from(*from);
        let shared = secret.diffie_hellman(&from);
        let wrapping = wrapping_key(shared.as_bytes(), &from, &PublicKey::from(secret))?;
        let payload = Payload { msg: wrapped, aad: &bond.bytes(WRAPPED, sealed.id) };
        let key = cipher(&wrapping).decrypt(&XNonce::default(), payload).map_err(|_| Error::BrokenSeal)?;
        let key = Zeroizing::new(key);
        Ok(Zeroizing::new(key.as_slice().try_into().map_err(|_| Error::BrokenSeal)?))
    }

    /// Writes the file anew, whole or not at all.
    fn replace(&self) -> Result<(), Error> {
        let beside = self.path.with_extension("new");
        // One that a crash left behind is nobody's.
        let _ = fs::remove_file(&beside);
        self.write(&beside)?;
        fs::rename(&beside, &self.path).map_err(|error| Error::file(&self.path, error))
    }

    fn write(&self, path: &Path) -> Result<(), Error> {
        let line = |key: &StaticSecret| format!("{}\n", hex::encode(key.as_bytes()));
        let text = Zeroizing::new(HEADER.to_owned() + &self.keys.iter().map(line).collect::<String>());
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let written = file.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|error| Error::file(path, error))
    }
}

fn parse_key(line: &str) -> Option<StaticSecret> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    hex::decode_to_slice(line, &mut *key).ok()?;
    Some(StaticSecret::from(*key))
}

fn cipher(key: &[u8; KEY_BYTES]) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&(*key).into())
}

/// The key that two sides agree on, bound to both of their public halves.
fn wrapping_key(
    shared: &[u8],
    from: &PublicKey,
    to: &PublicKey,
) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
    let salt = [&from.as_bytes()[..], to.as_bytes()].concat();
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    Hkdf::<Sha256>::new(Some(&salt), shared).expand(WRAPPED, &mut *key).map_err(|_| Error::Unsealable)?;
    Ok(key)
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Unsealable)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.insert("password", json!("SecurePass123!"));
        secrets
    }

    fn bond() -> Bond {
        Bond { owner: Uuid::from_u128(7), part: SecretPart::Input }
    }

    fn keyring(folder: &tempfile::TempDir) -> Keyring {
        Keyring::make(&folder.path().join("keys/worker.key")).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_for_whoever_has_the_key_and_nobody_else() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (keys, others) = (keyring(&ours), keyring(&theirs));
        let sealed = keys.newest().seal(bond(), &secrets()).unwrap();
        assert_eq!(keys.open(bond(), &sealed).unwrap(), secrets());
        assert!(matches!(others.open(bond(), &sealed), Err(Error::NoKey(_))));
        let text = [&sealed.wrapped[..], &sealed.content].concat();
        assert!(!text.windows(6).any(|part| part == b"Secure"), "the content is not readable");
    }

    #[test]
    fn two_seals_of_the_same_secret_have_nothing_in_common() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keyring(&folder);
        let [one, other] = [(), ()].map(|()| keys.newest().seal(bond(), &secrets()).unwrap());
        assert!(one.content != other.content && one.wrapped != other.wrapped && one.id != other.id);
    }

    #[test]
    fn a_seal_that_was_changed_or_moved_does_not_open() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keyring(&folder);
        let sealed = keys.newest().seal(bond(), &secrets()).unwrap();
        let mut changed = [sealed.clone(), sealed.clone(), sealed.clone(), sealed.clone()];
        changed[0].content[30] ^= 1;
        changed[1].wrapped[40] ^= 1;
        changed[2].id = Uuid::now_v7();
        changed[3].wrapped.truncate(20);
        for sealed in &changed {
            assert!(matches!(keys.open(bond(), sealed), Err(Error::BrokenSeal)));
        }
        let elsewhere =
            [Bond { owner: Uuid::from_u128(8), ..bond() }, Bond { part: SecretPart::Result, ..bond() }];
        for bond in elsewhere {
            assert!(matches!(keys.open(bond, &sealed), Err(Error::BrokenSeal)));
        }
    }

    #[test]
    fn a_seal_turns_to_a_new_key_and_the_old_one_can_go() {
        let folder = tempfile::tempdir().unwrap();
        let old = keyring(&folder);
        let sealed = old.newest().seal(bond(), &secrets()).unwrap();
        let both = old.with_new_key().unwrap();
        assert_ne!(both.newest(), old.newest());
        let turned = both.turn(bond(), &sealed, &both.newest()).unwrap();
        assert_eq!(turned.content, sealed.content);
        let new = both.without_old_keys(|_| false).unwrap();
        assert_eq!(new.reread().unwrap().ids(), [new.newest().id()]);
        assert_eq!(new.open(bond(), &turned).unwrap(), secrets());
        assert!(matches!(new.open(bond(), &sealed), Err(Error::NoKey(_))));
        assert!(matches!(old.open(bond(), &turned), Err(Error::NoKey(_))));
    }

    #[test]
    fn a_file_of_keys_is_made_once_and_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let keys = keyring(&folder);
        assert_eq!(keyring(&folder).ids(), keys.ids());
        let path = folder.path().join("keys/worker.key");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!format!("{keys:?}").contains(&hex::encode(keys.keys[0].as_bytes())));
        fs::write(&path, "not a key").unwrap();
        assert!(matches!(Keyring::read(&path), Err(Error::KeyFile(_))));
        assert!(Keyring::read(&folder.path().join("none")).unwrap().is_none());
    }
}
