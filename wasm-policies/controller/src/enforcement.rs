//! Whether the hub asks the policies, and its own webhooks beside them: by the webhook configurations, and by dry runs of a cluster
//! and a certificate request that nobody has.
//!
//! Nothing is tried that is somebody's. To approve or accept something takes an object that is there, and a dry run of it would be
//! one word of a URL away from letting it in: of those entries it is looked at what they say, beside others of the same
//! configuration that were seen to be asked.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, Resource};
use ocm_api::Manifest;
use ocm_api::conditions::hub_policy::reasons;
use ocm_api::names::webhooks::{MANAGED_CLUSTER_MUTATOR, MANAGED_CLUSTER_VALIDATOR, REGISTRATION_SERVICE};
use ocm_core::Failure;
use ocm_core::admission::{Admission, Objection};
use ocm_core::policy_engine::{self as engine, REPAIR, WEBHOOK, webhooks};
use ocm_kube::admission::{self, Answer, NoAnswer};
use ocm_kube::{Cluster, explain};
use ocm_policy_abi::Operation;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long reading a configuration may take.
const ANSWER: Duration = Duration::from_secs(8);
/// How long a dry run may take: longer than an API server waits for a webhook, ten seconds for those of the hub.
const TRIED: Duration = Duration::from_secs(12);
/// What brings those of Open Cluster Management back.
const REPAIR_HUB: &str = "its operator puts it back, which kubectl ocm install hub installs";

/// The reason where nobody could tell.
pub(crate) const UNKNOWN: &str = "CannotTell";
/// The reason where the API server asks and nobody answers.
const NO_ANSWER: &str = "NoAnswer";

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// One word.
    pub(crate) reason: &'static str,
    /// A sentence, with what to do.
    pub(crate) message: String,
}

/// What was seen of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Enforcement {
    /// Why requests do not wait for policies; none: they do.
    pub(crate) ours: Option<Problem>,
    /// What is wrong with single entries of ours, which is so for the policies whose requests they bring.
    pub(crate) entries: Vec<(&'static str, Problem)>,
    /// What is wrong with the hub's own webhooks, which judge beside ours.
    pub(crate) hub: Option<Problem>,
}

impl Enforcement {
    /// Why requests about these operations do not wait for policies.
    pub(crate) fn of(&self, operations: &[Operation]) -> Option<&Problem> {
        let is_theirs = |entry: &str| operations.iter().any(|operation| bringing(*operation).contains(&entry));
        let theirs = || self.entries.iter().find(|(entry, _)| is_theirs(entry)).map(|(_, problem)| problem);
        self.ours.as_ref().or_else(theirs)
    }

    /// Why some requests do not wait for policies.
    pub(crate) fn of_any(&self) -> Option<&Problem> {
        self.ours.as_ref().or_else(|| self.entries.first().map(|(_, problem)| problem))
    }
}

/// The entries that bring the webhook what is judged as this operation.
fn bringing(operation: Operation) -> &'static [&'static str] {
    use webhooks::{ACCEPT, APPROVE, DELETE, REGISTER, REQUEST, SELF_EDIT, UPDATE, WORK};
    match operation {
        Operation::Create => &[REGISTER],
        // Also of what is created as accepted.
        Operation::Accept => &[ACCEPT, REGISTER],
        // Also of what is changed with an acceptance.
        Operation::Update => &[UPDATE, SELF_EDIT, ACCEPT],
        Operation::Delete => &[DELETE],
        Operation::Request => &[REQUEST],
        Operation::Approve => &[APPROVE],
        // What the hub lets in by itself; the rest is the controller's.
        Operation::Join => &[ACCEPT, APPROVE],
        Operation::Admit => &[WORK],
    }
}

/// A configuration: what was found, or why it could not be read.
type Found = Result<Option<Value>, String>;
/// What became of a dry run.
type Tried = Result<Answer, NoAnswer>;

