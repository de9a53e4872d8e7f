//! Reading: one job, many jobs, their histories, logs and files, and who may.

use crate::harness::{claim_one, ending, finish, history, job, on_both, organisation, record, worker};
use crate::machines::{lane, pipeline, state};
use ode_job::{Artifact, Ended, ErrorCode, Failure, JobId, JobRef, LogLevel, Owner, Phase};
use ode_store::{Error, ListFilter, Store};
use std::time::Duration;
use uuid::Uuid;

on_both!(
    a_list_shows_newest_first_and_its_pages_show_every_job_once,
    a_list_is_narrowed_by_pipeline_state_phase_and_owner,
    a_list_has_a_limit_whatever_is_asked_for,
    a_job_is_found_by_its_reference,
    a_name_that_no_job_has_is_not_found,
    somebody_elses_job_looks_like_none_at_all,
    a_history_is_in_order_and_tells_who_did_what,
    jobs_that_took_a_step_together_have_their_own_histories,
    a_log_is_read_page_by_page_in_the_order_written,
    files_are_listed_by_role_and_name,
    jobs_are_counted_by_pipeline_state_and_phase,
    health_finds_nothing_wrong_with_a_fresh_database,
);

fn all() -> ListFilter {
    ListFilter { limit: 1000, ..ListFilter::default() }
}

async fn ids(store: &Store, filter: &ListFilter) -> Vec<JobId> {
    store.jobs(filter).await.unwrap().jobs.iter().map(|job| job.id).collect()
}

async fn a_list_shows_newest_first_and_its_pages_show_every_job_once(store: Store) {
    let mut asked: Vec<JobId> =
        store.enqueue_many((0..25).map(|number| job(pipeline::ALL[number % 4])).collect()).await.unwrap();
    asked.reverse();
    assert_eq!(ids(&store, &all()).await, asked);
    let mut seen = Vec::new();
    let mut before = None;
    for page_number in 1..=4 {
        let page = store.jobs(&ListFilter { before, limit: 7, ..ListFilter::default() }).await.unwrap();
        seen.extend(page.jobs.iter().map(|job| job.id));
        before = page.next_cursor;
        assert_eq!(before.is_none(), page_number == 4, "page {page_number} of 4");
        // What comes in between the pages is newer than all of them.
        store.enqueue(job(pipeline::XML)).await.unwrap();
    }
    assert_eq!(seen, asked);
    let exact = store.jobs(&ListFilter { limit: 29, ..ListFilter::default() }).await.unwrap();
    assert_eq!((exact.jobs.len(), exact.next_cursor), (29, None), "a full last page has no successor");
}

async fn a_list_is_narrowed_by_pipeline_state_phase_and_owner(store: Store) {
    let owners = [Owner::Session(Uuid::new_v4()), Owner::User(Uuid::new_v4()), organisation()];
    let new = |number: usize| job(pipeline::ALL[number % 4]).owned_by(owners[number % 3]);
    let made = store.enqueue_many((0..12).map(new).collect()).await.unwrap();
    store.cancel(made[3]).await.unwrap();
    let worker = worker(&store).await;
    let running = claim_one(&store, lane::SCRIPT, worker).await.lease.job();
    let of = |wanted: fn(usize) -> bool| {
        let matching = made.iter().copied().enumerate().filter(move |(number, _)| wanted(*number));
        matching.map(|(_, id)| id).rev().collect::<Vec<_>>()
    };
    let filter = |change: fn(&mut ListFilter)| {
        let mut filter = all();
        change(&mut filter);
        filter
    };
    assert_eq!(ids(&store, &filter(|f| f.pipeline = Some(pipeline::HTML))).await, of(|n| n % 4 == 1));
    assert_eq!(ids(&store, &filter(|f| f.state = Some(state::PENDING_EXPORT))).await, of(|n| n % 4 == 2));
    assert_eq!(ids(&store, &filter(|f| f.phase = Some(Phase::Cancelled))).await, [made[3]]);
    assert_eq!(ids(&store, &filter(|f| f.phase = Some(Phase::Running))).await, [running]);
    assert_eq!(ids(&store, &filter(|f| f.phase = Some(Phase::Done))).await, []);
    let owned = |owner| ListFilter { owner: Some(owner), ..all() };
    assert_eq!(ids(&store, &owned(owners[0])).await, of(|n| n % 3 == 0));
    assert_eq!(ids(&store, &owned(owners[1])).await, of(|n| n % 3 == 1));
    assert_eq!(ids(&store, &owned(owners[2])).await, of(|n| n % 3 == 2));
    assert_eq!(ids(&store, &owned(organisation())).await, []);
    assert_eq!(ids(&store, &owned(Owner::Operator)).await.len(), 12, "an operator sees all");
    let both = ListFilter { pipeline: Some(pipeline::XML), phase: Some(Phase::Ready), ..owned(owners[0]) };
    assert_eq!(ids(&store, &both).await, [made[0]]);
    assert_eq!(ids(&store, &ListFilter { before: Some(made[2]), ..all() }).await, [made[1], made[0]]);
}

