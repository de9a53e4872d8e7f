//! The public keys that secrets of scripts are sealed to.

use jiff::Timestamp;
use ode_store::Error;
use ode_store::sql::{Held, Param, Row, Sql, params};

/// Who has the private half of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SealSide {
    /// Workers: what is sent with jobs is sealed to them.
    Worker,
    /// The web side: what comes of jobs is sealed to it, to be shown once.
    Web,
}

impl SealSide {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SealSide::Worker => "worker",
            SealSide::Web => "web",
        }
    }
}

/// The public half of a key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SealKey {
    pub id: String,
    /// Who has the other half.
    pub side: SealSide,
    /// The key.
    #[serde(skip)]
    pub public: Vec<u8>,
    /// Since when it is used.
    pub created_at: Timestamp,
    /// Since when nothing new is sealed to it.
    pub retired_at: Option<Timestamp>,
    /// How many secrets need it.
    pub in_use: i64,
}

const PUBLISH: &str = "INSERT INTO seal_key (id, side, public) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET retired_at = NULL";
const RETIRE: &str =
    "UPDATE seal_key SET retired_at = {now} WHERE side = $1 AND id <> $2 AND retired_at IS NULL";
const NEWEST: &str = "SELECT id, side, public, created_at, retired_at, 0 AS in_use FROM seal_key
    WHERE side = $1 AND retired_at IS NULL ORDER BY created_at DESC, id LIMIT 1";
const KEYS: &str = "SELECT k.id, k.side, k.public, k.created_at, k.retired_at,
        (SELECT count(*) FROM script_secret s WHERE s.key_id = k.id AND s.shredded_at IS NULL) AS in_use
    FROM seal_key k ORDER BY k.created_at, k.id";

/// Lets everybody seal to this key from now on, and to no other of its side.
pub async fn publish_seal_key(
    sql: Sql<'_>,
    side: SealSide,
    id: &str,
    public: &[u8; 32],
) -> Result<(), Error> {
    let mut tx = sql.begin().await?;
    let key = [id.into(), side.as_str().into(), Param::Bytes(public.to_vec())];
    tx.run(PUBLISH, &key).await?;
    tx.run(RETIRE, params![side.as_str(), id]).await?;
    tx.commit().await
}

/// The key to seal to, if there is one.
pub async fn seal_key(sql: Sql<'_>, side: SealSide) -> Result<Option<SealKey>, Error> {
    sql.read(NEWEST, params![side.as_str()]).await?.first().map(key).transpose()
}

/// The key that secrets of results are sealed to, if there is one.
pub async fn web_key(held: Held<'_>) -> Result<Option<SealKey>, Error> {
    held.read(NEWEST, params![SealSide::Web.as_str()]).await?.first().map(key).transpose()
}

/// Every key there is and was, oldest first.
pub async fn seal_keys(sql: Sql<'_>) -> Result<Vec<SealKey>, Error> {
    sql.read(KEYS, params![]).await?.iter().map(key).collect()
}

fn key(row: &Row) -> Result<SealKey, Error> {
    let side = match row.text("side")?.as_str() {
        "worker" => SealSide::Worker,
        _ => SealSide::Web,
    };
    Ok(SealKey {
        id: row.text("id")?,
        side,
        public: row.bytes("public")?,
        created_at: row.moment("created_at")?,
        retired_at: row.opt_moment("retired_at")?,
        in_use: row.int("in_use")?,
    })
}
