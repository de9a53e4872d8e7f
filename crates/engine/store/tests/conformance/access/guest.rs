//! A login of the API role, and what there is for it to see.

use crate::harness::{Database, FEATURES, Sql, claim_one, ending, job, worker};
use crate::machines::{lane, pipeline};
use ode_job::{
    Artifact, Check, CheckKind, Ended, ErrorCode, Failure, JobId, LogLevel, NewJob, Owner, Severity,
};
use ode_print::sql::{FrozenMap, add_user_map, print_map};
use ode_store::Store;
use ode_xml::sql::{Revision, revise};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{AssertSqlSafe, Postgres, Transaction};
use uuid::Uuid;

/// A login that is a member of `ode_api` and nothing else.
pub(crate) struct Guest {
    name: String,
    pub(crate) pool: PgPool,
}

impl Guest {
    pub(crate) async fn new(database: &mut Database, connections_max: u32) -> Guest {
        let name = format!("ode_guest_{}", Uuid::new_v4().simple());
        let create = format!("CREATE ROLE {name} LOGIN IN ROLE ode_api");
        database.sql.run(&create, &[]).await.unwrap();
        let url = database.url.replace("postgres@", &format!("{name}@"));
        let pool = PgPoolOptions::new().max_connections(connections_max).connect(&url).await.unwrap();
        Guest { name, pool }
    }

    /// A transaction in the name of an organisation.
    pub(crate) async fn of(&self, organisation: Uuid) -> Transaction<'static, Postgres> {
        let mut tx = self.pool.begin().await.unwrap();
        run(&mut tx, &format!("SET LOCAL ode.organisation = '{organisation}'"), &[]).await.unwrap();
        tx
    }

    pub(crate) async fn leave(self, database: &mut Database) {
        self.pool.close().await;
        database.sql.run(&format!("DROP ROLE {}", self.name), &[]).await.unwrap();
    }
}

/// Runs a statement; a refusal is its SQLSTATE and its message.
pub(crate) async fn run(
    connection: &mut PgConnection,
    sql: &str,
    ids: &[Uuid],
) -> Result<u64, (String, String)> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    let query = ids.iter().fold(query, |query, id| query.bind(*id));
    let done = query.execute(connection).await;
    done.map(|done| done.rows_affected()).map_err(refusal)
}

pub(crate) fn refusal(error: sqlx::Error) -> (String, String) {
    let error = error.into_database_error().expect("the server answers");
    (error.code().unwrap_or_default().into_owned(), error.message().to_owned())
}

pub(crate) async fn number(connection: &mut PgConnection, sql: &str, ids: &[Uuid]) -> i64 {
    let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
    ids.iter().fold(query, |query, id| query.bind(*id)).fetch_one(connection).await.unwrap()
}

pub(crate) async fn rows(connection: &mut PgConnection, sql: &str) -> Vec<PgRow> {
    sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await.unwrap()
}

/// The connection of the one who owns the tables.
pub(crate) fn owner(database: &mut Database) -> &mut PgConnection {
    match &mut database.sql {
        Sql::Postgres(connection) => connection,
        Sql::Sqlite(_) => unreachable!("only PostgreSQL has roles"),
    }
}

#[track_caller]
pub(crate) fn assert_denied<T: std::fmt::Debug>(answer: Result<T, (String, String)>) {
    let (code, message) = answer.unwrap_err();
    assert_eq!(code, "42501", "{message}");
}

/// Everything an organisation can have: for each pipeline a ready job, a running and an ended script, a
/// file, a log and a key. Seven jobs.
pub(crate) async fn furnish(store: &Store, owner: Owner) -> Vec<JobId> {
    let mut ids = Vec::new();
    let worker = worker(store).await;
    for ended in [None, Some(Ended::Succeeded), Some(Ended::Failed(Failure::from(ErrorCode::NotPdf)))] {
        ids.push(store.enqueue(job(pipeline::SCRIPT).owned_by(owner)).await.unwrap().id());
        let claimed = claim_one(store, lane::SCRIPT, worker).await;
        if let Some(ended) = ended {
            let mut end = ending(claimed, ended);
            end.artifacts.push(file(&end.job.lease.job().to_string()));
            store.finish(vec![end]).await.unwrap();
        }
    }
    for pipeline in pipeline::ALL {
        let key = Some(pipeline.to_string());
        if *pipeline == pipeline::PRINT {
            let map = FrozenMap::new(r#"{"schema":1}"#.into(), None);
            ids.push(print_map(store, owner, &map, key, None).await.unwrap().job);
            continue;
        }
        let new = NewJob { idempotency_key: key, ..job(*pipeline).owned_by(owner) };
        ids.push(store.enqueue(new).await.unwrap().id());
        // Out of the way of the next owner's scripts.
        if *pipeline == pipeline::SCRIPT {
            store.cancel(ids[6]).await.unwrap();
        }
    }
    add_user_map(store.sql(), owner, "Ours", FEATURES).await.unwrap();
    store.log(ids[0], 1, LogLevel::Info, "a secret").await.unwrap();
    store.record_download(ids[1]).await.unwrap();
    store.add_checks(ids[1], &[check()]).await.unwrap();
    revise(store.sql(), ids[1], &correction(), None).await.unwrap();
    ids
}

pub(crate) fn file(path: &str) -> Artifact {
    Artifact {
        role: "result".into(),
        name: "a.txt".into(),
        storage: "local".into(),
        path: path.into(),
        content_type: "text/plain".into(),
        bytes: 1,
        sha256: "0".repeat(64),
    }
}

pub(crate) fn check() -> Check {
    Check {
        kind: CheckKind::Content,
        severity: Severity::Info,
        code: "A".into(),
        field: None,
        message: "a secret".into(),
        opinion: None,
    }
}

pub(crate) fn correction() -> Revision {
    let (before, after) = (Some("a".into()), Some("b".into()));
    Revision { field: "total".into(), before, after, page: None, area: None }
}

pub(crate) fn id_of(owner: Owner) -> Uuid {
    owner.key()
}

pub(crate) const WORDS: &str = "SELECT count(*) FROM ode_history($1)";

/// Makes a job in SQL, as the given connection may.
pub(crate) async fn enqueue(
    connection: &mut PgConnection,
    arguments: &str,
) -> Result<JobId, (String, String)> {
    let sql = AssertSqlSafe(format!("SELECT ode_enqueue({arguments})"));
    let made = sqlx::query_scalar(sql).fetch_one(connection).await;
    made.map(JobId).map_err(refusal)
}

/// The way an organisation calls off a job in SQL.
pub(crate) async fn cancel(tx: &mut PgConnection, id: JobId) -> Result<bool, (String, String)> {
    let done = sqlx::query_scalar("SELECT ode_cancel($1)").bind(id.0).fetch_one(tx).await;
    done.map_err(refusal)
}
