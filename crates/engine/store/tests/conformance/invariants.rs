//! What the databases themselves refuse, whoever asks: the invariants as constraints and triggers.

use crate::harness::{
    Database, Sql, claim_one, ending, file, finish, job, on_both, postgres_database, record, sqlite_file,
    worker,
};
use crate::machines::{lane, pipeline, state};
use ode_job::{Ended, ErrorCode, Failure, JobId, LogLevel, Owner, Phase, Pipeline, State};
use ode_store::Store;
use uuid::Uuid;

on_both!(
    sqlite_file, postgres_database:
    a_job_has_a_result_only_in_success_and_an_error_exactly_in_failure,
    a_job_has_ended_exactly_if_it_is_dated,
    a_job_has_one_owner,
    a_job_is_live_or_past_and_never_both,
    a_job_that_has_not_ended_cannot_be_removed,
    what_has_ended_keeps_to_the_same_bounds,
    what_is_checked_at_the_door_is_checked_by_the_database_too,
    an_external_id_is_unique_for_its_owner,
    a_running_job_has_a_lease_and_no_other_has,
    counters_and_progress_stay_within_their_bounds,
    a_file_has_a_size_a_digest_and_one_place,
    logs_keys_workers_and_owners_are_what_they_say,
    the_database_knows_exactly_the_states_of_the_machines,
    what_was_told_cannot_be_changed,
    only_retention_may_change_what_was_told,
    every_change_is_dated_by_the_database,
    a_job_takes_its_files_and_logs_with_it,
);

/// One xml job of every kind: ready, running, done, failed.
struct Jobs {
    ready: Uuid,
    running: Uuid,
    done: Uuid,
    failed: Uuid,
}

async fn jobs(store: &Store) -> Jobs {
    let mut started = Vec::new();
    let worker = worker(store).await;
    for _ in 0..3 {
        store.enqueue(job(pipeline::XML)).await.unwrap();
        started.push(claim_one(store, lane::XML, worker).await);
    }
    let [running, done, failed] = [0, 1, 2].map(|number: usize| started[number].lease.job().0);
    let rejected = Failure::from(ErrorCode::NotPdf);
    let failing = started.pop().unwrap();
    finish(store, failing, Ended::Failed(rejected)).await;
    let mut end = ending(started.pop().unwrap(), Ended::Succeeded);
    end.artifacts.push(file("kept"));
    store.finish(vec![end]).await.unwrap();
    store.log(JobId(done), 1, LogLevel::Info, "it went well").await.unwrap();
    let ready = store.enqueue(job(pipeline::XML)).await.unwrap().id().0;
    Jobs { ready, running, done, failed }
}

/// Tries each statement on the job, and expects a refusal that names what it breaks.
async fn check_refused(sql: &mut Sql, job: Uuid, cases: &[(&str, &str)]) {
    for (statement, broken) in cases {
        let refusal = match sql.run(statement, &[job]).await {
            Ok(changed) => panic!("accepted, {changed} rows: {statement}"),
            Err(refusal) => refusal,
        };
        assert!(refusal.contains(broken), "{statement}\nwas refused for another reason: {refusal}");
    }
}

async fn a_job_has_a_result_only_in_success_and_an_error_exactly_in_failure(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let rule = "job_past_result_and_error";
    let give_result = [("UPDATE job_past SET result = '{}' WHERE id = $1", rule)];
    check_refused(&mut database.sql, jobs.failed, &give_result).await;
    let give_error = [
        ("UPDATE job_past SET error_code = 'X', error_message = 'x' WHERE id = $1", rule),
        ("UPDATE job_past SET error_code = 'X' WHERE id = $1", rule),
        ("UPDATE job_past SET error_message = 'x' WHERE id = $1", rule),
    ];
    check_refused(&mut database.sql, jobs.done, &give_error).await;
    let take_error = [
        ("UPDATE job_past SET error_code = NULL, error_message = NULL WHERE id = $1", rule),
        ("UPDATE job_past SET error_code = NULL WHERE id = $1", rule),
        ("UPDATE job_past SET error_message = NULL WHERE id = $1", rule),
    ];
    check_refused(&mut database.sql, jobs.failed, &take_error).await;
}

