//! Lists of clusters and requests with where they stand, once or as they change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher;
use ocm_api::ManagedCluster;
use ocm_api::names::labels;
use ocm_api::registration::RegisteredKeysStatus;
use ocm_core::csr::{Request, Settings, State, Violation};
use ocm_core::managed::has_joined;
use ocm_core::order::{self, Collect as _};
use ocm_core::phase::{Standing, standing};
use ocm_core::shell::shell;
use ocm_core::{Failure, Reason, bootstrap};
use ocm_kube::Cluster;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::registry::{self, OfHub, REQUESTS_PAGE, noted, noted_of};
pub use crate::watch::Changed;
use crate::watch::changes;

/// A managed cluster and where it stands.
#[derive(Clone, Debug)]
pub struct ClusterRow {
    /// The object.
    pub object: ManagedCluster,
    /// Where it stands.
    pub standing: Standing,
    /// Until when certificates of an earlier cluster of the name may be valid, in RFC 3339, as the policy controller has noted
    /// it: see [`add_noted_names`].
    pub name_used_until: Option<String>,
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
        Self { object, standing, name_used_until: None }
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
    fn of(object: CertificateSigningRequest, request: Request, settings: &Settings) -> Self {
        let verdict = match () {
            () if request.is_addons() => Verdict::AddOn,
            () if request.is_renewal(request.cluster_label.as_deref().unwrap_or_default()) => Verdict::Renewal,
            () => {
                let cluster = request.cluster_label.clone().unwrap_or_default();
                match request.violations(&cluster, settings) {
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

/// Managed clusters by name; all, those that match a selector, or those that are named, which are read one by one.
///
/// # Errors
/// When the hub cannot be read, or does not know a name.
pub async fn clusters(hub: &Cluster, names: &[String], selector: Option<&str>) -> Result<Vec<ClusterRow>, Failure> {
    let mut objects = match (names, selector) {
        ([], selector) => registry::clusters(hub, selector).await?,
        (names, None) => registry::some_clusters(hub, names).await?,
        (names, selector) => {
            let mut objects = registry::clusters(hub, selector).await?;
            objects.retain(|object| object.metadata.name.as_ref().is_some_and(|name| names.contains(name)));
            objects
        }
    };
    let is = |object: &ManagedCluster, name: &String| object.metadata.name.as_ref() == Some(name);
    if let Some(unknown) = names.iter().find(|name| !objects.iter().any(|object| is(object, name))) {
        let all = [Api::<ManagedCluster>::all(hub.client.clone())];
        return Err(unknown_among(hub, &all, selector, "managed cluster", unknown).await);
    }
    // A name that was typed twice is one row.
    order::sort_by(&mut objects, |left, right| left.metadata.name.cmp(&right.metadata.name));
    objects.dedup_by(|left, right| left.metadata.name == right.metadata.name);
    Ok(objects.into_iter().map(ClusterRow::of).collect())
}

/// What is told where nobody can read until when it is.
const UNKNOWN: &str = "unknown";
/// How old may be what the hub says of users when a request of one comes who has not asked before.
const NEW_USER: Duration = Duration::from_secs(1);
/// The same of one who has: there is a binding for every cluster, and all are read.
const KNOWN_USER: Duration = Duration::from_secs(30);

/// Adds what the policy controller has noted of the names of clusters whose agents have not joined. Returns why that may not
/// be read, in a sentence, where the hub has it.
///
/// # Errors
/// When the hub cannot be read.
pub async fn add_noted_names(hub: &Cluster, rows: &mut [ClusterRow]) -> Result<Option<String>, Failure> {
    let waits = |row: &&ClusterRow| !has_joined(&row.object);
    let names: Vec<String> = rows.iter().filter(waits).map(|row| row.name().to_owned()).collect();
    let (registrations, unread) = noted_of(hub, &names).await?;
    let known = registrations.into_iter().filter_map(|one| Some((one.metadata.name?, one.status)));
    let known: BTreeMap<String, RegisteredKeysStatus> = known.collect_map();
    let now = Timestamp::now().as_millisecond();
    for row in rows {
        let Some(status) = known.get(row.name()) else { continue };
        let until = noted(status).of_another_until(row.object.metadata.uid.as_deref(), Some(now));
        let text = |until| Timestamp::from_millisecond(until).map_or_else(|_| UNKNOWN.to_owned(), |at| at.to_string());
        row.name_used_until = until.map(text);
    }
    Ok(unread)
}

/// That the hub has no object of this name, with the name that was probably meant.
pub(crate) async fn unknown_name<K: OfHub>(hub: &Cluster, what: &str, unknown: &str) -> Failure {
    unknown_among::<K>(hub, &[Api::all(hub.client.clone())], None, what, unknown).await
}

/// The same of objects of a kind that may be of some namespaces, and may have to match a selector. Only now, that a name is
/// unknown, are all names worth reading.
pub(crate) async fn unknown_among<K>(
    hub: &Cluster,
    apis: &[Api<K>],
    selector: Option<&str>,
    what: &str,
    unknown: &str,
) -> Failure
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let failure = Failure::new(Reason::NotFound, format!("the hub has no {what} {unknown:?}"));
    let names = stream::iter(apis)
        .map(|api| registry::pages_of_metadata(hub, api, listed(&[], selector), "list names", |one| one.metadata.name))
        .buffered(registry::FEW)
        .try_concat()
        .await;
    // Who may read one object may still not list all: then there is no suggestion.
    let Ok(names) = names else { return failure };
    match ocm_core::nearest(unknown, names.iter().map(String::as_str)) {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure,
    }
}

/// Requests for clusters, the newest last; all, those that match a selector too, or those of the names given: a
/// request's own name, or its cluster's.
///
/// # Errors
/// When the hub cannot be read, or does not know a name.
pub async fn requests(hub: &Cluster, names: &[String], selector: Option<&str>) -> Result<Vec<RequestRow>, Failure> {
    let objects = match selector {
        None if !names.is_empty() && names.iter().all(|name| registry::is_plain(name)) => {
            registry::some_requests(hub, names).await?
        }
        selector => registry::requests(hub, &for_clusters(selector)).await?,
    };
    if objects.is_empty() {
        // Every cluster serves requests: an empty list must not pass a cluster off as a hub.
        registry::clusters(hub, Some("kubectl-ocm/none")).await?;
    }
    let mut requests: Vec<_> = objects.into_iter().map(|object| (Request::read(&object), object)).collect();
    let is = |request: &Request, name: &String| request.name == *name || request.cluster_label.as_ref() == Some(name);
    if let Some(unknown) = names.iter().find(|name| !requests.iter().any(|(request, _)| is(request, name))) {
        return Err(Failure::new(Reason::NotFound, format!("no certificate request is, or is for, {unknown:?}")));
    }
    requests.retain(|(request, _)| names.is_empty() || names.iter().any(|name| is(request, name)));
    if let Some((foreign, _)) = requests.iter().find(|(request, _)| request.cluster_label.is_none()) {
        let name = &foreign.name;
        return Err(Failure::new(Reason::NotFound, format!("certificate request {name:?} is for no managed cluster"))
            .hint(format!("look at it: kubectl get {}", shell(&format!("csr/{name}")))));
    }
    order::sort_by(&mut requests, |(left, _), (right, _)| {
        (left.created, &left.name).cmp(&(right.created, &right.name))
    });
    // A name that was typed twice, or is a request's and its cluster's, is one row.
    requests.dedup_by(|(left, _), (right, _)| left.name == right.name);
    let settings = settings(hub, requests.iter().map(|(request, _)| request)).await?;
    Ok(requests.into_iter().map(|(request, object)| RequestRow::of(object, request, &settings)).collect())
}

/// Who may ask, by what the hub shows.
async fn settings(hub: &Cluster, requests: impl IntoIterator<Item = &Request>) -> Result<Settings, Failure> {
    Ok(Settings { requesters: registry::bound_accounts(hub, requests).await?, ..Settings::default() })
}

/// A selector of requests that are for clusters.
fn for_clusters(selector: Option<&str>) -> String {
    selector.map_or_else(|| labels::CLUSTER_NAME.to_owned(), |more| format!("{},{more}", labels::CLUSTER_NAME))
}

/// Managed clusters as they change, beginning with all that there are, if wanted with [what is noted of their
/// names](add_noted_names) where that may be read.
pub fn watch_clusters(
    hub: &Cluster,
    names: &[String],
    selector: Option<&str>,
    with_names: bool,
) -> impl Stream<Item = Result<Changed<ClusterRow>, Failure>> {
    let config = watched(names, selector);
    let names = names.to_vec();
    changes(hub, config, ClusterRow::of, |object| ClusterRow::of(object.clone()))
        .try_filter(move |change| std::future::ready(is_named(change, &names, ClusterRow::name)))
        .then(move |mut change| async move {
            if with_names && let Ok(Changed::Now(row)) = &mut change {
                // The watch goes on where this cannot be read: what fails for longer than a moment, it tells itself.
                let _ = add_noted_names(hub, std::slice::from_mut(row)).await;
            }
            change
        })
}

/// What is watched: one object needs no list of all.
pub(crate) fn watched(names: &[String], selector: Option<&str>) -> watcher::Config {
    let mut config = watcher::Config::default();
    if let Some(selector) = selector {
        config = config.labels(selector);
    }
    if let Some(field) = single(names) {
        config = config.fields(&field);
    }
    config
}

/// What is listed, by the same.
pub(crate) fn listed(names: &[String], selector: Option<&str>) -> ListParams {
    let mut params = ListParams::default();
    if let Some(selector) = selector {
        params = params.labels(selector);
    }
    if let Some(field) = single(names) {
        params = params.fields(&field);
    }
    params
}

/// The selector of fields that finds the only one of these names. Of a name that no object can have, it would ask for more.
fn single(names: &[String]) -> Option<String> {
    match names {
        [name] if registry::is_plain(name) => Some(format!("metadata.name={name}")),
        _ => None,
    }
}

/// Whether a change is about one of these names; none means all.
pub(crate) fn is_named<T>(change: &Changed<T>, names: &[String], name: fn(&T) -> &str) -> bool {
    match change {
        Changed::Now(row) | Changed::Gone(row) => names.is_empty() || names.iter().any(|one| one == name(row)),
        Changed::Listed | Changed::Lost(_) | Changed::Back => true,
    }
}

/// Requests for clusters as they change, beginning with all that there are.
pub fn watch_requests(
    hub: &Cluster,
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<RequestRow>, Failure>> {
    let config = watcher::Config::default().labels(&for_clusters(selector)).page_size(REQUESTS_PAGE);
    let now = |object: CertificateSigningRequest| (Request::read(&object), object);
    // A request can be long, and there can be many: what was asked for is not kept until it is gone.
    let gone = |object: &CertificateSigningRequest| {
        let mut kept = object.clone();
        kept.spec.request = ByteString::default();
        (Request::read(object), kept)
    };
    let seen = changes(hub, config, now, gone);
    let begin = (Box::pin(seen), Settings::default(), BTreeSet::new(), None);
    stream::unfold(begin, async move |(mut seen, mut settings, mut asked, mut read)| {
        let change = seen.next().await?;
        if let Ok(Changed::Now((request, _))) = &change
            && bootstrap::needs_binding(request)
        {
            let fresh = if asked.contains(request.asked_by()) { KNOWN_USER } else { NEW_USER };
            if read.is_none_or(|at: Instant| at.elapsed() >= fresh)
                && let Ok(accounts) = registry::bound_accounts(hub, [request]).await
            {
                (settings.requesters, read) = (accounts, Some(Instant::now()));
                asked.insert(request.asked_by().to_owned());
            }
        }
        let row = |(request, object)| RequestRow::of(object, request, &settings);
        let change = change.map(|change| change.map(row, row));
        Some((change, (seen, settings, asked, read)))
    })
}
