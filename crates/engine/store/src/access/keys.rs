//! Who may ask: API keys of users and organisations, what a session leaves to a user, and the secrets that web
//! processes share.
//!
//! A key reads `ode_<id>_<secret><check>`: the id finds its row, the secret is 256 random bits of which only a digest is
//! stored, and the check tells a mistyped key, or a find in a public place, without asking the database.

use crate::Store;
use crate::database::db::{Param, Row, params};
use crate::error::Error;
use crate::files::blobs::sha256_hex;
use crate::schema::declaration::declared;
use jiff::Timestamp;
use ode_job::Owner;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

const PREFIX: &str = "ode_";
const ID_CHARS: usize = 12;
const SECRET_CHARS: usize = 64;
const CHECK_CHARS: usize = 8;

/// A key as somebody sent it, whole and with the right check. It can be looked up, and is never printed.
#[derive(Clone)]
pub struct KeyText {
    id: String,
    secret: String,
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyText").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Text that is no key of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("This is not an API key, or a part of it is missing. Keys begin with ode_.")]
pub struct NotAKey;

impl FromStr for KeyText {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (id, rest) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(NotAKey)?;
        let is_hex = |part: &str| part.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        if id.len() != ID_CHARS || rest.len() != SECRET_CHARS + CHECK_CHARS || !is_hex(id) || !is_hex(rest) {
            return Err(NotAKey);
        }
        let (secret, check) = rest.split_at(SECRET_CHARS);
        if check_of(id, secret) != check {
            return Err(NotAKey);
        }
        Ok(KeyText { id: id.to_owned(), secret: secret.to_owned() })
    }
}

impl KeyText {
    fn fresh() -> Result<Self, Error> {
        let mut random = [0; (ID_CHARS + SECRET_CHARS) / 2];
        fill(&mut random)?;
        let (id, secret) = random.split_at(ID_CHARS / 2);
        Ok(KeyText { id: hex::encode(id), secret: hex::encode(secret) })
    }

    /// The part that may be shown.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The part that may not.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The whole key, to be shown once to whoever it is for.
    fn reveal(&self) -> String {
        let KeyText { id, secret } = self;
        format!("{PREFIX}{id}_{secret}{}", check_of(id, secret))
    }

    fn digest(&self) -> Vec<u8> {
        Sha256::digest(self.secret.as_bytes()).to_vec()
    }
}

fn check_of(id: &str, secret: &str) -> String {
    let mut check = sha256_hex(format!("{id}_{secret}").as_bytes());
    check.truncate(CHECK_CHARS);
    check
}

pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes)
        .map_err(|error| Error::Unavailable(format!("the system has no random numbers: {error}")))
}

/// Who a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// A person.
    User,
    Organisation,
}

impl OwnerKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            OwnerKind::User => "user",
            OwnerKind::Organisation => "organisation",
        }
    }

    fn owner(self, id: Uuid) -> Owner {
        match self {
            OwnerKind::User => Owner::User(id),
            OwnerKind::Organisation => Owner::Organisation(id),
        }
    }

    fn parse(name: &str) -> Result<Self, Error> {
        [OwnerKind::User, OwnerKind::Organisation]
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| Error::Corrupt(format!("owner kind {name}")))
    }
}

/// A key as it can be listed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ApiKey {
    /// The part after `ode_`, which finds it.
    pub id: String,
    /// What kind of owner it speaks for.
    pub kind: OwnerKind,
    pub owner: String,
    /// The owner's id, which their jobs carry.
    pub owner_id: Uuid,
    /// What it is for.
    pub name: String,
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Option<Timestamp>,
    /// When it stopped being valid.
    pub revoked_at: Option<Timestamp>,
}

/// A key that was just made.
pub struct NewKey {
    /// All of it. Not stored anywhere: whoever needs it must be told now.
    pub text: String,
    /// What can be listed of it.
    pub key: ApiKey,
}

/// Who a valid key speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Principal {
    pub owner: Owner,
}

