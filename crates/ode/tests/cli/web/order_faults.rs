//! Orders while the database loses commits, is full, cuts connections, or has another clock than its workers: one order
//! and one charge for each job all the same.

use super::client::until;
use super::orders::Shop;
use crate::harness::{Ode, bare, on_both};
use crate::serve::{PATIENCE, Serving};
use ode_job::JobId;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

on_both!(
    a_database_that_lost_its_last_commits_orders_nothing_twice,
    a_step_that_finds_the_disk_full_is_made_later_and_nothing_twice,
    an_end_that_finds_the_disk_full_is_written_later,
    ten_workers_place_one_order,
    a_worker_that_is_replaced_while_it_orders_leaves_one_order,
    a_map_that_is_printed_again_while_it_is_ordered_is_two_orders,
);

/// Nobody fetches the file in these tests.
const NOWHERE: &str = "http://127.0.0.1:9";
/// A worker that waits for little.
const QUICK: [&str; 7] =
    ["worker", "--export-base", NOWHERE, "--retry-base", "0.1", "--printful-timeout", "1"];

impl Shop<'_> {
    /// A worker whose silence is noticed soon.
    pub(super) fn quick_worker(&self) -> Serving {
        Serving::start(self.quick_command().env("ODE_LOG", "error"))
    }

    pub(super) fn quick_command(&self) -> Command {
        let mut command = self.command(&QUICK);
        command.env("ODE_SILENCE", "0.6");
        command
    }

    /// The same on a way to the database of its own.
    fn quick_command_on(&self, database: &str) -> Command {
        let mut command = bare();
        command.args(QUICK).args(["--database", database]).arg("--data").arg(self.ode.data());
        command.env("ODE_PRINTFUL_TOKEN", "token").env("ODE_PRINTFUL_URL", self.url());
        command.env("ODE_LOG", "error").env("ODE_SILENCE", "0.6");
        command
    }

    /// A worker whose sessions at PostgreSQL have a setting of their own.
    pub(super) fn worker_with(&self, setting: &str, more: &[&str]) -> Serving {
        let database = format!("{}?options=-c%20{setting}", self.ode.url());
        Serving::start(self.quick_command_on(&database).args(more))
    }

    pub(super) fn assert_once(&self, job: JobId, what: &str) {
        self.until(job, "ordered");
        assert_eq!((self.told(job, "create"), self.told(job, "charge")), (1, 1), "{what}");
    }

    /// Waits until an attempt at this job was put off.
    pub(super) fn until_put_off(&self, job: JobId) {
        until("an attempt to fail", || {
            let events = self.ode.with_store(async |store| store.events(job).await.unwrap());
            events.iter().any(|event| event.meta.as_ref().is_some_and(|meta| meta["code"] == "IO_ERROR"))
        });
    }
}

/// A standby that was promoted without the last commits of its primary is such a database.
fn a_database_that_lost_its_last_commits_orders_nothing_twice(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    for point in [
        "order-frozen",
        "order-intent",
        "order-answered",
        "order-recorded",
        "order-confirmed",
        "order-placed",
    ] {
        let job = shop.exported();
        shop.order(job);
        let died = shop.quick_command().env("ODE_CRASH_AT", point).output().unwrap();
        assert!(!died.status.success(), "{point}: {died:?}");
        let before = ode.snapshot();
        let worker = shop.quick_worker();
        shop.assert_once(job, point);
        drop(worker);
        ode.restore(&before);
        assert_ne!(shop.status(job)["state"], "ordered", "{point}");
        let _worker = shop.quick_worker();
        shop.assert_once(job, point);
    }
}

/// A table into which the database puts nothing that fulfils a condition, until it is mended.
pub(super) struct Spoilt<'a> {
    ode: &'a Ode,
    name: String,
    table: &'static str,
}

impl<'a> Spoilt<'a> {
    /// On PostgreSQL the database `does` this instead.
    pub(super) fn by(
        ode: &'a Ode,
        name: String,
        (table, condition): (&'static str, &str),
        does: &str,
    ) -> Self {
        ode.sql(&format!(
            "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does} RETURN NEW; END $$;
            CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}()"
        ));
        Spoilt { ode, name, table }
    }

    /// There is no room for it.
    fn by_full_disk(ode: &'a Ode, name: String, (table, condition): (&'static str, &str)) -> Self {
        const FULL: &str =
            "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';";
        if ode.url().starts_with("postgres") {
            return Spoilt::by(ode, name, (table, condition), FULL);
        }
        ode.sql(&format!(
            "CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN {condition}
            BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        ));
        Spoilt { ode, name, table }
    }

    pub(super) fn mend(self) {
        let on = if self.ode.url().starts_with("postgres") {
            format!(" ON {}", self.table)
        } else {
            String::new()
        };
        self.ode.sql(&format!("DROP TRIGGER {}{on}", self.name));
    }
}

