//! What the controller writes to the hub, each pinned to exactly what was judged.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DynamicObject, ListParams, ObjectMeta, PartialObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use ocm_api::names::labels;
use ocm_kube::apply::FIELD_MANAGER;
use ocm_kube::pages::paged;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failed::{Failed, failed};
use crate::hub::Asked;
use crate::lease::Leadership;
use crate::listing::{Listing, Versions};

/// The reason that approvals of the controller carry.
pub(crate) const APPROVAL_REASON: &str = "KubectlOcmPolicy";
/// The longest that one write may take.
const ANSWER: Duration = Duration::from_secs(5);
/// After a failure to read.
const AGAIN: Duration = Duration::from_millis(500);
/// Where events about objects without a namespace go.
const EVENTS: &str = "default";
/// Objects of a page. Whoever may register clusters may create any number of requests, with as many annotations as they like.
const PAGE: u32 = 200;
/// Characters of an event's message that the API server takes.
const MESSAGE: usize = 1024;

/// Writes, while this process leads.
pub(crate) struct Effects {
    client: Client,
    lead: Leadership,
    listing: Listing,
}

impl Effects {
    /// Writes with this client, which must send each request once.
    pub(crate) fn new(client: Client, lead: Leadership) -> Self {
        Self { client, lead, listing: Listing::default() }
    }

    /// Sends one request, if this process leads and for as long as it does.
    pub(crate) async fn send<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
        let left = self.lead.left().ok_or(Failed::NotLeading)?;
        match tokio::time::timeout(ANSWER.min(left), request).await {
            Err(_) => Err(Failed::Late),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failed(&error)),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether these are all requests that carry the label of a cluster, each as it is now. Another key that asks for the
    /// name may be on its way here. All pages of a long list are as old as the first one: whatever comes while they are read
    /// is not among them.
    pub(crate) async fn are_all(&self, cluster: &str, known: &[std::sync::Arc<Asked>]) -> Result<bool, Failed> {
        let mut now = self.listing.of(cluster, |clusters| self.requests_of(clusters)).await?;
        let labelled = known.iter().filter(|asked| asked.request.cluster_label.as_deref() == Some(cluster));
        let mut known: Vec<_> =
            labelled.map(|asked| (asked.request.uid.clone(), Some(asked.version.clone()))).collect();
        now.sort();
        known.sort();
        Ok(now == known)
    }

    /// The requests that carry the labels of these clusters, whose names are DNS labels.
    async fn requests_of(&self, clusters: Vec<String>) -> Result<HashMap<String, Versions>, Failed> {
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let params = ListParams::default().labels(&format!("{} in ({})", labels::CLUSTER_NAME, clusters.join(",")));
        let api = &api;
        let list = |params: ListParams| async move { self.send(api.list_metadata(&params)).await };
        let known = |object: PartialObjectMeta<CertificateSigningRequest>| {
            let ObjectMeta { labels: all, uid, resource_version, .. } = object.metadata;
            let cluster = all.unwrap_or_default().remove(labels::CLUSTER_NAME).unwrap_or_default();
            Some((cluster, (uid, resource_version)))
        };
        let mut of: HashMap<String, Versions> = HashMap::new();
        for (cluster, version) in paged(params, || PAGE, list, known).await? {
            of.entry(cluster).or_default().push(version);
        }
        Ok(of)
    }

