//! The schema's versions, and databases that cannot be used as they are.
//!
//! That every statement is one that both databases understand is shown by running it: there is no verb of the
//! store that this suite does not call on both.

use crate::harness::config;
use crate::harness::{
    Database, Sql, claim_one, empty_sqlite_file, finish, job, on_both, organisation, postgres_database,
    postgres_url, record, request, worker,
};
use crate::machines::{lane, pipeline};
use futures_util::future::join_all;
use ode_job::{Ended, ErrorCode, JobRef, Phase, WorkerId};
use ode_store::{Dialect, Error, ListFilter, Store, schema_newest};
use std::time::Duration;
use uuid::Uuid;

on_both!(
    empty_sqlite_file, empty_postgres:
    an_empty_database_is_brought_to_the_newest_version,
    a_database_without_our_tables_says_what_to_do,
    the_way_down_leaves_nothing_and_the_way_up_is_open_again,
    the_way_down_to_one_keeps_the_jobs,
    eight_that_start_at_once_migrate_once,
    a_newer_database_is_left_alone,
    a_database_of_an_earlier_development_version_is_left_alone,
    a_database_that_takes_no_writes_is_read_and_says_so,
);

/// No versions.
const NOTHING: [i64; 0] = [];

async fn applied(store: &Store) -> Vec<i64> {
    let status = store.migrate_status().await.unwrap();
    assert_eq!(i64::try_from(status.len()).unwrap(), schema_newest());
    assert!(status.iter().all(|line| line.is_known), "{status:?}");
    status.iter().filter(|line| line.applied_at.is_some()).map(|line| line.version).collect()
}

async fn an_empty_database_is_brought_to_the_newest_version(database: Database) {
    let store = database.store;
    assert_eq!(applied(&store).await, NOTHING);
    let all: Vec<i64> = (1..=schema_newest()).collect();
    assert_eq!(store.migrate_up().await.unwrap(), all);
    assert_eq!(applied(&store).await, all);
    store.check_schema().await.unwrap();
    assert_eq!(store.migrate_up().await.unwrap(), NOTHING, "there was nothing left to do");
    let names: Vec<_> = store.migrate_status().await.unwrap().into_iter().map(|line| line.name).collect();
    assert_eq!(names[0], "0001_kernel");
}

#[track_caller]
fn assert_schema<T: std::fmt::Debug>(answer: Result<T, Error>, advice: &str) {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Schema(_)), "{error:?}");
    assert_eq!(error.code(), ErrorCode::SchemaMismatch);
    assert!(error.to_string().contains(advice), "{error}");
}

async fn a_database_without_our_tables_says_what_to_do(database: Database) {
    let store = database.store;
    let up = "Run `ode migrate up`";
    assert_schema(store.check_schema().await, up);
    assert_schema(store.enqueue(job(pipeline::XML)).await, up);
    assert_schema(store.enqueue_many(vec![job(pipeline::XML); 300]).await, up);
    assert_schema(store.claim(request(lane::XML, WorkerId(Uuid::new_v4()), 1)).await, up);
    assert_schema(store.look(lane::ALL).await, up);
    assert_schema(store.jobs(&ListFilter::default()).await, up);
    assert_eq!(store.migrate_down(0).await.unwrap().versions, NOTHING, "nothing to take away");
}

/// What is in the database besides what it brings itself.
async fn leftovers(sql: &mut Sql) -> i64 {
    let count = match sql {
        Sql::Sqlite(_) => "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        Sql::Postgres(_) => {
            "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)
                + (SELECT count(*) FROM pg_type WHERE typnamespace = 'public'::regnamespace)
                + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)
                + (SELECT count(*) FROM pg_policy) + (SELECT count(*) FROM pg_default_acl)
                + (SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'
                    AND nspname NOT IN ('public', 'information_schema'))"
        }
    };
    sql.number(count, &[]).await
}

/// How much of this database the API role may touch.
async fn grants(sql: &mut Sql) -> i64 {
    let count = "SELECT count(*) FROM pg_shdepend
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND refclassid = 'pg_authid'::regclass
            AND refobjid = (SELECT oid FROM pg_roles WHERE rolname = 'ode_api')";
    match sql {
        Sql::Sqlite(_) => 0,
        Sql::Postgres(_) => sql.number(count, &[]).await,
    }
}

