//! What has happened and what will end, in the order of time.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use ocm_core::certificate::Certificate;
use ocm_core::order;

use crate::facts::{self, Facts};
use crate::snapshot::TokenFacts;

/// A moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// The cluster that it is about; none: the hub or the managed cluster as a whole.
    pub cluster: Option<String>,
    /// What, in words.
    pub what: String,
}

/// What has happened to the clusters of a snapshot and what will end, the earliest first.
pub fn timeline(facts: &Facts<'_>) -> Vec<Moment> {
    let mut moments = Vec::new();
    let mut add = |at: Option<Timestamp>, cluster: Option<&str>, what: &str| {
        let cluster = cluster.map(str::to_owned);
        moments.extend(at.map(|at| Moment { at, cluster, what: what.to_owned() }));
    };
    let ends = |der: &ByteString| Certificate::read(&der.0).map(|certificate| certificate.not_after);
    if let Some(hub) = &facts.snapshot.hub {
        add(hub.authorities.iter().filter_map(ends).max(), None, "the CA of the hub's API server ends");
        let bundle = hub.ca_bundle.read().and_then(Option::as_ref);
        add(bundle.into_iter().flatten().filter_map(ends).max(), None, "the CA of the hub's webhooks ends");
        for serving in hub.serving.read().into_iter().flatten() {
            let what = format!("the certificate of webhook {} ends", serving.service);
            add(serving.certificate.read().and_then(ends), None, &what);
        }
    }
    for cluster in facts.clusters.values() {
        let name = Some(cluster.name);
        let metadata = cluster.object.map(|object| &object.metadata);
        let time =
            |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| time.as_ref().map(|time| time.0);
        add(metadata.and_then(|metadata| time(&metadata.creation_timestamp)), name, "registered");
        add(metadata.and_then(|metadata| time(&metadata.deletion_timestamp)), name, "detached");
        for request in cluster.requests.iter().take(REQUESTS) {
            add(request.created, name, "a certificate was asked for");
            add(request.decided, name, &format!("a request was decided: {}", request.state));
        }
        add(cluster.heard(), name, "the hub heard from the agent");
        let Some(agent) = cluster.agent else { continue };
        if let Some(certificate) = facts::certificate(agent.side) {
            add(Some(certificate.not_before), name, "the agent's certificate begins");
            add(Some(certificate.not_after), name, "the agent's certificate ends");
        }
        let kubeconfig =
            agent.side.bootstrap.read().and_then(Option::as_ref).and_then(|secret| secret.kubeconfig.as_ref());
        if let Some(TokenFacts::ServiceAccount { expires, .. }) = kubeconfig.and_then(|found| found.token.as_ref()) {
            add(time(expires), name, "the token that the agent registers with ends");
        }
    }
    order::sort(&mut moments);
    moments
}

/// Of how many requests of a cluster is told.
const REQUESTS: usize = 3;