    /// Approves exactly this request: its UID and resource version go along. The resource version that it has then.
    pub(crate) async fn approve(&self, request: &Value, message: &str) -> Result<u64, Failed> {
        let mut object: CertificateSigningRequest =
            serde_json::from_value(request.clone()).map_err(|error| Failed::Refused(error.to_string()))?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let status = object.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
            type_: "Approved".to_owned(),
            status: "True".to_owned(),
            reason: Some(APPROVAL_REASON.to_owned()),
            message: Some(message.to_owned()),
            last_update_time: Some(Time(Timestamp::now())),
            ..CertificateSigningRequestCondition::default()
        });
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let written = self.send(api.replace_subresource("approval", &name, &params, &object)).await?;
        Ok(number(written.metadata.resource_version.as_deref()))
    }

    /// Accepts exactly this cluster as it was judged, with the changes that policies make, in one write.
    pub(crate) async fn accept(
        &self,
        cluster: &ManagedCluster,
        has_spec: bool,
        changes: &[Value],
    ) -> Result<u64, Failed> {
        self.write_as_judged(cluster, acceptance(cluster, has_spec, changes)).await
    }

    /// Accepts exactly this cluster no more, whatever else is written to it meanwhile: its agent could write all the time.
    pub(crate) async fn withdraw(&self, cluster: &ManagedCluster) -> Result<u64, Failed> {
        self.write_as_judged(cluster, withdrawal(cluster)).await
    }

    /// Gives exactly this cluster an annotation, whatever else is written to it meanwhile.
    pub(crate) async fn annotate(&self, cluster: &ManagedCluster, key: &str, value: &str) -> Result<(), Failed> {
        // The API server takes no other UID than the one that the object has.
        let patch = json!({"metadata": {"uid": cluster.metadata.uid, "annotations": {key: value}}});
        self.write(cluster, &Patch::Merge(patch)).await.map(drop)
    }

    /// Changes exactly this cluster as it was looked at.
    pub(crate) async fn change(&self, cluster: &ManagedCluster, changes: Vec<Value>) -> Result<(), Failed> {
        let patch = pins(cluster).into_iter().chain(changes).collect();
        self.write_as_judged(cluster, patch).await.map(drop)
    }

    /// Sends a patch that fails as a whole where the cluster is not what it says.
    async fn write_as_judged(&self, cluster: &ManagedCluster, patch: Value) -> Result<u64, Failed> {
        let patch = serde_json::from_value(patch).map_err(|error| Failed::Refused(error.to_string()))?;
        self.write(cluster, &Patch::<()>::Json(patch)).await
    }

    async fn write<P: Serialize + fmt::Debug>(
        &self,
        cluster: &ManagedCluster,
        patch: &Patch<P>,
    ) -> Result<u64, Failed> {
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &kube::api::ApiResource::erase::<ManagedCluster>(&()));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let written = self.send(api.patch(name, &params, patch)).await.map_err(|failed| match failed {
            // It is not what was judged any more, or a webhook of the hub wanted a change that does not fit: look anew.
            Failed::Invalid(_) => Failed::Changed,
            failed => failed,
        })?;
        Ok(number(written.metadata.resource_version.as_deref()))
    }

    /// The resource version that an object has now; 0: the hub has none of this name. The hub is asked until it answers, or this
    /// process leads no more.
    pub(crate) async fn version<K>(&self, name: &str) -> Result<u64, Failed>
    where
        K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        loop {
            match self.send(api.get_metadata_opt(name)).await {
                Ok(there) => return Ok(number(there.and_then(|there| there.metadata.resource_version).as_deref())),
                Err(Failed::NotLeading) => return Err(Failed::NotLeading),
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }

    /// Tells of a change of a registration. Whether anybody hears of it changes nothing.
    pub(crate) async fn tell(&self, cluster: &ManagedCluster, reason: &str, is_normal: bool, message: &str) {
        self.tell_about(about(cluster), reason, is_normal, message).await;
    }

    /// Tells of an object that has no namespace. Whether anybody hears of it changes nothing.
    pub(crate) async fn tell_about(&self, about: ObjectReference, reason: &str, is_normal: bool, message: &str) {
        let mark = format!("{:x}", Timestamp::now().as_nanosecond());
        self.tell_once(about, &mark, reason, is_normal, message).await;
    }

    /// As [`Self::tell_about`], and of the same object and mark only once, whoever tells.
    pub(crate) async fn tell_once(
        &self,
        about: ObjectReference,
        mark: &str,
        reason: &str,
        is_normal: bool,
        message: &str,
    ) {
        let now = Timestamp::now();
        let name = about.name.clone().unwrap_or_default();
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{mark}")),
                namespace: Some(EVENTS.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: about,
            type_: Some(if is_normal { "Normal" } else { "Warning" }.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.chars().take(MESSAGE).collect()),
            source: Some(EventSource { component: Some("ocm-policy-controller".to_owned()), host: None }),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), EVENTS);
        let _ = self.send(api.create(&PostParams::default(), &event)).await;
    }
}

