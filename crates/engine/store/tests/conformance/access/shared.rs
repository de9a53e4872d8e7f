//! Connections that organisations share: ten thousand transactions on four of them.

use super::guest::{Guest, id_of, number, rows, run};
use crate::harness::{claim, claim_one, finish, job, organisation, postgres_database, worker};
use crate::machines::{lane, pipeline};
use futures_util::future::join_all;
use ode_job::{Ended, ErrorCode, Failure, JobId, Owner};
use ode_store::Store;
use sqlx::Row as _;
use uuid::Uuid;

/// What people ask these relations, each with the column that says whose a row is; the last ones only count. `{id}` is
/// a job of another organisation.
const QUERIES: [(&str, Option<&str>); 12] = [
    ("SELECT * FROM jobs", Some("organisation_id")),
    (
        "SELECT * FROM script_jobs WHERE status IN ('pending', 'queued') ORDER BY priority DESC, created_at",
        Some("organisation_id"),
    ),
    ("SELECT * FROM script_jobs WHERE status = 'in_progress' ORDER BY started_at", Some("organisation_id")),
    ("SELECT * FROM script_jobs WHERE status = 'failed' ORDER BY created_at DESC", Some("organisation_id")),
    (
        "SELECT * FROM script_jobs WHERE status = 'pending' AND retry_count < max_retries AND next_retry_at IS NOT NULL",
        Some("organisation_id"),
    ),
    ("SELECT * FROM script_jobs WHERE job_type = 'plain' AND status = 'queued'", Some("organisation_id")),
    (
        "SELECT * FROM script_jobs WHERE updated_at > now() - interval '1 hour' ORDER BY updated_at DESC",
        Some("organisation_id"),
    ),
    ("SELECT * FROM script_jobs_failed_summary", Some("organisation_id")),
    ("SELECT * FROM script_jobs WHERE id = '{id}'", Some("organisation_id")),
    ("SELECT * FROM script_jobs WHERE job_id = ode_reference('{id}')", Some("organisation_id")),
    ("SELECT coalesce(sum(count), 0)::bigint FROM script_jobs_queue_status", None),
    (
        "SELECT coalesce(sum(completed_count + failed_count + in_progress_count + queued_count), 0)::bigint
        FROM script_jobs_metrics",
        None,
    ),
];

/// What each organisation has: as many scripts as its number, and one more of each that has ended.
async fn scripts_of(store: &Store, owner: Owner, waiting: usize) -> JobId {
    let worker = worker(store).await;
    for ended in [Ended::Succeeded, Ended::Failed(Failure::from(ErrorCode::NotPdf))] {
        store.enqueue(job(pipeline::SCRIPT).owned_by(owner)).await.unwrap();
        let claimed = claim_one(store, lane::SCRIPT, worker).await;
        finish(store, claimed, ended).await;
    }
    let jobs = (0..waiting).map(|_| job(pipeline::SCRIPT).owned_by(owner)).collect();
    let ids = store.enqueue_many(jobs).await.unwrap();
    // Out of the way of the next owner's, which are claimed in turn.
    while let [_, ..] = claim(store, lane::SCRIPT, worker, 100).await.as_slice() {}
    ids[0]
}

#[tokio::test]
async fn shared_connections_never_show_anothers_rows() {
    const ORGANISATIONS: usize = 6;
    const TRANSACTIONS: usize = 10_000;
    const CONNECTIONS: u32 = 4;
    let mut database = postgres_database().await;
    let owners: Vec<Owner> = (0..ORGANISATIONS).map(|_| organisation()).collect();
    let mut jobs = Vec::new();
    for (number, owner) in owners.iter().enumerate() {
        jobs.push(scripts_of(&database.store, *owner, number + 1).await);
    }
    let guest = Guest::new(&mut database, CONNECTIONS).await;
    let visit = async |round: usize| {
        let random = Uuid::new_v4().as_u128() as usize;
        let mine = random % (ORGANISATIONS + 1);
        let name = owners.get(mine).map_or(String::new(), |owner| id_of(*owner).to_string());
        let mut tx = guest.pool.begin().await.unwrap();
        // The last one of them says no name at all, on a connection where others have.
        if mine < ORGANISATIONS {
            run(&mut tx, &format!("SET LOCAL ode.organisation = '{name}'"), &[]).await.unwrap();
        }
        let (query, whose) = QUERIES[round % QUERIES.len()];
        let sql = query.replace("{id}", &jobs[(mine + 1) % ORGANISATIONS].to_string());
        match whose {
            Some(column) => {
                let sql = format!("SELECT {column}::text AS whose FROM ({sql}) AS asked");
                let seen: Vec<Option<String>> =
                    rows(&mut tx, &sql).await.iter().map(|row| row.get("whose")).collect();
                let is_own = |whose: &Option<String>| whose.as_deref() == Some(name.as_str());
                assert!(seen.iter().all(is_own), "round {round}, {query}: {name} saw {seen:?}");
                let is_of_another = query.contains("{id}");
                assert!(!is_of_another || seen.is_empty(), "round {round}, {query}: {name} saw {seen:?}");
            }
            None => {
                let own = if mine < ORGANISATIONS { mine as i64 + 3 } else { 0 };
                assert_eq!(number(&mut tx, &sql, &[]).await, own, "round {round}, {query}");
            }
        }
        if (random >> 8).is_multiple_of(5) { tx.rollback().await } else { tx.commit().await }.unwrap();
    };
    let walk = async |first: usize| {
        for round in (first..TRANSACTIONS).step_by(8) {
            visit(round).await;
        }
    };
    join_all((0..8).map(walk)).await;
    guest.leave(&mut database).await;
}
