//! `kubectl ocm accept` and the policies decide alike: hubs are made up, and both are asked about the same ones.
//!
//! What `accept` approves no policy refuses, and what `accept` refuses for a rule that policies know, a policy refuses
//! with the same code. What differs is listed, with the reason, and every entry of the list is met.
//! For more hubs, or others: `OCM_AGREEMENT_HUBS=100000 OCM_AGREEMENT_SEED=7`.

#[path = "agreement/hub.rs"]
mod hub;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hub::{Hub, Maker, NOW};
use ocm_core::accept::{Chosen, Decision};
use ocm_core::csr::{Code, State};
use ocm_policy_rules::evidence::{self, Budget};
use ocm_policy_rules::review::{self, Asking};
use ocm_policy_sdk::{Decision as Answer, Manifest, Operation, Policy, Request, Requester, Verdict};
use ocm_rules::cluster::ACCEPTED_BY_HUB;
use policy_cluster_hygiene::ClusterHygiene;
use policy_csr_hygiene::CsrHygiene;
use policy_name_claim::NameClaim;
use serde_json::{Value, json};
use support::{Random, number};

/// Where the two differ, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exception {
    /// A person who names a cluster lets it in again; policies decide while nobody looks.
    DeniedBefore,
    /// `accept` comes after the hub's own controllers, which may have written since the cluster was created.
    AfterHub,
    /// A cluster without a request that could be judged: policies are asked about requests.
    NoRequest,
    /// What became of a request that was decided is no question any more.
    Decided,
    /// A policy that finds a request wrong by itself looks no further; `accept` looks at the cluster first.
    WrongRequest,
    /// A person accepted the cluster before; a selector does not tell `accept` for which key, policies are asked about one.
    AcceptedBefore,
}

const EXCEPTIONS: [Exception; 6] = [
    Exception::DeniedBefore,
    Exception::AfterHub,
    Exception::NoRequest,
    Exception::Decided,
    Exception::WrongRequest,
    Exception::AcceptedBefore,
];

/// What a policy has against something: the code of its rule.
type Codes = BTreeSet<String>;

struct Policies {
    csr_hygiene: CsrHygiene,
    name_claim: NameClaim,
    cluster_hygiene: ClusterHygiene,
}

impl Policies {
    fn new(hub: &Hub) -> Self {
        let settings = json!({"requesters": hub.options.settings.requesters});
        Self {
            csr_hygiene: configure(&settings),
            name_claim: configure(&settings),
            cluster_hygiene: configure(&settings),
        }
    }

    /// What they have against a certificate request, by itself and for its name.
    fn about_request(&self, hub: &Hub, index: usize, operation: Operation) -> [Codes; 2] {
        let asking = asking();
        let object = &hub.csrs[index].object;
        let request = || match (operation, &hub.cluster) {
            (Operation::Join, Some(cluster)) => review::join(object, cluster, &asking).expect("it can be asked"),
            _ => review::of_csr(Operation::Approve, object, &asking).expect("it can be asked"),
        };
        [ask(&self.csr_hygiene, hub, request()), ask(&self.name_claim, hub, request())]
    }

    /// What they have against the cluster as it was registered.
    fn about_cluster(&self, hub: &Hub) -> Codes {
        let Some(mut cluster) = hub.cluster.clone() else { return Codes::new() };
        cluster["spec"]["hubAcceptsClient"] = json!(false);
        let user = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
        let requester = Requester { username: user.into(), ..Requester::default() };
        let asking = asking();
        let request = review::of_cluster(Operation::Create, &cluster, requester, &asking).expect("it can be asked");
        ask(&self.cluster_hygiene, hub, request.into_owned())
    }
}

fn asking() -> Asking {
    Asking { id: "q".to_owned(), now: ocm_policy_sdk::time::parse(NOW).expect("it is a time"), ..Asking::default() }
}