/// Looks at the hub. Changes nothing: the dry runs are of what nobody has, and can create.
pub(crate) async fn look(cluster: &Cluster) -> Enforcement {
    let (judges, changes, validates, mutates, registers, requests, others) = futures::join!(
        found::<ValidatingWebhookConfiguration>(cluster, WEBHOOK),
        found::<MutatingWebhookConfiguration>(cluster, WEBHOOK),
        found::<ValidatingWebhookConfiguration>(cluster, MANAGED_CLUSTER_VALIDATOR),
        found::<MutatingWebhookConfiguration>(cluster, MANAGED_CLUSTER_MUTATOR),
        tried(cluster, engine::probe()),
        tried_request(cluster),
        tried(cluster, engine::probe_of_others()),
    );
    Enforcement {
        ours: judged(&judges, &changes, &registers, &requests),
        entries: of_entries(&judges, &registers, &requests),
        hub: answers(&validates, &mutates, &others),
    }
}

/// Why requests do not wait for policies; `registers` is what became of a cluster that ours refuses, `requests` the same of a
/// certificate request.
fn judged(judges: &Found, changes: &Found, registers: &Tried, requests: &Tried) -> Option<Problem> {
    let missing = missing("ValidatingWebhookConfiguration", WEBHOOK, judges, REPAIR)
        .or_else(|| missing("MutatingWebhookConfiguration", WEBHOOK, changes, REPAIR));
    if missing.is_some() {
        return missing;
    }
    let open = judges.as_ref().ok().and_then(Option::as_ref).map(webhooks::open).unwrap_or_default();
    if !open.is_empty() {
        let message = format!(
            "while no pod of the webhook answers, requests pass unjudged: ValidatingWebhookConfiguration {WEBHOOK} lacks \
             failurePolicy Fail for {}; {REPAIR}",
            open.join(", ")
        );
        return Some(Problem { reason: reasons::FAILURE_POLICY_IGNORE, message });
    }
    match registers {
        Ok(Answer::Refused(said)) if engine::is_answer(said) => strange(judges, changes, webhooks::REGISTER),
        // Somebody else has refused it before, or did not answer, of which the API server tells first.
        _ if seen(registers, requests) == webhooks::REQUEST => strange(judges, changes, webhooks::REQUEST),
        Ok(_) => {
            let message = format!("the API server does not ask the webhook as its configuration says; {REPAIR}");
            Some(Problem { reason: reasons::NOT_ASKED_AT_ALL, message })
        }
        Err(NoAnswer::Webhook { name, is_distrusted: true, failure }) if name == webhooks::REGISTER => {
            let message = format!(
                "the API server does not trust the certificate that the webhook serves with, so requests are refused: \
                 {failure}; {REPAIR}"
            );
            Some(Problem { reason: reasons::NOT_TRUSTED, message })
        }
        Err(NoAnswer::Webhook { name, failure, .. }) if name == webhooks::REGISTER => {
            let message = format!(
                "the API server gets no answer from the webhook, so requests are refused: {failure}; look at its pods: \
                 kubectl get pods --namespace {}",
                engine::NAMESPACE
            );
            Some(Problem { reason: NO_ANSWER, message })
        }
        Err(NoAnswer::Webhook { failure, .. } | NoAnswer::Other(failure)) => {
            Some(Problem { reason: UNKNOWN, message: format!("the webhook cannot be tried: {failure}") })
        }
    }
}

/// Whether the webhook was seen to be asked about certificate requests.
fn is_answered(requests: &Tried) -> bool {
    matches!(requests, Ok(Answer::Refused(said)) if engine::is_answer_by(webhooks::REQUEST, said))
}

/// The entry by which the webhook was seen to be asked: that of clusters, or, where the API server tells of somebody else who
/// refuses the cluster or does not answer, that of certificate requests, about which usually nobody else is asked.
fn seen(registers: &Tried, requests: &Tried) -> &'static str {
    let is_anothers = match registers {
        Ok(Answer::Admitted(_)) | Err(NoAnswer::Other(_)) => false,
        Ok(Answer::Refused(said)) => said.by != Admission::Webhook(webhooks::REGISTER.to_owned()),
        Err(NoAnswer::Webhook { name, .. }) => name != webhooks::REGISTER,
    };
    if is_anothers && is_answered(requests) { webhooks::REQUEST } else { webhooks::REGISTER }
}

