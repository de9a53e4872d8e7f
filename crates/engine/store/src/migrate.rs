//! The schema's versions: from nothing to the newest and back, safe when several processes start at once.

use crate::columns::lists;
use crate::db::{Db, Row, Tx, params};
use crate::dialect::Dialect;
use crate::error::Error;
use jiff::Timestamp;

/// One step of the schema.
struct Migration {
    version: i64,
    name: &'static str,
    up: [&'static str; 2],
    down: [&'static str; 2],
}

impl Migration {
    fn is_in(&self, applied: &[Status]) -> bool {
        applied.iter().any(|line| line.version == self.version)
    }
}

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            up: [
                include_str!(concat!("../migrations/postgres/", $name, ".up.sql")),
                include_str!(concat!("../migrations/sqlite/", $name, ".up.sql")),
            ],
            down: [
                include_str!(concat!("../migrations/postgres/", $name, ".down.sql")),
                include_str!(concat!("../migrations/sqlite/", $name, ".down.sql")),
            ],
        }
    };
}

const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_engine"),
    migration!(2, "0002_access"),
    migration!(3, "0003_web"),
    migration!(4, "0004_documents"),
    migration!(5, "0005_maps"),
    migration!(6, "0006_orders"),
    migration!(7, "0007_service"),
    migration!(8, "0008_scripts"),
    migration!(9, "0009_jobs_by_id"),
];

/// The newest version this program knows.
pub const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Any number, as long as nothing else locks it: two programs that migrate wait for each other here.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305815)";

const CREATE_POSTGRES: &str = "CREATE TABLE IF NOT EXISTS ode_schema (
    version bigint PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";
const CREATE_SQLITE: &str = "CREATE TABLE IF NOT EXISTS ode_schema (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";
const APPLIED: &str = "SELECT version, name, applied_at FROM ode_schema ORDER BY version";
/// Dropping a role takes it from its members without a word.
const MEMBERS: &str = "SELECT m.rolname::text AS name FROM pg_auth_members a
    JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
    WHERE r.rolname = 'ode_api' AND m.rolname <> current_user ORDER BY m.rolname";
const ROLE: &str = "SELECT 1 AS one FROM pg_roles WHERE rolname = 'ode_api'";
const RECORD: &str = "INSERT INTO ode_schema (version, name, applied_at) VALUES ($1, $2, {now})";
const FORGET: &str = "DELETE FROM ode_schema WHERE version = $1";

/// One line of `ode migrate status`.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Status {
    /// Its place in the order.
    pub version: i64,
    /// Its file.
    pub name: String,
    /// When it was applied, if it was.
    pub applied_at: Option<Timestamp>,
    /// Whether this program knows it; a newer one made it otherwise.
    pub is_known: bool,
}

/// What was taken away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The versions, newest first.
    pub versions: Vec<i64>,
    /// Roles that were members of `ode_api`, where that role went too.
    pub members: Vec<String>,
}

/// Brings the schema to the newest version; answers the versions that were missing.
pub(crate) async fn up(db: &Db) -> Result<Vec<i64>, Error> {
    unless_deadlocked(|| try_up(db)).await
}

async fn try_up(db: &Db) -> Result<Vec<i64>, Error> {
    let mut tx = lock(db).await?;
    let applied = applied(&mut tx).await?;
    check_not_newer(&applied)?;
    let mut done = Vec::new();
    for migration in MIGRATIONS.iter().filter(|migration| !migration.is_in(&applied)) {
        run(&mut tx, migration.version, migration.up, true).await?;
        tx.run(RECORD, params![migration.version, migration.name]).await?;
        done.push(migration.version);
    }
    tx.commit().await?;
    Ok(done)
}

/// Takes versions above `target` away, newest first. Down to zero nothing of ODE is left.
pub(crate) async fn down(db: &Db, target: i64) -> Result<Taken, Error> {
    unless_deadlocked(|| try_down(db, target)).await
}

async fn try_down(db: &Db, target: i64) -> Result<Taken, Error> {
    let mut tx = lock(db).await?;
    let applied = applied(&mut tx).await?;
    check_not_newer(&applied)?;
    let members = members(&mut tx).await?;
    let mut versions = Vec::new();
    let above = MIGRATIONS.iter().rev().filter(|migration| migration.version > target);
    for migration in above.filter(|migration| migration.is_in(&applied)) {
        run(&mut tx, migration.version, migration.down, false).await?;
        tx.run(FORGET, params![migration.version]).await?;
        versions.push(migration.version);
    }
    if target == 0 {
        tx.run("DROP TABLE ode_schema", params![]).await?;
    }
    let is_role_gone = !members.is_empty() && tx.run(ROLE, params![]).await?.is_empty();
    tx.commit().await?;
    Ok(Taken { versions, members: if is_role_gone { members } else { Vec::new() } })
}

