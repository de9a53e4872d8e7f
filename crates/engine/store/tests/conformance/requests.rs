//! Asking for jobs: what is kept of a request, what makes two requests one, and what is refused.

use crate::harness::{claim_one, file, finish, history, job, on_both, organisation, record, until, worker};
use crate::machines::{lane, pipeline, state};
use futures_util::future::join_all;
use jiff::Timestamp;
use ode_job::{
    Artifact, Claimed, Ended, ErrorCode, Failure, JobId, JobRecord, JobRef, Lane, NewJob, Owner, Phase,
    WorkerId,
};
use ode_store::{BornClaimed, Enqueued, Error, ListFilter, Slots, Store};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

on_both!(
    a_request_is_kept_in_full,
    what_was_not_given_is_an_empty_document,
    a_small_batch_is_kept_in_full_and_in_order,
    a_bulk_load_is_kept_in_full_and_in_order,
    a_batch_of_nothing_is_nothing,
    a_batch_with_one_bad_job_stores_none_of_it,
    requests_made_at_once_become_one_job_each,
    a_taken_external_id_is_refused_and_names_its_job,
    a_batch_with_a_taken_or_repeated_external_id_is_told_so,
    a_refused_neighbour_does_not_spoil_a_shared_commit,
    another_owner_may_use_the_same_external_id,
    a_repeated_request_is_answered_with_its_first_job,
    a_key_that_was_used_for_another_request_is_refused,
    ten_requests_at_once_under_one_key_make_one_job,
    a_request_that_failed_leaves_its_key_free,
    content_that_is_live_or_succeeded_is_not_worked_on_twice,
    content_that_failed_is_worked_on_again,
    failed_content_asked_for_ten_times_at_once_is_worked_on_once,
    a_repeated_request_for_known_content_keeps_its_answer,
    a_crowd_under_keys_shares_its_commits_and_each_has_its_own_answer,
    what_cannot_be_accepted_is_refused_in_words_and_not_stored,
    a_job_for_later_is_held_and_comes_in_line_when_it_is_due,
    a_moment_that_has_passed_is_now,
    a_job_may_be_born_in_the_hands_of_a_worker,
    a_crowd_shares_its_commits_though_some_are_born_claimed,
    what_is_told_of_a_new_job_is_what_is_read_of_it,
);

/// A request in which everything is given.
fn full() -> NewJob {
    let mut new =
        NewJob::new(pipeline::SCRIPT, "add-item-tags", json!({ "tags": ["scharf", "süß"], "n": 7 }))
            .owned_by(organisation());
    new.created_by = Some(Uuid::new_v4());
    new.external_id = Some("Bestellung №7 – 注文 🍜".into());
    new.config = json!({ "zoom": 1.25, "none": null, "nested": { "a": [1, [2, [3]]] } });
    new.metadata = json!({ "quote": "\"'\\ \u{2028}\t{}", "": "an empty name", "big": u64::MAX });
    new.priority = -1000;
    new.retries_max = Some(100);
    new.timeout = Some(Duration::from_millis(1500));
    new
}

#[track_caller]
fn assert_kept(record: &JobRecord, new: &NewJob) {
    assert_eq!(record.pipeline, new.pipeline);
    assert_eq!(record.kind, new.kind);
    let owner = match new.owner {
        Owner::Operator => (None, None, None),
        Owner::Session(id) => (Some(id), None, None),
        Owner::User(id) => (None, Some(id), None),
        Owner::Organisation(id) => (None, None, Some(id)),
    };
    assert_eq!((record.session_id, record.user_id, record.organisation_id), owner);
    assert_eq!(record.created_by, new.created_by);
    assert_eq!(record.external_id, new.external_id);
    assert_eq!(record.input, new.input);
    assert_eq!(record.config, new.config);
    assert_eq!(record.metadata, new.metadata);
    assert_eq!(record.priority, new.priority);
    assert_eq!(record.max_retries, new.retries_max.unwrap_or(3));
    assert_eq!((record.attempt_count, record.retry_count), (0, 0));
    assert_eq!((&record.result, &record.error_code, record.worker_id), (&None, &None, None));
    assert_eq!(record.run_at.map(Timestamp::as_microsecond), new.run_at.map(Timestamp::as_microsecond));
}