async fn a_job_has_ended_exactly_if_it_is_dated(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let undated = [("UPDATE job_past SET finished_at = NULL WHERE id = $1", "finished_at")];
    check_refused(&mut database.sql, jobs.done, &undated).await;
    assert_eq!(record(&database.store, JobId(jobs.ready)).await.finished_at, None);
}

async fn a_job_has_one_owner(mut database: Database) {
    let jobs = jobs(&database.store).await;
    for (table, id, rule) in
        [("job_live", jobs.ready, "job_live_one_owner"), ("job_past", jobs.done, "job_past_one_owner")]
    {
        let two = format!("UPDATE {table} SET session_id = $1, organisation_id = $1 WHERE id = $1");
        check_refused(&mut database.sql, id, &[(&two, rule)]).await;
        // What a session made may be given to the person who then signed in.
        let turn = if table == "job_live" { ", owner = $1" } else { "" };
        let given = format!("UPDATE {table} SET session_id = $1, user_id = $1{turn} WHERE id = $1");
        assert_eq!(database.sql.run(&given, &[id]).await, Ok(1));
    }
    // Whose turn it is follows from whose job it is.
    let rule = "job_live_turn_is_owners";
    let others = [
        ("UPDATE job_live SET organisation_id = $1 WHERE id = $1", rule),
        ("UPDATE job_live SET owner = $1 WHERE id = $1", rule),
    ];
    check_refused(&mut database.sql, jobs.running, &others).await;
}

async fn a_job_is_live_or_past_and_never_both(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let ended = ended_row(pipeline::XML, state::FAILED);
    check_refused(&mut database.sql, jobs.ready, &[(&ended, "job_once")]).await;
    check_refused(&mut database.sql, jobs.running, &[(&ended, "job_once")]).await;
    let live = live_row(pipeline::XML, state::QUEUED);
    check_refused(&mut database.sql, jobs.done, &[(&live, "job_once")]).await;
    let back = "INSERT INTO job_live (id, owner, pipeline, kind, input, state, history)
        SELECT id, x, pipeline, kind, input, 'queued', history FROM job_past WHERE id = $1";
    let nil = match database.sql {
        Sql::Postgres(_) => "'00000000-0000-0000-0000-000000000000'",
        Sql::Sqlite(_) => "zeroblob(16)",
    };
    let back = back.replace(" x,", &format!(" {nil},"));
    check_refused(&mut database.sql, jobs.failed, &[(&back, "job_once")]).await;
    for (table, id) in [("job_live", jobs.ready), ("job_past", jobs.failed)] {
        let renamed = format!("UPDATE {table} SET id = $2 WHERE id = $1");
        for other in [jobs.done, jobs.running, Uuid::now_v7()] {
            let refusal = database.sql.run(&renamed, &[id, other]).await.unwrap_err();
            assert!(
                refusal.contains("job_once") || refusal.contains("job_live") || refusal.contains("job_past")
            );
        }
    }
    // A retry moves the row, and nothing stands in its way.
    database.store.retry(JobId(jobs.failed)).await.unwrap();
    database.store.cancel(JobId(jobs.failed)).await.unwrap();
    database.store.retry(JobId(jobs.failed)).await.unwrap();
}

async fn a_job_that_has_not_ended_cannot_be_removed(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let (open, _) = retention(&database.sql);
    for job in [jobs.ready, jobs.running] {
        let before = record(&database.store, JobId(job)).await;
        let removals = [
            ("DELETE FROM job_live WHERE id = $1", "job_live_stays"),
            ("DELETE FROM job_live WHERE id = $1 OR id IS NOT NULL", "job_live_stays"),
        ];
        check_refused(&mut database.sql, job, &removals).await;
        // Retention removes what has ended, and nothing else.
        for statement in ["BEGIN", open] {
            database.sql.run(statement, &[]).await.unwrap();
        }
        check_refused(&mut database.sql, job, &removals[..1]).await;
        database.sql.run("ROLLBACK", &[]).await.unwrap();
        assert_eq!(record(&database.store, JobId(job)).await, before);
    }
    database.store.cancel(JobId(jobs.ready)).await.unwrap();
    assert_eq!(database.sql.number("SELECT count(*) FROM jobs", &[]).await, 4);
}

