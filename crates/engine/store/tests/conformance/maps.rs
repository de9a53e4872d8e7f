//! Maps, and the life of a print job as far as its export: every step that is allowed, and the database against
//! everyone who would go another way.

use crate::harness::{
    Database, FEATURES, Sql, claim, claim_one, ending, finish, history, on_both, order_ask, organisation,
    record, spender, worker,
};
use crate::machines::{lane, pipeline, state};
use ode_job::{Ended, ErrorCode, Failure, JobId, JobRecord, Owner, Phase};
use ode_store::sql::Held;
use ode_store::{Enqueued, Error, FrozenMap, ListFilter, PaidOrder, Printing, Prints, Store};
use std::collections::HashSet;
use uuid::Uuid;

on_both!(
    a_map_that_is_kept_can_be_read_changed_and_deleted,
    a_change_to_an_older_version_is_refused,
    a_deleted_map_leaves_what_was_frozen_of_it,
    nobody_sees_anothers_maps,
    a_map_and_its_job_are_made_together,
    a_map_its_job_and_its_order_are_made_together,
    a_map_is_ordered_only_as_a_product_of_its_size,
    a_list_shows_the_title_and_the_paper_of_each_map,
    the_prints_of_maps_are_found_newest_first,
    the_same_request_under_one_key_prints_once,
    ten_requests_at_once_under_one_key_print_once,
    a_frozen_map_is_printed_as_often_as_it_is_asked_for,
    a_reprint_by_the_operator_belongs_to_the_maps_owner,
    the_holder_of_a_job_reads_its_map_and_nobody_else,
    an_export_goes_from_pending_to_complete,
    an_export_that_fails_for_now_is_tried_three_times_more,
    an_export_that_can_never_work_fails_at_once_and_can_be_retried_by_hand,
    an_export_whose_worker_is_lost_is_made_by_another,
    an_export_is_found_by_its_content,
    a_session_that_becomes_a_user_keeps_its_maps,
    maps_without_a_job_are_found,
    a_list_of_maps_goes_on_where_it_ended,
);

on_both!(
    sqlite_file, postgres_database:
    a_frozen_map_cannot_be_changed_removed_or_forged,
    a_kept_map_is_what_it_says,
    no_job_is_past_its_export_without_one,
    a_print_job_names_a_map_of_its_owner,
    a_job_prints_one_map_and_has_one_export,
    the_queries_of_the_workflow_are_answered,
    a_job_that_is_removed_leaves_its_map,
);

fn frozen(title: &str) -> FrozenMap {
    FrozenMap::new(format!(r#"{{"schema":1,"title":{{"text":"{title}"}}}}"#), None)
}

async fn print(store: &Store, owner: Owner) -> Printing {
    store.print_map(owner, &frozen("The World"), None, None).await.unwrap()
}

fn assert_no_map<T: std::fmt::Debug>(answer: Result<T, Error>) {
    assert!(matches!(answer, Err(Error::NoMap(_))), "{answer:?}");
}

async fn a_map_that_is_kept_can_be_read_changed_and_deleted(store: Store) {
    let owner = organisation();
    let made = store.add_user_map(owner, "Our journeys", FEATURES).await.unwrap();
    assert_eq!((made.name.as_str(), made.version), ("Our journeys", 1));
    let read = store.user_map(owner, made.id).await.unwrap();
    let data: serde_json::Value = serde_json::from_str(&read.data.unwrap()).unwrap();
    assert_eq!(data["type"], "FeatureCollection");
    let changed = store.change_user_map(owner, made.id, ("Elsewhere", FEATURES), None).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.version), ("Elsewhere", 2));
    assert!(changed.updated_at >= made.updated_at);
    store.delete_user_map(owner, made.id).await.unwrap();
    assert_no_map(store.user_map(owner, made.id).await);
    assert_no_map(store.delete_user_map(owner, made.id).await);
    assert_eq!(store.user_maps(owner, None, 10).await.unwrap().maps, []);
}

