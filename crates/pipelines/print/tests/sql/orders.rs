//! Orders: who may ask for one, what is recorded of placing it, and that nothing of it can be taken back.

use crate::harness::{XML, check_refused, config, ending, finish, order_ask, order_steps, place, spender};
use jiff::Timestamp;
use ode_job::{Claimed, Ended, ErrorCode, Failure, JobId, Lease};
use ode_print::machine::{EXPORT, EXPORT_COMPLETE, FULFILLED, ORDER, ORDER_FAILED, ORDERED, ORDERING, PRINT};
use ode_print::order::{Attention, OrderPhase, OrderStep};
use ode_print::request::{Money, OrderAsk};
use ode_print::sql::{self, Asked, Seen, held_order, record_step};
use ode_store::sql::Held;
use ode_store::trial::{Database, Outside, claim_one, job, record, silence, worker};
use ode_store::{Error, OwnerKind, Store, on_both};
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
    let id = store.enqueue(job(PRINT)).await.unwrap().id();
    let export = claim_one(store, EXPORT, worker(store).await).await;
    finish(store, export, Ended::Succeeded).await;
    id
}

/// One that is being ordered.
async fn ordering(store: &Store) -> (JobId, Claimed) {
    let id = exported(store).await;
    sql::ask_order(store, id, spender(store).await, &order_ask()).await.unwrap();
    (id, claim_one(store, ORDER, worker(store).await).await)
}

async fn ordered(store: &Store) -> JobId {
    let (id, claimed) = ordering(store).await;
    finish(store, claimed, Ended::Succeeded).await;
    assert_eq!(record(store, id).await.state, ORDERED);
    id
}

fn code(error: &Error) -> ErrorCode {
    error.code()
}

async fn an_order_needs_a_limit_and_is_asked_for_once(store: Store) {
    let id = exported(&store).await;
    let refused = sql::ask_order(&store, id, Uuid::new_v4(), &order_ask()).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap);
    let refused = sql::check_order(store.sql(), id, Uuid::new_v4(), &order_ask()).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap, "who only asks is told the same");
    let organisation = spender(&store).await;
    sql::check_order(store.sql(), id, organisation, &order_ask()).await.unwrap();
    assert_eq!(
        sql::order_of(store.sql(), id).await.unwrap(),
        None,
        "asking whether it could be orders nothing"
    );
    assert_eq!(sql::ask_order(&store, id, organisation, &order_ask()).await.unwrap(), Asked::New);
    assert_eq!(sql::ask_order(&store, id, organisation, &order_ask()).await.unwrap(), Asked::Existing);
    let mut other = order_ask();
    other.quantity = 2;
    let refused = sql::ask_order(&store, id, organisation, &other).await.unwrap_err();
    assert!(refused.to_string().contains("Another order was asked for"), "{refused}");
    assert_eq!(code(&refused), ErrorCode::Conflict);
    let checked = sql::check_order(store.sql(), id, organisation, &other).await.unwrap_err();
    assert_eq!(checked.to_string(), refused.to_string());
    let order = sql::order_of(store.sql(), id).await.unwrap().unwrap();
    assert_eq!((order.phase, order.external_id), (OrderPhase::None, id.0.simple().to_string()));
    let worker = worker(&store).await;
    assert_eq!(claim_one(&store, ORDER, worker).await.lease.job(), id, "it goes on by itself");
}

async fn an_order_can_be_asked_for_before_the_map_is_exported(store: Store) {
    let id = store.enqueue(job(PRINT)).await.unwrap().id();
    sql::ask_order(&store, id, spender(&store).await, &order_ask()).await.unwrap();
    let worker = worker(&store).await;
    let export = claim_one(&store, EXPORT, worker).await;
    finish(&store, export, Ended::Succeeded).await;
    assert_eq!(claim_one(&store, ORDER, worker).await.lease.job(), id);
    let xml = store.enqueue(job(XML)).await.unwrap().id();
    let refused = sql::ask_order(&store, xml, spender(&store).await, &order_ask()).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::Conflict);
}

