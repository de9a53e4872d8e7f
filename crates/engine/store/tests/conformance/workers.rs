//! Workers among themselves: who is alive, who holds what, and whose jobs go to others.

use crate::harness::config;
use crate::harness::{
    Database, LEASE, claim, claim_one, finish, history, job, on_both, record, request, silence, until, worker,
};
use crate::machines::{lane, pipeline, state};
use futures_util::future::join;
use jiff::Timestamp;
use ode_job::{Claimed, Ended, JobId, Lane, Lease, LogLevel, Phase, Progress, WorkerId, WorkerRecord};
use ode_store::{ClaimRequest, Config, Finished, Overview, Store, Wake, Wakes};
use std::time::Duration;
use uuid::Uuid;

on_both!(
    a_worker_is_known_from_its_start_to_its_leave,
    a_beat_says_how_busy_a_worker_is_and_whether_it_drains,
    a_silent_workers_jobs_go_to_others,
    the_third_worker_lost_on_a_job_sets_it_aside,
    a_job_of_a_worker_nobody_knows_goes_to_others,
    an_expired_lease_goes_to_others_though_its_worker_lives,
    a_worker_that_was_given_up_learns_it_from_its_beat,
    two_rescuers_at_once_rescue_each_job_once,
    a_renewed_lease_is_longer_and_a_lost_one_is_left_out,
    strays_are_handed_back_unburned_and_known_jobs_are_kept,
    progress_is_shown_while_the_lease_is_held,
    text_that_a_database_cannot_hold_is_still_told,
    a_look_shows_the_lanes_with_work_and_only_those_asked_for,
    a_look_shows_when_the_next_job_is_due,
    a_look_shows_a_lost_worker,
    new_work_and_the_wish_to_stop_wake_whoever_listens,
    an_overview_shows_what_waits_what_runs_and_who_works,
);
on_both!(
    sqlite_file, postgres_database:
    silence_is_counted_from_the_start_of_a_worker,
    work_from_another_process_wakes_whoever_listens,
    the_process_of_an_attempt_is_known_while_the_lease_is_held
);

/// Three jobs in a lane, claimed by a new worker.
async fn claimed(store: &Store, count: usize) -> (WorkerId, Vec<Claimed>) {
    store.enqueue_many((0..count).map(|_| job(pipeline::HTML)).collect()).await.unwrap();
    let worker = worker(store).await;
    let claimed = claim(store, lane::HTML, worker, count).await;
    assert_eq!(claimed.len(), count);
    (worker, claimed)
}

async fn find(store: &Store, id: WorkerId) -> Option<WorkerRecord> {
    store.workers().await.unwrap().into_iter().find(|worker| worker.id == id)
}

async fn an_overview_shows_what_waits_what_runs_and_who_works(store: Store) {
    assert_eq!(store.overview().await.unwrap(), Overview::default());
    let (worker, _claimed) = claimed(&store, 1).await;
    store.enqueue_many(vec![job(pipeline::HTML), job(pipeline::HTML)]).await.unwrap();
    let overview = store.overview().await.unwrap();
    let seen: Vec<_> = overview.live.iter().map(|jobs| (jobs.state, jobs.count, jobs.waiting)).collect();
    assert_eq!(seen, [(state::PENDING, 2, 2), (state::PROCESSING, 1, 0)]);
    assert!(overview.live[0].waiting_for.is_some() && overview.live[0].running_for.is_none());
    assert!(overview.live[1].waiting_for.is_none() && overview.live[1].running_for.is_some());
    assert_eq!((overview.workers_alive, overview.waiting()), (1, 2));
    silence(&store, worker).await;
    assert_eq!(store.overview().await.unwrap().workers_alive, 0);
}