fn configure<P: Policy>(settings: &Value) -> P
where
    P::Settings: serde::de::DeserializeOwned,
{
    let settings = serde_json::from_value(settings.clone()).expect("these are settings");
    P::configure(settings).unwrap_or_else(|wrong| panic!("{wrong:?}"))
}

/// Why a policy refuses or holds; none if it allows or has no opinion.
fn ask<P: Policy>(policy: &P, hub: &Hub, mut request: ocm_policy_abi::Request<'_>) -> Codes {
    let manifest = Manifest::from(P::manifest());
    let table = |query: &ocm_policy_abi::Query| {
        let objects = hub.objects(&query.source);
        let table = evidence::table(query, objects, &request, "1", Budget::default());
        (query.name.clone(), table.expect("the query can be answered"))
    };
    request.evidence = manifest.evidence.iter().map(table).collect();
    let Answer { verdict, reasons, .. } = policy.decide(&Request::from(request)).into();
    match verdict {
        Verdict::Deny | Verdict::Hold => reasons.into_iter().map(|reason| reason.code).collect(),
        Verdict::Allow | Verdict::NoOpinion => Codes::new(),
    }
}

/// A hub that both have been asked about.
struct Case<'h> {
    hub: &'h Hub,
    policies: Policies,
    /// What the policies have against the cluster as it was registered.
    brought: Codes,
    met: &'h mut BTreeMap<Exception, u32>,
}

