//! Scripts: what they wait for, what becomes of their secrets, and what is recorded of them.

use crate::harness::{
    Database, claim, claim_one, ending, file, finish, history, job, on_both, organisation, record, worker,
};
use crate::machines::{lane, pipeline, state};
use jiff::Timestamp;
use ode_job::script::{Process, Run, ScriptStep, StepState};
use ode_job::{Artifact, Ended, ErrorCode, Failure, JobId, JobRef, NewJob, Owner, Phase, Progress, Sealed};
use ode_store::{
    Blobs, BlobsConfig, Dialect, Error, Need, NewScript, OrderedScripts, OwnedFilter, ScriptFilter,
    ScriptOrder, ScriptType, SealSide, Store,
};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

on_both!(
    later_jobs_of_a_batch_wait_until_earlier_ones_completed,
    a_job_whose_need_failed_is_called_off_with_the_reason,
    one_job_at_a_time_has_a_turn,
    a_turn_that_nobody_waits_for_is_free_again,
    a_batch_is_taken_once_under_its_key,
    secrets_go_with_the_end_of_the_job,
    a_failed_job_keeps_its_secrets_for_a_while,
    a_lost_lease_is_given_no_secrets_and_writes_nothing,
    secrets_of_a_result_are_taken_once,
    seals_are_turned_to_a_new_key,
    checkpoints_and_steps_outlive_their_attempt,
    scripts_are_listed_by_what_people_look_for,
    what_shows_why_an_attempt_failed_is_kept,
);
on_both!(sqlite_file, postgres_database: a_script_has_what_its_type_says, old_scripts_go_to_the_archive);

fn script(owner: Owner) -> NewScript {
    let keep_secret = Duration::from_secs(3600);
    NewScript {
        job: job(pipeline::SCRIPT).owned_by(owner),
        secret: None,
        keep_secret,
        turn: None,
        needs: Vec::new(),
    }
}

fn sealed() -> Sealed {
    Sealed { id: Uuid::now_v7(), key_id: "k1".into(), wrapped: vec![1; 80], content: vec![2; 60] }
}

fn order(owner: Owner, scripts: Vec<NewScript>) -> ScriptOrder {
    ScriptOrder { owner, idempotency_key: None, batch: None, scripts }
}

async fn enqueue(store: &Store, owner: Owner, scripts: Vec<NewScript>) -> Vec<JobId> {
    store.enqueue_scripts(&order(owner, scripts)).await.unwrap().ids
}

/// Puts everything in line that can be.
async fn promote(store: &Store) {
    while store.promote_due().await.unwrap() > 0 {}
}

async fn states(store: &Store, ids: &[JobId]) -> Vec<&'static str> {
    let mut states = Vec::new();
    for id in ids {
        states.push(record(store, *id).await.state.as_str());
    }
    states
}

/// Runs the one job that is in line to this end.
async fn run(store: &Store, ended: Ended) -> JobId {
    let worker = worker(store).await;
    let claimed = claim_one(store, lane::SCRIPT, worker).await;
    let id = claimed.lease.job();
    finish(store, claimed, ended).await;
    id
}

fn broken() -> Ended {
    Ended::Failed(Failure::rejected(ErrorCode::ScriptFailed, "The password was refused (login_rejected)"))
}

async fn later_jobs_of_a_batch_wait_until_earlier_ones_completed(store: Store) {
    let owner = organisation();
    let mut scripts = vec![script(owner), script(owner), script(owner)];
    scripts[1].needs = vec![Need::Earlier(0)];
    scripts[2].needs = vec![Need::Earlier(0), Need::Earlier(1)];
    let ids = enqueue(&store, owner, scripts).await;
    promote(&store).await;
    assert_eq!(states(&store, &ids).await, ["queued", "pending", "pending"]);
    assert_eq!(run(&store, Ended::Succeeded).await, ids[0]);
    promote(&store).await;
    assert_eq!(states(&store, &ids).await, ["completed", "queued", "pending"]);
    assert_eq!(run(&store, Ended::Succeeded).await, ids[1]);
    promote(&store).await;
    assert_eq!(states(&store, &ids).await, ["completed", "completed", "queued"]);
}