async fn a_worker_is_known_from_its_start_to_its_leave(store: Store) {
    assert_eq!(store.workers().await.unwrap(), []);
    let (first, second) = (WorkerId(Uuid::new_v4()), WorkerId(Uuid::new_v4()));
    store.register(first, "maschine-ä", "1.2.3").await.unwrap();
    store.register(second, "other", "1.2.4").await.unwrap();
    let known = find(&store, first).await.unwrap();
    assert_eq!((known.host.as_str(), known.version.as_str()), ("maschine-ä", "1.2.3"));
    assert_eq!(known.pid, i64::from(std::process::id()));
    assert!(known.is_alive && !known.is_draining && known.running == 0);
    store.leave(first).await.unwrap();
    let left: Vec<_> = store.workers().await.unwrap().into_iter().map(|worker| worker.id).collect();
    assert_eq!(left, [second]);
    assert!(!store.beat(first, LEASE, 0, false).await.unwrap(), "it has left");
}

async fn a_beat_says_how_busy_a_worker_is_and_whether_it_drains(store: Store) {
    let id = worker(&store).await;
    let before = find(&store, id).await.unwrap();
    until(async || store.look(&[]).await.unwrap().now > before.beat_at).await;
    assert!(store.beat(id, LEASE, 7, true).await.unwrap());
    let after = find(&store, id).await.unwrap();
    assert_eq!((after.running, after.is_draining, after.started_at), (7, true, before.started_at));
    assert!(after.beat_at > before.beat_at);
    assert!(store.beat(id, LEASE, 0, false).await.unwrap());
    assert!(!find(&store, id).await.unwrap().is_draining);
}

async fn a_silent_workers_jobs_go_to_others(store: Store) {
    let (silent, jobs) = claimed(&store, 3).await;
    let ids: Vec<JobId> = jobs.iter().map(|job| job.lease.job()).collect();
    assert_eq!(store.rescue().await.unwrap(), 0, "it is alive");
    silence(&store, silent).await;
    assert!(!find(&store, silent).await.unwrap().is_alive);
    assert_eq!(store.rescue().await.unwrap(), 3);
    assert_eq!(store.rescue().await.unwrap(), 0);
    for id in &ids {
        let record = record(&store, *id).await;
        assert_eq!((record.state, record.phase), (state::PENDING, Phase::Ready));
        assert_eq!((record.attempt_count, record.retry_count), (1, 0), "the try counts, and is no retry");
        assert_eq!((record.worker_id, record.lease_expires_at, record.timeout_at), (None, None, None));
        let told = store.events(*id).await.unwrap().pop().unwrap();
        assert_eq!(told.event.as_str(), "rescued");
        assert_eq!(told.meta.unwrap()["worker"], silent.to_string(), "says whose it was");
    }
    let next = worker(&store).await;
    let again = claim(&store, lane::HTML, next, 3).await;
    assert!(again.iter().all(|job| (job.attempt, job.crashes, job.lease.fence()) == (2, 1, 2)));
    for late in jobs {
        assert_eq!(finish(&store, late, Ended::Succeeded).await, Finished::LeaseLost);
    }
}

async fn the_third_worker_lost_on_a_job_sets_it_aside(store: Store) {
    for (pipeline, lane) in [(pipeline::XML, lane::XML), (pipeline::SCRIPT, lane::SCRIPT)] {
        let id = store.enqueue(job(pipeline)).await.unwrap().id();
        for crash in 1..=3 {
            let worker = worker(&store).await;
            let claimed = claim_one(&store, lane, worker).await;
            assert_eq!((claimed.attempt, claimed.crashes), (crash, crash - 1));
            silence(&store, worker).await;
            assert_eq!(store.rescue().await.unwrap(), 1);
        }
        let record = record(&store, id).await;
        assert_eq!((record.state, record.phase, record.attempt_count), (state::FAILED, Phase::Failed, 3));
        assert_eq!(record.error_code.as_deref(), Some("POISON"));
        assert!(record.error_message.unwrap().contains("crashed its worker too often"));
        let words = history(&store, id).await;
        assert_eq!(words[words.len() - 5..], ["rescued", "processing", "rescued", "processing", "failed"]);
        store.retry(id).await.unwrap();
        let worker = worker(&store).await;
        assert_eq!(claim_one(&store, lane, worker).await.crashes, 0, "a person's retry counts crashes anew");
    }
}

async fn a_job_of_a_worker_nobody_knows_goes_to_others(store: Store) {
    let id = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    claim_one(&store, lane::HTML, WorkerId(Uuid::new_v4())).await;
    assert_eq!(store.rescue().await.unwrap(), 1);
    assert_eq!(record(&store, id).await.phase, Phase::Ready);
}