/// What is wrong with single entries: they are not as this release makes them, or were not seen to be asked.
fn of_entries(judges: &Found, registers: &Tried, requests: &Tried) -> Vec<(&'static str, Problem)> {
    let Ok(Some(live)) = judges else { return Vec::new() };
    let altered = webhooks::altered(live, seen(registers, requests));
    let problem = |entry: &'static str| {
        let message = format!(
            "the API server does not ask the webhook about everything that policies judge: entry {entry} of \
             ValidatingWebhookConfiguration {WEBHOOK} is missing, or its rules, matchConditions, matchPolicy, selectors or \
             clientConfig are not those of an installation; take back what was added there, and {REPAIR}"
        );
        (entry, Problem { reason: reasons::NOT_ASKED_AT_ALL, message })
    };
    let mut wrong: Vec<_> = altered.iter().copied().map(problem).collect();
    if !altered.contains(&webhooks::REQUEST) && !is_answered(requests) {
        wrong.push((webhooks::REQUEST, unasked(requests)));
    }
    wrong
}

/// What became of a certificate request that the webhook did not refuse.
fn unasked(requests: &Tried) -> Problem {
    match requests {
        // While this entry does not have to be answered, the API server does not tell whether it was.
        Ok(Answer::Admitted(_)) => {
            let message = format!(
                "the API server does not ask the webhook about certificate requests, or gets no answer in time; delete \
                 CertificateSigningRequest {} if there is one, for nothing is seen beside it; {REPAIR}",
                engine::PROBE
            );
            Problem { reason: reasons::NOT_ASKED_AT_ALL, message }
        }
        Ok(Answer::Refused(objection)) => {
            let why = &objection.why;
            let message = format!("somebody else refuses CertificateSigningRequest {}: {why}", engine::PROBE);
            Problem { reason: UNKNOWN, message }
        }
        Err(NoAnswer::Webhook { failure, .. } | NoAnswer::Other(failure)) => {
            let message = format!("whether the webhook is asked about certificate requests cannot be tried: {failure}");
            Problem { reason: UNKNOWN, message }
        }
    }
}

/// Entries that trust another authority than the one that was seen to work.
fn strange(judges: &Found, changes: &Found, seen: &str) -> Option<Problem> {
    let both = [judges, changes].into_iter().filter_map(|found| found.as_ref().ok()?.as_ref());
    let strangers = webhooks::strangers(both, seen);
    let message = format!(
        "the API server does not trust the webhook where it asks by {}: the caBundle there is another one, and what policies \
         return does not count; {REPAIR}",
        strangers.join(", ")
    );
    (!strangers.is_empty()).then_some(Problem { reason: reasons::NOT_TRUSTED, message })
}