async fn a_list_has_a_limit_whatever_is_asked_for(store: Store) {
    store.enqueue_many((0..1001).map(|_| job(pipeline::HTML)).collect()).await.unwrap();
    let page = store.jobs(&ListFilter { limit: usize::MAX, ..ListFilter::default() }).await.unwrap();
    assert_eq!((page.jobs.len(), page.next_cursor.is_some()), (1000, true));
    let page = store.jobs(&ListFilter::default()).await.unwrap();
    assert_eq!(page.jobs.len(), 1, "a list of nothing would never end");
}

async fn a_job_is_found_by_its_reference(store: Store) {
    let made = store.enqueue_many((0..20).map(|_| job(pipeline::SCRIPT)).collect()).await.unwrap();
    for id in made {
        let reference: JobRef = id.reference().parse().unwrap();
        let found = store.job(reference).await.unwrap();
        assert_eq!((found.id, found.reference), (id, id.reference()));
        assert_eq!(store.resolve(reference).await.unwrap(), id);
    }
}

async fn a_name_that_no_job_has_is_not_found(store: Store) {
    let id = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    let reference = id.reference();
    let other_tail = format!("{}{:08x}", &reference[..reference.len() - 8], id.tail().wrapping_add(1));
    let other_second = reference.replace("JOB_2", "JOB_1");
    for name in [other_tail, other_second, Uuid::now_v7().to_string()] {
        let error = store.job(name.parse().unwrap()).await.unwrap_err();
        assert!(matches!(error, Error::NotFound(_)), "{name}: {error:?}");
        assert!(error.to_string().contains("`ode jobs list` shows the ones there are"), "{error}");
    }
}

async fn somebody_elses_job_looks_like_none_at_all(store: Store) {
    let owners = [Owner::Session(Uuid::new_v4()), Owner::User(Uuid::new_v4()), organisation()];
    for owner in owners {
        let id = store.enqueue(job(pipeline::XML).owned_by(owner)).await.unwrap().id();
        let names = [JobRef::Id(id), id.reference().parse().unwrap()];
        for name in names {
            assert_eq!(store.job_of(owner, name).await.unwrap().id, id);
            assert_eq!(store.job_of(Owner::Operator, name).await.unwrap().id, id);
        }
        let key = owner.key();
        let strangers = [Owner::Session(key), Owner::User(key), Owner::Organisation(key), organisation()];
        for stranger in strangers.into_iter().filter(|stranger| *stranger != owner) {
            for name in names {
                let foreign = store.job_of(stranger, name).await.unwrap_err();
                let foreign = foreign.to_string();
                // The same question to a store in which there is no such job at all.
                let nowhere = crate::harness::sqlite().await.job_of(stranger, name).await.unwrap_err();
                assert_eq!(foreign, nowhere.to_string(), "the answer gives the job away");
            }
        }
    }
}

async fn a_history_is_in_order_and_tells_who_did_what(store: Store) {
    let id = store.enqueue(job(pipeline::XML)).await.unwrap().id();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::NotPdf))).await;
    store.retry(id).await.unwrap();
    store.cancel(id).await.unwrap();
    let events = store.events(id).await.unwrap();
    let told: Vec<_> = events.iter().map(|e| (e.event.as_str(), e.from_state, e.to_state)).collect();
    let expected = [
        ("created", None, state::UPLOADED),
        ("queued", Some(state::UPLOADED), state::QUEUED),
        ("processing", Some(state::QUEUED), state::PROCESSING),
        ("failed", Some(state::PROCESSING), state::FAILED),
        ("retry", Some(state::FAILED), state::QUEUED),
        ("cancelled", Some(state::QUEUED), state::FAILED),
    ];
    assert_eq!(told, expected);
    assert!(events.iter().all(|event| event.job_id == id));
    assert!(events.is_sorted_by(|a, b| a.seq < b.seq && a.at <= b.at), "{events:?}");
    let actors: Vec<_> = events.iter().map(|event| event.actor.as_str()).collect();
    let name = worker.to_string();
    assert_eq!(actors, ["ode", "ode", name.as_str(), name.as_str(), "ode", "ode"]);
    assert_eq!(events[3].meta.as_ref().unwrap()["code"], "NOT_PDF");
    assert_eq!(events[2].meta, None);
    assert_eq!(store.events(JobId(Uuid::now_v7())).await.unwrap(), []);
}

