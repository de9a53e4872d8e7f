//! Scripts on both databases: what they wait for, what becomes of their secrets, and what is recorded of them.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod harness;
mod plans;

use crate::harness::{OTHER, change, ending, finish, number};
use jiff::Timestamp;
use ode_child::{Record, Step, StepState};
use ode_job::{Artifact, Ended, ErrorCode, Failure, JobId, JobRef, NewJob, Owner, Phase, Progress};
use ode_script::sql::{
    AcceptedScripts, Need, NewScript, NewScripts, ScriptFilter, ScriptType, SealSide, checkpoint,
    checkpoints, held_secret, keep_result_secret, keep_secret, publish_seal_key, publish_types, record_run,
    result_secret, script_facts, scripts, seal_key, seal_keys, shred_due, submit, take_result_secret,
    turn_secrets,
};
use ode_script::{RecordedState, RecordedStep, Run, Sealed, SecretPart, machine};
use ode_store::sql::{Held, Tx, micros, params};
use ode_store::trial::{claim, claim_one, file, history, job, organisation, record, worker};
use ode_store::{Blobs, BlobsConfig, Error, OwnedFilter, Store, on_both};
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
    a_script_has_what_its_type_says,
    old_scripts_go_to_the_archive,
);

fn script(owner: Owner) -> NewScript {
    let keep_secret = Duration::from_secs(3600);
    NewScript {
        job: job(machine::SCRIPT).owned_by(owner),
        secret: None,
        keep_secret,
        turn: None,
        needs: Vec::new(),
    }
}

fn sealed() -> Sealed {
    Sealed { id: Uuid::now_v7(), key_id: "k1".into(), wrapped: vec![1; 80], content: vec![2; 60] }
}

fn order(owner: Owner, scripts: Vec<NewScript>) -> NewScripts {
    NewScripts { owner, idempotency_key: None, batch: None, scripts }
}

async fn enqueue(store: &Store, owner: Owner, scripts: Vec<NewScript>) -> Vec<JobId> {
    submit(store, &order(owner, scripts)).await.unwrap().ids
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
    let claimed = claim_one(store, machine::LANE, worker).await;
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
    let facts = script_facts(store.sql(), &jobs).await.unwrap();
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
        NewScripts { idempotency_key: key, batch: Some(Uuid::now_v7()), ..order(owner, scripts) }
    };
    let first = submit(&store, &request("a")).await.unwrap();
    let again = submit(&store, &request("a")).await.unwrap();
    assert_eq!(again, AcceptedScripts { is_known: true, ..first });
    assert!(matches!(submit(&store, &request("b")).await, Err(Error::KeyReused)));
}

async fn secrets_go_with_the_end_of_the_job(store: Store) {
    let owner = organisation();
    for ended in [Some(Ended::Succeeded), Some(Ended::TimedOut(ErrorCode::TimedOut.into())), None] {
        let secret = Some(sealed());
        let ids = enqueue(&store, owner, vec![NewScript { secret: secret.clone(), ..script(owner) }]).await;
        match ended {
            Some(ended) => {
                let worker = worker(&store).await;
                let claimed = claim_one(&store, machine::LANE, worker).await;
                assert_eq!(held_secret(Held::new(&store, &claimed.lease)).await.unwrap(), secret);
                finish(&store, claimed, ended).await;
            }
            None => drop(store.cancel(ids[0]).await.unwrap()),
        }
        let jobs = [record(&store, ids[0]).await];
        assert!(
            script_facts(store.sql(), &jobs).await.unwrap()[&ids[0]].are_secrets_gone,
            "{}",
            jobs[0].state
        );
    }
}

async fn a_failed_job_keeps_its_secrets_for_a_while(store: Store) {
    let owner = organisation();
    let with = |keep_secret| NewScript { secret: Some(sealed()), keep_secret, ..script(owner) };
    let kept = enqueue(&store, owner, vec![with(Duration::from_secs(3600))]).await;
    assert_eq!(run(&store, broken()).await, kept[0]);
    assert_eq!(shred_due(store.sql()).await.unwrap(), 0);
    assert_eq!(store.retry(kept[0]).await.unwrap(), machine::QUEUED);
    assert_eq!(run(&store, Ended::Succeeded).await, kept[0]);
    let gone = enqueue(&store, owner, vec![with(Duration::from_micros(1))]).await;
    run(&store, broken()).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(shred_due(store.sql()).await.unwrap(), 1);
    assert!(
        matches!(store.retry(gone[0]).await, Err(Error::Declined { message: why, .. }) if why.contains(&gone[0].to_string()))
    );
    assert_eq!(record(&store, gone[0]).await.state, machine::FAILED);
    let others = sealed();
    let keep = async |mut tx: Tx| {
        keep_secret(&mut tx, gone[0], SecretPart::Input, &others, Duration::from_secs(1)).await?;
        Ok(tx)
    };
    store.retry_beside(gone[0], keep).await.unwrap();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, machine::LANE, worker).await;
    assert_eq!(held_secret(Held::new(&store, &claimed.lease)).await.unwrap(), Some(others));
}

