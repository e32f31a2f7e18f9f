//! What has changed between looks at the same clusters.

use std::collections::{BTreeMap, BTreeSet};

use ocm_core::order::Collect as _;
use serde::Serialize;

use crate::chain::{Standing, Way};
use crate::finding::{Finding, Id, ObjectRef};
use crate::judge::{Report, Unknown};
use crate::snapshot::Snapshot;

/// Something that is not as it was at the look before.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "camelCase")]
pub enum Change {
    /// A cluster stands somewhere else on its way, or is new.
    Moved {
        /// Where it stands.
        standing: Standing,
    },
    /// A cluster is not there any more.
    Gone {
        /// Its name.
        cluster: String,
    },
    /// Something is wrong that was not.
    Found {
        /// What.
        finding: Finding,
    },
    /// Something is not found any more, and it was looked for.
    Ended {
        /// As it was found.
        finding: Finding,
    },
    /// Checks cannot be made any more. What they had found is still taken for true.
    Unknown {
        /// Which, and why.
        unknown: Unknown,
    },
    /// Checks can be made again.
    Known {
        /// Which.
        ids: BTreeSet<Id>,
    },
}

/// What tells one finding from others: its sentence tells times and numbers, which change while nothing else does.
type Key = (Id, Option<String>, Option<ObjectRef>);

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    standings: BTreeMap<String, (Way, Option<String>)>,
    findings: BTreeMap<Key, Finding>,
    unknown: BTreeSet<Id>,
}

impl History {
    /// Takes in a further report, and tells what is different: first what has ended, then what was found, then where
    /// clusters stand.
    pub fn observe(&mut self, snapshot: &Snapshot, report: &Report) -> Vec<Change> {
        let mut changes = Vec::new();
        let found: BTreeMap<Key, &Finding> =
            report.findings.iter().map(|finding| (key(finding), finding)).collect_map();
        let consequences = || report.findings.iter().flat_map(|finding| &finding.consequences);
        let folded: BTreeSet<Key> = consequences().map(key).collect_set();
        let unknown: BTreeSet<Id> = report.unknown.iter().flat_map(|unknown| unknown.ids.iter().copied()).collect_set();

        // What cannot be looked for, or is listed under its cause now, has not ended.
        let has_ended = |key: &Key| !found.contains_key(key) && !folded.contains(key) && !unknown.contains(&key.0);
        for (_, finding) in self.findings.extract_if(.., |key, _| has_ended(key)) {
            changes.push(Change::Ended { finding });
        }
        let known: BTreeSet<Id> = self.unknown.difference(&unknown).copied().collect_set();
        if !known.is_empty() {
            changes.push(Change::Known { ids: known });
        }
        for group in &report.unknown {
            let ids: Vec<Id> = group.ids.iter().copied().filter(|id| !self.unknown.contains(id)).collect();
            if !ids.is_empty() {
                changes.push(Change::Unknown { unknown: Unknown { ids, ..group.clone() } });
            }
        }
        self.unknown = unknown;
        for (key, finding) in found {
            // How bad it is may change, and so does what is known of it.
            let before = self.findings.insert(key, finding.clone());
            if before.is_none_or(|before| before.severity != finding.severity) {
                changes.push(Change::Found { finding: finding.clone() });
            }
        }
        self.clusters(snapshot, report, &mut changes);
        changes
    }

    fn clusters(&mut self, snapshot: &Snapshot, report: &Report, changes: &mut Vec<Change>) {
        let names: BTreeSet<&str> = report.clusters.iter().map(|standing| standing.name.as_str()).collect_set();
        // A hub whose clusters could not be read may have as many as before.
        if snapshot.hub.as_ref().is_none_or(|hub| hub.clusters.read().is_some()) {
            let gone = self.standings.extract_if(.., |name, _| !names.contains(name.as_str()));
            changes.extend(gone.map(|(cluster, _)| Change::Gone { cluster }));
        }
        for standing in &report.clusters {
            let stands = (standing.way, standing.phase.clone());
            let before = self.standings.insert(standing.name.clone(), stands.clone());
            if before.as_ref() != Some(&stands) {
                changes.push(Change::Moved { standing: standing.clone() });
            }
        }
    }
}

fn key(finding: &Finding) -> Key {
    // Of a cluster a check finds one thing; of a hub one for each object.
    let object = finding.objects.first().filter(|_| finding.cluster.is_none());
    (finding.id, finding.cluster.clone(), object.cloned())
}
