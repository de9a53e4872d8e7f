//! A child that has been taken over tries every way out. Each is tried from an open child first, where it must not
//! be refused: an attempt that fails anyway would show nothing.

use crate::harness::{limited, result, run, worker};
use crate::parts::{Act, Door};
use ode_child::child::Reporter;
use ode_child::{Enforcement, Limits, Sandbox, Spec};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::Command;

type Attempt<'a> = Box<dyn FnOnce() -> io::Result<()> + 'a>;

/// Tries everything and tells what each attempt met with: nothing, a refusal, or another error.
pub(crate) fn attempts(door: &Door, leaked: File, _reporter: &mut Reporter) -> serde_json::Value {
    let mut attempts = files(door);
    attempts.extend(network(door));
    attempts.extend(processes(door));
    attempts.extend(kernel(leaked));
    let met: BTreeMap<&str, Option<String>> = attempts
        .into_iter()
        .map(|(name, attempt)| {
            let met = attempt().err();
            (name, met.map(|error| if is_refusal(&error) { "refused".to_owned() } else { error.to_string() }))
        })
        .collect();
    serde_json::to_value(met).unwrap()
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}

fn attempt<'a, T>(
    name: &'static str,
    try_it: impl FnOnce() -> io::Result<T> + 'a,
) -> (&'static str, Attempt<'a>) {
    (name, Box::new(|| try_it().map(drop)))
}

fn files(door: &Door) -> Vec<(&'static str, Attempt<'_>)> {
    let inside = |name: &str| door.directory.join(name);
    vec![
        attempt("read a file", || File::open("/etc/passwd")),
        attempt("look at a file", || std::fs::metadata("/etc/passwd")),
        attempt("look at a link", || std::fs::read_link("/proc/self/exe")),
        attempt("list a directory", || std::fs::read_dir("/")),
        attempt("change the directory", || std::env::set_current_dir("/")),
        attempt("read the environment of the parent", || {
            File::open(format!("/proc/{}/environ", door.parent))
        }),
        attempt("open its own memory", || File::options().write(true).open("/proc/self/mem")),
        attempt("make a file", move || File::create(inside("new"))),
        attempt("make a directory", move || std::fs::create_dir(inside("directory"))),
        attempt("make a link", move || std::os::unix::fs::symlink("/etc/passwd", inside("link"))),
        attempt("rename a file", move || std::fs::rename(inside("there"), inside("moved"))),
        attempt("remove a file", move || std::fs::remove_file(inside("doomed"))),
    ]
}

fn network(door: &Door) -> Vec<(&'static str, Attempt<'_>)> {
    vec![
        attempt("connect", || std::net::TcpStream::connect(("127.0.0.1", door.port))),
        attempt("listen", || std::net::TcpListener::bind("127.0.0.1:0")),
        attempt("send packets", || std::net::UdpSocket::bind("127.0.0.1:0")),
        attempt("make a local socket", UnixDatagram::unbound),
        attempt("make a pair of sockets", UnixStream::pair),
    ]
}

fn processes(door: &Door) -> Vec<(&'static str, Attempt<'_>)> {
    use nix::unistd::Pid as Number;
    use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
    let parent = Pid::from_raw(door.parent).unwrap();
    vec![
        attempt("start a thread", || std::thread::Builder::new().spawn(|| ())),
        attempt("start a process", || Command::new("/bin/true").status()),
        // It is not there, so that an open child is not replaced.
        attempt("become another program", || Err::<(), _>(Command::new("/nowhere/at/all").exec())),
        attempt("signal the parent", move || Ok(test_kill_process(parent)?)),
        attempt("hold the parent", move || Ok(pidfd_open(parent, PidfdFlags::empty())?)),
        // Nobody has this number, so that an open child traces nobody.
        attempt("trace a process", || Ok(nix::sys::ptrace::attach(Number::from_raw(i32::MAX))?)),
        attempt("leave the group", || Ok(nix::unistd::setpgid(Number::from_raw(0), Number::from_raw(0))?)),
        attempt("change the user", || Ok(nix::unistd::setuid(nix::unistd::getuid())?)),
    ]
}

fn kernel(mut leaked: File) -> Vec<(&'static str, Attempt<'static>)> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    vec![
        attempt("use io_uring", || io_uring::IoUring::new(2)),
        attempt("make a file in memory", || {
            Ok(rustix::fs::memfd_create("escape", rustix::fs::MemfdFlags::CLOEXEC)?)
        }),
        attempt("make a pipe", io::pipe),
        attempt("copy a descriptor", || Ok(rustix::io::dup(io::stdin())?)),
        attempt("read a descriptor that leaked", move || leaked.read(&mut [0; 16])),
        attempt("watch files", || {
            Ok(nix::sys::inotify::Inotify::init(nix::sys::inotify::InitFlags::empty())?)
        }),
        attempt("make a namespace", || Ok(nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS)?)),
        attempt("change the personality", || Ok(nix::sys::personality::get()?)),
        attempt("change a limit", || {
            Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
        }),
        attempt("change a property", || Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)),
    ]
}

async fn tried(sandbox: Sandbox) -> (BTreeMap<String, Option<String>>, Enforcement) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let directory = tempfile::tempdir().unwrap();
    for name in ["there", "doomed"] {
        File::create(directory.path().join(name)).unwrap();
    }
    let door = Door {
        parent: std::process::id().cast_signed(),
        port: listener.local_addr().unwrap().port(),
        directory: directory.path().to_owned(),
    };
    let report = run(&Spec { sandbox, ..worker() }, &Act::Escape(door)).await;
    if sandbox == Sandbox::Required {
        let mut left: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["doomed", "there"], "the directory has changed");
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "somebody connected");
    }
    (serde_json::from_value(result(&report)).unwrap(), report.enforcement)
}

#[tokio::test]
async fn every_way_out_is_closed() {
    let (met, enforcement) = tried(Sandbox::Required).await;
    assert_eq!(enforcement, Enforcement::Full);
    assert!(met.len() >= 30);
    let open: Vec<_> = met.iter().filter(|(_, met)| met.as_deref() != Some("refused")).collect();
    assert!(open.is_empty(), "not refused: {open:?}");
}

#[tokio::test]
async fn every_way_out_is_open_without_the_sandbox() {
    let (met, enforcement) = tried(Sandbox::Off).await;
    assert_eq!(enforcement, Enforcement::None);
    let refused: Vec<_> = met.iter().filter(|(_, met)| met.as_deref() == Some("refused")).collect();
    // Where io_uring is switched off for everybody, there is nothing to show.
    let refused: Vec<_> = refused.into_iter().filter(|(name, _)| *name != "use io_uring").collect();
    assert!(refused.is_empty(), "refused to everybody: {refused:?}");
}

#[tokio::test]
async fn memory_time_and_output_end_at_their_limits() {
    const GIB: usize = 1 << 30;
    let spec = limited(worker(), Limits { cpu_seconds: Some(1), ..Limits::default() });
    for (act, expected) in [
        (Act::Allocate(4 * GIB), "OutOfMemory"),
        (Act::Spin, "CpuExceeded"),
        (Act::Write(GIB), "OutputTooLarge"),
    ] {
        assert_eq!(format!("{:?}", run(&spec, &act).await.outcome), expected, "{act:?}");
    }
}
