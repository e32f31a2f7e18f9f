//! Files that may be open: each connection is one.

use std::io;

use super::server::Bounds;

/// Files that are open besides connections of API servers: those of probes, to the hub, modules, and what is compiled.
const OTHERS: u64 = 256;
/// Connections, however few files may be open.
const LEAST: usize = 64;

impl Bounds {
    /// The same, with no more connections than this process may have open. It may have as many files open as its hard limit says
    /// from then on.
    #[must_use]
    pub fn within_open_files(self) -> Self {
        Self { connections: connections(self.connections, may_be_open()), ..self }
    }
}

/// How many of the connections that are wanted there may be, where so many files may be open; none: any number.
fn connections(wanted: usize, files: Option<u64>) -> usize {
    let Some(files) = files else { return wanted };
    let left = usize::try_from(files.saturating_sub(OTHERS)).unwrap_or(usize::MAX);
    wanted.min(left.max(LEAST))
}

/// How many files may be open, when the soft limit is as high as the hard one allows.
#[cfg(unix)]
fn may_be_open() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Where the system refuses it, the soft limit counts as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current
}

#[cfg(not(unix))]
fn may_be_open() -> Option<u64> {
    None
}

/// Whether something failed because too many files are open.
#[cfg(unix)]
pub(super) fn are_spent(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(unix))]
pub(super) fn are_spent(_: &io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_connections_than_files_may_be_open() {
        let of = |files| connections(1024, files);
        assert_eq!([None, Some(1 << 20), Some(1280), Some(1024)].map(of), [1024, 1024, 1024, 768]);
        assert_eq!([Some(320), Some(300), Some(0)].map(of), [64, 64, 64]);
        assert_eq!(connections(8, Some(0)), 8);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn as_many_files_may_be_open_as_the_hard_limit_says() {
        let maximum = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
        assert_eq!(may_be_open(), maximum);
    }

    #[cfg(unix)]
    #[test]
    fn too_many_open_files_are_told_from_other_failures() {
        use rustix::io::Errno;
        let of = |number: Errno| are_spent(&io::Error::from_raw_os_error(number.raw_os_error()));
        assert!(of(Errno::MFILE) && of(Errno::NFILE) && !of(Errno::CONNABORTED));
        assert!(!are_spent(&io::Error::other("too many open files")));
    }
}