/// The patch that accepts a cluster. It fails as a whole where the cluster is not what was judged.
fn acceptance(cluster: &ManagedCluster, has_spec: bool, changes: &[Value]) -> Value {
    // OCM's schema does not require a spec, and a patch adds nothing to what is not there. The changes may bring one.
    let is_missing = !has_spec && !changes.iter().any(|change| change["path"] == "/spec");
    let spec = is_missing.then(|| json!({"op": "add", "path": "/spec", "value": {}}));
    // The resource version says that it was not accepted before.
    let accept = json!({"op": "add", "path": "/spec/hubAcceptsClient", "value": true});
    pins(cluster).into_iter().chain(spec).chain(changes.iter().cloned()).chain([accept]).collect()
}

/// The patch that withdraws the acceptance of a cluster, and changes nothing else.
fn withdrawal(cluster: &ManagedCluster) -> Value {
    json!([
        {"op": "test", "path": "/metadata/uid", "value": cluster.metadata.uid},
        {"op": "test", "path": "/spec/hubAcceptsClient", "value": true},
        {"op": "replace", "path": "/spec/hubAcceptsClient", "value": false},
    ])
}

/// What events about a cluster are about.
pub(crate) fn about(cluster: &ManagedCluster) -> ObjectReference {
    ObjectReference {
        api_version: Some("cluster.open-cluster-management.io/v1".to_owned()),
        kind: Some("ManagedCluster".to_owned()),
        name: cluster.metadata.name.clone(),
        uid: cluster.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// What has a patch fail as a whole where a cluster is not as it was looked at.
fn pins(cluster: &ManagedCluster) -> [Value; 2] {
    [
        json!({"op": "test", "path": "/metadata/uid", "value": cluster.metadata.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": cluster.metadata.resource_version}),
    ]
}

fn number(version: Option<&str>) -> u64 {
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptance_is_of_what_was_judged() {
        let cluster: ManagedCluster = serde_json::from_value(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c1", "uid": "u", "resourceVersion": "7"}, "spec": {},
        }))
        .unwrap();
        let change = json!({"op": "add", "path": "/metadata/labels/env", "value": "prod"});
        let patch = acceptance(&cluster, true, std::slice::from_ref(&change));
        let tests: Vec<&Value> = patch.as_array().unwrap().iter().filter(|one| one["op"] == "test").collect();
        assert_eq!(tests.len(), 2);
        assert_eq!((&tests[0]["value"], &tests[1]["value"]), (&json!("u"), &json!("7")));
        let accept = json!({"op": "add", "path": "/spec/hubAcceptsClient", "value": true});
        assert_eq!((&patch[2], &patch[3], patch.as_array().map(Vec::len)), (&change, &accept, Some(4)));
    }

    #[test]
    fn a_withdrawal_is_of_this_cluster_whatever_version_it_has_by_then() {
        let cluster = |version: &str| -> ManagedCluster {
            serde_json::from_value(json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": "c1", "uid": "u", "resourceVersion": version, "generation": version.len()},
                "spec": {"hubAcceptsClient": true},
            }))
            .unwrap()
        };
        let patch = withdrawal(&cluster("7"));
        assert_eq!(patch, withdrawal(&cluster("800")));
        let pins = [("/metadata/uid", json!("u")), ("/spec/hubAcceptsClient", json!(true))];
        for (index, (path, value)) in pins.into_iter().enumerate() {
            assert_eq!(patch[index], json!({"op": "test", "path": path, "value": value}));
        }
        let withdraw = json!({"op": "replace", "path": "/spec/hubAcceptsClient", "value": false});
        assert_eq!((&patch[2], patch.as_array().map(Vec::len)), (&withdraw, Some(3)));
    }

    #[test]
    fn a_cluster_without_a_spec_gets_one_with_its_acceptance() {
        let cluster = ManagedCluster::default();
        let spec = json!({"op": "add", "path": "/spec", "value": {}});
        let lease = json!({"op": "add", "path": "/spec/leaseDurationSeconds", "value": 30});
        let accept = json!({"op": "add", "path": "/spec/hubAcceptsClient", "value": true});
        let after_pins = |changes: &[Value]| -> Vec<Value> {
            let patch = acceptance(&cluster, false, changes);
            patch.as_array().unwrap().iter().skip(2).cloned().collect()
        };
        assert_eq!(after_pins(&[]), [spec.clone(), accept.clone()]);
        // Policies that change the spec bring it, once.
        assert_eq!(after_pins(&[spec.clone(), lease.clone()]), [spec, lease, accept]);
    }
}
