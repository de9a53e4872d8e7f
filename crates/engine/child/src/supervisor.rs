//! Starts children, ready to be fed: with nothing of ours but what they need, in a group of their own.

use crate::Error;
use crate::handover;
use crate::limits::{Grace, Limits};
use crate::process::Process;
use crate::sandbox::Sandbox;
use crate::setup::{
    EVENTS_FD, EVENTS_VARIABLE, PROTOCOL, PROTOCOL_VARIABLE, RUN_VARIABLE, SETUP_VARIABLE, Setup,
};
use crate::tree::{Record, end_orphan};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// How much longer than its graces a keeper may take before it is itself ended.
const KEEPER_PATIENCE: Duration = Duration::from_secs(12);
/// A killed process is gone within this, unless the kernel itself is stuck.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks at a process, should the system not be willing to tell of its end.
const EXIT_INTERVAL: Duration = Duration::from_millis(2);

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file to run.
    pub path: PathBuf,
    /// What to tell it. Never a secret: everybody on the machine can read it.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// A program by its path.
    pub fn new(path: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { path: path.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// This very binary, the version that is running, even if its file has been replaced since.
    pub fn this_binary(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, Error> {
        let path = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().map_err(|error| Error::Start { program: "ode".into(), error })?
        };
        Ok(Self::new(path, arguments))
    }
}

/// What to start and how to treat it.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program that does the work.
    pub program: Program,
    /// Our own binary as a keeper, if the program is a foreign one.
    pub keeper: Option<Program>,
    /// Variables that it sees besides those of the protocol. Default: none at all.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts. Default: the root directory, which is nobody's.
    pub directory: PathBuf,
    /// Whether that directory is this run's own. A keeper whose supervisor is gone removes it at the end.
    pub is_directory_own: bool,
    /// What it may use.
    pub limits: Limits,
    /// How patiently it is ended.
    pub grace: Grace,
    /// Whether it locks itself in; a kept program never does.
    pub sandbox: Sandbox,
}

impl Spec {
    /// Our own binary, which calls [`child::serve`](crate::child::serve): locked in, and killed without grace.
    pub fn own(program: Program) -> Self {
        Self {
            program,
            keeper: None,
            environment: Vec::new(),
            directory: "/".into(),
            is_directory_own: false,
            limits: Limits::default(),
            grace: Grace::NONE,
            sandbox: Sandbox::Required,
        }
    }

    /// A foreign program below a keeper, which is our own binary calling [`keeper::serve`](crate::keeper::serve).
    pub fn kept(keeper: Program, program: Program) -> Self {
        Self {
            keeper: Some(keeper),
            limits: Limits::program(),
            grace: Grace::PATIENT,
            sandbox: Sandbox::Off,
            ..Self::own(program)
        }
    }

    fn setup(&self) -> Result<Setup, Error> {
        let mut program = Vec::new();
        if self.keeper.is_some() {
            program.push(self.program.path.to_str().ok_or(Error::ProgramName)?.to_owned());
            for argument in &self.program.arguments {
                program.push(argument.to_str().ok_or(Error::ProgramName)?.to_owned());
            }
        }
        Ok(Setup {
            parent: std::process::id().cast_signed(),
            sandbox: self.sandbox,
            limits: self.limits.clone(),
            grace: self.grace,
            program,
            scratch: (self.keeper.is_some() && self.is_directory_own).then(|| self.directory.clone()),
        })
    }

