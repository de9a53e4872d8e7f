use super::lists::list;
use super::*;
use crate::database::db::{Db, params};
use crate::{Store, plans};
use ode_job::NewJob;

const TRACED_BY: Column =
    column("traced_by", Kind::Id).since(1_000).given(|new| Id(new.row.job.created_by)).kept().shown();

#[test]
fn a_column_of_the_table_is_in_every_list() {
    let columns = [COLUMNS, &[TRACED_BY]].concat();
    let lists = [
        ("job_columns", "traced_by"),
        ("new_columns", "traced_by"),
        ("new_values", "traced_by"),
        ("new_params", "$traced_by"),
        ("given_names", "traced_by"),
        ("given_arrays", "$traced_by::uuid[]"),
        ("given_rows", "traced_by uuid"),
        ("ended_columns", "traced_by"),
        ("ended_values", "j.traced_by"),
        ("done_columns", "traced_by"),
        ("done_values", "$traced_by"),
        ("reopened_columns", "traced_by"),
        ("reopened_values", "j.traced_by"),
        ("live_jobs", "traced_by"),
        ("past_jobs", "traced_by"),
    ];
    for dialect in [Dialect::Postgres, Dialect::Sqlite] {
        for (name, entry) in lists {
            let without = list(COLUMNS, dialect, name, "").unwrap();
            let with = list(&columns, dialect, name, "").unwrap();
            assert!(!without.contains(entry) && with.contains(entry), "{name} on {dialect:?}: {with}");
        }
    }
    assert!(of_columns(&columns).any(|(name, ..)| name == "traced_by"), "COPY");
}

#[test]
fn a_list_of_columns_and_that_of_their_values_are_as_long() {
    let pairs = [
        ("new_columns", "new_values"),
        ("new_columns", "new_params"),
        ("ended_columns", "ended_values"),
        ("done_columns", "done_values"),
        ("reopened_columns", "reopened_values"),
        ("live_jobs", "past_jobs"),
        ("given_names", "given_arrays"),
    ];
    for dialect in [Dialect::Postgres, Dialect::Sqlite] {
        for (columns, values) in pairs {
            let [columns, values] = [columns, values].map(|name| list(COLUMNS, dialect, name, "").unwrap());
            assert_eq!(entries(&columns), entries(&values), "{columns}\n{values}");
        }
    }
}

/// Entries of a list; commas within brackets or words do not count.
fn entries(list: &str) -> usize {
    let mut depth = 0;
    let commas = list.chars().filter(|c| {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        *c == ',' && depth == 0
    });
    commas.count() + 1
}

/// The columns of a table or view, in their order.
async fn columns_of(store: &Store, table: &str) -> Vec<String> {
    let sql = match store.dialect() {
        Dialect::Postgres => {
            "SELECT column_name::text AS name FROM information_schema.columns
            WHERE table_schema = 'public' AND table_name = $1 ORDER BY ordinal_position"
        }
        Dialect::Sqlite => "SELECT name FROM pragma_table_info($1) ORDER BY cid",
    };
    let rows = store.db().read(sql, params![table]).await.unwrap();
    rows.iter().map(|row| row.text("name").unwrap()).collect()
}

async fn the_database_has_the_columns_of_the_table(store: Store) {
    for (table, only) in [("job_live", Tables::Live), ("job_past", Tables::Past)] {
        let mut expected =
            lists::named(COLUMNS, |column| column.tables == only || column.tables == Tables::Both);
        let mut found = columns_of(&store, table).await;
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{table}: a column is a line in COLUMNS and a migration");
    }
    let is_here =
        |column: &&Column| !matches!(column.tables, Tables::View(Some(only)) if only != store.dialect());
    let shown: Vec<&str> =
        COLUMNS.iter().filter(is_here).filter_map(|column| Some(column.shown?.name)).collect();
    assert_eq!(columns_of(&store, "jobs").await, shown, "jobs");
}

#[tokio::test]
async fn the_database_has_the_columns_of_the_table_on_sqlite() {
    the_database_has_the_columns_of_the_table(plans::sqlite().await).await;
}

#[tokio::test]
async fn the_database_has_the_columns_of_the_table_on_postgres() {
    the_database_has_the_columns_of_the_table(plans::postgres().await).await;
}

/// Runs a file of statements as a migration does.
async fn migrate(store: &Store, sql: String) {
    let mut tx = store.db().begin().await.unwrap();
    Db::run_file(&mut tx, dialect::rewrite(store.dialect(), &sql)).await.unwrap();
    tx.commit().await.unwrap();
}

async fn a_new_column_is_one_line_and_one_migration(store: Store) {
    let columns = [COLUMNS, &[TRACED_BY]].concat();
    let dialect = store.dialect();
    let kind = if dialect == Dialect::Postgres { "uuid" } else { "BLOB" };
    let before = columns_of(&store, "jobs").await;
    let is_traced = |list: Vec<String>| list.contains(&"traced_by".to_owned());
    for round in 0..2 {
        let view = lists::view(&columns, dialect, 1_000, true);
        let tables =
            ["job_live", "job_past"].map(|table| format!("ALTER TABLE {table} ADD COLUMN traced_by {kind};"));
        migrate(&store, format!("{} {view}", tables.concat())).await;
        assert_eq!(columns_of(&store, "jobs").await, [before.as_slice(), &["traced_by".into()]].concat());
        let id = store.enqueue(NewJob::new(ode_html::machine::HTML, "page", json!({}))).await.unwrap().id();
        let sql = "SELECT traced_by FROM jobs WHERE id = $1";
        assert_eq!(store.db().read(sql, params![id]).await.unwrap().len(), 1, "round {round}");
        let view = lists::view(&columns, dialect, 1_000, false);
        let tables =
            ["job_live", "job_past"].map(|table| format!("ALTER TABLE {table} DROP COLUMN traced_by;"));
        migrate(&store, format!("{view} {}", tables.concat())).await;
        assert!(!is_traced(columns_of(&store, "job_live").await), "round {round}");
    }
}

#[tokio::test]
async fn a_new_column_is_one_line_and_one_migration_on_sqlite() {
    a_new_column_is_one_line_and_one_migration(plans::sqlite().await).await;
}

#[tokio::test]
async fn a_new_column_is_one_line_and_one_migration_on_postgres() {
    a_new_column_is_one_line_and_one_migration(plans::postgres().await).await;
}