async fn a_job_whose_need_failed_is_called_off_with_the_reason(store: Store) {
    let owner = organisation();
    let mut scripts = vec![script(owner), script(owner), script(owner)];
    scripts[1].needs = vec![Need::Earlier(0)];
    scripts[2].needs = vec![Need::Earlier(1)];
    let ids = enqueue(&store, owner, scripts).await;
    promote(&store).await;
    run(&store, broken()).await;
    promote(&store).await;
    assert_eq!(states(&store, &ids).await, ["failed", "cancelled", "cancelled"]);
    let jobs = [record(&store, ids[1]).await, record(&store, ids[2]).await];
    let facts = store.script_facts(&jobs).await.unwrap();
    let reason = facts[&ids[1]].reason.clone().unwrap();
    assert!(reason.contains(&ids[0].reference()) && reason.contains("login_rejected"), "{reason}");
    assert!(facts[&ids[2]].reason.as_ref().unwrap().contains("was cancelled"));
    assert_eq!(facts[&ids[1]].needs, [ids[0]]);
}

async fn one_job_at_a_time_has_a_turn(store: Store) {
    let owner = organisation();
    let with_turn = |owner, priority| {
        let mut script = script(owner);
        (script.turn, script.job.priority) = (Some("the corner place".into()), priority);
        script
    };
    let mut ids = Vec::new();
    for priority in [0, 0, 5] {
        ids.extend(enqueue(&store, owner, vec![with_turn(owner, priority)]).await);
    }
    let others = organisation();
    let other = enqueue(&store, others, vec![with_turn(others, 0)]).await;
    promote(&store).await;
    assert_eq!(states(&store, &ids).await, ["queued", "pending", "pending"]);
    assert_eq!(states(&store, &other).await, ["queued"], "another owner's turn is another");
    store.cancel(other[0]).await.unwrap();
    // A try that fails for now does not give the turn away.
    run(&store, Ended::Failed(Failure::from(ErrorCode::Unknown))).await;
    promote(&store).await;
    assert_eq!(states(&store, &ids).await, ["pending", "pending", "pending"]);
    store.cancel(ids[0]).await.unwrap();
    promote(&store).await;
    assert_eq!(states(&store, &ids[1..]).await, ["pending", "queued"], "the most urgent is next");
    run(&store, Ended::Succeeded).await;
    promote(&store).await;
    assert_eq!(states(&store, &ids[1..]).await, ["queued", "completed"]);
}

async fn a_turn_that_nobody_waits_for_is_free_again(store: Store) {
    let owner = organisation();
    let with_turn = || NewScript { turn: Some("t".into()), ..script(owner) };
    let first = enqueue(&store, owner, vec![with_turn()]).await;
    assert_eq!(run(&store, broken()).await, first[0]);
    let second = enqueue(&store, owner, vec![with_turn()]).await;
    assert_eq!(states(&store, &second).await, ["queued"]);
    // Tried again, the first one waits for its turn like everybody.
    store.retry(first[0]).await.unwrap();
    promote(&store).await;
    assert_eq!(states(&store, &first).await, ["pending"]);
    assert_eq!(run(&store, Ended::Succeeded).await, second[0]);
    promote(&store).await;
    assert_eq!(run(&store, Ended::Succeeded).await, first[0]);
}

async fn a_batch_is_taken_once_under_its_key(store: Store) {
    let owner = organisation();
    let request = |input: &str| {
        let mut scripts = vec![script(owner), script(owner)];
        scripts[0].job.input = json!({ "name": input });
        scripts[0].secret = Some(sealed());
        let key = Some("onboarding".to_owned());
        ScriptOrder { idempotency_key: key, batch: Some(Uuid::now_v7()), ..order(owner, scripts) }
    };
    let first = store.enqueue_scripts(&request("a")).await.unwrap();
    let again = store.enqueue_scripts(&request("a")).await.unwrap();
    assert_eq!(again, OrderedScripts { is_known: true, ..first });
    assert!(matches!(store.enqueue_scripts(&request("b")).await, Err(Error::KeyReused)));
}

async fn secrets_go_with_the_end_of_the_job(store: Store) {
    let owner = organisation();
    for ended in [Some(Ended::Succeeded), Some(Ended::TimedOut(ErrorCode::TimedOut.into())), None] {
        let secret = Some(sealed());
        let ids = enqueue(&store, owner, vec![NewScript { secret: secret.clone(), ..script(owner) }]).await;
        match ended {
            Some(ended) => {
                let worker = worker(&store).await;
                let claimed = claim_one(&store, lane::SCRIPT, worker).await;
                assert_eq!(store.held_secret(&claimed.lease).await.unwrap(), secret);
                finish(&store, claimed, ended).await;
            }
            None => drop(store.cancel(ids[0]).await.unwrap()),
        }
        let jobs = [record(&store, ids[0]).await];
        assert!(store.script_facts(&jobs).await.unwrap()[&ids[0]].are_secrets_gone, "{}", jobs[0].state);
    }
}

