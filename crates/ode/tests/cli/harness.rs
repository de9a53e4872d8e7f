//! The binary with an installation of its own, and the few steps that nearly every test takes.

use ode_job::{Claimed, Ended, JobId, Lane, WorkerId};
use ode_store::{ClaimRequest, Config, Finish, Store};
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

/// Makes each behaviour a test on SQLite and a test on PostgreSQL, on a fresh and migrated database.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(&$crate::harness::Ode::sqlite()); })+
        }
        mod postgres {
            $(#[test] fn $name() { super::$name(&$crate::harness::Ode::postgres()); })+
        }
    };
}
pub(crate) use on_both;

/// An installation: a directory, perhaps a database elsewhere, and the binary.
pub(crate) struct Ode {
    dir: TempDir,
    database: Option<String>,
}

impl Ode {
    /// One in which there is nothing yet.
    pub(crate) fn new() -> Self {
        Ode { dir: tempfile::tempdir().unwrap(), database: None }
    }

    /// One on the embedded database.
    pub(crate) fn sqlite() -> Self {
        Ode::new().migrated()
    }

    /// One on a new database of the test server.
    pub(crate) fn postgres() -> Self {
        Ode::empty_postgres().migrated()
    }

    /// One on a PostgreSQL database in which there is nothing yet.
    pub(crate) fn empty_postgres() -> Self {
        Ode::on(new_postgres_database())
    }

    /// One on this PostgreSQL database.
    pub(crate) fn on(url: String) -> Self {
        Ode { dir: tempfile::tempdir().unwrap(), database: Some(url) }
    }

    fn migrated(self) -> Self {
        self.ok(["migrate", "up"]);
        self
    }

    /// The data directory, which may not be there.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A place for other files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The database's address.
    pub(crate) fn url(&self) -> String {
        let file = || format!("sqlite:{}", self.data().join("ode.db").display());
        self.database.clone().unwrap_or_else(file)
    }

    /// The command for this installation, with nothing from the environment that could change it.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = bare();
        command.args(args).arg("--data").arg(self.data());
        if let Some(database) = &self.database {
            command.arg("--database").arg(database);
        }
        command
    }

    /// Runs it, whatever comes of it.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::of(&mut self.command(args))
    }

    /// Runs it and answers what it printed; it must end well.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    }

    /// The same with `--json`, read as such.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        let mut command = self.command(args);
        let ran = Ran::of(command.arg("--json"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.json()
    }

    /// Adds a job and answers its reference.
    pub(crate) fn add(&self, pipeline: &str) -> String {
        self.json(["jobs", "add", pipeline, "plain"])["reference"].as_str().unwrap().to_owned()
    }

    /// Does what only a worker can do, with a store of the test's own.
    pub(crate) fn with_store<T>(&self, work: impl AsyncFnOnce(Store) -> T) -> T {
        block_on(async {
            declare();
            let store = Store::open(Config::new(self.url())).await.unwrap();
            work(store).await
        })
    }

    /// Lets a worker take the job that waits in this lane.
    pub(crate) fn start(&self, lane: Lane) {
        self.with_store(async |store| drop(claim(&store, lane).await));
    }

    /// Lets a worker take the job that waits in this lane, and end it.
    pub(crate) fn finish(&self, lane: Lane, ended: Ended) {
        self.with_store(async |store| {
            let job = claim(&store, lane).await;
            let result = (ended == Ended::Succeeded).then(|| json!({ "pages": 3 }));
            store.finish(vec![Finish { result, ..Finish::new(job, ended) }]).await.unwrap();
        });
    }

    /// Runs a statement that no verb of the store would.
    pub(crate) fn sql(&self, statement: &str) {
        run_sql(&self.url(), statement);
    }

    /// Keeps the database as it is now. Nobody may be at work on it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        if self.database.is_none() {
            let kept = tempfile::tempdir().unwrap();
            copy_database(&self.data(), kept.path());
            return Snapshot::Files(kept);
        }
        let (name, kept) = (self.database_name(), format!("ode_cli_{}", Uuid::new_v4().simple()));
        self.part(&name);
        run_sql(&postgres_server(), &format!("CREATE DATABASE {kept} TEMPLATE {name}"));
        Snapshot::Database(kept)
    }

    /// Takes everything back that was committed since.
    pub(crate) fn restore(&self, snapshot: &Snapshot) {
        match snapshot {
            Snapshot::Files(kept) => copy_database(kept.path(), &self.data()),
            Snapshot::Database(kept) => {
                let name = self.database_name();
                run_sql(&postgres_server(), &format!("DROP DATABASE {name} WITH (FORCE)"));
                run_sql(&postgres_server(), &format!("CREATE DATABASE {name} TEMPLATE {kept}"));
            }
        }
    }

    /// Ends the connections that processes left behind when they were killed.
    fn part(&self, name: &str) {
        let end = format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        );
        run_sql(&postgres_server(), &end);
    }

    /// Runs a statement as retention would: it may remove what nobody else may.
    pub(crate) fn sql_of_retention(&self, statement: &str) {
        let (open, close) = match &self.database {
            Some(_) => ("SET LOCAL ode.retention = 'on'", "SELECT 1"),
            None => ("INSERT INTO retention_pass VALUES (1)", "DELETE FROM retention_pass"),
        };
        self.sql(&format!("BEGIN; {open}; {statement}; {close}; COMMIT"));
    }

    /// The name of the database on its server.
    pub(crate) fn database_name(&self) -> String {
        self.url().rsplit('/').next().unwrap().to_owned()
    }
}

