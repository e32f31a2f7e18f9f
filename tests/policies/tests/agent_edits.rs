//! The policy agent-self-edit and the rules that it calls say the same to every write: writes are made up, and given to the
//! rules as facts of typed objects, and to the policy as the webhook reads them from an admission review.
//!
//! What each write comes to is known beforehand, too, so that both are not wrong alike.
//! For more writes, or others: `OCM_AGREEMENT_WRITES=100000 OCM_AGREEMENT_SEED=7`.

#[path = "agent_edits/made.rs"]
mod made;
#[path = "agent_edits/native.rs"]
mod native;
mod support;

use std::collections::{BTreeMap, BTreeSet};

use made::{Chosen, Who, Write};
use ocm_policy_rules::review::{self, Asking};
use ocm_policy_sdk::{Decision, Manifest, Policy, Request, Verdict};
use ocm_rules::Violation;
use policy_agent_self_edit::AgentSelfEdit;
use support::{Random, number};

/// How many writes meet all that is wanted of them.
const ENOUGH: u64 = 2000;

/// Code, field and message of every reason, in alphabetical order.
type Reasons = Vec<[String; 3]>;

fn sorted(reasons: impl Iterator<Item = [String; 3]>) -> Reasons {
    let mut all: Reasons = reasons.collect();
    all.sort_unstable();
    all
}

/// What the policy says; none: it has no opinion.
fn by_policy(policy: &AgentSelfEdit, manifest: &Manifest, write: &Write) -> Option<Reasons> {
    let admission = write.review();
    let asking = Asking { wants_object: write.shows_objects, ..Asking::default() };
    let request = review::from_admission(&admission, &asking).expect("it can be asked");
    assert!(manifest.operations.contains(&request.operation), "nobody asks the policy about this: {write}");
    let Decision { verdict, reasons, .. } = policy.decide(&Request::from(request)).into();
    assert_eq!(verdict == Verdict::Deny, !reasons.is_empty(), "{verdict:?} {reasons:?}");
    match verdict {
        Verdict::NoOpinion => None,
        Verdict::Allow | Verdict::Deny => {
            let reason = |one: ocm_policy_sdk::Reason| [one.code, one.field.unwrap_or_default(), one.message];
            Some(sorted(reasons.into_iter().map(reason)))
        }
        Verdict::Hold => panic!("the policy holds: {write}"),
    }
}

/// What the rules say; none: they are not about it.
fn by_rules(write: &Write, chosen: &Chosen) -> Option<Reasons> {
    let reason = |Violation { code, field, detail }: Violation| [code.to_string(), field.to_owned(), detail];
    native::judge(write, &chosen.rules()).map(|found| sorted(found.into_iter().map(reason)))
}

#[test]
fn the_policy_and_the_rules_agree_about_every_write() {
    let (seed, writes) = (number("OCM_AGREEMENT_SEED", 0x006f_636d), number("OCM_AGREEMENT_WRITES", ENOUGH));
    let manifest = Manifest::from(AgentSelfEdit::manifest());
    let mut seen = BTreeMap::<String, u32>::new();
    for number in 0..writes {
        let random = &mut Random::nth(seed, number);
        let chosen = Chosen::new(random);
        let settings = serde_json::from_value(chosen.json()).expect("these are settings");
        let policy = AgentSelfEdit::configure(settings).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let write = Write::new(&chosen, random);
        let told = by_policy(&policy, &manifest, &write);
        assert_eq!(told, by_rules(&write, &chosen), "write {number} of seed {seed}, {chosen:?}: {write}");
        let codes = told.map(|reasons| reasons.into_iter().map(|[code, ..]| code).collect::<BTreeSet<String>>());
        assert_eq!(codes, write.expected(&chosen), "write {number} of seed {seed}, {chosen:?}: {write}");
        let (who, kind) = (write.who, write.kind);
        let mut met = write.rarities(&chosen);
        met.push(format!("{who:?}"));
        match codes {
            None => met.extend([format!("no opinion, {kind:?}"), format!("no opinion, {who:?}")]),
            Some(codes) if codes.is_empty() => {
                met.push(format!("allowed, {who:?}"));
                // That nothing changes is allowed, too, and says little.
                met.extend(write.changes.then(|| format!("allowed, {kind:?}")));
            }
            Some(codes) => met.extend(codes),
        }
        for word in met {
            *seen.entry(word).or_default() += 1;
        }
    }
    // That the writes are worth asking about: every reason, right writes, and everybody.
    let mut wanted: Vec<String> = manifest.reasons.into_iter().map(|reason| reason.code).collect();
    wanted.extend(Who::ALL.map(|who| format!("{who:?}")));
    for word in ["allowed, Cluster", "allowed, Work", "no opinion, Cluster", "no opinion, Work"] {
        wanted.push(word.to_owned());
    }
    for who in [Who::OwnAgent, Who::OwnAddon, Who::OwnAwsIdentity, Who::OwnGroup, Who::GrpcServer] {
        wanted.push(format!("allowed, {who:?}"));
    }
    for who in [Who::OwnAgent, Who::Person, Who::ServiceAccount] {
        wanted.push(format!("no opinion, {who:?}"));
    }
    for field in ["labels", "annotations", "finalizers", "managedClusterClientConfigs"] {
        wanted.push(format!("crowded, {field}"));
    }
    wanted.extend(["changed beyond what is shown", "scale, Cluster", "scale, Work"].map(str::to_owned));
    // Fewer are for looking at one of them.
    for word in wanted.into_iter().filter(|_| writes >= ENOUGH) {
        assert!(seen.contains_key(&word), "{word} is not met: {seen:?}");
    }
}
