//! Whether pods of the hosting cluster reach the cluster that its agents are to manage: one of them opens a connection there,
//! before anything else is changed, and is removed. What it sees is told and refuses nothing: by a proxy or a sidecar that is given
//! to pods one by one, or a network policy, the operator's own pod may get there.

use ocm_core::grpc::Address;
use ocm_core::probe_job::{connecting, has_other_proxies, proxies};
use ocm_core::{Event, Failure, Narrator, Plan, Reason};
use ocm_kube::Cluster;
use ocm_kube::access::{Right, missing};
use ocm_net::Endpoint;
use ocm_net::proxy::of_environment;
use serde_json::Value;

use super::hosted::Guest;
use super::survey::Survey;
use crate::in_cluster::InCluster;

/// A namespace that every cluster has.
const USUAL: &str = "default";

/// What follows where a pod does not get there, and what helps where the operator does not either.
const MEND: &str = "the operator's own pod may, as the condition ReadyToApply of the Klusterlet will tell; where that is False, \
     look at proxies, sidecars and network policies of that pod, or name a kubeconfig of the managed cluster with an address at \
     which pods of the hosting cluster reach it";

/// Has a pod beside the operator look, which is the first to go that way. Where there is no operator yet, a pod in the namespace
/// `default` looks, in which other rules may hold for the network. What it does not reach is a warning. Where no pod can look,
/// that is said, and what the Klusterlet says later tells it.
pub(super) async fn check(hosting: &Cluster, guest: &Guest<'_>, survey: &Survey, plan: &Plan, narrator: &dyn Narrator) {
    let planned = plan.objects().find(|object| object.kind() == "Deployment");
    let deployment = match (&survey.live.operator, planned) {
        (Some(operator), _) => operator.clone(),
        (None, Some(planned)) => away(planned.body()),
        (None, None) => return,
    };
    let (label, server) = (guest.account.cluster.label(), &guest.address.server);
    let jobs = InCluster::default();
    let seen = look(hosting, server, &deployment, &jobs, narrator).await;
    jobs.remove_all(narrator).await;
    if let Some(event) = told(&hosting.label(), &format!("{label} at {server}"), space_of(&deployment), seen) {
        narrator.tell(event);
    }
}

/// What is told of a look from a pod of `hosts` in a namespace to what is at `there`.
fn told(hosts: &str, there: &str, space: &str, seen: Result<Option<String>, Failure>) -> Option<Event> {
    match seen {
        Ok(None) => None,
        Ok(Some(why)) => Some(Event::warning(format!(
            "a pod of {hosts} in the namespace {space} does not reach {there}: {why}; {MEND}"
        ))),
        Err(why) => Some(Event::note(format!("whether pods of {hosts} reach {there} was not checked: {why}"))),
    }
}

/// The namespace of a Deployment.
fn space_of(deployment: &Value) -> &str {
    deployment.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or(USUAL)
}

/// Why a pod does not reach a server; none: it does.
///
/// # Errors
/// Why no pod looked.
async fn look(
    hosting: &Cluster,
    server: &str,
    deployment: &Value,
    jobs: &InCluster,
    narrator: &dyn Narrator,
) -> Result<Option<String>, Failure> {
    let namespace = space_of(deployment);
    let job = job(deployment, &Endpoint::parse(server, None)?)?;
    let rights = [("create", "batch", "jobs"), ("delete", "batch", "jobs"), ("list", "", "pods")];
    let rights = rights.map(|(verb, group, resource)| Right::new(verb, group, resource).within(namespace));
    if let Some(first) = missing(hosting, &rights).await?.first() {
        return Err(Failure::new(Reason::Forbidden, format!("you may not {first}")));
    }
    narrator.tell(Event::now(format!("having a pod in {namespace} look whether it reaches {server}")));
    jobs.connects(hosting, namespace, &job).await
}

