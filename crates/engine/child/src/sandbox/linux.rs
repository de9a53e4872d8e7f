//! The three locks, as Linux has them.

use super::{Descriptors, Enforcement, filter};
use crate::Limits;
use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// The kernel warns with SIGXCPU at the limit and kills this much later.
const CPU_HARD_MARGIN_SECONDS: u64 = 1;

/// Locks the calling process in. It must have a single thread: Landlock binds only the one that asks.
pub(crate) fn enter(limits: &Limits, descriptors: Descriptors) -> Enforcement {
    let mut missing = Vec::new();
    let mut tell = |what: &str, applied: Result<(), String>| {
        if let Err(error) = applied {
            missing.push(format!("{what}: {error}"));
        }
    };
    // Without it, an unprivileged process may use neither of the two filters.
    tell("no_new_privs", rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string()));
    tell("landlock", forbid_paths());
    // Landlock needs a descriptor for a moment, so the limit on descriptors comes after it.
    tell("rlimits", limit_for_conversion(limits).map_err(|error| error.to_string()));
    // Last, because it forbids all of the above.
    tell("seccomp", filter::apply(descriptors));
    if missing.is_empty() { Enforcement::Full } else { Enforcement::Partial { missing } }
}

fn forbid_paths() -> Result<(), String> {
    let restrict = || -> Result<RulesetStatus, RulesetError> {
        // What the running kernel does not know is left out. No rule follows: nothing is allowed.
        let ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(ABI::V6))?
            .handle_access(AccessNet::from_all(ABI::V6))?
            .scope(Scope::from_all(ABI::V6))?;
        Ok(ruleset.create()?.restrict_self()?.ruleset)
    };
    match restrict() {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => Ok(()),
        Ok(RulesetStatus::NotEnforced) => Err("this kernel does not offer it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn limit_for_conversion(limits: &Limits) -> io::Result<()> {
    limit_for_program(limits)?;
    set(Resource::Stack, limits.stack_bytes, limits.stack_bytes)?;
    set(Resource::Nofile, 0, 0)?;
    // It does not bind a process of root; there, seccomp alone forbids new processes.
    set(Resource::Nproc, 0, 0)
}

/// Sets what a foreign program and everything it starts will inherit.
pub(crate) fn limit_for_program(limits: &Limits) -> io::Result<()> {
    set(Resource::Core, 0, 0)?;
    set(Resource::Fsize, limits.output_bytes, limits.output_bytes)?;
    if let Some(bytes) = limits.address_space_bytes {
        set(Resource::As, bytes, bytes)?;
    }
    if let Some(seconds) = limits.cpu_seconds {
        set(Resource::Cpu, seconds, seconds.saturating_add(CPU_HARD_MARGIN_SECONDS))?;
    }
    Ok(())
}

/// Lowers a limit. One that is lower already stays as it is.
fn set(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let ceiling = getrlimit(resource).maximum;
    let within = |value: u64| Some(ceiling.map_or(value, |ceiling| ceiling.min(value)));
    setrlimit(resource, Rlimit { current: within(current), maximum: within(maximum) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    /// The other tests show all three locks at once, of which seccomp is the first to answer. Landlock binds a
    /// thread, so here it can be seen alone.
    #[test]
    fn landlock_alone_forbids_files_and_ports() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inside = move || {
            forbid_paths()?;
            let read = std::fs::read("/etc/passwd").err();
            let write = std::fs::write("/tmp/ode-child-escape", "").err();
            let run = std::process::Command::new("/bin/true").status().err();
            let connect = TcpStream::connect(address).err();
            Ok::<_, String>([read, write, run, connect].map(|error| error.map(|error| error.kind())))
        };
        let met = std::thread::spawn(inside).join().unwrap().unwrap();
        assert_eq!(met[..3], [Some(ErrorKind::PermissionDenied); 3]);
        // Kernels before 6.7 do not know ports yet.
        assert!(matches!(met[3], Some(ErrorKind::PermissionDenied) | None), "{:?}", met[3]);
        assert!(std::fs::read("/etc/passwd").is_ok(), "only the other thread is bound");
    }
}