async fn what_is_spent_stays_within_the_limit_of_thirty_days(store: Store) {
    let organisation = Uuid::new_v4();
    sql::set_spend_cap(store.sql(), organisation, "USD", Money(6_000), Money(10_000)).await.unwrap();
    let mut ask = order_ask();
    ask.cost_max = Some(Money(70_00));
    sql::ask_order(&store, exported(&store).await, organisation, &ask).await.unwrap();
    let cap = sql::spend_caps(store.sql()).await.unwrap().remove(0);
    assert_eq!(cap.spent, Money(60_00), "never more than one order may cost");
    let refused = sql::ask_order(&store, exported(&store).await, organisation, &ask).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap);
    ask.cost_max = Some(Money(40_00));
    sql::ask_order(&store, exported(&store).await, organisation, &ask).await.unwrap();
    assert!(sql::set_spend_cap(store.sql(), organisation, "USD", Money(2), Money(1)).await.is_err());
}

async fn an_order_that_was_too_dear_is_tried_again_with_a_higher_limit(store: Store) {
    let (id, claimed) = ordering(&store).await;
    let [freeze, create, draft, ..] = order_steps(id);
    for step in [freeze, create, draft] {
        record_step(Held::new(&store, &claimed.lease), &step).await.unwrap();
    }
    let attention = OrderStep::Attention { reason: Attention::CostAboveCap, message: "too dear".into() };
    record_step(Held::new(&store, &claimed.lease), &attention).await.unwrap();
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::CostAboveCap))).await;
    assert_eq!(sql::orders_to_look_at(store.sql(), 10).await.unwrap().len(), 1);
    assert_eq!(
        code(&sql::raise_cost(store.sql(), id, Money(100_000)).await.unwrap_err()),
        ErrorCode::SpendCap
    );
    let before = sql::order_of(store.sql(), id).await.unwrap();
    assert_eq!(
        code(&sql::check_raise(store.sql(), id, Money(100_000)).await.unwrap_err()),
        ErrorCode::SpendCap
    );
    sql::check_raise(store.sql(), id, Money(90_00)).await.unwrap();
    assert_eq!(
        sql::order_of(store.sql(), id).await.unwrap(),
        before,
        "asking whether it could be changes nothing"
    );
    sql::raise_cost(store.sql(), id, Money(90_00)).await.unwrap();
    store.retry(id).await.unwrap();
    let order = sql::order_of(store.sql(), id).await.unwrap().unwrap();
    assert_eq!((order.cost_max, order.attention, order.phase), (Money(90_00), None, OrderPhase::Draft));
}

async fn the_record_is_written_under_the_lease_alone(store: Store) {
    let (id, claimed) = ordering(&store).await;
    let Claimed { lease, .. } = claimed;
    let stale = Lease::granted(id, lease.fence() - 1, lease.worker());
    let strange = Lease::granted(id, lease.fence(), worker(&store).await);
    for step in order_steps(id) {
        for other in [&stale, &strange] {
            let refused = record_step(Held::new(&store, other), &step).await;
            assert!(matches!(refused, Err(Error::LeaseLost(_))), "{}: {refused:?}", step.name());
        }
        record_step(Held::new(&store, &lease), &step).await.unwrap();
    }
    assert_eq!(held_order(Held::new(&store, &stale)).await.unwrap(), None);
    let order = held_order(Held::new(&store, &lease)).await.unwrap().unwrap();
    assert_eq!(order.phase, OrderPhase::Confirmed);
    assert!(order.export_sha256.is_some());
    let steps = sql::order_steps(store.sql(), id).await.unwrap();
    let words: Vec<&str> = steps.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(words, ["asked", "freeze", "create_sent", "draft", "confirm_sent", "confirmed"]);
    assert!(steps[1..].iter().all(|step| step.fence == Some(lease.fence())));
}

async fn a_doubt_is_counted_until_an_answer_is_clear(store: Store) {
    let (id, Claimed { lease, .. }) = ordering(&store).await;
    let [freeze, create, draft, ..] = order_steps(id);
    for step in [&freeze, &create, &OrderStep::Unclear { why: None }, &OrderStep::Unclear { why: None }] {
        record_step(Held::new(&store, &lease), step).await.unwrap();
    }
    let order = held_order(Held::new(&store, &lease)).await.unwrap().unwrap();
    assert_eq!((order.doubts, order.unclear_for.is_some()), (2, true));
    record_step(Held::new(&store, &lease), &draft).await.unwrap();
    let order = held_order(Held::new(&store, &lease)).await.unwrap().unwrap();
    assert_eq!((order.doubts, order.unclear_for), (0, None));
}

async fn an_order_is_never_set_aside_for_lost_workers(store: Store) {
    let (id, mut claimed) = ordering(&store).await;
    for _ in 0..5 {
        silence(&store, claimed.lease.worker()).await;
        assert_eq!(store.rescue().await.unwrap(), 1);
        assert_eq!(record(&store, id).await.state, EXPORT_COMPLETE);
        claimed = claim_one(&store, ORDER, worker(&store).await).await;
    }
}

