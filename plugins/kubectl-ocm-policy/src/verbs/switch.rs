//! Changing policies of a hub that are there: disabling and enabling them, and what is done with their candidates.

use std::sync::Arc;

use ocm_api::policy::{HubPolicy, PolicyMode};
use ocm_cli::{PlanView, Ui};
use ocm_core::hub_policy::{
    Change, ChangeError, DISABLED, PREVIOUS, Refusal, Step, StepError, Switch, SwitchError, Was,
};
use ocm_core::plan::Mode;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, policy_engine};
use ocm_flows::policies::{SwitchFailure, Switchable, find_switchable, switch_policies};
use ocm_kube::{Cluster, connect};
use serde_json::Map;

use crate::args::hub::{DisableArgs, PromoteArgs, SwitchArgs};

pub(crate) async fn disable(args: DisableArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DisableArgs { switch, yes } = args;
    run(switch, Change::Switch(Switch::Disable), !yes, ui).await
}

pub(crate) async fn enable(args: SwitchArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    run(args, Change::Switch(Switch::Enable), false, ui).await
}

pub(crate) async fn promote(args: PromoteArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PromoteArgs { share, yes, switch } = args;
    run(switch, Change::Step(share.map_or(Step::Promote, Step::Share)), !yes, ui).await
}

pub(crate) async fn pause(args: SwitchArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    run(args, Change::Step(Step::Share(0)), false, ui).await
}

pub(crate) async fn roll_back(args: DisableArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DisableArgs { switch, yes } = args;
    run(switch, Change::Step(Step::RollBack), !yes, ui).await
}

async fn run(args: SwitchArgs, to: Change, asks: bool, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let SwitchArgs { names, dry_run, output, client } = args;
    let dry_run = DryRun::from(dry_run);
    let view = PlanView::of(ui.clone(), Mode::Apply(dry_run), output.output);
    let hub = connect(&client.connection()?, ui.clone()).await?;
    let found = find_switchable(&hub, &names, to, dry_run, &*ui).await.map_err(failure)?;
    let changing: Vec<&HubPolicy> = found.iter().filter(|one| one.changes).map(|one| &one.row.object).collect();
    if asks && dry_run == DryRun::No && !changing.is_empty() && !ui.confirm(&question(&hub, &changing, to)).await? {
        return Err(Failure::refused("nothing was changed"));
    }
    let notes = notes(&found, to);
    let all = switch_policies(&hub, found, to, dry_run, &*ui, |applied| view.row(applied)).await;
    view.document(Map::new())?;
    notes.into_iter().for_each(|note| ui.tell(note));
    let total = all.len();
    let failed = all.into_iter().filter_map(|(name, done)| Some((name, failure(done.err()?)))).collect();
    let sentence = |failed: usize| format!("{failed} of {total} policies were not changed");
    Failure::of_several(total, failed, sentence).map_or(Ok(Exit::Ok), Err)
}

/// What is asked before policies are changed.
fn question(hub: &Cluster, policies: &[&HubPolicy], to: Change) -> String {
    let name = |policy: &HubPolicy| policy.metadata.name.clone().unwrap_or_default();
    let names: Vec<String> = policies.iter().map(|policy| name(policy)).collect();
    let (list, hub) = (names.join(", "), hub.label());
    match to {
        Change::Switch(Switch::Disable) => disables(policies, &list, &hub.to_string()),
        Change::Switch(Switch::Enable) => format!("Enable {list} ({hub})?"),
        Change::Step(Step::Share(share)) => {
            format!(
                "Have the candidate of {list} decide for {share} of a hundred clusters ({hub})?{}",
                differ(policies)
            )
        }
        Change::Step(Step::Promote) => {
            format!("Put the candidate of {list} in force ({hub})?{}", differ(policies))
        }
        Change::Step(Step::RollBack) => {
            let back: Vec<String> =
                policies.iter().filter(|policy| policy.spec.candidate.is_none()).map(|policy| name(policy)).collect();
            match back.is_empty() {
                true => format!("Give up the candidate of {list} ({hub})?"),
                false => format!(
                    "Roll back {list} ({hub})? {} then decides as before its last version was promoted.",
                    back.join(", ")
                ),
            }
        }
    }
}

/// What is known of where candidates differ.
fn differ(policies: &[&HubPolicy]) -> String {
    let seen = policies.iter().filter_map(|policy| {
        let seen = policy.status.as_ref()?.candidate.as_ref()?;
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        Some(format!(
            " {name}: it differs for {} of the {} clusters it was compared for.",
            seen.differed, seen.compared
        ))
    });
    seen.collect()
}

/// What is asked before policies are disabled.
fn disables(policies: &[&HubPolicy], list: &str, hub: &str) -> String {
    let name = |policy: &HubPolicy| policy.metadata.name.clone().unwrap_or_default();
    let approving: Vec<String> =
        policies.iter().filter(|policy| policy.spec.auto_approve).map(|policy| name(policy)).collect();
    let refusing = policies.iter().any(|policy| !matches!(policy.spec.mode, PolicyMode::Warn | PolicyMode::Audit));
    let mut text = format!("Disable {list} ({hub})?");
    if refusing {
        text += " What is refused or held by it alone then passes.";
    }
    if !approving.is_empty() {
        text += &format!(" {} then lets no cluster join.", approving.join(", "));
    }
    text
}

