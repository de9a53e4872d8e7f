//! Orders: who may ask for one, what is recorded of placing it, and that nothing of it can be taken back.

use crate::harness::config;
use crate::harness::{
    Database, Sql, claim_one, ending, finish, job, on_both, order_ask, order_steps, place, record, silence,
    spender, worker,
};
use crate::machines::{lane, pipeline, state};
use jiff::Timestamp;
use ode_job::order::{Attention, Money, OrderAsk, OrderPhase};
use ode_job::{Claimed, Ended, ErrorCode, Failure, JobId, Lease, OrderStep};
use ode_store::sql::Held;
use ode_store::{Asked, Error, OwnerKind, Seen, Store};
use std::time::Duration;
use uuid::Uuid;

on_both!(
    an_order_needs_a_limit_and_is_asked_for_once,
    an_order_can_be_asked_for_before_the_map_is_exported,
    what_is_spent_stays_within_the_limit_of_thirty_days,
    an_order_that_was_too_dear_is_tried_again_with_a_higher_limit,
    the_record_is_written_under_the_lease_alone,
    a_doubt_is_counted_until_an_answer_is_clear,
    an_order_is_never_set_aside_for_lost_workers,
    a_job_is_fulfilled_only_when_its_order_was_delivered,
    an_event_is_heard_once_and_makes_its_order_due,
    a_print_goes_the_way_of_the_seed,
    a_failed_order_is_tried_again_under_the_same_name,
    an_order_that_is_tried_again_stays_within_the_limit,
    a_lowered_limit_holds_for_an_order_that_is_tried_again,
    limits_are_listed_by_the_names_of_organisations,
);
on_both!(sqlite_file, postgres_database:
    a_job_is_ordered_only_with_the_providers_number,
    what_is_recorded_of_an_order_is_not_taken_back,
    an_order_is_what_it_says,
    the_queries_of_the_seed_can_be_asked,
    ten_who_order_at_once_stay_within_the_limit,
    a_raised_cost_is_within_what_the_other_orders_leave,
    an_old_order_counts_while_it_is_under_way_and_from_when_it_is_placed,
    turns_are_shared_by_all_processes,
);

/// A print that was exported.
async fn exported(store: &Store) -> JobId {
    let id = store.enqueue(job(pipeline::PRINT)).await.unwrap().id();
    let export = claim_one(store, lane::PRINT_EXPORT, worker(store).await).await;
    finish(store, export, Ended::Succeeded).await;
    id
}

/// One that is being ordered.
async fn ordering(store: &Store) -> (JobId, Claimed) {
    let id = exported(store).await;
    store.ask_order(id, spender(store).await, &order_ask()).await.unwrap();
    (id, claim_one(store, lane::PRINT_ORDER, worker(store).await).await)
}

async fn ordered(store: &Store) -> JobId {
    let (id, claimed) = ordering(store).await;
    finish(store, claimed, Ended::Succeeded).await;
    assert_eq!(record(store, id).await.state, state::ORDERED);
    id
}

fn code(error: &Error) -> ErrorCode {
    error.code()
}

async fn an_order_needs_a_limit_and_is_asked_for_once(store: Store) {
    let id = exported(&store).await;
    let refused = store.ask_order(id, Uuid::new_v4(), &order_ask()).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap);
    let refused = store.check_order(id, Uuid::new_v4(), &order_ask()).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap, "who only asks is told the same");
    let organisation = spender(&store).await;
    store.check_order(id, organisation, &order_ask()).await.unwrap();
    assert_eq!(store.order_of(id).await.unwrap(), None, "asking whether it could be orders nothing");
    assert_eq!(store.ask_order(id, organisation, &order_ask()).await.unwrap(), Asked::New);
    assert_eq!(store.ask_order(id, organisation, &order_ask()).await.unwrap(), Asked::Existing);
    let mut other = order_ask();
    other.quantity = 2;
    let refused = store.ask_order(id, organisation, &other).await.unwrap_err();
    assert!(matches!(refused, Error::OrderExists(_)), "{refused}");
    assert!(matches!(store.check_order(id, organisation, &other).await, Err(Error::OrderExists(_))));
    let order = store.order_of(id).await.unwrap().unwrap();
    assert_eq!((order.phase, order.external_id), (OrderPhase::None, id.0.simple().to_string()));
    let worker = worker(&store).await;
    assert_eq!(claim_one(&store, lane::PRINT_ORDER, worker).await.lease.job(), id, "it goes on by itself");
}