async fn a_failed_job_keeps_its_secrets_for_a_while(store: Store) {
    let owner = organisation();
    let with = |keep_secret| NewScript { secret: Some(sealed()), keep_secret, ..script(owner) };
    let kept = enqueue(&store, owner, vec![with(Duration::from_secs(3600))]).await;
    assert_eq!(run(&store, broken()).await, kept[0]);
    assert_eq!(store.shred_due().await.unwrap(), 0);
    assert_eq!(store.retry(kept[0]).await.unwrap(), state::QUEUED);
    assert_eq!(run(&store, Ended::Succeeded).await, kept[0]);
    let gone = enqueue(&store, owner, vec![with(Duration::from_micros(1))]).await;
    run(&store, broken()).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(store.shred_due().await.unwrap(), 1);
    assert!(matches!(store.retry(gone[0]).await, Err(Error::SecretsGone(id)) if id == gone[0]));
    assert_eq!(record(&store, gone[0]).await.state, state::FAILED);
    let others = sealed();
    store.retry_with(gone[0], Some((others.clone(), Duration::from_secs(1)))).await.unwrap();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, worker).await;
    assert_eq!(store.held_secret(&claimed.lease).await.unwrap(), Some(others));
}

async fn a_lost_lease_is_given_no_secrets_and_writes_nothing(store: Store) {
    let owner = organisation();
    enqueue(&store, owner, vec![NewScript { secret: Some(sealed()), ..script(owner) }]).await;
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, worker).await;
    let lease = ode_job::Lease::granted(claimed.lease.job(), claimed.lease.fence() - 1, worker);
    assert_eq!(store.held_secret(&lease).await.unwrap(), None);
    let lost = |outcome| matches!(outcome, Err(Error::LeaseLost(_)));
    assert!(lost(store.checkpoint(&lease, "a", json!(1)).await));
    assert!(lost(store.record_run(&lease, &Run::default()).await));
    assert!(lost(store.keep_result_secret(&lease, &sealed(), Duration::from_secs(1)).await));
    assert!(store.checkpoints(&claimed.lease).await.unwrap().is_empty());
}

async fn secrets_of_a_result_are_taken_once(store: Store) {
    let owner = organisation();
    let ids = enqueue(&store, owner, vec![script(owner)]).await;
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, worker).await;
    let key = sealed();
    store.keep_result_secret(&claimed.lease, &key, Duration::from_secs(3600)).await.unwrap();
    assert_eq!(store.result_secret(ids[0]).await.unwrap(), None, "not before the job has completed");
    finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(store.result_secret(ids[0]).await.unwrap(), Some(key.clone()));
    assert!(store.take_result_secret(ids[0], key.id).await.unwrap());
    assert!(!store.take_result_secret(ids[0], key.id).await.unwrap(), "somebody else was quicker");
    assert_eq!(store.result_secret(ids[0]).await.unwrap(), None);
}

async fn seals_are_turned_to_a_new_key(store: Store) {
    let owner = organisation();
    store.publish_seal_key(SealSide::Worker, "k1", &[1; 32]).await.unwrap();
    let with = || NewScript { secret: Some(sealed()), ..script(owner) };
    enqueue(&store, owner, vec![with(), with()]).await;
    store.publish_seal_key(SealSide::Worker, "k2", &[2; 32]).await.unwrap();
    assert_eq!(store.seal_key(SealSide::Worker).await.unwrap().unwrap().id, "k2");
    assert_eq!(store.seal_key(SealSide::Web).await.unwrap(), None);
    let turn = |whose: Uuid, _, sealed: &Sealed| {
        assert_eq!(whose, owner.key());
        Ok::<_, Error>(Some(Sealed { key_id: "k2".into(), wrapped: vec![9; 80], ..sealed.clone() }))
    };
    assert_eq!(store.turn_secrets("k1", turn).await.unwrap(), 2);
    let keys = store.seal_keys().await.unwrap();
    let seen: Vec<_> =
        keys.iter().map(|key| (key.id.as_str(), key.in_use, key.retired_at.is_some())).collect();
    assert_eq!(seen, [("k1", 0, true), ("k2", 2, false)]);
}