fn a_step_that_finds_the_disk_full_is_made_later_and_nothing_twice(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let steps = ["freeze", "create_sent", "draft", "confirm_sent", "confirmed"];
    let cases = steps.map(|step| {
        let job = shop.exported();
        shop.order(job);
        let id = match ode.url().starts_with("postgres") {
            true => format!("'{job}'"),
            false => format!("x'{}'", job.0.simple()),
        };
        let condition = format!("NEW.step = '{step}' AND NEW.job_id = {id}");
        (job, Spoilt::by_full_disk(ode, format!("full_{step}"), ("print_order_steps", &condition)))
    });
    let _worker = shop.quick_worker();
    let jobs = cases.map(|(job, spoilt)| {
        shop.until_put_off(job);
        assert_ne!(shop.status(job)["state"], "ordered");
        spoilt.mend();
        job
    });
    for (step, job) in steps.iter().zip(jobs) {
        shop.assert_once(job, step);
    }
}

fn an_end_that_finds_the_disk_full_is_written_later(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let job = shop.exported();
    shop.order(job);
    let spoilt = Spoilt::by_full_disk(ode, "full_end".into(), ("job_journal", "NEW.to_state = 'ordered'"));
    let _worker = shop.quick_worker();
    until("the charge", || shop.told(job, "charge") == 1);
    assert_ne!(shop.status(job)["state"], "ordered");
    spoilt.mend();
    shop.assert_once(job, "the end of the attempt");
}

fn ten_workers_place_one_order(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let job = shop.exported();
    let _workers: [Serving; 10] = std::array::from_fn(|_| shop.quick_worker());
    shop.order(job);
    shop.assert_once(job, "all of them saw it");
}

/// As when a new version is rolled out: the old one is told to stop while nobody knows what became of its call.
fn a_worker_that_is_replaced_while_it_orders_leaves_one_order(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let job = shop.exported();
    shop.fault("hang:create");
    shop.order(job);
    let old = shop.quick_worker();
    until("the draft", || shop.told(job, "create") == 1);
    let _new = shop.quick_worker();
    old.stop(Signal::TERM);
    shop.assert_once(job, "by the old one or the new one");
}

fn a_map_that_is_printed_again_while_it_is_ordered_is_two_orders(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let spec = ode.path("map.json");
    std::fs::write(
        &spec,
        r#"{"schema": 1, "page": {"size": "18x24", "dpi": 36}, "base": {"detail": "110m"}}"#,
    )
    .unwrap();
    let first = ode.json(["print", "export", spec.to_str().unwrap()]);
    let job = |made: &Value| JobId(made["printJobId"].as_str().unwrap().parse().unwrap());
    shop.fault("hang:create");
    shop.order(job(&first));
    let _worker = shop.quick_worker();
    until("the draft", || shop.told(job(&first), "create") == 1);
    let again = ode.json(["print", "reprint", first["printableMapId"].as_str().unwrap()]);
    shop.order(job(&again));
    assert_ne!(job(&first), job(&again));
    shop.assert_once(job(&first), "the first");
    shop.assert_once(job(&again), "the reprint");
}

