//! What the compiling subprocess gives up before it looks at a module: whoever takes over the compiler with a module
//! finds a process that can compute, and nothing else.

use std::io;

use crate::compiler::protocol::Order;

/// Confines this process for good: it dies with its parent, holds no descriptors but its standard streams, has limits
/// for processor time and memory, and can neither open files nor sockets nor start programs.
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

/// Refuses every system call that computing, memory, threads and the standard streams do not need. Refused calls fail
/// as if they were not permitted.
#[cfg(target_os = "linux")]
fn filter_system_calls() -> io::Result<()> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

    let allowed = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_lseek,
        libc::SYS_ppoll,
        // Memory.
        libc::SYS_brk,
        libc::SYS_fcntl,
        libc::SYS_ftruncate,
        libc::SYS_madvise,
        libc::SYS_membarrier,
        libc::SYS_memfd_create,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
        // Threads.
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_rseq,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        // Traps of guests are signals.
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        // Time and random numbers.
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_getrandom,
    ];
    let rules = allowed.into_iter().map(|call| (call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, arch).map_err(io::Error::other)?;
    let program = BpfProgram::try_from(filter).map_err(io::Error::other)?;
    // This sets `NO_NEW_PRIVS` as well.
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}
