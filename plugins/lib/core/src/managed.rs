//! What a managed cluster shows of its agent, and what its hub shows of it: facts, each of them or why it could not be
//! read.

use jiff::Timestamp;
use ocm_api::conditions::{self, klusterlet, managed_cluster};
use ocm_api::names::annotations;
use ocm_api::parts::Lease;
use ocm_api::{Condition, Klusterlet, ManagedCluster};

use crate::Failure;
use crate::certificate::Certificate;
use crate::csr::Request;
use crate::join::agent::Agent;
use crate::join::membership::Identity;
use crate::kubeconfig::HubAddress;
use crate::workload::Health;

/// What a managed cluster shows of its agent at one moment.
#[derive(Clone, Debug)]
pub struct ManagedFacts {
    /// The operator's Deployment.
    pub operator: Result<Health, Failure>,
    /// The Klusterlet.
    pub klusterlet: Result<Option<Klusterlet>, Failure>,
    /// The agents' Deployments that the operator has made so far.
    pub agents: Result<Vec<(String, Health)>, Failure>,
    /// What the agent has written down of itself.
    pub identity: Result<AgentFacts, Failure>,
}

impl ManagedFacts {
    /// Why something could not be read.
    pub fn trouble(&self) -> Option<&Failure> {
        let Self { operator, klusterlet, agents, identity } = self;
        let troubles =
            [operator.as_ref().err(), identity.as_ref().err(), klusterlet.as_ref().err(), agents.as_ref().err()];
        troubles.into_iter().flatten().next()
    }
}

/// What an agent has written down of itself in its Secret, which is there and empty before a hub has let it in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFacts {
    /// The name under which it registered the cluster.
    pub cluster: Option<String>,
    /// Its own name.
    pub name: Option<String>,
    /// The hub that it reports to.
    pub hub: Option<HubAddress>,
    /// Its certificate.
    pub certificate: Option<Certificate>,
    /// Whether it was let in over gRPC, or once was.
    pub by_grpc: bool,
}

impl AgentFacts {
    /// The identity that a hub gave it; none as long as something of it is missing.
    pub fn identity(&self) -> Option<Identity> {
        Some(Identity {
            hub: self.hub.clone()?,
            cluster: self.cluster.clone()?,
            expires: Some(self.certificate.as_ref()?.not_after),
        })
    }

    /// What of it the agent takes for its own if it registers by this way to the hub: a certificate that it got by another way
    /// is as none.
    #[must_use]
    pub fn registered_by(self, way: &HubAddress) -> Self {
        let is_by = self.hub.as_ref().is_none_or(|hub| hub.is_same_way(way));
        Self { certificate: self.certificate.filter(|_| is_by), ..self }
    }

    /// What of it an agent takes for its own that is started under this name: a certificate of another name is as none.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        let is_named = self.name.as_deref() == Some(name);
        Self { name: Some(name.to_owned()), certificate: self.certificate.filter(|_| is_named), ..self }
    }

    /// The agent of the cluster `cluster`, as far as its requests show it.
    pub fn agent(&self, cluster: &str, now: Timestamp) -> Agent {
        // What an agent wrote down under another name is not this one's: neither its name nor its key is asked with again.
        let own = |of: &str| of == cluster;
        let held = self.certificate.as_ref().filter(|certificate| certificate.not_after > now);
        let held = held.filter(|_| self.cluster.as_deref().is_none_or(own));
        Agent {
            cluster: cluster.to_owned(),
            name: self.name.clone().filter(|_| self.cluster.as_deref().is_some_and(own)),
            key: held.map(|certificate| certificate.pin.to_string()),
        }
    }
}

/// What a hub shows of one cluster at one moment.
#[derive(Clone, Debug)]
pub struct RegistrationFacts {
    /// The managed cluster.
    pub cluster: Result<Option<ManagedCluster>, Failure>,
    /// Every request that carries its label, whoever made it.
    pub requests: Result<Vec<Request>, Failure>,
    /// The lease that its agent renews.
    pub lease: Result<Option<Lease>, Failure>,
}

