//! What an installation looks like.

use ocm_cli::{PlanView, Ui};
use ocm_core::baseline::Enforcement;
use ocm_core::plan::Mode;
use ocm_core::shell::option;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::hub_addons::HubAddOnInstalled;
use ocm_flows::install::{BaselineInstalled, EngineInstalled, Installed};
use ocm_kube::Cluster;
use serde_json::{Map, json};

/// What it came to.
pub(crate) fn finish(view: &PlanView, ui: &Ui, cluster: &Cluster, installed: Installed) -> Result<Exit, Failure> {
    let Installed { installation, applied, usable } = installed;
    match view.mode() {
        Mode::Render => return view.manifests(&installation.plan),
        Mode::Diff => return view.diff(&applied),
        Mode::Apply(_) => {}
    }
    let mut members = Map::new();
    members.insert("clusterManager".to_owned(), json!(installation.hub));
    members.insert("bundleVersion".to_owned(), json!(installation.bundle.map(|bundle| bundle.to_string())));
    members.insert("usable".to_owned(), json!(usable.as_ref().map(Result::is_ok)));
    view.document(members)?;
    let waited = usable.transpose()?.is_some();
    if view.mode().changes() {
        ui.tell(Event::note(next_step(cluster, waited)));
    }
    Ok(Exit::Ok)
}

/// What the baseline came to.
pub(crate) fn finish_baseline(view: &PlanView, ui: &Ui, installed: BaselineInstalled) -> Result<Exit, Failure> {
    let BaselineInstalled { settings, applied, in_force } = installed;
    if view.mode() == Mode::Diff {
        return view.diff(&applied);
    }
    let audits = settings.enforcement == Enforcement::Audit;
    let mut members = Map::new();
    members.insert("enforcement".to_owned(), json!(if audits { "Audit" } else { "Deny" }));
    members.insert("requesters".to_owned(), json!(settings.requests.requesters));
    members.insert("inForce".to_owned(), json!(in_force.as_ref().map(|seen| matches!(seen, Ok(true)))));
    view.document(members)?;
    let seen = in_force.transpose()?;
    if view.mode().changes() && seen != Some(false) {
        ui.tell(Event::note(match (audits, seen.is_some()) {
            (true, _) => {
                "nothing is refused but forged approvals: whoever sends something wrong is warned. To refuse it, run the \
                 command without --audit"
            }
            (false, true) => "the API server refuses what breaks the rules",
            (false, false) => "it takes effect in a moment; --wait would tell when",
        }));
    }
    Ok(Exit::Ok)
}

/// What whoever applies rendered manifests has to know.
pub(crate) const RENDERED: &str = "the keys were made for this output alone, and registrations wait for the webhook as \
     soon as its configurations are applied: apply those last, when its pods are ready, with the caBundle of whoever \
     signed the certificate in the Secret ocm-policy-webhook-tls";

/// What the policy engine came to.
pub(crate) fn finish_policy_engine(
    view: &PlanView,
    ui: &Ui,
    cluster: &Cluster,
    installed: EngineInstalled,
    audits: bool,
) -> Result<Exit, Failure> {
    let EngineInstalled { applied, fails_closed, in_force } = installed;
    if view.mode() == Mode::Diff {
        return view.diff(&applied);
    }
    let mut members = Map::new();
    members.insert("enforcement".to_owned(), json!(if audits { "Audit" } else { "Enforce" }));
    members.insert("failurePolicy".to_owned(), json!(if fails_closed { "Fail" } else { "Ignore" }));
    members.insert("inForce".to_owned(), json!(in_force.as_ref().map(Result::is_ok)));
    view.document(members)?;
    let seen = in_force.transpose()?.is_some();
    if !view.mode().changes() {
        return Ok(Exit::Ok);
    }
    let context = context(cluster);
    ui.tell(Event::note(match (audits, seen, fails_closed) {
        (true, _, _) => {
            "nothing is refused: verdicts stand in the webhook's log and in the audit log. To refuse, run the \
                         command without --audit"
                .to_owned()
        }
        (false, true, _) => "the API server asks the webhook, and refuses what the policies refuse".to_owned(),
        (false, false, true) => "it takes effect as soon as the pods are ready; --wait would tell when".to_owned(),
        (false, false, false) => format!(
            "what the webhook does not answer passes. To let nobody register without it: kubectl ocm install \
             policy-engine{context} --wait"
        ),
    }));
    Ok(Exit::Ok)
}

/// What the hub's side of an add-on came to.
pub(crate) fn finish_hub_addon(
    view: &PlanView,
    ui: &Ui,
    cluster: &Cluster,
    name: &str,
    installed: HubAddOnInstalled,
) -> Result<Exit, Failure> {
    let HubAddOnInstalled { applied, addons, running } = installed;
    if view.mode() == Mode::Diff {
        return view.diff(&applied);
    }
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(name));
    members.insert("addons".to_owned(), json!(addons));
    members.insert("running".to_owned(), json!(running.as_ref().map(Result::is_ok)));
    view.document(members)?;
    let waited = running.transpose()?.is_some();
    if !view.mode().changes() {
        return Ok(Exit::Ok);
    }
    let context = context(cluster);
    let state = if waited { "it runs" } else { "it is being started; --wait would tell when it runs" };
    ui.tell(Event::note(match addons.first() {
        Some(addon) => {
            format!("{state}. To have it on clusters: kubectl ocm addon enable {addon} --clusters CLUSTER{context}")
        }
        None => format!("{state}. The files hold no ClusterManagementAddOn: the add-on itself may make one"),
    }));
    Ok(Exit::Ok)
}

/// The option that names the context of a cluster, which whoever wrote the kubeconfig has chosen.
fn context(cluster: &Cluster) -> String {
    cluster.context.as_ref().map(|context| format!(" {}", option("--context", context))).unwrap_or_default()
}

fn next_step(cluster: &Cluster, usable: bool) -> String {
    let context = context(cluster);
    let state =
        if usable { "the hub is usable" } else { "the hub is being set up; --wait would tell when it is usable" };
    format!("{state}. Next, create a token for a cluster to join with: kubectl ocm token create{context}")
}