async fn what_has_ended_keeps_to_the_same_bounds(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let is_sqlite = matches!(database.sql, Sql::Sqlite(_));
    for (column, values, domain) in [
        ("priority", &["1001", "-1001", "NULL"][..], "ode_priority"),
        ("timeout_ms", &["0", "604800001"], "ode_timeout_ms"),
        ("kind", &["''", "NULL"], "ode_kind"),
        ("external_id", &["''"], "ode_external_id"),
        ("retries_max", &["-1"], "ode_count"),
        ("fence", &["-1", "NULL"], "job_past_counts"),
        ("attempts", &["-1", "NULL"], "job_past_counts"),
        ("retries", &["-1", "NULL"], "job_past_counts"),
        ("started_at", &["NULL"], "job_past_done_was_started"),
        ("input", &["NULL"], "input"),
        ("history", &["NULL"], "history"),
        ("created_at", &["NULL"], "created_at"),
    ] {
        for value in values {
            let statement = format!("UPDATE job_past SET {column} = {value} WHERE id = $1");
            let is_missing = *value == "NULL" && column != "started_at";
            let is_named = (is_missing || is_sqlite) && column != "started_at";
            check_refused(
                &mut database.sql,
                jobs.done,
                &[(&statement, if is_named { column } else { domain })],
            )
            .await;
        }
    }
}

async fn what_is_checked_at_the_door_is_checked_by_the_database_too(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let cases = [
        ("UPDATE job_live SET priority = 1001 WHERE id = $1", "priority"),
        ("UPDATE job_live SET priority = -1001 WHERE id = $1", "priority"),
        ("UPDATE job_live SET kind = '' WHERE id = $1", "kind"),
        ("UPDATE job_live SET external_id = '' WHERE id = $1", "external_id"),
        ("UPDATE job_live SET timeout_ms = 0 WHERE id = $1", "timeout_ms"),
        ("UPDATE job_live SET timeout_ms = 604800001 WHERE id = $1", "timeout_ms"),
        ("UPDATE job_live SET pipeline = 'fax' WHERE id = $1", "pipeline"),
        ("UPDATE job_live SET input = NULL WHERE id = $1", "input"),
        ("UPDATE job_live SET created_at = NULL WHERE id = $1", "created_at"),
        ("UPDATE job_live SET owner = NULL WHERE id = $1", "owner"),
    ];
    check_refused(&mut database.sql, jobs.ready, &cases).await;
    let twin = live_row(pipeline::XML, state::QUEUED);
    check_refused(&mut database.sql, jobs.ready, &[(&twin, "job_live")]).await;
}

/// A row with a name of its owner's choice, straight into the table.
async fn named(sql: &mut Sql, id: Uuid, owner: Uuid) -> Result<u64, String> {
    let user = if owner.is_nil() { "NULL" } else { "$2" };
    let row = format!(
        "INSERT INTO job_live (id, owner, user_id, pipeline, kind, input, state, history, external_id)
        VALUES ($1, $2, {user}, 'xml', 'plain', '{{}}', 'queued', '1', 'x')"
    );
    sql.run(&row, &[id, owner]).await
}

async fn an_external_id_is_unique_for_its_owner(mut database: Database) {
    for owner in [Uuid::new_v4(), Uuid::nil()] {
        let first = Uuid::now_v7();
        assert_eq!(named(&mut database.sql, first, owner).await, Ok(1));
        let refusal = named(&mut database.sql, Uuid::now_v7(), owner).await.unwrap_err();
        assert!(refusal.contains("job_key"), "{refusal}");
        assert_eq!(named(&mut database.sql, Uuid::now_v7(), Uuid::new_v4()).await, Ok(1), "another owner's");
        // The name outlives the work: what has ended still has it.
        database.store.cancel(JobId(first)).await.unwrap();
        assert!(named(&mut database.sql, Uuid::now_v7(), owner).await.is_err());
        // And a job that is tried again keeps it.
        database.store.retry(JobId(first)).await.unwrap();
        assert_eq!(record(&database.store, JobId(first)).await.external_id.as_deref(), Some("x"));
    }
}