async fn members(tx: &mut Tx) -> Result<Vec<String>, Error> {
    match tx.dialect() {
        Dialect::Postgres => tx.run(MEMBERS, params![]).await?.iter().map(|row| row.text("name")).collect(),
        Dialect::Sqlite => Ok(Vec::new()),
    }
}

/// The databases of one server share a role. Two that change it at once may wait for each other, and the server ends one of
/// them, which begins again.
async fn unless_deadlocked<T, F>(change: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    const TRIES: usize = 5;
    for _ in 1..TRIES {
        match change().await {
            Err(Error::Unavailable(said)) if said.contains("deadlock") => {}
            answer => return answer,
        }
    }
    change().await
}

/// What is applied and what is not.
pub(crate) async fn status(db: &Db) -> Result<Vec<Status>, Error> {
    // Without a transaction: readiness asks this often, and must not stand in line with those who write.
    let is_there = !db.read(exists_sql(db.dialect()), params![]).await?.is_empty();
    let applied = if is_there { lines(&db.read(APPLIED, params![]).await?)? } else { Vec::new() };
    let missing = MIGRATIONS.iter().filter(|migration| !migration.is_in(&applied)).map(|migration| Status {
        version: migration.version,
        name: migration.name.to_owned(),
        applied_at: None,
        is_known: true,
    });
    let missing: Vec<Status> = missing.collect();
    let mut status = [applied, missing].concat();
    status.sort_by_key(|line| line.version);
    Ok(status)
}

/// Refuses a database that this program would misunderstand.
pub(crate) async fn check(db: &Db) -> Result<(), Error> {
    let status = status(db).await?;
    check_not_newer(&status)?;
    let missing = status.into_iter().filter(|line| line.applied_at.is_none()).count();
    if missing > 0 {
        return Err(Error::Schema(format!(
            "The database is {missing} schema version(s) behind this program. Run `ode migrate up`."
        )));
    }
    Ok(())
}

fn check_not_newer(applied: &[Status]) -> Result<(), Error> {
    match applied.iter().map(|line| line.version).max() {
        Some(found) if found > NEWEST => Err(Error::Schema(format!(
            "The database has schema version {found} and this program knows {NEWEST}. Use a newer ode; nothing was changed."
        ))),
        _ => Ok(()),
    }
}

async fn lock(db: &Db) -> Result<Tx, Error> {
    let mut tx = db.begin().await?;
    if db.dialect() == Dialect::Postgres {
        tx.run(LOCK, params![]).await?;
    }
    if !exists(&mut tx).await? {
        let create = if db.dialect() == Dialect::Postgres { CREATE_POSTGRES } else { CREATE_SQLITE };
        tx.run(create, params![]).await?;
    }
    Ok(tx)
}

async fn exists(tx: &mut Tx) -> Result<bool, Error> {
    Ok(!tx.run(exists_sql(tx.dialect()), params![]).await?.is_empty())
}

fn exists_sql(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "SELECT 1 WHERE to_regclass('ode_schema') IS NOT NULL",
        Dialect::Sqlite => "SELECT 1 FROM sqlite_schema WHERE name = 'ode_schema'",
    }
}

async fn applied(tx: &mut Tx) -> Result<Vec<Status>, Error> {
    lines(&tx.run(APPLIED, params![]).await?)
}

fn lines(rows: &[Row]) -> Result<Vec<Status>, Error> {
    let line = |row: &Row| {
        let version = row.int("version")?;
        let is_known = MIGRATIONS.iter().any(|migration| migration.version == version);
        Ok(Status { version, name: row.text("name")?, applied_at: row.opt_moment("applied_at")?, is_known })
    };
    rows.iter().map(line).collect()
}

async fn run(tx: &mut Tx, version: i64, files: [&'static str; 2], is_up: bool) -> Result<(), Error> {
    let [postgres, sqlite] = [(Dialect::Postgres, files[0]), (Dialect::Sqlite, files[1])]
        .map(|(dialect, file)| lists::in_migration(dialect, version, is_up, file));
    let sql = match tx.dialect() {
        Dialect::Sqlite => sqlite,
        Dialect::Postgres => {
            let version =
                tx.run("SELECT current_setting('server_version_num')::bigint AS version", params![]).await?;
            let version = version.first().map_or(Ok(0), |row| row.int("version"))?;
            // Views that run with their reader's rights came with version 15. Before it the API role gets no
            // access to the views at all, which is the safe side of the difference.
            if version < 150_000 { postgres.replace("WITH (security_invoker) ", "") } else { postgres }
        }
    };
    Db::run_file(tx, sql).await
}
