//! Maps that people keep and change, and maps that are frozen for print.

use jiff::Timestamp;
use ode_job::Owner;
use ode_store::Error;
use ode_store::sql::{LIST_MAX, Param, Row, Sql, Tx, owner_columns, params, without_nul};
use uuid::Uuid;

/// What keeps a map from being read, changed or printed.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// There is no such map, or it is another owner's: the answer is the same.
    #[error("There is no map {0}. Check the id.")]
    Missing(Uuid),
    /// Somebody changed the map since it was read; this is its version now.
    #[error(
        "The map has changed: it is at version {0} now. Read it again, and send your change with that version."
    )]
    Changed(i64),
    /// The database refused.
    #[error(transparent)]
    Store(#[from] Error),
}

/// A map that somebody keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMap {
    /// Its identity; later ones are greater.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: String,
    /// Counts changes, from 1.
    pub version: i64,
    /// Its features as GeoJSON text; none in a list.
    pub data: Option<String>,
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A map as it is printed. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintableMap {
    /// Its identity; later ones are greater.
    pub id: Uuid,
    pub owner: Owner,
    /// The map it was made of, and that one's version.
    pub made_of: Option<(Uuid, i64)>,
    /// What it is called on the paper, if it has a title.
    pub title: Option<String>,
    /// Its paper: a name, or width and height as JSON.
    pub page_size: Option<String>,
    /// Its specification in canonical form; none in a list.
    pub data: Option<String>,
    /// The digest of that, hexadecimal.
    pub sha256: String,
    /// When it was frozen.
    pub created_at: Timestamp,
}

/// A part of a list of maps, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapPage<T> {
    pub maps: Vec<T>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<Uuid>,
}

/// Only what an owner may see: `$2` to `$4` are theirs; an operator, who is none of them, sees all.
macro_rules! theirs {
    () => {
        "($2 IS NULL OR session_id = $2) AND ($3 IS NULL OR user_id = $3) AND ($4 IS NULL OR organisation_id = $4)"
    };
}

const ADD_USER_MAP: &str = "INSERT INTO user_maps (id, session_id, user_id, organisation_id, name, data)
    VALUES ($1, $2, $3, $4, $5, {json $6}) RETURNING id, name, version, created_at, updated_at";
const USER_MAP: &str = concat!(
    "SELECT id, name, version, CAST(data AS text) AS data, created_at, updated_at FROM user_maps
    WHERE id = $1 AND deleted_at IS NULL AND ",
    theirs!()
);
const USER_MAPS: &str = concat!(
    "SELECT id, name, version, created_at, updated_at FROM user_maps
    WHERE ($1 IS NULL OR id < $1) AND deleted_at IS NULL AND ",
    theirs!(),
    " ORDER BY id DESC LIMIT $5"
);
const CHANGE_USER_MAP: &str = concat!(
    "UPDATE user_maps SET name = $5, data = {json $6}, version = version + 1, updated_at = {now}
    WHERE id = $1 AND deleted_at IS NULL AND ($7 IS NULL OR version = $7) AND ",
    theirs!(),
    " RETURNING id, name, version, created_at, updated_at"
);
const REMOVE_USER_MAP: &str = concat!(
    "DELETE FROM user_maps WHERE id = $1 AND deleted_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM printable_maps p WHERE p.user_map_id = $1) AND ",
    theirs!(),
    " RETURNING id"
);
/// What it showed goes; that it was there stays, for the frozen maps that name it.
const EMPTY_USER_MAP: &str = concat!(
    "UPDATE user_maps SET name = 'deleted', data = NULL, version = version + 1, updated_at = {now}, deleted_at = {now}
    WHERE id = $1 AND deleted_at IS NULL AND ",
    theirs!(),
    " RETURNING id"
);
const PRINTABLE_MAP: &str = concat!(
    "SELECT id, session_id, user_id, organisation_id, user_map_id, user_map_version, title, page_size,
        CAST(data AS text) AS data, sha256, created_at
    FROM printable_maps WHERE id = $1 AND ",
    theirs!()
);
const PRINTABLE_MAPS: &str = concat!(
    "SELECT id, session_id, user_id, organisation_id, user_map_id, user_map_version, title, page_size, sha256,
        created_at
    FROM printable_maps WHERE ($1 IS NULL OR id < $1) AND ",
    theirs!(),
    " ORDER BY id DESC LIMIT $5"
);
/// Maps that no job prints, oldest first.
const UNPRINTED: &str =
    "SELECT id, session_id, user_id, organisation_id, user_map_id, user_map_version, title, page_size, sha256,
        created_at
    FROM printable_maps m WHERE id > $1 AND NOT EXISTS (SELECT 1 FROM map_print p WHERE p.printable_map_id = m.id)
    ORDER BY id LIMIT $2";
