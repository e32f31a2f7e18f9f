//! Which people have approved the cluster, and which of their approvals may count.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ocm_api::RegistrationApproval;

use super::Facts;

/// The approval of one person that counts longest, or else the one that would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenApproval {
    /// Who approves.
    pub approver: String,
    /// The groups that are to count.
    pub groups: Vec<String>,
    /// Why.
    pub reason: Option<String>,
    /// From when on it does not count, as it is written.
    pub expires_at: String,
    /// Whether policies may count it.
    pub counted: Counted,
}

/// Whether policies may count an approval. Which of those that they may they do count is theirs to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// They may.
    Yes,
    /// It is for an emergency.
    BreakGlass,
    /// It has ended.
    Ended,
    /// It is for somebody else who asks.
    OtherRequester,
    /// Whoever asks approved it themselves.
    OwnRequest,
    /// It is being withdrawn.
    Withdrawn,
}

impl Counted {
    /// The stable word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Yes => "Yes",
            Self::BreakGlass => "BreakGlass",
            Self::Ended => "Ended",
            Self::OtherRequester => "OtherRequester",
            Self::OwnRequest => "OwnRequest",
            Self::Withdrawn => "Withdrawn",
        }
    }
}

/// One approval of the cluster for each approver, by their names.
pub(super) fn approvals(facts: &Facts, requester: Option<&str>) -> Vec<GivenApproval> {
    let uid = match facts.cluster() {
        Some(cluster) => cluster.metadata.uid.as_ref(),
        None => facts.written().and_then(|status| status.cluster_uid.as_ref()),
    };
    let known = facts.approvals.as_ref().map(Vec::as_slice).unwrap_or_default();
    let mut best: BTreeMap<&str, (Counted, &RegistrationApproval)> = BTreeMap::new();
    for approval in known.iter().filter(|approval| Some(&approval.spec.cluster.uid) == uid) {
        let one = (counted(approval, requester, facts.now), approval);
        let there = best.entry(&approval.spec.approver).or_insert(one);
        if (one.0, until(there.1)) < (there.0, until(approval)) {
            *there = one;
        }
    }
    let given = best.into_values().map(|(counted, approval)| {
        let spec = approval.spec.clone();
        GivenApproval {
            approver: spec.approver,
            groups: spec.groups,
            reason: spec.reason,
            expires_at: spec.expires_at,
            counted,
        }
    });
    given.collect()
}

fn counted(approval: &RegistrationApproval, requester: Option<&str>, now: Timestamp) -> Counted {
    let spec = &approval.spec;
    match () {
        () if approval.metadata.deletion_timestamp.is_some() => Counted::Withdrawn,
        () if spec.approver == spec.requester => Counted::OwnRequest,
        () if requester.is_some_and(|requester| spec.requester != requester) => Counted::OtherRequester,
        // What cannot be read has no end that would make it count.
        () if until(approval).is_none_or(|until| until <= now) => Counted::Ended,
        () if spec.break_glass => Counted::BreakGlass,
        () => Counted::Yes,
    }
}

fn until(approval: &RegistrationApproval) -> Option<Timestamp> {
    approval.spec.expires_at.parse().ok()
}