async fn the_way_down_leaves_nothing_and_the_way_up_is_open_again(mut database: Database) {
    let store = &database.store;
    let fresh = leftovers(&mut database.sql).await;
    let all: Vec<i64> = (1..=schema_newest()).collect();
    for round in 0..2 {
        assert_eq!(store.migrate_up().await.unwrap(), all, "round {round}");
        store.enqueue(job(pipeline::SCRIPT).owned_by(organisation())).await.unwrap();
        let worker = worker(store).await;
        let claimed = claim_one(store, lane::SCRIPT, worker).await;
        finish(store, claimed, Ended::Succeeded).await;
        let down: Vec<i64> = all.iter().rev().copied().collect();
        assert_eq!(store.migrate_down(0).await.unwrap().versions, down, "round {round}");
        assert_eq!(leftovers(&mut database.sql).await, fresh, "round {round}");
        assert_eq!(grants(&mut database.sql).await, 0, "round {round}");
        assert_eq!(applied(store).await, NOTHING);
    }
}

async fn the_way_down_to_one_keeps_the_jobs(mut database: Database) {
    let store = &database.store;
    store.migrate_up().await.unwrap();
    let id = store.enqueue(job(pipeline::SCRIPT).owned_by(organisation())).await.unwrap().id();
    let before = record(store, id).await;
    let all_grants = grants(&mut database.sql).await;
    let taken = store.migrate_down(1).await.unwrap().versions;
    assert_eq!(taken, (2..=schema_newest()).rev().collect::<Vec<_>>());
    assert_eq!(applied(store).await, [1]);
    assert_schema(store.check_schema().await, "behind this program. Run `ode migrate up`");
    assert_eq!(record(store, id).await, before);
    let engine_grants = grants(&mut database.sql).await;
    assert!(engine_grants < all_grants || all_grants == 0, "{engine_grants} of {all_grants} grants are left");
    assert_eq!(store.migrate_down(1).await.unwrap().versions, NOTHING);
    assert_eq!(store.migrate_up().await.unwrap(), (2..=schema_newest()).collect::<Vec<_>>());
    assert_eq!(record(store, id).await, before);
    let worker = worker(store).await;
    assert_eq!(claim_one(store, lane::SCRIPT, worker).await.lease.job(), id);
    assert_eq!(grants(&mut database.sql).await, all_grants);
    store.migrate_down(1).await.unwrap();
    assert_eq!(grants(&mut database.sql).await, engine_grants, "the API role kept a right");
}

async fn eight_that_start_at_once_migrate_once(database: Database) {
    let starts = (0..8).map(|_| {
        let url = database.url.clone();
        tokio::spawn(async move {
            let store = Store::open(config(url)).await.unwrap();
            let done = store.migrate_up().await.unwrap();
            store.check_schema().await.unwrap();
            store.enqueue(job(pipeline::HTML)).await.unwrap();
            done
        })
    });
    let done: Vec<i64> = join_all(starts).await.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(done, (1..=schema_newest()).collect::<Vec<_>>(), "a version was applied twice, or by halves");
    assert_eq!(database.store.counts().await.unwrap()[0].3, 8);
}

async fn a_newer_database_is_left_alone(mut database: Database) {
    let store = &database.store;
    store.migrate_up().await.unwrap();
    let newer = "INSERT INTO ode_schema (version, name, applied_at) VALUES (999, 'from the future', {now})";
    database.sql.run(newer, &[]).await.unwrap();
    let before = leftovers(&mut database.sql).await;
    let advice = "Use a newer ode; nothing was changed.";
    assert_schema(store.check_schema().await, advice);
    assert_schema(store.migrate_up().await, advice);
    assert_schema(store.migrate_down(0).await, advice);
    let status = store.migrate_status().await.unwrap();
    let unknown: Vec<_> = status.iter().filter(|line| !line.is_known).map(|line| line.version).collect();
    assert_eq!(unknown, [999], "what is there can be looked at");
    assert_eq!(leftovers(&mut database.sql).await, before);
}

