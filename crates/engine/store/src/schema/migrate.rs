//! The schema's versions: from nothing to the newest and back, safe when several processes start at once.
//!
//! A migration is known by its name. Its version is given when it is applied, so that a pipeline that is added later gets the
//! next one.

use crate::database::db::{Db, Row, Tx, params};
use crate::database::dialect::Dialect;
use crate::error::Error;
use crate::schema::columns::lists;
use crate::schema::declaration::{Declaration, declared};
use crate::schema::machines::{self, Made};
use jiff::Timestamp;

/// One step of the schema, made by [`migration!`](crate::migration).
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its name, by which a database knows it: no two migrations have the same.
    pub name: &'static str,
    /// What makes it, for PostgreSQL and for SQLite.
    pub up: [&'static str; 2],
    /// What takes it away again, with all it holds.
    pub down: [&'static str; 2],
}

/// The migration of this name, from the files `NAME.up.sql` and `NAME.down.sql` in the folders `migrations/postgres` and
/// `migrations/sqlite` of the crate that says so.
#[macro_export]
macro_rules! migration {
    ($name:literal) => {
        $crate::Migration {
            name: $name,
            up: [
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres/", $name, ".up.sql")),
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite/", $name, ".up.sql")),
            ],
            down: [
                include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/migrations/postgres/",
                    $name,
                    ".down.sql"
                )),
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite/", $name, ".down.sql")),
            ],
        }
    };
}

/// The engine's own migrations, which come first.
const KERNEL: &[Migration] = &[migration!("0001_kernel")];
/// Migrations of earlier development versions. From a database that has one of them no way leads to the schema of today.
const ABANDONED: [&str; 2] = ["0001_engine", "0002_access"];

/// Every migration of a program: the engine's, then those of the declared pipelines in their order.
fn migrations(declared: &[&Declaration]) -> impl Iterator<Item = &'static Migration> {
    KERNEL.iter().chain(declared.iter().flat_map(|declaration| declaration.migrations))
}

/// Its number among the engine's, from one.
fn number_in_kernel(migration: &Migration) -> Option<usize> {
    KERNEL.iter().position(|kernel| kernel.name == migration.name).map(|place| place + 1)
}

/// The version that a database has when every migration of this program is applied.
pub fn newest() -> i64 {
    i64::try_from(migrations(declared()).count()).unwrap_or(i64::MAX)
}

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
pub(crate) async fn up(db: &Db, declared: &[&Declaration]) -> Result<Vec<i64>, Error> {
    unless_deadlocked(|| try_up(db, declared)).await
}

async fn try_up(db: &Db, declared: &[&Declaration]) -> Result<Vec<i64>, Error> {
    let status = status(db, declared).await?;
    check_known(&status)?;
    let has_tables = status.iter().any(|line| line.applied_at.is_some());
    if has_tables && !has_rules(db, declared).await? {
        machines::add_lanes(db, declared).await?;
    }
    let mut tx = lock(db).await?;
    let applied = applied(&mut tx, declared).await?;
    check_known(&applied)?;
    let missing: Vec<_> = missing(declared, &applied).collect();
    let is_kernel = |(_, migration): &&(i64, &Migration)| number_in_kernel(migration).is_some();
    for (version, migration) in missing.iter().filter(is_kernel) {
        apply(&mut tx, declared, *version, migration).await?;
    }
    make_from_machines(&mut tx, declared).await?;
    for (version, migration) in missing.iter().filter(|line| !is_kernel(line)) {
        apply(&mut tx, declared, *version, migration).await?;
    }
    tx.commit().await?;
    Ok(missing.into_iter().map(|(version, _)| version).collect())
}

async fn apply(
    tx: &mut Tx,
    declared: &[&Declaration],
    version: i64,
    migration: &Migration,
) -> Result<(), Error> {
    run(tx, declared, migration, true).await?;
    tx.run(RECORD, params![version, migration.name]).await.map(drop)
}

/// What follows from the machines, unless the database has it.
async fn make_from_machines(tx: &mut Tx, declared: &[&Declaration]) -> Result<(), Error> {
    let made = Made::new(tx.dialect(), declared);
    let known = tx.run(machines::KNOWN, params![]).await?;
    for pipeline in machines::undeclared(&known, declared)? {
        machines::check_jobless(&pipeline, &tx.run(machines::JOB_OF, params![pipeline.as_str()]).await?)?;
    }
    if made.is_in(&known)? {
        return Ok(());
    }
    if tx.dialect() == Dialect::Sqlite {
        machines::change_rules(tx, declared).await?;
    }
    run_sql(tx, made.sql.clone()).await?;
    made.record(tx, declared).await
}

/// Takes versions above `target` away, newest first. Down to zero nothing of ODE is left.
pub(crate) async fn down(db: &Db, declared: &[&Declaration], target: i64) -> Result<Taken, Error> {
    unless_deadlocked(|| try_down(db, declared, target)).await
}

