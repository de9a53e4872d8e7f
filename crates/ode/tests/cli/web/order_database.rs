//! Orders while the database takes too long, has no connection left, or lets one of two who write at once begin again.

use super::client::until;
use super::order_faults::Spoilt;
use super::orders::Shop;
use crate::harness::{Ode, block_on};
use ode_job::JobId;
use sqlx::{Connection as _, PgConnection, Row as _, raw_sql};
use std::time::Duration;
use tokio::runtime::Runtime;

/// What a statement meets, as a trigger of PostgreSQL says it: longer than it may take, and somebody who wrote first.
const REFUSALS: [(&str, &str); 2] = [
    ("slow", "PERFORM pg_sleep(600);"),
    ("first", "RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';"),
];
const STEPS: [&str; 5] = ["freeze", "create_sent", "draft", "confirm_sent", "confirmed"];
/// Settings of a session in which no statement takes long; all others of a worker must end sooner on a busy machine, too.
const BRIEF: &str = "statement_timeout=3000";

/// A table that nobody else can use until this is dropped.
struct Locked {
    runtime: Runtime,
    connection: Option<PgConnection>,
}

impl Locked {
    fn table(ode: &Ode, lock: &'static str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connection = runtime.block_on(async {
            let mut connection = PgConnection::connect(&ode.url()).await.unwrap();
            raw_sql(lock).execute(&mut connection).await.unwrap();
            connection
        });
        Locked { runtime, connection: Some(connection) }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.runtime.block_on(self.connection.take().unwrap().close()).unwrap();
    }
}

fn count(ode: &Ode, sql: &'static str) -> i64 {
    block_on(async {
        let mut connection = PgConnection::connect(&ode.url()).await.unwrap();
        sqlx::query(sql).fetch_one(&mut connection).await.unwrap().get(0)
    })
}

#[test]
fn a_step_that_takes_too_long_or_comes_second_is_made_later() {
    let ode = Ode::postgres();
    let shop = Shop::open(&ode, &["--no-fetch"]);
    let mut cases = Vec::new();
    for (refusal, does) in REFUSALS {
        for step in STEPS {
            let job = shop.exported();
            shop.order(job);
            let name = format!("{refusal}_{step}");
            let condition = format!("NEW.step = '{step}' AND NEW.job_id = '{job}'");
            cases.push((job, Spoilt::by(&ode, name, ("print_order_steps", &condition), does)));
        }
    }
    let _worker = shop.worker_with(BRIEF, &[]);
    let mended = |(job, spoilt): (JobId, Spoilt)| {
        shop.until_put_off(job);
        spoilt.mend();
        job
    };
    let jobs: Vec<JobId> = cases.into_iter().map(mended).collect();
    jobs.iter().for_each(|job| shop.assert_once(*job, "made later"));
}

#[test]
fn an_end_that_takes_too_long_or_comes_second_is_written_later() {
    for (name, does) in REFUSALS {
        let ode = Ode::postgres();
        let shop = Shop::open(&ode, &["--no-fetch"]);
        let job = shop.exported();
        shop.order(job);
        let spoilt = Spoilt::by(&ode, name.into(), ("job_journal", "NEW.to_state = 'ordered'"), does);
        let _worker = shop.worker_with(BRIEF, &[]);
        until("the charge", || shop.told(job, "charge") == 1);
        spoilt.mend();
        shop.assert_once(job, name);
    }
}

/// What was sent before may be an order by now, so that no number of such tries may end the job.
#[test]
fn an_order_that_cannot_be_read_uses_up_no_try() {
    let ode = Ode::postgres();
    let shop = Shop::open(&ode, &["--no-fetch"]);
    let job = shop.exported();
    shop.order(job);
    let locked = Locked::table(&ode, "BEGIN; LOCK TABLE print_orders");
    let _worker = shop.worker_with(BRIEF, &[]);
    shop.until_put_off(job);
    drop(locked);
    assert_eq!(ode.json(["jobs", "show", &job.to_string()])["retry_count"], 0);
    shop.assert_once(job, "read at last");
}

#[test]
fn orders_without_a_free_connection_wait_for_one() {
    const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted
        AND relation = 'print_order_steps'::regclass";
    /// Longer than anybody waits for a connection before giving up.
    const EMPTY_FOR: Duration = Duration::from_secs(12);
    let ode = Ode::postgres();
    let shop = Shop::open(&ode, &["--no-fetch"]);
    let jobs: Vec<JobId> = (0..4).map(|_| shop.exported()).collect();
    jobs.iter().for_each(|job| shop.order(*job));
    let locked = Locked::table(&ode, "BEGIN; LOCK TABLE print_order_steps");
    let _worker = shop.worker_with("statement_timeout=0", &["--connections", "2"]);
    until("both connections to be in use", || count(&ode, WAITING) == 2);
    std::thread::sleep(EMPTY_FOR);
    drop(locked);
    jobs.iter().for_each(|job| shop.assert_once(*job, "connected at last"));
}

/// Under the strictest isolation the database itself chooses who has to begin again.
#[test]
fn workers_that_the_database_sets_back_place_each_order_once() {
    let ode = Ode::postgres();
    let shop = Shop::open(&ode, &["--no-fetch"]);
    let jobs: Vec<JobId> = (0..8).map(|_| shop.exported()).collect();
    let strict = || shop.worker_with("default_transaction_isolation=serializable", &[]);
    let _workers = [strict(), strict(), strict()];
    jobs.iter().for_each(|job| shop.order(*job));
    jobs.iter().for_each(|job| shop.assert_once(*job, "set back"));
}
