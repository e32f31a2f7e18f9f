//! Whether the hub asks the policies: by the webhook configurations, and by a dry run that the webhook always refuses.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, Resource, api::PartialObjectMeta};
use ocm_api::conditions::hub_policy::reasons;
use ocm_api::names::webhooks::{MANAGED_CLUSTER_MUTATOR, MANAGED_CLUSTER_VALIDATOR};
use ocm_core::Failure;
use ocm_core::policy_engine::{self as engine, REPAIR, WEBHOOK, webhooks};
use ocm_kube::admission::{self, Answer, NoAnswer};
use ocm_kube::{Cluster, explain};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long all of a look may take: longer than an API server waits for a webhook.
const ANSWER: Duration = Duration::from_secs(8);
/// What brings those of Open Cluster Management back.
const REPAIR_HUB: &str = "its operator puts it back, which kubectl ocm install hub installs";

/// The reason where nobody could tell.
pub(crate) const UNKNOWN: &str = "CannotTell";

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
    /// What is wrong with the hub's own webhooks, which judge beside ours.
    pub(crate) hub: Option<Problem>,
}

/// A configuration: what was found, or why it could not be read.
type Found<T> = Result<Option<T>, String>;

/// Looks at the hub. Changes nothing: the dry run is of a cluster that nobody can create.
pub(crate) async fn look(cluster: &Cluster) -> Enforcement {
    let answer = async {
        let late = |_| {
            NoAnswer::Other(Failure::other(format!("the hub has not answered within {} seconds", ANSWER.as_secs())))
        };
        tokio::time::timeout(ANSWER, admission::ask(cluster, &engine::probe())).await.map_err(late).flatten()
    };
    let (judges, changes, validates, mutates, answer) = futures::join!(
        whole::<ValidatingWebhookConfiguration>(cluster),
        whole::<MutatingWebhookConfiguration>(cluster),
        there::<ValidatingWebhookConfiguration>(cluster, MANAGED_CLUSTER_VALIDATOR),
        there::<MutatingWebhookConfiguration>(cluster, MANAGED_CLUSTER_MUTATOR),
        answer,
    );
    let hub = [
        missing("ValidatingWebhookConfiguration", MANAGED_CLUSTER_VALIDATOR, &validates, REPAIR_HUB),
        missing("MutatingWebhookConfiguration", MANAGED_CLUSTER_MUTATOR, &mutates, REPAIR_HUB),
    ];
    Enforcement { ours: judged(&judges, &changes, &answer), hub: hub.into_iter().flatten().next() }
}

/// Why requests do not wait for policies.
fn judged(judges: &Found<Value>, changes: &Found<Value>, answer: &Result<Answer, NoAnswer>) -> Option<Problem> {
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
    match answer {
        Ok(Answer::Refused(said)) if engine::is_answer(said) => strange(judges, changes),
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
            Some(Problem { reason: "NoAnswer", message })
        }
        Err(NoAnswer::Webhook { failure, .. } | NoAnswer::Other(failure)) => {
            Some(Problem { reason: UNKNOWN, message: format!("the webhook cannot be tried: {failure}") })
        }
    }
}

/// Entries that trust another authority than the one that was seen to work.
fn strange(judges: &Found<Value>, changes: &Found<Value>) -> Option<Problem> {
    let both = [judges, changes].into_iter().filter_map(|found| found.as_ref().ok()?.as_ref());
    let strangers = webhooks::strangers(both);
    let message = format!(
        "the API server does not trust the webhook where it asks by {}: the caBundle there is another one, and what policies \
         say does not count; {REPAIR}",
        strangers.join(", ")
    );
    (!strangers.is_empty()).then_some(Problem { reason: reasons::NOT_TRUSTED, message })
}

fn missing<T>(kind: &str, name: &str, found: &Found<T>, repair: &str) -> Option<Problem> {
    match found {
        Ok(Some(_)) => None,
        Ok(None) => {
            let message = format!("{kind} {name} is missing, so nothing it is for is judged; {repair}");
            Some(Problem { reason: reasons::CONFIGURATION_MISSING, message })
        }
        Err(why) => Some(Problem { reason: UNKNOWN, message: format!("{kind} {name} cannot be read: {why}") }),
    }
}

/// Our configuration of a kind.
async fn whole<K>(cluster: &Cluster) -> Found<Value>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let api: Api<K> = Api::all(cluster.client.clone());
    within(api.get_opt(WEBHOOK)).await.map(|found| found.map(|found| json!(found)))
}

async fn there<K>(cluster: &Cluster, name: &str) -> Found<PartialObjectMeta<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(cluster.client.clone());
    within(api.get_metadata_opt(name)).await
}

async fn within<T>(request: impl Future<Output = kube::Result<Option<T>>>) -> Found<T> {
    match tokio::time::timeout(ANSWER, request).await {
        Ok(answer) => answer.map_err(|error| explain(&error).to_string()),
        Err(_) => Err(format!("the hub has not answered within {} seconds", ANSWER.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use ocm_core::Reason;
    use ocm_core::admission::{Admission, Objection};
    use ocm_core::policy_engine::{FailurePolicy, PROBE_CODE, PROBE_SENTENCE, Trust, configurations};

    use super::*;

    static CERTIFICATE: LazyLock<String> = LazyLock::new(certificate);

    fn reason(judges: Found<Value>, answer: Result<Answer, NoAnswer>) -> Option<&'static str> {
        judged(&judges, &Ok(Some(planned("Mutating", FailurePolicy::Fail))), &answer).map(|problem| problem.reason)
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
        assert_eq!(reason(fails(), Err(NoAnswer::Other(Failure::new(Reason::Forbidden, "no")))), Some(UNKNOWN));
        let missing = judged(&fails(), &Ok(None), &refused()).expect("what changes clusters is missing");
        assert_eq!(missing.reason, "ConfigurationMissing");
    }

    #[test]
    fn an_entry_that_trusts_somebody_else_is_told_with_what_puts_it_right() {
        let refused = || Ok(Answer::Refused(said(Admission::Webhook(webhooks::REGISTER.to_owned()))));
        let judges = || Ok(Some(live(FailurePolicy::Fail)));
        let strange = |wrong: &str| {
            let plan = configurations(&Trust::Bundle(wrong.to_owned()), FailurePolicy::Fail);
            let changes = plan.objects().find(|object| object.kind().starts_with("Mutating")).expect("it is planned");
            judged(&judges(), &Ok(Some(changes.body().clone())), &refused())
        };
        assert_eq!(strange(&CERTIFICATE), None);
        for wrong in ["", &certificate()] {
            let problem = strange(wrong).expect("it trusts somebody else");
            assert_eq!(problem.reason, "NotTrusted");
            assert!(problem.message.contains("change.policy.kubectl-ocm.dev") && problem.message.contains(REPAIR));
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