/// Takes an order that is due, if one is.
async fn due(store: &Store) -> bool {
    sql::take_order_due(store.sql(), Duration::from_hours(1)).await.unwrap().is_some()
}

async fn saw_order(store: &Store, id: JobId, seen: &Seen) {
    let tx = store.sql().begin().await.unwrap();
    sql::saw_order(store, tx, id, seen).await.unwrap();
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
    assert!(due(&store).await, "a placed order is looked at soon");
    saw_order(&store, id, &seen(true, false)).await;
    assert_eq!(record(&store, id).await.state, ORDERED, "sent is not delivered");
    assert!(!due(&store).await);
    saw_order(&store, id, &seen(true, true)).await;
    assert_eq!(record(&store, id).await.state, FULFILLED);
    saw_order(&store, id, &seen(true, true)).await;
    let order = sql::order_of(store.sql(), id).await.unwrap().unwrap();
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
    assert!(due(&store).await);
    saw_order(&store, id, &later).await;
    let (digest, external_id) = ("0".repeat(64), id.0.simple().to_string());
    assert!(sql::note_event(store.sql(), &digest, "shipment_sent", Some(&external_id)).await.unwrap());
    assert!(due(&store).await);
    saw_order(&store, id, &later).await;
    assert!(
        !sql::note_event(store.sql(), &digest, "shipment_sent", Some(&external_id)).await.unwrap(),
        "told twice"
    );
    assert!(!due(&store).await);
    assert!(
        sql::note_event(store.sql(), &"1".repeat(64), "order_updated", None).await.unwrap(),
        "about nothing of ours"
    );
}

async fn a_print_goes_the_way_of_the_seed(store: Store) {
    let id = ordered(&store).await;
    sql::delivered(&store, id).await.unwrap();
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
    let before = sql::order_of(store.sql(), id).await.unwrap().unwrap().external_id;
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::OrderRefused))).await;
    assert_eq!(record(&store, id).await.state, ORDER_FAILED);
    store.retry(id).await.unwrap();
    let again = claim_one(&store, ORDER, worker(&store).await).await;
    finish(&store, again, Ended::Succeeded).await;
    let order = sql::order_of(store.sql(), id).await.unwrap().unwrap();
    assert_eq!((order.external_id, order.state), (before, ORDERED));
}

async fn an_order_that_is_tried_again_stays_within_the_limit(store: Store) {
    let organisation = Uuid::new_v4();
    sql::set_spend_cap(store.sql(), organisation, "USD", Money(60_00), Money(10_000)).await.unwrap();
    let spent = async || sql::spend_caps(store.sql()).await.unwrap().remove(0).spent;
    let id = exported(&store).await;
    sql::ask_order(&store, id, organisation, &order_ask()).await.unwrap();
    let set_aside = spent().await;
    let claimed = claim_one(&store, ORDER, worker(&store).await).await;
    let attention = OrderStep::Attention { reason: Attention::CostAboveCap, message: "too dear".into() };
    record_step(Held::new(&store, &claimed.lease), &attention).await.unwrap();
    finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::CostAboveCap))).await;
    assert_eq!(spent().await, Money(0), "what failed costs nothing");
    let mut other = order_ask();
    let too_much = Money(10_000 - set_aside.0 + 1);
    other.cost_max = Some(too_much);
    sql::ask_order(&store, exported(&store).await, organisation, &other).await.unwrap();
    assert_eq!(code(&store.retry(id).await.unwrap_err()), ErrorCode::SpendCap);
    assert_eq!(record(&store, id).await.state, ORDER_FAILED);
    sql::set_spend_cap(store.sql(), organisation, "USD", Money(60_00), Money(10_001)).await.unwrap();
    store.retry(id).await.unwrap();
    assert_eq!(spent().await, Money(10_001), "it counts from then on");
}

/// Ends the order of a print with a failure that people were told of.
async fn fail_order(store: &Store, claimed: Claimed, steps: &[OrderStep]) {
    for step in steps {
        record_step(Held::new(store, &claimed.lease), step).await.unwrap();
    }
    let attention = OrderStep::Attention { reason: Attention::Refused, message: "it was refused".into() };
    record_step(Held::new(store, &claimed.lease), &attention).await.unwrap();
    finish(store, claimed, Ended::Failed(Failure::from(ErrorCode::OrderRefused))).await;
}

