//! Fresh databases, a handler that does as its input says, and waiting for what should come.

use async_trait::async_trait;
use ode_job::File;
use ode_job::{
    Claimed, ErrorCode, Failure, JobId, JobRecord, JobRef, LogLevel, NewJob, Owner, Progress, RetryPolicy,
};
use ode_store::{Blobs, BlobsConfig, Config, Store};
use ode_worker::Worker;
use ode_worker::{Context, Handler, Limits, Registry};
use serde_json::{Value, json};
use sqlx::Connection as _;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

/// Makes each behaviour a test on SQLite and a test on PostgreSQL.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::harness::Site::sqlite()).await; })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::harness::Site::postgres().await).await; })+
        }
    };
}
pub(crate) use on_both;

/// A database and a directory of its own.
pub(crate) struct Site {
    pub(crate) url: String,
    pub(crate) directory: TempDir,
}

impl Site {
    pub(crate) fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Site { url: format!("sqlite:{}", directory.path().join("ode.db").display()), directory }
    }

    pub(crate) async fn postgres() -> Self {
        let server = std::env::var("ODE_TEST_POSTGRES_URL")
            .expect("ODE_TEST_POSTGRES_URL is not set: run the tests with `tests/run`, which starts a server for them");
        Site { url: new_database(&server).await, directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn store(&self) -> Store {
        let store = open(&self.url, None, QUICK_SILENCE).await;
        store.migrate_up().await.unwrap();
        store
    }

    pub(crate) fn blobs(&self) -> Blobs {
        Blobs::open(&BlobsConfig::Local(self.directory.path().join("files"))).unwrap()
    }

    /// A worker in this process.
    pub(crate) async fn worker(&self, store: &Store) -> Worker {
        let config = ode_worker::Config { grace: Duration::from_secs(1), ..quick() };
        Worker::start(store.clone(), Some(self.blobs()), registry(), config).await.unwrap()
    }
}

/// Makes a new database on a server; answers its address.
pub(crate) async fn new_database(server: &str) -> String {
    let name = format!("ode_test_{}", Uuid::new_v4().simple());
    let began = std::time::Instant::now();
    let mut connection = loop {
        match sqlx::postgres::PgConnection::connect(server).await {
            Ok(connection) => break connection,
            // A server takes connections a little before it takes commands.
            Err(error) => assert!(began.elapsed() < PATIENCE, "the test server does not answer: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

pub(crate) const QUICK_SILENCE: Duration = Duration::from_millis(1200);

pub(crate) async fn open(url: &str, redis: Option<String>, silence_max: Duration) -> Store {
    ode_store::declare(&[&ode_html::DECLARATION, &ode_xml::DECLARATION, &ode_script::DECLARATION]).unwrap();
    Store::open(Config { redis_url: redis, silence_max, ..Config::new(url) }).await.unwrap()
}

/// The same protocol as always, in less time.
pub(crate) fn quick() -> ode_worker::Config {
    ode_worker::Config {
        renew_every: Duration::from_millis(300),
        beat_every: Duration::from_millis(200),
        ..ode_worker::Config::default()
    }
}

pub(crate) fn registry() -> Registry {
    Registry::new()
        .with(ode_html::machine::LANE, Obedient)
        .with(ode_xml::machine::LANE, Obedient)
        .with(ode_script::machine::LANE, Obedient)
}

/// Does as the input says: `ms` to take, `fail`, `reject` or `panic`, `keep` a file, tell `progress`, `log` many lines.
struct Obedient;

#[async_trait]
impl Handler for Obedient {
    fn limits(&self) -> Limits {
        let retry = RetryPolicy {
            base: Duration::from_millis(50),
            jitter_max: Duration::ZERO,
            ..RetryPolicy::default()
        };
        Limits { concurrency: 3, attempt_timeout: Duration::from_secs(60), retry }
    }

    async fn run(&self, job: &Claimed, context: &Context<'_>) -> Result<Value, Failure> {
        let input = &job.input;
        if let Some(percent) = input["progress"].as_u64() {
            let message = Some("half way".to_owned());
            context.progress(Progress {
                percent: u8::try_from(percent).unwrap(),
                message,
                step: 1,
                steps: 2,
            });
            context.log(LogLevel::Warn, "this is taking a while");
        }
        if let Some(lines) = input["log"].as_u64() {
            (0..lines).for_each(|number| context.log(LogLevel::Info, &format!("line {number}")));
        }
        if let Some(content) = input["keep"].as_str() {
            let file = File {
                role: "result".into(),
                name: "out.txt".into(),
                content_type: "text/plain".into(),
                content: content.to_owned().into(),
            };
            context.keep(vec![file]).await?;
        }
        if let Some(ms) = input["ms"].as_u64() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        if input["panic"].as_bool() == Some(true) {
            panic!("as the input says");
        }
        if let Some(times) = input["fail"].as_u64()
            && u64::from(job.attempt) <= times
        {
            return Err(Failure::retryable(ErrorCode::Gw5xx, "as the input says"));
        }
        if input["reject"].as_bool() == Some(true) {
            return Err(Failure::rejected(ErrorCode::NotPdf, "as the input says"));
        }
        Ok(json!({ "attempt": job.attempt }))
    }
}

pub(crate) fn job(input: Value) -> NewJob {
    NewJob::new(ode_html::machine::HTML, "obedient", input).owned_by(Owner::Organisation(Uuid::from_u128(1)))
}

pub(crate) async fn add(store: &Store, input: Value) -> JobId {
    store.enqueue(job(input)).await.unwrap().id()
}

/// What should come is waited for this long before the test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the job is as `is_so` says.
pub(crate) async fn wait_for(store: &Store, id: JobId, is_so: impl Fn(&JobRecord) -> bool) -> JobRecord {
    let began = std::time::Instant::now();
    loop {
        // A database that is being restarted is part of some tests.
        match store.job(JobRef::Id(id)).await {
            Ok(job) if is_so(&job) => return job,
            job => assert!(began.elapsed() < PATIENCE, "waited in vain; the job is {job:#?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