async fn a_lost_lease_is_given_no_secrets_and_writes_nothing(store: Store) {
    let owner = organisation();
    enqueue(&store, owner, vec![NewScript { secret: Some(sealed()), ..script(owner) }]).await;
    let worker = worker(&store).await;
    let claimed = claim_one(&store, machine::LANE, worker).await;
    let lease = ode_job::Lease::granted(claimed.lease.job(), claimed.lease.fence() - 1, worker);
    assert_eq!(held_secret(Held::new(&store, &lease)).await.unwrap(), None);
    let lost = |outcome| matches!(outcome, Err(Error::LeaseLost(_)));
    assert!(lost(checkpoint(Held::new(&store, &lease), "a", json!(1)).await));
    assert!(lost(record_run(Held::new(&store, &lease), &Run::default()).await));
    assert!(lost(keep_result_secret(Held::new(&store, &lease), &sealed(), Duration::from_secs(1)).await));
    assert!(checkpoints(Held::new(&store, &claimed.lease)).await.unwrap().is_empty());
}

async fn secrets_of_a_result_are_taken_once(store: Store) {
    let owner = organisation();
    let ids = enqueue(&store, owner, vec![script(owner)]).await;
    let worker = worker(&store).await;
    let claimed = claim_one(&store, machine::LANE, worker).await;
    let key = sealed();
    keep_result_secret(Held::new(&store, &claimed.lease), &key, Duration::from_secs(3600)).await.unwrap();
    assert_eq!(result_secret(store.sql(), ids[0]).await.unwrap(), None, "not before the job has completed");
    finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(result_secret(store.sql(), ids[0]).await.unwrap(), Some(key.clone()));
    assert!(take_result_secret(store.sql(), ids[0], key.id).await.unwrap());
    assert!(!take_result_secret(store.sql(), ids[0], key.id).await.unwrap(), "somebody else was quicker");
    assert_eq!(result_secret(store.sql(), ids[0]).await.unwrap(), None);
}

