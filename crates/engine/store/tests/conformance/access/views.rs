//! The relations that people query, as the original documents give them.

use super::guest::{enqueue, furnish, number, owner, rows, run};
use crate::harness::{claim_one, finish, job, organisation, postgres_database, record, worker};
use crate::machines::{lane, pipeline};
use jiff::Timestamp;
use ode_job::{Ended, ErrorCode, Failure, Owner, WorkerId};
use sqlx::{Column as _, Row as _};
use uuid::Uuid;

/// The columns the original documents give each relation, in their order.
const DOCUMENTED: [(&str, &str); 6] = [
    (
        "script_jobs",
        "id job_id job_type status input_payload result error_message error_code error_stack retry_count
        max_retries retry_delay_ms next_retry_at progress_percent progress_message current_step total_steps
        created_at started_at completed_at cancelled_at updated_at timeout_at worker_id process_pid
        organisation_id restaurant_id created_by priority metadata",
    ),
    ("script_jobs_queue_status", "job_type status count avg_duration_seconds oldest_job newest_job"),
    (
        "script_jobs_failed_summary",
        "id job_id job_type error_message error_code retry_count max_retries created_at completed_at
        organisation_id",
    ),
    (
        "script_jobs_metrics",
        "job_type completed_count failed_count in_progress_count queued_count success_rate_percent
        avg_duration_seconds",
    ),
    (
        "print_jobs",
        "id printable_map_id state export_file_path export_started_at export_completed_at export_error
        export_retry_count printful_order_id order_started_at order_completed_at order_error order_retry_count
        order_phase needs_attention shipped_at delivered_at created_at updated_at",
    ),
    ("print_job_events", "id print_job_id from_state to_state metadata occurred_at"),
];

#[tokio::test]
async fn the_documented_relations_have_the_documented_columns() {
    let mut database = postgres_database().await;
    for owner in [organisation(), Owner::Operator] {
        furnish(&database.store, owner).await;
    }
    for (relation, columns) in DOCUMENTED {
        let found = rows(owner(&mut database), &format!("SELECT * FROM {relation}")).await;
        let names: Vec<_> = found[0].columns().iter().map(|column| column.name().to_owned()).collect();
        assert_eq!(names, columns.split_whitespace().collect::<Vec<_>>(), "{relation}");
    }
}

#[tokio::test]
async fn the_documented_queries_are_answered() {
    let mut database = postgres_database().await;
    let ids = furnish(&database.store, organisation()).await;
    let sql = owner(&mut database);
    let export = "SELECT pj.id FROM print_jobs pj WHERE pj.state = 'pending_export' ORDER BY pj.created_at";
    let export: Vec<Uuid> = rows(sql, export).await.iter().map(|row| row.get("id")).collect();
    assert_eq!(export, [ids[5].0]);
    let state = "SELECT count(*) FROM print_jobs WHERE id = $1 AND state = 'pending_export'";
    assert_eq!(number(sql, state, &[ids[5].0]).await, 1);
    let metrics =
        &rows(sql, "SELECT *, success_rate_percent::float8 AS rate FROM script_jobs_metrics").await[0];
    let count = |column| metrics.get::<i64, _>(column);
    let counts = ["completed_count", "failed_count", "in_progress_count", "queued_count"].map(count);
    assert_eq!(counts, [1, 1, 1, 0]);
    assert!((metrics.get::<f64, _>("rate") - 50.0).abs() < f64::EPSILON);
    let status = rows(sql, "SELECT status, count FROM script_jobs_queue_status").await;
    let status: Vec<(String, i64)> = status.iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected = [("cancelled", 1), ("completed", 1), ("failed", 1), ("in_progress", 1)];
    assert_eq!(status, expected.map(|(status, count)| (status.to_owned(), count)));
    let failed = &rows(sql, "SELECT * FROM script_jobs_failed_summary").await[0];
    assert_eq!(failed.get::<String, _>("job_id"), ids[2].reference());
    assert_eq!(failed.get::<String, _>("error_code"), "NOT_PDF");
    let cleanup = "SELECT count(*) FROM script_jobs WHERE created_at < now() - INTERVAL '30 days'
        AND status IN ('completed', 'failed', 'cancelled', 'timed_out')";
    assert_eq!(number(sql, cleanup, &[]).await, 0);
}