async fn a_running_job_has_a_lease_and_no_other_has(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let leased = "job_live_running_is_leased";
    let running = [
        ("UPDATE job_live SET lease_until = NULL WHERE id = $1", leased),
        ("UPDATE job_live SET worker = NULL WHERE id = $1", leased),
        ("UPDATE job_live SET worker = NULL, lease_until = NULL WHERE id = $1", leased),
        ("UPDATE job_live SET started_at = NULL WHERE id = $1", leased),
        ("UPDATE job_live SET lane = NULL WHERE id = $1", leased),
        ("UPDATE job_live SET state = 'queued' WHERE id = $1", leased),
    ];
    check_refused(&mut database.sql, jobs.running, &running).await;
    let ready = [
        ("UPDATE job_live SET worker = $1 WHERE id = $1", leased),
        ("UPDATE job_live SET lease_until = {now} WHERE id = $1", leased),
        ("UPDATE job_live SET worker = $1, lease_until = {now}, started_at = {now} WHERE id = $1", leased),
        ("UPDATE job_live SET state = 'processing' WHERE id = $1", leased),
        ("UPDATE job_live SET state = 'uploaded' WHERE id = $1", leased),
        ("UPDATE job_live SET lane = 'fax' WHERE id = $1", "lane"),
        ("UPDATE job_live SET lane = 'html' WHERE id = $1", "job_live_lane_of_pipeline"),
    ];
    check_refused(&mut database.sql, jobs.ready, &ready).await;
}

async fn counters_and_progress_stay_within_their_bounds(mut database: Database) {
    let jobs = jobs(&database.store).await;
    for (column, values) in [
        ("progress_percent", &["-1", "101"][..]),
        ("progress_step", &["-1"]),
        ("progress_steps", &["-1"]),
        ("fence", &["-1", "NULL"]),
        ("attempts", &["-1", "NULL"]),
        ("retries", &["-1", "NULL"]),
        ("retries_max", &["-1"]),
        ("crashes", &["-1", "NULL"]),
        ("history", &["NULL"]),
    ] {
        // On PostgreSQL the bounds of a column are its type's, and the refusal names that.
        let bound = match (&database.sql, column) {
            (Sql::Sqlite(_), _) => column,
            (Sql::Postgres(_), "progress_percent") => "ode_percent",
            (Sql::Postgres(_), "progress_step" | "progress_steps") => "ode_number",
            (Sql::Postgres(_), "retries_max") => "ode_count",
            (Sql::Postgres(_), _) => "job_live_counts",
        };
        for value in values {
            let statement = format!("UPDATE job_live SET {column} = {value} WHERE id = $1");
            let broken = if *value == "NULL" { column } else { bound };
            check_refused(&mut database.sql, jobs.running, &[(&statement, broken)]).await;
        }
    }
    let beyond = "UPDATE job_live SET progress_step = 3, progress_steps = 2 WHERE id = $1";
    check_refused(&mut database.sql, jobs.running, &[(beyond, "job_live_step_within_steps")]).await;
}

async fn a_file_has_a_size_a_digest_and_one_place(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let insert = |changed: &str, value: &str| {
        let mut columns = vec![
            ("role", "'asset'".to_owned()),
            ("name", "'a.css'".to_owned()),
            ("storage", "'local'".to_owned()),
            ("path", "'new'".to_owned()),
            ("content_type", "'text/css'".to_owned()),
            ("bytes", "1".to_owned()),
            ("sha256", format!("'{}'", "0".repeat(64))),
        ];
        columns.iter_mut().find(|(name, _)| *name == changed).unwrap().1 = value.to_owned();
        let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let (names, values) = (names.join(", "), values.join(", "));
        format!("INSERT INTO job_artifact (id, job_id, {names}) VALUES ($1, $1, {values})")
    };
    for (column, value) in [
        ("bytes", "0"),
        ("bytes", "-1"),
        ("bytes", "NULL"),
        ("role", "'thing'"),
        ("name", "''"),
        ("storage", "'tape'"),
        ("sha256", "'short'"),
        ("content_type", "NULL"),
    ] {
        check_refused(&mut database.sql, jobs.done, &[(&insert(column, value), column)]).await;
    }
    check_refused(&mut database.sql, jobs.done, &[(&insert("path", "'kept'"), "path")]).await;
    let same_name = insert("role", "'result'").replace("'a.css'", "'invoice.xml'");
    check_refused(&mut database.sql, jobs.done, &[(&same_name, "role")]).await;
    let nobodys = insert("bytes", "1");
    let refusal = database.sql.run(&nobodys, &[Uuid::now_v7()]).await.unwrap_err();
    assert!(refusal.contains("does not exist"), "{refusal}");
    assert_eq!(database.sql.run(&nobodys, &[jobs.done]).await, Ok(1));
}