async fn checkpoints_and_steps_outlive_their_attempt(store: Store) {
    let owner = organisation();
    let mut asked = script(owner);
    // To the microsecond, which both databases keep.
    let moment = Timestamp::from_microsecond(1_700_000_000_123_456).unwrap();
    asked.job.run_at = Some(moment);
    let batch = Some(Uuid::now_v7());
    let ids = store.enqueue_scripts(&ScriptOrder { batch, ..order(owner, vec![asked]) }).await.unwrap().ids;
    let worker_id = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, worker_id).await;
    store.checkpoint(&claimed.lease, "uploaded", json!({ "rows": 3 })).await.unwrap();
    store.checkpoint(&claimed.lease, "uploaded", json!({ "rows": 4 })).await.unwrap();
    let step = |id: &str, state| ScriptStep { id: id.into(), title: id.into(), state };
    let steps = vec![step("login", StepState::Done), step("upload", StepState::Failed)];
    let run = Run {
        version: "3".into(),
        digest: "d".into(),
        process: Some(Process { pid: 4711, start_ticks: 99, boot_id: "b".into() }),
        steps: steps.clone(),
        progress: Progress { percent: 40, message: Some("Row 4".into()), step: 2, steps: 2 },
        code: Some("login_rejected".into()),
    };
    store.record_run(&claimed.lease, &run).await.unwrap();
    store.record_run(&claimed.lease, &run).await.unwrap();
    finish(&store, claimed, broken()).await;
    let facts = store.script_facts(&[record(&store, ids[0]).await]).await.unwrap();
    let facts = &facts[&ids[0]];
    assert_eq!((&facts.steps, facts.percent, facts.process_pid), (&steps, 40, Some(4711)));
    assert_eq!((facts.code.as_deref(), facts.run_at), (Some("login_rejected"), Some(moment)));
    assert_eq!(store.retry(ids[0]).await.unwrap(), state::QUEUED, "it waits for nobody");
    let claimed = claim_one(&store, lane::SCRIPT, worker_id).await;
    assert_eq!(store.checkpoints(&claimed.lease).await.unwrap()["uploaded"], json!({ "rows": 4 }));
}

async fn scripts_are_listed_by_what_people_look_for(store: Store) {
    let (ours, theirs) = (organisation(), organisation());
    let (restaurant, person) = (Uuid::new_v4(), Uuid::new_v4());
    let with = |owner, change: &dyn Fn(&mut NewJob)| {
        let mut script = script(owner);
        change(&mut script.job);
        script
    };
    let label = json!({ "restaurant_id": restaurant.to_string() });
    let scripts = vec![
        with(ours, &|job| job.metadata = label.clone()),
        with(ours, &|job| job.created_by = Some(person)),
        with(ours, &|job| job.kind = "other".into()),
    ];
    let batch = Some(Uuid::now_v7());
    let ids = store.enqueue_scripts(&ScriptOrder { batch, ..order(ours, scripts) }).await.unwrap().ids;
    enqueue(&store, theirs, vec![with(theirs, &|job| job.metadata = label.clone())]).await;
    store.cancel(ids[2]).await.unwrap();
    let owned = OwnedFilter {
        owner: ours,
        kind: None,
        state: None,
        phase: None,
        since: None,
        before: None,
        limit: 10,
    };
    let all = ScriptFilter { owned: owned.clone(), restaurant: None, created_by: None, batch: None };
    let of = |owned| ScriptFilter { owned, ..all.clone() };
    let cases = [
        (all.clone(), vec![2, 1, 0]),
        (ScriptFilter { restaurant: Some(restaurant), ..all.clone() }, vec![0]),
        (ScriptFilter { created_by: Some(person), ..all.clone() }, vec![1]),
        (of(OwnedFilter { kind: Some("other".into()), ..owned.clone() }), vec![2]),
        (of(OwnedFilter { state: Some(state::QUEUED), ..owned.clone() }), vec![1, 0]),
        (of(OwnedFilter { phase: Some(Phase::Cancelled), ..owned.clone() }), vec![2]),
        (ScriptFilter { batch, ..all.clone() }, vec![2, 1, 0]),
        (ScriptFilter { batch: Some(Uuid::nil()), ..all.clone() }, vec![]),
        (of(OwnedFilter { before: Some(ids[1]), ..owned.clone() }), vec![0]),
    ];
    for (filter, expected) in cases {
        let found = store.scripts(&filter).await.unwrap().jobs;
        let found: Vec<JobId> = found.iter().map(|job| job.id).collect();
        assert_eq!(found, expected.iter().map(|place| ids[*place]).collect::<Vec<_>>(), "{filter:?}");
    }
}