/// On SQLite there are no connections that anybody else could end.
#[test]
fn connections_that_end_while_orders_are_placed_cost_time_only() {
    const ENDS: usize = 12;
    let ode = Ode::postgres();
    let shop = Shop::open(&ode, &["--no-fetch"]);
    let jobs: Vec<JobId> = (0..4).map(|_| shop.exported()).collect();
    let _worker = shop.quick_worker();
    jobs.iter().for_each(|job| shop.order(*job));
    for _ in 0..ENDS {
        ode.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    jobs.iter().for_each(|job| shop.assert_once(*job, "cut off"));
}

/// Only PostgreSQL has a clock of its own; on SQLite the clock of the machine is everybody's.
#[test]
fn workers_whose_clocks_are_an_hour_off_place_each_order_once() {
    let ode = Ode::postgres();
    let shop =
        Shop::open(&ode, &["--no-fetch", "--fault", "hang:create:2@3", "--fault", "500-after:confirm:2"]);
    let jobs: Vec<JobId> = (0..8).map(|_| shop.exported()).collect();
    let clock = wrong_clock(&ode);
    let skewed = |seconds: &str| {
        let mut command = shop.quick_command();
        Serving::start(
            command.env("ODE_LOG", "error").env("LD_PRELOAD", &clock).env("CLOCK_IS_OFF_BY", seconds),
        )
    };
    let _workers = [skewed("3600"), skewed("-3600")];
    jobs.iter().for_each(|job| shop.order(*job));
    // One that dies meanwhile is noticed by the others all the same.
    let doomed = skewed("3600");
    drop(doomed);
    for job in jobs {
        shop.assert_once(job, "an hour off");
        let history = ode.with_store(async |store| store.events(job).await.unwrap());
        let off = history.iter().map(|event| event.at.duration_since(jiff::Timestamp::now()).abs());
        assert!(off.max().is_some_and(|off| off < jiff::SignedDuration::from_mins(5)), "{history:?}");
    }
}

/// A library that shifts the clock of the process that loads it.
fn wrong_clock(ode: &Ode) -> std::path::PathBuf {
    const SOURCE: &str = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdlib.h>
        #include <time.h>
        int clock_gettime(clockid_t clock, struct timespec *at) {
            static int (*real)(clockid_t, struct timespec *);
            if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
            int answer = real(clock, at);
            const char *off = getenv("CLOCK_IS_OFF_BY");
            if (clock == CLOCK_REALTIME && off) at->tv_sec += atol(off);
            return answer;
        }"#;
    let (source, library) = (ode.path("clock.c"), ode.path("clock.so"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut compiler = Command::new("cc");
    let made =
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").output().unwrap();
    assert!(made.status.success(), "{made:?}");
    library
}

/// Only a database behind a network can be cut off while it commits.
#[test]
fn a_commit_whose_outcome_is_not_known_is_read_again() {
    let ode = Ode::postgres();
    let shop = Shop::open(&ode, &["--no-fetch"]);
    let jobs: Vec<JobId> = (0..8).map(|_| shop.exported()).collect();
    let cutter = Cutter::start(&ode);
    let _worker = Serving::start(&mut shop.quick_command_on(&cutter.url));
    jobs.iter().for_each(|job| shop.order(*job));
    let deadline = Instant::now() + PATIENCE * 3;
    while jobs.iter().any(|job| shop.status(*job)["state"] != "ordered") {
        assert!(Instant::now() < deadline, "{} commits were seen", cutter.commits.load(Ordering::Relaxed));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    jobs.iter().for_each(|job| shop.assert_once(*job, "cut off"));
    assert!(cutter.commits.load(Ordering::Relaxed) > 3 * CUT_EVERY, "too few commits were cut off");
}

/// One commit in so many is cut off: before it reaches the database, and the next time after.
const CUT_EVERY: usize = 3;

/// A way to the database that breaks while it commits.
struct Cutter {
    url: String,
    commits: Arc<AtomicUsize>,
}

impl Cutter {
    fn start(ode: &Ode) -> Self {
        let url = ode.url();
        let authority = url.split_once("://").unwrap().1.split_once('/').unwrap().0;
        let place = authority.rsplit('@').next().unwrap();
        let database: SocketAddr = std::net::ToSocketAddrs::to_socket_addrs(place).unwrap().next().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().to_string();
        let commits = Arc::new(AtomicUsize::new(0));
        let counted = commits.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(database) else { return };
                let (back, front) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let counted = counted.clone();
                std::thread::spawn(move || pass(&client, &server, Some(&counted)));
                std::thread::spawn(move || pass(&back, &front, None));
            }
        });
        Cutter { url: url.replace(place, &own), commits }
    }
}

/// Passes on what comes, until one side ends or a commit is cut off.
fn pass(mut from: &TcpStream, mut to: &TcpStream, commits: Option<&AtomicUsize>) {
    let mut piece = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let piece = &piece[..length];
        let is_commit = commits.is_some() && piece.windows(7).any(|word| word == b"COMMIT\0");
        let number =
            commits.filter(|_| is_commit).map_or(0, |commits| commits.fetch_add(1, Ordering::Relaxed) + 1);
        let is_cut = number > 0 && number.is_multiple_of(CUT_EVERY);
        let is_after = (number / CUT_EVERY).is_multiple_of(2);
        if (!is_cut || is_after) && to.write_all(piece).is_err() {
            break;
        }
        if is_cut {
            break;
        }
    }
    // The other side may be gone already.
    let _ = from.shutdown(Shutdown::Both);
    // Of a commit that was passed on, the answer must be lost, not the commit.
    let _ = to.shutdown(Shutdown::Write);
}