async fn an_order_can_be_asked_for_before_the_map_is_exported(store: Store) {
    let id = store.enqueue(job(pipeline::PRINT)).await.unwrap().id();
    store.ask_order(id, spender(&store).await, &order_ask()).await.unwrap();
    let worker = worker(&store).await;
    let export = claim_one(&store, lane::PRINT_EXPORT, worker).await;
    finish(&store, export, Ended::Succeeded).await;
    assert_eq!(claim_one(&store, lane::PRINT_ORDER, worker).await.lease.job(), id);
    let xml = store.enqueue(job(pipeline::XML)).await.unwrap().id();
    let refused = store.ask_order(xml, spender(&store).await, &order_ask()).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::Conflict);
}

async fn what_is_spent_stays_within_the_limit_of_thirty_days(store: Store) {
    let organisation = Uuid::new_v4();
    store.set_spend_cap(organisation, "USD", Money(6_000), Money(10_000)).await.unwrap();
    let mut ask = order_ask();
    ask.cost_max = Some(Money(70_00));
    store.ask_order(exported(&store).await, organisation, &ask).await.unwrap();
    let cap = store.spend_caps().await.unwrap().remove(0);
    assert_eq!(cap.spent, Money(60_00), "never more than one order may cost");
    let refused = store.ask_order(exported(&store).await, organisation, &ask).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap);
    ask.cost_max = Some(Money(40_00));
    store.ask_order(exported(&store).await, organisation, &ask).await.unwrap();
    assert!(store.set_spend_cap(organisation, "USD", Money(2), Money(1)).await.is_err());
}

async fn an_order_that_was_too_dear_is_tried_again_with_a_higher_limit(store: Store) {
    let (id, claimed) = ordering(&store).await;
    let [freeze, create, draft, ..] = order_steps(id);
    for step in [freeze, create, draft] {
        Held::new(&store, &claimed.lease).record_order(&step).await.unwrap();
    }
    let attention = OrderStep::Attention { reason: Attention::CostAboveCap, message: "too dear".into() };
    Held::new(&store, &claimed.lease).record_order(&attention).await.unwrap();
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::CostAboveCap))).await;
    assert_eq!(store.orders_to_look_at(10).await.unwrap().len(), 1);
    assert_eq!(code(&store.raise_cost(id, Money(100_000)).await.unwrap_err()), ErrorCode::SpendCap);
    let before = store.order_of(id).await.unwrap();
    assert_eq!(code(&store.check_raise(id, Money(100_000)).await.unwrap_err()), ErrorCode::SpendCap);
    store.check_raise(id, Money(90_00)).await.unwrap();
    assert_eq!(store.order_of(id).await.unwrap(), before, "asking whether it could be changes nothing");
    store.raise_cost(id, Money(90_00)).await.unwrap();
    store.retry(id).await.unwrap();
    let order = store.order_of(id).await.unwrap().unwrap();
    assert_eq!((order.cost_max, order.attention, order.phase), (Money(90_00), None, OrderPhase::Draft));
}

