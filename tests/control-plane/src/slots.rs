//! Places for clusters on this machine: a number that decides address, user and directory of a cluster.
//!
//! A number is taken by a lock on its file, which the kernel releases when the holder ends in whatever way. So a
//! directory whose lock is free belongs to a dead cluster, and the next start removes it.
//!
//! The bridge, the wires and the addresses belong to the network of the machine, which processes with another root
//! directory share: they see other files, and so other locks. So a number is taken by an abstract socket as well, a name
//! that the kernel keeps once per network and releases in the same way.

use std::fs::{self, File};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use crate::error::{Error, Trying as _};
use crate::network;
use crate::run::is_root;

/// The highest number. It is the last part of an address, shifted by ten.
const LAST: u8 = 240;

/// A number that is ours until this is dropped.
pub(crate) struct Slot {
    pub(crate) number: u8,
    pub(crate) dir: PathBuf,
    _held: File,
    _name: Name,
}

/// A name that only one process of this network holds.
pub(crate) struct Name(#[expect(dead_code, reason = "the name is held as long as the socket is open")] UnixListener);

impl Name {
    /// Takes a name of this user, unless another process holds it.
    fn take(name: &str) -> Result<Option<Self>, Error> {
        let name = format!("kubectl-ocm/{}/{name}", rustix::process::geteuid().as_raw());
        let bound = SocketAddr::from_abstract_name(&name).and_then(|address| UnixListener::bind_addr(&address));
        match bound {
            Ok(listener) => Ok(Some(Self(listener))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error).trying(|| format!("taking the name {name}")),
        }
    }

    /// Waits for a name that others hold only for moments.
    pub(crate) fn wait(name: &str) -> Result<Self, Error> {
        let begun = Instant::now();
        loop {
            match Self::take(name)? {
                Some(taken) => return Ok(taken),
                None if begun.elapsed() > Duration::from_secs(60) => {
                    return Err(Error::host(format!("another process holds {name:?} for a minute; it may hang")));
                }
                None => sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// The directory of all clusters of this user. Other users must be able to walk through it, which a home directory
/// may not let them, because daemons that need no rights run as users of their own.
pub(crate) fn root() -> Result<PathBuf, Error> {
    let user = rustix::process::geteuid();
    let dir = if is_root() {
        PathBuf::from("/var/tmp/kubectl-ocm")
    } else {
        PathBuf::from(format!("/var/tmp/kubectl-ocm-{}", user.as_raw()))
    };
    let made = fs::DirBuilder::new().mode(0o755).create(&dir);
    let meta =
        fs::symlink_metadata(&dir).or_else(|e| made.and(Err(e))).trying(|| format!("creating {}", dir.display()))?;
    // The parent is writable for everybody, so somebody else may have put something there first.
    if !meta.is_dir() || meta.uid() != user.as_raw() {
        return Err(Error::host(format!(
            "{} is not a directory of this user; remove it, the test clusters keep their state there",
            dir.display()
        )));
    }
    Ok(dir)
}

fn locks(root: &Path) -> Result<PathBuf, Error> {
    let dir = root.join("slots");
    fs::create_dir_all(&dir).trying(|| format!("creating {}", dir.display()))?;
    Ok(dir)
}

fn open(file: &Path) -> Result<File, Error> {
    File::options().create(true).truncate(false).write(true).open(file).trying(|| format!("opening {}", file.display()))
}

fn try_lock(file: &Path) -> Result<Option<File>, Error> {
    let open = open(file)?;
    Ok(rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(open))
}

/// Takes the first free number and its empty directory, and removes what dead clusters left behind.
pub(crate) fn take() -> Result<Slot, Error> {
    take_in(&root()?, "slot", Path::new("/sys/class/net"))
}

fn take_in(root: &Path, name: &str, wires: &Path) -> Result<Slot, Error> {
    let locks = locks(root)?;
    let mut taken = None;
    for number in 1..=LAST {
        let dir = root.join(number.to_string());
        if taken.is_some() && !dir.exists() {
            continue;
        }
        let Some(held) = try_lock(&locks.join(number.to_string()))? else { continue };
        remains(number, &dir, &locks)?;
        let Some(name) = Name::take(&format!("{name}/{number}"))? else { continue };
        // A wire that is there although nobody holds its number belongs to a node that is just ending.
        if wires.join(network::wire(number)).exists() {
            continue;
        }
        if taken.is_none() {
            fs::DirBuilder::new().mode(0o711).create(&dir).trying(|| format!("creating {}", dir.display()))?;
            taken = Some(Slot { number, dir, _held: held, _name: name });
        }
    }
    taken.ok_or_else(|| {
        Error::host(format!("{LAST} test clusters are running on this machine already; end some of them first"))
    })
}

/// Removes what a dead cluster left behind. Its first process may still be ending.
fn remains(number: u8, dir: &Path, locks: &Path) -> Result<(), Error> {
    let begun = Instant::now();
    let _ended = loop {
        if let Some(held) = try_lock(&locks.join(format!("{number}.node")))? {
            break held;
        }
        if begun.elapsed() > Duration::from_secs(10) {
            return Err(Error::host(format!("the first process of the dead cluster {number} does not end")));
        }
        sleep(Duration::from_millis(20));
    };
    remove(dir)
}

/// Removes directory and control groups of a cluster whose processes have ended, or are ending.
pub(crate) fn remove(dir: &Path) -> Result<(), Error> {
    let tasks = fs::read_dir(dir.join("containerd/io.containerd.runtime.v2.task/k8s.io"));
    let containers: Vec<_> = tasks.into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    let begun = Instant::now();
    loop {
        match fs::remove_dir_all(dir) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            // A process that is just ending may write a last file, or hold a mount.
            Err(_) if begun.elapsed() < Duration::from_secs(5) => sleep(Duration::from_millis(10)),
            Err(error) => return Err(error).trying(|| format!("removing {}", dir.display())),
        }
    }
    for container in containers {
        let left = || {
            let name = Path::new("k8s.io").join(&container);
            groups(&name).into_iter().filter(|group| !remove_group(group)).count()
        };
        // The last process of a group may still be ending.
        let begun = Instant::now();
        while left() > 0 && begun.elapsed() < Duration::from_secs(1) {
            sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

/// The control groups of this name: with version 1 below every controller, with version 2 at the top.
fn groups(name: &Path) -> Vec<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(top).into_iter().flatten().flatten().map(|entry| entry.path());
    hierarchies.chain([top.to_owned()]).map(|hierarchy| hierarchy.join(name)).filter(|group| group.is_dir()).collect()
}

/// Removes a control group with those below it; says whether it is gone.
fn remove_group(group: &Path) -> bool {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    fs::remove_dir(group).is_ok()
}

/// The lock that the first process of a cluster holds, so that nobody removes its directory while it ends.
pub(crate) fn hold_node(number: u8) -> Result<File, Error> {
    let file = locks(&root()?)?.join(format!("{number}.node"));
    let open = open(&file)?;
    rustix::fs::flock(&open, FlockOperation::LockExclusive).trying(|| format!("locking {}", file.display()))?;
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_below_different_root_directories_never_get_one_number() {
        let name = format!("test-{}", std::process::id());
        let (here, there) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let wires = tempfile::tempdir().expect("a directory");
        let take = |root: &tempfile::TempDir| take_in(root.path(), &name, wires.path()).expect("a place");
        let (first, second) = (take(&here), take(&there));
        assert_eq!((first.number, second.number), (1, 2));
        drop(first);
        let third = take(&there);
        assert_eq!(third.number, 1, "a number is free again when its holder is gone");
        fs::write(wires.path().join(network::wire(3)), "").expect("a file");
        let fourth = take(&here);
        assert_eq!(fourth.number, 4, "a wire that is still there is not cut");
    }
}
