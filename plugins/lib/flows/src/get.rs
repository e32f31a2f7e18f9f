//! Lists of clusters and requests with where they stand, once or as they change.

use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::runtime::watcher::{self, Event as Change, watcher};
use ocm_api::ManagedCluster;
use ocm_api::names::labels;
use ocm_core::csr::{Request, Settings, State, Violation};
use ocm_core::phase::{Standing, standing};
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, explain};
use serde::de::DeserializeOwned;

use crate::registry;

/// A managed cluster and where it stands.
#[derive(Clone, Debug)]
pub struct ClusterRow {
    /// The object.
    pub object: ManagedCluster,
    /// Where it stands.
    pub standing: Standing,
}

/// A certificate request and what we think of it.
#[derive(Clone, Debug)]
pub struct RequestRow {
    /// The object.
    pub object: CertificateSigningRequest,
    /// What was read from it.
    pub request: Request,
    /// What we think of it.
    pub verdict: Verdict,
}

/// What we think of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It asks for exactly the identity of its cluster's agent: `accept` would approve it.
    Sound,
    /// It breaks a rule: `accept` refuses it.
    Refused(Vec<Violation>),
    /// An agent renews its certificate; the hub decides about those itself.
    Renewal,
    /// An add-on's; its own approver decides.
    AddOn,
}

impl Verdict {
    /// The stable word: `Sound`, `Renewal`, `AddOn`, or the first reason code.
    pub fn word(&self) -> String {
        match self {
            Self::Refused(violations) => {
                violations.first().map_or_else(String::new, |violation| violation.code.to_string())
            }
            other => format!("{other:?}"),
        }
    }
}

impl ClusterRow {
    fn of(object: ManagedCluster) -> Self {
        let standing = standing(&object);
        Self { object, standing }
    }

    /// Name of the cluster.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// When it registered.
    pub fn created(&self) -> Option<Timestamp> {
        self.object.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }
}

impl RequestRow {
    fn of(object: CertificateSigningRequest) -> Self {
        let request = Request::read(&object);
        let verdict = match () {
            () if request.is_addons() => Verdict::AddOn,
            () if request.is_renewal(request.cluster_label.as_deref().unwrap_or_default()) => Verdict::Renewal,
            () => {
                let cluster = request.cluster_label.clone().unwrap_or_default();
                match request.violations(&cluster, &Settings::default()) {
                    violations if violations.is_empty() => Verdict::Sound,
                    violations => Verdict::Refused(violations),
                }
            }
        };
        Self { object, request, verdict }
    }

    /// Whether somebody still has to decide about it.
    pub fn is_pending(&self) -> bool {
        self.request.state == State::Pending
    }
}

/// Managed clusters by name; all, those that match a selector, or those that are named.
///
/// # Errors
/// When the hub cannot be read, or does not know a name.
pub async fn clusters(hub: &Cluster, names: &[String], selector: Option<&str>) -> Result<Vec<ClusterRow>, Failure> {
    let mut objects = registry::clusters(hub, selector).await?;
    keep_named(&mut objects, names, |object| object.metadata.name.as_deref(), "managed cluster")?;
    let mut rows: Vec<ClusterRow> = objects.into_iter().map(ClusterRow::of).collect();
    rows.sort_by(|left, right| left.name().cmp(right.name()));
    Ok(rows)
}