async fn a_request_is_kept_in_full(store: Store) {
    let mut new = full();
    // The size that was promised to survive unchanged.
    new.config["note"] = json!("ä€".repeat(10 * 1024));
    assert!(new.config.to_string().len() > 50 * 1024);
    let id = store.enqueue(new.clone()).await.unwrap().id();
    let record = record(&store, id).await;
    assert_kept(&record, &new);
    assert_eq!((record.state, record.phase), (state::QUEUED, Phase::Ready));
    assert_eq!(record.reference, id.reference());
    assert!(record.created_at <= record.updated_at && record.queued_at.is_some());
    assert_eq!((record.started_at, record.finished_at, record.timeout_at), (None, None, None));
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, worker).await;
    assert_eq!((&claimed.kind, claimed.owner), (&new.kind, new.owner));
    assert_eq!((&claimed.input, &claimed.config), (&new.input, &new.config));
    assert_eq!(claimed.retries_max, Some(100));
}

async fn what_was_not_given_is_an_empty_document(store: Store) {
    let mut silent = NewJob::new(pipeline::HTML, "html5", json!({}));
    let id = store.enqueue(silent.clone()).await.unwrap().id();
    assert_kept(&record(&store, id).await, &silent);
    // Null is how other languages say "nothing given".
    (silent.config, silent.metadata) = (Value::Null, Value::Null);
    let id = store.enqueue(silent.clone()).await.unwrap().id();
    let bulk = store.enqueue_many(vec![silent; 250]).await.unwrap();
    for id in [id, bulk[0]] {
        let record = record(&store, id).await;
        assert_eq!((record.input, record.config, record.metadata), (json!({}), json!({}), json!({})));
    }
}

/// Requests that differ in everything that can differ.
fn mixed(count: usize) -> Vec<NewJob> {
    let owners = [
        Owner::Operator,
        Owner::Session(Uuid::new_v4()),
        Owner::User(Uuid::new_v4()),
        organisation(),
        organisation(),
    ];
    let later = Timestamp::now() + Duration::from_secs(3600);
    let new = |number: usize| {
        let pipeline = pipeline::ALL[number % 4];
        let mut new = NewJob::new(pipeline, format!("kind-{}", number % 3), json!({ "number": number }))
            .owned_by(owners[number % 5]);
        new.priority = i32::try_from(number % 21).unwrap() - 10;
        new.external_id = number.is_multiple_of(2).then(|| format!("número {number}"));
        new.retries_max = number.is_multiple_of(7).then_some(1);
        new.run_at = (number % 11 == 3).then_some(later);
        new.advance = number % 8 == 2;
        if number.is_multiple_of(3) {
            new.config = json!({ "format": "xml", "größe": number });
            new.metadata = json!({ "label": "✓" });
        }
        new
    };
    (0..count).map(new).collect()
}

async fn check_batch(store: &Store, count: usize) {
    let asked = mixed(count);
    let ids = store.enqueue_many(asked.clone()).await.unwrap();
    assert!(ids.is_sorted() && ids.len() == count, "ids are not in the order asked");
    let page = store.jobs(&ListFilter { limit: 1000, ..ListFilter::default() }).await.unwrap();
    let found: HashMap<JobId, JobRecord> = page.jobs.into_iter().map(|job| (job.id, job)).collect();
    assert_eq!(found.len(), count);
    for (new, id) in asked.iter().zip(&ids) {
        assert_kept(&found[id], new);
        let is_later = new.run_at.is_some();
        assert_eq!(found[id].phase, if is_later { Phase::Held } else { Phase::Ready });
        assert_eq!(found[id].queued_at.is_some(), !is_later);
    }
    // The third of these is for later; the others show what each pipeline is born with.
    assert_eq!(history(store, ids[0]).await, ["created", "queued"]);
    assert_eq!(history(store, ids[1]).await, ["created"]);
    assert_eq!(history(store, ids[2]).await, ["created"]);
    assert_eq!(history(store, ids[3]).await, ["created"]);
    assert_eq!(store.job(JobRef::Id(ids[0])).await.unwrap(), found[&ids[0]]);
}

