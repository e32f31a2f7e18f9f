//! The modules that records may be of, and what is said of a record that none can be asked about.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ocm_core::order::Collect as _;
use ocm_core::{Failure, Reason};
use ocm_policy_engine::{componentize, digest};
use ocm_policy_rules::record::Record;

use crate::args::KindArgs;
use crate::load::{Loader, module, refused};

/// A module that records may be of.
pub(super) struct Candidate {
    pub(super) file: PathBuf,
    pub(super) module: Vec<u8>,
    pub(super) digest: String,
    /// The policy that it is of.
    pub(super) name: String,
}

/// The modules with the policies that they are of: `MODULE`, or `POLICY=MODULE`. A file whose own name holds the sign is
/// meant first.
pub(super) fn candidates<'r>(
    loader: &Loader,
    words: &[String],
    kind: KindArgs,
    records: impl Iterator<Item = &'r Record> + Clone,
) -> Result<Vec<Candidate>, Failure> {
    let recorded: BTreeSet<&str> = records.clone().map(|record| record.module_sha256.as_str()).collect_set();
    let mut candidates = Vec::new();
    for word in words {
        let (policy, file) = match word.split_once('=') {
            Some((policy, file)) if !policy.is_empty() && !PathBuf::from(word).exists() => (Some(policy), file),
            _ => (None, word.as_str()),
        };
        let file = PathBuf::from(file);
        let module = as_recorded(module(&file, kind)?, &recorded);
        let digest = digest(&module);
        let of_it = records.clone().find(|record| record.module_sha256 == digest);
        let name = match (policy, of_it) {
            (Some(policy), _) => policy.to_owned(),
            (None, Some(record)) => record.policy.name.clone(),
            (None, None) => loader.describe(&module).map_err(|error| refused(&file, &error))?.name,
        };
        candidates.push(Candidate { file, module, digest, name });
    }
    Ok(candidates)
}

/// The module in the form that a record is of. A hub makes a component of a core module before it asks it.
fn as_recorded(module: Vec<u8>, recorded: &BTreeSet<&str>) -> Vec<u8> {
    let is_recorded = |module: &[u8]| recorded.contains(digest(module).as_str());
    if is_recorded(&module) {
        return module;
    }
    componentize(&module).ok().filter(|component| is_recorded(component)).unwrap_or(module)
}

/// A record that cannot be asked again.
pub(super) fn unasked(place: &str, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Reason::Usage, format!("{place} cannot be asked again")).because(why)
}
