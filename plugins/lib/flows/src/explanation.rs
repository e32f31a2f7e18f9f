//! What a hub shows of the registrations of clusters, for whoever asks why they are let in or kept out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use ocm_api::names::labels;
use ocm_api::{HubPolicy, ManagedCluster, Registration, RegistrationApproval};
use ocm_core::csr::Request;
use ocm_core::explanation::Facts;
use ocm_core::order::Collect as _;
use ocm_core::{Failure, Reason, Remedy};
use ocm_kube::Cluster;

use crate::get::unknown_name;
use crate::registry::{self, FEW, PAGE, RECORDS_PAGE};

/// What the objects are called in messages.
const REGISTRATION: &str = "registration of a cluster";

/// Reads everything at once. What the user may not read, or the hub does not have, stands in its place.
///
/// # Errors
/// When the hub cannot be read, or knows no cluster of the name.
pub async fn facts(hub: &Cluster, name: &str) -> Result<Facts, Failure> {
    let names = [name.to_owned()];
    let (cluster, requests, mut engine) =
        futures::join!(registry::some_clusters(hub, &names), requests(hub, name), Engine::read(hub, &names));
    let facts = engine.facts(name, cluster.map(|mut found| found.pop()), requests);
    let is_written = matches!(facts.registration, Ok(Some(_)));
    match &facts.cluster {
        Ok(Some(_)) => Ok(facts),
        Ok(None) if is_written => Ok(facts),
        Err(failure) if is_written && failure.reason == Reason::Forbidden => Ok(facts),
        Err(failure) => Err(failure.clone()),
        Ok(None) => {
            let unknown = unknown_name::<ManagedCluster>(hub, "managed cluster", name).await;
            let asks = facts.requests.is_ok_and(|requests| !requests.is_empty());
            Err(if asks { unknown.hint(Remedy::SeeRequests(name.to_owned())) } else { unknown })
        }
    }
}

/// What the policy engine of a hub shows of clusters of some names, read once for all of them. What the user may not read, or
/// the hub does not have, stands in its place.
#[derive(Debug)]
pub(crate) struct Engine {
    registrations: Result<BTreeMap<String, Registration>, Failure>,
    policies: Result<Vec<HubPolicy>, Failure>,
    approvals: Result<Vec<RegistrationApproval>, Failure>,
}

impl Engine {
    async fn read(hub: &Cluster, names: &[String]) -> Self {
        let (registrations, policies, approvals) =
            futures::join!(registrations(hub, names), policies(hub), approvals(hub, names));
        Self { registrations, policies, approvals }
    }

    /// The policy engine of a hub, if it has one.
    pub(crate) async fn of(hub: &Cluster, names: &[String]) -> Option<Self> {
        let engine = Self::read(hub, names).await;
        let is_missing = match &engine.registrations {
            Err(failure) if failure.reason == Reason::KindNotServed => true,
            // The API server refuses before it looks whether there is such a kind.
            Err(failure) if failure.reason == Reason::Forbidden => !registry::serves_registrations(hub).await,
            _ => false,
        };
        (!is_missing).then_some(engine)
    }

    /// What there is to know of one of the clusters, with what was read of the cluster itself. Its registration is handed out
    /// once; the policies are lent until they [come back](Self::back), for a hub may have many and clusters are many.
    pub(crate) fn facts(
        &mut self,
        name: &str,
        cluster: Result<Option<ManagedCluster>, Failure>,
        requests: Result<Vec<Request>, Failure>,
    ) -> Facts {
        let is_for = |approval: &&RegistrationApproval| approval.spec.cluster.name == name;
        Facts {
            name: name.to_owned(),
            cluster,
            registration: match &mut self.registrations {
                Ok(all) => Ok(all.remove(name)),
                Err(failure) => Err(failure.clone()),
            },
            requests,
            policies: std::mem::replace(&mut self.policies, Ok(Vec::new())),
            approvals: match &self.approvals {
                Ok(all) => Ok(all.iter().filter(is_for).cloned().collect()),
                Err(failure) => Err(failure.clone()),
            },
            now: Timestamp::now(),
        }
    }

    /// Takes back what was lent, and returns what was read of the cluster itself.
    pub(crate) fn back(&mut self, facts: Facts) -> (Option<ManagedCluster>, Vec<Request>) {
        self.policies = facts.policies;
        (facts.cluster.ok().flatten(), facts.requests.unwrap_or_default())
    }
}

/// The registrations of names, read one by one or, if they are many, out of a list.
async fn registrations(hub: &Cluster, names: &[String]) -> Result<BTreeMap<String, Registration>, Failure> {
    let found = if names.len() <= FEW {
        registry::some::<Registration>(hub, names, REGISTRATION).await?
    } else {
        let names: BTreeSet<&String> = names.iter().collect_set();
        let wanted = |mut one: Registration| {
            one.metadata.name.as_ref().filter(|name| names.contains(name))?;
            // That there is a record is told, not what it holds: it is larger than all the rest.
            let decision = one.status.as_mut().and_then(|status| status.decision.as_mut());
            if let Some(record) = decision.and_then(|decision| decision.record.as_mut()) {
                *record = String::new();
            }
            Some(one)
        };
        let api: Api<Registration> = Api::all(hub.client.clone());
        let what = "list registrations";
        registry::pages(hub, &api, ListParams::default(), || RECORDS_PAGE, what, wanted).await?
    };
    Ok(found.into_iter().filter_map(|one| Some((one.metadata.name.clone()?, one))).collect_map())
}

/// The requests that carry the cluster's label. Of each only what was read is kept: anybody may create large ones.
async fn requests(hub: &Cluster, name: &str) -> Result<Vec<Request>, Failure> {
    let params = ListParams::default().labels(&format!("{}={name}", labels::CLUSTER_NAME));
    registry::pages_of_requests(hub, params, |object| Some(Request::read(&object))).await
}

async fn policies(hub: &Cluster) -> Result<Vec<HubPolicy>, Failure> {
    let api: Api<HubPolicy> = Api::all(hub.client.clone());
    registry::all(hub, &api, ListParams::default(), "list policies of the hub").await
}

/// The approvals of clusters of the names. The API server cannot select them.
async fn approvals(hub: &Cluster, names: &[String]) -> Result<Vec<RegistrationApproval>, Failure> {
    let names: BTreeSet<&String> = names.iter().collect_set();
    let api: Api<RegistrationApproval> = Api::all(hub.client.clone());
    let is_for = |approval: RegistrationApproval| names.contains(&approval.spec.cluster.name).then_some(approval);
    let what = "list approvals of registrations";
    registry::pages(hub, &api, ListParams::default(), || PAGE, what, is_for).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policies_and_what_was_read_of_a_cluster_come_back_for_the_next_one() {
        let policy: HubPolicy = serde_json::from_value(json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": {"name": "p"},
            "spec": {"module": {"builtin": "p"}, "mode": "Enforce"},
        }))
        .unwrap();
        let mut engine =
            Engine { registrations: Ok(BTreeMap::new()), policies: Ok(vec![policy]), approvals: Ok(Vec::new()) };
        for name in ["c1", "c2"] {
            let facts = engine.facts(name, Ok(Some(ManagedCluster::default())), Ok(Vec::new()));
            assert_eq!(facts.policies.as_ref().map(Vec::len), Ok(1), "{name}");
            assert!(engine.back(facts).0.is_some(), "{name}");
        }
    }
}
