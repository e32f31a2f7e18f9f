//! What the process that compiles can do: nothing but that.
#![cfg(target_os = "linux")]

mod support;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ocm_policy_engine::{Ceiling, Compiler, PolicyError};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use support::{Guest, compiler, program};

#[test]
fn the_process_that_compiles_can_compute_and_nothing_else() {
    let file = File::open("/proc/self/exe").unwrap();
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
    let mut command = Command::new(program("confined"));
    let mut confined = command.arg(file.as_raw_fd().to_string()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(confined.stdout.take().unwrap()).lines() {
        lines.push(line.unwrap());
        if lines.last().is_some_and(|line| line == "sleeps") {
            std::thread::sleep(Duration::from_millis(300));
            for signal in [Signal::STOP, Signal::CONT] {
                kill_process(Pid::from_child(&confined), signal).unwrap();
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
    confined.wait().unwrap();
    assert_eq!(
        lines,
        [
            "confined beside other threads: no",
            "reads files: no",
            "writes files: no",
            "opens sockets: no",
            "starts programs: no",
            "starts processes: no",
            "has clone3: no",
            "has what it inherited: no",
            "starts threads: yes",
            "sleeps",
            "sleeps on after a stop: yes",
        ]
    );
}

#[test]
fn it_dies_with_whoever_started_it() {
    // A shell starts it, tells its number, and waits; it itself waits for a module that never comes to its end.
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let script = format!(
        "mkfifo {pipe}; exec 3<>{pipe}; {program} <&3 >/dev/null & echo $!; wait",
        pipe = pipe.display(),
        program = program("compiler").display()
    );
    let mut shell = Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    let order = br#"{"settings":null,"ceiling":CEILING,"cpuSeconds":60,"memoryBytes":1073741824}"#;
    let ceiling = serde_json::to_string(&Ceiling::default()).unwrap();
    let order = String::from_utf8(order.to_vec()).unwrap().replace("CEILING", &ceiling);
    let mut input = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    input.write_all(&u32::try_from(order.len()).unwrap().to_le_bytes()).unwrap();
    input.write_all(order.as_bytes()).unwrap();
    // It is confined once its memory cannot be looked at any more, or its filter is on.
    let status =
        |pid: Pid| std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    while !status(pid).contains("Seccomp:\t2") {
        assert!(test_kill_process(pid).is_ok(), "it ended too early");
        std::thread::yield_now();
    }
    assert!(status(pid).contains("NoNewPrivs:\t1"));
    kill_process(Pid::from_child(&shell), Signal::KILL).unwrap();
    shell.wait().unwrap();
    // Its input stays open, so only the death of its parent can end it.
    while status(pid).contains("State:") && !status(pid).contains("State:\tZ") {
        std::thread::yield_now();
    }
    drop(input);
}

#[test]
fn a_compiler_that_answers_without_end_is_ended() {
    let module = Guest::default().module();
    let Compiler::Process { cpu_seconds, memory_bytes, .. } = compiler() else { unreachable!() };
    let arguments = vec!["-c".to_owned(), "cat /dev/zero".to_owned()];
    let endless = Compiler::Process { program: "/bin/sh".into(), arguments, cpu_seconds, memory_bytes };
    let error = endless.compile(&module, "{}", &Ceiling::default()).err();
    assert!(matches!(&error, Some(PolicyError::Load(why)) if why.contains("64 MiB")), "{error:?}");
}

#[test]
fn a_compiler_that_answers_with_an_endless_error_is_not_believed() {
    let module = Guest::default().module();
    let Compiler::Process { cpu_seconds, memory_bytes, .. } = compiler() else { unreachable!() };
    let arguments = vec!["-c".to_owned(), r"printf '\001'; head -c 100000 /dev/zero".to_owned()];
    let talkative = Compiler::Process { program: "/bin/sh".into(), arguments, cpu_seconds, memory_bytes };
    let error = talkative.compile(&module, "{}", &Ceiling::default()).err();
    assert!(matches!(&error, Some(PolicyError::Load(why)) if why.ends_with("cannot be used")), "{error:?}");
}

#[test]
fn where_no_thread_can_be_started_the_compiler_comes_back_with_an_error() {
    let mut command = Command::new(program("threadless"));
    let mut threadless = command.arg(program("compiler")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    threadless.stdin.take().unwrap().write_all(&Guest::default().module()).unwrap();
    let begun = Instant::now();
    let status = loop {
        match threadless.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() > Duration::from_secs(60) => {
                threadless.kill().unwrap();
                panic!("it does not come back");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let told = std::io::read_to_string(threadless.stdout.take().unwrap()).unwrap();
    assert!(status.success(), "{status}: {told}");
    let why = "no thread can be started: Resource temporarily unavailable (os error 11)";
    let compiler = format!("compiler: the policy cannot be loaded: it cannot be compiled: {why}");
    let engine = format!("engine: the policy cannot be loaded: {why}");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines, ["starts threads: no", &engine, &compiler, &compiler]);
}