async fn the_record_is_written_under_the_lease_alone(store: Store) {
    let (id, claimed) = ordering(&store).await;
    let Claimed { lease, .. } = claimed;
    let stale = Lease::granted(id, lease.fence() - 1, lease.worker());
    let strange = Lease::granted(id, lease.fence(), worker(&store).await);
    for step in order_steps(id) {
        for other in [&stale, &strange] {
            let refused = Held::new(&store, other).record_order(&step).await;
            assert!(matches!(refused, Err(Error::LeaseLost(_))), "{}: {refused:?}", step.name());
        }
        Held::new(&store, &lease).record_order(&step).await.unwrap();
    }
    assert_eq!(Held::new(&store, &stale).order().await.unwrap(), None);
    let order = Held::new(&store, &lease).order().await.unwrap().unwrap();
    assert_eq!(order.phase, OrderPhase::Confirmed);
    assert!(order.export_sha256.is_some());
    let steps = store.order_steps(id).await.unwrap();
    let words: Vec<&str> = steps.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(words, ["asked", "freeze", "create_sent", "draft", "confirm_sent", "confirmed"]);
    assert!(steps[1..].iter().all(|step| step.fence == Some(lease.fence())));
}

async fn a_doubt_is_counted_until_an_answer_is_clear(store: Store) {
    let (id, Claimed { lease, .. }) = ordering(&store).await;
    let [freeze, create, draft, ..] = order_steps(id);
    for step in [&freeze, &create, &OrderStep::Unclear, &OrderStep::Unclear] {
        Held::new(&store, &lease).record_order(step).await.unwrap();
    }
    let order = Held::new(&store, &lease).order().await.unwrap().unwrap();
    assert_eq!((order.doubts, order.unclear_for.is_some()), (2, true));
    Held::new(&store, &lease).record_order(&draft).await.unwrap();
    let order = Held::new(&store, &lease).order().await.unwrap().unwrap();
    assert_eq!((order.doubts, order.unclear_for), (0, None));
}

async fn an_order_is_never_set_aside_for_lost_workers(store: Store) {
    let (id, mut claimed) = ordering(&store).await;
    for _ in 0..5 {
        silence(&store, claimed.lease.worker()).await;
        assert_eq!(store.rescue().await.unwrap(), 1);
        assert_eq!(record(&store, id).await.state, state::EXPORT_COMPLETE);
        claimed = claim_one(&store, lane::PRINT_ORDER, worker(&store).await).await;
    }
}

async fn a_job_is_fulfilled_only_when_its_order_was_delivered(store: Store) {
    let id = ordered(&store).await;
    let seen = |is_shipped, is_delivered| Seen {
        status: "fulfilled".into(),
        is_shipped,
        is_delivered,
        attention: None,
        look_again: Duration::from_hours(1),
    };
    assert_eq!(
        store.take_orders_due(10, Duration::from_hours(1)).await.unwrap().len(),
        1,
        "a placed order is looked at soon"
    );
    store.saw_order(id, &seen(true, false)).await.unwrap();
    assert_eq!(record(&store, id).await.state, state::ORDERED, "sent is not delivered");
    assert_eq!(store.take_orders_due(10, Duration::from_hours(1)).await.unwrap(), []);
    store.saw_order(id, &seen(true, true)).await.unwrap();
    assert_eq!(record(&store, id).await.state, state::FULFILLED);
    store.saw_order(id, &seen(true, true)).await.unwrap();
    let order = store.order_of(id).await.unwrap().unwrap();
    assert!(order.delivered_at.is_some_and(|at| at <= Timestamp::now()));
}

async fn an_event_is_heard_once_and_makes_its_order_due(store: Store) {
    let id = ordered(&store).await;
    let later = Seen {
        status: "pending".into(),
        is_shipped: false,
        is_delivered: false,
        attention: None,
        look_again: Duration::from_hours(1),
    };
    let due = async || store.take_orders_due(10, Duration::from_hours(1)).await.unwrap().len();
    assert_eq!(due().await, 1);
    store.saw_order(id, &later).await.unwrap();
    let (digest, external_id) = ("0".repeat(64), id.0.simple().to_string());
    assert!(store.heard(&digest, "shipment_sent", Some(&external_id)).await.unwrap());
    assert_eq!(due().await, 1);
    store.saw_order(id, &later).await.unwrap();
    assert!(!store.heard(&digest, "shipment_sent", Some(&external_id)).await.unwrap(), "told twice");
    assert_eq!(due().await, 0);
    assert!(store.heard(&"1".repeat(64), "order_updated", None).await.unwrap(), "about nothing of ours");
}