async fn a_lowered_limit_holds_for_an_order_that_is_tried_again(store: Store) {
    let organisation = Uuid::new_v4();
    let limit = async |cents| {
        sql::set_spend_cap(store.sql(), organisation, "USD", Money(cents), Money(100_000)).await.unwrap();
    };
    limit(60_00).await;
    let mut failed = Vec::new();
    for step_count in [0, 3] {
        let id = exported(&store).await;
        sql::ask_order(&store, id, organisation, &order_ask()).await.unwrap();
        let claimed = claim_one(&store, ORDER, worker(&store).await).await;
        fail_order(&store, claimed, &order_steps(id)[..step_count]).await;
        failed.push(id);
    }
    let [unknown, known] = failed[..] else { panic!("{failed:?}") };
    let cost = sql::order_of(store.sql(), known).await.unwrap().unwrap().cost.unwrap();
    limit(cost.0 - 1).await;
    let refused = store.retry(known).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap, "{refused}");
    assert_eq!(record(&store, known).await.state, ORDER_FAILED);
    // What it costs is not known yet: it may cost as much as one that is asked for now.
    store.retry(unknown).await.unwrap();
    assert_eq!(sql::order_of(store.sql(), unknown).await.unwrap().unwrap().cost_max, Money(cost.0 - 1));
    limit(cost.0).await;
    store.retry(known).await.unwrap();
    assert_eq!(sql::order_of(store.sql(), known).await.unwrap().unwrap().cost_max, cost);
}

async fn limits_are_listed_by_the_names_of_organisations(store: Store) {
    for name in ["zeta", "acme"] {
        store.create_key(OwnerKind::Organisation, name, "").await.unwrap();
        let id = store.organisation(name).await.unwrap().unwrap();
        sql::set_spend_cap(store.sql(), id, "USD", Money(1), Money(2)).await.unwrap();
    }
    let caps = sql::spend_caps(store.sql()).await.unwrap();
    let names: Vec<&str> = caps.iter().filter_map(|cap| cap.organisation.as_deref()).collect();
    assert_eq!(names, ["acme", "zeta"]);
}