/// A database as it was at a moment.
pub(crate) enum Snapshot {
    Files(TempDir),
    Database(String),
}

/// The newest version of the schema.
pub(crate) fn schema_newest() -> i64 {
    declare();
    ode_store::schema_newest()
}

/// Makes the pipelines known to this process, which reads what the program wrote.
fn declare() {
    let declarations: Vec<_> = ode::PIPELINES.iter().map(|pipeline| pipeline.declaration()).collect();
    ode_store::declare(&declarations).unwrap();
}

/// The file of the embedded database, with what was not written back to it yet, in place of what is there.
fn copy_database(from: &Path, to: &Path) {
    for name in ["ode.db", "ode.db-wal", "ode.db-shm"] {
        // There may be none, here or there.
        let _ = std::fs::remove_file(to.join(name));
        let _ = std::fs::copy(from.join(name), to.join(name));
    }
    assert!(to.join("ode.db").exists(), "there is no database in {}", from.display());
}

/// Takes a job, as a worker of no process.
pub(crate) async fn claim(store: &Store, lane: Lane) -> Claimed {
    // Silent for so long that nobody gives it up while the test lasts.
    let (worker, silence) = (WorkerId(Uuid::new_v4()), Duration::from_secs(3600));
    store.register(worker, "test", "0").await.unwrap();
    store.beat(worker, silence, 1, false).await.unwrap();
    let (count, after, lease) = (1, Uuid::nil(), silence);
    let request = ClaimRequest { lane, worker, count, after, lease, attempt_timeout: lease };
    store.claim(request).await.unwrap().remove(0)
}

/// The job behind a reference.
pub(crate) fn id_of(ode: &Ode, reference: &str) -> JobId {
    let id = ode.json(["jobs", "show", reference])["id"].as_str().unwrap().to_owned();
    JobId(id.parse().unwrap())
}

/// The binary alone.
pub(crate) fn bare() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ode"));
    let is_ours = |name: &str| name.starts_with("ODE_") || name.starts_with("AWS_");
    for (name, _) in std::env::vars().filter(|(name, _)| is_ours(name)) {
        command.env_remove(name);
    }
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "RUST_LOG", "COLUMNS"] {
        command.env_remove(name);
    }
    // The gateway has a port of its own, which two tests at a time could not share.
    command.env("ODE_GATEWAY", "off");
    // How full this machine's disk is, is not what most tests are about.
    command.env("ODE_DISK_PAUSE", "100");
    // If there were a stack trace, it should show.
    command.env("RUST_BACKTRACE", "1").stdin(Stdio::null());
    command
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        command.output().expect("the binary runs").into()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It failed, and said so to people: in sentences, without a trace of how it is built.
    #[track_caller]
    pub(crate) fn assert_refused(&self, words: &[&str]) {
        assert!(self.code.is_some_and(|code| code != 0), "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not said: {self:?}");
        }
        self.assert_plain();
    }

    /// The same for what can never be as it was typed: nothing was done, and it ends with 2.
    #[track_caller]
    pub(crate) fn assert_wrong_use(&self, words: &[&str]) {
        self.assert_refused(words);
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self:?}");
    }

    #[track_caller]
    fn assert_plain(&self) {
        let traces =
            ["panicked", "thread '", "backtrace", "::", "Err(", "Some(", "Os {", "os error", "Error", "sqlx"];
        for trace in traces {
            assert!(!self.stderr.contains(trace), "{trace:?} is no word for people: {self:?}");
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The columns of a table, by its first line.
pub(crate) fn headings(table: &str) -> Vec<&str> {
    table.lines().next().unwrap_or_default().split_whitespace().collect()
}

/// What is in this directory, if it is there.
pub(crate) fn is_untouched(path: &Path) -> bool {
    !path.exists()
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

pub(crate) fn run_sql(url: &str, statement: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
    block_on(async {
        if url.starts_with("sqlite:") {
            let mut connection = SqliteConnection::connect(url).await.unwrap();
            statement.execute(&mut connection).await.map(drop).unwrap();
        } else {
            let mut connection = PgConnection::connect(url).await.unwrap();
            statement.execute(&mut connection).await.map(drop).unwrap();
        }
    });
}

/// Every row of every table, as text.
pub(crate) fn postgres_dump(url: &str) -> Vec<u8> {
    use sqlx::Row as _;
    block_on(async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let tables =
            "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public'";
        let tables = sqlx::query(tables).fetch_all(&mut connection).await.unwrap();
        let mut dump = Vec::new();
        for table in &tables {
            let rows = format!(
                "SELECT coalesce(string_agg(t::text, E'\\n'), '') FROM {} t",
                table.get::<String, _>(0)
            );
            let rows = sqlx::query(AssertSqlSafe(rows)).fetch_one(&mut connection).await.unwrap();
            dump.extend(rows.get::<String, _>(0).into_bytes());
        }
        assert!(!dump.is_empty());
        dump
    })
}

/// The test server's own database.
pub(crate) fn postgres_server() -> String {
    std::env::var("ODE_TEST_POSTGRES_URL").expect(
        "ODE_TEST_POSTGRES_URL is not set: run the tests with `tests/run`, which starts a server for them",
    )
}

fn new_postgres_database() -> String {
    let server = postgres_server();
    let name = format!("ode_cli_{}", Uuid::new_v4().simple());
    run_sql(&server, &format!("CREATE DATABASE {name}"));
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}
