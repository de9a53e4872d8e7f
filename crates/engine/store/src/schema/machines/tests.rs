use super::*;
use crate::schema::migrate::{self, Migration};
use crate::{Config, Store, plans};
use ode_job::{Edge, Machine};

const WAITING: State = State::new("waiting");
const WORKING: State = State::new("working");
const MADE: State = State::new("made");
const BROKEN: State = State::new("broken");
const SENT: State = State::new("sent");

const EDGES: [Edge; 6] = [
    Edge::new(WAITING, Event::Started, WORKING),
    Edge::new(WAITING, Event::Cancelled, BROKEN),
    Edge::new(WORKING, Event::Released, WAITING),
    Edge::new(WORKING, Event::Failed, BROKEN),
    Edge::new(WORKING, Event::Succeeded, MADE),
    Edge::new(MADE, Event::Delivered, SENT),
];

const fn machine(name: &'static str, states: &'static [Standing], edges: &'static [Edge]) -> Machine {
    Machine { name, article: "A", initial: WAITING, is_early_initial: false, states, edges }
}

static FIRST: Declaration = Declaration::new(Pipeline::new(&machine(
    "first",
    &[
        Standing::ready(WAITING, "first"),
        Standing::running(WORKING, "first"),
        Standing::failed(BROKEN),
        Standing::done(MADE),
    ],
    EDGES.split_at(5).0,
)));

/// Its lane and its table come later; what is an end in the first pipeline is a state on the way here.
static LATER: Declaration = Declaration {
    migrations: &[Migration {
        name: "0001_later",
        up: ["CREATE TABLE later_thing (id bigint)", "CREATE TABLE later_thing (id INTEGER) STRICT"],
        down: ["DROP TABLE later_thing", "DROP TABLE later_thing"],
    }],
    ..Declaration::new(Pipeline::new(&machine(
        "later",
        &[
            Standing::ready(WAITING, "later.make"),
            Standing::running(WORKING, "later.make"),
            Standing::failed(BROKEN),
            Standing::held(MADE),
            Standing::done(SENT),
        ],
        &EDGES,
    )))
};

/// One that another program has.
static OTHER: Declaration = Declaration::new(Pipeline::new(&machine(
    "other",
    &[
        Standing::ready(WAITING, "other"),
        Standing::running(WORKING, "other"),
        Standing::failed(BROKEN),
        Standing::done(MADE),
    ],
    EDGES.split_at(5).0,
)));

fn new_ids(store: &Store) -> &'static str {
    match store.dialect() {
        Dialect::Postgres => "gen_random_uuid(), '00000000-0000-0000-0000-000000000000'",
        Dialect::Sqlite => "randomblob(16), zeroblob(16)",
    }
}

/// Stores a live job, and expects the refusal that names this rule, or none.
async fn check(store: &Store, pipeline: &str, state: &str, lane: &str, broken: Option<&str>) {
    let ids = new_ids(store);
    let insert = format!(
        "INSERT INTO job_live (id, owner, pipeline, kind, input, state, history, lane)
        VALUES ({ids}, '{pipeline}', 'plain', '{{}}', '{state}', '1', {lane})"
    );
    let stored = store.db().write(insert.leak(), params![]).await;
    let refusal = stored.err().map(|error| error.to_string());
    let is_expected = match (&refusal, broken) {
        (Some(refusal), Some(rule)) => refusal.contains(rule),
        (refusal, rule) => refusal.is_none() && rule.is_none(),
    };
    assert!(is_expected, "{pipeline} {state} {lane}: {refusal:?} in place of {broken:?}");
}

#[track_caller]
fn assert_schema<T: std::fmt::Debug>(outcome: Result<T, Error>, expected: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Schema(_)) && error.to_string().contains(expected), "{error:?}");
}

async fn a_pipeline_that_comes_later_is_known_from_then_on(store: Store) {
    let db = store.db();
    let (before, both): (&[&Declaration], &[&Declaration]) = (&[&FIRST], &[&FIRST, &LATER]);
    let state_rule = Some("job_live_state_of_pipeline");
    assert_eq!(migrate::up(db, before).await.unwrap(), [1]);
    migrate::check(db, before).await.unwrap();
    check(&store, "first", "waiting", "'first'", None).await;
    check(&store, "first", "made", "NULL", state_rule).await;
    check(&store, "later", "made", "NULL", state_rule).await;

    assert_schema(migrate::check(db, both).await, "1 schema version(s) behind");
    assert_eq!(migrate::up(db, both).await.unwrap(), [2]);
    migrate::check(db, both).await.unwrap();
    check(&store, "first", "waiting", "'first'", None).await;
    check(&store, "later", "waiting", "'later.make'", None).await;
    check(&store, "later", "waiting", "'first'", Some("job_live_lane_of_pipeline")).await;
    check(&store, "later", "working", "'later.make'", Some("job_live_running_is_leased")).await;
    check(&store, "later", "made", "NULL", None).await;
    check(&store, "later", "made", "'later.make'", Some("job_live_running_is_leased")).await;
    check(&store, "later", "sent", "NULL", state_rule).await;
    check(&store, "first", "made", "NULL", state_rule).await;
    check(&store, "later", "nowhere", "NULL", state_rule).await;
    check(&store, "other", "waiting", "NULL", state_rule).await;

    for program in [before, &[]] {
        assert_schema(migrate::up(db, program).await, "Use a newer ode; nothing was changed.");
    }
    assert_eq!(migrate::down(db, both, 1).await.unwrap().versions, [2]);
    assert_schema(
        migrate::check(db, before).await,
        "the pipeline \"later\", which this program does not know",
    );
    check(&store, "later", "made", "NULL", None).await;
    let others: &[&Declaration] = &[&FIRST, &OTHER];
    assert_schema(
        migrate::up(db, others).await,
        "Run a program that has this pipeline; nothing was changed.",
    );
    if store.dialect() == Dialect::Postgres {
        let lanes = "SELECT 1 AS one FROM pg_enum WHERE enumlabel = 'other'";
        assert!(db.read(lanes, params![]).await.unwrap().is_empty(), "a lane was left behind");
    }
    assert_eq!(migrate::up(db, both).await.unwrap(), [2]);
    assert_eq!(migrate::down(db, both, 0).await.unwrap().versions, [2, 1]);
}

