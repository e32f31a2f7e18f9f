//! What was found of one cluster or of many, in the order in which it is shown.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use ocm_checks::finding::Finding;
use ocm_checks::tls::{Expiry, Inventory, Report};
use ocm_cli::findings::Contexts;
use ocm_core::Exit;
use ocm_core::order;

use crate::args::FailOn;

/// What one cluster, or what was named on the command line, has come to.
pub(crate) struct Part {
    /// The context, where many were looked at.
    pub(crate) context: Option<String>,
    pub(crate) inventory: Inventory,
    pub(crate) report: Report,
    /// For commands to paste.
    pub(crate) contexts: Contexts,
}

/// Everything that is shown.
pub(crate) struct Shown<'a> {
    /// One without a context, or those of many clusters.
    pub(crate) parts: &'a [Part],
    pub(crate) fail_on: FailOn,
    pub(crate) exit: Exit,
}

impl<'a> Shown<'a> {
    /// Whether contexts are told.
    pub(crate) fn is_fleet(&self) -> bool {
        self.parts.iter().any(|part| part.context.is_some())
    }

    /// The part that was looked at first.
    pub(crate) fn first(&self) -> Option<&'a Part> {
        self.parts.iter().min_by_key(|part| part.inventory.observed.0)
    }

    /// Everything that is wrong: errors first, and then by id and context.
    pub(crate) fn findings(&self) -> Vec<(&'a Part, &'a Finding)> {
        let mut all: Vec<_> = of_each(self.parts, |part| &part.report.findings).collect();
        order::sort_by_key(&mut all, |(_, finding)| (Reverse(finding.severity), finding.id));
        all
    }

    /// When everything expires, what expires first at the front. A hub may be one of the clusters, too: what is the same in one
    /// context is there once.
    pub(crate) fn expiries(&self) -> Vec<(&'a Part, &'a Expiry)> {
        let mut all: Vec<_> = of_each(self.parts, |part| &part.report.expiries).collect();
        // Those of one part are in order.
        order::sort_by_key(&mut all, |(_, expiry)| expiry.not_after.0);
        let mut seen = BTreeSet::new();
        all.retain(|&(part, expiry)| {
            let Expiry { place, serial, subject, cluster, part: of, not_after, .. } = expiry;
            part.context.is_none() || seen.insert((&part.context, place, serial, subject, cluster, *of, not_after.0))
        });
        all
    }
}

/// What each part has, with the part.
pub(crate) fn of_each<'a, T: 'a>(
    parts: &'a [Part],
    of: impl Fn(&'a Part) -> &'a Vec<T>,
) -> impl Iterator<Item = (&'a Part, &'a T)> {
    parts.iter().flat_map(move |part| of(part).iter().map(move |one| (part, one)))
}

/// A finding with its context where its cluster stands: for those who know of one alone.
pub(crate) fn named(part: &Part, finding: &Finding) -> Finding {
    Finding { cluster: place(part.context.as_deref(), finding.cluster.as_deref()), ..finding.clone() }
}

/// A context and a cluster in one word, of which no two are the same: what stands behind the last slash is the cluster, or nothing
/// where a context that has slashes itself stands alone.
fn place(context: Option<&str>, cluster: Option<&str>) -> Option<String> {
    match (context, cluster) {
        (Some(context), Some(cluster)) => Some(format!("{context}/{cluster}")),
        (Some(context), None) if context.contains('/') => Some(format!("{context}/")),
        (context, cluster) => context.or(cluster).map(str::to_owned),
    }
}

/// What was not looked at, and in which context.
pub(crate) fn what(part: &Part, unseen: &str) -> String {
    match &part.context {
        Some(context) => format!("context {context:?}: {unseen}"),
        None => unseen.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_two_places_have_one_name() {
        let all = [
            (None, Some("c1")),
            (Some("a"), None),
            (Some("a"), Some("b")),
            (Some("a/b"), None),
            (Some("a/b"), Some("c1")),
            (Some("arn:aws:eks:eu:1:cluster/hub"), None),
            (Some("arn:aws:eks:eu:1:cluster"), Some("hub")),
        ];
        let names: BTreeMap<Option<String>, _> =
            all.into_iter().map(|(context, cluster)| (place(context, cluster), (context, cluster))).collect();
        assert_eq!(names.len(), all.len(), "{names:?}");
        assert_eq!(place(Some("a"), Some("b")).as_deref(), Some("a/b"));
        assert_eq!(place(Some("a/b"), None).as_deref(), Some("a/b/"));
        assert_eq!(place(None, None), None);
    }
}