#[tokio::test]
async fn scripts_are_found_by_index_however_many_there_were() {
    let mut database = postgres_database().await;
    let sql = owner(&mut database);
    let many = "INSERT INTO job_past (id, created_at, started_at, fence, priority, attempts, retries, pipeline, kind,
            state, created_by, metadata, history, input)
        SELECT ode_new_id(), now() - n * interval '1 hour', now(), 1, 0, 1, 0, 'script', 'kind-' || n % 50, 'completed',
            gen_random_uuid(), jsonb_build_object('restaurant_id', gen_random_uuid()), '', '{}'
        FROM generate_series(1, 5000) AS n";
    run(sql, many, &[]).await.unwrap();
    run(sql, "ANALYZE job_past", &[]).await.unwrap();
    let id = Uuid::now_v7();
    let queries = [
        (format!("job_id = ode_reference('{id}')"), "script_reference"),
        (format!("restaurant_id = '{id}'"), "script_restaurant"),
        (format!("created_by = '{id}' ORDER BY created_at DESC"), "script_creator"),
        ("job_type = 'plain' AND status = 'failed'".to_owned(), "script_type"),
        ("created_at > now() - interval '24 hours'".to_owned(), "script_created"),
        ("updated_at > now()".to_owned(), "script_updated"),
    ];
    for (condition, index) in queries {
        let plan = rows(sql, &format!("EXPLAIN SELECT * FROM script_jobs WHERE {condition}")).await;
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let index = format!("job_past_{index}");
        assert!(plan.iter().any(|line| line.contains(&index)), "{condition}\n{}", plan.join("\n"));
    }
}

#[tokio::test]
async fn an_ended_script_shows_what_it_ran_as_and_how_far_it_came() {
    let mut database = postgres_database().await;
    let store = database.store.clone();
    let id = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    let WorkerId(worker) = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, WorkerId(worker)).await;
    let ran = "INSERT INTO script_run (job_id, attempt, worker, host, version, digest, pid, start_ticks, boot_id, timeout_at,
            steps, progress_percent, progress_message, current_step, total_steps, error_code)
        SELECT id, attempts, worker, 'test', '1', 'd', 4711, 1, 'b', timeout_at, '[]', 40, 'Row 4', 2, 5, 'login_rejected'
        FROM job_live WHERE id = $1";
    run(owner(&mut database), ran, &[id.0]).await.unwrap();
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::ScriptFailed))).await;
    let shown = "SELECT count(*) FROM script_jobs WHERE id = $1 AND status = 'failed' AND worker_id = $2::text
        AND process_pid = 4711 AND progress_percent = 40 AND progress_message = 'Row 4' AND current_step = 2
        AND total_steps = 5 AND timeout_at > started_at AND completed_at >= started_at AND cancelled_at IS NULL
        AND max_retries = 3 AND retry_delay_ms = 5000 AND error_code = 'login_rejected'";
    assert_eq!(number(owner(&mut database), shown, &[id.0, worker]).await, 1);
}

#[tokio::test]
async fn a_script_shows_when_it_is_tried_again_and_who_runs_it() {
    let mut database = postgres_database().await;
    let store = database.store.clone();
    let id = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    let WorkerId(worker) = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, WorkerId(worker)).await;
    store.process(&claimed.lease, 4711).await.unwrap();
    let sql = owner(&mut database);
    let running = "SELECT count(*) FROM script_jobs WHERE id = $1 AND status = 'in_progress'
        AND worker_id = $2::text AND process_pid = 4711 AND timeout_at > started_at
        AND next_retry_at IS NULL";
    assert_eq!(number(sql, running, &[id.0, worker]).await, 1);
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::Unknown))).await;
    let waiting = "SELECT count(*) FROM script_jobs WHERE id = $1 AND status = 'pending' AND retry_count = 1
        AND next_retry_at > now() AND next_retry_at < now() + interval '6 seconds'";
    assert_eq!(number(sql, waiting, &[id.0]).await, 1);
}

#[tokio::test]
async fn a_label_that_is_no_id_does_not_spoil_the_view() {
    let mut database = postgres_database().await;
    let restaurant = Uuid::new_v4();
    for label in [restaurant.to_string(), "the corner place".into(), "{}".into()] {
        let mut new = job(pipeline::SCRIPT);
        new.metadata = serde_json::json!({ "restaurant_id": label });
        database.store.enqueue(new).await.unwrap();
    }
    let found = rows(owner(&mut database), "SELECT restaurant_id FROM script_jobs ORDER BY id").await;
    let found: Vec<Option<Uuid>> = found.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, [Some(restaurant), None, None]);
}

#[tokio::test]
async fn a_date_beyond_reason_does_not_spoil_a_list() {
    let mut database = postgres_database().await;
    enqueue(owner(&mut database), "'xml', 'plain', run_at => 'infinity'").await.unwrap();
    assert_eq!(database.store.look(&[]).await.unwrap().due_at, Some(Timestamp::MAX));
    let id = database.store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    let strange = "UPDATE job_live SET created_at = 'infinity' WHERE id = $1";
    run(owner(&mut database), strange, &[id.0]).await.unwrap();
    assert_eq!(record(&database.store, id).await.created_at, Timestamp::MAX);
    let strange = "UPDATE job_live SET created_at = '4000-01-01 BC' WHERE id = $1";
    run(owner(&mut database), strange, &[id.0]).await.unwrap();
    let page = database.store.jobs(&ode_store::ListFilter { limit: 10, ..Default::default() }).await.unwrap();
    assert_eq!(page.jobs.len(), 2);
}