impl Case<'_> {
    fn meet(&mut self, exception: Exception) {
        *self.met.entry(exception).or_default() += 1;
    }

    /// The requests for the name that `accept` looks at, with this state.
    fn requests(&self, wanted: impl Fn(State) -> bool) -> Vec<usize> {
        let requests = self.hub.csrs.iter().enumerate();
        let own =
            requests.filter(|(_, csr)| csr.request.facts().is_first_of(self.hub.name) && wanted(csr.request.state));
        own.map(|(index, _)| index).collect()
    }

    /// The request that `accept` bases a refusal on: the newest that waits and is right; where there is none, the newest
    /// that was approved in this registration, right ones before wrong ones of other keys; or else the newest that waits,
    /// or was decided.
    fn decisive(&self) -> Option<usize> {
        let hub = self.hub;
        let request = |index: usize| &hub.csrs[index].request;
        let is_right = |index: &usize| request(*index).violations(hub.name, &hub.options.settings).is_empty();
        let pending = self.requests(|state| state == State::Pending);
        let created = hub.cluster.as_ref().and_then(|cluster| cluster["metadata"]["creationTimestamp"].as_str());
        let created = created.and_then(|created| created.parse().ok());
        let now = |index: &usize| request(*index).decided.is_none_or(|decided| Some(decided) >= created);
        let decided: Vec<_> = self.requests(|state| state != State::Pending).into_iter().filter(now).collect();
        let granted = decided.iter().copied().filter(|index| {
            let request = request(*index);
            let granted = matches!(request.state, State::Approved | State::Issued);
            let facts = request.facts();
            // What cannot be read may name anybody.
            let named = request.names_agent_of(hub.name) || (facts.content.is_err() && facts.is_first_of(hub.name));
            granted && facts.is_for_hub() && named
        });
        let granted: Vec<usize> = granted.collect();
        let right_of = |all: &[usize]| all.iter().copied().rfind(is_right);
        let newest = || granted.last().or(pending.last()).or(decided.last()).copied();
        // Whose agent joined and was denied since needs none of those that wait.
        let denied = self.has_joined() && !self.is_accepted() && self.has("HubAcceptedManagedCluster", |_| true);
        let pending_first = if denied { None } else { right_of(&pending) };
        let right = right_of(&granted);
        let same = |index: &usize, right: usize| request(*index).key_digest() == request(right).key_digest();
        let wrong = |right| granted.iter().copied().rfind(|index| same(index, right) && !is_right(index));
        pending_first.or_else(|| right.and_then(wrong)).or(right).or_else(newest)
    }

    /// Asks about a request in both ways, which have to agree where both know the cluster.
    fn ask(&self, index: usize) -> [Codes; 2] {
        let [form, claim] = self.policies.about_request(self.hub, index, Operation::Join);
        if form.is_empty() && self.hub.cluster.is_some() {
            let approve = self.policies.about_request(self.hub, index, Operation::Approve);
            assert_eq!(approve, [form.clone(), claim.clone()], "the cluster in the request, and in the evidence");
        }
        [form, claim]
    }

    /// `accept` lets the cluster in with this request.
    fn is_let_in(&mut self, index: usize, accept: bool) {
        let [form, mut claim] = self.ask(index);
        assert_eq!(form, Codes::new(), "accept approves r{index}");
        let by_name = self.hub.options.chosen == Chosen::ByName;
        if by_name && claim.remove(Code::DeniedBefore.word()) {
            self.meet(Exception::DeniedBefore);
        }
        assert_eq!(claim, Codes::new(), "accept approves r{index}");
        if (accept || !by_name || self.is_accepted_by_hub()) && !self.has_joined() {
            let mut brought = self.brought.clone();
            let cluster = self.hub.cluster.as_ref().expect("there is one");
            if self.is_accepted_by_hub() && brought.remove(Code::Annotations.word()) {
                self.meet(Exception::AfterHub);
            }
            for (by_hub, code, field) in [
                (ocm_rules::cluster::HUB_FINALIZERS, Code::Finalizers, "/metadata/finalizers/0"),
                (ocm_rules::cluster::HUB_TAINTS, Code::Taints, "/spec/taints/0/key"),
            ] {
                let found = cluster.pointer(field).and_then(Value::as_str);
                if found.is_some_and(|found| by_hub.contains(&found)) && brought.remove(code.word()) {
                    self.meet(Exception::AfterHub);
                }
            }
            assert_eq!(brought, Codes::new(), "accept accepts the cluster");
        }
    }

    /// Whether a person accepted a cluster that has not joined, and nobody named it.
    fn is_accepted_in_bulk(&self) -> bool {
        let by_person = self.is_accepted() && !self.is_accepted_by_hub();
        self.hub.options.chosen == Chosen::InBulk && by_person && !self.has_joined()
    }

    fn is_accepted(&self) -> bool {
        self.hub.cluster.as_ref().is_some_and(|cluster| cluster["spec"]["hubAcceptsClient"] == true)
    }

    fn is_accepted_by_hub(&self) -> bool {
        let annotations = self.hub.cluster.as_ref().map(|cluster| &cluster["metadata"]["annotations"]);
        annotations.is_some_and(|annotations| annotations.get(ACCEPTED_BY_HUB).is_some())
    }

    fn has_joined(&self) -> bool {
        self.has("ManagedClusterJoined", |status| status == "True")
    }

    /// Whether the cluster has a condition with such a status.
    fn has(&self, kind: &str, status: fn(&Value) -> bool) -> bool {
        let conditions =
            self.hub.cluster.as_ref().and_then(|cluster| cluster.pointer("/status/conditions")?.as_array());
        let is = |known: &Value| known["type"] == kind && status(&known["status"]);
        conditions.is_some_and(|conditions| conditions.iter().any(is))
    }

    /// `accept` refuses the cluster.
    fn is_refused(&mut self, code: Code) {
        if code == Code::NameTaken && self.is_accepted_in_bulk() {
            return self.meet(Exception::AcceptedBefore);
        }
        let pending = self.requests(|state| state == State::Pending);
        // None of those that wait gets through.
        for index in &pending {
            let [form, claim] = self.ask(*index);
            let refused = !form.is_empty() || !claim.is_empty() || !self.brought.is_empty();
            assert!(refused, "accept refuses with {code}, the policies let r{index} in");
        }
        if self.brought.contains(code.word()) {
            return;
        }
        if matches!(code, Code::RequestDenied | Code::RequestFailed) {
            return self.meet(Exception::Decided);
        }
        let Some(index) = self.decisive() else { return self.meet(Exception::NoRequest) };
        let [form, claim] = self.ask(index);
        if form.contains(code.word()) || claim.contains(code.word()) {
            return;
        }
        let about_name =
            [Code::NoManagedCluster, Code::Detaching, Code::DeniedBefore, Code::NameTaken, Code::NameUsedBefore];
        assert!(about_name.contains(&code) && !form.is_empty(), "accept: {code}, policies: {form:?}, {claim:?}");
        self.meet(Exception::WrongRequest);
    }

    fn check(&mut self, decision: &Decision) {
        let pending = self.requests(|state| state == State::Pending);
        match decision {
            Decision::Act { stands_on: Some(index), accept, .. } => self.is_let_in(*index, *accept),
            // Nothing waits that could be let in, right or wrong.
            Decision::NoRequest => assert!(pending.is_empty(), "{pending:?}"),
            // The agent holds a certificate; what waits is others'.
            Decision::Act { stands_on: None, .. } | Decision::Settled { .. } => {
                let stray = match decision {
                    Decision::Settled { stray } => stray,
                    _ => &pending,
                };
                for index in stray {
                    let [form, claim] = self.ask(*index);
                    assert!(
                        !form.is_empty() || !claim.is_empty(),
                        "accept leaves r{index} alone, the policies let it in"
                    );
                }
            }
            Decision::Refused(refusal) => self.is_refused(refusal.code),
        }
        // And the other way round: what the policies let in, accept does, with the same key.
        if self.is_accepted_in_bulk() {
            return;
        }
        for index in pending {
            let [form, claim] = self.ask(index);
            if form.is_empty() && claim.is_empty() && self.brought.is_empty() {
                let key = |index: usize| self.hub.csrs[index].request.key_digest();
                let same = matches!(decision, Decision::Act { approve: Some(one), .. } if key(*one) == key(index));
                assert!(same, "the policies let r{index} in");
            }
        }
    }
}

