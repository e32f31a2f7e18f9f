//! What a whole node needs of the machine besides our own binaries.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cache::{Lock, lock};
use crate::error::Error;
use crate::progress::{Observer, Progress};
use crate::run::{is_root, run};
use crate::slots;

/// Programs on PATH, and the Debian packages that bring them. No node needs the last one: tests speak HTTP/2 with it.
const PROGRAMS: [(&str, &str); 6] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("curl", "curl"),
];

/// The real proxy that tests go through, and the Debian package that brings it: the program without a service.
const PROXY: (&str, &str) = ("apache2", "apache2-bin");

/// What runs programs for another processor, and the Debian package that brings it: one program for each processor.
const EMULATOR: (&str, &str) = ("qemu-", "qemu-user");

/// Where network plugins are: Debian's package, and the place that most others use.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// How long another package manager may take: a fresh machine may be installing its own updates.
const PATIENCE: Duration = Duration::from_secs(600);

/// PATH with the places of programs for administrators, which a person's own often lacks.
pub(crate) fn path() -> OsString {
    let own = env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::join_paths(env::split_paths(&own).chain(extra)).unwrap_or(own)
}

/// Installs what a whole node needs of this machine; needs root. Starting a cluster does the same.
///
/// # Errors
/// When something is missing and cannot be installed.
pub fn packages(observe: Observer<'_>) -> Result<(), Error> {
    ensure(observe).map(drop)
}

/// The program of a real proxy that tests go through, Debian's Apache. Where it is missing it is installed, which needs root.
///
/// # Errors
/// When it is missing and cannot be installed.
pub fn proxy_program(observe: Observer<'_>) -> Result<PathBuf, Error> {
    let (program, package) = PROXY;
    one("tests of proxies need", program, package, observe)
}

/// The program that runs those for another processor, such as `aarch64`. Where it is missing it is installed, which needs root.
///
/// # Errors
/// When it is missing and cannot be installed.
pub fn emulator(processor: &str, observe: Observer<'_>) -> Result<PathBuf, Error> {
    let (begin, package) = EMULATOR;
    one("running programs for another processor needs", &format!("{begin}{processor}"), package, observe)
}

/// A program, installed where it is missing; `who_needs` begins the sentence that says why where that cannot be done.
fn one(who_needs: &str, program: &str, package: &str, observe: Observer<'_>) -> Result<PathBuf, Error> {
    let machine = Machine::this()?;
    let found = || machine.program(program);
    if found().is_none() {
        install(who_needs, &[package], observe, || found().is_some())?;
    }
    found().ok_or_else(|| Error::host(format!("{package} was installed and brings no {program}")))
}

/// Makes sure that this machine can run whole nodes; returns where the network plugins are.
pub(crate) fn ensure(observe: Observer<'_>) -> Result<PathBuf, Error> {
    if !is_root() {
        return Err(Error::host(
            "a cluster with a node needs root on this machine; run the tests as root, or name clusters of your own in \
             OCM_TEST_HUB_KUBECONFIG and OCM_TEST_MANAGED_KUBECONFIG",
        ));
    }
    Machine::this()?.ensure(observe)
}

/// Installs packages of Debian as root, unless `there` finds what they bring; `who_needs` begins the sentence that says
/// why where that cannot be done.
pub(crate) fn install(
    who_needs: &str,
    packages: &[&str],
    observe: Observer<'_>,
    there: impl Fn() -> bool,
) -> Result<(), Error> {
    let machine = Machine::this()?;
    let _lock = machine.lock(observe)?;
    // Another process may have installed them while this one waited.
    if there() { Ok(()) } else { machine.install(who_needs, packages, observe) }
}

/// Where a machine keeps programs, and what installs more of them.
struct Machine {
    path: OsString,
    plugins: Vec<PathBuf>,
    /// Held while packages are installed: one file for all processes of this machine, because there is one database of
    /// packages, whose own lock apt-get does not wait for.
    lock: PathBuf,
    patience: Duration,
    /// Whether this process may install packages.
    root: bool,
}

impl Machine {
    fn this() -> Result<Self, Error> {
        let (plugins, lock) = (PLUGINS.map(PathBuf::from).to_vec(), slots::root()?.join("packages.lock"));
        Ok(Self { path: path(), plugins, lock, patience: PATIENCE, root: is_root() })
    }

    fn lock(&self, observe: Observer<'_>) -> Result<Lock, Error> {
        lock(&self.lock, "waiting for another run that installs packages", observe)
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        env::split_paths(&self.path).map(|dir| dir.join(name)).find(|file| file.is_file())
    }

    fn plugins(&self) -> Option<&PathBuf> {
        let complete = |dir: &Path| ["bridge", "host-local", "portmap"].iter().all(|name| dir.join(name).is_file());
        self.plugins.iter().find(|dir| complete(dir))
    }