async fn a_database_of_an_earlier_development_version_is_left_alone(mut database: Database) {
    let store = &database.store;
    let (create, now) = match &database.sql {
        Sql::Postgres(_) => {
            ("CREATE TABLE ode_schema (version bigint, name text, applied_at timestamptz)", "now()")
        }
        Sql::Sqlite(_) => {
            ("CREATE TABLE ode_schema (version INTEGER, name TEXT, applied_at INTEGER) STRICT", "1")
        }
    };
    database.sql.run(create, &[]).await.unwrap();
    for (version, name) in [(1, "0001_engine"), (2, "0002_access"), (9, "0009_jobs_by_id")] {
        let applied = format!("INSERT INTO ode_schema VALUES ({version}, '{name}', {now})");
        database.sql.run(&applied, &[]).await.unwrap();
        let advice = "was made by an earlier development version of ode, and cannot be brought up to date. Start with a new \
                      database; nothing was changed.";
        assert_schema(store.check_schema().await, advice);
        assert_schema(store.migrate_up().await, advice);
        assert_schema(store.migrate_down(0).await, advice);
    }
    let status = store.migrate_status().await.unwrap();
    assert_eq!(status.iter().filter(|line| !line.is_known).count(), 3, "{status:?}");
}

#[track_caller]
fn assert_read_only<T: std::fmt::Debug>(store: &Store, answer: Result<T, Error>) {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::ReadOnly(_)), "{error:?}");
    assert_eq!(error.code(), ErrorCode::DatabaseReadOnly);
    let advice = match store.dialect() {
        Dialect::Postgres => "Point --database at the primary.",
        Dialect::Sqlite => "Make the file and its directory writable for whoever runs ode.",
    };
    assert!(!error.is_passing() && error.to_string().ends_with(advice), "{error}");
}

async fn a_database_that_takes_no_writes_is_read_and_says_so(mut database: Database) {
    database.store.migrate_up().await.unwrap();
    let id = database.store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    let url = match database.sql {
        Sql::Sqlite(_) => format!("{}?mode=ro", database.url),
        Sql::Postgres(_) => {
            let name = database.url.rsplit_once('/').unwrap().1.to_owned();
            let alter = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
            database.sql.run(&alter, &[]).await.unwrap();
            database.url.clone()
        }
    };
    let store = Store::open(config(url)).await.unwrap();
    let worker = WorkerId(Uuid::new_v4());
    assert_read_only(&store, store.enqueue(job(pipeline::HTML)).await);
    assert_read_only(&store, store.enqueue_many(vec![job(pipeline::HTML); 300]).await);
    assert_read_only(&store, store.claim(request(lane::HTML, worker, 1)).await);
    assert_read_only(&store, store.register(worker, "test", "0").await);
    assert_read_only(&store, store.cancel(id).await);
    assert_read_only(&store, store.migrate_down(0).await);
    assert_eq!(store.job(JobRef::Id(id)).await.unwrap().phase, Phase::Ready);
    assert_eq!(store.jobs(&ListFilter::default()).await.unwrap().jobs.len(), 1);
    assert_eq!(store.look(&[lane::HTML]).await.unwrap().ready, [lane::HTML]);
}

#[tokio::test]
async fn an_address_of_neither_database_is_refused_by_name() {
    for url in ["mysql://host/name", "ode.db", ""] {
        let error = Store::open(config(url)).await.unwrap_err();
        assert!(matches!(error, Error::Config(_)), "{error:?}");
        assert!(error.to_string().contains("Use postgres://user@host/name or sqlite:PATH"), "{error}");
    }
}

mod sqlite_only {
    use super::*;

