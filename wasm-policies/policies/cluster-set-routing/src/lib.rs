//! Clusters get into the set that is meant for them, and into no other.

use std::collections::BTreeMap;

use ocm_policy_sdk::rules::Code;
use ocm_policy_sdk::{
    Answer, Cluster, Edit, EditGrant, ManifestBuilder, Operation, Policy, Request, Stage, allow, deny, glob, hub,
    manifest, no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterSetRouting {
    /// The first that fits counts.
    rules: Vec<Rule>,
    /// The set where no rule fits; nothing: the hub's own default, and whoever asks may not choose another.
    #[serde(default)]
    otherwise: Option<String>,
    /// Users, as patterns, who may choose and change sets.
    #[serde(default)]
    movers: Vec<String>,
}

/// All that is written has to fit.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    cluster_set: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    claims: BTreeMap<String, String>,
}

impl Rule {
    fn patterns(&self) -> impl Iterator<Item = &String> {
        self.names.iter().chain(&self.users).chain(self.labels.values()).chain(self.claims.values())
    }

    /// Whether it fits; an error where it depends on what was left out.
    fn fits(&self, request: &Request<'_>, cluster: &Cluster<'_>) -> Result<bool, Answer> {
        let any = |patterns: &[String], text: &str| patterns.is_empty() || glob::any(patterns, text);
        let by_asker = any(&self.names, &cluster.name)
            && any(&self.users, hub::asking_user(request))
            && (self.groups.is_empty() || self.groups.iter().any(|group| hub::is_in(hub::asker(request), group)));
        if !by_asker {
            return Ok(false);
        }
        for (key, pattern) in &self.labels {
            hub::left_out(request, "labels", Some(key)).map_or(Ok(()), Err)?;
            if !cluster.labels.get(key).is_some_and(|value| glob::fits(pattern, value)) {
                return Ok(false);
            }
        }
        if !self.claims.is_empty() {
            hub::left_out(request, "claims", None).map_or(Ok(()), Err)?;
        }
        let claim = |name: &str| cluster.claims.iter().find(|claim| claim.name == name).map(|claim| &*claim.value);
        Ok(self.claims.iter().all(|(name, pattern)| claim(name).is_some_and(|value| glob::fits(pattern, value))))
    }
}

impl Policy for ClusterSetRouting {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        manifest(
            "cluster-set-routing",
            env!("CARGO_PKG_VERSION"),
            "Puts clusters into the sets that are meant for them",
        )
        .judges([Operation::Create, Operation::Update, Operation::Join, Operation::Accept])
        .may_edit(EditGrant::ClusterSet)
        .gives("ForeignSet", "The cluster asks for a set that is not meant for it")
        .gives("SetChanged", "Somebody moves the cluster to another set who may not")
        .gives("ClusterMissing", "There is no cluster to look at")
        .gives_codes([Code::EvidenceIncomplete])
        .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let patterns = settings.movers.iter().chain(settings.rules.iter().flat_map(Rule::patterns));
        let mut wrong: Vec<String> = patterns.filter_map(|pattern| glob::check(pattern).err()).collect();
        let sets = settings.rules.iter().map(|rule| &rule.cluster_set).chain(&settings.otherwise);
        wrong.extend(sets.filter(|set| !hub::is_dns_label(set)).map(|set| format!("{set:?} is no name of a set")));
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request).unwrap_or_else(|answer| answer)
    }
}

const FIELD: &str = "metadata.labels";

/// The set that policies of the hub have put the cluster into in the same write.
fn set_by_policies<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    const SET: &str = "/metadata/labels/cluster.open-cluster-management.io~1clusterset";
    let is_judged = request.stage() == Some(Stage::Validating);
    is_judged.then(|| request.set_by_policies().get(SET).map(|set| &**set)).flatten()
}

impl ClusterSetRouting {
    fn judge(&self, request: &Request<'_>) -> Result<Answer, Answer> {
        if hub::is_subresource(request) {
            return Ok(no_opinion());
        }
        let Some(cluster) = request.cluster() else { return Err(deny("ClusterMissing", "there is no cluster")) };
        let now = hub::cluster_set(cluster);
        let mover = glob::any(&self.movers, hub::asking_user(request));
        if request.operation() == Operation::Update {
            // The set is shown however many labels are left out.
            let before = request.previous().and_then(hub::cluster_set);
            return Ok(match request.previous().is_some() && before == now {
                true => no_opinion(),
                false if mover => allow(),
                // The hub itself puts what has no set into its default.
                false if before.is_none() && now == Some(hub::DEFAULT_SET) => no_opinion(),
                // Another policy of the hub puts it there.
                false if now.is_some() && set_by_policies(request) == now => no_opinion(),
                false => deny("SetChanged", "this identity may not move the cluster to another set").at(FIELD),
            });
        }
        hub::left_out(request, "labels", Some(hub::CLUSTER_SET)).map_or(Ok(()), Err)?;
        let mut wanted = self.otherwise.as_ref();
        for rule in &self.rules {
            if rule.fits(request, cluster)? {
                wanted = Some(&rule.cluster_set);
                break;
            }
        }
        Ok(match (wanted, now) {
            // What is said again at this stage is known at the next one as what this policy wants, not as somebody's claim.
            (Some(set), Some(now)) if now == set => match request.stage() {
                Some(Stage::Mutating) => allow().edit(Edit::SetClusterSet { name: set.clone() }),
                _ => allow(),
            },
            (_, Some(now)) if now != hub::DEFAULT_SET && mover => allow(),
            (Some(set), None | Some(hub::DEFAULT_SET)) => allow().edit(Edit::SetClusterSet { name: set.clone() }),
            (None, None | Some(hub::DEFAULT_SET)) => no_opinion(),
            (_, Some(_)) => deny("ForeignSet", "the cluster may not choose this set").at(FIELD),
        })
    }
}

ocm_policy_sdk::export!(ClusterSetRouting);
