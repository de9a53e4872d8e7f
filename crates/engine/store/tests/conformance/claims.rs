//! Claiming: who gets which job, and in which order.

use crate::harness::{claim, claim_one, job, on_both, organisation, request, worker};
use crate::machines::{lane, pipeline, state};
use ode_job::Phase;
use ode_store::{ClaimRequest, Store};
use std::collections::HashSet;
use std::time::Duration;

on_both!(
    a_claim_leases_the_job_and_counts_the_attempt,
    higher_priority_goes_first_then_older,
    a_job_is_claimed_by_one_worker_only,
    a_flood_does_not_starve_another_owner,
    every_owner_gets_a_turn_in_a_round,
    a_job_whose_time_has_not_come_is_not_claimed,
    lanes_do_not_mix,
    an_attempts_own_time_limit_is_kept,
);

async fn a_claim_leases_the_job_and_counts_the_attempt(store: Store) {
    let id = store.enqueue(job(pipeline::XML)).await.unwrap().id();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    assert_eq!(claimed.lease.job(), id);
    assert_eq!(claimed.lease.fence(), 1);
    assert_eq!(claimed.attempt, 1);
    assert_eq!(claimed.input["document"], "a.pdf");
    let record = store.job(ode_job::JobRef::Id(id)).await.unwrap();
    assert_eq!((record.state, record.phase), (state::PROCESSING, Phase::Running));
    assert_eq!(record.worker_id, Some(worker));
    assert!(record.lease_expires_at > record.started_at);
    assert!(record.timeout_at > record.started_at);
    assert!(claim(&store, lane::XML, worker, 10).await.is_empty(), "a leased job was claimed again");
}

async fn higher_priority_goes_first_then_older(store: Store) {
    let mut ids = Vec::new();
    for priority in [0, 5, -5, 5] {
        let mut new = job(pipeline::HTML);
        new.priority = priority;
        ids.push(store.enqueue(new).await.unwrap().id());
    }
    let worker = worker(&store).await;
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(claim_one(&store, lane::HTML, worker).await.lease.job());
    }
    assert_eq!(order, [ids[1], ids[3], ids[0], ids[2]]);
}

async fn a_job_is_claimed_by_one_worker_only(store: Store) {
    store.enqueue_many((0..300).map(|_| job(pipeline::HTML)).collect()).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let (store, worker) = (store.clone(), worker(&store).await);
        tasks.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = claim(&store, lane::HTML, worker, 7).await;
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|job| job.lease.job()));
            }
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    assert_eq!(all.len(), 300);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 300, "a job was claimed twice");
}

async fn a_flood_does_not_starve_another_owner(store: Store) {
    let flood = organisation();
    store.enqueue_many((0..500).map(|_| job(pipeline::HTML).owned_by(flood)).collect()).await.unwrap();
    let single = store.enqueue(job(pipeline::HTML).owned_by(organisation())).await.unwrap().id();
    let worker = worker(&store).await;
    let first = claim(&store, lane::HTML, worker, 10).await;
    assert_eq!(first.len(), 6, "half of ten for the flood, and the single job");
    assert!(first.iter().any(|job| job.lease.job() == single), "the single job had to wait behind the flood");
}

async fn every_owner_gets_a_turn_in_a_round(store: Store) {
    let owners: Vec<_> = (0..5).map(|_| organisation()).collect();
    for owner in &owners {
        store.enqueue_many((0..3).map(|_| job(pipeline::HTML).owned_by(*owner)).collect()).await.unwrap();
    }
    let worker = worker(&store).await;
    let mut after = uuid::Uuid::nil();
    let mut served = Vec::new();
    for _ in 0..15 {
        let claimed = store.claim(ClaimRequest { after, ..request(lane::HTML, worker, 1) }).await.unwrap();
        after = claimed[0].owner.key();
        served.push(after);
    }
    for round in served.chunks(5) {
        assert_eq!(
            round.iter().collect::<HashSet<_>>().len(),
            5,
            "somebody had two turns in one round: {served:?}"
        );
    }
}

async fn a_job_whose_time_has_not_come_is_not_claimed(store: Store) {
    let mut later = job(pipeline::XML);
    later.run_at = Some(jiff::Timestamp::now() + Duration::from_secs(3600));
    let id = store.enqueue(later).await.unwrap().id();
    let worker = worker(&store).await;
    assert!(claim(&store, lane::XML, worker, 10).await.is_empty());
    let record = store.job(ode_job::JobRef::Id(id)).await.unwrap();
    assert_eq!(record.phase, Phase::Held);
    let look = store.look(&[lane::XML]).await.unwrap();
    assert_eq!(look.ready, []);
    assert!(look.due_at > Some(look.now));
}

async fn lanes_do_not_mix(store: Store) {
    for pipeline in pipeline::ALL {
        store.enqueue(job(*pipeline)).await.unwrap();
    }
    let worker = worker(&store).await;
    for lane in [lane::XML, lane::HTML, lane::PRINT_EXPORT, lane::SCRIPT] {
        let claimed = claim(&store, lane, worker, 10).await;
        assert_eq!(claimed.len(), 1, "{lane}");
        assert_eq!(claimed[0].lane, lane);
    }
    assert!(claim(&store, lane::PRINT_ORDER, worker, 10).await.is_empty());
}

async fn an_attempts_own_time_limit_is_kept(store: Store) {
    let mut quick = job(pipeline::SCRIPT);
    quick.timeout = Some(Duration::from_secs(7));
    let id = store.enqueue(quick).await.unwrap().id();
    let worker = worker(&store).await;
    claim_one(&store, lane::SCRIPT, worker).await;
    let record = store.job(ode_job::JobRef::Id(id)).await.unwrap();
    let limit = record.timeout_at.unwrap().as_millisecond() - record.started_at.unwrap().as_millisecond();
    assert_eq!(limit, 7000);
}