/// What an operator has not done about a Klusterlet, as far as the Klusterlet tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unapplied<'a> {
    /// It reports so. Of a hosted cluster, that it does not reach it, too.
    Reported(&'a Condition),
    /// It has not observed the latest generation.
    NotObserved,
}

/// What an operator has not done about a Klusterlet. None: it says of nothing that it has failed.
pub fn unapplied(klusterlet: &Klusterlet) -> Option<Unapplied<'_>> {
    let status = klusterlet.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let failed = [klusterlet::READY_TO_APPLY, klusterlet::APPLIED]
        .into_iter()
        .filter_map(|kind| conditions::find(conditions, kind))
        .find(|condition| condition.status == conditions::FALSE);
    let seen = status.and_then(|status| status.observed_generation).unwrap_or_default();
    let is_behind = seen < klusterlet.metadata.generation.unwrap_or_default();
    failed.map(Unapplied::Reported).or(is_behind.then_some(Unapplied::NotObserved))
}

/// Whether a cluster registers with an identity of AWS: its agent asks for no certificate.
pub fn comes_by_aws(cluster: &ManagedCluster) -> bool {
    cluster.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(annotations::MANAGED_CLUSTER_ARN))
}

/// Whether the agent of a cluster has joined.
pub fn has_joined(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions::is_true(conditions, managed_cluster::JOINED)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn an_agent_is_known_by_a_certificate_that_is_valid_and_a_name_of_this_life() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
        let certificate = Certificate::read(params.self_signed(&key).unwrap().der()).unwrap();
        let (ends, pin) = (certificate.not_after, certificate.pin.to_string());
        let facts = AgentFacts {
            cluster: Some("c1".to_owned()),
            name: Some("a1".to_owned()),
            certificate: Some(certificate),
            ..AgentFacts::default()
        };
        let before = ends - SignedDuration::from_secs(1);
        assert_eq!(
            facts.agent("c1", before),
            Agent { cluster: "c1".to_owned(), name: Some("a1".to_owned()), key: Some(pin) }
        );
        assert_eq!(facts.agent("c1", ends).key, None);
        let other = Agent { cluster: "c2".to_owned(), name: None, key: None };
        assert_eq!(facts.agent("c2", before), other, "what was left of c1");
        let unnamed = AgentFacts { cluster: None, ..facts.clone() };
        assert!(unnamed.agent("c1", before).key.is_some(), "nobody else's");
        assert_eq!(facts.identity(), None);
        let hub = HubAddress { server: "https://hub".to_owned(), ..HubAddress::default() };
        let whole = AgentFacts { hub: Some(hub.clone()), ..facts.clone() };
        assert_eq!(whole.clone().registered_by(&hub), whole);
        assert_eq!(facts.clone().registered_by(&hub), facts, "by which way is not known");
        let proxied = HubAddress { proxy: Some("http://proxy:3128".to_owned()), ..hub.clone() };
        let named = |entry: &str| HubAddress { entry: Some(entry.to_owned()), ..hub.clone() };
        for (way, has_it) in [(proxied, false), (named("hub"), true), (named("hub-2"), false)] {
            let anew = whole.clone().registered_by(&way);
            assert_eq!((anew.certificate.is_some(), anew.name.as_deref()), (has_it, Some("a1")), "it keeps its name");
        }
        assert_eq!(whole.clone().named("a1"), whole);
        let renamed = whole.clone().named("a2").agent("c1", before);
        assert_eq!(
            (renamed.name.as_deref(), renamed.key),
            (Some("a2"), None),
            "a certificate of another name is as none"
        );
        let identity = Identity { hub, cluster: "c1".to_owned(), expires: Some(ends) };
        assert_eq!(whole.identity(), Some(identity));
        assert_eq!(AgentFacts { certificate: None, ..whole }.identity(), None);
    }
}