/// What is wrong with the hub's own webhooks of clusters; `answer` is what became of a cluster that ours lets pass. The API server
/// refuses what an entry with failurePolicy Fail is about and does not answer: where it refuses nothing, all have answered.
fn answers(validates: &Found, mutates: &Found, answer: &Tried) -> Option<Problem> {
    let both = [
        ("ValidatingWebhookConfiguration", MANAGED_CLUSTER_VALIDATOR, validates),
        ("MutatingWebhookConfiguration", MANAGED_CLUSTER_MUTATOR, mutates),
    ];
    let wrong = |(kind, name, found): (&str, &str, &Found)| {
        let live = found.as_ref().ok().and_then(Option::as_ref);
        missing(kind, name, found, REPAIR_HUB).or_else(|| lets_pass(kind, name, live?))
    };
    let wrong = both.into_iter().find_map(wrong);
    if wrong.is_some() {
        return wrong;
    }
    let whose = |entry: &str| {
        let has =
            |found: &Found| found.as_ref().is_ok_and(|live| entries(live.as_ref()).any(|known| known["name"] == entry));
        both.into_iter().find(|(_, _, found)| has(found)).map(|(kind, name, _)| format!("{kind} {name}"))
    };
    let unknown = |why: &dyn std::fmt::Display| Problem {
        reason: UNKNOWN,
        message: format!("whether the webhooks of Open Cluster Management answer cannot be tried: {why}"),
    };
    match answer {
        Ok(Answer::Admitted(_)) => None,
        Ok(Answer::Refused(Objection { by: Admission::Webhook(entry), .. })) if whose(entry).is_some() => None,
        Ok(Answer::Refused(objection)) => {
            Some(unknown(&format_args!("somebody else refuses {}: {}", engine::PROBE, objection.why)))
        }
        Err(NoAnswer::Webhook { name, is_distrusted, failure }) => Some(match (whose(name), *is_distrusted) {
            (None, _) => unknown(failure),
            (Some(whose), true) => {
                let message = format!(
                    "the API server does not trust the certificate that the webhook of {whose} serves with, so no cluster is \
                     created or accepted: {failure}; of its caBundle, {REPAIR_HUB}"
                );
                Problem { reason: reasons::NOT_TRUSTED, message }
            }
            (Some(whose), false) => {
                let message = format!(
                    "the API server gets no answer from the webhook of {whose}, so no cluster is created or accepted: \
                     {failure}; look at the pods of Deployment {REGISTRATION_SERVICE}"
                );
                Problem { reason: NO_ANSWER, message }
            }
        }),
        Err(NoAnswer::Other(failure)) => Some(unknown(failure)),
    }
}

/// Why it would not show that a webhook of the hub does not answer, and would not matter: it is not asked about clusters that are
/// created, or they pass without its answer.
fn lets_pass(kind: &str, name: &str, live: &Value) -> Option<Problem> {
    let about: Vec<&Value> = entries(Some(live)).filter(|entry| judges_creation(entry)).collect();
    if about.is_empty() {
        let message = format!("{kind} {name} asks nobody about managed clusters, so they are not judged; {REPAIR_HUB}");
        return Some(Problem { reason: reasons::NOT_ASKED_AT_ALL, message });
    }
    let message = format!(
        "while its webhook does not answer, managed clusters pass unjudged, and nobody sees it: {kind} {name} lacks \
         failurePolicy Fail; {REPAIR_HUB}"
    );
    let fails = about.iter().all(|entry| entry["failurePolicy"] == "Fail");
    (!fails).then_some(Problem { reason: reasons::FAILURE_POLICY_IGNORE, message })
}

/// Whether an entry is about managed clusters that are created.
fn judges_creation(entry: &Value) -> bool {
    let has = |rule: &Value, member: &str, wanted: &[&str]| {
        let mut all = rule[member].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.any(|one| one == "*" || wanted.contains(&one))
    };
    entry["rules"].as_array().into_iter().flatten().any(|rule| {
        has(rule, "apiGroups", &["cluster.open-cluster-management.io"])
            && has(rule, "apiVersions", &["v1"])
            && has(rule, "resources", &["managedclusters", "*/*"])
            && has(rule, "operations", &["CREATE"])
    })
}

fn entries(live: Option<&Value>) -> impl Iterator<Item = &Value> {
    live.and_then(|live| live["webhooks"].as_array()).into_iter().flatten()
}

fn missing(kind: &str, name: &str, found: &Found, repair: &str) -> Option<Problem> {
    match found {
        Ok(Some(_)) => None,
        Ok(None) => {
            let message = format!("{kind} {name} is missing, so nothing it is for is judged; {repair}");
            Some(Problem { reason: reasons::CONFIGURATION_MISSING, message })
        }
        Err(why) => Some(Problem { reason: UNKNOWN, message: format!("{kind} {name} cannot be read: {why}") }),
    }
}

/// The configuration of a kind and a name.
async fn found<K>(cluster: &Cluster, name: &str) -> Found
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let api: Api<K> = Api::all(cluster.client.clone());
    match tokio::time::timeout(ANSWER, api.get_opt(name)).await {
        Ok(Ok(found)) => Ok(found.map(|found| json!(found))),
        Ok(Err(error)) => Err(explain(&error).to_string()),
        Err(_) => Err(unanswered(ANSWER)),
    }
}