async fn a_print_goes_the_way_of_the_seed(store: Store) {
    let id = ordered(&store).await;
    store.delivered(id).await.unwrap();
    let events = store.events(id).await.unwrap();
    let states: Vec<&str> = events.iter().map(|event| event.to_state.as_str()).collect();
    let expected = [
        "pending_export",
        "exporting",
        "export_complete",
        "export_complete",
        "ordering",
        "ordered",
        "fulfilled",
    ];
    assert_eq!(states, expected);
}

async fn a_failed_order_is_tried_again_under_the_same_name(store: Store) {
    let (id, claimed) = ordering(&store).await;
    let before = store.order_of(id).await.unwrap().unwrap().external_id;
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::OrderRefused))).await;
    assert_eq!(record(&store, id).await.state, state::ORDER_FAILED);
    store.retry(id).await.unwrap();
    let again = claim_one(&store, lane::PRINT_ORDER, worker(&store).await).await;
    finish(&store, again, Ended::Succeeded).await;
    let order = store.order_of(id).await.unwrap().unwrap();
    assert_eq!((order.external_id, order.state), (before, state::ORDERED));
}

async fn an_order_that_is_tried_again_stays_within_the_limit(store: Store) {
    let organisation = Uuid::new_v4();
    store.set_spend_cap(organisation, "USD", Money(60_00), Money(10_000)).await.unwrap();
    let spent = async || store.spend_caps().await.unwrap().remove(0).spent;
    let id = exported(&store).await;
    store.ask_order(id, organisation, &order_ask()).await.unwrap();
    let set_aside = spent().await;
    let claimed = claim_one(&store, lane::PRINT_ORDER, worker(&store).await).await;
    let attention = OrderStep::Attention { reason: Attention::CostAboveCap, message: "too dear".into() };
    Held::new(&store, &claimed.lease).record_order(&attention).await.unwrap();
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::CostAboveCap))).await;
    assert_eq!(spent().await, Money(0), "what failed costs nothing");
    let mut other = order_ask();
    let too_much = Money(10_000 - set_aside.0 + 1);
    other.cost_max = Some(too_much);
    store.ask_order(exported(&store).await, organisation, &other).await.unwrap();
    assert_eq!(code(&store.retry(id).await.unwrap_err()), ErrorCode::SpendCap);
    assert_eq!(record(&store, id).await.state, state::ORDER_FAILED);
    store.set_spend_cap(organisation, "USD", Money(60_00), Money(10_001)).await.unwrap();
    store.retry(id).await.unwrap();
    assert_eq!(spent().await, Money(10_001), "it counts from then on");
}

/// Ends the order of a print with a failure that people were told of.
async fn fail_order(store: &Store, claimed: Claimed, steps: &[OrderStep]) {
    for step in steps {
        Held::new(store, &claimed.lease).record_order(step).await.unwrap();
    }
    let attention = OrderStep::Attention { reason: Attention::Refused, message: "it was refused".into() };
    Held::new(store, &claimed.lease).record_order(&attention).await.unwrap();
    finish(store, claimed, Ended::Failed(Failure::from(ErrorCode::OrderRefused))).await;
}

async fn a_lowered_limit_holds_for_an_order_that_is_tried_again(store: Store) {
    let organisation = Uuid::new_v4();
    let limit = async |cents| {
        store.set_spend_cap(organisation, "USD", Money(cents), Money(100_000)).await.unwrap();
    };
    limit(60_00).await;
    let mut failed = Vec::new();
    for step_count in [0, 3] {
        let id = exported(&store).await;
        store.ask_order(id, organisation, &order_ask()).await.unwrap();
        let claimed = claim_one(&store, lane::PRINT_ORDER, worker(&store).await).await;
        fail_order(&store, claimed, &order_steps(id)[..step_count]).await;
        failed.push(id);
    }
    let [unknown, known] = failed[..] else { panic!("{failed:?}") };
    let cost = store.order_of(known).await.unwrap().unwrap().cost.unwrap();
    limit(cost.0 - 1).await;
    let refused = store.retry(known).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap, "{refused}");
    assert_eq!(record(&store, known).await.state, state::ORDER_FAILED);
    // What it costs is not known yet: it may cost as much as one that is asked for now.
    store.retry(unknown).await.unwrap();
    assert_eq!(store.order_of(unknown).await.unwrap().unwrap().cost_max, Money(cost.0 - 1));
    limit(cost.0).await;
    store.retry(known).await.unwrap();
    assert_eq!(store.order_of(known).await.unwrap().unwrap().cost_max, cost);
}

