//! Jobs called off in SQL.

use super::guest::{Guest, WORDS, cancel, furnish, id_of, number, run};
use crate::harness::{claim, history, job, organisation, postgres_database, record, worker};
use crate::machines::{lane, pipeline, state};
use jiff::Timestamp;
use ode_job::{NewJob, Phase};
use ode_store::Error;
use std::time::Duration;
use uuid::Uuid;

#[tokio::test]
async fn an_organisation_calls_off_its_own_waiting_script() {
    let mut database = postgres_database().await;
    let ours = organisation();
    let store = &database.store.clone();
    let queued = store.enqueue(job(pipeline::SCRIPT).owned_by(ours)).await.unwrap().id();
    let mut later = job(pipeline::SCRIPT).owned_by(ours);
    later.run_at = Some(Timestamp::now() + Duration::from_secs(3600));
    let pending = store.enqueue(later).await.unwrap().id();
    let guest = Guest::new(&mut database, 1).await;
    for (id, words) in
        [(queued, &["created", "queued", "cancelled"][..]), (pending, &["created", "cancelled"])]
    {
        let mut tx = guest.of(id_of(ours)).await;
        assert_eq!(cancel(&mut tx, id).await, Ok(true));
        assert_eq!(number(&mut tx, WORDS, &[id.0]).await, words.len() as i64);
        tx.commit().await.unwrap();
        let record = record(store, id).await;
        assert_eq!((record.state, record.phase), (state::CANCELLED, Phase::Cancelled));
        assert_eq!(history(store, id).await, words);
        assert!(matches!(store.cancel(id).await, Err(Error::Refused { .. })));
    }
    let worker = worker(store).await;
    assert!(claim(store, lane::SCRIPT, worker, 10).await.is_empty());
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn what_runs_has_ended_or_is_anothers_cannot_be_called_off_in_sql() {
    let mut database = postgres_database().await;
    let (ours, theirs) = (organisation(), organisation());
    let own = furnish(&database.store, ours).await;
    let foreign = furnish(&database.store, theirs).await;
    let waiting = database.store.enqueue(job(pipeline::SCRIPT).owned_by(theirs)).await.unwrap().id();
    let guest = Guest::new(&mut database, 1).await;
    let (running, done, failed, cancelled) = (own[0], own[1], own[2], own[6]);
    for id in [running, done, failed, cancelled, foreign[0], foreign[1], waiting] {
        let before = record(&database.store, id).await;
        let mut tx = guest.of(id_of(ours)).await;
        assert_eq!(cancel(&mut tx, id).await, Ok(false), "{} {}", before.state, id);
        tx.commit().await.unwrap();
        assert_eq!(record(&database.store, id).await, before);
    }
    // Only a script knows the state; the others have failed, as when they are called off in any other way.
    let mut tx = guest.of(id_of(ours)).await;
    assert_eq!(cancel(&mut tx, own[4]).await, Ok(true));
    tx.commit().await.unwrap();
    let called_off = record(&database.store, own[4]).await;
    assert_eq!(called_off.state, state::FAILED);
    assert_eq!(called_off.error_code.as_deref(), Some("CANCELLED"));
    assert_eq!(called_off.error_message.as_deref(), Some(ode_job::ErrorCode::Cancelled.sentence()));
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn a_document_that_is_not_in_line_yet_is_called_off_in_sql() {
    let mut database = postgres_database().await;
    let ours = organisation();
    let id = database.store.enqueue(job(pipeline::XML).owned_by(ours)).await.unwrap().id();
    let back = format!("UPDATE job_live SET state = 'uploaded', lane = NULL WHERE id = '{}'", id.0);
    database.sql.run(&back, &[]).await.unwrap();
    assert_eq!(record(&database.store, id).await.state, state::UPLOADED);
    let guest = Guest::new(&mut database, 1).await;
    let mut tx = guest.of(id_of(ours)).await;
    assert_eq!(cancel(&mut tx, id).await, Ok(true));
    tx.commit().await.unwrap();
    let called_off = record(&database.store, id).await;
    assert_eq!((called_off.state, called_off.error_code.as_deref()), (state::FAILED, Some("CANCELLED")));
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn taking_the_name_off_does_not_make_a_job_disappear() {
    let mut database = postgres_database().await;
    let ours = organisation();
    let waiting = database.store.enqueue(job(pipeline::SCRIPT).owned_by(ours)).await.unwrap().id();
    let guest = Guest::new(&mut database, 1).await;
    let mut tx = guest.of(id_of(ours)).await;
    run(&mut tx, "SET LOCAL ode.organisation = ''", &[]).await.unwrap();
    assert_eq!(cancel(&mut tx, waiting).await, Ok(false));
    tx.commit().await.unwrap();
    assert_eq!(record(&database.store, waiting).await.phase, Phase::Ready);
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn a_person_calls_off_their_own_jobs_only() {
    let mut database = postgres_database().await;
    let ours = organisation();
    let (person, other) = (Uuid::new_v4(), Uuid::new_v4());
    let asked = |by| NewJob { created_by: Some(by), ..job(pipeline::SCRIPT).owned_by(ours) };
    let theirs = database.store.enqueue(asked(other)).await.unwrap().id();
    let own = database.store.enqueue(asked(person)).await.unwrap().id();
    let guest = Guest::new(&mut database, 1).await;
    let mut tx = guest.of(id_of(ours)).await;
    run(&mut tx, &format!("SET LOCAL ode.person = '{person}'"), &[]).await.unwrap();
    assert_eq!(cancel(&mut tx, theirs).await, Ok(false));
    assert_eq!(cancel(&mut tx, own).await, Ok(true));
    tx.commit().await.unwrap();
    guest.leave(&mut database).await;
}
