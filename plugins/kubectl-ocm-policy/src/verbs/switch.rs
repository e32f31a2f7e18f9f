//! Disabling policies of a hub, and enabling them again.

use std::sync::Arc;

use ocm_api::policy::{HubPolicy, PolicyMode};
use ocm_cli::{PlanView, Ui};
use ocm_core::hub_policy::{DISABLED, Switch, SwitchError, Was};
use ocm_core::plan::Mode;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, policy_engine};
use ocm_flows::policies::{SwitchFailure, Switchable, find_switchable, switch_policies};
use ocm_kube::{Cluster, connect};
use serde_json::Map;

use crate::args::hub::{DisableArgs, SwitchArgs};

pub(crate) async fn disable(args: DisableArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DisableArgs { switch, yes } = args;
    run(switch, Switch::Disable, !yes, ui).await
}

pub(crate) async fn enable(args: SwitchArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    run(args, Switch::Enable, false, ui).await
}

async fn run(args: SwitchArgs, to: Switch, asks: bool, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let SwitchArgs { names, dry_run, output, client } = args;
    let dry_run = DryRun::from(dry_run);
    let view = PlanView::of(ui.clone(), Mode::Apply(dry_run), output.output);
    let hub = connect(&client.connection()?, ui.clone()).await?;
    let found = find_switchable(&hub, &names, to, dry_run, &*ui).await.map_err(failure)?;
    let changing: Vec<&HubPolicy> = found.iter().filter(|one| one.changes).map(|one| &one.row.object).collect();
    if asks && dry_run == DryRun::No && !changing.is_empty() && !ui.confirm(&question(&hub, &changing)).await? {
        return Err(Failure::refused("nothing was changed"));
    }
    let notes = notes(&found, to);
    let applied = switch_policies(&hub, found, to, dry_run, &*ui, |applied| view.row(applied)).await;
    applied.map_err(failure)?;
    view.document(Map::new())?;
    notes.into_iter().for_each(|note| ui.tell(note));
    Ok(Exit::Ok)
}

/// What is asked before policies are disabled.
fn question(hub: &Cluster, policies: &[&HubPolicy]) -> String {
    let name = |policy: &HubPolicy| policy.metadata.name.clone().unwrap_or_default();
    let names: Vec<String> = policies.iter().map(|policy| name(policy)).collect();
    let approving: Vec<String> =
        policies.iter().filter(|policy| policy.spec.auto_approve).map(|policy| name(policy)).collect();
    let refusing = policies.iter().any(|policy| !matches!(policy.spec.mode, PolicyMode::Warn | PolicyMode::Audit));
    let mut text = format!("Disable {} ({})?", names.join(", "), hub.label());
    if refusing {
        text += " What is refused or held by it alone then passes.";
    }
    if !approving.is_empty() {
        text += &format!(" {} then lets no cluster join.", approving.join(", "));
    }
    text
}

/// What else there is to know.
fn notes(found: &[Switchable], to: Switch) -> Vec<Event> {
    let mut notes = Vec::new();
    for one in found {
        let name = one.row.name();
        match (to, one.changes) {
            (Switch::Enable, false) => {
                let mode = &one.row.object.spec.mode;
                notes.push(Event::note(format!("policy {name} is not disabled: its mode is {mode}")));
            }
            (Switch::Disable, _) if policy_engine::POLICIES.contains(&name) => {
                notes.push(Event::note(format!(
                    "the next kubectl ocm install policy-engine sets the mode of {name} again, unless it is told \
                     --without-policies"
                )));
            }
            _ => {}
        }
    }
    notes
}

/// Why policies were not switched, for people.
fn failure(error: SwitchFailure) -> Failure {
    let (name, error) = match error {
        SwitchFailure::Failed(failure) => return failure,
        SwitchFailure::Refused(name, error) => (name, error),
    };
    let forget = format!("to keep it as it is: kubectl annotate hubpolicy {name} {DISABLED}-");
    match error {
        SwitchError::Changed { is, was } => Failure::refused(format!(
            "policy {name:?} was changed after it was disabled: {} now, and {} before",
            words(&is),
            words(&was)
        ))
        .hint(format!("to have it as it was: kubectl edit hubpolicy {name}"))
        .hint(forget),
        SwitchError::Unreadable(why) => {
            Failure::refused(format!("what policy {name:?} was before cannot be read from its annotation {DISABLED}"))
                .because(why)
                .hint(forget)
        }
    }
}

fn words(was: &Was) -> String {
    let approves = if was.auto_approve { " with autoApprove" } else { "" };
    format!("mode {}{approves}", was.mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_was_changed_is_told_with_what_it_is_and_was() {
        let of = |mode: &str, auto_approve| Was { mode: PolicyMode::from(mode), auto_approve };
        let error = SwitchError::Changed { is: of("Warn", false), was: of("Enforce", true) };
        let failure = failure(SwitchFailure::Refused("p".to_owned(), error));
        let message =
            "policy \"p\" was changed after it was disabled: mode Warn now, and mode Enforce with autoApprove before";
        assert_eq!((failure.message.as_str(), failure.exit()), (message, Exit::Findings));
        assert_eq!(
            failure.hints[1],
            "to keep it as it is: kubectl annotate hubpolicy p policy.kubectl-ocm.dev/disabled-"
        );
    }
}
