//! Follows the objects of a source on the hub.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use ocm_kube::explain;
use ocm_policy_abi::EvidenceSource;
use serde_json::Value;

use super::store::{Change, Store};

/// Seconds after which the server ends a watch, and it is made again: so one that fell silent is noticed.
const WATCH_SECONDS: u32 = 25;
/// How long a watch may be silent past its end.
const SILENT: Duration = Duration::from_secs(30);
/// Objects of a page: what is decoded at once.
const PAGE: u32 = 200;
/// Pauses after failures: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// The code of an answer that says that what was asked for is too old (`410 Gone`): everything is read anew.
const GONE: u16 = 410;

/// Follows until it is dropped.
///
/// Not by the watcher of the client library, which does not tell that a watch stands again: on a hub at rest nobody could
/// tell what is fresh from what is lost.
pub(super) async fn follow(client: Client, store: Arc<Store>) {
    let (api, fields) = api(client, store.source());
    let mut pause = PAUSES[0];
    loop {
        let why = match list(&api, fields.as_deref(), &store).await {
            Ok(version) => match watch(&api, fields.as_deref(), &store, version, &mut pause).await {
                // The server no longer knows what came after: at once.
                None => continue,
                Some(why) => why,
            },
            Err(error) => explain(&error).to_string(),
        };
        store.take(Change::Lost(why));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES[1]);
    }
}

/// Reads all objects; gives their resource version.
async fn list(api: &Api<DynamicObject>, fields: Option<&str>, store: &Store) -> Result<String, kube::Error> {
    store.take(Change::Begun);
    let mut params = ListParams { field_selector: fields.map(str::to_owned), ..ListParams::default() }.limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        for object in page.items {
            store.take(Change::Listed(value(object)));
        }
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            store.take(Change::Complete);
            return Ok(page.metadata.resource_version.unwrap_or_default());
        }
    }
}

/// Follows all changes after a version, watch after watch. Ends with the reason when a watch cannot be made twice in a
/// row; without one when everything has to be read anew.
async fn watch(
    api: &Api<DynamicObject>,
    fields: Option<&str>,
    store: &Store,
    mut version: String,
    pause: &mut Duration,
) -> Option<String> {
    let params = WatchParams { field_selector: fields.map(str::to_owned), ..WatchParams::default() };
    let params = params.timeout(WATCH_SECONDS);
    loop {
        let mut events = match api.watch(&params, &version).await {
            Ok(events) => Box::pin(events),
            Err(kube::Error::Api(status)) if status.code == GONE => return None,
            Err(error) => return Some(explain(&error).to_string()),
        };
        store.take(Change::Standing);
        *pause = PAUSES[0];
        loop {
            let object = match tokio::time::timeout(SILENT, events.next()).await {
                Err(_) => return Some(format!("the hub told nothing for {} seconds", SILENT.as_secs())),
                Ok(None) => break,
                Ok(Some(Err(error))) => return Some(explain(&error).to_string()),
                Ok(Some(Ok(WatchEvent::Error(status)))) if status.code == GONE => return None,
                Ok(Some(Ok(WatchEvent::Error(status)))) => return Some(status.message.clone()),
                Ok(Some(Ok(WatchEvent::Bookmark(mark)))) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => (object, true),
                Ok(Some(Ok(WatchEvent::Deleted(object)))) => (object, false),
            };
            let (object, is_there) = object;
            version = object.metadata.resource_version.clone().unwrap_or(version);
            store.take(if is_there { Change::Now(value(object)) } else { Change::Gone(value(object)) });
        }
    }
}

/// The object without what no policy asks for.
fn value(mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    serde_json::to_value(object).unwrap_or_default()
}

/// Where the objects of a source are, and which of them.
fn api(client: Client, source: &EvidenceSource) -> (Api<DynamicObject>, Option<String>) {
    let all =
        |group: &str, version: &str, plural: &str| Api::all_with(client.clone(), &resource(group, version, plural));
    let cluster = "cluster.open-cluster-management.io";
    match source {
        EvidenceSource::Clusters => (all(cluster, "v1", "managedclusters"), None),
        EvidenceSource::ClusterSets => (all(cluster, "v1beta2", "managedclustersets"), None),
        EvidenceSource::Namespaces => (all("", "v1", "namespaces"), None),
        EvidenceSource::Csrs => (all("certificates.k8s.io", "v1", "certificatesigningrequests"), None),
        EvidenceSource::ConfigMap { namespace, name } => {
            let api = Api::namespaced_with(client, namespace, &resource("", "v1", "configmaps"));
            (api, Some(format!("metadata.name={name}")))
        }
        EvidenceSource::Objects { api_version, resource: plural, namespace } => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let resource = resource(group, version, plural);
            let api = match namespace {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            (api, None)
        }
    }
}

fn resource(group: &str, version: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        // Only the words of URLs are used.
        kind: String::new(),
        plural: plural.to_owned(),
    }
}
