//! What the user may do, asked of the cluster before anything is touched.

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::PostParams;
use kube::core::Request;
use kube::{Client, Resource};
use ocm_api::parts::{SelfSubjectAccessReview, SelfSubjectReview};
use ocm_core::{Failure, Plan, Reason};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Cluster;

/// One right: a verb on a resource, as RBAC names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// `get`, `list`, `create`, `patch`, …
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with `/subresource` where there is one.
    pub resource: String,
    /// Namespace; none for cluster scope.
    pub namespace: Option<String>,
    /// Name of the object; none for all.
    pub name: Option<String>,
}

impl Right {
    /// A right on a cluster-wide resource.
    pub fn new(verb: &'static str, group: &str, resource: &str) -> Self {
        Self { verb, group: group.to_owned(), resource: resource.to_owned(), namespace: None, name: None }
    }

    /// The right in one namespace only.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// The right on one object only.
    #[must_use]
    pub fn on(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// The rights that applying a plan needs, each once. An apply names the object that it creates, so a role can limit that
/// to a name, too.
pub fn to_apply(plan: &Plan) -> Vec<Right> {
    by_name(plan, &["get", "create", "patch"])
}

/// The rights that deleting the objects of a plan needs.
pub fn to_remove(plan: &Plan) -> Vec<Right> {
    by_name(plan, &["get", "delete"])
}

fn by_name(plan: &Plan, verbs: &[&'static str]) -> Vec<Right> {
    let mut rights: Vec<Right> = Vec::new();
    for manifest in plan.objects() {
        for verb in verbs {
            let mut right = Right::new(verb, manifest.group(), manifest.plural()).on(manifest.name());
            if let Some(namespace) = manifest.namespace() {
                right = right.within(namespace);
            }
            if !rights.contains(&right) {
                rights.push(right);
            }
        }
    }
    rights
}

/// Who the cluster takes the user for.
///
/// # Errors
/// The failure of the request.
pub async fn myself(cluster: &Cluster) -> Result<SelfSubjectReview, Failure> {
    who(&cluster.client).await.map_err(|error| cluster.explain("ask who you are", error))
}

/// Who a server takes the holder of the client's credential for.
///
/// # Errors
/// The failure of the request.
pub async fn who(client: &Client) -> kube::Result<SelfSubjectReview> {
    review(client, json!({})).await
}

/// Whether the holder of the client's credential has a right.
///
/// # Errors
/// The failure of the request.
pub async fn may(client: &Client, right: &Right) -> kube::Result<bool> {
    let review: SelfSubjectAccessReview = review(client, json!({"spec": spec(right)})).await?;
    Ok(review.status.is_some_and(|status| status.allowed))
}

/// What a review is about that asks for a right.
fn spec(right: &Right) -> Value {
    let Right { verb, group, resource, namespace, name } = right;
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (resource.as_str(), None),
    };
    let mut attributes = json!({"verb": verb, "group": group, "resource": resource});
    let others = [("subresource", subresource), ("namespace", namespace.as_deref()), ("name", name.as_deref())];
    for (member, value) in others {
        if let Some(value) = value {
            attributes[member] = value.into();
        }
    }
    json!({"resourceAttributes": attributes})
}

/// The answer to a review with these members.
async fn review<K>(client: &Client, members: Value) -> kube::Result<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let body = body::<K>(members).to_string().into_bytes();
    let request = Request::new(K::url_path(&(), None)).create(&PostParams::default(), body);
    client.request(request.map_err(kube::Error::BuildRequest)?).await
}

/// An object of a kind with these members, to be sent.
fn body<K: Resource<DynamicType = ()>>(mut members: Value) -> Value {
    (members["apiVersion"], members["kind"]) = (json!(K::api_version(&())), json!(K::kind(&())));
    members["metadata"] = json!({});
    members
}

/// The time of the hub's API server, in whole seconds: whoever is told when something begins and ends goes by it. Clocks of
/// others may be wrong.
///
/// # Errors
/// The failure of the request; an answer without a time.
pub async fn clock(cluster: &Cluster) -> Result<Timestamp, Failure> {
    let review = myself(cluster).await?;
    let created = review.metadata.creation_timestamp.map(|time| time.0);
    created.ok_or_else(|| Failure::other(format!("{} does not tell what time it is", cluster.label())))
}

/// Asks for every right and returns those that are missing, in the order given.
///
/// # Errors
/// When the cluster cannot be asked.
pub async fn missing(cluster: &Cluster, rights: &[Right]) -> Result<Vec<Right>, Failure> {
    let answers = futures::stream::iter(rights.iter().cloned())
        .map(async |right| may(&cluster.client, &right).await.map(|allowed| (right, allowed)))
        .buffered(8)
        .collect::<Vec<_>>()
        .await;
    let mut missing = Vec::new();
    for answer in answers {
        let (right, allowed) = answer.map_err(|error| cluster.explain("ask what you may do", error))?;
        if !allowed {
            missing.push(right);
        }
    }
    Ok(missing)
}

/// Fails unless every right is held, naming all that are missing at once.
///
/// # Errors
/// [`Reason::Forbidden`] with one cause per missing right; or the cluster cannot be asked.
pub async fn require(cluster: &Cluster, purpose: &str, rights: &[Right]) -> Result<(), Failure> {
    let missing = missing(cluster, rights).await?;
    if missing.is_empty() { Ok(()) } else { Err(lacking(cluster, purpose, &missing)) }
}

/// [`Reason::Forbidden`] for want of these rights, each a cause.
pub fn lacking(cluster: &Cluster, purpose: &str, missing: &[Right]) -> Failure {
    let sentence = format!("your user lacks rights to {purpose} ({})", cluster.label());
    let failure = missing
        .iter()
        .fold(Failure::new(Reason::Forbidden, sentence), |failure, right| failure.because(format!("may not {right}")));
    failure.hint("docs/reference/rbac.md lists a ClusterRole per command; ask an administrator to bind it")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::authentication::v1::SelfSubjectReview as WholeSubjectReview;
    use k8s_openapi::api::authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview as WholeAccessReview, SelfSubjectAccessReviewSpec,
    };

    use super::*;

    #[test]
    fn a_right_is_asked_for_as_the_api_has_it() {
        let text = |text: &str| Some(text.to_owned());
        let logs = Right::new("get", "", "pods/log").within("n").on("p");
        let about_logs = ResourceAttributes {
            subresource: text("log"),
            namespace: text("n"),
            name: text("p"),
            resource: text("pods"),
            ..ResourceAttributes::default()
        };
        let roles = Right::new("bind", "rbac.authorization.k8s.io", "clusterroles");
        let about_roles = ResourceAttributes { resource: text("clusterroles"), ..ResourceAttributes::default() };
        for (right, about) in [(logs, about_logs), (roles, about_roles)] {
            let about = ResourceAttributes { verb: text(right.verb), group: text(&right.group), ..about };
            let whole = SelfSubjectAccessReviewSpec { resource_attributes: Some(about), ..Default::default() };
            assert_eq!(spec(&right), json!(whole), "{right}");
            let whole = WholeAccessReview { spec: whole, ..WholeAccessReview::default() };
            assert_eq!(body::<SelfSubjectAccessReview>(json!({"spec": spec(&right)})), json!(whole), "{right}");
        }
        assert_eq!(body::<SelfSubjectReview>(json!({})), json!(WholeSubjectReview::default()));
    }
}