/// Requests for clusters, the newest last; all, those that match a selector too, or those of the names given: a
/// request's own name, or its cluster's.
///
/// # Errors
/// When the hub cannot be read, or does not know a name.
pub async fn requests(hub: &Cluster, names: &[String], selector: Option<&str>) -> Result<Vec<RequestRow>, Failure> {
    let selector =
        selector.map_or_else(|| labels::CLUSTER_NAME.to_owned(), |more| format!("{},{more}", labels::CLUSTER_NAME));
    let objects = registry::requests(hub, &selector).await?;
    if objects.is_empty() {
        // Every cluster serves requests: an empty list must not pass a cluster off as a hub.
        registry::clusters(hub, Some("kubectl-ocm/none")).await?;
    }
    let mut rows: Vec<RequestRow> = objects.into_iter().map(RequestRow::of).collect();
    if !names.is_empty() {
        let is = |row: &RequestRow, name: &String| {
            row.request.name == *name || row.request.cluster_label.as_ref() == Some(name)
        };
        if let Some(unknown) = names.iter().find(|name| !rows.iter().any(|row| is(row, name))) {
            return Err(Failure::new(Reason::NotFound, format!("no certificate request is, or is for, {unknown:?}")));
        }
        rows.retain(|row| names.iter().any(|name| is(row, name)));
    }
    rows.sort_by(|left, right| {
        (left.request.created, &left.request.name).cmp(&(right.request.created, &right.request.name))
    });
    Ok(rows)
}

fn keep_named<T>(
    objects: &mut Vec<T>,
    names: &[String],
    name_of: fn(&T) -> Option<&str>,
    what: &str,
) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    if let Some(unknown) = names.iter().find(|name| !objects.iter().any(|object| name_of(object) == Some(name))) {
        let near = ocm_core::nearest(unknown, objects.iter().filter_map(|object| name_of(object)));
        let failure = Failure::new(Reason::NotFound, format!("the hub has no {what} {unknown:?}"));
        return Err(match near {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => failure,
        });
    }
    objects.retain(|object| name_of(object).is_some_and(|name| names.iter().any(|wanted| wanted == name)));
    Ok(())
}

/// One change of what is watched.
#[derive(Clone, Debug)]
pub enum Changed<T> {
    /// It is new or has changed.
    Now(T),
    /// It is gone.
    Gone(T),
}

/// Managed clusters as they change, beginning with all that there are.
pub fn watch_clusters(
    hub: &Cluster,
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<ClusterRow>, Failure>> {
    let config = selector.map_or_else(watcher::Config::default, |selector| watcher::Config::default().labels(selector));
    changes(hub.clone(), config, ClusterRow::of)
}

/// Requests for clusters as they change, beginning with all that there are.
pub fn watch_requests(
    hub: &Cluster,
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<RequestRow>, Failure>> {
    let selector =
        selector.map_or_else(|| labels::CLUSTER_NAME.to_owned(), |more| format!("{},{more}", labels::CLUSTER_NAME));
    changes(hub.clone(), watcher::Config::default().labels(&selector), RequestRow::of)
}

/// Follows a kind. What passes by itself, like a lost connection, is retried by the watcher with a pause.
fn changes<K, T>(
    hub: Cluster,
    config: watcher::Config,
    row: fn(K) -> T,
) -> impl Stream<Item = Result<Changed<T>, Failure>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api: Api<K> = Api::all(hub.client.clone());
    watcher(api, config)
        .filter_map(move |event| {
            let change = match event {
                Ok(Change::Apply(object) | Change::InitApply(object)) => Some(Ok(Changed::Now(row(object)))),
                Ok(Change::Delete(object)) => Some(Ok(Changed::Gone(row(object)))),
                Ok(Change::Init | Change::InitDone) => None,
                Err(error) => Some(Err(error)),
            };
            std::future::ready(change)
        })
        .filter_map(move |change| {
            let outcome = match change {
                Ok(change) => Some(Ok(change)),
                Err(error) => {
                    lasting(error).map(|failure| Err(failure.context(format!("cannot watch ({})", hub.label()))))
                }
            };
            std::future::ready(outcome)
        })
        .into_stream()
}

/// What a watch cannot get over by trying again.
fn lasting(error: watcher::Error) -> Option<Failure> {
    let failure = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => explain(&error),
        watcher::Error::WatchError(status) => explain(&kube::Error::Api(status)),
        other => Failure::other(other.to_string()),
    };
    let passes = failure.reason.is_transient() || failure.reason == Reason::Other;
    (!passes).then_some(failure)
}