async fn a_change_to_an_older_version_is_refused(store: Store) {
    let owner = organisation();
    let id = store.add_user_map(owner, "Ours", FEATURES).await.unwrap().id;
    store.change_user_map(owner, id, ("First", FEATURES), Some(1)).await.unwrap();
    let late = store.change_user_map(owner, id, ("Second", FEATURES), Some(1)).await;
    assert!(matches!(late, Err(Error::MapChanged(2))), "{late:?}");
    assert_eq!(store.user_map(owner, id).await.unwrap().name, "First");
}

async fn a_deleted_map_leaves_what_was_frozen_of_it(store: Store) {
    let owner = organisation();
    let kept = store.add_user_map(owner, "Ours", FEATURES).await.unwrap();
    let map = FrozenMap::new(r#"{"schema":1}"#.into(), Some((kept.id, kept.version)));
    let printing = store.print_map(owner, &map, None, None).await.unwrap();
    store.delete_user_map(owner, kept.id).await.unwrap();
    assert_no_map(store.user_map(owner, kept.id).await);
    let frozen = store.printable_map(owner, printing.map).await.unwrap();
    assert_eq!(frozen.made_of, Some((kept.id, 1)));
    assert_eq!(frozen.data.as_deref(), Some(r#"{"schema":1}"#));
}

async fn nobody_sees_anothers_maps(store: Store) {
    let others = [organisation(), Owner::User(Uuid::new_v4()), Owner::Session(Uuid::new_v4())];
    for ours in [organisation(), Owner::User(Uuid::new_v4()), Owner::Session(Uuid::new_v4())] {
        let kept = store.add_user_map(ours, "Ours", FEATURES).await.unwrap().id;
        let frozen = print(&store, ours).await.map;
        for theirs in others {
            assert_no_map(store.user_map(theirs, kept).await);
            assert_no_map(store.change_user_map(theirs, kept, ("Mine", FEATURES), None).await);
            assert_no_map(store.delete_user_map(theirs, kept).await);
            assert_no_map(store.printable_map(theirs, frozen).await);
            assert_no_map(store.reprint(theirs, frozen, None).await);
            assert_eq!(store.user_maps(theirs, None, 10).await.unwrap().maps, []);
            assert_eq!(store.printable_maps(theirs, None, 10).await.unwrap().maps, []);
        }
        assert_eq!(store.user_map(ours, kept).await.unwrap().name, "Ours");
        store.printable_map(Owner::Operator, frozen).await.unwrap();
    }
}

async fn a_map_and_its_job_are_made_together(store: Store) {
    let owner = organisation();
    let Printing { map, job, is_known } = print(&store, owner).await;
    assert!(!is_known);
    let record = record(&store, job).await;
    assert_eq!(record.state, state::PENDING_EXPORT);
    assert_eq!(record.input["printable_map_id"], map.to_string());
    assert_eq!(store.printable_map(owner, map).await.unwrap().owner, owner);
    // Neither without the other: what the database refuses of one leaves nothing of both.
    let bad = FrozenMap::new(r#"{"schema":2}"#.into(), None);
    assert!(store.print_map(owner, &bad, None, None).await.is_err());
    assert_eq!(store.printable_maps(owner, None, 10).await.unwrap().maps.len(), 1);
    assert_eq!(store.jobs(&ListFilter { limit: 10, ..ListFilter::default() }).await.unwrap().jobs.len(), 1);
}

async fn a_map_is_ordered_only_as_a_product_of_its_size(store: Store) {
    let (payer, ask) = (spender(&store).await, order_ask());
    let owner = Owner::Organisation(payer);
    let map = |size: &str| FrozenMap::new(format!(r#"{{"page":{{"size":"{size}"}},"schema":1}}"#), None);
    let wrong = store.print_map(owner, &map("24x36"), None, None).await.unwrap().job;
    for refused in
        [store.ask_order(wrong, payer, &ask).await.err(), store.check_order(wrong, payer, &ask).await.err()]
    {
        let told = refused.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(
            told.contains("made for 24 x 36 in, and variant 1 is printed from 18 x 24 in"),
            "{refused:?}"
        );
    }
    assert_eq!(store.order_of(wrong).await.unwrap(), None);
    let order = || Some(PaidOrder { organisation: payer, ask: ask.clone() });
    assert!(store.print_map(owner, &map("A2"), None, order()).await.is_err());
    assert!(store.check_print(owner, &map("A2"), None, order()).await.is_err());
    assert_eq!(store.check_print(owner, &map("18x24"), None, order()).await.unwrap(), None);
    let poor = PaidOrder { organisation: Uuid::new_v4(), ask: ask.clone() };
    let refused = store.check_print(owner, &map("18x24"), None, Some(poor)).await;
    assert!(matches!(refused, Err(Error::SpendCap(_))), "{refused:?}");
    assert_eq!(store.printable_maps(owner, None, 10).await.unwrap().maps.len(), 1);
    store.print_map(owner, &map("18x24"), None, order()).await.unwrap();
}

async fn a_map_its_job_and_its_order_are_made_together(store: Store) {
    let (payer, ask) = (spender(&store).await, order_ask());
    let owner = Owner::Organisation(payer);
    let key = || Some("once".to_owned());
    let order = |organisation| Some(PaidOrder { organisation, ask: ask.clone() });
    // Whoever may not order it has not printed it either.
    let refused = store.print_map(owner, &frozen("The World"), key(), order(Uuid::new_v4())).await;
    assert!(matches!(refused, Err(Error::SpendCap(_))), "{refused:?}");
    assert_eq!(store.printable_maps(owner, None, 10).await.unwrap().maps, []);
    let print = async || store.print_map(owner, &frozen("The World"), key(), order(payer)).await.unwrap();
    let first = print().await;
    assert_eq!(print().await, Printing { is_known: true, ..first });
    let other = store.print_map(owner, &frozen("The World"), key(), None).await;
    assert!(matches!(other, Err(Error::KeyReused)), "{other:?}");
    assert_eq!(store.order_of(first.job).await.unwrap().unwrap().organisation_id, payer);
    attempt(&store, first.job, Ended::Succeeded).await;
    let worker = worker(&store).await;
    assert_eq!(claim_one(&store, lane::PRINT_ORDER, worker).await.lease.job(), first.job);
}

async fn a_list_shows_the_title_and_the_paper_of_each_map(store: Store) {
    let owner = organisation();
    for spec in [
        r#"{"page":{"size":"A3"},"schema":1,"title":{"text":"The World"}}"#,
        r#"{"page":{"size":{"height_mm":100,"width_mm":80}},"schema":1}"#,
    ] {
        store.print_map(owner, &FrozenMap::new(spec.into(), None), None, None).await.unwrap();
    }
    let maps = store.printable_maps(owner, None, 10).await.unwrap().maps;
    assert_eq!((maps[0].title.as_deref(), maps[1].title.as_deref()), (None, Some("The World")));
    let sizes = maps.iter().map(|map| map.page_size.as_deref().unwrap()).collect::<Vec<_>>();
    assert_eq!(sizes, [r#"{"height_mm":100,"width_mm":80}"#, "A3"]);
}

async fn the_prints_of_maps_are_found_newest_first(store: Store) {
    let owner = organisation();
    let (first, second) = (print(&store, owner).await, print(&store, owner).await);
    let again = store.reprint(owner, first.map, None).await.unwrap().id();
    let of = |jobs: &[JobId], count| Some(Prints { jobs: jobs.to_vec(), count });
    let mut prints = store.prints_of(&[first.map, second.map], 5).await.unwrap();
    assert_eq!(prints.remove(&first.map), of(&[again, first.job], 2));
    assert_eq!(prints.remove(&second.map), of(&[second.job], 1));
    let newest = store.prints_of(&[first.map], 1).await.unwrap().remove(&first.map);
    assert_eq!(newest, of(&[again], 2));
    assert_eq!(store.prints_of(&[], 5).await.unwrap().len(), 0);
}

async fn the_same_request_under_one_key_prints_once(store: Store) {
    let owner = organisation();
    let ask =
        async |title: &str, key: &str| store.print_map(owner, &frozen(title), Some(key.into()), None).await;
    let first = ask("The World", "a").await.unwrap();
    assert_eq!(ask("The World", "a").await.unwrap(), Printing { is_known: true, ..first });
    assert!(matches!(ask("Europe", "a").await, Err(Error::KeyReused)));
    assert_ne!(ask("The World", "b").await.unwrap().job, first.job);
    assert_eq!(store.printable_maps(owner, None, 10).await.unwrap().maps.len(), 2);
}

async fn ten_requests_at_once_under_one_key_print_once(store: Store) {
    let owner = organisation();
    let ask = || {
        let store = store.clone();
        tokio::spawn(
            async move { store.print_map(owner, &frozen("One"), Some("k".into()), None).await.unwrap() },
        )
    };
    let asked: Vec<_> = (0..10).map(|_| ask()).collect();
    let mut made = HashSet::new();
    for printing in asked {
        let printing = printing.await.unwrap();
        made.insert((printing.map, printing.job));
    }
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(store.printable_maps(owner, None, 10).await.unwrap().maps.len(), 1);
}

async fn a_frozen_map_is_printed_as_often_as_it_is_asked_for(store: Store) {
    let owner = organisation();
    let first = print(&store, owner).await;
    let mut jobs = HashSet::from([first.job]);
    for _ in 0..3 {
        jobs.insert(store.reprint(owner, first.map, None).await.unwrap().id());
    }
    assert_eq!(jobs.len(), 4);
    let again = || store.reprint(owner, first.map, Some("once".into()));
    let once = again().await.unwrap();
    assert_eq!(again().await.unwrap(), Enqueued::Existing(once.id()));
}

async fn a_reprint_by_the_operator_belongs_to_the_maps_owner(store: Store) {
    for owner in
        [organisation(), Owner::User(Uuid::new_v4()), Owner::Session(Uuid::new_v4()), Owner::Operator]
    {
        let map = print(&store, owner).await.map;
        let job = store.reprint(Owner::Operator, map, None).await.unwrap().id();
        store.job_of(owner, ode_job::JobRef::Id(job)).await.unwrap();
    }
}

async fn the_holder_of_a_job_reads_its_map_and_nobody_else(store: Store) {
    print(&store, organisation()).await;
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::PRINT_EXPORT, worker).await;
    let map = Held::new(&store, &claimed.lease).printable_map().await.unwrap();
    assert_eq!(map.as_deref(), Some(r#"{"schema":1,"title":{"text":"The World"}}"#));
    let job = claimed.lease.job();
    let stale = ode_job::Lease::granted(job, claimed.lease.fence() + 1, worker);
    assert_eq!(Held::new(&store, &stale).printable_map().await.unwrap(), None);
    let other = ode_job::Lease::granted(job, claimed.lease.fence(), crate::harness::worker(&store).await);
    assert_eq!(Held::new(&store, &other).printable_map().await.unwrap(), None);
}

async fn an_export_goes_from_pending_to_complete(store: Store) {
    let job = print(&store, organisation()).await.job;
    assert_eq!(record(&store, job).await.state, state::PENDING_EXPORT);
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::PRINT_EXPORT, worker).await;
    assert_eq!(record(&store, job).await.state, state::EXPORTING);
    assert_eq!(store.exports(&[job]).await.unwrap().len(), 0);
    finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(record(&store, job).await.state, state::EXPORT_COMPLETE);
    assert_eq!(store.exports(&[job]).await.unwrap()[&job].content_type, "image/png");
    assert_eq!(history(&store, job).await, ["created", "processing", "complete"]);
    assert!(claim(&store, lane::PRINT_ORDER, worker, 1).await.is_empty(), "nobody asked for an order");
}

fn passing() -> Ended {
    Ended::Failed(Failure::retryable(ErrorCode::IoError, "The disk was away"))
}

/// One attempt, as soon as its time has come.
async fn attempt(store: &Store, job: JobId, ended: Ended) {
    let lane = lane::PRINT_EXPORT;
    let worker = worker(store).await;
    let claimed = claim_one(store, lane, worker).await;
    assert_eq!(claimed.lease.job(), job);
    let retry = ode_job::RetryPolicy { base: std::time::Duration::ZERO, ..Default::default() };
    let end = ode_store::Finish { retry, ..ending(claimed, ended) };
    store.finish(vec![end]).await.unwrap();
    // The next try may be due some microseconds from now: SQLite's clock goes in milliseconds.
    let is_waiting = |job: JobRecord| (job.state, job.phase) == (state::PENDING_EXPORT, Phase::Held);
    while is_waiting(record(store, job).await) {
        store.promote_due().await.unwrap();
    }
}

async fn an_export_that_fails_for_now_is_tried_three_times_more(store: Store) {
    let job = print(&store, organisation()).await.job;
    for tries in 1..=3 {
        attempt(&store, job, passing()).await;
        let record = record(&store, job).await;
        assert_eq!((record.state, record.retry_count), (state::PENDING_EXPORT, tries));
    }
    attempt(&store, job, passing()).await;
    let failed = record(&store, job).await;
    assert_eq!((failed.state, failed.error_code.as_deref()), (state::EXPORT_FAILED, Some("IO_ERROR")));
    assert_eq!(failed.attempt_count, 4);
}

async fn an_export_that_can_never_work_fails_at_once_and_can_be_retried_by_hand(store: Store) {
    let job = print(&store, organisation()).await.job;
    attempt(&store, job, Ended::Failed(Failure::rejected(ErrorCode::Invalid, "Not a map"))).await;
    assert_eq!(record(&store, job).await.state, state::EXPORT_FAILED);
    assert_eq!(store.retry(job).await.unwrap(), state::PENDING_EXPORT);
    attempt(&store, job, Ended::Succeeded).await;
    assert_eq!(record(&store, job).await.state, state::EXPORT_COMPLETE);
    let words = ["created", "processing", "failed", "retry", "processing", "complete"];
    assert_eq!(history(&store, job).await, words);
}

async fn an_export_whose_worker_is_lost_is_made_by_another(store: Store) {
    let job = print(&store, organisation()).await.job;
    let lost = worker(&store).await;
    let zombie = claim_one(&store, lane::PRINT_EXPORT, lost).await;
    crate::harness::silence(&store, lost).await;
    assert_eq!(store.rescue().await.unwrap(), 1);
    attempt(&store, job, Ended::Succeeded).await;
    let kept = store.exports(&[job]).await.unwrap()[&job].path.clone();
    // The one that was given up wakes and publishes its picture, too.
    assert_eq!(finish(&store, zombie, Ended::Succeeded).await, ode_store::Finished::LeaseLost);
    assert_eq!(store.exports(&[job]).await.unwrap()[&job].path, kept);
    assert_eq!(record(&store, job).await.state, state::EXPORT_COMPLETE);
}

async fn an_export_is_found_by_its_content(store: Store) {
    let job = print(&store, organisation()).await.job;
    assert_eq!(store.export(&"0".repeat(64)).await.unwrap(), None);
    attempt(&store, job, Ended::Succeeded).await;
    let found = store.export(&"0".repeat(64)).await.unwrap().unwrap();
    assert_eq!((found.role.as_str(), found.content_type.as_str()), ("export", "image/png"));
}

async fn a_session_that_becomes_a_user_keeps_its_maps(store: Store) {
    let (session, user) = (Uuid::new_v4(), Uuid::new_v4());
    let kept = store.add_user_map(Owner::Session(session), "Ours", FEATURES).await.unwrap().id;
    let printing = print(&store, Owner::Session(session)).await;
    store.adopt(session, user).await.unwrap();
    for owner in [Owner::Session(session), Owner::User(user)] {
        store.user_map(owner, kept).await.unwrap();
        store.printable_map(owner, printing.map).await.unwrap();
        store.reprint(owner, printing.map, None).await.unwrap();
    }
    store.adopt(session, Uuid::new_v4()).await.unwrap();
    store.printable_map(Owner::User(user), printing.map).await.unwrap();
}

async fn maps_without_a_job_are_found(store: Store) {
    print(&store, organisation()).await;
    assert_eq!(store.unprinted_maps(Uuid::nil(), 10).await.unwrap(), []);
}

async fn a_list_of_maps_goes_on_where_it_ended(store: Store) {
    let owner = organisation();
    for _ in 0..5 {
        print(&store, owner).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let part = store.printable_maps(owner, cursor, 2).await.unwrap();
        seen.extend(part.maps.iter().map(|map| map.id));
        cursor = part.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|newer, older| newer > older), "{seen:?}");
}

/// Tries each statement, and expects a refusal that says what it breaks.
async fn check_refused(sql: &mut Sql, id: Uuid, cases: &[(&str, &str)]) {
    for (statement, broken) in cases {
        let refusal = match sql.run(statement, &[id]).await {
            Ok(changed) => panic!("accepted, {changed} rows: {statement}"),
            Err(refusal) => refusal,
        };
        assert!(refusal.contains(broken), "{statement}\nwas refused for another reason: {refusal}");
    }
}

async fn a_frozen_map_cannot_be_changed_removed_or_forged(mut database: Database) {
    let owner = organisation();
    let map = print(&database.store, owner).await.map;
    let before = database.store.printable_map(owner, map).await.unwrap();
    let frozen = "printable_maps is frozen";
    let changes = [
        ("UPDATE printable_maps SET data = '{\"schema\":1}' WHERE id = $1", frozen),
        ("UPDATE printable_maps SET sha256 = 'x' WHERE id = $1", frozen),
        ("UPDATE printable_maps SET id = id, created_at = {now} WHERE id = $1", frozen),
        ("UPDATE printable_maps SET organisation_id = NULL WHERE id = $1", frozen),
        ("UPDATE printable_maps SET session_id = id, organisation_id = NULL WHERE id = $1", frozen),
        ("UPDATE printable_maps SET user_map_version = 1 WHERE id = $1", frozen),
        ("DELETE FROM printable_maps WHERE id = $1", "printable_maps is append-only"),
        (
            "INSERT INTO printable_maps (id, data, sha256) SELECT id, '{\"schema\":2}', sha256 FROM printable_maps WHERE id = $1",
            if matches!(database.sql, Sql::Sqlite(_)) { frozen } else { "printable_maps_" },
        ),
    ];
    check_refused(&mut database.sql, map, &changes).await;
    if let Sql::Sqlite(_) = database.sql {
        let replace = "REPLACE INTO printable_maps (id, data, sha256) SELECT id, '{\"schema\":1}', sha256 FROM printable_maps WHERE id = $1";
        check_refused(&mut database.sql, map, &[(replace, frozen)]).await;
    } else {
        let forged =
            "INSERT INTO printable_maps (id, data, sha256) VALUES ($1, '{\"schema\":1}', repeat('0', 64))";
        check_refused(&mut database.sql, Uuid::now_v7(), &[(forged, "printable_maps_digest")]).await;
        check_refused(&mut database.sql, map, &[("TRUNCATE printable_maps CASCADE", "append-only")]).await;
    }
    assert_eq!(database.store.printable_map(owner, map).await.unwrap(), before);
}

async fn a_kept_map_is_what_it_says(mut database: Database) {
    let id = database.store.add_user_map(organisation(), "Ours", FEATURES).await.unwrap().id;
    let features = "user_maps_features";
    let cases = [
        ("UPDATE user_maps SET data = '{}' WHERE id = $1", features),
        ("UPDATE user_maps SET data = '[]' WHERE id = $1", features),
        (
            "UPDATE user_maps SET data = '{\"type\":\"FeatureCollection\",\"features\":{}}' WHERE id = $1",
            features,
        ),
        ("UPDATE user_maps SET data = NULL WHERE id = $1", "user_maps_deleted"),
        ("UPDATE user_maps SET deleted_at = {now} WHERE id = $1", "user_maps_deleted"),
        ("UPDATE user_maps SET session_id = id WHERE id = $1", "user_maps_one_owner"),
        ("UPDATE user_maps SET name = '' WHERE id = $1", "name"),
        ("UPDATE user_maps SET version = 0 WHERE id = $1", "version"),
    ];
    check_refused(&mut database.sql, id, &cases).await;
}

async fn no_job_is_past_its_export_without_one(mut database: Database) {
    let job = print(&database.store, organisation()).await.job;
    let rule = "job_live_exported";
    let jumps = [
        ("UPDATE job_live SET state = 'export_complete', lane = NULL WHERE id = $1", rule),
        // It has no order either, and SQLite may say that first.
        ("UPDATE job_live SET state = 'ordered', lane = NULL WHERE id = $1", "print job"),
        (
            "UPDATE job_live SET state = 'ordering', lane = 'print.order', worker = id, lease_until = {now}, started_at = {now} WHERE id = $1",
            rule,
        ),
        ("UPDATE job_live SET state = 'exported', lane = NULL WHERE id = $1", "job_live_state_of_pipeline"),
        ("UPDATE job_live SET state = 'exporting' WHERE id = $1", "job_live_running_is_leased"),
    ];
    check_refused(&mut database.sql, job.0, &jumps).await;
    // A worker that says it is done, with nothing to show for it, has failed.
    let worker = worker(&database.store).await;
    let claimed = claim_one(&database.store, lane::PRINT_EXPORT, worker).await;
    let end = ode_store::Finish { artifacts: Vec::new(), ..ending(claimed, Ended::Succeeded) };
    database.store.finish(vec![end]).await.unwrap();
    assert_eq!(record(&database.store, job).await.state, state::EXPORT_FAILED);
}

async fn a_print_job_names_a_map_of_its_owner(mut database: Database) {
    let store = &database.store;
    let (ours, theirs) = (organisation(), organisation());
    let map = print(store, theirs).await.map;
    let mut job =
        ode_job::NewJob::new(pipeline::PRINT, "map", serde_json::json!({ "printable_map_id": map }));
    for named in [map.to_string(), Uuid::new_v4().to_string(), "no id".into(), String::new()] {
        job.input = serde_json::json!({ "printable_map_id": named });
        for owner in [ours, Owner::Operator, Owner::Session(Uuid::new_v4())] {
            let refused = store.enqueue(job.clone().owned_by(owner)).await;
            assert!(refused.is_err(), "{named} for {owner:?}: {refused:?}");
        }
    }
    job.input = serde_json::json!({ "printable_map_id": map });
    let id = store.enqueue(job.owned_by(theirs)).await.unwrap().id();
    let linked = "SELECT count(*) FROM map_print WHERE job_id = $1 AND printable_map_id = $2";
    assert_eq!(database.sql.number(linked, &[id.0, map]).await, 1);
}

async fn a_job_prints_one_map_and_has_one_export(mut database: Database) {
    let owner = organisation();
    let first = print(&database.store, owner).await;
    let second = print(&database.store, owner).await;
    let swap = "UPDATE map_print SET printable_map_id = $2 WHERE job_id = $1";
    let refusal = database.sql.run(swap, &[first.job.0, second.map]).await.unwrap_err();
    assert!(refusal.contains("append-only"), "{refusal}");
    let refusal =
        database.sql.run("DELETE FROM map_print WHERE job_id = $1", &[first.job.0]).await.unwrap_err();
    assert!(refusal.contains("append-only"), "{refusal}");
    let add = "INSERT INTO map_print (job_id, printable_map_id) VALUES ($1, $2)";
    database.sql.run(add, &[first.job.0, second.map]).await.unwrap_err();
    let nobody = database.sql.run(add, &[Uuid::new_v4(), second.map]).await.unwrap_err();
    assert!(nobody.contains("does not exist"), "{nobody}");
    attempt(&database.store, first.job, Ended::Succeeded).await;
    let twice =
        "INSERT INTO job_artifact (id, job_id, role, name, storage, path, content_type, bytes, sha256)
        SELECT $2, job_id, role, 'other.png', storage, 'elsewhere', content_type, bytes, sha256
        FROM job_artifact WHERE job_id = $1";
    let refusal = database.sql.run(twice, &[first.job.0, Uuid::new_v4()]).await.unwrap_err();
    assert!(refusal.to_lowercase().contains("unique"), "{refusal}");
    if let Sql::Sqlite(_) = database.sql {
        // What replaces a row deletes it, and asks no trigger about that.
        for (replaced, with) in [(add, second.map), (twice, Uuid::new_v4())] {
            let replace = replaced.replacen("INSERT", "REPLACE", 1);
            database.sql.run(&replace, &[first.job.0, with]).await.unwrap_err();
        }
    }
}

async fn the_queries_of_the_workflow_are_answered(mut database: Database) {
    let owner = organisation();
    let first = print(&database.store, owner).await;
    let waiting = "SELECT count(*) FROM print_jobs pj JOIN printable_maps pm ON pj.printable_map_id = pm.id
        WHERE pj.state = 'pending_export' AND pj.id = $1 AND pm.id = $2";
    assert_eq!(database.sql.number(waiting, &[first.job.0, first.map]).await, 1);
    attempt(&database.store, first.job, Ended::Succeeded).await;
    let ready = "SELECT count(*) FROM print_jobs pj JOIN printable_maps pm ON pj.printable_map_id = pm.id
        WHERE pj.state = 'export_complete' AND pj.export_file_path IS NOT NULL AND pj.export_started_at IS NOT NULL
            AND pj.export_completed_at >= pj.export_started_at AND pj.id = $1";
    assert_eq!(database.sql.number(ready, &[first.job.0]).await, 1);
    let told = "SELECT count(*) FROM print_job_events WHERE print_job_id = $1 AND from_state = 'exporting'
        AND to_state = 'export_complete'";
    assert_eq!(database.sql.number(told, &[first.job.0]).await, 1);
    let second = print(&database.store, owner).await;
    attempt(&database.store, second.job, Ended::Failed(Failure::rejected(ErrorCode::Invalid, "Not a map")))
        .await;
    let failed = "SELECT count(*) FROM print_jobs WHERE id = $1 AND state = 'export_failed' AND export_error = 'Not a map'";
    assert_eq!(database.sql.number(failed, &[second.job.0]).await, 1);
}

async fn a_job_that_is_removed_leaves_its_map(mut database: Database) {
    let owner = organisation();
    let printing = print(&database.store, owner).await;
    attempt(&database.store, printing.job, Ended::Failed(Failure::rejected(ErrorCode::Invalid, "Not a map")))
        .await;
    let files = tempfile::tempdir().unwrap();
    let blobs = ode_store::Blobs::open(&ode_store::BlobsConfig::Local(files.path().to_owned())).unwrap();
    database.store.delete_job(printing.job, &blobs).await.unwrap();
    assert_eq!(
        database.sql.number("SELECT count(*) FROM map_print WHERE job_id = $1", &[printing.job.0]).await,
        0
    );
    let left = database.store.unprinted_maps(Uuid::nil(), 10).await.unwrap();
    assert_eq!(left.iter().map(|map| map.id).collect::<Vec<_>>(), [printing.map]);
}
