//! What the web side rests on: files with their jobs, lists of one owner, keys, and the journal as a feed.

use crate::harness::{claim_one, ending, file, job, on_both, record, worker};
use crate::machines::{lane, pipeline};
use jiff::Timestamp;
use ode_job::{Artifact, Ended, ErrorCode, Event, Failure, JobId, NewJob, Owner};
use ode_store::{Enqueued, Finish, KeyText, OwnedFilter, OwnerKind, Principal, Store, Twin};
use std::time::Duration;
use uuid::Uuid;

on_both!(
    a_job_and_its_file_are_stored_together,
    of_many_who_send_one_file_at_once_one_makes_the_job,
    whose_content_is_known_does_not_hold_up_the_others,
    a_finished_twin_stands_while_its_result_is_there,
    a_job_that_is_born_done_is_whole,
    an_owners_list_holds_what_the_owner_has,
    a_job_that_waits_for_its_next_try_comes_with_its_setback,
    a_key_speaks_for_its_owner_until_it_is_revoked,
    a_sessions_jobs_are_seen_by_the_user_who_takes_them_over,
    a_shared_secret_is_the_same_for_everyone,
    the_journal_tells_what_happened_in_order,
);

fn session() -> Owner {
    Owner::Session(Uuid::new_v4())
}

/// A document with this content, as the door makes it.
fn document(owner: Owner, content: &str) -> NewJob {
    let mut new = job(pipeline::XML).owned_by(owner);
    new.dedupe_key = Some(content.into());
    new
}

fn source() -> Artifact {
    Artifact { role: "source".into(), ..file(&Uuid::new_v4().to_string()) }
}

async fn finish_with_result(store: &Store) -> JobId {
    let worker = worker(store).await;
    let claimed = claim_one(store, lane::XML, worker).await;
    let id = claimed.lease.job();
    let artifacts = vec![file(&Uuid::new_v4().to_string())];
    store.finish(vec![Finish { artifacts, ..ending(claimed, Ended::Succeeded) }]).await.unwrap();
    id
}

async fn sent(store: &Store, owner: Owner, content: &str) -> Enqueued {
    store.enqueue_file(document(owner, content), source()).await.unwrap().enqueued
}

async fn a_job_and_its_file_are_stored_together(store: Store) {
    let (owner, first) = (session(), source());
    let made = store.enqueue_file(document(owner, "a"), first.clone()).await.unwrap().enqueued;
    assert!(matches!(made, Enqueued::New(_)));
    assert_eq!(store.artifacts(made.id()).await.unwrap(), std::slice::from_ref(&first));
    // A twin brings no second file, and a file that cannot be recorded brings no job.
    let twin = sent(&store, owner, "a").await;
    assert_eq!(twin, Enqueued::Existing(made.id()));
    assert_eq!(store.artifacts(made.id()).await.unwrap().len(), 1);
    assert!(store.enqueue_file(document(owner, "b"), first).await.is_err(), "the file is another job's");
    assert_eq!(store.live_count().await.unwrap(), 1);
    let again = sent(&store, owner, "b").await;
    assert!(matches!(again, Enqueued::New(_)), "nothing was left of the one that failed");
}

async fn of_many_who_send_one_file_at_once_one_makes_the_job(store: Store) {
    let owner = session();
    let sent = (0..10).map(|_| sent(&store, owner, "a"));
    let made = futures_util::future::join_all(sent).await;
    assert_eq!(made.iter().filter(|made| matches!(made, Enqueued::New(_))).count(), 1, "{made:?}");
    assert!(made.iter().all(|other| other.id() == made[0].id()), "{made:?}");
    assert_eq!(store.live_count().await.unwrap(), 1);
    assert_eq!(store.artifacts(made[0].id()).await.unwrap().len(), 1);
}

async fn whose_content_is_known_does_not_hold_up_the_others(store: Store) {
    let owner = session();
    let content = |number: usize| number.to_string();
    for number in (0..20).step_by(3) {
        sent(&store, owner, &content(number)).await;
    }
    let contents: Vec<String> = (0..20).map(content).collect();
    let sent = contents.iter().map(|content| sent(&store, owner, content));
    let sent = futures_util::future::join_all(sent).await;
    for (number, sent) in sent.iter().enumerate() {
        assert_eq!(matches!(sent, Enqueued::Existing(_)), number % 3 == 0, "{number}");
        assert_eq!(store.artifacts(sent.id()).await.unwrap().len(), 1, "{number}");
        let events = store.events(sent.id()).await.unwrap();
        assert_eq!(events.iter().filter(|event| event.event == Event::Created).count(), 1, "{number}");
    }
    assert_eq!(store.live_count().await.unwrap(), 20);
}

