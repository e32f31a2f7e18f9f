//! What the user may do, asked of the cluster before anything is touched.

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use ocm_core::{Failure, Plan, Reason};

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
    let api: Api<SelfSubjectReview> = Api::all(cluster.client.clone());
    let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    review.map_err(|error| cluster.explain("ask who you are", error))
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
    let api: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let answers = futures::stream::iter(rights.iter().cloned())
        .map(|right| {
            let api = api.clone();
            async move {
                let (resource, subresource) = match right.resource.split_once('/') {
                    Some((resource, sub)) => (resource.to_owned(), Some(sub.to_owned())),
                    None => (right.resource.clone(), None),
                };
                let review = SelfSubjectAccessReview {
                    spec: SelfSubjectAccessReviewSpec {
                        resource_attributes: Some(ResourceAttributes {
                            verb: Some(right.verb.to_owned()),
                            group: Some(right.group.clone()),
                            resource: Some(resource),
                            subresource,
                            namespace: right.namespace.clone(),
                            name: right.name.clone(),
                            ..ResourceAttributes::default()
                        }),
                        ..SelfSubjectAccessReviewSpec::default()
                    },
                    ..SelfSubjectAccessReview::default()
                };
                let answer = api.create(&PostParams::default(), &review).await;
                answer.map(|review| (right, review.status.is_some_and(|status| status.allowed)))
            }
        })
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