    #[tokio::test]
    async fn a_missing_directory_is_named_as_the_cause() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("missing/ode.db").display());
        let error = Store::open(config(url)).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
        assert!(error.to_string().contains("the directory may be missing"), "{error}");
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("letter.txt");
        let letter = "Dear reader, ".repeat(1000);
        std::fs::write(&path, &letter).unwrap();
        let error = Store::open(config(format!("sqlite:{}", path.display()))).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{error:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), letter);
    }

    #[tokio::test]
    async fn two_processes_can_write_the_same_file() {
        let database = empty_sqlite_file().await;
        database.store.migrate_up().await.unwrap();
        let second = Store::open(config(&database.url)).await.unwrap();
        let asks = (0..20).map(|number| {
            let store = if number % 2 == 0 { &database.store } else { &second };
            store.enqueue(job(pipeline::HTML))
        });
        let ids: Vec<_> = join_all(asks).await.into_iter().map(|answer| answer.unwrap().id()).collect();
        for id in ids {
            assert_eq!(record(&second, id).await.phase, Phase::Ready);
        }
    }
}

mod postgres_only {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_away_is_unavailable() {
        // Bound and closed again: nobody listens there.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let error = Store::open(config(format!("postgres://127.0.0.1:{port}/ode"))).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)) && error.is_passing(), "{error:?}");
        assert_eq!(error.code(), ErrorCode::DatabaseUnavailable);
        assert!(error.to_string().contains("Check that it runs and that --database is right"), "{error}");
    }

    #[tokio::test]
    async fn a_database_that_does_not_exist_is_a_wrong_setting() {
        let server = std::env::var("ODE_TEST_POSTGRES_URL").unwrap();
        let url = format!("{}/no_such_database", server.rsplit_once('/').unwrap().0);
        let error = Store::open(config(url)).await.unwrap_err();
        assert!(matches!(error, Error::Config(_)), "{error:?}");
        assert!(error.to_string().contains("Check --database"), "{error}");
    }

    #[tokio::test]
    async fn a_right_that_is_missing_is_not_taken_for_a_passing_fault() {
        let mut database = postgres_database().await;
        let name = format!("ode_reader_{}", Uuid::new_v4().simple());
        database.sql.run(&format!("CREATE ROLE {name} LOGIN"), &[]).await.unwrap();
        let url = database.url.replace("postgres@", &format!("{name}@"));
        let store = Store::open(config(url)).await.unwrap();
        let error = store.enqueue(job(pipeline::HTML)).await.unwrap_err();
        assert!(matches!(error, Error::Database(_)), "{error:?}");
        assert!(error.to_string().contains("permission denied"), "{error}");
        store.close().await;
        database.sql.run(&format!("DROP ROLE {name}"), &[]).await.unwrap();
    }

    #[tokio::test]
    async fn an_enqueue_outlives_the_loss_of_every_connection() {
        let mut database = postgres_database().await;
        let store = &database.store;
        store.enqueue(job(pipeline::HTML)).await.unwrap();
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        for _ in 0..3 {
            database.sql.run(end, &[]).await.unwrap();
            tokio::time::timeout(Duration::from_secs(15), store.enqueue(job(pipeline::HTML)))
                .await
                .expect("an answer within the time of the retries")
                .unwrap();
        }
        assert_eq!(store.counts().await.unwrap()[0].3, 4, "one job for each request");
    }

    #[tokio::test]
    async fn who_loses_the_api_role_on_the_way_down_is_named() {
        let mut database = postgres_database().await;
        let name = format!("ode_member_{}", Uuid::new_v4().simple());
        database.sql.run(&format!("CREATE ROLE {name}"), &[]).await.unwrap();
        database.sql.run(&format!("GRANT ode_api TO {name}"), &[]).await.unwrap();
        let taken = database.store.migrate_down(0).await.unwrap();
        let member = format!("SELECT count(*) FROM pg_auth_members WHERE member = '{name}'::regrole");
        // Where another database of the server uses the role, it stays, and with it its members.
        let has_lost = database.sql.number(&member, &[]).await == 0;
        assert_eq!(taken.members.contains(&name), has_lost, "{:?}", taken.members);
        database.sql.run(&format!("DROP ROLE {name}"), &[]).await.unwrap();
    }

    #[tokio::test]
    async fn two_databases_of_one_server_do_not_disturb_each_other() {
        let urls = [postgres_url().await, postgres_url().await];
        let walks = urls.map(|url| async move {
            let store = Store::open(config(url)).await.unwrap();
            for _ in 0..3 {
                store.migrate_up().await.unwrap();
                store.migrate_down(0).await.unwrap();
            }
        });
        join_all(walks).await;
    }
}