/// Tries each statement, and expects a refusal that names what it breaks.
async fn check_nobody_refused(sql: &mut Outside, cases: &[(&str, &str)]) {
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
    check_refused(&mut database.sql, id.0, &attacks).await;
    // The engine's own way is closed as well: the end of the attempt is not written.
    let end = ending(claimed, Ended::Succeeded);
    let (fence, worker) = (end.job.lease.fence(), end.job.lease.worker());
    assert!(store.finish(vec![end]).await.is_err());
    assert_eq!(record(store, id).await.state, ORDERING);
    place(store, &Lease::granted(id, fence, worker)).await;
    let moved =
        "UPDATE job_live SET state = 'ordered', lane = NULL, worker = NULL, lease_until = NULL WHERE id = $1";
    assert_eq!(database.sql.run(moved, &[id.0]).await, Ok(1));
    let back = ["pending_export", "export_complete", "ordering"];
    for state in back.map(|state| format!("UPDATE job_live SET state = '{state}', lane = NULL WHERE id = $1"))
    {
        check_refused(&mut database.sql, id.0, &[(state.as_str(), "job_stays_ordered")]).await;
    }
    assert_eq!(sql::delivered(store, id).await.unwrap(), FULFILLED);
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
    check_refused(&mut database.sql, id.0, &attacks).await;
    if let Outside::Postgres(_) = database.sql {
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
    check_refused(&mut database.sql, id.0, &replacing).await;
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
    sql::ask_order(store, id, organisation, &order_ask()).await.unwrap();
    check_refused(&mut database.sql, id.0, ATTACKS).await;
    let frozen =
        "request = '{}', request_sha256 = '0000000000000000000000000000000000000000000000000000000000000000'";
    let dear = format!(
        "UPDATE print_orders SET {frozen}, phase = 'confirm_sent', provider_order_id = 1, cost_cents = cost_max_cents + 1
            WHERE job_id = $1"
    );
    check_refused(&mut database.sql, id.0, &[(dear.as_str(), "print_orders_within_cap")]).await;
    // A number belongs to one order.
    let taken = format!(
        "UPDATE print_orders SET {frozen}, phase = 'draft',
            provider_order_id = (SELECT provider_order_id FROM print_orders WHERE job_id = $2) WHERE job_id = $1"
    );
    let mut thefts = vec![taken.clone()];
    if let Outside::Sqlite(_) = database.sql {
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
    check_refused(&mut database.sql, unordered.0, &misnamed).await;
    let nobody = [(
        "INSERT INTO print_orders (job_id, organisation_id, external_id, asked, currency, cost_max_cents)
        VALUES ($1, $1, '00000000000000000000000000000001', '{}', 'USD', 1)",
        "job",
    )];
    check_refused(&mut database.sql, Uuid::from_u128(1), &nobody).await;
}

async fn the_queries_of_the_seed_can_be_asked(mut database: Database) {
    let store = &database.store;
    let id = ordered(store).await;
    exported(store).await;
    store.enqueue(job(PRINT)).await.unwrap();
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
    sql::set_spend_cap(store.sql(), organisation, "USD", Money(10_00), Money(30_00)).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(exported(store).await);
    }
    let asks = ids.into_iter().map(|id| {
        let store = store.clone();
        tokio::spawn(async move { sql::ask_order(&store, id, organisation, &order_ask()).await })
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
    sql::set_spend_cap(store.sql(), organisation, "USD", Money(10_000), Money(15_000)).await.unwrap();
    let first = exported(store).await;
    let cheap = OrderAsk { cost_max: Some(Money(10_00)), ..order_ask() };
    sql::ask_order(store, first, organisation, &cheap).await.unwrap();
    let second = exported(store).await;
    sql::ask_order(store, second, organisation, &order_ask()).await.unwrap();
    let refused = sql::raise_cost(store.sql(), first, Money(50_01)).await.unwrap_err();
    assert_eq!(code(&refused), ErrorCode::SpendCap, "{refused}");
    sql::raise_cost(store.sql(), first, Money(50_00)).await.unwrap();
    sql::raise_cost(store.sql(), second, Money(10_000)).await.unwrap();
}

async fn an_old_order_counts_while_it_is_under_way_and_from_when_it_is_placed(mut database: Database) {
    let Database { store, sql, .. } = &mut database;
    let organisation = Uuid::new_v4();
    sql::set_spend_cap(store.sql(), organisation, "USD", Money(10_000), Money(100_000)).await.unwrap();
    let spent = async |store: &Store| sql::spend_caps(store.sql()).await.unwrap().remove(0).spent;
    let by = if matches!(sql, Outside::Sqlite(_)) { "3456000000000" } else { "interval '40 days'" };
    let age = format!(
        "UPDATE print_orders SET created_at = created_at - {by}, updated_at = updated_at - {by}, placed_at = placed_at - {by}
        WHERE job_id = $1"
    );
    let id = exported(store).await;
    sql::ask_order(store, id, organisation, &order_ask()).await.unwrap();
    sql.run(&age, &[id.0]).await.unwrap();
    assert_eq!(spent(store).await, Money(10_000), "it may still be placed");
    let claimed = claim_one(store, ORDER, worker(store).await).await;
    fail_order(store, claimed, &[]).await;
    assert_eq!(spent(store).await, Money(0), "it was given up");
    store.retry(id).await.unwrap();
    sql.run(&age, &[id.0]).await.unwrap();
    assert_eq!(spent(store).await, Money(10_000), "it is tried again");
    let claimed = claim_one(store, ORDER, worker(store).await).await;
    finish(store, claimed, Ended::Succeeded).await;
    let cost = sql::order_of(store.sql(), id).await.unwrap().unwrap().cost.unwrap();
    assert_eq!(spent(store).await, cost, "it is placed now, whenever it was asked for");
    sql.run(&age, &[id.0]).await.unwrap();
    assert_eq!(spent(store).await, Money(0), "it was placed more than 30 days ago");
}

async fn turns_are_shared_by_all_processes(database: Database) {
    let other = Store::open(config(&database.url)).await.unwrap();
    let mut turns = 0;
    for number in 0..20 {
        let store = if number % 2 == 0 { &database.store } else { &other };
        turns += usize::from(sql::take_turn(store.sql(), "provider", 10).await.unwrap().is_none());
    }
    assert_eq!(turns, 10, "so many a minute, whoever asks");
    let wait = sql::take_turn(other.sql(), "provider", 10).await.unwrap().unwrap();
    assert!(wait <= Duration::from_secs(6), "{wait:?}");
    assert_eq!(sql::take_turn(other.sql(), "another", 10).await.unwrap(), None);
}