async fn a_finished_twin_stands_while_its_result_is_there(store: Store) {
    let owner = session();
    let made = sent(&store, owner, "a").await.id();
    assert_eq!(finish_with_result(&store).await, made);
    let again = sent(&store, owner, "a").await;
    assert_eq!(again, Enqueued::Existing(made));
    // One that made no file has nothing to offer.
    let other = sent(&store, owner, "b").await.id();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    store.finish(vec![ending(claimed, Ended::Succeeded)]).await.unwrap();
    let again = sent(&store, owner, "b").await;
    assert!(matches!(again, Enqueued::New(id) if id != other));
}

async fn a_job_that_is_born_done_is_whole(store: Store) {
    let (one, two) = (session(), session());
    assert_eq!(store.twin_of_anyone("a").await.unwrap(), None);
    let first = sent(&store, one, "a").await.id();
    assert_eq!(store.twin_of_anyone("a").await.unwrap(), None, "it is not done");
    finish_with_result(&store).await;
    let twin: Twin = store.twin_of_anyone("a").await.unwrap().unwrap();
    assert_eq!(twin.id, first);
    let files = [source(), file(&Uuid::new_v4().to_string())];
    let made = store.enqueue_done(document(two, "a"), &twin, &files).await.unwrap();
    let (done, original) = (record(&store, made.id()).await, record(&store, first).await);
    assert_eq!((done.state, done.phase, done.session_id), (original.state, original.phase, Some(two.key())));
    assert_eq!((done.result, done.error_code, done.attempt_count), (original.result, None, 0));
    assert!(done.finished_at.is_some() && done.finished_at >= Some(done.created_at));
    assert_eq!(store.artifacts(made.id()).await.unwrap().len(), 2);
    let events = store.events(made.id()).await.unwrap();
    assert_eq!((events.len(), events[0].event, events[0].from_state), (1, Event::Created, None));
    assert_eq!(events[0].meta.as_ref().unwrap()["duplicate_of"], first.to_string());
    let again = store.enqueue_done(document(two, "a"), &twin, &[]).await.unwrap();
    assert_eq!(again, Enqueued::Existing(made.id()));
}

async fn a_job_that_waits_for_its_next_try_comes_with_its_setback(store: Store) {
    let owner = session();
    let id = sent(&store, owner, "a").await.id();
    sent(&store, owner, "b").await;
    let setbacks = async || {
        let page = store.owned_jobs(&of(owner), &[pipeline::PRINT]).await.unwrap();
        page.jobs.into_iter().filter_map(|job| Some((job.record.id, job.setback?.code))).collect::<Vec<_>>()
    };
    assert_eq!(setbacks().await, [], "nothing was tried yet");
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    assert_eq!((claimed.lease.job(), setbacks().await), (id, vec![]), "it is being tried");
    let failure = Failure::retryable(ErrorCode::GwTimeout, "It took too long");
    store.finish(vec![ending(claimed, Ended::Failed(failure))]).await.unwrap();
    assert_eq!(setbacks().await, [(id, "GW_TIMEOUT".to_owned())]);
    let job = store.jobs_by_id(std::iter::once(id)).await.unwrap().remove(0);
    assert_eq!(job.setback.unwrap().message, "It took too long");
    // One that found nobody there has used up nothing, and says so too.
    let claimed = claim_one(&store, lane::XML, worker).await;
    let other = claimed.lease.job();
    let away = Failure::away(ErrorCode::Gw5xx, "away", Duration::ZERO);
    store.finish(vec![ending(claimed, Ended::Failed(away))]).await.unwrap();
    assert_eq!(setbacks().await, [(other, "GW_5XX".to_owned()), (id, "GW_TIMEOUT".to_owned())]);
    store.cancel(id).await.unwrap();
    assert_eq!(setbacks().await, [(other, "GW_5XX".to_owned())], "what has ended says why by itself");
}

fn of(owner: Owner) -> OwnedFilter {
    OwnedFilter { owner, state: None, phase: None, kind: None, since: None, before: None, limit: 100 }
}

async fn an_owners_list_holds_what_the_owner_has(store: Store) {
    let owner = session();
    store.enqueue_many((0..20).map(|_| job(pipeline::XML).owned_by(owner)).collect()).await.unwrap();
    store.enqueue_many((0..200).map(|_| job(pipeline::XML).owned_by(session())).collect()).await.unwrap();
    let page = store.owned_jobs(&of(owner), &[pipeline::PRINT]).await.unwrap();
    assert_eq!((page.jobs.len(), page.active_count, page.next_cursor), (20, 20, None));
    assert!(page.jobs.iter().all(|job| job.record.session_id == Some(owner.key())));
}

