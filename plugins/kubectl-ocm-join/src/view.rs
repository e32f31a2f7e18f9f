//! What a join looks like.

use ocm_cli::{Format, PlanView, Ui};
use ocm_core::join::aws::Roles;
use ocm_core::phase::Phase;
use ocm_core::plan::Mode;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::join::{Joined, LeftHub, Still, TrustedBy};
use serde_json::{Map, json};

/// What the hub's object is called where objects are echoed.
const REFERENCE: &str = "managedcluster.cluster.open-cluster-management.io";

/// Why the hub is believed to be the hub, in one word.
fn word(trusted_by: TrustedBy) -> &'static str {
    match trusted_by {
        TrustedBy::Kubeconfig => "Kubeconfig",
        TrustedBy::Pin => "Pin",
        TrustedBy::Ca => "CA",
        TrustedBy::System => "System",
        TrustedBy::Nothing => "Nothing",
    }
}

/// Says what the hub that the cluster leaves still has of it, and what takes that away.
fn tell_former(ui: &Ui, name: &str, server: &str, still: Option<&Still>) {
    match still {
        None => {}
        Some(Still::NotYet) => ui.tell(Event::note(format!(
            "{name} leaves the hub at {server} when it is available at the new one: run the same command once more then"
        ))),
        Some(Still::Stays(why)) => ui.tell(Event::warning(format!(
            "what the hub at {server} has of {name} stays there: {why}; if it is this cluster's, take it away when {name} has been \
             available at the new hub for three minutes: kubectl ocm detach {name} --force --context HUB"
        ))),
        Some(Still::Anothers) => ui.tell(Event::note(format!(
            "{name} at the hub at {server} is another cluster, which has registered there since, and stays"
        ))),
    }
}

/// What it came to.
pub(crate) fn finish(
    view: &PlanView,
    ui: &Ui,
    name: &str,
    joined: Joined,
    roles: Option<Roles>,
) -> Result<Exit, Failure> {
    let Joined { hub, trusted_by, before, anew, moves, plan, applied, former, followed } = joined;
    if let Some(Roles { managed, hub, creator }) = &roles {
        ui.tell(Event::note(format!("the agent comes with the IAM role {managed}, which has to be there")));
        ui.tell(Event::note(format!(
            "the hub makes the IAM role {hub} when it accepts the cluster, with its own role {creator}, which has to be there"
        )));
    }
    match view.mode() {
        Mode::Render => return view.manifests(&plan),
        Mode::Diff => return view.diff(&applied),
        Mode::Apply(_) => {}
    }
    let phase = followed.as_ref().ok().copied().flatten();
    let state = match (phase, before) {
        (Some(Phase::Pending), _) if anew => "registered again, pending approval",
        (Some(Phase::Pending), _) => "registered, pending acceptance",
        (Some(Phase::Accepted), _) => "accepted",
        (Some(Phase::Joined), _) => "joined",
        (Some(Phase::Available), _) => "available",
        (Some(_), _) => "registered",
        (None, true) if moves.is_some() => "moving",
        (None, true) => "joined before",
        (None, false) if anew => "registering again",
        (None, false) => "joining",
    };
    let mut members = Map::new();
    members.insert("managedCluster".to_owned(), json!(name));
    members.insert("hub".to_owned(), json!(hub.server));
    members.insert("hubTrustedBy".to_owned(), json!(word(trusted_by)));
    if let Some(LeftHub { server, still }) = &former {
        tell_former(ui, name, server, still.as_ref());
        members.insert(
            "formerHub".to_owned(),
            json!({"address": server, "left": still.is_none() && view.mode().changes()}),
        );
    }
    members.insert("phase".to_owned(), json!(phase.map(|phase| phase.to_string())));
    members.insert("state".to_owned(), json!(state));
    if let Some(Roles { managed, hub, creator }) = roles {
        let roles = json!({"managedCluster": managed, "hub": hub, "hubIdentityCreator": creator});
        members.insert("iamRoles".to_owned(), roles);
    }
    view.document(members)?;
    followed?;
    if view.format() == Format::Name {
        ui.line(&format!("{REFERENCE}/{name}"));
    }
    if !view.mode().changes() {
        return Ok(Exit::Ok);
    }
    if view.format().is_human() {
        ui.line(&format!("{REFERENCE}/{name} {state}"));
    }
    match phase {
        None | Some(Phase::Pending) if anew => ui.tell(Event::note(format!(
            "an administrator of the hub gives the name to the agent's new key: kubectl ocm accept {name} --replace"
        ))),
        None | Some(Phase::Pending) if phase.is_some() || !before => {
            ui.tell(Event::note(format!("an administrator of the hub lets it in: kubectl ocm accept {name}")));
        }
        _ => {}
    }
    Ok(Exit::Ok)
}