/// What else there is to know.
fn notes(found: &[Switchable], to: Change) -> Vec<Event> {
    let mut notes = Vec::new();
    for one in found {
        let name = one.row.name();
        match (to, one.changes) {
            (Change::Switch(Switch::Enable), false) => {
                let mode = &one.row.object.spec.mode;
                notes.push(Event::note(format!("policy {name} is not disabled: its mode is {mode}")));
            }
            (Change::Switch(Switch::Disable), _) if policy_engine::POLICIES.contains(&name) => {
                notes.push(Event::note(format!(
                    "the next kubectl ocm install policy-engine sets the mode of {name} again, unless it is told \
                     --without-policies"
                )));
            }
            (Change::Step(Step::Promote), false) => {
                notes.push(Event::note(format!("policy {name} has no candidate, and stays as it is")));
            }
            (Change::Step(Step::RollBack), false) => {
                notes.push(Event::note(format!("policy {name} has nothing to go back to, and stays as it is")));
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
        SwitchFailure::Refused(Refusal::Apart { with, without }) => return apart(&with, &without),
        SwitchFailure::Refused(Refusal::One(name, error)) => (name, error),
    };
    let forget = format!("to keep it as it is: kubectl annotate hubpolicy {name} {DISABLED}-");
    match error {
        ChangeError::Step(error) => of_step(&name, error),
        ChangeError::Switch(SwitchError::Changed { is, was }) => Failure::refused(format!(
            "policy {name:?} was changed after it was disabled: {} now, and {} before",
            words(&is),
            words(&was)
        ))
        .hint(format!("to have it as it was: kubectl edit hubpolicy {name}"))
        .hint(forget),
        ChangeError::Switch(SwitchError::Unreadable(why)) => {
            Failure::refused(format!("what policy {name:?} was before cannot be read from its annotation {DISABLED}"))
                .because(why)
                .hint(forget)
        }
    }
}

/// Why policies with a candidate are not rolled back together with others.
fn apart(with: &[String], without: &[String]) -> Failure {
    let sentence = format!(
        "of {} the candidate would be given up, and of {}, without a candidate, the version before the last promotion would be back",
        with.join(", "),
        without.join(", ")
    );
    Failure::refused(sentence)
        .hint(format!("to give up candidates: kubectl ocm policy rollback {}", with.join(" ")))
        .hint(format!("to go back: kubectl ocm policy rollback {}", without.join(" ")))
}

/// Why nothing was done with the versions of a policy.
fn of_step(name: &str, error: StepError) -> Failure {
    let describe = format!("kubectl ocm policy describe {name}");
    match error {
        StepError::NoCandidate => {
            let hint = "name another module or other settings in spec.candidate of the HubPolicy, and apply it";
            Failure::refused(format!("policy {name:?} has no candidate")).hint(hint)
        }
        StepError::NotObserved => {
            let sentence = "the policy controller has not looked at the candidate of policy";
            Failure::refused(format!("{sentence} {name:?} as it is now")).hint(format!("try again, or see: {describe}"))
        }
        StepError::Failed(why) => {
            Failure::refused(format!("the candidate of policy {name:?} cannot decide anything")).because(why)
        }
        StepError::NothingBefore => {
            Failure::refused(format!("policy {name:?} has no candidate, and no version of it was promoted"))
        }
        StepError::Unreadable(why) => {
            Failure::refused(format!("what policy {name:?} was before cannot be read from its annotation {PREVIOUS}"))
                .because(why)
        }
        StepError::TooLarge => Failure::refused(format!(
            "what policy {name:?} is now, with its settings and test cases, is too large to be noted in annotations, so that \
             nothing could be gone back to"
        ))
        .hint("make its test cases shorter, or apply the candidate as the policy"),
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
        let failure = failure(SwitchFailure::Refused(Refusal::One("p".to_owned(), ChangeError::Switch(error))));
        let message =
            "policy \"p\" was changed after it was disabled: mode Warn now, and mode Enforce with autoApprove before";
        assert_eq!((failure.message.as_str(), failure.exit()), (message, Exit::Findings));
        assert_eq!(
            failure.hints[1],
            "to keep it as it is: kubectl annotate hubpolicy p policy.kubectl-ocm.dev/disabled-"
        );
    }

    #[test]
    fn who_has_a_candidate_and_who_has_none_is_told_with_what_to_type() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let failure =
            failure(SwitchFailure::Refused(Refusal::Apart { with: names(&["a", "b"]), without: names(&["c"]) }));
        let message = "of a, b the candidate would be given up, and of c, without a candidate, the version before the last \
                       promotion would be back";
        assert_eq!((failure.message.as_str(), failure.exit()), (message, Exit::Findings));
        let hints = format!("{:?}", failure.hints);
        assert!(hints.contains("kubectl ocm policy rollback a b\"") && hints.contains("rollback c\""), "{hints}");
    }
}