async fn limits_are_listed_by_the_names_of_organisations(store: Store) {
    for name in ["zeta", "acme"] {
        store.create_key(OwnerKind::Organisation, name, "").await.unwrap();
        let id = store.organisation(name).await.unwrap().unwrap();
        store.set_spend_cap(id, "USD", Money(1), Money(2)).await.unwrap();
    }
    let caps = store.spend_caps().await.unwrap();
    let names: Vec<&str> = caps.iter().filter_map(|cap| cap.organisation.as_deref()).collect();
    assert_eq!(names, ["acme", "zeta"]);
}

/// Tries each statement on the job, and expects a refusal that names what it breaks.
async fn check_refused(sql: &mut Sql, job: JobId, cases: &[(&str, &str)]) {
    for (statement, broken) in cases {
        match sql.run(statement, &[job.0]).await {
            Ok(changed) => panic!("accepted, {changed} rows: {statement}"),
            Err(refusal) => assert!(
                refusal.to_lowercase().contains(&broken.to_lowercase()),
                "{statement}\nwas refused for another reason: {refusal}"
            ),
        }
    }
}

/// The same for statements that are about no job.
async fn check_nobody_refused(sql: &mut Sql, cases: &[(&str, &str)]) {
    for (statement, broken) in cases {
        let refusal = sql.run(statement, &[]).await.unwrap_err();
        assert!(refusal.contains(broken), "{statement}\nwas refused for another reason: {refusal}");
    }
}

async fn a_job_is_ordered_only_with_the_providers_number(mut database: Database) {
    let store = &database.store;
    let (id, claimed) = ordering(store).await;
    let rule = "job_is_ordered";
    let attacks = [(
        "UPDATE job_live SET state = 'ordered', lane = NULL, worker = NULL, lease_until = NULL WHERE id = $1",
        rule,
    )];
    check_refused(&mut database.sql, id, &attacks).await;
    // The engine's own way is closed as well: the end of the attempt is not written.
    let end = ending(claimed, Ended::Succeeded);
    let (fence, worker) = (end.job.lease.fence(), end.job.lease.worker());
    assert!(store.finish(vec![end]).await.is_err());
    assert_eq!(record(store, id).await.state, state::ORDERING);
    place(store, &Lease::granted(id, fence, worker)).await;
    let moved =
        "UPDATE job_live SET state = 'ordered', lane = NULL, worker = NULL, lease_until = NULL WHERE id = $1";
    assert_eq!(database.sql.run(moved, &[id.0]).await, Ok(1));
    let back = ["pending_export", "export_complete", "ordering"];
    for state in back.map(|state| format!("UPDATE job_live SET state = '{state}', lane = NULL WHERE id = $1"))
    {
        check_refused(&mut database.sql, id, &[(state.as_str(), "job_stays_ordered")]).await;
    }
    assert_eq!(store.delivered(id).await.unwrap(), state::FULFILLED);
}

