//! The system calls that a locked-in child may still make.
//!
//! Everything else answers EPERM rather than killing the child: the C library tries things that it can do
//! without (asking for the number of processors, naming a mapping), and an update of it must not become an
//! outage. There is no `open`, `stat`, `socket`, `clone`, `execve`, `kill`, `ptrace`, `ioctl`, `prctl`, `bpf` or
//! `io_uring_setup`, and no thread can be started either.

use super::Descriptors;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that reach nothing outside the process, with any arguments.
const HARMLESS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
];

/// Applies the filter to every thread of the process.
pub(super) fn apply(descriptors: Descriptors) -> Result<(), String> {
    let program = compile(descriptors).map_err(|error| error.to_string())?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| error.to_string())
}

fn compile(descriptors: Descriptors) -> Result<BpfProgram, seccompiler::BackendError> {
    let filter = SeccompFilter::new(
        rules(descriptors)?,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    filter.try_into()
}

fn rules(descriptors: Descriptors) -> Result<Rules, seccompiler::BackendError> {
    let Descriptors { payload, events, input, output, status } = descriptors;
    let mut rules: Rules = HARMLESS.iter().map(|&call| (call, Vec::new())).collect();
    let writable = [1, 2, events, output];
    let readable: Vec<i32> = [payload, input].into_iter().chain(status).collect();
    let seekable: Vec<i32> = [input, output].into_iter().chain(status).collect();
    for (call, numbers) in [
        (libc::SYS_read, &readable[..]),
        (libc::SYS_readv, &readable),
        (libc::SYS_pread64, &readable),
        (libc::SYS_lseek, &seekable),
        (libc::SYS_write, &writable),
        (libc::SYS_writev, &writable),
        (libc::SYS_pwrite64, &writable),
    ] {
        rules.insert(call, numbers.iter().map(|&number| on_first(number)).collect::<Result<_, _>>()?);
    }
    // New memory is never backed by a file and never executable.
    let not_executable = |argument| masked(argument, libc::PROT_EXEC, 0);
    let anonymous = masked(3, libc::MAP_ANONYMOUS, libc::MAP_ANONYMOUS)?;
    rules.insert(libc::SYS_mmap, vec![SeccompRule::new(vec![not_executable(2)?, anonymous])?]);
    rules.insert(libc::SYS_mprotect, vec![SeccompRule::new(vec![not_executable(2)?])?]);
    // In debug builds the standard library asks whether a descriptor is open before it closes it.
    rules.insert(libc::SYS_fcntl, vec![SeccompRule::new(vec![equal(1, libc::F_GETFD)?])?]);
    // The standard library catches the signals of a stack overflow, and lets go of them if it was none. Refused
    // that, a child would fault for ever. No other signal can be caught, least of all the one of the time limit.
    let letting_go = [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT].map(on_first);
    rules.insert(libc::SYS_rt_sigaction, letting_go.into_iter().collect::<Result<_, _>>()?);
    // `abort` sends a signal to its own thread.
    let own_process = std::process::id().cast_signed();
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![equal(0, own_process)?])?]);
    Ok(rules)
}

/// Allows a call whose first argument, a descriptor or a signal, is this.
fn on_first(value: i32) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![equal(0, value)?])
}

fn equal(argument: u8, value: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn masked(argument: u8, mask: i32, value: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    let [mask, value] = [mask, value].map(|bits| u64::from(bits.cast_unsigned()));
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}