/// Tries to create a certificate request. The entry about those does not have to be answered, and what was too late passes: whether
/// that was all is looked at once more.
async fn tried_request(cluster: &Cluster) -> Tried {
    match tried(cluster, engine::probe_of_requests()).await {
        Ok(Answer::Admitted(_)) => tried(cluster, engine::probe_of_requests()).await,
        answer => answer,
    }
}

/// Tries to create an object.
async fn tried(cluster: &Cluster, object: Manifest) -> Tried {
    let late = |_| NoAnswer::Other(Failure::other(unanswered(TRIED)));
    tokio::time::timeout(TRIED, admission::ask(cluster, &object)).await.map_err(late).flatten()
}

fn unanswered(within: Duration) -> String {
    format!("the hub has not answered within {} seconds", within.as_secs())
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use ocm_core::Reason;
    use ocm_core::policy_engine::{FailurePolicy, PROBE_CODE, PROBE_SENTENCE, Trust, configurations};

    use super::*;

    static CERTIFICATE: LazyLock<String> = LazyLock::new(certificate);

    fn reason(judges: Found, registers: Tried) -> Option<&'static str> {
        reason_with(judges, registers, &Ok(Answer::Admitted(Vec::new())))
    }

    fn reason_with(judges: Found, registers: Tried, requests: &Tried) -> Option<&'static str> {
        let changes = Ok(Some(planned("Mutating", FailurePolicy::Fail)));
        judged(&judges, &changes, &registers, requests).map(|problem| problem.reason)
    }

    fn said(by: Admission) -> Objection {
        Objection { by, why: PROBE_SENTENCE.to_owned(), codes: vec![PROBE_CODE.to_owned()] }
    }

    fn live(failure: FailurePolicy) -> Value {
        planned("Validating", failure)
    }

    fn planned(kind: &str, failure: FailurePolicy) -> Value {
        let plan = configurations(&Trust::Bundle(CERTIFICATE.clone()), failure);
        let found = plan.objects().find(|object| object.kind().starts_with(kind));
        found.expect("it is in the plan").body().clone()
    }

    fn certificate() -> String {
        rcgen::generate_simple_self_signed(vec!["webhook".to_owned()]).expect("a certificate").cert.pem()
    }

    #[test]
    fn only_an_answer_that_requests_wait_for_is_enforcing() {
        let refused = || Ok(Answer::Refused(said(Admission::Webhook(webhooks::REGISTER.to_owned()))));
        let fails = || Ok(Some(live(FailurePolicy::Fail)));
        assert_eq!(reason(fails(), refused()), None);
        assert_eq!(reason(Ok(Some(live(FailurePolicy::Ignore))), refused()), Some("FailurePolicyIgnore"));
        assert_eq!(reason(Ok(None), refused()), Some("ConfigurationMissing"));
        assert_eq!(reason(Err("forbidden".to_owned()), refused()), Some(UNKNOWN));
        assert_eq!(reason(fails(), Ok(Answer::Admitted(Vec::new()))), Some("NotAsked"));
        assert_eq!(
            reason(fails(), Ok(Answer::Refused(said(Admission::Webhook("another".to_owned()))))),
            Some("NotAsked")
        );
        let silent = |name: &str, is_distrusted| {
            let failure = Failure::new(Reason::Busy, "failed calling webhook");
            Err(NoAnswer::Webhook { name: name.to_owned(), is_distrusted, failure })
        };
        assert_eq!(reason(fails(), silent(webhooks::REGISTER, false)), Some("NoAnswer"));
        assert_eq!(reason(fails(), silent(webhooks::REGISTER, true)), Some("NotTrusted"));
        assert_eq!(reason(fails(), silent("somebody else's", true)), Some(UNKNOWN));
        // Where another entry of the same configuration was seen to be asked, and somebody else does not answer, or refuses.
        let seen = Ok(Answer::Refused(said(Admission::Webhook(webhooks::REQUEST.to_owned()))));
        assert_eq!(reason_with(fails(), silent("somebody else's", true), &seen), None);
        for by in [
            Admission::Webhook("another".to_owned()),
            Admission::Policy(webhooks::REGISTER.to_owned()),
            Admission::Other,
        ] {
            assert_eq!(reason_with(fails(), Ok(Answer::Refused(said(by))), &seen), None);
        }
        let another = Objection { codes: Vec::new(), ..said(Admission::Webhook(webhooks::REGISTER.to_owned())) };
        assert_eq!(
            reason_with(fails(), Ok(Answer::Refused(another)), &seen),
            Some("NotAsked"),
            "another server answers"
        );
        assert_eq!(reason_with(fails(), Ok(Answer::Admitted(Vec::new())), &seen), Some("NotAsked"));
        assert_eq!(reason_with(fails(), silent(webhooks::REGISTER, false), &seen), Some("NoAnswer"));
        let forbidden = || Err(NoAnswer::Other(Failure::new(Reason::Forbidden, "no")));
        assert_eq!(reason_with(fails(), forbidden(), &seen), Some(UNKNOWN));
        assert_eq!(reason(fails(), Err(NoAnswer::Other(Failure::new(Reason::Forbidden, "no")))), Some(UNKNOWN));
        let missing = judged(&fails(), &Ok(None), &refused(), &seen).expect("what changes clusters is missing");
        assert_eq!(missing.reason, "ConfigurationMissing");
    }

    #[test]
    fn an_entry_that_trusts_somebody_else_is_told_with_what_puts_it_right() {
        let refused = || Ok(Answer::Refused(said(Admission::Webhook(webhooks::REGISTER.to_owned()))));
        let judges = || Ok(Some(live(FailurePolicy::Fail)));
        let strange = |wrong: &str| {
            let plan = configurations(&Trust::Bundle(wrong.to_owned()), FailurePolicy::Fail);
            let changes = plan.objects().find(|object| object.kind().starts_with("Mutating")).expect("it is planned");
            judged(&judges(), &Ok(Some(changes.body().clone())), &refused(), &Ok(Answer::Admitted(Vec::new())))
        };
        assert_eq!(strange(&CERTIFICATE), None);
        for wrong in ["", &certificate()] {
            let problem = strange(wrong).expect("it trusts somebody else");
            assert_eq!(problem.reason, "NotTrusted");
            assert!(problem.message.contains("change.policy.kubectl-ocm.dev") && problem.message.contains(REPAIR));
        }
    }

    /// What is wrong for a policy that judges these operations.
    fn of_operations(judges: Found, requests: &Tried, operations: &[Operation]) -> Option<&'static str> {
        let registers = Ok(Answer::Refused(said(Admission::Webhook(webhooks::REGISTER.to_owned()))));
        let seen = Enforcement { ours: None, entries: of_entries(&judges, &registers, requests), hub: None };
        seen.of(operations).map(|problem| problem.reason)
    }

    #[test]
    fn an_entry_that_is_not_as_it_was_made_is_wrong_for_the_policies_whose_requests_it_brings() {
        let seen = || Ok(Answer::Refused(said(Admission::Webhook(webhooks::REQUEST.to_owned()))));
        let without = |entry: &str| {
            let mut live = live(FailurePolicy::Fail);
            live["webhooks"].as_array_mut().expect("entries").retain(|one| one["name"] != entry);
            Ok(Some(live))
        };
        for operation in Operation::ALL {
            let judges = Ok(Some(live(FailurePolicy::Fail)));
            assert_eq!(of_operations(judges, &seen(), &[operation]), None, "{operation:?}");
            assert!(!bringing(operation).is_empty());
            for entry in bringing(operation) {
                assert_eq!(of_operations(without(entry), &seen(), &[operation]), Some("NotAsked"), "{entry}");
            }
        }
        for (entry, others) in [
            (webhooks::APPROVE, [Operation::Create, Operation::Update]),
            (webhooks::UPDATE, [Operation::Approve, Operation::Accept]),
            (webhooks::WORK, [Operation::Update, Operation::Delete]),
        ] {
            assert_eq!(of_operations(without(entry), &seen(), &others), None, "{entry}");
        }
        let never = json!([{"name": "never", "expression": "false"}]);
        let mut narrowed = live(FailurePolicy::Fail);
        let entries = narrowed["webhooks"].as_array_mut().expect("entries").iter_mut();
        entries.for_each(|one| one["matchConditions"] = never.clone());
        let all = Enforcement { ours: None, entries: of_entries(&Ok(Some(narrowed)), &seen(), &seen()), hub: None };
        assert!(all.entries.len() == 8 && all.of_any().is_some());
        assert!(of_entries(&Err("forbidden".to_owned()), &seen(), &seen()).is_empty(), "that is told of all");
    }

    #[test]
    fn where_clusters_cannot_be_tried_their_entry_is_compared_with_that_of_certificate_requests() {
        let judged_by = |entry: &str| Ok(Answer::Refused(said(Admission::Webhook(entry.to_owned()))));
        let redirected = |entry: &str| {
            let mut live = live(FailurePolicy::Fail);
            let mut entries = live["webhooks"].as_array_mut().expect("entries").iter_mut();
            let entry = entries.find(|one| one["name"] == entry).expect("the entry");
            entry["clientConfig"] = json!({"url": "https://example.com/v1/validate"});
            Ok(Some(live))
        };
        let wrong = |judges: Found, registers: &Tried| {
            let requests = judged_by(webhooks::REQUEST);
            let wrong = of_entries(&judges, registers, &requests);
            wrong.into_iter().map(|(entry, _)| entry).collect::<Vec<_>>()
        };
        let by_another = judged_by("another");
        assert_eq!(wrong(Ok(Some(live(FailurePolicy::Fail))), &by_another), Vec::<&str>::new());
        assert_eq!(wrong(redirected(webhooks::REGISTER), &by_another), [webhooks::REGISTER]);
        assert_eq!(wrong(redirected(webhooks::REQUEST), &judged_by(webhooks::REGISTER)), [webhooks::REQUEST]);
    }

    #[test]
    fn whoever_judges_certificate_requests_is_asked_where_one_was_seen_to_be_refused() {
        let judges = || Ok(Some(live(FailurePolicy::Fail)));
        let failure = || Failure::new(Reason::Forbidden, "no");
        for (requests, expected) in [
            (Ok(Answer::Refused(said(Admission::Webhook(webhooks::REQUEST.to_owned())))), None),
            (Ok(Answer::Admitted(Vec::new())), Some("NotAsked")),
            (Ok(Answer::Refused(said(Admission::Webhook("another".to_owned())))), Some(UNKNOWN)),
            (Err(NoAnswer::Other(failure())), Some(UNKNOWN)),
        ] {
            assert_eq!(of_operations(judges(), &requests, &[Operation::Request]), expected, "{requests:?}");
            assert_eq!(of_operations(judges(), &requests, &[Operation::Approve, Operation::Create]), None);
        }
    }

    /// A configuration of the hub's own.
    fn own(name: &str) -> Found {
        let rule = json!({"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["*"],
                          "operations": ["CREATE", "UPDATE"], "resources": ["managedclusters"]});
        Ok(Some(json!({"webhooks": [{"name": name, "failurePolicy": "Fail", "rules": [rule]}]})))
    }

    fn of_hub(validates: &Found, answer: Tried) -> Option<&'static str> {
        answers(validates, &own(MANAGED_CLUSTER_MUTATOR), &answer).map(|problem| problem.reason)
    }

    #[test]
    fn of_the_hubs_own_webhooks_it_is_told_whether_they_are_asked_and_answer() {
        let there = || own(MANAGED_CLUSTER_VALIDATOR);
        let passes = || Ok(Answer::Admitted(Vec::new()));
        let refused = |by| Ok(Answer::Refused(Objection { by, why: "no".to_owned(), codes: Vec::new() }));
        assert_eq!(of_hub(&there(), passes()), None);
        assert_eq!(of_hub(&there(), refused(Admission::Webhook(MANAGED_CLUSTER_VALIDATOR.to_owned()))), None);
        // Whoever refuses it before has told nothing of them.
        for by in
            [Admission::Webhook(webhooks::REGISTER.to_owned()), Admission::Policy("p".to_owned()), Admission::Other]
        {
            assert_eq!(of_hub(&there(), refused(by)), Some(UNKNOWN));
        }
        let silent = |name: &str, is_distrusted| {
            let failure = Failure::new(Reason::Busy, "failed calling webhook");
            Err(NoAnswer::Webhook { name: name.to_owned(), is_distrusted, failure })
        };
        for own in [MANAGED_CLUSTER_VALIDATOR, MANAGED_CLUSTER_MUTATOR] {
            assert_eq!(of_hub(&there(), silent(own, false)), Some("NoAnswer"));
            assert_eq!(of_hub(&there(), silent(own, true)), Some("NotTrusted"));
        }
        assert_eq!(of_hub(&there(), silent(webhooks::REGISTER, false)), Some(UNKNOWN));
        assert_eq!(of_hub(&there(), Err(NoAnswer::Other(Failure::new(Reason::Forbidden, "no")))), Some(UNKNOWN));
        assert_eq!(of_hub(&Ok(None), passes()), Some("ConfigurationMissing"));
        assert_eq!(of_hub(&Err("forbidden".to_owned()), passes()), Some(UNKNOWN));
        let without = |change: &dyn Fn(&mut Value)| {
            let mut live = there().expect("it is read").expect("it is there");
            change(&mut live);
            of_hub(&Ok(Some(live)), passes())
        };
        assert_eq!(without(&|live| live["webhooks"] = json!([])), Some("NotAsked"));
        assert_eq!(
            without(&|live| live["webhooks"][0]["rules"][0]["operations"] = json!(["UPDATE"])),
            Some("NotAsked")
        );
        assert_eq!(without(&|live| live["webhooks"][0]["rules"][0]["resources"] = json!(["*"])), None);
        assert_eq!(
            without(&|live| live["webhooks"][0]["failurePolicy"] = "Ignore".into()),
            Some("FailurePolicyIgnore")
        );
    }

    #[test]
    fn what_is_told_of_the_hubs_own_webhooks_names_the_configuration_and_what_to_look_at() {
        let failure = || Failure::new(Reason::Busy, "connection refused");
        let silent = |is_distrusted| {
            Err(NoAnswer::Webhook { name: MANAGED_CLUSTER_MUTATOR.to_owned(), is_distrusted, failure: failure() })
        };
        for (is_distrusted, to_do) in [(false, "Deployment cluster-manager-registration-webhook"), (true, REPAIR_HUB)] {
            let told = answers(&own(MANAGED_CLUSTER_VALIDATOR), &own(MANAGED_CLUSTER_MUTATOR), &silent(is_distrusted));
            let told = told.expect("something is wrong").message;
            for part in ["MutatingWebhookConfiguration", MANAGED_CLUSTER_MUTATOR, "connection refused", to_do] {
                assert!(told.contains(part), "{part}: {told}");
            }
        }
    }

    #[test]
    fn one_entry_that_lets_pass_is_enough() {
        let mut one = live(FailurePolicy::Fail);
        let entries = one["webhooks"].as_array_mut().expect("entries");
        let approve = entries.iter_mut().find(|entry| entry["name"] == "approve.policy.kubectl-ocm.dev");
        approve.expect("an entry")["failurePolicy"] = "Ignore".into();
        assert_eq!(webhooks::open(&one), ["approve.policy.kubectl-ocm.dev"]);
        one["webhooks"].as_array_mut().expect("entries").retain(|entry| entry["name"] != webhooks::REGISTER);
        assert_eq!(webhooks::open(&one), [webhooks::REGISTER, "approve.policy.kubectl-ocm.dev"]);
    }
}