    fn command(&self, run: &str) -> Result<Command, Error> {
        let started = self.keeper.as_ref().unwrap_or(&self.program);
        let mut command = Command::new(&started.path);
        command.args(&started.arguments).env_clear().current_dir(&self.directory).process_group(0);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(PROTOCOL_VARIABLE, PROTOCOL.to_string()).env(EVENTS_VARIABLE, EVENTS_FD.to_string());
        let setup = serde_json::to_string(&self.setup()?).map_err(io::Error::from)?;
        command.env(RUN_VARIABLE, run).env(SETUP_VARIABLE, setup);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

/// Starts children. Cheap to clone; needs a tokio runtime.
#[derive(Debug, Clone)]
pub struct Supervisor {
    launcher: Arc<Launcher>,
}

/// A child to be started.
struct Order {
    command: Command,
    is_kept: bool,
    reply: oneshot::Sender<io::Result<Newborn>>,
}

/// The one thread that starts children.
///
/// The kernel's promise to end a child with its parent is about the parent's *thread*: a child started from a
/// thread of a pool would be killed when the pool lets that thread go. This one lives as long as any child does.
#[derive(Debug)]
struct Launcher {
    orders: std::sync::mpsc::Sender<Order>,
}

impl Launcher {
    fn start() -> io::Result<Self> {
        let (orders, received) = std::sync::mpsc::channel::<Order>();
        std::thread::Builder::new().name("ode-child".to_owned()).spawn(move || {
            for Order { mut command, is_kept, reply } in received {
                let started = command.spawn().map(|child| Newborn { child: Some(child), is_kept });
                // The command holds our copy of the child's end of its stdin.
                drop(command);
                // Whoever ordered it may have gone, and then dropping it ends it.
                let _ = reply.send(started);
            }
        })?;
        Ok(Self { orders })
    }

    async fn launch(&self, command: Command, is_kept: bool) -> Result<Newborn, Error> {
        let program = PathBuf::from(command.get_program());
        let (reply, answer) = oneshot::channel();
        self.orders.send(Order { command, is_kept, reply }).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?.map_err(|error| Error::Start { program, error })
    }
}

/// A child that is not on its leash yet. It is on its way between two threads, and whoever ordered it may give up
/// at any moment, even after it was sent: dropping it ends and reaps it.
struct Newborn {
    child: Option<Child>,
    is_kept: bool,
}

impl Drop for Newborn {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if !self.is_kept {
            // It may have ended by itself, and then there is only to reap it. A keeper always ends by itself, in
            // order, because its stdin has ended.
            let _ = child.kill();
        }
        std::thread::spawn(move || child.wait());
    }
}

impl Supervisor {
    /// Gets ready to start children.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { launcher: Arc::new(Launcher::start()?) })
    }

    /// Starts a child, which prepares itself, locks itself in and waits for its payload. Dropping it ends it.
    pub async fn start(&self, spec: &Spec) -> Result<Waiting, Error> {
        let run = uuid::Uuid::new_v4().simple().to_string();
        let mut command = spec.command(&run)?;
        let (control, control_child) = UnixStream::pair()?;
        command.stdin(Stdio::from(OwnedFd::from(control_child)));
        let (payload_child, payload) = io::pipe()?;
        let (events, events_child) = io::pipe()?;
        let files = if spec.keeper.is_none() { Some(Files::in_memory()?) } else { None };
        match &files {
            Some(Files { input, output }) => handover::send(
                &control,
                &[payload_child.as_fd(), events_child.as_fd(), input.as_fd(), output.as_fd()],
            )?,
            None => handover::send(&control, &[payload_child.as_fd(), events_child.as_fd()])?,
        }
        drop((payload_child, events_child));
        let mut newborn = self.launcher.launch(command, spec.keeper.is_some()).await?;
        let mut child = newborn.child.take().ok_or(Error::Closed)?;
        let logs = (child.stdout.take(), child.stderr.take());
        // From here on, whatever fails, the leash ends the child.
        let leash = Leash {
            record: Record::of(child.id().cast_signed(), run),
            child: Some(child),
            control: Some(control),
            is_kept: spec.keeper.is_some(),
            _launcher: Arc::clone(&self.launcher),
        };
        let pipes = Pipes::new(payload.into(), events.into(), logs)?;
        Ok(Waiting { leash, pipes, files, limits: spec.limits.clone(), grace: spec.grace })
    }
}

/// A child that has been started and waits for its payload: feed it with [`run`](Waiting::run).
pub struct Waiting {
    pub(crate) leash: Leash,
    pub(crate) pipes: Pipes,
    pub(crate) files: Option<Files>,
    pub(crate) limits: Limits,
    pub(crate) grace: Grace,
}

impl Waiting {
    /// What to store so that the run can be ended even if this process dies.
    pub fn record(&self) -> &Record {
        &self.leash.record
    }

    /// With another time to run, other bounds on what it says, and another bound on its memory. What binds the
    /// process itself was set when it was started.
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Whether it is still there.
    pub fn is_alive(&self) -> bool {
        !self.leash.has_exited()
    }
}

/// Our ends of the pipes.
pub(crate) struct Pipes {
    pub(crate) payload: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
    pub(crate) events: pipe::Receiver,
}