async fn what_is_recorded_of_an_order_is_not_taken_back(mut database: Database) {
    let id = ordered(&database.store).await;
    let forward = "print_orders_goes_forward";
    let attacks = [
        ("UPDATE print_orders SET phase = 'none' WHERE job_id = $1", forward),
        ("UPDATE print_orders SET phase = 'draft', placed_at = NULL WHERE job_id = $1", forward),
        ("UPDATE print_orders SET provider_order_id = 4711 WHERE job_id = $1", forward),
        ("UPDATE print_orders SET provider_order_id = NULL WHERE job_id = $1", forward),
        ("UPDATE print_orders SET request = '{}' WHERE job_id = $1", forward),
        ("UPDATE print_orders SET request_sha256 = NULL, request = NULL WHERE job_id = $1", forward),
        ("UPDATE print_orders SET asked = '{}' WHERE job_id = $1", forward),
        ("UPDATE print_orders SET external_id = 'x' WHERE job_id = $1", forward),
        ("DELETE FROM print_orders WHERE job_id = $1", "append-only"),
        ("UPDATE print_order_steps SET step = 'x' WHERE job_id = $1", "append-only"),
        ("DELETE FROM print_order_steps WHERE job_id = $1", "append-only"),
        (
            "INSERT INTO print_orders (job_id, organisation_id, external_id, asked, currency, cost_max_cents)
            SELECT job_id, organisation_id, external_id, '{}', 'USD', 1 FROM print_orders WHERE job_id = $1",
            "print_orders",
        ),
    ];
    check_refused(&mut database.sql, id, &attacks).await;
    if let Sql::Postgres(_) = database.sql {
        let emptied =
            [("TRUNCATE print_orders CASCADE", "append-only"), ("TRUNCATE print_order_steps", "append-only")];
        return check_nobody_refused(&mut database.sql, &emptied).await;
    }
    // What replaces a row deletes it, and asks no trigger about that.
    let replacing = [
        (
            "REPLACE INTO print_orders (job_id, organisation_id, external_id, asked, currency, cost_max_cents)
            SELECT job_id, organisation_id, external_id, '{}', 'USD', 1 FROM print_orders WHERE job_id = $1",
            forward,
        ),
        (
            "REPLACE INTO print_order_steps (id, job_id, step) SELECT id, job_id, 'x' FROM print_order_steps
            WHERE job_id = $1",
            "append-only",
        ),
    ];
    check_refused(&mut database.sql, id, &replacing).await;
}

/// What nobody can make of an order in SQL, and what is said to it.
const ATTACKS: &[(&str, &str)] = &[
    ("UPDATE print_orders SET phase = 'create_sent' WHERE job_id = $1", "print_orders_intent_is_frozen"),
    ("UPDATE print_orders SET phase = 'sent' WHERE job_id = $1", "check"),
    ("UPDATE print_orders SET request = '{}' WHERE job_id = $1", "print_orders_frozen_with_digest"),
    ("UPDATE print_orders SET provider_order_id = 1 WHERE job_id = $1", "print_orders_number_with_draft"),
    ("UPDATE print_orders SET placed_at = {now} WHERE job_id = $1", "print_orders_placed_is_confirmed"),
    ("UPDATE print_orders SET delivered_at = {now} WHERE job_id = $1", "print_orders_delivered_is_placed"),
    ("UPDATE print_orders SET attention = 'mismatch' WHERE job_id = $1", "print_orders_attention_is_told"),
    (
        "UPDATE print_orders SET attention = 'odd', attention_message = 'x', attention_at = {now} WHERE job_id = $1",
        "check",
    ),
    ("UPDATE print_orders SET attention_message = 'x' WHERE job_id = $1", "print_orders_attention_is_told"),
    ("UPDATE print_orders SET request = '{}', request_sha256 = 'abc' WHERE job_id = $1", "check"),
    ("UPDATE print_orders SET request_sha256 = NULL, phase = 'draft' WHERE job_id = $1", "print_orders"),
    ("UPDATE print_orders SET cost_max_cents = 0 WHERE job_id = $1", "check"),
    ("UPDATE print_orders SET cost_cents = -1 WHERE job_id = $1", "check"),
    ("UPDATE print_orders SET doubts = -1 WHERE job_id = $1", "check"),
    ("UPDATE print_orders SET currency = 'usd' WHERE job_id = $1", "check"),
    (
        "UPDATE spend_caps SET currency = 'usd' WHERE organisation_id = (SELECT organisation_id FROM print_orders WHERE job_id = $1)",
        "check",
    ),
    (
        "UPDATE spend_caps SET order_cents = 0 WHERE organisation_id = (SELECT organisation_id FROM print_orders WHERE job_id = $1)",
        "check",
    ),
    (
        "UPDATE spend_caps SET month_cents = order_cents - 1
        WHERE organisation_id = (SELECT organisation_id FROM print_orders WHERE job_id = $1)",
        "check",
    ),
    (
        "INSERT INTO print_orders (job_id, organisation_id, external_id, asked, currency, cost_max_cents)
        VALUES ($1, $1, '0', '{}', 'USD', 1)",
        "print_orders",
    ),
];