const ADOPT_USER_MAPS: &str = "UPDATE user_maps SET user_id = $2 WHERE session_id = $1 AND user_id IS NULL";
const ADOPT_PRINTABLE_MAPS: &str =
    "UPDATE printable_maps SET user_id = $2 WHERE session_id = $1 AND user_id IS NULL";

/// Keeps a map: a name and GeoJSON that was found right.
pub async fn add_user_map(sql: Sql<'_>, owner: Owner, name: &str, data: &str) -> Result<UserMap, Error> {
    let [session, user, organisation] = owner_columns(owner);
    let params = params![Uuid::now_v7(), session, user, organisation, without_nul(name), data];
    let rows = sql.write(ADD_USER_MAP, params).await?;
    UserMap::read(rows.first().ok_or_else(|| Error::Corrupt("a map that was just made".into()))?)
}

/// A map with its features.
pub async fn user_map(sql: Sql<'_>, owner: Owner, id: Uuid) -> Result<UserMap, MapError> {
    let rows = sql.read(USER_MAP, &owned(id, owner)).await?;
    let row = rows.first().ok_or(MapError::Missing(id))?;
    Ok(UserMap { data: row.opt_text("data")?, ..UserMap::read(row)? })
}

/// An owner's maps, newest first.
pub async fn user_maps(
    sql: Sql<'_>,
    owner: Owner,
    before: Option<Uuid>,
    limit: usize,
) -> Result<MapPage<UserMap>, Error> {
    let (params, limit) = part(owner, before, limit);
    MapPage::of(&sql.read(USER_MAPS, &params).await?, limit, UserMap::read, |map| map.id)
}

/// Replaces a map's name and features; only if it is still at `version`, where one is given.
pub async fn change_user_map(
    sql: Sql<'_>,
    owner: Owner,
    id: Uuid,
    (name, data): (&str, &str),
    version: Option<i64>,
) -> Result<UserMap, MapError> {
    let mut params = owned(id, owner);
    params.extend([without_nul(name).into(), data.into(), version.into()]);
    match sql.write(CHANGE_USER_MAP, &params).await?.first() {
        Some(row) => Ok(UserMap::read(row)?),
        None => Err(MapError::Changed(user_map(sql, owner, id).await?.version)),
    }
}

/// Deletes a map and its features. What was frozen of it stays as it is.
pub async fn delete_user_map(sql: Sql<'_>, owner: Owner, id: Uuid) -> Result<(), MapError> {
    let mut tx = sql.begin().await?;
    let params = owned(id, owner);
    let is_gone = !tx.run(REMOVE_USER_MAP, &params).await?.is_empty()
        || !tx.run(EMPTY_USER_MAP, &params).await?.is_empty();
    if !is_gone {
        return Err(MapError::Missing(id));
    }
    Ok(tx.commit().await?)
}

/// A frozen map with its specification.
pub async fn printable_map(sql: Sql<'_>, owner: Owner, id: Uuid) -> Result<PrintableMap, MapError> {
    let rows = sql.read(PRINTABLE_MAP, &owned(id, owner)).await?;
    let row = rows.first().ok_or(MapError::Missing(id))?;
    Ok(PrintableMap { data: Some(frozen_text(row)?), ..PrintableMap::read(row)? })
}