async fn a_small_batch_is_kept_in_full_and_in_order(store: Store) {
    check_batch(&store, 5).await;
}

/// On PostgreSQL this many go in by COPY.
async fn a_bulk_load_is_kept_in_full_and_in_order(store: Store) {
    check_batch(&store, 1000).await;
}

async fn a_batch_of_nothing_is_nothing(store: Store) {
    assert_eq!(store.enqueue_many(Vec::new()).await.unwrap(), []);
}

async fn count(store: &Store) -> i64 {
    store.counts().await.unwrap().iter().map(|(_, _, _, jobs)| jobs).sum()
}

async fn a_batch_with_one_bad_job_stores_none_of_it(store: Store) {
    for count_asked in [5, 300] {
        let mut invalid = mixed(count_asked);
        invalid[3].priority = 5000;
        assert!(matches!(store.enqueue_many(invalid).await, Err(Error::Invalid(_))));
        let mut twice = mixed(count_asked);
        (twice[0].owner, twice[2].owner) = (Owner::Operator, Owner::Operator);
        twice[2].external_id = twice[0].external_id.clone();
        assert!(store.enqueue_many(twice).await.is_err(), "one external id, two jobs");
        assert_eq!(count(&store).await, 0);
    }
}

async fn requests_made_at_once_become_one_job_each(store: Store) {
    let asks = (0..64).map(|number| {
        let store = store.clone();
        let new = NewJob::new(pipeline::XML, "plain", json!({ "number": number }));
        tokio::spawn(async move { store.enqueue(new).await.unwrap() })
    });
    let mut ids = HashSet::new();
    for answer in join_all(asks).await {
        let Enqueued::New(id) = answer.unwrap() else { panic!("no key was given") };
        assert_eq!(history(&store, id).await, ["created", "queued"]);
        ids.insert(id);
    }
    let page = store.jobs(&ListFilter { limit: 1000, ..ListFilter::default() }).await.unwrap();
    assert_eq!(page.jobs.iter().map(|job| job.id).collect::<HashSet<_>>(), ids);
    let numbers: HashSet<_> = page.jobs.iter().map(|job| job.input["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), 64, "a request was stored twice, another not at all");
}

fn named(external_id: &str, owner: Owner) -> NewJob {
    let mut new = job(pipeline::HTML).owned_by(owner);
    new.external_id = Some(external_id.into());
    new
}

#[track_caller]
fn assert_duplicate(answer: Result<Enqueued, Error>, of: JobId) {
    let error = answer.unwrap_err();
    assert!(error.to_string().contains(&of.to_string()), "does not say which job has it: {error}");
    assert!(matches!(error, Error::Duplicate { existing, .. } if existing == of), "{error:?}");
}

async fn a_batch_with_a_taken_or_repeated_external_id_is_told_so(store: Store) {
    let owner = organisation();
    let taken = store.enqueue(named("taken", owner)).await.unwrap().id();
    // Few go by one statement, many in bulk.
    for count in [3, 300] {
        let batch = |last: &str| {
            let free = (0..count).map(|number| named(&format!("free-{number}"), owner));
            free.chain([named(last, owner)]).collect::<Vec<_>>()
        };
        let refused = store.enqueue_many(batch("taken")).await.unwrap_err();
        assert!(matches!(refused, Error::Duplicate { existing, .. } if existing == taken), "{refused:?}");
        let refused = store.enqueue_many(batch("free-0")).await.unwrap_err();
        assert!(matches!(&refused, Error::Repeated(name) if name == "free-0"), "{refused:?}");
    }
    assert_eq!(store.live_count().await.unwrap(), 1);
}

async fn a_taken_external_id_is_refused_and_names_its_job(store: Store) {
    let owners =
        [Owner::Operator, Owner::Session(Uuid::new_v4()), Owner::User(Uuid::new_v4()), organisation()];
    for owner in owners {
        let id = store.enqueue(named("order-1", owner)).await.unwrap().id();
        assert_duplicate(store.enqueue(named("order-1", owner)).await, id);
        let mut keyed = named("order-1", owner);
        keyed.idempotency_key = Some("another request".into());
        assert_duplicate(store.enqueue(keyed).await, id);
        assert_eq!(store.find_external(owner, "order-1").await.unwrap(), Some(id));
    }
    assert_eq!(store.find_external(owners[0], "order-2").await.unwrap(), None);
    assert_eq!(count(&store).await, 4);
}

async fn a_refused_neighbour_does_not_spoil_a_shared_commit(store: Store) {
    let owner = organisation();
    let taken = store.enqueue(named("taken", owner)).await.unwrap().id();
    let asks = (0..40).map(|number| {
        let name = if number % 10 == 5 { "taken".to_owned() } else { format!("free-{number}") };
        store.enqueue(named(&name, owner))
    });
    // Polled together, they gather while the first of them is committed.
    for (number, answer) in join_all(asks).await.into_iter().enumerate() {
        if number % 10 == 5 {
            assert_duplicate(answer, taken);
        } else {
            let id = answer.unwrap().id();
            assert_eq!(store.find_external(owner, &format!("free-{number}")).await.unwrap(), Some(id));
        }
    }
    assert_eq!(count(&store).await, 37);
}

async fn another_owner_may_use_the_same_external_id(store: Store) {
    let mut ids = HashSet::new();
    for owner in [Owner::Operator, organisation(), organisation(), Owner::Session(Uuid::new_v4())] {
        ids.insert(store.enqueue(named("order-1", owner)).await.unwrap().id());
    }
    assert_eq!(ids.len(), 4);
}

/// Something about a request that is made different.
type Change = fn(&mut NewJob);

fn keyed(key: &str, owner: Owner) -> NewJob {
    let mut new = job(pipeline::XML).owned_by(owner);
    new.idempotency_key = Some(key.into());
    new
}

async fn a_repeated_request_is_answered_with_its_first_job(store: Store) {
    let owner = organisation();
    let Enqueued::New(id) = store.enqueue(keyed("k", owner)).await.unwrap() else {
        panic!("the first request is new")
    };
    assert_eq!(store.enqueue(keyed("k", owner)).await.unwrap(), Enqueued::Existing(id));
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::NotPdf))).await;
    assert_eq!(
        store.enqueue(keyed("k", owner)).await.unwrap(),
        Enqueued::Existing(id),
        "the answer to a request does not depend on how the job ended"
    );
    assert!(matches!(store.enqueue(keyed("k", organisation())).await.unwrap(), Enqueued::New(_)));
    assert!(matches!(store.enqueue(keyed("other", owner)).await.unwrap(), Enqueued::New(_)));
    assert_eq!(count(&store).await, 3);
}