async fn an_order_is_what_it_says(mut database: Database) {
    let store = &database.store;
    let (other, id) = (ordered(store).await, exported(store).await);
    let organisation = spender(store).await;
    store.ask_order(id, organisation, &order_ask()).await.unwrap();
    check_refused(&mut database.sql, id, ATTACKS).await;
    let frozen =
        "request = '{}', request_sha256 = '0000000000000000000000000000000000000000000000000000000000000000'";
    let dear = format!(
        "UPDATE print_orders SET {frozen}, phase = 'confirm_sent', provider_order_id = 1, cost_cents = cost_max_cents + 1
            WHERE job_id = $1"
    );
    check_refused(&mut database.sql, id, &[(dear.as_str(), "print_orders_within_cap")]).await;
    // A number belongs to one order.
    let taken = format!(
        "UPDATE print_orders SET {frozen}, phase = 'draft',
            provider_order_id = (SELECT provider_order_id FROM print_orders WHERE job_id = $2) WHERE job_id = $1"
    );
    let mut thefts = vec![taken.clone()];
    if let Sql::Sqlite(_) = database.sql {
        thefts.push(taken.replacen("UPDATE", "UPDATE OR REPLACE", 1));
    }
    for theft in thefts {
        let refusal = database.sql.run(&theft, &[id.0, other.0]).await.unwrap_err().to_lowercase();
        assert!(refusal.contains("unique") && refusal.contains("provider_order_id"), "{refusal}");
    }
    // A name belongs to one job.
    let misnamed = [(
        "INSERT INTO print_orders (job_id, organisation_id, external_id, asked, currency, cost_max_cents)
        VALUES ($1, $1, '0123456789abcdef0123456789abcdef', '{}', 'USD', 1)",
        "print_orders_external_id_is_the_jobs",
    )];
    let unordered = exported(&database.store).await;
    check_refused(&mut database.sql, unordered, &misnamed).await;
    let nobody = [(
        "INSERT INTO print_orders (job_id, organisation_id, external_id, asked, currency, cost_max_cents)
        VALUES ($1, $1, '00000000000000000000000000000001', '{}', 'USD', 1)",
        "job",
    )];
    check_refused(&mut database.sql, JobId(Uuid::from_u128(1)), &nobody).await;
}

async fn the_queries_of_the_seed_can_be_asked(mut database: Database) {
    let store = &database.store;
    let id = ordered(store).await;
    exported(store).await;
    store.enqueue(job(pipeline::PRINT)).await.unwrap();
    let sql = &mut database.sql;
    let waiting = "SELECT count(*) FROM print_jobs pj WHERE pj.state = 'pending_export'";
    let ready = "SELECT count(*) FROM print_jobs pj WHERE pj.state = 'export_complete' AND pj.export_file_path IS NOT NULL";
    let status = "SELECT count(*) FROM print_jobs WHERE id = $1 AND state = 'ordered' AND export_file_path IS NOT NULL
        AND printful_order_id IS NOT NULL AND order_completed_at IS NOT NULL AND order_started_at IS NOT NULL";
    assert_eq!((sql.number(waiting, &[]).await, sql.number(ready, &[]).await), (1, 1));
    assert_eq!(sql.number(status, &[id.0]).await, 1);
    let told = "SELECT count(*) FROM print_job_events WHERE print_job_id = $1 AND to_state = 'ordered'";
    assert_eq!(sql.number(told, &[id.0]).await, 1);
}