/// The Job whose pod goes the way that the operator goes: by the proxy that its environment names, if it names one.
fn job(deployment: &Value, endpoint: &Endpoint) -> Result<Value, Failure> {
    if has_other_proxies(deployment) {
        return Err(Failure::other("by which proxy the operator goes does not stand in its Deployment"));
    }
    let variables = proxies(deployment);
    let variable = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let job = match of_environment(variable, true, &endpoint.host, endpoint.port) {
        None => connecting(deployment, (&endpoint.host, endpoint.port), None),
        Some(url) => {
            // A password would stand in the Job.
            let proxy = url.strip_prefix("http://").and_then(Address::parse);
            let because = "the operator goes by a proxy that a pod cannot ask without TLS and a password";
            let (host, port) = proxy.ok_or_else(|| Failure::other(because))?;
            let behind = Address { host: endpoint.host.clone(), port: endpoint.port }.to_string();
            connecting(deployment, (&host, port.unwrap_or(80)), Some(&behind))
        }
    };
    job.ok_or_else(|| Failure::other("the operator's Deployment names no image"))
}

/// An operator's Deployment as one of the namespace `default`, which has no account of its name.
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
    use serde_json::json;

    use super::*;

    fn deployment(variables: Value) -> Value {
        let container = json!({"name": "klusterlet", "image": "r/operator:1", "env": variables});
        let pod = json!({"serviceAccountName": "klusterlet", "containers": [container]});
        json!({"metadata": {"name": "klusterlet", "namespace": "operators"}, "spec": {"template": {"spec": pod}}})
    }

    fn endpoint() -> Endpoint {
        Endpoint::parse("https://10.0.0.1:6443", None).unwrap()
    }

    fn dialled(variables: Value) -> Result<Value, String> {
        let job = job(&deployment(variables), &endpoint()).map_err(|failure| failure.to_string())?;
        let command = &job["spec"]["template"]["spec"]["containers"][0]["command"];
        Ok(json!([command[4], command[5], command[6]]))
    }

    #[test]
    fn what_a_pod_does_not_reach_is_a_warning_and_refuses_nothing() {
        let told = |seen| told("context \"hosting\"", "context \"c1\" at https://10.0.0.1:6443", "operators", seen);
        assert_eq!(told(Ok(None)), None);
        let Some(Event::Warning(text)) = told(Ok(Some("Connection refused".to_owned()))) else { panic!("it is told") };
        let seen = "a pod of context \"hosting\" in the namespace operators does not reach context \"c1\" at \
                    https://10.0.0.1:6443: Connection refused; ";
        assert!(text.starts_with(seen) && text.ends_with(MEND), "{text}");
        let no_pod = told(Err(Failure::new(Reason::Forbidden, "you may not create jobs")));
        assert!(
            matches!(no_pod, Some(Event::Note(text)) if text.ends_with("was not checked: you may not create jobs"))
        );
    }

    #[test]
    fn a_pod_away_from_its_operator_needs_nothing_that_is_not_there_yet() {
        let job = job(&away(&deployment(json!([]))), &endpoint()).unwrap();
        assert_eq!(job["metadata"]["namespace"], "default");
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["image"], "r/operator:1");
        assert_eq!(pod.get("serviceAccountName"), None);
        assert!(super::job(&json!({"metadata": {"namespace": "n"}}), &endpoint()).is_err(), "no image is made up");
    }

    #[test]
    fn a_pod_goes_the_way_of_the_operator() {
        let proxy = |url: &str| json!([{"name": "HTTPS_PROXY", "value": url}]);
        assert_eq!(dialled(json!([])).unwrap(), json!(["10.0.0.1", "6443", ""]));
        let behind = |host: &str, port: &str| json!([host, port, "10.0.0.1:6443"]);
        assert_eq!(dialled(proxy("http://proxy:3128/")).unwrap(), behind("proxy", "3128"));
        assert_eq!(dialled(proxy("http://proxy")).unwrap(), behind("proxy", "80"));
        for url in ["http://me:canary@proxy:3128", "https://proxy:3128", "socks5://proxy:1080"] {
            let why = dialled(proxy(url)).unwrap_err();
            assert!(why.contains("goes by a proxy") && !why.contains("canary"), "{why}");
        }
        let why = dialled(json!([{"name": "HTTPS_PROXY", "valueFrom": {"configMapKeyRef": {}}}])).unwrap_err();
        assert!(why.contains("does not stand in its Deployment"), "{why}");
        let mut around = proxy("http://proxy:3128");
        around.as_array_mut().unwrap().push(json!({"name": "NO_PROXY", "value": "10.0.0.1"}));
        assert_eq!(dialled(around).unwrap(), json!(["10.0.0.1", "6443", ""]));
    }
}
