//! So many clusters, and no more.

use std::collections::{BTreeMap, BTreeSet};

use ocm_policy_sdk::serde_json::Value;
use ocm_policy_sdk::{
    Answer, EvidenceSource, ManifestBuilder, Operation, Policy, Query, QuotaKey, Request, Row, Table, deny, hold, hub,
    manifest, no_opinion, time,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct JoinQuota {
    /// Clusters of the hub.
    total: Option<usize>,
    /// Clusters of a set.
    per_set: BTreeMap<String, usize>,
    /// New clusters within an hour.
    per_hour: Option<usize>,
    /// New clusters of one identity within an hour.
    per_identity_per_hour: Option<usize>,
}

/// How many clusters there are in each set.
const COUNTS: &str = "counts";
/// The cluster itself, if it is there already.
const CLUSTER: &str = "cluster";
/// Clusters that came within the hour.
const NEW: &str = "new-clusters";
/// What the identity asked for within the hour.
const ASKED: &str = "requests";
/// Whether the hub accepts a cluster.
const ACCEPTED: &str = "/spec/hubAcceptsClient";
const HOUR_SECONDS: u32 = 3600;

impl Policy for JoinQuota {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        let set = "/metadata/labels/cluster.open-cluster-management.io~1clusterset";
        let new = |query: Query| Query { created_within_seconds: Some(HOUR_SECONDS), ..query };
        let requests = Query::new(ASKED, EvidenceSource::Csrs, ["/cluster", "/created"]);
        manifest("join-quota", env!("CARGO_PKG_VERSION"), "Keeps the number of clusters within bounds")
            .judges([Operation::Create, Operation::Update, Operation::Join, Operation::Accept])
            // Two requests at once must not both take the last place.
            .counts_by([QuotaKey::Hub, QuotaKey::ClusterSet, QuotaKey::Identity])
            .needs_of_cluster(CLUSTER, EvidenceSource::Clusters, "/metadata/name", &[set, ACCEPTED])
            .needs_query(Query { count: true, ..Query::new(COUNTS, EvidenceSource::Clusters, [set, ACCEPTED]) })
            .needs_query(new(Query::new(NEW, EvidenceSource::Clusters, ["/metadata/creationTimestamp", ACCEPTED])))
            .needs_query(new(Query { user_field: Some("/askedBy".to_owned()), ..requests }))
            .gives("EvidenceIncomplete", "The clusters of the hub could not be counted to the end")
            .gives("ClusterMissing", "There is no cluster to count")
            .gives("QuotaTotal", "The hub has as many clusters as it may have")
            .gives("QuotaSet", "The set has as many clusters as it may have")
            .gives("Rate", "As many clusters came within an hour as may come")
            .gives("RateIdentity", "Whoever asks brought as many clusters within an hour as they may")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let nothing = settings.total.is_none()
            && settings.per_set.is_empty()
            && settings.per_hour.is_none()
            && settings.per_identity_per_hour.is_none();
        if nothing {
            Err(vec!["there is no quota: give total, perSet, perHour or perIdentityPerHour".to_owned()])
        } else {
            Ok(settings)
        }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        match self.judge(request) {
            // That there is room is no reason to let somebody in.
            Ok(()) => no_opinion(),
            Err(answer) => answer,
        }
    }
}