const FIND_OWNER: &str = "SELECT id FROM owner WHERE kind = $1 AND name = $2";
const ADD_OWNER: &str = "INSERT INTO owner (id, kind, name) VALUES ($1, $2, $3)
    ON CONFLICT (kind, name) WHERE name IS NOT NULL DO NOTHING";
const ADD_KEY: &str = "INSERT INTO api_key (id, owner, name, secret_hash) VALUES ($1, $2, $3, $4)";
const KEYS: &str =
    "SELECT k.id, o.kind, o.name AS owner, o.id AS owner_id, k.name, k.created_at, k.used_at, k.revoked_at
    FROM api_key k JOIN owner o ON o.id = k.owner ORDER BY k.created_at, k.id";
const REVOKE: &str = "UPDATE api_key SET revoked_at = coalesce(revoked_at, {now}) WHERE id = $1 RETURNING id";
const BY_ID: &str =
    "SELECT k.secret_hash, o.kind, o.id AS owner_id FROM api_key k JOIN owner o ON o.id = k.owner
    WHERE k.id = $1 AND k.revoked_at IS NULL";
const OWNER_NAME: &str = "SELECT name FROM owner WHERE id = $1";
const USED: &str =
    "UPDATE api_key SET used_at = {now} WHERE id = $1 AND (used_at IS NULL OR used_at < {after $2})";
const ADOPT_LIVE: &str =
    "UPDATE job_live SET user_id = $2 WHERE session_id = $1 AND user_id IS NULL RETURNING id";
const ADOPT_PAST: &str =
    "UPDATE job_past SET user_id = $2 WHERE session_id = $1 AND user_id IS NULL RETURNING id";
const ADOPT_KEYS: &str = "INSERT INTO job_key (kind, owner, key, job_id)
    SELECT kind, $2, key, job_id FROM job_key WHERE owner = $1 AND kind = 'dedupe'
    ON CONFLICT (kind, owner, key) DO NOTHING";
const ADD_SECRET: &str = "INSERT INTO web_key (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
const SECRET: &str = "SELECT secret FROM web_key WHERE name = $1";
/// Uses within so long of the last one are not written down.
const USED_EVERY_MICROS: i64 = 60_000_000;

impl Store {
    /// Makes a key for a person or an organisation, who is known by name from then on.
    pub async fn create_key(&self, kind: OwnerKind, owner: &str, name: &str) -> Result<NewKey, Error> {
        let text = KeyText::fresh()?;
        let mut tx = self.db().begin().await?;
        tx.run(ADD_OWNER, params![Uuid::now_v7(), kind.as_str(), owner]).await?;
        let owners = tx.run(FIND_OWNER, params![kind.as_str(), owner]).await?;
        let owner = owners.first().ok_or_else(|| Error::Corrupt("an owner that was just made".into()))?;
        let owner = owner.uuid("id")?;
        let row = [text.id().into(), owner.into(), name.into(), Param::Bytes(text.digest())];
        tx.run(ADD_KEY, &row).await?;
        tx.commit().await?;
        let keys = self.keys().await?;
        let key = keys.into_iter().find(|key| key.id == text.id());
        let key = key.ok_or_else(|| Error::Corrupt("a key that was just made".into()))?;
        Ok(NewKey { text: text.reveal(), key })
    }

    /// The organisation by this name or id.
    pub async fn organisation(&self, name: &str) -> Result<Option<Uuid>, Error> {
        let rows = self.db().read(FIND_OWNER, params![OwnerKind::Organisation.as_str(), name]).await?;
        match (rows.first(), name.parse()) {
            (Some(row), _) => row.uuid("id").map(Some),
            (None, Ok(id)) => Ok(Some(id)),
            (None, Err(_)) => Ok(None),
        }
    }

    /// Every key there is or was, oldest first.
    pub async fn keys(&self) -> Result<Vec<ApiKey>, Error> {
        self.db().read(KEYS, params![]).await?.iter().map(api_key).collect()
    }

    /// Ends a key. False if there is none by that id; one that has ended stays so.
    pub async fn revoke_key(&self, id: &str) -> Result<bool, Error> {
        Ok(!self.db().write(REVOKE, params![id]).await?.is_empty())
    }