async fn a_key_that_was_used_for_another_request_is_refused(store: Store) {
    let owner = organisation();
    store.enqueue(keyed("k", owner)).await.unwrap();
    let changes: [Change; 6] = [
        |new| new.pipeline = pipeline::HTML,
        |new| new.kind.push('!'),
        |new| new.input = json!({ "document": "b.pdf" }),
        |new| new.config = json!({ "zoom": 2 }),
        |new| new.priority = 1,
        |new| new.timeout = Some(Duration::from_secs(1)),
    ];
    for change in changes {
        let mut other = keyed("k", owner);
        change(&mut other);
        let error = store.enqueue(other).await.unwrap_err();
        assert!(matches!(error, Error::KeyReused), "{error:?}");
        assert!(error.to_string().contains("Use a new key"), "{error}");
    }
    // The order of fields is no difference.
    let of = |input| NewJob { input, ..keyed("ordered", owner) };
    let first = store.enqueue(of(json!({ "a": [{ "b": 1, "c": 2 }], "d": 3 }))).await.unwrap();
    let again = store.enqueue(of(json!({ "d": 3, "a": [{ "c": 2, "b": 1 }] }))).await.unwrap();
    assert_eq!(again, Enqueued::Existing(first.id()));
    assert_eq!(count(&store).await, 2);
}