async fn ten_who_order_at_once_stay_within_the_limit(database: Database) {
    let store = &database.store;
    let organisation = Uuid::new_v4();
    store.set_spend_cap(organisation, "USD", Money(10_00), Money(30_00)).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(exported(store).await);
    }
    let asks = ids.into_iter().map(|id| {
        let store = store.clone();
        tokio::spawn(async move { store.ask_order(id, organisation, &order_ask()).await })
    });
    let mut granted = 0;
    for ask in asks.collect::<Vec<_>>() {
        match ask.await.unwrap() {
            Ok(_) => granted += 1,
            Err(error) => assert_eq!(code(&error), ErrorCode::SpendCap, "{error}"),
        }
    }
    assert_eq!(granted, 3);
}

async fn a_raised_cost_is_within_what_the_other_orders_leave(database: Database) {
    let store = &database.store;
    let organisation = Uuid::new_v4();
    store.set_spend_cap(organisation, "USD", Money(10_000), Money(15_000)).await.unwrap();
    let first = exported(store).await;
    let cheap = OrderAsk { cost_max: Some(Money(10_00)), ..order_ask() };
    store.ask_order(first, organisation, &cheap).await.unwrap();
    let second = exported(store).await;
    store.ask_order(second, organisation, &order_ask()).await.unwrap();
    let refused = store.raise_cost(first, Money(50_01)).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap, "{refused}");
    store.raise_cost(first, Money(50_00)).await.unwrap();
    store.raise_cost(second, Money(10_000)).await.unwrap();
}

async fn an_old_order_counts_while_it_is_under_way_and_from_when_it_is_placed(mut database: Database) {
    let Database { store, sql, .. } = &mut database;
    let organisation = Uuid::new_v4();
    store.set_spend_cap(organisation, "USD", Money(10_000), Money(100_000)).await.unwrap();
    let spent = async |store: &Store| store.spend_caps().await.unwrap().remove(0).spent;
    let by = if matches!(sql, Sql::Sqlite(_)) { "3456000000000" } else { "interval '40 days'" };
    let age = format!(
        "UPDATE print_orders SET created_at = created_at - {by}, updated_at = updated_at - {by}, placed_at = placed_at - {by}
        WHERE job_id = $1"
    );
    let id = exported(store).await;
    store.ask_order(id, organisation, &order_ask()).await.unwrap();
    sql.run(&age, &[id.0]).await.unwrap();
    assert_eq!(spent(store).await, Money(10_000), "it may still be placed");
    let claimed = claim_one(store, lane::PRINT_ORDER, worker(store).await).await;
    fail_order(store, claimed, &[]).await;
    assert_eq!(spent(store).await, Money(0), "it was given up");
    store.retry(id).await.unwrap();
    sql.run(&age, &[id.0]).await.unwrap();
    assert_eq!(spent(store).await, Money(10_000), "it is tried again");
    let claimed = claim_one(store, lane::PRINT_ORDER, worker(store).await).await;
    finish(store, claimed, Ended::Succeeded).await;
    let cost = store.order_of(id).await.unwrap().unwrap().cost.unwrap();
    assert_eq!(spent(store).await, cost, "it is placed now, whenever it was asked for");
    sql.run(&age, &[id.0]).await.unwrap();
    assert_eq!(spent(store).await, Money(0), "it was placed more than 30 days ago");
}

async fn turns_are_shared_by_all_processes(database: Database) {
    let other = Store::open(config(&database.url)).await.unwrap();
    let mut turns = 0;
    for number in 0..20 {
        let store = if number % 2 == 0 { &database.store } else { &other };
        turns += usize::from(store.sql().take_turn("provider", 10).await.unwrap().is_none());
    }
    assert_eq!(turns, 10, "so many a minute, whoever asks");
    let wait = other.sql().take_turn("provider", 10).await.unwrap().unwrap();
    assert!(wait <= Duration::from_secs(6), "{wait:?}");
    assert_eq!(other.sql().take_turn("another", 10).await.unwrap(), None);
}
