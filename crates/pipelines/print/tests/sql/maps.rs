//! Maps, and the life of a print job as far as its export: every step that is allowed, and the database against
//! everyone who would go another way.

use crate::harness::{FEATURES, check_refused, ending, finish, order_ask, spender};
use ode_job::{Ended, ErrorCode, Failure, JobId, JobRecord, Owner, Phase};
use ode_print::machine::{EXPORT, EXPORT_COMPLETE, EXPORT_FAILED, EXPORTING, ORDER, PENDING_EXPORT, PRINT};
use ode_print::sql::{self, FrozenMap, MapError, PaidOrder, Printing, Prints, held_map};
use ode_store::sql::Held;
use ode_store::trial::{Database, Outside, claim, claim_one, history, organisation, record, silence, worker};
use ode_store::{Enqueued, Error, ListFilter, Store, on_both};
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
    sql::print_map(store, owner, &frozen("The World"), None, None).await.unwrap()
}

fn assert_no_map<T: std::fmt::Debug>(answer: Result<T, MapError>) {
    assert!(matches!(answer, Err(MapError::Missing(_))), "{answer:?}");
}

async fn a_map_that_is_kept_can_be_read_changed_and_deleted(store: Store) {
    let owner = organisation();
    let made = sql::add_user_map(store.sql(), owner, "Our journeys", FEATURES).await.unwrap();
    assert_eq!((made.name.as_str(), made.version), ("Our journeys", 1));
    let read = sql::user_map(store.sql(), owner, made.id).await.unwrap();
    let data: serde_json::Value = serde_json::from_str(&read.data.unwrap()).unwrap();
    assert_eq!(data["type"], "FeatureCollection");
    let changed =
        sql::change_user_map(store.sql(), owner, made.id, ("Elsewhere", FEATURES), None).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.version), ("Elsewhere", 2));
    assert!(changed.updated_at >= made.updated_at);
    sql::delete_user_map(store.sql(), owner, made.id).await.unwrap();
    assert_no_map(sql::user_map(store.sql(), owner, made.id).await);
    assert_no_map(sql::delete_user_map(store.sql(), owner, made.id).await);
    assert_eq!(sql::user_maps(store.sql(), owner, None, 10).await.unwrap().maps, []);
}

async fn a_change_to_an_older_version_is_refused(store: Store) {
    let owner = organisation();
    let id = sql::add_user_map(store.sql(), owner, "Ours", FEATURES).await.unwrap().id;
    sql::change_user_map(store.sql(), owner, id, ("First", FEATURES), Some(1)).await.unwrap();
    let late = sql::change_user_map(store.sql(), owner, id, ("Second", FEATURES), Some(1)).await;
    assert!(matches!(late, Err(MapError::Changed(2))), "{late:?}");
    assert_eq!(sql::user_map(store.sql(), owner, id).await.unwrap().name, "First");
}