async fn an_expired_lease_goes_to_others_though_its_worker_lives(store: Store) {
    store.enqueue_many(vec![job(pipeline::HTML), job(pipeline::HTML)]).await.unwrap();
    let worker = worker(&store).await;
    let short = ClaimRequest { lease: Duration::from_millis(1), ..request(lane::HTML, worker, 1) };
    let expired = store.claim(short).await.unwrap().remove(0).lease.job();
    let kept = claim_one(&store, lane::HTML, worker).await.lease.job();
    until(async || store.rescue().await.unwrap() == 1).await;
    assert_eq!(record(&store, expired).await.phase, Phase::Ready);
    assert_eq!(record(&store, kept).await.phase, Phase::Running);
    assert!(store.beat(worker, LEASE, 1, false).await.unwrap(), "the worker itself was not given up");
}

async fn a_worker_that_was_given_up_learns_it_from_its_beat(store: Store) {
    let (silent, _jobs) = claimed(&store, 1).await;
    let alive = worker(&store).await;
    silence(&store, silent).await;
    store.rescue().await.unwrap();
    assert!(!store.beat(silent, LEASE, 1, false).await.unwrap());
    assert_eq!(find(&store, silent).await, None);
    assert!(store.beat(alive, LEASE, 0, false).await.unwrap());
    // One that speaks again before anybody noticed is simply alive.
    silence(&store, alive).await;
    assert!(store.beat(alive, LEASE, 0, false).await.unwrap());
    assert!(!store.look(&[]).await.unwrap().has_lost);
}

async fn two_rescuers_at_once_rescue_each_job_once(store: Store) {
    for _ in 0..5 {
        let (silent, jobs) = claimed(&store, 40).await;
        silence(&store, silent).await;
        let (one, two) = join(store.rescue(), store.rescue()).await;
        assert_eq!(one.unwrap() + two.unwrap(), 40);
        for job in &jobs {
            let words = history(&store, job.lease.job()).await;
            assert_eq!(words.iter().filter(|word| *word == "rescued").count(), 1, "{words:?}");
            store.cancel(job.lease.job()).await.unwrap();
        }
    }
}

async fn a_renewed_lease_is_longer_and_a_lost_one_is_left_out(store: Store) {
    let (worker, jobs) = claimed(&store, 3).await;
    let leases: Vec<_> = jobs.iter().map(|job| (job.lease.job(), job.lease.fence())).collect();
    let other = crate::harness::worker(&store).await;
    let [kept, ended, stale] = [leases[0], leases[1], (leases[2].0, leases[2].1 - 1)];
    let ends = jobs.into_iter().nth(1).unwrap();
    finish(&store, ends, Ended::Succeeded).await;
    let before = record(&store, kept.0).await.lease_expires_at.unwrap();
    let asked = [kept, ended, stale];
    let renewed = store.renew(worker, asked.iter(), 2 * LEASE).await.unwrap();
    assert_eq!(renewed.held, [kept.0], "one has ended, of one the fence is old");
    let after = record(&store, kept.0).await.lease_expires_at.unwrap();
    assert!(after >= before + LEASE - Duration::from_secs(1), "{before} became {after}");
    assert_eq!(store.held(worker, asked.iter()).await.unwrap().held, [kept.0]);
    assert_eq!(store.renew(other, asked.iter(), LEASE).await.unwrap().held, [], "it is not the other's");
    assert_eq!(store.held(other, asked.iter()).await.unwrap().held, []);
    assert_eq!(store.renew(worker, [].iter(), LEASE).await.unwrap().held, []);
}

async fn strays_are_handed_back_unburned_and_known_jobs_are_kept(store: Store) {
    let (worker, jobs) = claimed(&store, 3).await;
    let (_, others) = claimed(&store, 1).await;
    let ids: Vec<JobId> = jobs.iter().map(|job| job.lease.job()).collect();
    assert_eq!(store.release_strays(worker, &ids, Duration::ZERO).await.unwrap(), 0);
    assert_eq!(store.release_strays(worker, &ids[..1], Duration::ZERO).await.unwrap(), 2);
    let known = record(&store, ids[0]).await;
    assert_eq!((known.phase, known.attempt_count), (Phase::Running, 1));
    for id in &ids[1..] {
        let stray = record(&store, *id).await;
        assert_eq!((stray.phase, stray.attempt_count), (Phase::Ready, 0), "the try was never made");
        assert_eq!(history(&store, *id).await, ["created", "processing", "released"]);
    }
    assert_eq!(record(&store, others[0].lease.job()).await.phase, Phase::Running, "another worker's job");
}

