//! A Job from whose pod connections are opened as an agent opens them, or which opens one by itself: with the agent's image, on
//! nodes that it may run on, under the same network policies, and with what the cluster gives its pods for the way to the hub.

use serde_json::{Map, Value, json};

use crate::order::Collect as _;

/// The container of the Job's pod.
pub const CONTAINER: &str = "look";

/// What the names of such Jobs begin with.
pub const NAME_PREFIX: &str = "kubectl-ocm-look-";

/// How long such a pod lives at most: seconds. Nobody may be left to remove it.
pub const LONGEST: u32 = 120;

/// How long a Job is kept that has ended: seconds.
const KEPT: u32 = 60;

/// What of a pod of the agent decides where it runs and what it reaches.
const SHARED: [&str; 14] = [
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "hostNetwork",
    "imagePullSecrets",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccountName",
    "tolerations",
    "overhead",
];

/// The variables that name proxies.
pub const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"];

/// Which of an agent's variables name proxies; those that come from elsewhere than the pod itself are not known.
pub fn proxies(deployment: &Value) -> Vec<(String, String)> {
    let variables = container(deployment).and_then(|container| container["env"].as_array()).into_iter().flatten();
    let pair = |variable: &Value| Some((variable["name"].as_str()?.to_owned(), variable["value"].as_str()?.to_owned()));
    variables.filter_map(pair).filter(|(name, _)| PROXIES.contains(&name.as_str())).collect()
}

/// Whether variables that name proxies may come from elsewhere than the pod itself.
pub fn has_other_proxies(deployment: &Value) -> bool {
    let Some(container) = container(deployment) else { return false };
    let is_proxy = |variable: &Value| variable["name"].as_str().is_some_and(|name| PROXIES.contains(&name));
    let mut variables = container["env"].as_array().into_iter().flatten();
    container["envFrom"].as_array().is_some_and(|all| !all.is_empty())
        || variables.any(|variable| variable.get("valueFrom").is_some() && is_proxy(variable))
}

fn container(deployment: &Value) -> Option<&Value> {
    deployment.pointer("/spec/template/spec/containers/0")
}

/// The Job for an agent with this Deployment; with another image where one is given. None: the Deployment names no image.
///
/// It mounts nothing, holds no credential, and its pod does nothing by itself.
pub fn job(deployment: &Value, image: Option<&str>) -> Option<Value> {
    let container = container(deployment)?;
    let image = image.or_else(|| container["image"].as_str())?;
    let pod = deployment.pointer("/spec/template/spec")?;
    let mut spec: Map<String, Value> =
        SHARED.iter().filter_map(|field| Some(((*field).to_owned(), pod.get(*field)?.clone()))).collect_object();
    if let Some(affinity) = pod.pointer("/affinity/nodeAffinity") {
        spec.insert("affinity".to_owned(), json!({ "nodeAffinity": affinity }));
    }
    let mut look = json!({
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["bash", "-c", format!("exec sleep {LONGEST}")],
        "env": [{ "name": "PATH", "value": "/usr/bin:/bin" }],
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "privileged": false,
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
    });
    // A quota may want them.
    if let Some(resources) = container.get("resources") {
        look["resources"] = resources.clone();
    }
    spec.extend(
        [
            ("automountServiceAccountToken", json!(false)),
            ("containers", json!([look])),
            ("restartPolicy", json!("Never")),
            ("terminationGracePeriodSeconds", json!(0)),
        ]
        .map(|(field, value)| (field.to_owned(), value)),
    );
    // Network policies select pods by their labels. That of the ReplicaSet would make it a pod of the agent.
    let labels = deployment.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    let mut labels = labels.cloned().unwrap_or_default();
    labels.remove("pod-template-hash");
    let mut metadata = json!({ "generateName": NAME_PREFIX });
    metadata["labels"] = json!({ "app.kubernetes.io/managed-by": "kubectl-ocm" });
    metadata["namespace"] = deployment.pointer("/metadata/namespace")?.clone();
    Some(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "activeDeadlineSeconds": LONGEST,
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": KEPT,
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    }))
}

/// With this code ends a container that has opened no connection.
pub const UNREACHED: i32 = 3;

/// Opens a connection to a host and a port, the first two arguments; with a third one, the address behind a proxy, it asks that
/// proxy for a way there. It tries for some seconds: the network of a pod may be ready later than its containers.
const CONNECT: &str = r#"until exec 3<>"/dev/tcp/$1/$2"; do [ "$SECONDS" -lt 5 ] || exit 3; sleep 1; done
[ -n "$3" ] || exit 0
printf 'CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' "$3" "$3" >&3
read -r answer <&3
case $answer in "HTTP/1."?" 2"*) exit 0 ;; esac
echo "the proxy answers: ${answer%$'\r'}"
exit 3"#;

