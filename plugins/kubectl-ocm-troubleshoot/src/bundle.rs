//! Files with what was seen.

use std::io::Write as _;
use std::path::Path;

use ocm_checks::judge::Report;
use ocm_checks::snapshot::{FORMAT, HubSide, ManagedSide, Observed, Snapshot};
use ocm_core::Failure;
use ocm_dump::LARGEST;
use ocm_flows::observe::logs::ContainerLog;
use serde::{Deserialize, Serialize};

/// The kind of document.
const KIND: &str = "TroubleshootBundle";
/// How many objects a bundle may have: small ones take more room when they are read than in the file.
const MOST: usize = 200_000;
/// How many JSON objects there may be in it: one of them is made of several.
const VALUES: usize = 6 * MOST;

#[derive(Serialize)]
struct Written<'a> {
    kind: &'static str,
    version: &'static str,
    snapshot: &'a Snapshot,
    report: &'a Report,
    /// For people: nothing reads them again.
    logs: &'a [ContainerLog],
}

#[derive(Deserialize)]
struct Kept {
    snapshot: Snapshot,
}

/// What tells a bundle from other documents.
#[derive(Deserialize)]
struct Head {
    kind: String,
}

/// Refuses a file that is there, before anything is looked at.
///
/// # Errors
/// A usage failure.
pub(crate) fn require_new(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() { Err(is_there(path)) } else { Ok(()) }
}

fn is_there(path: &Path) -> Failure {
    Failure::usage(format!("{} exists, and bundles do not replace files", path.display()))
}

/// Writes a bundle that only its owner may read. A file that is there stays as it is. Returns why it will not be read again,
/// if it is too large for that.
pub(crate) fn write(
    path: &Path,
    snapshot: &Snapshot,
    report: &Report,
    logs: &[ContainerLog],
) -> Result<Option<String>, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::other(format!("cannot write {}", path.display())).because(error);
    let bundle = Written { kind: KIND, version: ocm_cli::VERSION, snapshot, report, logs };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => is_there(path),
        _ => failed(&error),
    })?;
    let mut buffered = std::io::BufWriter::new(&mut file);
    let written = serde_json::to_writer(&mut buffered, &bundle).map_err(std::io::Error::from);
    written.and_then(|()| buffered.flush()).map_err(|error| {
        // Half a bundle is none, and would keep the next one from being written.
        let _ = std::fs::remove_file(path);
        failed(&error)
    })?;
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let count = || std::fs::read(path).ok().and_then(|text| has_values(&text));
    Ok(is_large(bytes).or_else(|| has_many(snapshot)).or_else(count))
}

fn has_values(text: &[u8]) -> Option<String> {
    let count = values(text);
    (count > VALUES).then(|| format!("it has {count} values, and at most {VALUES} are read"))
}

fn is_large(bytes: u64) -> Option<String> {
    (bytes > LARGEST).then(|| format!("it is larger than {} MiB, the most that is read", LARGEST >> 20))
}

fn has_many(snapshot: &Snapshot) -> Option<String> {
    let objects = snapshot.clusters.len()
        + snapshot.probes.len()
        + snapshot.in_cluster.len()
        + snapshot.hub.as_ref().map_or(0, of_hub)
        + snapshot.managed.as_ref().map_or(0, of_managed);
    (objects > MOST).then(|| format!("it has {objects} objects, and at most {MOST} are read"))
}

fn length<T>(list: &Observed<Vec<T>>) -> usize {
    list.read().map_or(0, Vec::len)
}

fn of_hub(hub: &HubSide) -> usize {
    length(&hub.managers)
        + length(&hub.deployments)
        + hub.unread_namespaces.len()
        + length(&hub.webhooks)
        + length(&hub.serving)
        + length(&hub.admission)
        + length(&hub.conversions)
        + length(&hub.clusters)
        + length(&hub.requests)
        + hub.dropped_requests.len()
        + length(&hub.leases)
        + length(&hub.terminating)
        + length(&hub.works)
        + length(&hub.addons)
        + length(&hub.policies)
        + length(&hub.registrations)
        + length(&hub.policy_engine)
}

fn of_managed(managed: &ManagedSide) -> usize {
    let agents = managed.agents.iter().map(|agent| 1 + length(&agent.deployments) + length(&agent.leases));
    length(&managed.leases)
        + length(&managed.klusterlets)
        + length(&managed.terminating)
        + length(&managed.applied_works)
        + length(&managed.admins)
        + agents.sum::<usize>()
}

/// How many JSON objects a text has, before any is made of it: empty ones take far more room than their two characters.
fn values(text: &[u8]) -> usize {
    let (mut is_string, mut is_escaped, mut count) = (false, false, 0);
    for byte in text {
        match (is_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => is_string = !is_string,
            (false, b'{') => count += 1,
            _ => {}
        }
    }
    count
}

/// Whether a text is a bundle.
pub(crate) fn is_bundle(text: &[u8]) -> bool {
    str::from_utf8(text).is_ok_and(|text| serde_json::from_str::<Head>(text).is_ok_and(|head| head.kind == KIND))
}

/// Reads a bundle. How deep a document goes is the parser's to limit.
pub(crate) fn read(name: &str, text: &[u8]) -> Result<Snapshot, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::usage(format!("cannot read {name}")).because(why);
    let not_ours = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{name} is not a bundle of this kubectl ocm troubleshoot"))
            .because(error)
            .hint("write one with: kubectl ocm troubleshoot CLUSTER --bundle FILE")
    };
    const SMALL: &str = "bundles of single clusters are small: kubectl ocm troubleshoot CLUSTER --bundle FILE";
    if let Some(why) = has_values(text) {
        return Err(failed(&why).hint(SMALL));
    }
    // As text, like answers of API servers: what both hold is read by the same code.
    let text = str::from_utf8(text).map_err(|error| not_ours(&error))?;
    let kept: Kept = serde_json::from_str(text).map_err(|error| not_ours(&error))?;
    if kept.snapshot.format > FORMAT {
        let newer = format!("it has format {}, and this program reads up to {FORMAT}", kept.snapshot.format);
        return Err(not_ours(&newer));
    }
    if let Some(why) = has_many(&kept.snapshot) {
        return Err(failed(&why).hint(SMALL));
    }
    Ok(kept.snapshot)
}
