//! What somebody does with policies that are there.

use ocm_api::HubPolicy;

use super::disabled::{Switch, SwitchError, Switching, switch};
use super::versions::{Step, StepError, step};

/// What somebody does with a policy that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is disabled or enabled.
    Switch(Switch),
    /// Something is done with its versions.
    Step(Step),
}

/// Why a policy is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// It cannot be enabled.
    Switch(SwitchError),
    /// Its versions do not allow it.
    Step(StepError),
}

/// What to do to change a policy.
///
/// # Errors
/// Why it cannot be done.
pub fn change(policy: &HubPolicy, change: Change) -> Result<Switching, ChangeError> {
    match change {
        Change::Switch(to) => switch(policy, to).map_err(ChangeError::Switch),
        Change::Step(to) => step(policy, to).map_err(ChangeError::Step),
    }
}

/// Why none of several policies is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This one cannot be changed so.
    One(String, ChangeError),
    /// Some have a candidate, which would be given up, and others have none and would go back to the version before.
    Apart {
        /// Those with a candidate.
        with: Vec<String>,
        /// Those without.
        without: Vec<String>,
    },
}

/// What to do to change several policies in one way. Those without anything to put in force or to go back to stay as they are
/// where others have: whoever repeats a change that was done in part means the rest of it.
///
/// # Errors
/// Why it cannot be done. To give candidates up and to go back are not done together: of a policy whose candidate was given up
/// before, the repetition would take the version in force away.
pub fn changes(policies: &[&HubPolicy], to: Change) -> Result<Vec<Switching>, Refusal> {
    let name = |policy: &HubPolicy| policy.metadata.name.clone().unwrap_or_default();
    let mut all = Vec::new();
    let mut idle = None;
    for policy in policies {
        all.push(match change(policy, to) {
            Err(error) if is_idle(to, &error) => {
                idle.get_or_insert_with(|| Refusal::One(name(policy), error));
                Switching::Nothing
            }
            judged => judged.map_err(|error| Refusal::One(name(policy), error))?,
        });
    }
    if let Some(idle) = idle.filter(|_| all.iter().all(|switching| *switching == Switching::Nothing)) {
        return Err(idle);
    }
    if to == Change::Step(Step::RollBack) {
        let stepping = policies.iter().zip(&all).filter(|(_, switching)| **switching != Switching::Nothing);
        let (with, without): (Vec<_>, Vec<_>) = stepping.partition(|(policy, _)| policy.spec.candidate.is_some());
        if !with.is_empty() && !without.is_empty() {
            let names = |some: Vec<(&&HubPolicy, _)>| some.into_iter().map(|(policy, _)| name(policy)).collect();
            return Err(Refusal::Apart { with: names(with), without: names(without) });
        }
    }
    Ok(all)
}

/// Whether a policy has nothing that the change could be about: neither a candidate that is wanted nor a version before.
fn is_idle(to: Change, error: &ChangeError) -> bool {
    matches!(
        (to, error),
        (Change::Step(Step::Promote), ChangeError::Step(StepError::NoCandidate))
            | (Change::Step(Step::RollBack), ChangeError::Step(StepError::NothingBefore))
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hub_policy::PREVIOUS;

    const PROMOTE: Change = Change::Step(Step::Promote);
    const BACK: Change = Change::Step(Step::RollBack);

    fn policy(name: &str, candidate: bool, previous: bool) -> HubPolicy {
        let annotations = previous.then(|| json!({PREVIOUS: r#"{"module":{"builtin":"name-pattern"}}"#}));
        let seen = json!({"sha256": "ab", "share": 0, "compared": 3, "differed": 1});
        let object = json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
            "metadata": {"name": name, "generation": 1, "annotations": annotations},
            "spec": {
                "module": {"builtin": "name-pattern"}, "mode": "Enforce",
                "candidate": candidate.then(|| json!({"settings": {"pattern": "a-*"}})),
            },
            "status": {"observedGeneration": 1, "candidate": candidate.then_some(seen)},
        });
        serde_json::from_value(object).unwrap()
    }

    /// Which policies are changed.
    fn changed(policies: &[&HubPolicy], to: Change) -> Result<Vec<bool>, Refusal> {
        changes(policies, to).map(|all| all.iter().map(|one| *one != Switching::Nothing).collect())
    }

    #[test]
    fn a_change_that_was_done_in_part_can_be_repeated() {
        let (tried, done) = (policy("a", true, false), policy("b", false, true));
        assert_eq!(changed(&[&done, &tried], PROMOTE), Ok(vec![false, true]));
        let none = ChangeError::Step(StepError::NoCandidate);
        for all in [&[&done][..], &[&done, &done]] {
            assert_eq!(changed(all, PROMOTE), Err(Refusal::One("b".to_owned(), none.clone())));
        }
        let plain = policy("c", false, false);
        assert_eq!(changed(&[&plain, &done], BACK), Ok(vec![false, true]));
        assert_eq!(changed(&[&tried, &plain], BACK), Ok(vec![true, false]));
        let nothing = ChangeError::Step(StepError::NothingBefore);
        assert_eq!(changed(&[&plain, &plain], BACK), Err(Refusal::One("c".to_owned(), nothing)));
    }

    #[test]
    fn nothing_goes_back_further_because_candidates_of_others_are_given_up() {
        let (tried, given_up, plain) = (policy("a", true, true), policy("b", false, true), policy("c", false, false));
        let apart = Refusal::Apart { with: vec!["a".to_owned()], without: vec!["b".to_owned()] };
        assert_eq!(changed(&[&given_up, &plain, &tried], BACK), Err(apart));
        assert_eq!(changed(&[&tried, &tried], BACK), Ok(vec![true, true]));
        assert_eq!(changed(&[&given_up], BACK), Ok(vec![true]));
    }

    #[test]
    fn whatever_else_is_wrong_with_one_is_said_before_anything_is_done() {
        let mut unseen = policy("u", true, false);
        unseen.status = None;
        let error = ChangeError::Step(StepError::NotObserved);
        assert_eq!(changed(&[&policy("a", true, false), &unseen], PROMOTE), Err(Refusal::One("u".to_owned(), error)));
    }
}
