//! So many people have to approve a cluster.

use std::collections::{BTreeMap, BTreeSet};

use ocm_policy_sdk::serde_json::Value;
use ocm_policy_sdk::{
    Answer, EvidenceSource, ManifestBuilder, Operation, Policy, Request, Row, allow, deny, hold, hub, manifest,
    no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Approvals {
    /// How many people.
    required: usize,
    /// Each of them is in one of these groups; nothing: whoever may approve.
    groups: Vec<String>,
    /// Service accounts that count, too, as `namespace/name`.
    service_accounts: Vec<String>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { required: 2, groups: Vec::new(), service_accounts: Vec::new() }
    }
}

/// More people are asked by nobody.
const MOST: usize = 16;
/// What was said of the cluster.
const APPROVALS: &str = "approvals";
/// The cluster itself: a certificate request does not tell which registration of its name it is for.
const CLUSTER: &str = "cluster";

/// An approval that may count.
struct Approval<'t> {
    requester: &'t str,
    approver: &'t str,
}

impl Policy for Approvals {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        let fields = ["/clusterUid", "/requester", "/approver", "/groups", "/expires", "/breakGlass"];
        manifest("approvals", env!("CARGO_PKG_VERSION"), "Lets in clusters that so many people have approved")
            .judges([Operation::Create, Operation::Join, Operation::Accept, Operation::Approve])
            .needs_of_cluster(APPROVALS, EvidenceSource::Approvals, "/cluster", &fields)
            .needs_of_cluster(CLUSTER, EvidenceSource::Clusters, "/metadata/name", &["/metadata/uid"])
            .gives_codes(hub::CLUSTER_CODES)
            .gives(
                "IdentityBorrowed",
                "Whoever asks has the name of a service account or token, but not what belongs to it",
            )
            .gives("ApprovalsMissing", "Fewer people have approved the cluster than have to")
            .gives("ApprovalsUnproved", "The hub does not prove who wrote the approvals, or has too many of them")
            .gives("ClusterMissing", "The hub has no such cluster yet that could have been approved")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let mut wrong = Vec::new();
        if !(1..=MOST).contains(&settings.required) {
            wrong.push(format!("required has to be 1 to {MOST}"));
        }
        if settings.groups.iter().any(String::is_empty) {
            wrong.push("a group has no name".to_owned());
        }
        let is_account = |account: &String| account.split_once('/').is_some_and(|(_, name)| !name.contains('/'));
        if let Some(other) = settings.service_accounts.iter().find(|account| !is_account(account)) {
            wrong.push(format!("the service account {other:?} is not written as namespace/name"));
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request)
    }
}

impl Approvals {
    fn judge(&self, request: &Request<'_>) -> Answer {
        if hub::is_denial(request) || hub::is_renewal(request) || hub::is_addons(request) {
            return no_opinion();
        }
        if request.operation() == Operation::Create {
            return match request.cluster() {
                Some(cluster) if cluster.accepted => hold(
                    "ClusterMissing",
                    "a cluster can be approved only once it is there: create it without accepting it",
                )
                .at("spec.hubAcceptsClient"),
                _ => no_opinion(),
            };
        }
        let name = match hub::cluster_name(request) {
            Err(violation) => return hub::violated(violation),
            // It has nothing to do with clusters.
            Ok(None) if request.csr().is_some() => return no_opinion(),
            Ok(name) => name,
        };
        if request.csr().is_some()
            && let Some(lack) = hub::lacks(hub::asker(request))
        {
            return deny("IdentityBorrowed", format!("who asks {lack}")).at("spec.username");
        }
        let uid = request.cluster().and_then(|cluster| cluster.uid.as_deref()).or_else(|| {
            let row = request.evidence(CLUSTER)?.rows.iter().find(|row| Some(&*row.name) == name)?;
            row.values.first()?.as_str()
        });
        let Some(uid) = uid else {
            return hold("ClusterMissing", "the hub has no such cluster yet that could have been approved");
        };
        let Some(table) = request.evidence(APPROVALS).filter(|table| table.complete) else {
            let why =
                "approvals cannot be counted: the hub has no baseline that proves who wrote them, or has too many";
            return hold("ApprovalsUnproved", why);
        };
        let mut approvers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for approval in table.rows.iter().filter_map(|row| self.read(row, uid, request.now())) {
            approvers.entry(approval.requester).or_default().insert(approval.approver);
        }
        // Whoever accepts a cluster does not tell who asked for its certificate, which is judged by itself.
        let known = request.csr().is_some() || request.creator().is_some();
        let count = match known {
            true => approvers.get(hub::asking_user(request)).map_or(0, BTreeSet::len),
            false => approvers.values().map(BTreeSet::len).max().unwrap_or_default(),
        };
        if count >= self.required {
            return allow();
        }
        let (required, word) = (self.required, if self.required == 1 { "approval" } else { "approvals" });
        let by = if self.groups.is_empty() { "" } else { " of the right groups" };
        hold("ApprovalsMissing", format!("{count} of {required} {word}{by} for this cluster and who asks for it"))
    }

    /// The approval of a row, if it counts for this cluster now.
    fn read<'t>(&self, row: &'t Row<'_>, uid: &str, now: i64) -> Option<Approval<'t>> {
        let [of, requester, approver, groups, expires, break_glass] = &row.values[..] else { return None };
        let (requester, approver) = (requester.as_str()?, approver.as_str()?);
        let in_group =
            |group: &Value| group.as_str().is_some_and(|group| self.groups.iter().any(|known| known == group));
        let counts = row.complete
            && of.as_str() == Some(uid)
            && approver != requester
            && expires.as_i64().is_some_and(|end| end > now)
            && break_glass.as_bool() == Some(false)
            && self.is_person(approver)
            && (self.groups.is_empty() || groups.as_array().is_some_and(|groups| groups.iter().any(in_group)));
        counts.then_some(Approval { requester, approver })
    }

    /// Whether this is a person, or a service account that counts all the same.
    fn is_person(&self, user: &str) -> bool {
        let Some((namespace, name)) = hub::service_account(user) else {
            // The hub's agents and bootstrap tokens are none either.
            return !user.starts_with("system:serviceaccount:")
                && !user.starts_with("system:bootstrap:")
                && !user.starts_with(hub::PREFIX);
        };
        self.service_accounts.iter().any(|known| known.split_once('/') == Some((namespace, name)))
    }
}

ocm_policy_sdk::export!(Approvals);