    /// Who this key speaks for; nobody if it is unknown or was revoked.
    pub async fn authenticate(&self, key: &KeyText) -> Result<Option<Principal>, Error> {
        let rows = self.db().read(BY_ID, params![key.id()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        if !is_same(&row.bytes("secret_hash")?, &key.digest()) {
            return Ok(None);
        }
        let owner = key_owner(row)?;
        self.db().write(USED, params![key.id(), -USED_EVERY_MICROS]).await?;
        Ok(Some(Principal { owner }))
    }

    /// Who a key that was shown before speaks for; nobody once it is revoked.
    pub async fn speaks_for(&self, key_id: &str) -> Result<Option<Owner>, Error> {
        let rows = self.db().read(BY_ID, params![key_id]).await?;
        rows.first().map(key_owner).transpose()
    }

    /// What a person or an organisation is called, where they are known by a name.
    pub async fn owner_name(&self, owner: Owner) -> Result<Option<String>, Error> {
        let (Owner::User(id) | Owner::Organisation(id)) = owner else { return Ok(None) };
        let rows = self.db().read(OWNER_NAME, params![id]).await?;
        Ok(rows.first().map(|row| row.opt_text("name")).transpose()?.flatten())
    }

    /// Gives a session's jobs, and what its pipelines keep for it, to a user as well; returns how many jobs. The session keeps seeing them.
    pub async fn adopt(&self, session: Uuid, user: Uuid) -> Result<usize, Error> {
        let mut tx = self.db().begin().await?;
        let live = tx.run(ADOPT_LIVE, params![session, user]).await?.len();
        let past = tx.run(ADOPT_PAST, params![session, user]).await?.len();
        if live + past > 0 {
            tx.run(ADOPT_KEYS, params![session, user]).await?;
        }
        for declaration in declared() {
            (declaration.rules.adopt)(&mut tx, session, user).await?;
        }
        tx.commit().await?;
        Ok(live + past)
    }

    /// A secret that every web process on this database shares, made by whoever asks first.
    pub async fn shared_secret(&self, name: &str) -> Result<Vec<u8>, Error> {
        let rows = self.db().read(SECRET, params![name]).await?;
        if let Some(row) = rows.first() {
            return row.bytes("secret");
        }
        let mut fresh = vec![0; 32];
        fill(&mut fresh)?;
        self.db().write(ADD_SECRET, &[name.into(), Param::Bytes(fresh)]).await?;
        let rows = self.db().read(SECRET, params![name]).await?;
        rows.first().ok_or_else(|| Error::Corrupt("a secret that was just made".into()))?.bytes("secret")
    }
}

/// Compares without saying by its time where two differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn key_owner(row: &Row) -> Result<Owner, Error> {
    Ok(OwnerKind::parse(&row.text("kind")?)?.owner(row.uuid("owner_id")?))
}

fn api_key(row: &Row) -> Result<ApiKey, Error> {
    Ok(ApiKey {
        id: row.text("id")?,
        kind: OwnerKind::parse(&row.text("kind")?)?,
        owner: row.opt_text("owner")?.unwrap_or_default(),
        owner_id: row.uuid("owner_id")?,
        name: row.text("name")?,
        created_at: row.moment("created_at")?,
        used_at: row.opt_moment("used_at")?,
        revoked_at: row.opt_moment("revoked_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_a_mistyped_one_is_told_without_a_database() {
        let text = KeyText::fresh().unwrap().reveal();
        assert_eq!(text.parse::<KeyText>().unwrap().reveal(), text);
        for at in 0..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[at] = if wrong[at] == b'0' { b'1' } else { b'0' };
            assert!(String::from_utf8(wrong).unwrap().parse::<KeyText>().is_err(), "character {at}");
        }
        for wrong in ["", "ode_", "ode__", "ode_é_", &text[1..], &text[..text.len() - 1]] {
            assert!(wrong.parse::<KeyText>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let key = KeyText::fresh().unwrap();
        assert!(!format!("{key:?}").contains(&key.secret));
    }
}