async fn ten_requests_at_once_under_one_key_make_one_job(store: Store) {
    let owner = organisation();
    let asks = (0..10).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.enqueue(keyed("k", owner)).await.unwrap() })
    });
    let answers: Vec<_> = join_all(asks).await.into_iter().map(Result::unwrap).collect();
    let is_new = |answer: &&Enqueued| matches!(answer, Enqueued::New(_));
    assert_eq!(answers.iter().filter(is_new).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().map(|answer| answer.id()).collect::<HashSet<_>>().len(), 1);
    assert_eq!(count(&store).await, 1);
}

async fn a_request_that_failed_leaves_its_key_free(store: Store) {
    let owner = organisation();
    store.enqueue(named("taken", owner)).await.unwrap();
    let mut new = keyed("k", owner);
    new.external_id = Some("taken".into());
    new.dedupe_key = Some("content".into());
    assert!(matches!(store.enqueue(new.clone()).await, Err(Error::Duplicate { .. })));
    new.external_id = Some("free".into());
    assert!(matches!(store.enqueue(new).await.unwrap(), Enqueued::New(_)));
}

fn content(digest: &str, owner: Owner) -> NewJob {
    let mut new = job(pipeline::XML).owned_by(owner);
    new.dedupe_key = Some(digest.into());
    new
}

async fn content_that_is_live_or_succeeded_is_not_worked_on_twice(store: Store) {
    let owner = organisation();
    let id = store.enqueue(content("sha", owner)).await.unwrap().id();
    assert_eq!(store.enqueue(content("sha", owner)).await.unwrap(), Enqueued::Existing(id), "ready");
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    assert_eq!(store.enqueue(content("sha", owner)).await.unwrap(), Enqueued::Existing(id), "running");
    finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(store.enqueue(content("sha", owner)).await.unwrap(), Enqueued::Existing(id), "succeeded");
    assert!(matches!(store.enqueue(content("sha", organisation())).await.unwrap(), Enqueued::New(_)));
    assert!(matches!(store.enqueue(content("other", owner)).await.unwrap(), Enqueued::New(_)));
}

/// Asks for content, and has the job fail.
async fn failed_content(store: &Store, owner: Owner) -> JobId {
    let id = store.enqueue(content("sha", owner)).await.unwrap().id();
    let worker = worker(store).await;
    let claimed = claim_one(store, lane::XML, worker).await;
    finish(store, claimed, Ended::Failed(Failure::from(ErrorCode::NotPdf))).await;
    id
}

async fn content_that_failed_is_worked_on_again(store: Store) {
    let owner = organisation();
    let failed = failed_content(&store, owner).await;
    let Enqueued::New(again) = store.enqueue(content("sha", owner)).await.unwrap() else {
        panic!("answered with a job that failed")
    };
    assert_ne!(again, failed);
    assert_eq!(store.enqueue(content("sha", owner)).await.unwrap(), Enqueued::Existing(again));
    let mut script = NewJob::new(pipeline::SCRIPT, "plain", json!({})).owned_by(owner);
    script.dedupe_key = Some("script".into());
    let cancelled = store.enqueue(script.clone()).await.unwrap().id();
    store.cancel(cancelled).await.unwrap();
    assert!(
        matches!(store.enqueue(script).await.unwrap(), Enqueued::New(_)),
        "answered with a cancelled job"
    );
}