async fn seals_are_turned_to_a_new_key(store: Store) {
    let owner = organisation();
    publish_seal_key(store.sql(), SealSide::Worker, "k1", &[1; 32]).await.unwrap();
    let with = || NewScript { secret: Some(sealed()), ..script(owner) };
    enqueue(&store, owner, vec![with(), with()]).await;
    publish_seal_key(store.sql(), SealSide::Worker, "k2", &[2; 32]).await.unwrap();
    assert_eq!(seal_key(store.sql(), SealSide::Worker).await.unwrap().unwrap().id, "k2");
    assert_eq!(seal_key(store.sql(), SealSide::Web).await.unwrap(), None);
    let turn = |whose: Uuid, _, sealed: &Sealed| {
        assert_eq!(whose, owner.key());
        Ok::<_, Error>(Some(Sealed { key_id: "k2".into(), wrapped: vec![9; 80], ..sealed.clone() }))
    };
    assert_eq!(turn_secrets(store.sql(), "k1", turn).await.unwrap(), 2);
    let keys = seal_keys(store.sql()).await.unwrap();
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
    let ids = submit(&store, &NewScripts { batch, ..order(owner, vec![asked]) }).await.unwrap().ids;
    let worker_id = worker(&store).await;
    let claimed = claim_one(&store, machine::LANE, worker_id).await;
    checkpoint(Held::new(&store, &claimed.lease), "uploaded", json!({ "rows": 3 })).await.unwrap();
    checkpoint(Held::new(&store, &claimed.lease), "uploaded", json!({ "rows": 4 })).await.unwrap();
    let step = |id: &str, state| RecordedStep {
        state: RecordedState::Reached(state),
        ..Step { id: id.into(), title: id.into() }.into()
    };
    let steps = vec![step("login", StepState::Done), step("upload", StepState::Failed)];
    let run = Run {
        version: "3".into(),
        digest: "d".into(),
        process: Some(Record { pid: 4711, started: 99, boot: "b".into(), run: String::new() }),
        steps: steps.clone(),
        progress: Progress { percent: 40, message: Some("Row 4".into()), step: 2, steps: 2 },
        code: Some("login_rejected".into()),
    };
    record_run(Held::new(&store, &claimed.lease), &run).await.unwrap();
    record_run(Held::new(&store, &claimed.lease), &run).await.unwrap();
    finish(&store, claimed, broken()).await;
    let facts = script_facts(store.sql(), &[record(&store, ids[0]).await]).await.unwrap();
    let facts = &facts[&ids[0]];
    assert_eq!((&facts.steps, facts.percent, facts.process_pid), (&steps, 40, Some(4711)));
    assert_eq!((facts.code.as_deref(), facts.run_at), (Some("login_rejected"), Some(moment)));
    assert_eq!(store.retry(ids[0]).await.unwrap(), machine::QUEUED, "it waits for nobody");
    let claimed = claim_one(&store, machine::LANE, worker_id).await;
    assert_eq!(
        checkpoints(Held::new(&store, &claimed.lease)).await.unwrap()["uploaded"],
        json!({ "rows": 4 })
    );
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
    let asked = vec![
        with(ours, &|job| job.metadata = label.clone()),
        with(ours, &|job| job.created_by = Some(person)),
        with(ours, &|job| job.kind = "other".into()),
    ];
    let batch = Some(Uuid::now_v7());
    let ids = submit(&store, &NewScripts { batch, ..order(ours, asked) }).await.unwrap().ids;
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
        (of(OwnedFilter { state: Some(machine::QUEUED), ..owned.clone() }), vec![1, 0]),
        (of(OwnedFilter { phase: Some(Phase::Cancelled), ..owned.clone() }), vec![2]),
        (ScriptFilter { batch, ..all.clone() }, vec![2, 1, 0]),
        (ScriptFilter { batch: Some(Uuid::nil()), ..all.clone() }, vec![]),
        (of(OwnedFilter { before: Some(ids[1]), ..owned.clone() }), vec![0]),
    ];
    for (filter, expected) in cases {
        let found = scripts(store.sql(), &filter).await.unwrap().jobs;
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
            1 => claim_one(&store, machine::LANE, worker).await,
            _ => {
                store.retry(ids[0]).await.unwrap();
                claim_one(&store, machine::LANE, worker).await
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

async fn a_script_has_what_its_type_says(store: Store) {
    let kind = ScriptType {
        name: "plain".into(),
        title: "Plain".into(),
        version: "1".into(),
        digest: "d".into(),
        timeout: Duration::from_secs(60),
        retries_max: 1,
        retry_delay: Duration::from_secs(7),
    };
    publish_types(store.sql(), &[ScriptType { retries_max: 9, ..kind.clone() }, kind.clone()][1..])
        .await
        .unwrap();
    publish_types(store.sql(), &[kind]).await.unwrap();
    let id = store.enqueue(job(machine::SCRIPT)).await.unwrap().id();
    assert_eq!(record(&store, id).await.max_retries, 1);
    let timeout = "SELECT CAST(timeout_ms AS bigint) AS number FROM job_live WHERE id = $1";
    assert_eq!(number(&store, timeout, id).await, 60_000);
    let own = NewJob { retries_max: Some(5), ..job(machine::SCRIPT) };
    let id = store.enqueue(own).await.unwrap().id();
    assert_eq!(record(&store, id).await.max_retries, 5, "what was asked for counts");
    let html = store.enqueue(job(OTHER)).await.unwrap().id();
    assert_eq!(record(&store, html).await.max_retries, 3, "it is no script");
    assert_eq!(claim(&store, machine::LANE, worker(&store).await, 5).await.len(), 2);
}

const OLDER_PAST: &str = "UPDATE job_past SET created_at = {after $2} WHERE id = $1 RETURNING id";
const OLDER_LIVE: &str = "UPDATE job_live SET created_at = {after $2} WHERE id = $1 RETURNING id";

async fn old_scripts_go_to_the_archive(store: Store) {
    let files = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&BlobsConfig::Local(files.path().to_owned())).unwrap();
    let owner = organisation();
    let with = || NewScript { secret: Some(sealed()), turn: Some("t".into()), ..script(owner) };
    let old = enqueue(&store, owner, vec![with()]).await;
    run(&store, broken()).await;
    let young = enqueue(&store, owner, vec![with()]).await;
    run(&store, Ended::Succeeded).await;
    let live = enqueue(&store, owner, vec![with()]).await;
    let month = Duration::from_hours(31 * 24);
    for (older, id) in [(OLDER_PAST, old[0]), (OLDER_LIVE, live[0])] {
        change(&store, older, params![id, -micros(month)]).await;
    }
    assert_eq!(store.cleanup_plan(&blobs).await.unwrap().scripts_archived, 1);
    assert_eq!(store.cleanup(&blobs).await.unwrap().scripts_archived, 1);
    assert!(matches!(store.job(JobRef::Id(old[0])).await, Err(Error::NotFound(_))));
    assert_eq!(states(&store, &[young[0], live[0]]).await, ["completed", "queued"]);
    for left in [
        "SELECT CAST(count(*) AS bigint) AS number FROM script_secret WHERE job_id = $1",
        "SELECT CAST(count(*) AS bigint) AS number FROM script_order WHERE job_id = $1",
    ] {
        assert_eq!(number(&store, left, old[0]).await, 0, "{left}");
    }
    assert!(files.path().join("archive/scripts").is_dir());
    assert_eq!(store.cleanup(&blobs).await.unwrap().scripts_archived, 0);
}