async fn a_key_speaks_for_its_owner_until_it_is_revoked(store: Store) {
    let made = store.create_key(OwnerKind::Organisation, "acme", "billing").await.unwrap();
    let key: KeyText = made.text.parse().unwrap();
    let expected = Principal { owner: Owner::Organisation(made.key.owner_id) };
    assert_eq!(store.authenticate(&key).await.unwrap(), Some(expected));
    let second = store.create_key(OwnerKind::Organisation, "acme", "").await.unwrap();
    assert_eq!(second.key.owner_id, made.key.owner_id, "the same organisation");
    let user = store.create_key(OwnerKind::User, "acme", "").await.unwrap();
    assert_ne!(user.key.owner_id, made.key.owner_id, "a person of the same name is somebody else");
    assert!(store.revoke_key(&made.key.id).await.unwrap());
    assert_eq!(store.authenticate(&key).await.unwrap(), None);
    assert!(!store.revoke_key("nonsense").await.unwrap());
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.len(), 3);
    let [first, second_listed] =
        [&made, &second].map(|made| keys.iter().find(|key| key.id == made.key.id).unwrap());
    assert!(first.used_at.is_some() && first.revoked_at.is_some(), "{first:?}");
    assert!(second_listed.used_at.is_none(), "{second_listed:?}");
    // A key whose id is known and whose secret is not says nothing.
    let forged = format!("ode_{}_{}", second.key.id, "0".repeat(64));
    assert!(forged.parse::<KeyText>().is_err());
}

async fn a_sessions_jobs_are_seen_by_the_user_who_takes_them_over(store: Store) {
    let (anonymous, user) = (session(), Owner::User(Uuid::new_v4()));
    let done = sent(&store, anonymous, "a").await.id();
    finish_with_result(&store).await;
    let live = sent(&store, anonymous, "b").await.id();
    store.enqueue_file(document(session(), "c"), source()).await.unwrap();
    assert_eq!(store.adopt(anonymous.key(), user.key()).await.unwrap(), 2);
    assert_eq!(store.adopt(anonymous.key(), user.key()).await.unwrap(), 0, "once");
    for owner in [user, anonymous] {
        let page = store.owned_jobs(&of(owner), &[pipeline::PRINT]).await.unwrap();
        let ids: Vec<JobId> = page.jobs.iter().map(|job| job.record.id).collect();
        assert_eq!((ids, page.active_count), (vec![live, done], 1), "{owner:?}");
    }
    assert!(store.job_of(user, ode_job::JobRef::Id(done)).await.is_ok());
    // What was sent before is known again, under the user's own name too.
    assert_eq!(sent(&store, user, "a").await, Enqueued::Existing(done));
    // Nobody takes over what somebody else has taken over.
    assert_eq!(store.adopt(anonymous.key(), Uuid::new_v4()).await.unwrap(), 0);
}

async fn a_shared_secret_is_the_same_for_everyone(store: Store) {
    let asked = (0..8).map(|_| store.shared_secret("web"));
    let secrets = futures_util::future::join_all(asked).await;
    let secrets: Vec<Vec<u8>> = secrets.into_iter().map(Result::unwrap).collect();
    assert!(secrets[0].len() >= 32 && secrets.iter().all(|secret| *secret == secrets[0]));
    assert_ne!(store.shared_secret("other").await.unwrap(), secrets[0]);
}

async fn the_journal_tells_what_happened_in_order(store: Store) {
    let from = store.seq_at(Timestamp::now() - Duration::from_secs(1));
    let mut nudges = store.nudges();
    let made = store.enqueue_many((0..3).map(|_| job(pipeline::HTML)).collect()).await.unwrap();
    assert!(nudges.has_changed().unwrap(), "who follows is told to look");
    nudges.mark_unchanged();
    store.cancel(made[1]).await.unwrap();
    assert!(nudges.has_changed().unwrap());
    let numbers = store.told_numbers(from, 100).await.unwrap();
    assert!(numbers.is_sorted() && numbers.len() == 2, "{numbers:?}");
    let told = store.told(&numbers).await.unwrap();
    assert_eq!((told[0].event, told[0].jobs.clone()), (Event::Created, made.clone()));
    assert_eq!((told[1].event, told[1].jobs.clone()), (Event::Cancelled, vec![made[1]]));
    assert_eq!(store.told_numbers(numbers[0], 100).await.unwrap(), numbers[1..]);
    assert_eq!(store.told_numbers(from, 1).await.unwrap(), numbers[..1]);
}
