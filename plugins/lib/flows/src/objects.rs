//! Objects of any kind, as a hub has them.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersion;
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, explain};
use serde_json::Value;

use crate::registry::REQUESTS_PAGE;

/// Which objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sought {
    /// Group and version, such as `cluster.open-cluster-management.io/v1`; `v1` of the core.
    pub api_version: String,
    /// Plural name of the kind.
    pub resource: String,
    /// Those of this namespace; none: of the whole hub.
    pub namespace: Option<String>,
    /// The one of this name; none: all.
    pub name: Option<String>,
}

/// Reads objects, each with its apiVersion and kind. One that is named and not there is none.
///
/// # Errors
/// When they cannot be read.
pub async fn objects(hub: &Cluster, sought: &Sought) -> Result<Vec<Value>, Failure> {
    let Sought { api_version, resource, namespace, name } = sought;
    let what = format!("cannot read {resource}");
    let group: GroupVersion = api_version
        .parse()
        .map_err(|error| Failure::usage(format!("{api_version:?} is no version of an API")).because(error))?;
    // What is read names its kind itself.
    let kind = ApiResource {
        group: group.group.clone(),
        version: group.version.clone(),
        api_version: api_version.clone(),
        kind: String::new(),
        plural: resource.clone(),
    };
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(hub.client.clone(), namespace, &kind),
        None => Api::all_with(hub.client.clone(), &kind),
    };
    if let Some(name) = name {
        return match api.get(name).await {
            Ok(object) => Ok(serde_json::to_value(object).into_iter().collect()),
            Err(error) => match explain(&error) {
                failure if failure.reason == Reason::NotFound => Ok(Vec::new()),
                failure => Err(failure.context(what)),
            },
        };
    }
    let mut found = Vec::new();
    // Whatever kind it is, anybody may have made large ones.
    let mut params = ListParams::default().limit(REQUESTS_PAGE);
    loop {
        let page = api.list(&params).await.map_err(|error| explain(&error).context(what.clone()))?;
        let kind = page.types.kind.trim_end_matches("List").to_owned();
        for object in page.items {
            let mut object = serde_json::to_value(object).unwrap_or_default();
            object["apiVersion"] = api_version.as_str().into();
            object["kind"] = kind.as_str().into();
            found.push(object);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}