    fn missing(&self) -> Vec<&'static str> {
        let absent = PROGRAMS.iter().filter(|(program, _)| self.program(program).is_none());
        let mut packages: Vec<_> = absent.map(|(_, package)| *package).collect();
        if self.plugins().is_none() {
            packages.push("containernetworking-plugins");
        }
        packages.dedup();
        packages
    }

    fn ensure(&self, observe: Observer<'_>) -> Result<PathBuf, Error> {
        if !self.missing().is_empty() {
            let _lock = self.lock(observe)?;
            // Another node, or another run, may have installed them while this one waited.
            let packages = self.missing();
            if !packages.is_empty() {
                self.install("clusters with a node need", &packages, observe)?;
            }
        }
        let still = self.missing();
        match self.plugins() {
            Some(dir) if still.is_empty() => Ok(dir.clone()),
            _ => Err(Error::host(format!(
                "clusters with a node need {}, which could not be installed; install them and try again",
                still.join(", ")
            ))),
        }
    }

    /// Installs packages; the caller holds the lock.
    fn install(&self, who_needs: &str, packages: &[&str], observe: Observer<'_>) -> Result<(), Error> {
        let Some(apt) = self.program("apt-get").filter(|_| self.root) else {
            return Err(Error::host(format!(
                "{who_needs} what Debian calls {}; install it with the package manager of this machine",
                packages.join(", ")
            )));
        };
        observe(Progress::Said(&format!("installing {} …", packages.join(", "))));
        let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
        arguments.extend(packages);
        // Package lists may be missing or old; refreshing them takes a while, so only when it is needed.
        let run = |arguments: &[&str]| self.apt(&apt, arguments, observe);
        run(&arguments).or_else(|_| run(&["update"]).and_then(|()| run(&arguments)))
    }

    /// Runs apt-get. It waits for the lock of dpkg itself when it is told to, but not for those of its own lists and
    /// archives.
    fn apt(&self, apt: &Path, arguments: &[&str], observe: Observer<'_>) -> Result<(), Error> {
        let begun = Instant::now();
        let mut told = false;
        loop {
            let timeout = format!("DPkg::Lock::Timeout={}", self.patience.as_secs());
            let mut command = Command::new(apt);
            command.args(["-o", &timeout]).args(arguments);
            command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8").env("PATH", &self.path);
            match run(&mut command) {
                Err(error) if locked(&error) && begun.elapsed() < self.patience => {
                    if !told {
                        observe(Progress::Said("waiting for another package manager of this machine …"));
                        told = true;
                    }
                    sleep(Duration::from_millis(500).min(self.patience / 10));
                }
                done => return done.map(drop),
            }
        }
    }
}

/// Whether apt-get failed because another package manager was at work.
fn locked(error: &Error) -> bool {
    let text = error.to_string();
    ["Could not get lock", "Unable to acquire the dpkg frontend lock", "Unable to lock"]
        .iter()
        .any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    /// As much of apt-get as matters here: it refuses to run beside itself, and takes a moment.
    const APT: &str = r#"#!/bin/sh
root=$(dirname "$0")/..
echo "$@" >> "$root/calls"
if ! mkdir "$root/busy" 2> "$root/null"; then
    echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1 (apt-get)" >&2
    echo refused >> "$root/refused"
    exit 100
fi
sleep 0.3
for name in containerd ctr runc ip iptables curl; do echo > "$root/bin/$name"; done
mkdir -p "$root/cni"
for name in bridge host-local portmap; do echo > "$root/cni/$name"; done
rmdir "$root/busy"
"#;

    /// A machine without any of the packages.
    fn bare() -> (TempDir, impl Fn() -> Machine + Sync) {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().to_owned();
        fs::create_dir(dir.join("bin")).expect("a directory");
        fs::write(dir.join("bin/apt-get"), APT).expect("a program");
        fs::set_permissions(dir.join("bin/apt-get"), fs::Permissions::from_mode(0o755)).expect("a program");
        // The fake needs a shell's tools, which must not bring the programs that it is asked for.
        for tool in ["sh", "mkdir", "rmdir", "sleep", "dirname"] {
            let real = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(tool)).find(|file| file.is_file());
            std::os::unix::fs::symlink(real.expect("a tool"), dir.join("bin").join(tool)).expect("a link");
        }
        let machine = move || Machine {
            path: dir.join("bin").into_os_string(),
            plugins: vec![dir.join("cni")],
            lock: dir.join("packages.lock"),
            patience: Duration::from_secs(5),
            root: true,
        };
        (root, machine)
    }

    fn lines(root: &TempDir, file: &str) -> Vec<String> {
        let text = fs::read_to_string(root.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn nodes_that_start_together_install_packages_once() {
        let (root, machine) = bare();
        thread::scope(|scope| {
            let nodes: Vec<_> = (0..4).map(|_| scope.spawn(|| machine().ensure(&|_| ()))).collect();
            for node in nodes {
                let plugins = node.join().expect("no panic").expect("the packages are there");
                assert_eq!(plugins, root.path().join("cni"));
            }
        });
        let calls = lines(&root, "calls");
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(calls[0].contains("-o DPkg::Lock::Timeout=5 install"), "{calls:?}");
        assert_eq!(lines(&root, "refused"), Vec::<String>::new());
    }

    #[test]
    fn another_package_manager_is_waited_for() {
        let (root, machine) = bare();
        fs::create_dir(root.path().join("busy")).expect("a directory");
        thread::scope(|scope| {
            let node = scope.spawn(|| machine().ensure(&|_| ()));
            while lines(&root, "refused").is_empty() {
                assert!(!node.is_finished(), "it did not wait");
                sleep(Duration::from_millis(20));
            }
            fs::remove_dir(root.path().join("busy")).expect("it was there");
            node.join().expect("no panic").expect("the packages are there");
        });
    }
}