async fn logs_keys_workers_and_owners_are_what_they_say(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let cases = [
        ("INSERT INTO job_log (job_id, attempt, level, message) VALUES ($1, 1, 'loud', 'x')", "level"),
        ("INSERT INTO job_key (kind, owner, key, job_id) VALUES ('other', $1, 'x', $1)", "kind"),
        ("INSERT INTO job_key (kind, owner, key, job_id) VALUES ('dedupe', $1, '', $1)", "key"),
        ("UPDATE worker SET running = -1 WHERE id <> $1", "running"),
        ("INSERT INTO owner (id, kind) VALUES ($1, 'robot')", "kind"),
    ];
    check_refused(&mut database.sql, jobs.done, &cases).await;
    let key = "INSERT INTO job_key (kind, owner, key, job_id) VALUES ('dedupe', $1, 'x', $1)";
    assert_eq!(database.sql.run(key, &[jobs.done]).await, Ok(1));
    check_refused(&mut database.sql, jobs.done, &[(key, "job_key")]).await;
    for nobodys in [
        "INSERT INTO job_log (job_id, attempt, level, message) VALUES ($1, 1, 'info', 'x')",
        "INSERT INTO api_key (id, owner, name, secret_hash) VALUES ('k', $1, 'x', 'x')",
    ] {
        let nobodys = match database.sql {
            Sql::Postgres(_) => nobodys.to_owned(),
            Sql::Sqlite(_) => nobodys.replace("'x', 'x')", "'x', x'00')"),
        };
        let refusal = database.sql.run(&nobodys, &[Uuid::now_v7()]).await.unwrap_err();
        let is_told = refusal.contains("does not exist") || refusal.to_lowercase().contains("foreign key");
        assert!(is_told, "{refusal}");
    }
}

async fn the_database_knows_exactly_the_states_of_the_machines(mut database: Database) {
    for pipeline in pipeline::ALL {
        for state in ode_job::machines::states() {
            let phase = pipeline.phase(*state);
            let is_over = phase.is_some_and(|_| pipeline.is_terminal(*state));
            let id = Uuid::now_v7();
            let ended = database.sql.run(&ended_row(*pipeline, *state), &[id]).await;
            assert_eq!(is_known(&ended), is_over, "{pipeline} ended as {state}: {ended:?}");
            if ended.is_ok() {
                assert_eq!(Some(record(&database.store, JobId(id)).await.phase), phase, "{pipeline} {state}");
            }
            let live = database.sql.run(&live_row(*pipeline, *state), &[Uuid::now_v7()]).await;
            let is_live = phase.is_some() && !is_over;
            assert_eq!(is_known(&live), is_live, "{pipeline} live as {state}: {live:?}");
        }
    }
}

/// Whether the database knows the state: a print in a later one is refused without its export or its order.
fn is_known(outcome: &Result<u64, String>) -> bool {
    outcome.as_ref().map_or_else(
        |refusal| refusal.contains("job_live_exported") || refusal.contains("job_is_ordered"),
        |_| true,
    )
}

fn ended_row(pipeline: Pipeline, state: State) -> String {
    let failures = [state::FAILED, state::TIMED_OUT, state::EXPORT_FAILED, state::ORDER_FAILED];
    let error = if failures.contains(&state) { "'X', 'x'" } else { "NULL, NULL" };
    format!(
        "INSERT INTO job_past (id, pipeline, kind, input, state, created_at, fence, priority, attempts, retries,
            history, started_at, error_code, error_message)
        VALUES ($1, '{pipeline}', 'plain', '{{}}', '{state}', {{now}}, 1, 0, 1, 0, '1', {{now}}, {error})"
    )
}

fn live_row(pipeline: Pipeline, state: State) -> String {
    let running = lane::ALL.iter().find(|lane| lane.pipeline() == pipeline && lane.running_state() == state);
    let lane = running.copied().or(pipeline.lane(state)).map_or("NULL".into(), |lane| format!("'{lane}'"));
    let lease = if running.is_some() { "$1, {now}, {now}" } else { "NULL, NULL, NULL" };
    format!(
        "INSERT INTO job_live (id, owner, user_id, pipeline, kind, input, state, history, lane, worker, lease_until,
            started_at)
        VALUES ($1, $1, $1, '{pipeline}', 'plain', '{{}}', '{state}', '1', {lane}, {lease})"
    )
}