async fn failed_content_asked_for_ten_times_at_once_is_worked_on_once(store: Store) {
    let owner = organisation();
    let failed = failed_content(&store, owner).await;
    let asks = (0..10).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.enqueue(content("sha", owner)).await.unwrap().id() })
    });
    let ids: HashSet<_> = join_all(asks).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids.len(), 1, "not everyone was given the same job");
    assert!(!ids.contains(&failed));
    assert_eq!(count(&store).await, 2);
}

async fn a_repeated_request_for_known_content_keeps_its_answer(store: Store) {
    let owner = organisation();
    let twin = store.enqueue(content("sha", owner)).await.unwrap().id();
    let mut new = content("sha", owner);
    new.idempotency_key = Some("k".into());
    assert_eq!(store.enqueue(new.clone()).await.unwrap(), Enqueued::Existing(twin));
    store.cancel(twin).await.unwrap();
    assert_eq!(store.enqueue(new).await.unwrap(), Enqueued::Existing(twin), "one request, two answers");
}

async fn a_crowd_under_keys_shares_its_commits_and_each_has_its_own_answer(store: Store) {
    let owner = organisation();
    let taken = store.enqueue(named("taken", owner)).await.unwrap().id();
    let twin = store.enqueue(content("known", owner)).await.unwrap().id();
    store.enqueue(keyed("used", owner)).await.unwrap();
    // Polled together, they gather while the first of them is committed; the name that is taken breaks up one batch.
    for (round, name) in [(1, "free"), (2, "taken")] {
        let fresh = content(&format!("fresh-{round}"), owner);
        let known = NewJob { idempotency_key: Some(format!("k-{round}")), ..content("known", owner) };
        let other = NewJob { priority: 7, ..keyed("used", owner) };
        let called = NewJob { external_id: Some(name.into()), ..content(&format!("named-{round}"), owner) };
        let first = content(&format!("first-{round}"), owner);
        // Born into another state than the rest, and the only one of those.
        let mut later = job(pipeline::SCRIPT).owned_by(owner);
        (later.dedupe_key, later.run_at) = (Some("known".into()), Some(Timestamp::MAX));
        let asks = [first, fresh.clone(), known.clone(), known, other, called, later, fresh];
        let answers = join_all(asks.map(|ask| store.enqueue(ask))).await;
        let [first, fresh, known, again, other, called, later, same]: [_; 8] = answers.try_into().unwrap();
        assert_eq!(later.unwrap(), Enqueued::Existing(twin));
        assert!(matches!(first, Ok(Enqueued::New(_))), "{first:?}");
        let fresh = fresh.unwrap();
        assert_eq!((fresh, same.unwrap()), (Enqueued::New(fresh.id()), Enqueued::Existing(fresh.id())));
        assert_eq!([known.unwrap(), again.unwrap()], [Enqueued::Existing(twin); 2]);
        assert!(matches!(other, Err(Error::KeyReused)), "{other:?}");
        match name {
            "taken" => assert_duplicate(called, taken),
            _ => assert!(matches!(called, Ok(Enqueued::New(_))), "{called:?}"),
        }
    }
    assert_eq!(count(&store).await, 3 + 3 + 2);
}

async fn what_cannot_be_accepted_is_refused_in_words_and_not_stored(store: Store) {
    let cases: [(Change, &str); 10] = [
        (|new| new.priority = 1001, "Priority 1001 is out of range; use -1000 to 1000."),
        (|new| new.kind.clear(), "`type` has 0 characters; give it between 1 and 255."),
        (|new| new.external_id = Some("x".repeat(256)), "`external_id` has 256 characters"),
        (|new| new.external_id = Some("a\nb".into()), "`external_id` holds a control character"),
        (|new| new.retries_max = Some(101), "101 retries are too many; the limit is 100."),
        (|new| new.timeout = Some(Duration::ZERO), "The timeout must be"),
        (|new| new.timeout = Some(Duration::MAX), "The timeout must be"),
        (|new| new.input = json!({ "big": "x".repeat(1 << 20) }), "`input` has 1048586 bytes"),
        (|new| new.input = Value::Null, "`input` is null"),
        (|new| new.metadata = json!({ "a": [{ "b\0": 1 }] }), "`metadata` holds the character U+0000"),
    ];
    for (change, message) in cases {
        let mut new = job(pipeline::XML);
        change(&mut new);
        let error = store.enqueue(new.clone()).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        assert!(error.to_string().contains(message), "{error}");
        assert!(store.enqueue_many(vec![new]).await.is_err());
    }
    assert_eq!(count(&store).await, 0);
}

