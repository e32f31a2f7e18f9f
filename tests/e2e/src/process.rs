//! Processes of this machine.

/// The memory that a process has, and the most that it had, in bytes; zero: there is no such process.
pub(crate) fn memory(process: u32) -> [u64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    ["VmRSS:", "VmHWM:"].map(|key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() * 1024
    })
}