const TOLD: [&str; 8] = [
    "UPDATE job_past SET history = ''",
    "UPDATE job_journal SET actor = 'me'",
    "DELETE FROM job_journal",
    "UPDATE job_artifact SET bytes = 4",
    "DELETE FROM job_artifact",
    "UPDATE job_log SET message = 'it went differently'",
    "DELETE FROM job_log",
    "DELETE FROM job_past",
];

async fn what_was_told_cannot_be_changed(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let before = database.store.events(JobId(jobs.done)).await.unwrap();
    for statement in TOLD {
        let refusal = database.sql.run(statement, &[]).await.unwrap_err();
        assert!(refusal.contains("append-only: only retention may"), "{statement}: {refusal}");
    }
    assert_eq!(database.store.events(JobId(jobs.done)).await.unwrap(), before);
}

/// How retention opens the door for the length of a transaction, and closes it.
fn retention(sql: &Sql) -> (&'static str, &'static str) {
    match sql {
        Sql::Postgres(_) => ("SET LOCAL ode.retention = 'on'", "SET LOCAL ode.retention = 'off'"),
        Sql::Sqlite(_) => ("INSERT INTO retention_pass VALUES (1)", "DELETE FROM retention_pass"),
    }
}

async fn only_retention_may_change_what_was_told(mut database: Database) {
    jobs(&database.store).await;
    let (open, close) = retention(&database.sql);
    for statement in ["BEGIN", open].into_iter().chain(TOLD).chain([close, "COMMIT"]) {
        database.sql.run(statement, &[]).await.unwrap();
    }
    assert_eq!(database.sql.number("SELECT count(*) FROM job_journal", &[]).await, 0);
    database.store.enqueue(job(pipeline::HTML)).await.unwrap();
    assert!(database.sql.run("DELETE FROM job_journal", &[]).await.is_err(), "the door stayed open");
}

async fn every_change_is_dated_by_the_database(mut database: Database) {
    let jobs = jobs(&database.store).await;
    for (id, statement) in [
        (jobs.done, "UPDATE job_past SET metadata = '{\"a\": 1}' WHERE id = $1"),
        (jobs.ready, "UPDATE job_live SET metadata = '{\"a\": 1}' WHERE id = $1"),
        (jobs.running, "UPDATE job_live SET progress_percent = 7 WHERE id = $1"),
        (jobs.done, "UPDATE job_past SET updated_at = created_at WHERE id = $1"),
        (jobs.running, "UPDATE job_live SET updated_at = created_at WHERE id = $1"),
    ] {
        let before = record(&database.store, JobId(id)).await.updated_at;
        assert_eq!(database.sql.run(statement, &[id]).await, Ok(1));
        let after = record(&database.store, JobId(id)).await.updated_at;
        assert!(after > before, "{statement}: {before} stayed {after}");
    }
}

async fn a_job_takes_its_files_and_logs_with_it(mut database: Database) {
    let jobs = jobs(&database.store).await;
    let count = "SELECT (SELECT count(*) FROM job_artifact WHERE job_id = $1)
        + (SELECT count(*) FROM job_log WHERE job_id = $1)";
    assert_eq!(database.sql.number(count, &[jobs.done]).await, 2);
    let (open, close) = retention(&database.sql);
    for statement in ["BEGIN", open] {
        database.sql.run(statement, &[]).await.unwrap();
    }
    assert_eq!(database.sql.run("DELETE FROM job_past WHERE id = $1", &[jobs.done]).await, Ok(1));
    for statement in [close, "COMMIT"] {
        database.sql.run(statement, &[]).await.unwrap();
    }
    assert_eq!(database.sql.number(count, &[jobs.done]).await, 0);
    let owner = Owner::Operator;
    assert!(database.store.job_of(owner, ode_job::JobRef::Id(JobId(jobs.done))).await.is_err());
}

mod sqlite_only {
    use super::*;

    const IN_BOTH: &str = "SELECT count(*) FROM job_live JOIN job_past USING (id)";