async fn a_job_for_later_is_held_and_comes_in_line_when_it_is_due(store: Store) {
    let born = [
        (pipeline::XML, state::QUEUED, vec!["created", "queued"]),
        (pipeline::HTML, state::PENDING, vec!["created"]),
        (pipeline::PRINT, state::PENDING_EXPORT, vec!["created"]),
        (pipeline::SCRIPT, state::PENDING, vec!["created"]),
    ];
    let run_at = Timestamp::now() + Duration::from_secs(2);
    let mut ids = Vec::new();
    for (pipeline, state, words) in born {
        let (mut soon, mut late) = (job(pipeline), job(pipeline));
        soon.run_at = Some(run_at);
        late.run_at = Some(run_at + Duration::from_secs(3600));
        let late = store.enqueue(late).await.unwrap().id();
        let soon = store.enqueue(soon).await.unwrap().id();
        let record = record(&store, soon).await;
        assert_eq!((record.state, record.phase, record.queued_at), (state, Phase::Held, None), "{pipeline}");
        assert_eq!(record.run_at.map(Timestamp::as_microsecond), Some(run_at.as_microsecond()));
        assert_eq!(history(&store, soon).await, words, "{pipeline}");
        ids.push((pipeline, soon, late));
    }
    until(async || store.look(&[]).await.unwrap().now > run_at).await;
    assert_eq!(store.promote_due().await.unwrap(), 4);
    assert_eq!(store.promote_due().await.unwrap(), 0);
    for (pipeline, soon, late) in ids {
        let (now, then) = (record(&store, soon).await, record(&store, late).await);
        assert_eq!((now.phase, now.run_at), (Phase::Ready, None), "{pipeline}");
        assert!(now.queued_at.is_some(), "{pipeline}");
        assert_eq!(then.phase, Phase::Held, "{pipeline}");
        let is_walked = [pipeline::XML, pipeline::SCRIPT].contains(&pipeline);
        let words = if is_walked { vec!["created", "queued"] } else { vec!["created"] };
        assert_eq!(history(&store, soon).await, words, "{pipeline}");
        assert_eq!(
            Some(now.state),
            pipeline.machine().states.iter().find(|s| s.phase == Phase::Ready).map(|s| s.state)
        );
    }
}

async fn a_moment_that_has_passed_is_now(store: Store) {
    let mut new = job(pipeline::SCRIPT);
    new.run_at = Some(Timestamp::now() - Duration::from_secs(1));
    let id = store.enqueue(new).await.unwrap().id();
    let record = record(&store, id).await;
    assert_eq!((record.state, record.phase, record.run_at), (state::QUEUED, Phase::Ready, None));
}

/// A worker of this process that takes every so many-th html job.
struct Desk {
    worker: WorkerId,
    every: usize,
    asked: AtomicUsize,
    /// Shared with every place that is taken and not yet used or given back.
    places: Arc<()>,
    started: Arc<Mutex<Vec<Claimed>>>,
}

impl Desk {
    async fn open(store: &Store, every: usize) -> Arc<Self> {
        let (worker, asked) = (worker(store).await, AtomicUsize::new(0));
        let desk = Arc::new(Desk { worker, every, asked, places: Arc::default(), started: Arc::default() });
        store.offer_slots(desk.clone());
        desk
    }

    fn places_taken(&self) -> usize {
        Arc::strong_count(&self.places) - 1
    }
}

/// One place at the desk.
struct Place {
    worker: WorkerId,
    _place: Arc<()>,
    started: Arc<Mutex<Vec<Claimed>>>,
}

