//! Confines itself as the process that compiles does, and tells what it can still do. For tests.
#![expect(clippy::print_stdout, reason = "a test reads it")]

use std::process::Command;

fn main() -> std::io::Result<()> {
    let own = std::env::args().next().unwrap_or_default();
    let inherited: i32 = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(-1);
    // Refused while another thread runs, which ends when its channel does.
    let (ends, end) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || end.recv());
    let refused = ocm_policy_engine::confine_for_tests().is_err();
    drop(ends);
    let _ = other.join();
    // It is gone a moment after that.
    while std::fs::read_dir("/proc/self/task")?.count() > 1 {
        std::thread::yield_now();
    }
    ocm_policy_engine::confine_for_tests()?;
    let word = |done: bool| if done { "yes" } else { "no" };
    println!("confined beside other threads: {}", word(!refused));
    println!("reads files: {}", word(std::fs::read(&own).is_ok()));
    println!("writes files: {}", word(std::fs::write(std::env::temp_dir().join("confined"), "x").is_ok()));
    println!("opens sockets: {}", word(std::net::TcpListener::bind("127.0.0.1:0").is_ok()));
    println!("starts programs: {}", word(Command::new(&own).spawn().is_ok()));
    #[cfg(target_os = "linux")]
    println!("starts processes: {}", word(forks()));
    #[cfg(target_os = "linux")]
    println!("has clone3: {}", word(has_clone3()));
    println!("has what it inherited: {}", word(is_open(inherited)));
    println!("starts threads: {}", word(std::thread::spawn(|| 1).join().is_ok()));
    // The test stops this process, and lets it go on.
    println!("sleeps");
    let slept = std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(1))).join();
    println!("sleeps on after a stop: {}", word(slept.is_ok()));
    Ok(())
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "nothing safe makes a process that runs no program")]
fn forks() -> bool {
    // SAFETY: no other thread runs, and the other process ends at once.
    match unsafe { libc::fork() } {
        -1 => false,
        // SAFETY: nothing of this process is run at its end.
        0 => unsafe { libc::_exit(0) },
        _ => true,
    }
}

/// With what the kernel knows the call by, and nothing that it could make a process of.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the C library has no such function")]
fn has_clone3() -> bool {
    // SAFETY: what it would be told lies nowhere, so that nothing is made.
    let made = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<u64>(), 0_usize) };
    made != -1 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS)
}

#[expect(unsafe_code, reason = "only a number of a descriptor is known")]
fn is_open(descriptor: i32) -> bool {
    use std::io::Seek as _;
    // SAFETY: nothing is done with it but to ask where it stands, and it is not closed.
    let file = unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(descriptor) };
    std::mem::ManuallyDrop::new(file).stream_position().is_ok()
}
