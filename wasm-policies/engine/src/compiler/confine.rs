//! What the compiling subprocess gives up before it looks at a module: whoever takes over the compiler with a module
//! finds a process that can compute, and nothing else.

use std::io;

use crate::compiler::protocol::Order;

/// Confines this process for good: it dies with its parent, holds no descriptors but its standard streams, has limits
/// for processor time and memory, and can neither open files nor sockets nor start programs or other processes.
///
/// # Errors
/// When the system cannot do that, or other threads run here already. Then nothing must be compiled here.
#[cfg(target_os = "linux")]
pub(super) fn confine(order: &Order) -> io::Result<()> {
    use rustix::process::{DumpableBehavior, Resource, Signal, set_dumpable_behavior, set_parent_process_death_signal};
    // The filter would not hold for them, and they may need what is closed here.
    if std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        return Err(io::Error::other("other threads run in it already"));
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    close_inherited();
    limit(Resource::Cpu, order.cpu_seconds);
    // Address space is not limited: memories of WebAssembly reserve gigabytes of it and use none.
    limit(Resource::Data, order.memory_bytes);
    limit(Resource::Core, 0);
    filter_system_calls()
}

/// As far as this system can do it: limits for processor time and memory.
///
/// # Errors
/// None here.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn confine(order: &Order) -> io::Result<()> {
    use rustix::process::Resource;
    limit(Resource::Cpu, order.cpu_seconds);
    limit(Resource::Data, order.memory_bytes);
    limit(Resource::Core, 0);
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn confine(_: &Order) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn limit(resource: rustix::process::Resource, most: u64) {
    use rustix::process::{Rlimit, setrlimit};
    // A limit that cannot be set is one that the process is under already.
    let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
}

/// Closes what the parent did not mean to pass on.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "descriptors that no value of this process owns are closed by number")]
fn close_inherited() {
    // SAFETY: this process has opened nothing itself but its standard streams.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) != 0 {
            // Before Linux 5.9.
            for descriptor in 3..4096 {
                libc::close(descriptor);
            }
        }
    }
}

/// Names of system calls with their numbers on this architecture.
#[cfg(target_os = "linux")]
macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name)),*] };
}

/// What computing, memory, threads and the standard streams need. All of it is in the kernel's table for architectures
/// without a past: arm64 has no `open`, `poll` or `fork` of its own, and its C libraries call what they call here.
#[cfg(target_os = "linux")]
const ALLOWED: &[(&str, libc::c_long)] = calls![
    SYS_read
    SYS_readv
    SYS_write
    SYS_writev
    SYS_close
    SYS_fstat
    SYS_lseek
    SYS_ppoll

    // Memory. After code was written, arm64 tells other processors so with `membarrier`.
    SYS_brk
    SYS_fcntl
    SYS_ftruncate
    SYS_madvise
    SYS_membarrier
    SYS_memfd_create
    SYS_mmap
    SYS_mprotect
    SYS_mremap
    SYS_munmap

    // Threads: `clone` makes nothing else here, and `clone3` is not there, see `filter_system_calls`.
    SYS_clone
    SYS_clone3
    SYS_exit
    SYS_exit_group
    SYS_futex
    SYS_getpid
    SYS_gettid
    SYS_rseq
    SYS_sched_getaffinity
    SYS_sched_yield
    SYS_set_robust_list

    // Traps of guests are signals.
    SYS_rt_sigaction
    SYS_rt_sigprocmask
    SYS_rt_sigreturn
    SYS_sigaltstack

    // Time and random numbers. Whoever was stopped while waiting goes on waiting with the last of these.
    SYS_clock_gettime
    SYS_clock_nanosleep
    SYS_nanosleep
    SYS_getrandom
    SYS_restart_syscall
];

/// The flag of `clone` that makes a thread; it stands in the first argument on every architecture that the filter knows.
#[cfg(target_os = "linux")]
const THREAD: u64 = libc::CLONE_THREAD.unsigned_abs() as u64;

/// Refuses every system call but those. Refused calls fail as if they were not permitted.
///
/// A filter sees no flags of `clone3`, which lie in memory. Another one answers as a kernel without that call, so that the
/// C library makes its threads with `clone`. Of two answers the kernel takes the one that refuses.
#[cfg(target_os = "linux")]
fn filter_system_calls() -> io::Result<()> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    for filter in [without_clone3(arch), filter(arch)] {
        let program = filter.and_then(seccompiler::BpfProgram::try_from).map_err(io::Error::other)?;
        // This sets `NO_NEW_PRIVS` as well.
        seccompiler::apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn without_clone3(arch: seccompiler::TargetArch) -> Result<seccompiler::SeccompFilter, seccompiler::BackendError> {
    use seccompiler::{SeccompAction, SeccompFilter};

    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    SeccompFilter::new([(libc::SYS_clone3, Vec::new())].into(), SeccompAction::Allow, missing, arch)
}

#[cfg(target_os = "linux")]
fn filter(arch: seccompiler::TargetArch) -> Result<seccompiler::SeccompFilter, seccompiler::BackendError> {
    use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};

    let mut rules: std::collections::BTreeMap<_, _> = ALLOWED.iter().map(|(_, call)| (*call, Vec::new())).collect();
    let is_thread = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(THREAD), THREAD)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    SeccompFilter::new(rules, SeccompAction::Errno(libc::EPERM.unsigned_abs()), SeccompAction::Allow, arch)
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use seccompiler::{BpfProgram, TargetArch, compile_from_json};

    use super::*;

    /// The same filter, with the numbers that its names have on an architecture.
    fn by_names(arch: TargetArch) -> BpfProgram {
        let is_thread = serde_json::json!([
            { "index": 0, "type": "dword", "op": { "masked_eq": THREAD }, "val": THREAD }
        ]);
        let call = |name: &str| match name {
            "SYS_clone" => serde_json::json!({ "syscall": "clone", "args": is_thread }),
            name => serde_json::json!({ "syscall": name[4..] }),
        };
        let calls: Vec<_> = ALLOWED.iter().map(|(name, _)| call(name)).collect();
        let filter = serde_json::json!({ "compiler": {
            "mismatch_action": { "errno": libc::EPERM }, "match_action": "allow", "filter": calls,
        } });
        let programs = compile_from_json(filter.to_string().as_bytes(), arch);
        programs.unwrap_or_else(|error| panic!("{arch:?}: {error}")).remove("compiler").unwrap()
    }

    #[test]
    fn every_architecture_has_every_call_of_the_list() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64, TargetArch::riscv64] {
            assert!(by_names(arch).len() > ALLOWED.len(), "{arch:?}");
        }
        // The names say what the numbers do, seen here.
        let own: TargetArch = std::env::consts::ARCH.try_into().unwrap();
        let instructions = |program: BpfProgram| {
            program.into_iter().map(|line| (line.code, line.jt, line.jf, line.k)).collect::<Vec<_>>()
        };
        assert_eq!(instructions(filter(own).unwrap().try_into().unwrap()), instructions(by_names(own)));
    }
}
