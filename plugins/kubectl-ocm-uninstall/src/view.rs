//! What a removal looks like.

use ocm_cli::{PlanView, Ui};
use ocm_core::baseline::{Effect, Enforcement};
use ocm_core::hub_addon::Rank;
use ocm_core::leave::installation::counted;
use ocm_core::order::Collect as _;
use ocm_core::plan::Outcome;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::hub_addons::{HubAddOnFound, HubAddOnRemoval};
use ocm_flows::uninstall::{EngineUninstalled, HubFound, HubUninstalled, Uninstalled};
use ocm_kube::Cluster;
use serde_json::{Map, json};

/// What is asked before anything is deleted.
pub(crate) fn question(cluster: &Cluster, effects: &[Effect]) -> String {
    let label = cluster.label();
    match lost(effects) {
        Some(lost) => format!("Delete the baseline ({label})? The API server then {lost}."),
        None => format!("Delete what is left of the baseline ({label})? It refuses nothing."),
    }
}

/// What the API server does no longer; none if it did nothing.
fn lost(effects: &[Effect]) -> Option<String> {
    let of = |enforcement: Enforcement, words: &str| {
        let what: Vec<&str> =
            effects.iter().filter(|effect| effect.enforcement == enforcement).map(|effect| effect.what).collect();
        (!what.is_empty()).then(|| format!("{words}: {}", what.join("; ")))
    };
    let lost = [of(Enforcement::Deny, "no longer refuses"), of(Enforcement::Audit, "no longer warns of")];
    let lost: Vec<String> = lost.into_iter().flatten().collect();
    (!lost.is_empty()).then(|| lost.join("; and "))
}

/// What it came to.
pub(crate) fn finish(
    view: &PlanView,
    ui: &Ui,
    cluster: &Cluster,
    effects: &[Effect],
    uninstalled: Uninstalled,
) -> Result<Exit, Failure> {
    let Uninstalled { applied, gone } = uninstalled;
    let mut members = Map::new();
    members.insert("inForce".to_owned(), json!(gone.as_ref().map(Result::is_err)));
    view.document(members)?;
    if applied.iter().all(|applied| applied.outcome == Outcome::Absent) {
        ui.tell(Event::note(format!("there is no baseline ({}): nothing was deleted", cluster.label())));
    }
    let seen = gone.transpose()?;
    let words = match (view.mode().changes(), lost(effects)) {
        (true, Some(lost)) => format!("the API server {lost}"),
        (false, Some(lost)) => format!("for real, the API server then {lost}"),
        (_, None) => return Ok(Exit::Ok),
    };
    ui.tell(Event::note(words));
    if view.mode().changes() && seen.is_none() {
        ui.tell(Event::note("it takes effect in a moment; --wait would tell when"));
    }
    ui.tell(Event::note(
        "RegistrationApprovals stay, and so does their definition; without the baseline they do not count",
    ));
    Ok(Exit::Ok)
}

/// What is asked before the policy engine is deleted.
pub(crate) fn engine_question(cluster: &Cluster, purge: bool, policies: usize) -> String {
    let label = cluster.label();
    let lost = match (purge, policies) {
        (false, _) => "The HubPolicies stay.".to_owned(),
        (true, 0) => "All Registrations go too, and the namespace ocm-policy-engine with whatever is in it.".to_owned(),
        (true, 1) => {
            "One HubPolicy and all Registrations go too, and the namespace ocm-policy-engine with whatever is in it."
                .to_owned()
        }
        (true, many) => format!(
            "{many} HubPolicies and all Registrations go too, and the namespace ocm-policy-engine with whatever is in it."
        ),
    };
    format!("Delete the policy engine ({label})? The API server then asks no policies about registrations. {lost}")
}

/// What the removal of the policy engine came to.
pub(crate) fn finish_engine(
    view: &PlanView,
    ui: &Ui,
    cluster: &Cluster,
    was_there: bool,
    purge: bool,
    uninstalled: EngineUninstalled,
) -> Result<Exit, Failure> {
    let EngineUninstalled { applied: _, gone } = uninstalled;
    let mut members = Map::new();
    members.insert("gone".to_owned(), json!(gone.as_ref().map(Result::is_ok)));
    view.document(members)?;
    if !was_there {
        ui.tell(Event::note(format!("there is no policy engine ({}): nothing was deleted", cluster.label())));
    }
    gone.transpose()?;
    if was_there {
        ui.tell(Event::note(match view.mode().changes() {
            true => "the API server asks no policies about registrations",
            false => "for real, the API server then asks no policies about registrations",
        }));
        if !purge {
            ui.tell(Event::note(
                "HubPolicies, Registrations, their definitions and the namespace ocm-policy-engine stay: --purge deletes \
                 them, too",
            ));
        }
    }
    Ok(Exit::Ok)
}