async fn what_shows_why_an_attempt_failed_is_kept(store: Store) {
    let ids = enqueue(&store, organisation(), vec![script(organisation())]).await;
    let worker = worker(&store).await;
    for attempt in 1..=2 {
        promote(&store).await;
        let claimed = match attempt {
            1 => claim_one(&store, lane::SCRIPT, worker).await,
            _ => {
                store.retry(ids[0]).await.unwrap();
                claim_one(&store, lane::SCRIPT, worker).await
            }
        };
        let mut end = ending(claimed, broken());
        let shot = |role: &str| Artifact {
            role: role.into(),
            name: format!("{attempt}/failure.png"),
            ..file(&format!("{attempt}-{role}"))
        };
        end.artifacts = vec![shot("screenshot"), shot("asset")];
        store.finish(vec![end]).await.unwrap();
        assert_eq!(record(&store, ids[0]).await.phase, Phase::Failed);
        let kept = store.artifacts(ids[0]).await.unwrap();
        assert_eq!(kept.len(), attempt, "the screenshot of each attempt, and nothing else of it");
        assert!(kept.iter().all(|file| file.role == "screenshot"));
    }
    assert_eq!(history(&store, ids[0]).await.iter().filter(|event| *event == "failed").count(), 2);
}

async fn a_script_has_what_its_type_says(mut database: Database) {
    let store = database.store.clone();
    let kind = ScriptType {
        name: "plain".into(),
        title: "Plain".into(),
        version: "1".into(),
        digest: "d".into(),
        timeout: Duration::from_secs(60),
        retries_max: 1,
        retry_delay: Duration::from_secs(7),
    };
    store.publish_scripts(&[ScriptType { retries_max: 9, ..kind.clone() }, kind.clone()][1..]).await.unwrap();
    store.publish_scripts(&[kind]).await.unwrap();
    let id = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    assert_eq!(record(&store, id).await.max_retries, 1);
    let timeout = "SELECT CAST(timeout_ms AS bigint) FROM job_live WHERE id = $1";
    assert_eq!(database.sql.number(timeout, &[id.0]).await, 60_000);
    let own = NewJob { retries_max: Some(5), ..job(pipeline::SCRIPT) };
    let id = store.enqueue(own).await.unwrap().id();
    assert_eq!(record(&store, id).await.max_retries, 5, "what was asked for counts");
    let html = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    assert_eq!(record(&store, html).await.max_retries, 3, "it is no script");
    assert_eq!(claim(&store, lane::SCRIPT, worker(&store).await, 5).await.len(), 2);
}

async fn old_scripts_go_to_the_archive(mut database: Database) {
    let store = database.store.clone();
    let files = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&BlobsConfig::Local(files.path().to_owned())).unwrap();
    let owner = organisation();
    let with = || NewScript { secret: Some(sealed()), turn: Some("t".into()), ..script(owner) };
    let old = enqueue(&store, owner, vec![with()]).await;
    run(&store, broken()).await;
    let young = enqueue(&store, owner, vec![with()]).await;
    run(&store, Ended::Succeeded).await;
    let live = enqueue(&store, owner, vec![with()]).await;
    let month = match store.dialect() {
        Dialect::Postgres => "interval '31 days'",
        Dialect::Sqlite => "31 * 86400000000",
    };
    for (table, id) in [("job_past", old[0]), ("job_live", live[0])] {
        let older = format!("UPDATE {table} SET created_at = {{now}} - {month} WHERE id = $1");
        assert_eq!(database.sql.run(&older, &[id.0]).await, Ok(1));
    }
    assert_eq!(store.cleanup_plan(&blobs).await.unwrap().scripts_archived, 1);
    assert_eq!(store.cleanup(&blobs).await.unwrap().scripts_archived, 1);
    assert!(matches!(store.job(JobRef::Id(old[0])).await, Err(Error::NotFound(_))));
    assert_eq!(states(&store, &[young[0], live[0]]).await, ["completed", "queued"]);
    for table in ["script_secret", "script_order"] {
        let left = format!("SELECT CAST(count(*) AS bigint) FROM {table} WHERE job_id = $1");
        assert_eq!(database.sql.number(&left, &[old[0].0]).await, 0, "{table}");
    }
    assert!(files.path().join("archive/scripts").is_dir());
    assert_eq!(store.cleanup(&blobs).await.unwrap().scripts_archived, 0);
}
