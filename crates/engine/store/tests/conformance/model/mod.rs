//! Random lives of jobs, led three times: in a model made of nothing but `ode_job`, on SQLite and on
//! PostgreSQL. After every step all three must tell the same story of every job.
//!
//! A counterexample is printed as commands; it stays here as a plain test through [`replay`].

mod lives;
mod pure;
mod sides;
mod words;

use crate::harness::config;
use crate::harness::postgres_url;
use crate::machines::pipeline;
use futures_util::future::join;
use lives::life;
use ode_store::{Config, Store};
use proptest::test_runner::{Config as Cases, TestCaseError, TestRunner};
use pure::{Job, Model};
use sides::Side;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use std::time::Duration;
use words::{Answer, Ask, Command, End, Step, Story};

/// As many as run in a few seconds without optimisation.
const CASES: u32 = 40;

/// Leads one life three times, and says where they part.
async fn check(postgres: &Store, commands: &[Command]) -> Result<(), String> {
    let sqlite = Store::open(patient("sqlite::memory:".into())).await.unwrap();
    sqlite.migrate_up().await.unwrap();
    let mut model = Model::new();
    let mut sides = [Side::new("SQLite", sqlite), Side::new("PostgreSQL", postgres.clone())];
    for side in &sides {
        for worker in model.workers {
            side.store.register(worker, "test", "0").await.unwrap();
        }
    }
    for (number, command) in commands.iter().enumerate() {
        let Some(step) = model.resolve(*command) else { continue };
        let answer = model.act(step);
        let stories: Vec<Story> = model.jobs.iter().map(Job::story).collect();
        let [one, two] = &mut sides;
        let (one, two) = join(follow(one, step), follow(two, step)).await;
        for (name, found) in [("SQLite", one), ("PostgreSQL", two)] {
            let (said, told) =
                found.map_err(|error| format!("step {number}, {step:?}: {name} said {error}"))?;
            if said != answer {
                return Err(format!("step {number}, {step:?}: the model said {answer:?}, {name} {said:?}"));
            }
            if let Some(job) = (0..stories.len()).find(|job| told.get(*job) != stories.get(*job)) {
                let (model, store) = (&stories[job], told.get(job));
                return Err(format!(
                    "step {number}, {step:?}, job {job}: the model tells {model:?}, {name} {store:?}"
                ));
            }
        }
    }
    Ok(())
}

async fn follow(side: &mut Side, step: Step) -> Result<(Answer, Vec<Story>), String> {
    let answer = side.act(step).await.map_err(|error| error.to_string())?;
    let stories = side.stories().await.map_err(|error| format!("{error}, reading {}", side.name))?;
    Ok((answer, stories))
}

/// Nobody falls silent here unless told to.
fn patient(url: String) -> Config {
    Config { silence_max: Duration::from_secs(3600), ..config(url) }
}

/// One PostgreSQL database for all cases, emptied before each.
struct Bench {
    runtime: tokio::runtime::Runtime,
    postgres: Store,
    url: String,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (postgres, url) = runtime.block_on(async {
            let url = postgres_url().await;
            // What is compared is not lost with the server, and this makes it twice as fast.
            let name = url.rsplit_once('/').unwrap().1;
            let hasty = sqlx::AssertSqlSafe(format!("ALTER DATABASE {name} SET synchronous_commit = off"));
            let mut sql = PgConnection::connect(&url).await.unwrap();
            sqlx::raw_sql(hasty).execute(&mut sql).await.unwrap();
            let store = Store::open(patient(url.clone())).await.unwrap();
            store.migrate_up().await.unwrap();
            (store, url)
        });
        Bench { runtime, postgres, url }
    }

    fn check(&self, commands: &[Command]) -> Result<(), String> {
        self.runtime.block_on(async {
            let mut sql = PgConnection::connect(&self.url).await.unwrap();
            let empty =
                "SET ode.retention = 'on'; SET ode.engine = 'on'; TRUNCATE job_past, job_live, job_key, worker";
            sqlx::raw_sql(empty).execute(&mut sql).await.unwrap();
            check(&self.postgres, commands).await
        })
    }
}

/// Leads one life that once told three stories.
#[track_caller]
fn replay(commands: &[Command]) {
    if let Err(difference) = Bench::new().check(commands) {
        panic!("{difference}");
    }
}

#[test]
fn the_model_and_both_stores_tell_the_same_story() {
    let bench = Bench::new();
    let cases = Cases { cases: CASES, failure_persistence: None, max_shrink_iters: 400, ..Cases::default() };
    let outcome =
        TestRunner::new(cases).run(&life(), |commands| bench.check(&commands).map_err(TestCaseError::fail));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn a_full_life_is_told_alike() {
    let print = Ask {
        pipeline: pipeline::PRINT,
        owner: 1,
        priority: 0,
        retries_max: 1,
        advance: true,
        is_later: false,
    };
    let claim = Command::Claim { pick: 1, worker: 0, count: 1 };
    let finish = |end| Command::Finish { pick: 0, end, is_soon: true };
    replay(&[
        Command::Enqueue(print),
        claim,
        finish(End::Broken),
        Command::Promote,
        claim,
        finish(End::Rejected),
        Command::Retry(0),
        claim,
        Command::Stop(0),
        Command::Held(0),
        Command::Lose(0),
        Command::Retry(0),
        claim,
        Command::Lose(0),
        claim,
        finish(End::Succeeded),
        claim,
        Command::FinishLate { pick: 0, end: End::Succeeded },
        finish(End::TimedOut),
        Command::Advance(0),
        claim,
        finish(End::Succeeded),
        Command::Deliver(0),
        Command::Retry(0),
    ]);
}
