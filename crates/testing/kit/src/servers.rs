//! A PostgreSQL and a Redis of our own, to be killed.

use crate::SmallDisk;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to answer.
const START_MAX: Duration = Duration::from_secs(30);

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_for_port(port: u16) {
    let began = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < START_MAX, "the server on port {port} does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A PostgreSQL server with its own data directory.
pub struct Postgres {
    directory: TempDir,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// Makes one and starts it.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let mut init = program("initdb");
        init.args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "-D"]).arg(&data);
        give_to_server(directory.path());
        let made = init.stdout(Stdio::null()).status().unwrap();
        assert!(made.success(), "initdb failed");
        let mut postgres = Postgres { directory, port: free_port(), server: None };
        postgres.run();
        postgres
    }

    /// Starts the server, again if it was killed. One that finds processes of the one before gives up at once, and is
    /// started anew until they have noticed that their parent is gone.
    pub fn run(&mut self) {
        let began = Instant::now();
        let mut server = self.spawn();
        while !self.is_ready() {
            assert!(began.elapsed() < START_MAX, "the server on port {} does not answer", self.port);
            std::thread::sleep(Duration::from_millis(20));
            if server.try_wait().unwrap().is_some() {
                server = self.spawn();
            }
        }
        self.server = Some(server);
    }

    /// Whether it takes statements: one that is starting up takes connections already.
    fn is_ready(&self) -> bool {
        let port = self.port.to_string();
        let asked = program("pg_isready").args(["-q", "-h", "127.0.0.1", "-p", &port]).status();
        asked.unwrap().success()
    }

    fn spawn(&self) -> Child {
        let data = self.directory.path().join("data");
        let mut server = program("postgres");
        server.arg("-D").arg(data).args(["-p", &self.port.to_string(), "-h", "127.0.0.1", "-k"]);
        server.arg(self.directory.path()).process_group(0);
        server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Kills the server and all its processes at once.
    pub fn kill(&mut self) {
        let mut server = self.server.take().expect("it runs");
        let group = rustix::process::Pid::from_child(&server);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        server.wait().unwrap();
    }

    /// Its first database, as superuser.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The database of this name.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// A small disk, and a directory on it that the server may write.
    pub fn small_disk(&self, megabytes: usize) -> Option<(SmallDisk, PathBuf)> {
        let disk = SmallDisk::mount(self.directory.path().join("small"), megabytes)?;
        let place = disk.path().join("space");
        std::fs::create_dir(&place).unwrap();
        give_to_server(&place);
        Some((disk, place))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}

/// PostgreSQL refuses to run as root; its programs then run as the user `postgres`, as they do in production.
fn program(name: &str) -> Command {
    let bin =
        std::env::var("ODE_TEST_PGBIN").expect("ODE_TEST_PGBIN is not set: run the tests with `tests/run`");
    let mut command = Command::new(PathBuf::from(bin).join(name));
    command.current_dir("/");
    if let Some((user, group)) = server_user() {
        command.uid(user).gid(group);
    }
    command
}

fn server_user() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("postgres:")).expect("there is a user postgres");
    let fields: Vec<&str> = line.split(':').collect();
    Some((fields[2].parse().unwrap(), fields[3].parse().unwrap()))
}

fn give_to_server(path: &Path) {
    if let Some((user, group)) = server_user() {
        std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
    }
}

/// A Redis server that keeps nothing.
pub struct Redis {
    port: u16,
    server: Option<Child>,
}

impl Redis {
    pub fn start() -> Self {
        let mut redis = Redis { port: free_port(), server: None };
        redis.run();
        redis
    }

    /// Starts it again after it was killed.
    pub fn run(&mut self) {
        let program = std::env::var("ODE_TEST_REDIS_SERVER")
            .expect("ODE_TEST_REDIS_SERVER is not set: run the tests with `tests/run`");
        let mut server = Command::new(program);
        server.args([
            "--port",
            &self.port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        self.server = Some(server.stdout(Stdio::null()).spawn().unwrap());
        wait_for_port(self.port);
    }

    pub fn kill(&mut self) {
        let mut server = self.server.take().expect("it runs");
        server.kill().unwrap();
        server.wait().unwrap();
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends one command and answers what came back, as text.
    pub fn ask(&self, words: &[&str]) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            command.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        stream.write_all(command.as_bytes()).unwrap();
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}
