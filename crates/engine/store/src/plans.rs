//! How the databases go about the statements that read jobs by their ids: never by reading all jobs there are.

use crate::attempts::finish;
use crate::database::db::{Param, params};
use crate::feed;
use crate::feed::webhooks;
use crate::jobs::documents::ids_as_rows;
use crate::jobs::enqueue;
use crate::jobs::owned::{BY_IDS, ByOwner, LIST_AND_COUNT, SETBACKS};
use crate::jobs::read;
use crate::jobs::twins;
use crate::{Config, Declaration, Dialect, Migration, Store};
use jiff::Timestamp;
use ode_job::JobId;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _};
use uuid::Uuid;

/// Declares the pipelines. They are linked with another build of this crate than its own tests, so their declarations are
/// copied.
fn declare() {
    let pipelines =
        [&ode_xml::DECLARATION, &ode_html::DECLARATION, &ode_print::DECLARATION, &ode_script::DECLARATION];
    let copies = pipelines.map(|declaration| -> &'static Declaration {
        let migrations = declaration.migrations.iter();
        let migrations =
            migrations.map(|theirs| Migration { name: theirs.name, up: theirs.up, down: theirs.down });
        let migrations = migrations.collect::<Vec<_>>().leak();
        Box::leak(Box::new(Declaration { migrations, ..Declaration::new(declaration.pipeline) }))
    });
    crate::declare(&copies).unwrap();
}

pub(crate) async fn sqlite() -> Store {
    declare();
    let store = Store::open(Config::new("sqlite::memory:")).await.unwrap();
    store.migrate_up().await.unwrap();
    store
}

pub(crate) async fn postgres() -> Store {
    declare();
    let store = empty_postgres().await;
    store.migrate_up().await.unwrap();
    store
}

/// A PostgreSQL database in which there is nothing yet.
pub(crate) async fn empty_postgres() -> Store {
    let server = std::env::var("ODE_TEST_POSTGRES_URL").expect("`tests/run` starts a server and names it");
    let name = format!("ode_test_{}", Uuid::new_v4().simple());
    let mut connection = sqlx::PgConnection::connect(&server).await.unwrap();
    let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
    Store::open(Config::new(format!("{}/{name}", server.rsplit_once('/').unwrap().0))).await.unwrap()
}

/// How the database would go about a statement, a line for each step.
async fn plan(store: &Store, sql: &str, params: &[Param]) -> Vec<String> {
    let (explain, column) = match store.dialect() {
        Dialect::Postgres => ("EXPLAIN", "QUERY PLAN"),
        Dialect::Sqlite => ("EXPLAIN QUERY PLAN", "detail"),
    };
    let sql: &'static str = format!("{explain} {sql}").leak();
    let rows = store.db().read(sql, params).await.unwrap();
    rows.iter().map(|row| row.text(column).unwrap()).collect()
}

/// Whether each table is entered by an index and a value; but for the one row of the policy, and what was asked for.
fn is_by_index(dialect: Dialect, plan: &[String]) -> bool {
    let count = |what: &str| plan.iter().filter(|line| line.contains(what)).count();
    match dialect {
        Dialect::Postgres => {
            let scanned = plan.iter().filter(|line| line.contains("Seq Scan"));
            let walks = count("Index Scan") + count("Index Only Scan");
            scanned.clone().all(|line| line.contains("on retention_policy")) && walks == count("Index Cond")
        }
        Dialect::Sqlite => {
            // The view is no table: what it reads is told beside it.
            let mut scanned = plan.iter().filter(|line| line.starts_with("SCAN"));
            scanned
                .all(|line| line.contains("jsonb_each") || ["SCAN p", "SCAN jobs"].contains(&line.as_str()))
        }
    }
}

/// Whether all jobs would be read.
fn reads_all_jobs(plan: &[String]) -> bool {
    let all = ["SCAN job_live", "SCAN job_past", "Seq Scan on job_live", "Seq Scan on job_past"];
    plan.iter().any(|line| all.iter().any(|all| line.contains(all)))
}

async fn a_list_is_read_by_index_however_many_jobs_others_have(store: Store) {
    let id = JobId(Uuid::now_v7());
    let keys = ids_as_rows(std::iter::once(id));
    let named = Param::Rows(json!([{ "key": id, "name": id.to_string() }]).to_string());
    let text = None::<&str>;
    let filter = params![id.0, text, text, None::<Timestamp>, None::<Uuid>, 101_i64, text, ",print,"];
    let mut read = vec![(BY_IDS, vec![keys]), (SETBACKS, vec![named])];
    let ByOwner { session, user, organisation } = LIST_AND_COUNT;
    for (list, count) in [session, user, organisation] {
        read.extend([(list, filter.to_vec()), (count, params![id.0, ",print,"].to_vec())]);
    }
    for (sql, params) in read {
        let plan = plan(&store, sql, &params).await;
        assert!(is_by_index(store.dialect(), &plan), "{sql}\n{}", plan.join("\n"));
    }
}

#[tokio::test]
async fn a_list_is_read_by_index_on_sqlite() {
    a_list_is_read_by_index_however_many_jobs_others_have(sqlite().await).await;
}

#[tokio::test]
async fn a_list_is_read_by_index_on_postgres() {
    a_list_is_read_by_index_however_many_jobs_others_have(postgres().await).await;
}

#[tokio::test]
async fn what_is_asked_about_few_jobs_is_not_looked_for_among_all_of_them() {
    let store = sqlite().await;
    let (id, ten) = (Uuid::now_v7(), 10_i64);
    let ids = || Param::rows([json!({ "id": id, "key": id })]);
    let statements = [
        (read::ADD_LOGS, vec![read::log_rows([])]),
        (feed::OWNERS, vec![ids()]),
        (enqueue::KNOWN, vec![ids()]),
        (finish::WRITTEN, vec![ids(), Param::History(vec![1])]),
        (twins::BY_CONTENT, params!["digest"].to_vec()),
        (webhooks::TAKE, params![ten, ten].to_vec()),
        (webhooks::LIST, params![id, None::<&str>, ten].to_vec()),
    ];
    for (sql, params) in statements {
        let plan = plan(&store, sql, &params).await;
        assert!(!reads_all_jobs(&plan), "{sql}\n{}", plan.join("\n"));
    }
}

#[test]
fn a_plan_that_reads_a_whole_table_is_recognised() {
    let plans = [
        (Dialect::Sqlite, "SCAN job_past"),
        (Dialect::Sqlite, "SCAN a USING INDEX sqlite_autoindex_job_artifact_2"),
        (Dialect::Postgres, "  ->  Seq Scan on job_past  (cost=0.00..1.00 rows=1 width=8)"),
        (Dialect::Postgres, "  ->  Index Scan using job_past_pkey on job_past"),
    ];
    for (dialect, line) in plans {
        assert!(!is_by_index(dialect, &[line.to_owned()]), "{line}");
    }
    assert!(reads_all_jobs(&["SCAN job_past".to_owned()]));
}