/// The Job for an agent with this Deployment whose pod opens a connection by itself, and ends well where there is one. `behind` is
/// the address to which the proxy leads that is dialled; none: it is no proxy. None: the Deployment names no image.
///
/// What it said last stands in the state of its container.
pub fn connecting(deployment: &Value, (host, port): (&str, u16), behind: Option<&str>) -> Option<Value> {
    let mut job = job(deployment, None)?;
    let look = &mut job["spec"]["template"]["spec"]["containers"][0];
    let behind = behind.unwrap_or_default();
    look["command"] = json!(["bash", "-c", CONNECT, "look", host, port.to_string(), behind]);
    look["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    Some(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        json!({"metadata": {"name": "klusterlet-registration-agent", "namespace": "agents"}, "spec": {
            "template": {
                "metadata": {"labels": {"app": "klusterlet-registration-agent", "pod-template-hash": "1"}},
                "spec": {
                    "serviceAccountName": "agent-sa", "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["hub"]}],
                    "tolerations": [{"operator": "Exists"}], "imagePullSecrets": [{"name": "pull"}],
                    "affinity": {"nodeAffinity": {"n": 1}, "podAntiAffinity": {"p": 1}},
                    "volumes": [{"name": "canary", "secret": {"secretName": "canary"}}],
                    "containers": [{"name": "agent", "image": "r/registration:1", "args": ["canary"],
                        "resources": {"requests": {"cpu": "2m"}}, "volumeMounts": [{"name": "canary"}],
                        "env": [{"name": "HTTPS_PROXY", "value": "http://p:3128"}, {"name": "OTHER", "value": "canary"},
                            {"name": "NO_PROXY", "valueFrom": {"fieldRef": {}}}]}]}}}})
    }

    #[test]
    fn the_pod_is_where_the_agent_is_and_has_nothing_of_what_it_holds() {
        let job = job(&deployment(), None).unwrap();
        let text = job.to_string();
        assert!(!text.contains("canary") && !text.contains("pod-template-hash") && !text.contains("podAnti"), "{text}");
        let pod = &job["spec"]["template"]["spec"];
        for field in ["serviceAccountName", "hostAliases", "tolerations", "imagePullSecrets"] {
            assert_eq!(pod[field], deployment()["spec"]["template"]["spec"][field], "{field}");
        }
        assert_eq!(pod["affinity"], json!({"nodeAffinity": {"n": 1}}));
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["containers"][0]["image"], "r/registration:1");
        assert_eq!(pod["containers"][0]["resources"], json!({"requests": {"cpu": "2m"}}));
        assert_eq!(job["metadata"]["namespace"], "agents");
        assert_eq!(job["spec"]["template"]["metadata"]["labels"], json!({"app": "klusterlet-registration-agent"}));
    }

    #[test]
    fn another_image_is_taken_where_one_is_given_and_none_is_made_up() {
        let job_of = |deployment: &Value, image| job(deployment, image);
        let other = job_of(&deployment(), Some("r/tools:2")).unwrap();
        assert_eq!(other["spec"]["template"]["spec"]["containers"][0]["image"], "r/tools:2");
        assert_eq!(job_of(&json!({"metadata": {"namespace": "n"}, "spec": {"template": {"spec": {}}}}), None), None);
    }

    #[test]
    fn a_pod_that_connects_by_itself_holds_no_more_than_one_that_others_connect_through() {
        let command = |job: &Value| job["spec"]["template"]["spec"]["containers"][0]["command"].clone();
        let job = connecting(&deployment(), ("10.0.0.1", 6443), None).unwrap();
        assert_eq!(command(&job), json!(["bash", "-c", CONNECT, "look", "10.0.0.1", "6443", ""]));
        assert!(!job.to_string().contains("canary") && !command(&job).to_string().contains("exec sleep"), "{job}");
        let behind = connecting(&deployment(), ("proxy", 3128), Some("10.0.0.1:6443")).unwrap();
        assert_eq!(command(&behind)[6], "10.0.0.1:6443");
        assert_eq!(behind["spec"]["template"]["spec"]["containers"][0]["securityContext"]["runAsNonRoot"], true);
        assert!(CONNECT.contains(&format!("exit {UNREACHED}")));
    }

    #[test]
    fn proxies_are_those_that_stand_in_the_pod_itself() {
        assert_eq!(proxies(&deployment()), [("HTTPS_PROXY".to_owned(), "http://p:3128".to_owned())]);
        let with = |members: Value| {
            let mut deployment = deployment();
            let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
            container["env"] = members["env"].clone();
            container["envFrom"] = members["envFrom"].clone();
            has_other_proxies(&deployment)
        };
        assert!(has_other_proxies(&deployment()), "NO_PROXY is from elsewhere");
        assert!(with(json!({"envFrom": [{"secretRef": {"name": "s"}}]})));
        assert!(!with(
            json!({"env": [{"name": "POD", "valueFrom": {"fieldRef": {}}}, {"name": "NO_PROXY", "value": ".svc"}]})
        ));
    }
}