async fn a_deleted_map_leaves_what_was_frozen_of_it(store: Store) {
    let owner = organisation();
    let kept = sql::add_user_map(store.sql(), owner, "Ours", FEATURES).await.unwrap();
    let map = FrozenMap::new(r#"{"schema":1}"#.into(), Some((kept.id, kept.version)));
    let printing = sql::print_map(&store, owner, &map, None, None).await.unwrap();
    sql::delete_user_map(store.sql(), owner, kept.id).await.unwrap();
    assert_no_map(sql::user_map(store.sql(), owner, kept.id).await);
    let frozen = sql::printable_map(store.sql(), owner, printing.map).await.unwrap();
    assert_eq!(frozen.made_of, Some((kept.id, 1)));
    assert_eq!(frozen.data.as_deref(), Some(r#"{"schema":1}"#));
}

async fn nobody_sees_anothers_maps(store: Store) {
    let others = [organisation(), Owner::User(Uuid::new_v4()), Owner::Session(Uuid::new_v4())];
    for ours in [organisation(), Owner::User(Uuid::new_v4()), Owner::Session(Uuid::new_v4())] {
        let kept = sql::add_user_map(store.sql(), ours, "Ours", FEATURES).await.unwrap().id;
        let frozen = print(&store, ours).await.map;
        for theirs in others {
            assert_no_map(sql::user_map(store.sql(), theirs, kept).await);
            assert_no_map(sql::change_user_map(store.sql(), theirs, kept, ("Mine", FEATURES), None).await);
            assert_no_map(sql::delete_user_map(store.sql(), theirs, kept).await);
            assert_no_map(sql::printable_map(store.sql(), theirs, frozen).await);
            assert_no_map(sql::reprint(&store, theirs, frozen, None).await);
            assert_eq!(sql::user_maps(store.sql(), theirs, None, 10).await.unwrap().maps, []);
            assert_eq!(sql::printable_maps(store.sql(), theirs, None, 10).await.unwrap().maps, []);
        }
        assert_eq!(sql::user_map(store.sql(), ours, kept).await.unwrap().name, "Ours");
        sql::printable_map(store.sql(), Owner::Operator, frozen).await.unwrap();
    }
}

async fn a_map_and_its_job_are_made_together(store: Store) {
    let owner = organisation();
    let Printing { map, job, is_known } = print(&store, owner).await;
    assert!(!is_known);
    let record = record(&store, job).await;
    assert_eq!(record.state, PENDING_EXPORT);
    assert_eq!(record.input["printable_map_id"], map.to_string());
    assert_eq!(sql::printable_map(store.sql(), owner, map).await.unwrap().owner, owner);
    // Neither without the other: what the database refuses of one leaves nothing of both.
    let bad = FrozenMap::new(r#"{"schema":2}"#.into(), None);
    assert!(sql::print_map(&store, owner, &bad, None, None).await.is_err());
    assert_eq!(sql::printable_maps(store.sql(), owner, None, 10).await.unwrap().maps.len(), 1);
    assert_eq!(store.jobs(&ListFilter { limit: 10, ..ListFilter::default() }).await.unwrap().jobs.len(), 1);
}

async fn a_map_is_ordered_only_as_a_product_of_its_size(store: Store) {
    let (payer, ask) = (spender(&store).await, order_ask());
    let owner = Owner::Organisation(payer);
    let map = |size: &str| FrozenMap::new(format!(r#"{{"page":{{"size":"{size}"}},"schema":1}}"#), None);
    let wrong = sql::print_map(&store, owner, &map("24x36"), None, None).await.unwrap().job;
    for refused in [
        sql::ask_order(&store, wrong, payer, &ask).await.err(),
        sql::check_order(store.sql(), wrong, payer, &ask).await.err(),
    ] {
        let told = refused.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(
            told.contains("made for 24 x 36 in, and variant 1 is printed from 18 x 24 in"),
            "{refused:?}"
        );
    }
    assert_eq!(sql::order_of(store.sql(), wrong).await.unwrap(), None);
    let order = || Some(PaidOrder { organisation: payer, ask: ask.clone() });
    assert!(sql::print_map(&store, owner, &map("A2"), None, order()).await.is_err());
    assert!(sql::check_print(&store, owner, &map("A2"), None, order()).await.is_err());
    assert_eq!(sql::check_print(&store, owner, &map("18x24"), None, order()).await.unwrap(), None);
    let poor = PaidOrder { organisation: Uuid::new_v4(), ask: ask.clone() };
    let refused = sql::check_print(&store, owner, &map("18x24"), None, Some(poor)).await;
    assert!(matches!(refused, Err(Error::Declined { code: ErrorCode::SpendCap, .. })), "{refused:?}");
    assert_eq!(sql::printable_maps(store.sql(), owner, None, 10).await.unwrap().maps.len(), 1);
    sql::print_map(&store, owner, &map("18x24"), None, order()).await.unwrap();
}

async fn a_map_its_job_and_its_order_are_made_together(store: Store) {
    let (payer, ask) = (spender(&store).await, order_ask());
    let owner = Owner::Organisation(payer);
    let key = || Some("once".to_owned());
    let order = |organisation| Some(PaidOrder { organisation, ask: ask.clone() });
    // Whoever may not order it has not printed it either.
    let refused = sql::print_map(&store, owner, &frozen("The World"), key(), order(Uuid::new_v4())).await;
    assert!(matches!(refused, Err(Error::Declined { code: ErrorCode::SpendCap, .. })), "{refused:?}");
    assert_eq!(sql::printable_maps(store.sql(), owner, None, 10).await.unwrap().maps, []);
    let print =
        async || sql::print_map(&store, owner, &frozen("The World"), key(), order(payer)).await.unwrap();
    let first = print().await;
    assert_eq!(print().await, Printing { is_known: true, ..first });
    let other = sql::print_map(&store, owner, &frozen("The World"), key(), None).await;
    assert!(matches!(other, Err(Error::KeyReused)), "{other:?}");
    assert_eq!(sql::order_of(store.sql(), first.job).await.unwrap().unwrap().organisation_id, payer);
    attempt(&store, first.job, Ended::Succeeded).await;
    let worker = worker(&store).await;
    assert_eq!(claim_one(&store, ORDER, worker).await.lease.job(), first.job);
}

async fn a_list_shows_the_title_and_the_paper_of_each_map(store: Store) {
    let owner = organisation();
    for spec in [
        r#"{"page":{"size":"A3"},"schema":1,"title":{"text":"The World"}}"#,
        r#"{"page":{"size":{"height_mm":100,"width_mm":80}},"schema":1}"#,
    ] {
        sql::print_map(&store, owner, &FrozenMap::new(spec.into(), None), None, None).await.unwrap();
    }
    let maps = sql::printable_maps(store.sql(), owner, None, 10).await.unwrap().maps;
    assert_eq!((maps[0].title.as_deref(), maps[1].title.as_deref()), (None, Some("The World")));
    let sizes = maps.iter().map(|map| map.page_size.as_deref().unwrap()).collect::<Vec<_>>();
    assert_eq!(sizes, [r#"{"height_mm":100,"width_mm":80}"#, "A3"]);
}

async fn the_prints_of_maps_are_found_newest_first(store: Store) {
    let owner = organisation();
    let (first, second) = (print(&store, owner).await, print(&store, owner).await);
    let again = sql::reprint(&store, owner, first.map, None).await.unwrap().id();
    let of = |jobs: &[JobId], count| Some(Prints { jobs: jobs.to_vec(), count });
    let mut prints = sql::prints_of(store.sql(), &[first.map, second.map], 5).await.unwrap();
    assert_eq!(prints.remove(&first.map), of(&[again, first.job], 2));
    assert_eq!(prints.remove(&second.map), of(&[second.job], 1));
    let newest = sql::prints_of(store.sql(), &[first.map], 1).await.unwrap().remove(&first.map);
    assert_eq!(newest, of(&[again], 2));
    assert_eq!(sql::prints_of(store.sql(), &[], 5).await.unwrap().len(), 0);
}

async fn the_same_request_under_one_key_prints_once(store: Store) {
    let owner = organisation();
    let ask = async |title: &str, key: &str| {
        sql::print_map(&store, owner, &frozen(title), Some(key.into()), None).await
    };
    let first = ask("The World", "a").await.unwrap();
    assert_eq!(ask("The World", "a").await.unwrap(), Printing { is_known: true, ..first });
    assert!(matches!(ask("Europe", "a").await, Err(Error::KeyReused)));
    assert_ne!(ask("The World", "b").await.unwrap().job, first.job);
    assert_eq!(sql::printable_maps(store.sql(), owner, None, 10).await.unwrap().maps.len(), 2);
}

async fn ten_requests_at_once_under_one_key_print_once(store: Store) {
    let owner = organisation();
    let ask = || {
        let store = store.clone();
        tokio::spawn(async move {
            sql::print_map(&store, owner, &frozen("One"), Some("k".into()), None).await.unwrap()
        })
    };
    let asked: Vec<_> = (0..10).map(|_| ask()).collect();
    let mut made = HashSet::new();
    for printing in asked {
        let printing = printing.await.unwrap();
        made.insert((printing.map, printing.job));
    }
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(sql::printable_maps(store.sql(), owner, None, 10).await.unwrap().maps.len(), 1);
}

async fn a_frozen_map_is_printed_as_often_as_it_is_asked_for(store: Store) {
    let owner = organisation();
    let first = print(&store, owner).await;
    let mut jobs = HashSet::from([first.job]);
    for _ in 0..3 {
        jobs.insert(sql::reprint(&store, owner, first.map, None).await.unwrap().id());
    }
    assert_eq!(jobs.len(), 4);
    let again = || sql::reprint(&store, owner, first.map, Some("once".into()));
    let once = again().await.unwrap();
    assert_eq!(again().await.unwrap(), Enqueued::Existing(once.id()));
}

async fn a_reprint_by_the_operator_belongs_to_the_maps_owner(store: Store) {
    for owner in
        [organisation(), Owner::User(Uuid::new_v4()), Owner::Session(Uuid::new_v4()), Owner::Operator]
    {
        let map = print(&store, owner).await.map;
        let job = sql::reprint(&store, Owner::Operator, map, None).await.unwrap().id();
        store.job_of(owner, ode_job::JobRef::Id(job)).await.unwrap();
    }
}

async fn the_holder_of_a_job_reads_its_map_and_nobody_else(store: Store) {
    print(&store, organisation()).await;
    let (strange, worker) = (worker(&store).await, worker(&store).await);
    let claimed = claim_one(&store, EXPORT, worker).await;
    let map = held_map(Held::new(&store, &claimed.lease)).await.unwrap();
    assert_eq!(map.as_deref(), Some(r#"{"schema":1,"title":{"text":"The World"}}"#));
    let job = claimed.lease.job();
    let stale = ode_job::Lease::granted(job, claimed.lease.fence() + 1, worker);
    assert_eq!(held_map(Held::new(&store, &stale)).await.unwrap(), None);
    let other = ode_job::Lease::granted(job, claimed.lease.fence(), strange);
    assert_eq!(held_map(Held::new(&store, &other)).await.unwrap(), None);
}

async fn an_export_goes_from_pending_to_complete(store: Store) {
    let job = print(&store, organisation()).await.job;
    assert_eq!(record(&store, job).await.state, PENDING_EXPORT);
    let worker = worker(&store).await;
    let claimed = claim_one(&store, EXPORT, worker).await;
    assert_eq!(record(&store, job).await.state, EXPORTING);
    assert_eq!(sql::exports(store.sql(), &[job]).await.unwrap().len(), 0);
    finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(record(&store, job).await.state, EXPORT_COMPLETE);
    assert_eq!(sql::exports(store.sql(), &[job]).await.unwrap()[&job].content_type, "image/png");
    assert_eq!(history(&store, job).await, ["created", "processing", "complete"]);
    assert!(claim(&store, ORDER, worker, 1).await.is_empty(), "nobody asked for an order");
}

fn passing() -> Ended {
    Ended::Failed(Failure::retryable(ErrorCode::IoError, "The disk was away"))
}

/// One attempt, as soon as its time has come.
async fn attempt(store: &Store, job: JobId, ended: Ended) {
    let lane = EXPORT;
    let worker = worker(store).await;
    let claimed = claim_one(store, lane, worker).await;
    assert_eq!(claimed.lease.job(), job);
    let retry = ode_job::RetryPolicy { base: std::time::Duration::ZERO, ..Default::default() };
    let end = ode_store::Finish { retry, ..ending(claimed, ended) };
    store.finish(vec![end]).await.unwrap();
    // The next try may be due some microseconds from now: SQLite's clock goes in milliseconds.
    let is_waiting = |job: JobRecord| (job.state, job.phase) == (PENDING_EXPORT, Phase::Held);
    while is_waiting(record(store, job).await) {
        store.promote_due().await.unwrap();
    }
}

async fn an_export_that_fails_for_now_is_tried_three_times_more(store: Store) {
    let job = print(&store, organisation()).await.job;
    for tries in 1..=3 {
        attempt(&store, job, passing()).await;
        let record = record(&store, job).await;
        assert_eq!((record.state, record.retry_count), (PENDING_EXPORT, tries));
    }
    attempt(&store, job, passing()).await;
    let failed = record(&store, job).await;
    assert_eq!((failed.state, failed.error_code.as_deref()), (EXPORT_FAILED, Some("IO_ERROR")));
    assert_eq!(failed.attempt_count, 4);
}

async fn an_export_that_can_never_work_fails_at_once_and_can_be_retried_by_hand(store: Store) {
    let job = print(&store, organisation()).await.job;
    attempt(&store, job, Ended::Failed(Failure::rejected(ErrorCode::Invalid, "Not a map"))).await;
    assert_eq!(record(&store, job).await.state, EXPORT_FAILED);
    assert_eq!(store.retry(job).await.unwrap(), PENDING_EXPORT);
    attempt(&store, job, Ended::Succeeded).await;
    assert_eq!(record(&store, job).await.state, EXPORT_COMPLETE);
    let words = ["created", "processing", "failed", "retry", "processing", "complete"];
    assert_eq!(history(&store, job).await, words);
}

async fn an_export_whose_worker_is_lost_is_made_by_another(store: Store) {
    let job = print(&store, organisation()).await.job;
    let lost = worker(&store).await;
    let zombie = claim_one(&store, EXPORT, lost).await;
    silence(&store, lost).await;
    assert_eq!(store.rescue().await.unwrap(), 1);
    attempt(&store, job, Ended::Succeeded).await;
    let kept = sql::exports(store.sql(), &[job]).await.unwrap()[&job].path.clone();
    // The one that was given up wakes and publishes its picture, too.
    assert_eq!(finish(&store, zombie, Ended::Succeeded).await, ode_store::Finished::LeaseLost);
    assert_eq!(sql::exports(store.sql(), &[job]).await.unwrap()[&job].path, kept);
    assert_eq!(record(&store, job).await.state, EXPORT_COMPLETE);
}

async fn an_export_is_found_by_its_content(store: Store) {
    let job = print(&store, organisation()).await.job;
    assert_eq!(sql::export(store.sql(), &"0".repeat(64)).await.unwrap(), None);
    attempt(&store, job, Ended::Succeeded).await;
    let found = sql::export(store.sql(), &"0".repeat(64)).await.unwrap().unwrap();
    assert_eq!((found.role.as_str(), found.content_type.as_str()), ("export", "image/png"));
}

async fn a_session_that_becomes_a_user_keeps_its_maps(store: Store) {
    let (session, user) = (Uuid::new_v4(), Uuid::new_v4());
    let kept = sql::add_user_map(store.sql(), Owner::Session(session), "Ours", FEATURES).await.unwrap().id;
    let printing = print(&store, Owner::Session(session)).await;
    store.adopt(session, user).await.unwrap();
    for owner in [Owner::Session(session), Owner::User(user)] {
        sql::user_map(store.sql(), owner, kept).await.unwrap();
        sql::printable_map(store.sql(), owner, printing.map).await.unwrap();
        sql::reprint(&store, owner, printing.map, None).await.unwrap();
    }
    store.adopt(session, Uuid::new_v4()).await.unwrap();
    sql::printable_map(store.sql(), Owner::User(user), printing.map).await.unwrap();
}

async fn maps_without_a_job_are_found(store: Store) {
    print(&store, organisation()).await;
    assert_eq!(sql::unprinted_maps(store.sql(), Uuid::nil(), 10).await.unwrap(), []);
}

async fn a_list_of_maps_goes_on_where_it_ended(store: Store) {
    let owner = organisation();
    for _ in 0..5 {
        print(&store, owner).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let part = sql::printable_maps(store.sql(), owner, cursor, 2).await.unwrap();
        seen.extend(part.maps.iter().map(|map| map.id));
        cursor = part.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|newer, older| newer > older), "{seen:?}");
}

async fn a_frozen_map_cannot_be_changed_removed_or_forged(mut database: Database) {
    let owner = organisation();
    let map = print(&database.store, owner).await.map;
    let before = sql::printable_map(database.store.sql(), owner, map).await.unwrap();
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
            if matches!(database.sql, Outside::Sqlite(_)) { frozen } else { "printable_maps_" },
        ),
    ];
    check_refused(&mut database.sql, map, &changes).await;
    if let Outside::Sqlite(_) = database.sql {
        let replace = "REPLACE INTO printable_maps (id, data, sha256) SELECT id, '{\"schema\":1}', sha256 FROM printable_maps WHERE id = $1";
        check_refused(&mut database.sql, map, &[(replace, frozen)]).await;
    } else {
        let forged =
            "INSERT INTO printable_maps (id, data, sha256) VALUES ($1, '{\"schema\":1}', repeat('0', 64))";
        check_refused(&mut database.sql, Uuid::now_v7(), &[(forged, "printable_maps_digest")]).await;
        check_refused(&mut database.sql, map, &[("TRUNCATE printable_maps CASCADE", "append-only")]).await;
    }
    assert_eq!(sql::printable_map(database.store.sql(), owner, map).await.unwrap(), before);
}

async fn a_kept_map_is_what_it_says(mut database: Database) {
    let id = sql::add_user_map(database.store.sql(), organisation(), "Ours", FEATURES).await.unwrap().id;
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
    let claimed = claim_one(&database.store, EXPORT, worker).await;
    let end = ode_store::Finish { artifacts: Vec::new(), ..ending(claimed, Ended::Succeeded) };
    database.store.finish(vec![end]).await.unwrap();
    assert_eq!(record(&database.store, job).await.state, EXPORT_FAILED);
}

async fn a_print_job_names_a_map_of_its_owner(mut database: Database) {
    let store = &database.store;
    let (ours, theirs) = (organisation(), organisation());
    let map = print(store, theirs).await.map;
    let mut job = ode_job::NewJob::new(PRINT, "map", serde_json::json!({ "printable_map_id": map }));
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
    if let Outside::Sqlite(_) = database.sql {
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
    let left = sql::unprinted_maps(database.store.sql(), Uuid::nil(), 10).await.unwrap();
    assert_eq!(left.iter().map(|map| map.id).collect::<Vec<_>>(), [printing.map]);
}