async fn jobs_that_took_a_step_together_have_their_own_histories(store: Store) {
    let made = store.enqueue_many((0..3).map(|_| job(pipeline::HTML)).collect()).await.unwrap();
    let worker = worker(&store).await;
    let claimed = crate::harness::claim(&store, lane::HTML, worker, 3).await;
    let broken =
        |number: usize| Ended::Failed(Failure::rejected(ErrorCode::NotPdf, format!("number {number}")));
    let mut numbers: Vec<_> = claimed.iter().map(|job| job.lease.job()).collect();
    let batch = claimed.into_iter().enumerate().map(|(number, job)| ending(job, broken(number)));
    store.finish(batch.collect()).await.unwrap();
    let mut seqs = Vec::new();
    for (number, id) in numbers.drain(..).enumerate() {
        let events = store.events(id).await.unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(events[2].meta.as_ref().unwrap()["message"], format!("number {number}"));
        seqs.push(events[2].seq);
    }
    assert!(seqs.iter().all(|seq| *seq == seqs[0]), "one step, one entry");
    assert_eq!(history(&store, made[0]).await, ["created", "processing", "failed"]);
}

async fn a_log_is_read_page_by_page_in_the_order_written(store: Store) {
    let made = store.enqueue_many(vec![job(pipeline::SCRIPT), job(pipeline::SCRIPT)]).await.unwrap();
    let levels = [LogLevel::Info, LogLevel::Warn, LogLevel::Error];
    for number in 0..10_u32 {
        let level = levels[number as usize % 3];
        store.log(made[0], number / 5 + 1, level, &format!("Zeile {number} ✓")).await.unwrap();
        store.log(made[1], 1, LogLevel::Info, "somebody else's").await.unwrap();
    }
    let (mut lines, mut after) = (Vec::new(), 0);
    loop {
        let page = store.logs(made[0], after, 4).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 4);
        after = last.id;
        lines.extend(page);
    }
    for (number, line) in (0..10_u32).zip(&lines) {
        assert_eq!((line.job_id, line.attempt), (made[0], number / 5 + 1));
        assert_eq!((line.level, &line.message), (levels[number as usize % 3], &format!("Zeile {number} ✓")));
    }
    assert_eq!(lines.len(), 10);
    let nobody = JobId(Uuid::now_v7());
    store.log(nobody, 1, LogLevel::Info, "for nobody").await.unwrap();
    assert_eq!(store.logs(nobody, 0, 10).await.unwrap(), []);
}

async fn files_are_listed_by_role_and_name(store: Store) {
    let id = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    let worker = worker(&store).await;
    let mut end = ending(claim_one(&store, lane::HTML, worker).await, Ended::Succeeded);
    let file = |role: &str, name: &str| Artifact {
        role: role.into(),
        name: name.into(),
        storage: "local".into(),
        path: format!("{role}/{name}"),
        content_type: "text/html; charset=utf-8".into(),
        bytes: i64::from(u32::MAX) * 2,
        sha256: "ab".repeat(32),
    };
    end.artifacts = vec![file("result", "größe.html"), file("asset", "b.css"), file("asset", "a.css")];
    store.finish(vec![end]).await.unwrap();
    let listed = store.artifacts(id).await.unwrap();
    assert_eq!(listed, [file("asset", "a.css"), file("asset", "b.css"), file("result", "größe.html")]);
    assert_eq!(store.artifacts(JobId(Uuid::now_v7())).await.unwrap(), []);
}

async fn jobs_are_counted_by_pipeline_state_and_phase(store: Store) {
    assert_eq!(store.counts().await.unwrap(), []);
    store.enqueue_many(vec![job(pipeline::XML), job(pipeline::XML), job(pipeline::SCRIPT)]).await.unwrap();
    let mut later = job(pipeline::XML);
    later.run_at = Some(jiff::Timestamp::now() + Duration::from_secs(60));
    let later = store.enqueue(later).await.unwrap().id();
    let expected = [
        (pipeline::SCRIPT, state::QUEUED, Phase::Ready, 1),
        (pipeline::XML, state::QUEUED, Phase::Held, 1),
        (pipeline::XML, state::QUEUED, Phase::Ready, 2),
    ];
    assert_eq!(store.counts().await.unwrap(), expected);
    assert_eq!(store.live_count().await.unwrap(), 4);
    store.cancel(later).await.unwrap();
    assert_eq!(record(&store, later).await.phase, Phase::Failed);
    let counts = store.counts().await.unwrap();
    assert!(counts.contains(&(pipeline::XML, state::FAILED, Phase::Failed, 1)), "{counts:?}");
    assert_eq!(counts.len(), 3);
    assert_eq!(store.live_count().await.unwrap(), 3, "one has ended");
}

async fn health_finds_nothing_wrong_with_a_fresh_database(store: Store) {
    let findings = store.health().await.unwrap();
    assert!(findings.len() > 3);
    for finding in findings {
        // A database in memory has no journal; that is what it is for.
        let is_memory = finding.name == "journal_mode" && finding.found == "memory";
        assert!(finding.is_ok || is_memory, "{finding:?}");
    }
}