async fn try_down(db: &Db, declared: &[&Declaration], target: i64) -> Result<Taken, Error> {
    let mut tx = lock(db).await?;
    let applied = applied(&mut tx, declared).await?;
    check_known(&applied)?;
    let members = members(&mut tx).await?;
    let mut versions = Vec::new();
    for line in applied.iter().rev().filter(|line| line.version > target) {
        let migration = migrations(declared).find(|migration| migration.name == line.name);
        let migration = migration.ok_or_else(|| unknown(line))?;
        run(&mut tx, declared, migration, false).await?;
        tx.run(FORGET, params![line.version]).await?;
        versions.push(line.version);
    }
    if applied.iter().any(|line| line.version <= target) {
        tx.run(machines::OUTDATE, params![]).await?;
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
pub(crate) async fn status(db: &Db, declared: &[&Declaration]) -> Result<Vec<Status>, Error> {
    // Without a transaction: readiness asks this often, and must not stand in line with those who write.
    let is_there = !db.read(exists_sql(db.dialect()), params![]).await?.is_empty();
    let mut status =
        if is_there { lines(declared, &db.read(APPLIED, params![]).await?)? } else { Vec::new() };
    let missing: Vec<Status> = missing(declared, &status)
        .map(|(version, migration)| Status {
            version,
            name: migration.name.to_owned(),
            applied_at: None,
            is_known: true,
        })
        .collect();
    status.extend(missing);
    Ok(status)
}

/// The migrations that are not applied, with the versions that they get.
fn missing(declared: &[&Declaration], applied: &[Status]) -> impl Iterator<Item = (i64, &'static Migration)> {
    let next = applied.last().map_or(1, |line| line.version + 1);
    let is_applied = |migration: &&Migration| applied.iter().any(|line| line.name == migration.name);
    (next..).zip(migrations(declared).filter(move |migration| !is_applied(migration)))
}

/// Refuses a database that this program would misunderstand.
pub(crate) async fn check(db: &Db, declared: &[&Declaration]) -> Result<(), Error> {
    let status = status(db, declared).await?;
    check_known(&status)?;
    let missing = status.into_iter().filter(|line| line.applied_at.is_none()).count();
    if missing > 0 {
        return Err(Error::Schema(format!(
            "The database is {missing} schema version(s) behind this program. Run `ode migrate up`."
        )));
    }
    if !has_rules(db, declared).await? {
        let sentence = "The database has other rules than this program. Run `ode migrate up`.";
        return Err(Error::Schema(sentence.to_owned()));
    }
    Ok(())
}

/// Whether a database that has the engine's tables has what follows from these machines. Refuses one with jobs of other pipelines.
async fn has_rules(db: &Db, declared: &[&Declaration]) -> Result<bool, Error> {
    let known = db.read(machines::KNOWN, params![]).await?;
    for pipeline in machines::undeclared(&known, declared)? {
        machines::check_jobless(&pipeline, &db.read(machines::JOB_OF, params![pipeline.as_str()]).await?)?;
    }
    Made::new(db.dialect(), declared).is_in(&known)
}

fn check_known(applied: &[Status]) -> Result<(), Error> {
    if applied.iter().any(|line| ABANDONED.contains(&line.name.as_str())) {
        let sentence = "The database was made by an earlier development version of ode, and cannot be brought up to date. Start \
                        with a new database; nothing was changed.";
        return Err(Error::Schema(sentence.to_owned()));
    }
    applied.iter().rev().find(|line| !line.is_known).map_or(Ok(()), |line| Err(unknown(line)))
}

fn unknown(Status { version, name, .. }: &Status) -> Error {
    Error::Schema(format!(
        "The database has schema version {version} ({name}), which this program does not know. Use a newer ode; nothing was \
         changed."
    ))
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

async fn applied(tx: &mut Tx, declared: &[&Declaration]) -> Result<Vec<Status>, Error> {
    lines(declared, &tx.run(APPLIED, params![]).await?)
}

fn lines(declared: &[&Declaration], rows: &[Row]) -> Result<Vec<Status>, Error> {
    let line = |row: &Row| {
        let (version, name) = (row.int("version")?, row.text("name")?);
        let is_known = migrations(declared).any(|migration| migration.name == name);
        Ok(Status { version, name, applied_at: row.opt_moment("applied_at")?, is_known })
    };
    rows.iter().map(line).collect()
}

async fn run(
    tx: &mut Tx,
    declared: &[&Declaration],
    migration: &Migration,
    is_up: bool,
) -> Result<(), Error> {
    let [postgres, sqlite] = if is_up { migration.up } else { migration.down };
    let dialect = tx.dialect();
    let file = if dialect == Dialect::Postgres { postgres } else { sqlite };
    let sql = match number_in_kernel(migration) {
        Some(number) => lists::in_migration(dialect, declared, number, is_up, file),
        None => file.to_owned(),
    };
    run_sql(tx, sql).await
}

async fn run_sql(tx: &mut Tx, sql: String) -> Result<(), Error> {
    if tx.dialect() == Dialect::Sqlite {
        return Db::run_file(tx, sql).await;
    }
    let rows = tx.run("SELECT current_setting('server_version_num')::bigint AS version", params![]).await?;
    let version = rows.first().map_or(Ok(0), |row| row.int("version"))?;
    // Views that run with their reader's rights came with version 15. Before it the API role gets no access to the views at
    // all, which is the safe side of the difference.
    let sql = if version < 150_000 { sql.replace("WITH (security_invoker) ", "") } else { sql };
    Db::run_file(tx, sql).await
}
