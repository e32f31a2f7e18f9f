//! Whether pods of the hosting cluster reach the cluster that its agents are to manage: seen from one of them, by a Job that is
//! removed afterwards, before anything else is changed.

use std::time::Duration;

use ocm_core::kubeconfig::HubAddress;
use ocm_core::{Event, Failure, Narrator, Plan, Reason};
use ocm_kube::Cluster;
use ocm_kube::access::missing;
use ocm_net::proxy::{Origin, Proxy};
use ocm_net::{ConnectError, Endpoint, VERSIONS, Way, present_by};
use serde_json::Value;

use super::hosted::Guest;
use super::survey::Survey;
use crate::in_cluster::{InCluster, rights};

/// How long the cluster may take to answer.
const ANSWER: Duration = Duration::from_secs(8);
/// A namespace that every cluster has.
const USUAL: &str = "default";

/// Checks it from a pod beside the operator, which is the first to go that way. Where there is no operator yet, a pod in the
/// namespace `default` looks, in which other rules may hold for the network: what that one does not reach is a warning. Where no pod
/// can look, that is said, and what the Klusterlet says later tells it.
///
/// # Errors
/// [`ocm_core::Reason::Unreachable`] or [`ocm_core::Reason::Tls`], as the pod has seen it.
pub(super) async fn check(
    hosting: &Cluster,
    guest: &Guest<'_>,
    survey: &Survey,
    plan: &Plan,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let planned = plan.objects().find(|object| object.kind() == "Deployment");
    let deployment = match (&survey.live.operator, planned) {
        (Some(operator), _) => operator.clone(),
        (None, Some(planned)) => away(planned.body()),
        (None, None) => return Ok(()),
    };
    let (label, server) = (guest.account.cluster.label(), &guest.address.server);
    narrator.tell(Event::now(format!("looking whether pods of {} reach {label}", hosting.label())));
    let jobs = InCluster::default();
    let seen = look(hosting, &guest.address, &deployment, &jobs, narrator).await;
    jobs.remove_all(narrator).await;
    match seen {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => {
            let sentence = format!("pods of {} do not reach {label} at {server}", hosting.label());
            if survey.live.operator.is_none() {
                let failure = failure.context(format!("{sentence}, as one in the namespace {USUAL} sees it"));
                narrator.tell(Event::warning(failure.to_string()));
                return Ok(());
            }
            Err(failure
                .context(format!("{sentence}; nothing was changed"))
                .hint("name a kubeconfig of the managed cluster with an address at which pods of the hosting cluster reach it"))
        }
        Err(why) => {
            narrator.tell(Event::note(format!(
                "whether pods of {} reach {label} at {server} was not checked: {why}",
                hosting.label()
            )));
            Ok(())
        }
    }
}

/// What a pod sees of the cluster; or why no pod looked.
async fn look(
    hosting: &Cluster,
    address: &HubAddress,
    deployment: &Value,
    jobs: &InCluster,
    narrator: &dyn Narrator,
) -> Result<Result<(), Failure>, Failure> {
    let namespace = deployment.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or(USUAL);
    let endpoint = Endpoint::parse(&address.server, None)?;
    if let Some(first) = missing(hosting, &rights(namespace)).await?.first() {
        return Err(Failure::new(Reason::Forbidden, format!("you may not {first}")));
    }
    let place = jobs.like(hosting, namespace, deployment, narrator).await?;
    let proxy = place.proxy_url(&endpoint).map(|url| Proxy::parse(&url, Origin::Variable("HTTPS_PROXY")));
    let proxy = proxy.transpose().map_err(|error| {
        Failure::new(Reason::Kubeconfig, "the proxy in the environment of the operator cannot be used").because(error)
    })?;
    match present_by(&endpoint, &Way::From(place.from, proxy), &VERSIONS, &address.ca, ANSWER).await {
        Err(error @ ConnectError::NoPlace(_)) => Err(error.failure(&endpoint)),
        Err(error) => Ok(Err(error.failure(&endpoint))),
        Ok(presented) => Ok(presented.verify(&address.ca).map_err(|fault| fault.failure(&endpoint))),
    }
}

/// An operator's Deployment as one of the namespace `default`, which has neither its account nor its credentials for images.
fn away(planned: &Value) -> Value {
    let mut deployment = planned.clone();
    deployment["metadata"]["namespace"] = Value::from(USUAL);
    if let Some(pod) = deployment.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut) {
        pod.remove("serviceAccountName");
    }
    deployment
}

#[cfg(test)]
mod tests {
    use ocm_core::probe_job::job;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_away_from_its_operator_needs_nothing_that_is_not_there_yet() {
        let planned = json!({"metadata": {"name": "klusterlet", "namespace": "open-cluster-management"}, "spec": {"template":
            {"spec": {"serviceAccountName": "klusterlet", "containers": [{"name": "klusterlet", "image": "r/operator:1"}]}}}});
        let job = job(&away(&planned), None).unwrap();
        assert_eq!(job["metadata"]["namespace"], "default");
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["image"], "r/operator:1");
        assert_eq!(pod.get("serviceAccountName"), None);
    }
}