async fn progress_is_shown_while_the_lease_is_held(store: Store) {
    let (worker, mut jobs) = claimed(&store, 1).await;
    let claimed = jobs.remove(0);
    let id = claimed.lease.job();
    let progress = Progress { percent: 40, message: Some("Seite 4 von 10".into()), step: 4, steps: 10 };
    assert!(store.progress(&claimed.lease, &progress).await.unwrap());
    assert_eq!(record(&store, id).await.progress, progress);
    let too_far = Progress { percent: 250, ..Progress::default() };
    assert!(store.progress(&claimed.lease, &too_far).await.unwrap());
    assert_eq!(record(&store, id).await.progress.percent, 100);
    for wrong in [Lease::granted(id, 0, worker), Lease::granted(id, 1, WorkerId(Uuid::new_v4()))] {
        assert!(!store.progress(&wrong, &progress).await.unwrap(), "{wrong:?} reported progress");
    }
    assert_eq!(record(&store, id).await.progress.percent, 100);
    finish(&store, claimed, Ended::HandedBack).await;
    assert_eq!(record(&store, id).await.progress, Progress::default(), "the next attempt begins anew");
    assert!(!store.progress(&Lease::granted(id, 1, worker), &progress).await.unwrap());
}

/// PostgreSQL has no place for U+0000. What a child process prints must not cost it its job for that.
async fn text_that_a_database_cannot_hold_is_still_told(store: Store) {
    let (_, mut jobs) = claimed(&store, 2).await;
    let (strange, plain) = (jobs.remove(0), jobs.remove(0));
    let (id, neighbour) = (strange.lease.job(), plain.lease.job());
    let progress = Progress { message: Some("a\0b".into()), ..Progress::default() };
    assert!(store.progress(&strange.lease, &progress).await.unwrap());
    assert_eq!(record(&store, id).await.progress.message.as_deref(), Some("a b"));
    store.log(id, 1, LogLevel::Warn, "c\0d").await.unwrap();
    assert_eq!(store.logs(id, 0, 10).await.unwrap()[0].message, "c d");
    let mut strange = crate::harness::ending(strange, Ended::Succeeded);
    strange.result = Some(serde_json::json!({ "ti\0tle": ["e\0f"] }));
    let plain = crate::harness::ending(plain, Ended::Succeeded);
    store.finish(vec![strange, plain]).await.unwrap();
    assert_eq!(record(&store, id).await.result, Some(serde_json::json!({ "ti tle": ["e f"] })));
    assert_eq!(record(&store, neighbour).await.state, state::COMPLETED);
}

async fn a_look_shows_the_lanes_with_work_and_only_those_asked_for(store: Store) {
    assert_eq!(store.look(lane::ALL).await.unwrap().ready, []);
    for pipeline in [pipeline::XML, pipeline::SCRIPT, pipeline::PRINT] {
        store.enqueue(job(pipeline)).await.unwrap();
    }
    let ready = |lanes: &'static [Lane]| {
        let store = store.clone();
        async move {
            let mut ready = store.look(lanes).await.unwrap().ready;
            ready.sort_unstable();
            ready
        }
    };
    assert_eq!(ready(lane::ALL).await, [lane::XML, lane::PRINT_EXPORT, lane::SCRIPT]);
    assert_eq!(ready(&[lane::SCRIPT, lane::HTML]).await, [lane::SCRIPT]);
    let worker = worker(&store).await;
    claim_one(&store, lane::SCRIPT, worker).await;
    assert_eq!(ready(lane::ALL).await, [lane::XML, lane::PRINT_EXPORT], "a leased job waits for nobody");
}