impl Slots for Desk {
    fn reserve(&self, lane: Lane) -> Option<Box<dyn BornClaimed>> {
        let is_turn =
            lane == lane::HTML && (self.asked.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.every);
        let (worker, _place, started) = (self.worker, self.places.clone(), self.started.clone());
        is_turn.then(|| Box::new(Place { worker, _place, started }) as Box<dyn BornClaimed>)
    }
}

impl BornClaimed for Place {
    fn worker(&self) -> WorkerId {
        self.worker
    }

    fn terms(&self) -> (Duration, Duration) {
        (Duration::from_secs(300), Duration::from_secs(60))
    }

    fn start(self: Box<Self>, job: Claimed) {
        self.started.lock().unwrap().push(job);
    }
}

async fn a_job_may_be_born_in_the_hands_of_a_worker(store: Store) {
    let desk = Desk::open(&store, 1).await;
    let (worker, started) = (desk.worker, &desk.started);
    let owner = organisation();
    let mut new = named("first", owner);
    new.timeout = Some(Duration::from_secs(7));
    let id = store.enqueue(new.clone()).await.unwrap().id();
    let claimed = started.lock().unwrap().pop().expect("it was not started");
    assert_eq!((claimed.lease.job(), claimed.lease.fence(), claimed.lease.worker()), (id, 1, worker));
    assert_eq!((claimed.attempt, claimed.owner, &claimed.input), (1, owner, &new.input));
    let born = record(&store, id).await;
    assert_eq!((born.state, born.phase, born.attempt_count), (state::PROCESSING, Phase::Running, 1));
    assert_eq!(born.worker_id, Some(worker));
    let limit = born.timeout_at.unwrap().as_millisecond() - born.started_at.unwrap().as_millisecond();
    assert_eq!(limit, 7000);
    assert_eq!(history(&store, id).await, ["created", "processing"]);

    assert_duplicate(store.enqueue(new).await, id);
    assert_eq!(desk.places_taken(), 0, "a refused job kept its place");
    let other = store.enqueue(job(pipeline::XML)).await.unwrap().id();
    assert_eq!(record(&store, other).await.phase, Phase::Ready, "the worker does not do this");
    finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(record(&store, id).await.state, state::COMPLETED);
    assert!(started.lock().unwrap().is_empty());
}

async fn a_crowd_shares_its_commits_though_some_are_born_claimed(store: Store) {
    let desk = Desk::open(&store, 50).await;
    let asks = (0..600).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.enqueue(job(pipeline::HTML)).await.unwrap().id() })
    });
    let ids: Vec<JobId> = join_all(asks).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(desk.started.lock().unwrap().len(), 12);
    let running = ListFilter { phase: Some(Phase::Running), limit: 100, ..ListFilter::default() };
    assert_eq!(store.jobs(&running).await.unwrap().jobs.len(), 12);
    let mut entries = HashSet::new();
    for id in ids {
        entries.insert(store.events(id).await.unwrap()[0].seq);
    }
    assert!(entries.len() < 60, "600 jobs took {} commits", entries.len());
}

async fn what_is_told_of_a_new_job_is_what_is_read_of_it(store: Store) {
    // One that begins at once, too.
    let _desk = Desk::open(&store, 1).await;
    let plain = job(pipeline::XML).owned_by(Owner::Session(Uuid::new_v4()));
    let later = NewJob { run_at: Some(Timestamp::MAX), ..plain.clone() };
    let begun = NewJob { pipeline: pipeline::HTML, ..full() };
    let sent = [plain, later, begun].into_iter().enumerate().map(|(number, mut new)| {
        new.dedupe_key = Some(number.to_string());
        let source = Artifact { role: "source".into(), ..file(&number.to_string()) };
        store.enqueue_file(new, source)
    });
    for accepted in join_all(sent).await {
        let accepted = accepted.unwrap();
        let read = store.jobs_by_id(std::iter::once(accepted.enqueued.id())).await.unwrap();
        assert_eq!(accepted.job, read.into_iter().next());
        assert!(accepted.job.is_some());
    }
}