    /// PostgreSQL looks at the whole when a transaction commits; here each row is looked at as it comes.
    #[tokio::test]
    async fn whoever_puts_a_job_into_one_table_takes_it_out_of_the_other() {
        let mut database = sqlite_file().await;
        let jobs = jobs(&database.store).await;
        let signed = ended_row(pipeline::XML, state::FAILED)
            .replace("(id, ", "(engine_version, id, ")
            .replace("VALUES (", "VALUES ('0.1.0', ");
        for insert in [signed.clone(), signed.replacen("INSERT", "INSERT OR REPLACE", 1)] {
            for job in [jobs.ready, jobs.running] {
                // Whether it was taken or not: the job is in one of them.
                database.sql.run(&insert, &[job]).await.ok();
                assert_eq!(database.sql.number(IN_BOTH, &[]).await, 0, "{insert}");
                assert!(database.store.job(ode_job::JobRef::Id(JobId(job))).await.is_ok());
            }
        }
        let again = "INSERT INTO job_live (id, owner, pipeline, kind, input, state, history)
            SELECT id, zeroblob(16), pipeline, kind, input, 'queued', history || ',9' FROM job_past WHERE id = $1";
        assert_eq!(database.sql.run(again, &[jobs.failed]).await, Ok(1));
        assert_eq!(database.sql.number(IN_BOTH, &[]).await, 0);
        assert_eq!(record(&database.store, JobId(jobs.failed)).await.phase, Phase::Held);
        assert_eq!(database.sql.number("SELECT count(*) FROM jobs", &[]).await, 4);
    }

    #[tokio::test]
    async fn what_was_told_cannot_be_replaced() {
        let mut database = sqlite_file().await;
        let jobs = jobs(&database.store).await;
        let before = database.store.events(JobId(jobs.done)).await.unwrap();
        for (table, changed, value) in [
            ("job_journal", "actor", "'me'"),
            ("job_artifact", "bytes", "4"),
            ("job_log", "message", "'it went differently'"),
            ("job_past", "engine_version", "NULL"),
        ] {
            let columns = sqlx::AssertSqlSafe(format!("SELECT name FROM pragma_table_info('{table}')"));
            let Sql::Sqlite(connection) = &mut database.sql else { unreachable!("it was opened on SQLite") };
            let columns: Vec<String> = sqlx::query_scalar(columns).fetch_all(connection).await.unwrap();
            let values: Vec<&str> =
                columns.iter().map(|name| if name == changed { value } else { name.as_str() }).collect();
            let replace = format!("REPLACE INTO {table} SELECT {} FROM {table}", values.join(", "));
            let refusal = database.sql.run(&replace, &[]).await.unwrap_err();
            assert!(refusal.contains(table), "{refusal}");
        }
        assert_eq!(database.store.events(JobId(jobs.done)).await.unwrap(), before);
    }
}

mod postgres_only {
    use super::*;

    #[tokio::test]
    async fn what_was_told_cannot_be_emptied_at_a_stroke() {
        let mut database = postgres_database().await;
        jobs(&database.store).await;
        for (table, rule) in [
            ("job_journal", "append-only"),
            ("job_past", "append-only"),
            ("job_artifact", "append-only"),
            ("job_log", "append-only"),
            ("job_live", "job_live_stays"),
        ] {
            let refusal = database.sql.run(&format!("TRUNCATE {table}"), &[]).await.unwrap_err();
            assert!(refusal.contains(rule), "{refusal}");
        }
    }

    #[tokio::test]
    async fn two_scripts_cannot_have_the_same_reference() {
        let mut database = postgres_database().await;
        let script = &live_row(pipeline::SCRIPT, state::QUEUED).replace("'xml'", "'script'");
        let id = Uuid::now_v7();
        assert_eq!(database.sql.run(script, &[id]).await, Ok(1));
        // The middle of an id is not part of the reference.
        let twin = Uuid::from_u128(id.as_u128() ^ (1 << 40));
        check_refused(&mut database.sql, twin, &[(script, "job_live_script_reference")]).await;
    }

    #[tokio::test]
    async fn references_made_in_sql_are_those_made_in_rust() {
        let database = postgres_database().await;
        let id = database.store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
        let Sql::Postgres(mut connection) = database.sql else { unreachable!("it was opened on PostgreSQL") };
        let query = sqlx::query_scalar("SELECT reference FROM jobs WHERE id = $1").bind(id.0);
        let reference: String = query.fetch_one(&mut connection).await.unwrap();
        assert_eq!(reference, id.reference());
        let phase = "SELECT phase FROM jobs WHERE id = $1";
        let phase: String = sqlx::query_scalar(phase).bind(id.0).fetch_one(&mut connection).await.unwrap();
        assert_eq!(phase, Phase::Ready.as_str());
    }
}
