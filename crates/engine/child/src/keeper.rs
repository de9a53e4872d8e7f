//! The keeper: a process of our own between the supervisor and a foreign program, which loses nobody.
//!
//! A program that starts others can lose them: a browser makes itself a session of its own, a daemon forks twice,
//! and once their parent is gone they belong to init and to nobody's deadline. The keeper declares itself the
//! reaper of everything below it (`PR_SET_CHILD_SUBREAPER`), so that whatever loses its parent becomes the
//! keeper's child. It has no other children, so "no child left" is exactly "the tree is empty", and it can reap
//! whatever ends without taking a child from anybody. The supervisor could not do that itself: it would have to
//! tell strays from the children that other parts of its process have started.
//!
//! It ends the tree when the program has ended, and also when its stdin ends: because the supervisor
//! wants the end, or because it is no more. Then it ends as the program did, by the same code or signal. If the
//! supervisor is no more, it first removes the directory of the run.

use crate::Error;
use crate::handover;
use crate::limits::Grace;
use crate::process::Process;
use crate::setup::{EVENTS_FD, SETUP_VARIABLE, Setup};
use crate::tree::descendants;
use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Ending the tree is given up after this; the supervisor then looks for what is left.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at the tree while it is being ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// So often the keeper sends itself the signal that ended its program.
const SIGNAL_TRIES: u32 = 20;
/// What a shell answers for a command that could not be run.
const NOT_STARTED: i32 = 127;

/// Keeps one program, as its supervisor said in the environment. Call it from the main thread of the command that
/// the supervisor's [`keeper`](crate::Spec::kept) names. It ends the process as the program ended.
pub fn serve() -> ! {
    let code = match Keeper::start() {
        Ok(keeper) => keeper.keep(),
        Err(error) => {
            eprintln!("{error}");
            NOT_STARTED
        }
    };
    std::process::exit(code)
}

struct Keeper {
    program: i32,
    setup: Setup,
}

impl Keeper {
    fn start() -> Result<Self, Error> {
        let setup = Setup::from_environment()?;
        let [payload, events] = handover::receive(io::stdin()).map_err(Error::Descriptor)?;
        adopt_strays()?;
        crate::process::offer_to_the_kernel();
        crate::sandbox::limit_for_program(&setup.limits).map_err(Error::Descriptor)?;
        let program = spawn(&setup.program, payload, events)?;
        let grace = setup.grace;
        std::thread::spawn(move || {
            wait_for_end();
            end_step_by_step(program, grace);
        });
        Ok(Self { program, setup })
    }

    /// Reaps until the program has ended, then empties the tree and ends the same way.
    fn keep(self) -> i32 {
        let status = loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid.as_raw_pid() == self.program => break Some(status),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => break None,
            }
        };
        empty_the_tree();
        self.tidy_up();
        status.map_or(1, end_like)
    }

    /// Removes what the run wrote, unless the supervisor is there to do it, who may want to look at it first.
    fn tidy_up(&self) {
        let is_orphan = rustix::process::Pid::as_raw(rustix::process::getppid()) != self.setup.parent;
        if let Some(scratch) = self.setup.scratch.as_ref().filter(|_| is_orphan) {
            // The next supervisor that is started here finds what could not be removed.
            let _ = std::fs::remove_dir_all(scratch);
        }
    }
}

#[cfg(target_os = "linux")]
fn adopt_strays() -> Result<(), Error> {
    rustix::process::set_child_subreaper(Some(getpid())).map_err(|error| Error::Descriptor(error.into()))?;
    rustix::thread::set_no_new_privs(true).map_err(|error| Error::Descriptor(error.into()))
}

#[cfg(not(target_os = "linux"))]
fn adopt_strays() -> Result<(), Error> {
    Ok(())
}

/// Starts the program in a group of its own, with our stdout and stderr, and with what the protocol promises it.
fn spawn(program: &[String], payload: OwnedFd, events: OwnedFd) -> Result<i32, Error> {
    let (path, arguments) = program.split_first().ok_or(Error::NotAChild)?;
    let mut command = Command::new(path);
    command.args(arguments).env_remove(SETUP_VARIABLE).process_group(0).stdin(Stdio::from(payload));
    let mapping = FdMapping { parent_fd: events, child_fd: EVENTS_FD };
    // The numbers of several mappings could collide; this is one.
    command.fd_mappings(vec![mapping]).map_err(|_| Error::NotAChild)?;
    let child = command.spawn().map_err(|error| Error::Start { program: path.into(), error })?;
    Ok(child.id().cast_signed())
}

/// Nothing more is ever sent over our stdin: its end is the message.
fn wait_for_end() {
    let mut byte = [0];
    while matches!(io::stdin().read(&mut byte), Ok(1)) {}
}

/// SIGINT to the program, SIGTERM to everything, SIGKILL to everything. The main thread ends the process, and with
/// it this ladder, as soon as the program has ended.
fn end_step_by_step(program: i32, grace: Grace) {
    let keeper = getpid().as_raw_pid();
    if !grace.interrupt.is_zero() {
        if let Some(program) = Process::look(program) {
            program.signal(Signal::INT);
        }
        std::thread::sleep(grace.interrupt);
    }
    if !grace.terminate.is_zero() {
        descendants(keeper).iter().for_each(|process| process.signal(Signal::TERM));
        std::thread::sleep(grace.terminate);
    }
    loop {
        descendants(keeper).iter().for_each(|process| process.signal(Signal::KILL));
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// Kills and reaps until the kernel says that there is no child left.
fn empty_the_tree() {
    let deadline = Instant::now() + END_PATIENCE;
    while Instant::now() < deadline {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => {
                descendants(getpid().as_raw_pid()).iter().for_each(|process| process.signal(Signal::KILL));
                std::thread::sleep(LOOK_INTERVAL);
            }
            // There is no child: the tree is empty.
            Err(_) => return,
        }
    }
}

/// Ends by the signal that ended the program, or says with which code to end.
fn end_like(status: WaitStatus) -> i32 {
    let signal = status.terminating_signal();
    if let Some(signal) = signal.and_then(Signal::from_named_raw) {
        // More than once: the standard library catches the first SIGSEGV and SIGBUS, and then lets go of them.
        for _ in 0..SIGNAL_TRIES {
            // Whatever keeps it from taking effect, the code below will have to do.
            let _ = kill_process(getpid(), signal);
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
    status.exit_status().or(signal.map(|signal| 128 + signal)).unwrap_or(1)
}
