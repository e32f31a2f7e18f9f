//! What a whole node needs of the machine besides our own binaries.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::run::{is_root, run, tell};

/// Programs on PATH, and the Debian packages that bring them.
const PROGRAMS: [(&str, &str); 5] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
];

/// Where network plugins are: Debian's package, and the place that most others use.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// PATH with the places of programs for administrators, which a person's own often lacks.
pub(crate) fn path() -> OsString {
    let own = env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::join_paths(env::split_paths(&own).chain(extra)).unwrap_or(own)
}

fn on_path(program: &str) -> bool {
    env::split_paths(&path()).any(|dir| dir.join(program).is_file())
}

fn plugins() -> Option<PathBuf> {
    let complete = |dir: &Path| ["bridge", "host-local", "portmap"].iter().all(|name| dir.join(name).is_file());
    PLUGINS.iter().map(PathBuf::from).find(|dir| complete(dir))
}

fn missing() -> Vec<&'static str> {
    let mut packages: Vec<_> =
        PROGRAMS.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package).collect();
    if plugins().is_none() {
        packages.push("containernetworking-plugins");
    }
    packages.dedup();
    packages
}

/// Makes sure that this machine can run whole nodes; returns where the network plugins are.
pub(crate) fn ensure() -> Result<PathBuf, Error> {
    if !is_root() {
        return Err(Error::host(
            "a cluster with a node needs root on this machine; run the tests as root, or name clusters of your own in \
             OCM_TEST_HUB_KUBECONFIG and OCM_TEST_MANAGED_KUBECONFIG",
        ));
    }
    let packages = missing();
    if !packages.is_empty() {
        install("clusters with a node need", &packages)?;
    }
    let still = missing();
    match plugins() {
        Some(dir) if still.is_empty() => Ok(dir),
        _ => Err(Error::host(format!(
            "clusters with a node need {}, which could not be installed; install them and try again",
            still.join(", ")
        ))),
    }
}

/// Installs packages of Debian as root; `who_needs` begins the sentence that says why where that cannot be done.
pub(crate) fn install(who_needs: &str, packages: &[&str]) -> Result<(), Error> {
    if !is_root() || !on_path("apt-get") {
        return Err(Error::host(format!(
            "{who_needs} what Debian calls {}; install it with the package manager of this machine",
            packages.join(", ")
        )));
    }
    tell(&format!("installing {} …", packages.join(", ")));
    let apt =
        |arguments: &[&str]| run(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"));
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    // Package lists may be missing or old; refreshing them takes a while, so only when it is needed.
    apt(&arguments).or_else(|_| apt(&["update"]).and_then(|_| apt(&arguments))).map(|_| ())
}