/// A program that tries another pipeline on a database does not keep it for itself, unless jobs of it are there.
async fn a_pipeline_without_jobs_is_forgotten_by_a_program_without_it(store: Store) {
    let db = store.db();
    let (before, both): (&[&Declaration], &[&Declaration]) = (&[&FIRST], &[&FIRST, &OTHER]);
    assert_eq!(migrate::up(db, both).await.unwrap(), [1]);
    assert_schema(migrate::check(db, before).await, "Run `ode migrate up`");
    assert_eq!(migrate::up(db, before).await.unwrap(), [0; 0]);
    migrate::check(db, before).await.unwrap();
    check(&store, "first", "waiting", "'first'", None).await;
    check(&store, "other", "waiting", "'other'", Some("job_live_state_of_pipeline")).await;

    assert_eq!(migrate::up(db, both).await.unwrap(), [0; 0]);
    check(&store, "other", "waiting", "'other'", None).await;
    let advice = "jobs of the pipeline \"other\", which this program does not know. Run a program that has this pipeline";
    assert_schema(migrate::check(db, before).await, advice);
    assert_schema(migrate::up(db, before).await, advice);
    migrate::check(db, both).await.unwrap();
}

/// A database that was made with the machines of before is brought up to date, without a version of its own.
async fn a_machine_that_changes_is_known_from_then_on(store: Store) {
    static CHANGED: Declaration = Declaration::new(LATER_MACHINE_AS_FIRST);
    const LATER_MACHINE_AS_FIRST: Pipeline = Pipeline::new(&machine(
        "first",
        &[
            Standing::ready(WAITING, "first"),
            Standing::running(WORKING, "first"),
            Standing::failed(BROKEN),
            Standing::held(MADE),
            Standing::done(SENT),
        ],
        &EDGES,
    ));
    let db = store.db();
    assert_eq!(migrate::up(db, &[&FIRST]).await.unwrap(), [1]);
    check(&store, "first", "made", "NULL", Some("job_live_state_of_pipeline")).await;
    assert_schema(migrate::check(db, &[&CHANGED]).await, "Run `ode migrate up`");
    assert_eq!(migrate::up(db, &[&CHANGED]).await.unwrap(), [0; 0]);
    migrate::check(db, &[&CHANGED]).await.unwrap();
    check(&store, "first", "made", "NULL", None).await;
    check(&store, "first", "sent", "NULL", Some("job_live_state_of_pipeline")).await;
}

async fn sqlite() -> Store {
    Store::open(Config::new("sqlite::memory:")).await.unwrap()
}

#[tokio::test]
async fn a_pipeline_that_comes_later_is_known_from_then_on_on_sqlite() {
    a_pipeline_that_comes_later_is_known_from_then_on(sqlite().await).await;
}

#[tokio::test]
async fn a_pipeline_that_comes_later_is_known_from_then_on_on_postgres() {
    a_pipeline_that_comes_later_is_known_from_then_on(plans::empty_postgres().await).await;
}

#[tokio::test]
async fn a_pipeline_without_jobs_is_forgotten_by_a_program_without_it_on_sqlite() {
    a_pipeline_without_jobs_is_forgotten_by_a_program_without_it(sqlite().await).await;
}

#[tokio::test]
async fn a_pipeline_without_jobs_is_forgotten_by_a_program_without_it_on_postgres() {
    a_pipeline_without_jobs_is_forgotten_by_a_program_without_it(plans::empty_postgres().await).await;
}

#[tokio::test]
async fn a_machine_that_changes_is_known_from_then_on_on_sqlite() {
    a_machine_that_changes_is_known_from_then_on(sqlite().await).await;
}

#[tokio::test]
async fn a_machine_that_changes_is_known_from_then_on_on_postgres() {
    a_machine_that_changes_is_known_from_then_on(plans::empty_postgres().await).await;
}

#[test]
fn a_database_without_pipelines_has_rules_that_can_be_read() {
    for dialect in [Dialect::Postgres, Dialect::Sqlite] {
        let sql = Made::new(dialect, &[]).sql;
        assert!(!sql.contains("IN ()") && !sql.contains("VALUES )"), "{sql}");
    }
}