#[test]
fn accept_and_the_policies_agree_about_every_hub() {
    let (seed, hubs) = (number("OCM_AGREEMENT_SEED", 0x006f_636d), number("OCM_AGREEMENT_HUBS", 4000));
    let mut maker = Maker::new();
    let (mut met, mut seen) = (BTreeMap::new(), BTreeMap::<String, u32>::new());
    for number in 0..hubs {
        let hub = maker.hub(&mut Random::nth(seed, number));
        let decision = hub.accept();
        let word = match &decision {
            Decision::Act { approve, .. } => format!("Act, approve {}", approve.is_some()),
            Decision::Refused(refusal) => refusal.code.to_string(),
            Decision::Settled { .. } => "Settled".to_owned(),
            Decision::NoRequest => "NoRequest".to_owned(),
        };
        *seen.entry(word).or_default() += 1;
        let policies = Policies::new(&hub);
        let brought = policies.about_cluster(&hub);
        let mut case = Case { hub: &hub, policies, brought, met: &mut met };
        // What was asserted is printed by then; here, of which hub.
        let checked = catch_unwind(AssertUnwindSafe(|| case.check(&decision)));
        assert!(checked.is_ok(), "hub {number} of seed {seed}: accept decides {decision:?}\n{hub:#}");
    }
    // That the hubs are worth asking about.
    for exception in EXCEPTIONS {
        assert!(met.contains_key(&exception), "{exception:?} is met no more: take it off the list; {met:?}");
    }
    let codes =
        ["NameTaken", "TwoKeys", "NameUsedBefore", "NamespaceTaken", "NameReserved", "Detaching", "DeniedBefore"];
    for word in codes.into_iter().chain(["NoManagedCluster", "Labels", "Requester", "Act, approve true", "Settled"]) {
        assert!(seen.get(word).is_some_and(|times| *times >= 10), "{word}: {seen:?}");
    }
}