/// What is asked before a hub is deleted.
pub(crate) fn hub_question(cluster: &Cluster, found: &HubFound) -> String {
    let label = cluster.label();
    let along = match found.attached.peoples.as_slice() {
        [] => String::new(),
        peoples => format!(" What people have made goes along: {}.", counted(peoples)),
    };
    format!("Delete the hub ({label})? No cluster is attached to it; no token registers clusters any more.{along}")
}

/// There was no hub.
pub(crate) fn no_hub(view: &PlanView, ui: &Ui, cluster: &Cluster) -> Result<Exit, Failure> {
    view.document(Map::new())?;
    ui.tell(Event::note(format!("there is no hub ({}): nothing was deleted", cluster.label())));
    Ok(Exit::Ok)
}

/// What the removal of a hub came to.
pub(crate) fn finish_hub(
    view: &PlanView,
    ui: &Ui,
    found: &HubFound,
    uninstalled: HubUninstalled,
) -> Result<Exit, Failure> {
    let HubUninstalled { namespace_kept } = uninstalled;
    let mut members = Map::new();
    members.insert("namespaceKept".to_owned(), json!(namespace_kept));
    view.document(members)?;
    if namespace_kept.is_some() {
        ui.tell(Event::note("--purge deletes the namespace with whatever else is in it"));
    }
    if found.beside_agent {
        ui.tell(Event::note("the operator of a managed cluster is there, too, and so the namespace of both stays"));
    }
    Ok(Exit::Ok)
}

/// What is asked before the hub's sides of add-ons are deleted.
pub(crate) fn hub_addon_question(cluster: &Cluster, found: &[HubAddOnFound], removal: HubAddOnRemoval) -> String {
    let there = || found.iter().filter(|one| one.is_there());
    let names: Vec<String> = there().map(|one| format!("{:?}", one.name)).collect();
    let objects: usize = there().map(|one| one.objects.len()).sum();
    let objects = if objects == 1 { "1 object goes".to_owned() } else { format!("{objects} objects go") };
    let clusters: usize = there().flat_map(|one| one.enabled.values()).map(Vec::len).sum();
    let lost = match clusters {
        0 => String::new(),
        1 => " One cluster loses it.".to_owned(),
        many => format!(" It is enabled {many} times on clusters, which lose it."),
    };
    let definitions = there().flat_map(|one| &one.objects).filter(|one| one.rank() == Rank::Definitions).count();
    let along = match (definitions, removal.leaving.purge) {
        (0, false) => "",
        (0, true) => " Its namespaces go with whatever else is in them.",
        (_, false) => " All objects of the kinds that it defines go along.",
        (_, true) => {
            " All objects of the kinds that it defines go along, and its namespaces go with whatever else is in them."
        }
    };
    format!("Delete hub add-on {} ({})? {objects}.{lost}{along}", names.join(", "), cluster.label())
}

/// What the removal of the hub's sides of add-ons came to.
pub(crate) fn finish_hub_addons(
    view: &PlanView,
    ui: &Ui,
    cluster: &Cluster,
    found: &[HubAddOnFound],
    removal: HubAddOnRemoval,
    spaces: &[(String, String)],
) -> Result<Exit, Failure> {
    let kept: Map<String, serde_json::Value> =
        spaces.iter().map(|(name, why)| (name.clone(), json!(why))).collect_object();
    let mut members = Map::new();
    members.insert("names".to_owned(), json!(found.iter().map(|one| &one.name).collect::<Vec<_>>()));
    members.insert("namespacesKept".to_owned(), json!((!kept.is_empty()).then_some(kept)));
    view.document(members)?;
    for one in found.iter().filter(|one| !one.is_there()) {
        let left = if one.kept.is_empty() { "there is no" } else { "nothing is left to delete of" };
        ui.tell(Event::note(format!("{left} hub add-on {:?} ({}): nothing was deleted", one.name, cluster.label())));
    }
    if !spaces.is_empty() {
        ui.tell(Event::note("--purge deletes namespaces with whatever else is in them"));
    }
    let mut kept = found.iter().flat_map(|one| &one.kept);
    if !removal.definitions && kept.any(|(one, _)| one.rank() == Rank::Definitions) {
        ui.tell(Event::note("--delete-crds deletes definitions with all objects of their kinds"));
    }
    Ok(Exit::Ok)
}