async fn a_look_shows_when_the_next_job_is_due(store: Store) {
    assert_eq!(store.look(&[]).await.unwrap().due_at, None);
    let moment = |seconds| {
        Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap() + Duration::from_secs(seconds)
    };
    let (later, sooner) = (moment(7200), moment(3600));
    for run_at in [later, sooner] {
        let mut new = job(pipeline::HTML);
        new.run_at = Some(run_at);
        store.enqueue(new).await.unwrap();
    }
    let look = store.look(&[lane::HTML]).await.unwrap();
    assert_eq!((look.due_at, look.ready, look.has_lost), (Some(sooner), vec![], false));
    let skew = look.now.duration_since(Timestamp::now()).abs();
    assert!(skew < jiff::SignedDuration::from_secs(5), "{skew}");
}

async fn a_look_shows_a_lost_worker(store: Store) {
    let (quiet, _busy) = (worker(&store).await, worker(&store).await);
    assert!(!store.look(&[]).await.unwrap().has_lost);
    silence(&store, quiet).await;
    assert_eq!(store.rescue().await.unwrap(), 0, "it held nothing");
    assert!(!store.look(&[]).await.unwrap().has_lost, "a lost worker is looked for once");
}

/// Waits until this, or news that something changed, has come. What else there is to hear is passed over.
async fn woken(wakes: &mut Wakes, wanted: Wake) {
    let heard = async {
        loop {
            let wake = wakes.next().await;
            if wake == wanted || wake == Wake::Changed {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), heard).await.expect("nobody was woken");
}

async fn new_work_and_the_wish_to_stop_wake_whoever_listens(store: Store) {
    let mut wakes = store.wakes();
    let id = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    woken(&mut wakes, Wake::Ready(lane::HTML)).await;
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::HTML, worker).await;
    store.stop(id).await.unwrap();
    woken(&mut wakes, Wake::Stop(id)).await;
    finish(&store, claimed, Ended::Stopped).await;
    store.retry(id).await.unwrap();
    woken(&mut wakes, Wake::Ready(lane::HTML)).await;
}

async fn work_from_another_process_wakes_whoever_listens(database: Database) {
    let mut wakes = database.store.wakes();
    let other = Store::open(config(&database.url)).await.unwrap();
    // Until the first is heard, the listener may not have begun to listen.
    let ask = async || {
        loop {
            other.enqueue(job(pipeline::HTML)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = woken(&mut wakes, Wake::Ready(lane::HTML)) => {}
        () = ask() => unreachable!("it asks for ever"),
    }
    other.enqueue(job(pipeline::XML)).await.unwrap();
    woken(&mut wakes, Wake::Ready(lane::XML)).await;
}

async fn silence_is_counted_from_the_start_of_a_worker(database: Database) {
    let strict = Config { silence_max: Duration::from_millis(1), ..config(&database.url) };
    let strict = Store::open(strict).await.unwrap();
    assert_eq!(strict.silence_max(), Duration::from_millis(1));
    let id = strict.enqueue(job(pipeline::HTML)).await.unwrap().id();
    let silent = worker(&strict).await;
    claim_one(&strict, lane::HTML, silent).await;
    until(async || strict.look(&[]).await.unwrap().has_lost).await;
    // Anyone may rescue, however patient with itself.
    assert_eq!(database.store.rescue().await.unwrap(), 1);
    assert_eq!(record(&strict, id).await.phase, Phase::Ready);
}

async fn the_process_of_an_attempt_is_known_while_the_lease_is_held(mut database: Database) {
    let (worker, mut jobs) = claimed(&database.store, 1).await;
    let claimed = jobs.remove(0);
    let id = claimed.lease.job();
    let store = &database.store;
    assert!(store.process(&claimed.lease, u32::MAX).await.unwrap());
    assert!(!store.process(&Lease::granted(id, 0, worker), 1).await.unwrap());
    let pid = "SELECT coalesce(process_pid, 0) FROM jobs WHERE id = $1";
    assert_eq!(database.sql.number(pid, &[id.0]).await, i64::from(u32::MAX));
    finish(store, claimed, Ended::HandedBack).await;
    assert_eq!(database.sql.number(pid, &[id.0]).await, 0, "that process is nobody's any more");
}
