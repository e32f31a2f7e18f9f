//! Files with what was seen.

use std::io::{Read as _, Write as _};
use std::path::Path;

use ocm_checks::judge::Report;
use ocm_checks::snapshot::{FORMAT, HubSide, ManagedSide, Observed, Snapshot};
use ocm_core::Failure;
use serde::{Deserialize, Serialize};

/// The kind of document.
const KIND: &str = "TroubleshootBundle";
/// The most that is read: bytes. How deep a document goes is the parser's to limit.
const LARGEST: u64 = 64 << 20;
/// How many objects a bundle may have: small ones take more room when they are read than in the file.
const MOST: usize = 200_000;

#[derive(Serialize)]
struct Written<'a> {
    kind: &'static str,
    version: &'static str,
    snapshot: &'a Snapshot,
    report: &'a Report,
}

#[derive(Deserialize)]
struct Kept {
    kind: String,
    snapshot: Snapshot,
}

/// Writes a bundle that only its owner may read. A file that is there stays as it is. Returns why it will not be read again,
/// if it is too large for that.
pub(crate) fn write(path: &Path, snapshot: &Snapshot, report: &Report) -> Result<Option<String>, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::other(format!("cannot write {}", path.display())).because(error);
    let bundle = Written { kind: KIND, version: ocm_cli::VERSION, snapshot, report };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} exists, and bundles do not replace files", path.display()))
        }
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
    Ok(is_large(bytes).or_else(|| has_many(snapshot)))
}

fn is_large(bytes: u64) -> Option<String> {
    (bytes > LARGEST).then(|| format!("it is larger than {} MiB, the most that is read", LARGEST >> 20))
}

fn has_many(snapshot: &Snapshot) -> Option<String> {
    let objects = snapshot.clusters.len()
        + snapshot.probes.len()
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
        + length(&hub.webhooks)
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
    length(&managed.leases) + length(&managed.klusterlets) + length(&managed.terminating) + agents.sum::<usize>()
}

/// Reads a bundle, from stdin if the file is called `-`.
pub(crate) fn read(path: &Path) -> Result<Snapshot, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::usage(format!("cannot read {}", path.display())).because(error);
    let mut text = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut text))
    };
    read.map_err(|error| failed(&error))?;
    let too_large = |why: String| {
        failed(&why).hint("bundles of single clusters are small: kubectl ocm troubleshoot CLUSTER --bundle FILE")
    };
    if let Some(why) = is_large(text.len() as u64) {
        return Err(too_large(why));
    }
    let not_ours = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{} is not a bundle of kubectl ocm troubleshoot", path.display()))
            .because(error)
            .hint("write one with: kubectl ocm troubleshoot CLUSTER --bundle FILE")
    };
    let kept: Kept = serde_json::from_slice(&text).map_err(|error| not_ours(&error))?;
    if kept.kind != KIND {
        return Err(not_ours(&format!("its kind is {:?}", kept.kind)));
    }
    if kept.snapshot.format > FORMAT {
        let newer = format!("it has format {}, and this program reads up to {FORMAT}", kept.snapshot.format);
        return Err(not_ours(&newer));
    }
    if let Some(why) = has_many(&kept.snapshot) {
        return Err(too_large(why));
    }
    Ok(kept.snapshot)
}