impl JoinQuota {
    fn judge(&self, request: &Request<'_>) -> Result<(), Answer> {
        let Some(cluster) = request.cluster() else { return Err(deny("ClusterMissing", "there is no cluster")) };
        // An update brings in no cluster. It may move one to another set.
        let moved = request.operation() == Operation::Update;
        if moved && request.previous().is_some_and(|previous| hub::cluster_set(previous) == hub::cluster_set(cluster)) {
            return Ok(());
        }
        let others = Others::of(request, &cluster.name)?;
        if !moved && self.total.is_some_and(|total| others.all() >= total) {
            return Err(deny("QuotaTotal", format!("the hub has {} clusters and may have no more", others.all())));
        }
        // Without a set it would count for the default one.
        if !moved
            && !self.per_set.is_empty()
            && let Some(missed) = hub::left_out(request, "labels", Some(hub::CLUSTER_SET))
        {
            return Err(missed);
        }
        let set = hub::cluster_set(cluster).unwrap_or(hub::DEFAULT_SET);
        if let Some(quota) = self.per_set.get(set) {
            let there = others.within(set);
            if there >= *quota {
                return Err(deny("QuotaSet", format!("the set has {there} clusters and may have no more")));
            }
        }
        if moved {
            return Ok(());
        }
        if let Some(most) = self.per_hour {
            let others = whole(request, NEW)?.rows.iter().filter(|row| row.name != *cluster.name);
            let times = others
                .filter(|row| takes(request, row))
                .map(|row| row.values.first().and_then(Value::as_str).and_then(time::parse));
            let times: Option<Vec<i64>> = times.collect();
            let times = times.ok_or_else(|| incomplete("when clusters were created is not known"))?;
            rate(times, most, request.now(), "Rate", "as many clusters came within the last hour as may come")?;
        }
        let Some(most) = self.per_identity_per_hour else { return Ok(()) };
        // Requests are there for about an hour, which is what is counted. Each cluster counts once, by its newest one.
        let mut newest: BTreeMap<&str, i64> = BTreeMap::new();
        for row in &whole(request, ASKED)?.rows {
            let [name, created] = &row.values[..] else { return Err(incomplete(UNCOUNTED)) };
            let Some(name) = name.as_str().filter(|name| **name != *cluster.name) else { continue };
            let created = created.as_i64().unwrap_or(request.now());
            let known = newest.entry(name).or_insert(created);
            *known = created.max(*known);
        }
        rate(
            newest.into_values().collect(),
            most,
            request.now(),
            "RateIdentity",
            "this identity brought as many clusters within the last hour as it may",
        )
    }
}

/// How many clusters there are in each set besides the one that the request is about: it may be there already, and takes
/// no second place.
struct Others<'r>(BTreeMap<&'r str, usize>);

impl<'r> Others<'r> {
    fn of(request: &'r Request<'_>, name: &str) -> Result<Self, Answer> {
        let set = |row: &'r Row<'_>| {
            row.values.first().and_then(Value::as_str).filter(|set| !set.is_empty()).unwrap_or(hub::DEFAULT_SET)
        };
        let mut sets: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &whole(request, COUNTS)?.rows {
            let number = row.values.get(2).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
            let number = number.ok_or_else(|| incomplete(UNCOUNTED))?;
            if takes(request, row) {
                *sets.entry(set(row)).or_default() += number;
            }
        }
        for row in whole(request, CLUSTER)?.rows.iter().filter(|row| row.name == name && takes(request, row)) {
            let there = sets.entry(set(row)).or_default();
            *there = there.saturating_sub(1);
        }
        Ok(Self(sets))
    }

    fn all(&self) -> usize {
        self.0.values().sum()
    }

    fn within(&self, set: &str) -> usize {
        self.0.get(set).copied().unwrap_or_default()
    }
}

/// Whether clusters of a row take a place, whose second value says whether they are accepted: what is registered and waits takes
/// none from one that is to be let in.
fn takes(request: &Request<'_>, row: &Row<'_>) -> bool {
    let lets_in = matches!(request.operation(), Operation::Join | Operation::Accept);
    !lets_in || row.values.get(1).and_then(Value::as_bool) == Some(true)
}

/// Holds while the last hour has so many of these times, until enough of them are an hour old.
fn rate(times: Vec<i64>, most: usize, now: i64, code: &str, message: &str) -> Result<(), Answer> {
    let recent: BTreeSet<(i64, usize)> =
        times.into_iter().enumerate().filter(|(_, at)| *at > now - time::HOUR).map(|(index, at)| (at, index)).collect();
    if recent.len() < most {
        return Ok(());
    }
    // With room for none, nothing that ends helps.
    let left =
        |(at, _): &(i64, usize)| u32::try_from((at + time::HOUR - now + 999) / 1000).unwrap_or(3600).clamp(1, 3600);
    let seconds = recent.iter().nth(recent.len() - most).map_or(3600, left);
    Err(hold(code, message).again_in(seconds))
}

fn incomplete(message: &str) -> Answer {
    hold("EvidenceIncomplete", message).again_in(60)
}

const UNCOUNTED: &str = "what the hub holds could not be counted to the end";

fn whole<'r, 'a>(request: &'r Request<'a>, name: &str) -> Result<&'r Table<'a>, Answer> {
    let table = request.evidence(name).filter(|table| table.complete && table.rows.iter().all(|row| row.complete));
    table.ok_or_else(|| incomplete(UNCOUNTED))
}

ocm_policy_sdk::export!(JoinQuota);