/// An owner's frozen maps, newest first.
pub async fn printable_maps(
    sql: Sql<'_>,
    owner: Owner,
    before: Option<Uuid>,
    limit: usize,
) -> Result<MapPage<PrintableMap>, Error> {
    let (params, limit) = part(owner, before, limit);
    MapPage::of(&sql.read(PRINTABLE_MAPS, &params).await?, limit, PrintableMap::read, |map| map.id)
}

/// Frozen maps that no job prints, after this one and oldest first; nothing when there are no more.
pub async fn unprinted_maps(sql: Sql<'_>, after: Uuid, limit: usize) -> Result<Vec<PrintableMap>, Error> {
    let limit = i64::try_from(limit.clamp(1, LIST_MAX)).unwrap_or(i64::MAX);
    sql.read(UNPRINTED, params![after, limit]).await?.iter().map(PrintableMap::read).collect()
}

/// Gives a session's maps to a user as well. The session keeps seeing them.
pub(crate) async fn adopt_maps(tx: &mut Tx, session: Uuid, user: Uuid) -> Result<(), Error> {
    for statement in [ADOPT_USER_MAPS, ADOPT_PRINTABLE_MAPS] {
        tx.run(statement, params![session, user]).await?;
    }
    Ok(())
}

fn owned(id: Uuid, owner: Owner) -> Vec<Param> {
    let [session, user, organisation] = owner_columns(owner);
    vec![id.into(), session.into(), user.into(), organisation.into()]
}

/// Parameters that ask for a part of a list and one more, and how much the part is.
fn part(owner: Owner, before: Option<Uuid>, limit: usize) -> (Vec<Param>, usize) {
    let limit = limit.clamp(1, LIST_MAX);
    let [session, user, organisation] = owner_columns(owner);
    let count = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    (vec![before.into(), session.into(), user.into(), organisation.into(), count.into()], limit)
}

impl<T> MapPage<T> {
    fn of(
        rows: &[Row],
        limit: usize,
        read: fn(&Row) -> Result<T, Error>,
        id: fn(&T) -> Uuid,
    ) -> Result<Self, Error> {
        let maps = rows.iter().take(limit).map(read).collect::<Result<Vec<_>, _>>()?;
        let next_cursor = maps.last().map(id).filter(|_| rows.len() > limit);
        Ok(MapPage { maps, next_cursor })
    }
}

impl UserMap {
    fn read(row: &Row) -> Result<Self, Error> {
        Ok(UserMap {
            id: row.uuid("id")?,
            name: row.text("name")?,
            version: row.int("version")?,
            data: None,
            created_at: row.moment("created_at")?,
            updated_at: row.moment("updated_at")?,
        })
    }
}

impl PrintableMap {
    fn read(row: &Row) -> Result<Self, Error> {
        let organisation = row.opt_uuid("organisation_id")?.map(Owner::Organisation);
        // A session whose maps a user adopted is named as well.
        let user = row.opt_uuid("user_id")?.map(Owner::User);
        let session = row.opt_uuid("session_id")?.map(Owner::Session);
        Ok(PrintableMap {
            id: row.uuid("id")?,
            owner: organisation.or(user).or(session).unwrap_or(Owner::Operator),
            made_of: row.opt_uuid("user_map_id")?.zip(row.opt_int("user_map_version")?),
            title: row.opt_text("title")?.filter(|title| !title.is_empty()),
            page_size: row.opt_text("page_size")?,
            data: None,
            sha256: row.text("sha256")?,
            created_at: row.moment("created_at")?,
        })
    }
}

/// The specification of a row, which must be the one that was frozen.
pub(super) fn frozen_text(row: &Row) -> Result<String, Error> {
    let data = row.text("data")?;
    if ode_store::sha256_hex(&data) == row.text("sha256")? {
        Ok(data)
    } else {
        Err(Error::Corrupt("a printable map that is not the one that was frozen".into()))
    }
}
