//! Has a module compiled that comes on stdin where no thread can be started, and tells what came of it. For tests.
//!
//! The kernel refuses threads here as it does where there are too many: also to root, which no limit of processes holds.
#![expect(clippy::print_stdout, reason = "a test reads it")]

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    use std::io::Read as _;

    use ocm_policy_engine::{Ceiling, Compiler, Engine, EngineSettings};

    let program = std::env::args().nth(1).unwrap_or_default();
    let mut module = Vec::new();
    std::io::stdin().read_to_end(&mut module)?;
    refuse_threads()?;
    let word = |done: bool| if done { "yes" } else { "no" };
    println!("starts threads: {}", word(std::thread::Builder::new().spawn(|| ()).is_ok()));
    match Engine::new(&EngineSettings::default()) {
        Ok(_) => println!("an engine is made"),
        Err(error) => println!("engine: {error}"),
    }
    let compiler =
        Compiler::Process { program: program.into(), arguments: Vec::new(), cpu_seconds: 20, memory_bytes: 1 << 30 };
    match compiler.compile(&module, "{}", &Ceiling::default()) {
        Ok(_) => println!("a module is compiled"),
        Err(error) => println!("compiler: {error}"),
    }
    match compiler.describe(&module, &Ceiling::default()) {
        Ok(_) => println!("a module is described"),
        Err(error) => println!("compiler: {error}"),
    }
    Ok(())
}

/// Lets `clone` make processes and no threads, here and in every process that is started here.
#[cfg(target_os = "linux")]
fn refuse_threads() -> std::io::Result<()> {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };

    const THREAD: u64 = libc::CLONE_THREAD.unsigned_abs() as u64;
    let broken = std::io::Error::other::<seccompiler::BackendError>;
    let arch: seccompiler::TargetArch = std::env::consts::ARCH.try_into().map_err(broken)?;
    let errno = |error: i32| SeccompAction::Errno(error.unsigned_abs());
    let is_thread = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(THREAD), THREAD);
    let threads = SeccompRule::new(vec![is_thread.map_err(broken)?]).map_err(broken)?;
    // A filter sees no flags of `clone3`; without it, the C library uses `clone`.
    for (call, rules, answer) in
        [(libc::SYS_clone3, Vec::new(), libc::ENOSYS), (libc::SYS_clone, vec![threads], libc::EAGAIN)]
    {
        let filter = SeccompFilter::new([(call, rules)].into(), SeccompAction::Allow, errno(answer), arch);
        let program: BpfProgram = filter.and_then(BpfProgram::try_from).map_err(broken)?;
        seccompiler::apply_filter(&program).map_err(std::io::Error::other)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