impl Pipes {
    fn new(
        payload: OwnedFd,
        events: OwnedFd,
        logs: (Option<ChildStdout>, Option<ChildStderr>),
    ) -> io::Result<Self> {
        let (Some(stdout), Some(stderr)) = logs else { return Err(io::ErrorKind::BrokenPipe.into()) };
        Ok(Self {
            payload: pipe::Sender::from_owned_fd(payload)?,
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
            events: pipe::Receiver::from_owned_fd(events)?,
        })
    }
}

/// What our own child reads from and writes to.
pub(crate) struct Files {
    pub(crate) input: File,
    pub(crate) output: File,
}

impl Files {
    fn in_memory() -> io::Result<Self> {
        Ok(Self { input: file_in_memory("input")?, output: file_in_memory("output")? })
    }
}

/// A file that is nowhere but in memory, and that no name leads to.
#[cfg(target_os = "linux")]
fn file_in_memory(name: &str) -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create(format!("ode-{name}"), MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

#[cfg(not(target_os = "linux"))]
fn file_in_memory(_name: &str) -> io::Result<File> {
    tempfile::tempfile()
}

/// The hold on a started process: to see it end, to end it, and to reap it, whatever happens to the caller.
pub(crate) struct Leash {
    /// Taken when it has been reaped.
    child: Option<Child>,
    /// Our end of the child's stdin. A keeper takes its end for the wish to end the tree.
    control: Option<UnixStream>,
    is_kept: bool,
    record: Record,
    /// The thread that started it must not end before it does.
    _launcher: Arc<Launcher>,
}

impl Leash {
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.record.pid)
    }

    fn has_exited(&self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        self.pid().is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
    }

    /// Waits until the process has ended. It is left unreaped, so that its number and its group stay its own.
    pub(crate) async fn exited(&self) {
        // Asked for before the first look, so that no end falls between the two.
        let mut children_change = signal(SignalKind::child());
        while !self.has_exited() {
            match &mut children_change {
                Ok(change) => {
                    // It only ends with the runtime.
                    let _ = change.recv().await;
                }
                Err(_) => tokio::time::sleep(EXIT_INTERVAL).await,
            }
        }
    }

    /// Ends the process, step by step, and waits until it has ended.
    pub(crate) async fn end(&mut self, grace: Grace) -> Result<(), Error> {
        if self.is_kept {
            self.control = None;
            if self.exits_within(grace.total() + KEEPER_PATIENCE).await {
                return Ok(());
            }
        } else {
            // The group has one member as long as the child is locked in.
            for (signal, patience) in [(Signal::INT, grace.interrupt), (Signal::TERM, grace.terminate)] {
                if !patience.is_zero() {
                    self.signal_group(signal);
                    if self.exits_within(patience).await {
                        return Ok(());
                    }
                }
            }
        }
        self.signal_group(Signal::KILL);
        if self.exits_within(KILL_PATIENCE).await {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::TimedOut).into())
        }
    }

    async fn exits_within(&self, patience: Duration) -> bool {
        tokio::time::timeout(patience, self.exited()).await.is_ok()
    }

    /// Signals the process and what is still in its group. Only before it is reaped: then the number is its own.
    fn signal_group(&self, signal: Signal) {
        if let Some(pid) = self.pid().filter(|_| self.child.is_some()) {
            // An error means that nobody is there any more.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Reaps the process after it has ended, and says what processor time it used.
    pub(crate) fn reap(&mut self) -> Result<(ExitStatus, Duration), Error> {
        let cpu = Process::look(self.record.pid).map_or(Duration::ZERO, |process| process.cpu);
        // Whoever stayed behind in its group goes with it.
        self.signal_group(Signal::KILL);
        let child = self.child.as_mut().ok_or(Error::Closed)?;
        let status = child.wait()?;
        self.child = None;
        Ok((status, cpu))
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if self.child.is_none() {
            return;
        }
        if !self.is_kept {
            self.signal_group(Signal::KILL);
        }
        self.control = None;
        let Some(mut child) = self.child.take() else { return };
        let (record, is_kept) = (self.record.clone(), self.is_kept);
        // A keeper takes its time, and even a killed process is not gone at once.
        std::thread::spawn(move || {
            // An error means that it has been reaped already.
            let _ = child.wait();
            if is_kept {
                end_orphan(&record);
            }
        });
    }
}
