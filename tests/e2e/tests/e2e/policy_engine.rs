//! The policy engine in pods of a real hub: what is installed, what is refused with and without its pods, and what is left
//! when it is taken away.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use control_plane::Spec;
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, Hub, Who, managed_cluster, upstream};
use e2e_tests::controller_support::registration;
use e2e_tests::engine_support::{self, IMAGE, PODS, approve_auto, comes_back, kill_processes_of, pod_names, pods};
use e2e_tests::manifests::apply;
use e2e_tests::refusals::{Call, Sender};
use e2e_tests::roles::{user_with, users_without_one_right};
use e2e_tests::shared_hub::{self, Shared};
use e2e_tests::trouble_support::read;
use e2e_tests::webhook_support::{CHANGES, policy, stand_in};
use e2e_tests::{Ends, Said, cert_manager, kubectl_ocm, run, series, until_within};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use ocm_api::ManagedCluster;
use ocm_api::names::bootstrap;
use ocm_api::names::webhooks::{MANAGED_CLUSTER_MUTATOR, MANAGED_CLUSTER_VALIDATOR};
use ocm_core::policy_engine::webhooks;
use serde_json::{Value, json};

/// Hubs whose nodes have the image of the engine.
static ENGINES: Shared<Hub> = Shared::new(|| engine_support::hub("engine"));

/// Kinds of which the engine has objects.
const KINDS: &str = "namespaces,customresourcedefinitions,serviceaccounts,secrets,services,deployments,cronjobs,networkpolicies,\
                     poddisruptionbudgets,priorityclasses,clusterroles,clusterrolebindings,roles,rolebindings,\
                     validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,\
                     validatingadmissionpolicybindings";

fn command(kubeconfig: &Path, verb: &str, flags: &[&str]) -> Command {
    let mut command = kubectl_ocm(verb, kubeconfig);
    command.arg("policy-engine").args(flags).stdin(Stdio::null());
    command
}

#[track_caller]
fn install(kubeconfig: &Path, flags: &[&str], code: i32) -> Said {
    let said = run(command(kubeconfig, "install", flags).arg("--timeout=180s"));
    assert_eq!(said.code, Some(code), "{flags:?}: {}\n{}", said.stdout, said.stderr);
    for secret in ["PRIVATE KEY", "LS0tLS1CRUdJTiBQUklW"] {
        assert!(!said.stdout.contains(secret) && !said.stderr.contains(secret), "{flags:?}: a key is told");
    }
    said
}

fn keeper(hub: &Hub) -> PathBuf {
    user_with(&hub.cluster, "keeper", &["install-policy-engine.yaml", "install-baseline.yaml"])
}

fn list(hub: &Hub, words: &[&str]) -> Vec<Value> {
    let text = hub.cluster.kubectl(&[&["get", "--output=json"], words].concat()).expect("they are listed");
    let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
    list["items"].as_array().cloned().unwrap_or_default()
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Every object that carries our label, with its resource version; those whose status others write without it.
fn objects(hub: &Hub) -> BTreeMap<String, String> {
    let mut kinds = KINDS.to_owned();
    if hub.cluster.kubectl(&["get", "hubpolicies"]).is_ok() {
        kinds += ",hubpolicies";
    }
    let ours = list(hub, &[&kinds, "--all-namespaces", "--selector=app.kubernetes.io/part-of=kubectl-ocm"]);
    let of = |object: &Value| {
        let name = format!(
            "{} {}/{}",
            text(object, "/kind"),
            text(object, "/metadata/namespace"),
            text(object, "/metadata/name")
        );
        let version = match &*text(object, "/kind") {
            "Deployment" | "CronJob" | "PodDisruptionBudget" | "HubPolicy" => {
                object["metadata"]["generation"].to_string()
            }
            _ => text(object, "/metadata/resourceVersion"),
        };
        (name, version)
    };
    ours.iter().map(of).collect()
}

/// The failure policies of all entries.
fn policies(hub: &Hub) -> BTreeMap<String, String> {
    let all = list(hub, &["validatingwebhookconfigurations,mutatingwebhookconfigurations"]);
    let entries = all.iter().filter(|one| text(one, "/metadata/name") == "ocm-policy-webhook");
    let entries = entries.flat_map(|one| one["webhooks"].as_array().cloned().unwrap_or_default());
    let word = |name: String| name.split('.').next().unwrap_or_default().to_owned();
    entries.map(|entry| (word(text(&entry, "/name")), text(&entry, "/failurePolicy"))).collect()
}

fn closed() -> BTreeMap<String, String> {
    let fail = ["register", "accept", "self-edit", "approve"].map(|name| (name, "Fail"));
    let ignore = ["update", "delete", "request", "work", "change", "change-accepted", "change-updated"]
        .map(|name| (name, "Ignore"));
    fail.into_iter().chain(ignore).map(|(name, word)| (name.to_owned(), word.to_owned())).collect()
}

fn open() -> BTreeMap<String, String> {
    closed().into_keys().map(|name| (name, "Ignore".to_owned())).collect()
}

/// What an API request came to.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Passed,
    /// By a policy, or by an entry without an answer; with what was said.
    Refused(String),
}

impl Answer {
    fn says(&self, words: &str) -> bool {
        matches!(self, Self::Refused(said) if said.contains(words))
    }

    /// Whether the entry was not answered.
    fn waits_for(&self, entry: &str) -> bool {
        self.says(&format!("failed calling webhook \"{entry}.policy.kubectl-ocm.dev\""))
    }
}

fn answer<T>(result: Result<T, kube::Error>) -> Answer {
    match result {
        Ok(_) => Answer::Passed,
        Err(kube::Error::Api(status)) => Answer::Refused(status.message.clone()),
        Err(error) => panic!("no answer: {error}"),
    }
}

/// Creates a cluster, in a dry run.
fn create(hub: &Hub, who: Who, change: impl FnOnce(&mut ManagedCluster)) -> Answer {
    let api: Api<ManagedCluster> = Api::all(hub.client(who));
    let mut cluster = managed_cluster("new");
    change(&mut cluster);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    answer(hub.wait(api.create(&dry, &cluster)))
}

/// Changes a cluster, in a dry run.
fn change(hub: &Hub, who: Who, name: &str, patch: Value) -> Answer {
    let api: Api<ManagedCluster> = Api::all(hub.client(who));
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    answer(hub.wait(api.patch(name, &dry, &Patch::Merge(patch))))
}

/// Runs kubectl as an administrator.
fn kubectl(hub: &Hub, words: &[&str]) -> Answer {
    let said = run(hub.cluster.kubectl_command().args(words));
    if said.code == Some(0) { Answer::Passed } else { Answer::Refused(said.stderr) }
}

/// What `troubleshoot` says of a cluster, and what it finds.
fn looked(hub: &Hub, name: &str) -> (Value, Vec<String>) {
    read(&run(kubectl_ocm("troubleshoot", hub.cluster.kubeconfig()).args([name, "--output=json"])))
}

/// Takes all pods away, and keeps them away.
fn kill_pods(hub: &Hub) {
    let both = ["ocm-policy-webhook", "ocm-policy-controller"];
    kubectl(hub, &[&["scale", "deployment"], &both[..], &["--namespace=ocm-policy-engine", "--replicas=0"]].concat());
    kubectl(hub, &["delete", "pods", "--all", "--namespace=ocm-policy-engine", "--grace-period=0", "--force"]);
    until_within(PODS, "no pod is left", String::new, || pods(hub).is_empty());
}

#[test]
fn registrations_are_judged_by_pods_and_wait_for_them_and_nothing_else_does() {
    let hub = ENGINES.get();
    let keeper = keeper(&hub);
    let before = objects(&hub);

    // Looking changes nothing.
    for flags in [["--dry-run"], ["--dry-run=server"]] {
        let said = install(&keeper, &[&["--image", IMAGE], &flags[..]].concat(), 0);
        assert!(said.stdout.contains("deployment.apps/ocm-policy-webhook created ("), "{said:?}");
    }
    let said = install(&keeper, &["--image", IMAGE, "--diff"], 3);
    assert!(said.stdout.contains("+kind: Secret") && said.stdout.contains("failurePolicy: Fail"), "{said:?}");
    assert_eq!(objects(&hub), before);
    let said = install(&keeper, &["--wait"], 2);
    assert!(said.stderr.contains("--image REGISTRY/ocm-policy-webhook:VERSION"), "{said:?}");
    assert_eq!(objects(&hub), before);

    // Without waiting, nobody waits for the webhook.
    install(&keeper, &["--image", IMAGE], 0);
    assert_eq!(policies(&hub), open());
    let said = install(&keeper, &["--wait"], 0);
    assert!(said.stderr.contains("the API server asks the webhook"), "{said:?}");
    assert!(
        said.stdout
            .contains("validatingwebhookconfiguration.admissionregistration.k8s.io/ocm-policy-webhook configured")
    );
    assert_eq!(policies(&hub), closed());
    assert_eq!(pods(&hub).len(), 4, "two of the webhook, and two of the controller");
    let namespace = e2e_tests::object(&hub.cluster, &["namespace", "ocm-policy-engine"]);
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");

    // What renews certificates runs in a pod with its own rights, and finds everything as it should be.
    let words = ["create", "job", "now", "--from=cronjob/ocm-policy-certificates", "--namespace=ocm-policy-engine"];
    assert_eq!(kubectl(&hub, &words), Answer::Passed);
    let words = ["wait", "job/now", "--for=condition=Complete", "--timeout=90s", "--namespace=ocm-policy-engine"];
    assert_eq!(kubectl(&hub, &words), Answer::Passed);
    let said = hub.cluster.kubectl(&["logs", "job/now", "--namespace=ocm-policy-engine"]).expect("it said something");
    assert!(said.contains("every certificate has more than a third of its life left"), "{said}");
    assert_eq!(kubectl(&hub, &["delete", "job", "now", "--namespace=ocm-policy-engine"]), Answer::Passed);
    until_within(PODS, "its pod is gone", String::new, || pods(&hub).len() == 4);

    // Again and again the same.
    let installed = objects(&hub);
    let said = install(&keeper, &["--wait"], 0);
    assert!(said.stdout.lines().all(|line| line.ends_with(" unchanged")), "{said:?}");
    assert_eq!(install(&keeper, &["--diff"], 0).stdout, "");
    assert_eq!(objects(&hub), installed);

    // Agents and people of a hub, who hold the rights, so that nothing but admission refuses anything.
    hub.grant(&json!([
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters", "managedclusters/status"], "verbs": ["*"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["patch"]},
        {"apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks", "manifestworks/status"], "verbs": ["*"]},
    ]));
    // What a policy approves joins without a person, judged by the webhook's pods and written by the controller's.
    approve_auto(&hub);
    let approved = hub.join("auto-1");
    until_within(PODS, "auto-1 joins", String::new, || hub.accepts("auto-1"));
    assert!(hub.is("Approved", &approved));
    let (first, second) = (hub.join("c1"), hub.join("c2"));
    until_within(PODS, "c1 waits", String::new, || {
        registration(&hub, "c1")["waitingFor"].as_str().is_some_and(|waits| !waits.is_empty())
    });
    assert!(!hub.accepts("c1") && !hub.is("Approved", &first));
    let kubelets = kubelet_request(&hub, "kubelet-1");
    let labelled = |cluster: &mut ManagedCluster| {
        cluster.metadata.labels = Some([("open-cluster-management.io/x".to_owned(), "y".to_owned())].into());
    };
    let annotate = json!({"metadata": {"annotations": {"agent.open-cluster-management.io/x": "y"}}});
    let taint = json!({"spec": {"taints": [{"key": "a", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]}});
    let accept = json!({"spec": {"hubAcceptsClient": true}});

    // With its pods: what is right passes, and what is wrong is refused with the sentence of a policy, or of the baseline.
    assert_eq!(create(&hub, Who::Bootstrap, |_| ()), Answer::Passed);
    let said = create(&hub, Who::Bootstrap, labelled);
    assert!(said.says("(M2 Labels)"), "{said:?}");
    // Only the webhook can read what is in a request: another cluster's name.
    let wrong = Ask { label: Some("c3".to_owned()), ..Ask::agent("c4") };
    let said = answer(hub.try_ask(&wrong));
    let ours = "admission webhook \"request.policy.kubectl-ocm.dev\" denied the request: denied by policies csr-hygiene, name-claim";
    assert!(said.says(ours) && said.says("(ClusterLabel)"), "{said:?}");
    logs(&hub, &wrong);
    assert_eq!(change(&hub, Who::AgentOfC2, "c2", annotate.clone()), Answer::Passed);
    assert_eq!(change(&hub, Who::Admin, "c2", taint.clone()), Answer::Passed);
    assert_eq!(kubectl(&hub, &["certificate", "approve", &first]), Answer::Passed);
    assert!(hub.is("Approved", &first));
    assert_eq!(change(&hub, Who::Admin, "c1", accept.clone()), Answer::Passed);

    mended(&hub);
    killed(&hub);
    serve_works(&hub);

    // Without them: what registers waits, and names the entry.
    kill_pods(&hub);
    // Pods that are gone answer what comes over connections that they have, until they end.
    until_within(PODS, "nobody answers", String::new, || create(&hub, Who::Bootstrap, |_| ()).waits_for("register"));
    let begun = Instant::now();
    let said = change(&hub, Who::Admin, "c1", accept.clone());
    assert!(said.waits_for("accept"), "{said:?}");
    assert!(create(&hub, Who::Bootstrap, |_| ()).waits_for("register"));
    assert!(begun.elapsed() < 2 * SAYS_SO, "{:?}", begun.elapsed());
    let said = change(&hub, Who::AgentOfC2, "c2", annotate.clone());
    assert!(said.waits_for("self-edit"), "{said:?}");
    let said = kubectl(&hub, &["certificate", "approve", &second]);
    assert!(said.waits_for("approve"), "{said:?}");
    assert!(!hub.is("Approved", &second));
    // It is the one cause of what c1 waits for.
    let (report, found) = looked(&hub, "c1");
    assert_eq!(found, ["OCM8101"], "{report:#}");
    // Everything else goes on, quickly.
    let begun = Instant::now();
    assert_eq!(answer(hub.try_ask(&Ask::agent("c5"))), Answer::Passed);
    assert_eq!(change(&hub, Who::Admin, "c2", taint), Answer::Passed);
    hub.set_conditions("c2", &[("ManagedClusterConditionAvailable", "True")]);
    assert_eq!(kubectl(&hub, &["certificate", "deny", &second]), Answer::Passed);
    assert_eq!(kubectl(&hub, &["certificate", "approve", &kubelets]), Answer::Passed);
    kubelet_request(&hub, "kubelet-2");
    for words in [&["delete", "managedcluster", "c2"][..], &["create", "configmap", "a"], &["delete", "configmap", "a"]]
    {
        assert_eq!(kubectl(&hub, words), Answer::Passed, "{words:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    goes_on(&hub);

    // One command ends it, and another one brings it back.
    emergency(&hub);
    until_within(PODS, "registrations wait no more", String::new, || {
        create(&hub, Who::Bootstrap, |_| ()) == Answer::Passed
    });
    assert!(create(&hub, Who::Bootstrap, labelled).says("(M2 Labels)"), "the baseline stays");
    interrupted(&hub, &keeper);
    let said = install(&keeper, &["--wait", "--replicas=1"], 0);
    assert!(said.stderr.contains("by ben: incident 816") && mark(&hub).is_empty(), "{said:?}");
    let (report, found) = looked(&hub, "c1");
    assert!(!found.iter().any(|id| id == "OCM8101"), "{report:#}");
    assert_eq!(
        (policies(&hub), pods(&hub).iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).count()),
        (closed(), 2)
    );
    assert!(answer(hub.try_ask(&wrong)).says(ours));
}

/// How soon a registration that waits is told so, where nobody listens for the webhook.
const SAYS_SO: Duration = Duration::from_secs(3);

/// Kills every process of all pods at once. They come back without a person, and so do joins.
fn killed(hub: &Hub) {
    let before = pod_names(hub);
    kill_processes_of(&before);
    comes_back(hub, 1, SAYS_SO);
    assert_eq!(policies(hub), closed(), "registrations wait for an answer");
    let approved = hub.join("auto-2");
    until_within(PODS, "auto-2 joins", String::new, || hub.accepts("auto-2"));
    assert!(hub.is("Approved", &approved));
    assert_eq!(pod_names(hub), before, "nobody has made other pods");
}

/// The path of the works of `c2`.
const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/c2/manifestworks";

/// What controllers that are not here make for `c2`, and a work.
fn serve_works(hub: &Hub) {
    let definition = upstream("work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml");
    assert_eq!(kubectl(hub, &["apply", "--filename", definition.to_str().expect("text")]), Answer::Passed);
    let labels = json!({"open-cluster-management.io/cluster-name": "c2"});
    let finalizers = ["cluster.open-cluster-management.io/manifest-work-cleanup"];
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c2", "labels": labels}}),
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
               "metadata": {"name": "managed-cluster-lease", "namespace": "c2"}}),
        json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
               "metadata": {"name": "w1", "namespace": "c2", "finalizers": finalizers},
               "spec": {"workload": {"manifests": []}}}),
    ] {
        apply(&hub.cluster, &object);
    }
}

/// What else goes on while no pod of the webhook is left: agents report, works come and go, and a node joins.
fn goes_on(hub: &Hub) {
    let begun = Instant::now();
    let agent = Sender::new(hub.client(Who::AgentOfC2));
    let renewed = json!({"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}});
    let condition = json!({"type": "Applied", "status": "True", "reason": "Test", "message": "",
                           "lastTransitionTime": "2026-01-01T00:00:00Z"});
    for call in [
        Call::patch("/apis/coordination.k8s.io/v1/namespaces/c2/leases", "managed-cluster-lease", renewed),
        Call::patch(WORKS, "w1/status", json!({"status": {"conditions": [condition]}})),
        Call::patch(WORKS, "w1", json!({"metadata": {"finalizers": []}})),
    ] {
        assert_eq!(answer(hub.wait(agent.send(&call, false))), Answer::Passed, "{call:?}");
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    let manifests = json!({"spec": {"workload": {"manifests": [namespace]}}}).to_string();
    for words in [
        &["patch", "manifestwork", "w1", "--namespace=c2", "--type=merge", "--patch", &manifests][..],
        &["delete", "manifestwork", "w1", "--namespace=c2"],
    ] {
        assert_eq!(kubectl(hub, words), Answer::Passed, "{words:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());

    // A kubelet asks with a bootstrap token, the cluster's own controller approves that, and a node comes.
    let fixture = Fixture::empty().common_name("system:node:n2").organization("system:nodes");
    let mut ask = Ask::with("c1", &fixture).by(Who::Token);
    (ask.label, ask.signer) = (None, "kubernetes.io/kube-apiserver-client-kubelet".to_owned());
    ask.usages = vec!["digital signature".to_owned(), "client auth".to_owned()];
    let request = hub.ask(&ask);
    until_within(PODS, "the kubelet has its certificate", String::new, || {
        hub.request(&request).status.is_some_and(|status| status.certificate.is_some())
    });
    let kubelet = hub.cluster.user_kubeconfig("system:node:n2", &["system:nodes"]).expect("a user");
    let file = hub.cluster.dir().expect("a folder").join("node.json");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}, "spec": {"unschedulable": true}});
    std::fs::write(&file, node.to_string()).expect("written");
    let mut command = hub.cluster.kubectl_command();
    let said = run(command.args(["create", "--kubeconfig"]).arg(&kubelet).arg("--filename").arg(&file));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(kubectl(hub, &["delete", "node", "n2"]), Answer::Passed);
}

/// Reads what pods have logged, and what they log meanwhile, with the documented rights: one of them less is too few.
fn logs(hub: &Hub, wrong: &Ask) {
    let reader = user_with(&hub.cluster, "log-reader", &["policy-logs.yaml"]);
    let words = |words: &[&str]| run(kubectl_ocm("policy", &reader).arg("logs").args(words));
    let read = |flags: &[&str]| {
        let said = words(flags);
        assert_eq!(said.code, Some(0), "{flags:?}: {said:?}");
        said.stdout
    };
    let lines =
        |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect() };
    let all = lines(&read(&["-o", "json"]));
    let times: Vec<&str> = all.iter().map(|line| line["time"].as_str().expect("a time")).collect();
    assert!(times.is_sorted() && times.len() > 5, "{times:?}");
    let refused = lines(&read(&["csr-hygiene", "--verdict", "deny", "-o", "json"]));
    assert!(refused.len() == 1 && refused[0]["stage"] == "validating" && refused[0]["refused"] == true, "{refused:?}");
    let table = read(&["csr-hygiene", "--verdict", "deny"]);
    let heading: Vec<&str> = table.lines().next().expect("a heading").split_whitespace().collect();
    assert_eq!(heading, ["TIME", "OPERATION", "CLUSTER", "VERDICT", "REQUESTER", "WHY"]);
    assert!(table.contains("denied by policies csr-hygiene, name-claim"), "{table}");
    let joined = lines(&read(&["approves", "--verdict", "allow", "--managed-cluster", "auto-1", "-o", "json"]));
    assert!(joined.iter().any(|line| line["operation"] == "join" && line["outcome"] == "Accepted"), "{joined:?}");
    assert!(joined.iter().all(|line| line["cluster"] == "auto-1"), "{joined:?}");
    assert_eq!(read(&["nobody"]), "");
    // Nobody asks meanwhile for what this policy denies.
    assert_eq!(read(&["csr-hygiene", "--verdict", "deny", "--since", "0s"]), "");
    let said = words(&["--since", "yesterday"]);
    assert!(said.code == Some(2) && said.stderr.contains("--since"), "{said:?}");

    for right in ["list pods", "get pods/log"] {
        let (verb, resource) = right.split_once(' ').expect("two words");
        let other = if verb == "list" { ("get", "pods/log") } else { ("list", "pods") };
        let user = format!("without-{verb}");
        let flags =
            ["--namespace=ocm-policy-engine", &format!("--verb={}", other.0), &format!("--resource={}", other.1)];
        hub.cluster.kubectl(&[&["create", "role", &user][..], &flags].concat()).expect("a role");
        let flags = ["--namespace=ocm-policy-engine", &format!("--role={user}"), &format!("--user={user}")];
        hub.cluster.kubectl(&[&["create", "rolebinding", &user][..], &flags].concat()).expect("a binding");
        let said = run(kubectl_ocm("policy", hub.cluster.kubeconfig()).args(["logs", "--as", &user]));
        assert!(said.code == Some(1) && said.stderr.contains(resource), "without {right}: {said:?}");
    }

    // Whoever follows hears what is decided meanwhile.
    let mut command = kubectl_ocm("policy", &reader);
    command.args(["logs", "name-claim", "--verdict=deny", "--follow", "--since=0s", "-o", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut heard = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || heard.by_ref().map_while(Result::ok).try_for_each(|line| send.send(line)));
    until_within(PODS, "a decision is heard", String::new, || {
        assert!(answer(hub.try_ask(wrong)).says("(ClusterLabel)"));
        receive.recv_timeout(Duration::from_secs(1)).is_ok_and(|line| line.contains("ClusterLabel"))
    });
    child.kill().expect("it ends");
    child.wait().expect("it ended");
}

/// What the controller says of whether the API server asks a policy.
fn asked(hub: &Hub) -> String {
    let path = "--output=jsonpath={.status.conditions[?(@.type==\"Enforcing\")].reason}";
    hub.cluster.kubectl(&["get", "hubpolicy", "csr-hygiene", path]).unwrap_or_default()
}

/// What `troubleshoot --fix` says of its changes.
fn fix(mender: &Path, flags: &[&str]) -> (Value, Said) {
    let said = run(kubectl_ocm("troubleshoot", mender).args(["--fix=OCM8103", "--output=json"]).args(flags));
    let value: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    (value["fix"].clone(), said)
}

/// Has the API server ask policies again that it was kept from asking, with the documented rights.
fn mended(hub: &Hub) {
    // Those of Open Cluster Management have no pods here: ours answer in their place, so that nothing else is wrong.
    let authority = base64::engine::general_purpose::STANDARD.encode(&bundles(hub)[0]);
    let service = json!({"namespace": "ocm-policy-engine", "name": "ocm-policy-webhook", "path": CHANGES, "port": 443});
    stand_in(&hub.cluster, &json!({"service": service, "caBundle": authority}));
    let mender = user_with(&hub.cluster, "mender", &["troubleshoot-hub.yaml", "troubleshoot-fix-hub.yaml"]);
    until_within(PODS, "all is well", || asked(hub), || asked(hub) == "Answered");
    let what = ["validatingwebhookconfiguration", "ocm-policy-webhook"];
    let forget = || assert_eq!(kubectl(hub, &[&["delete"], what.as_slice()].concat()), Answer::Passed);
    // Another authority than that of what is served.
    let distrust = || {
        let foreign = rcgen::generate_simple_self_signed(vec!["foreign".to_owned()]).expect("a certificate");
        let foreign = base64::engine::general_purpose::STANDARD.encode(foreign.cert.pem());
        let entries = e2e_tests::object(&hub.cluster, &what)["webhooks"].as_array().map_or(0, Vec::len);
        let path = |index: usize| format!("/webhooks/{index}/clientConfig/caBundle");
        let patch = (0..entries).map(|index| json!({"op": "replace", "path": path(index), "value": foreign}));
        let patch = format!("--patch={}", Value::from_iter(patch));
        assert_eq!(kubectl(hub, &[&["patch", "--type=json", &patch], what.as_slice()].concat()), Answer::Passed);
    };
    let faults: [(&str, &dyn Fn()); 2] = [("ConfigurationMissing", &forget), ("NotTrusted", &distrust)];
    for (reason, fault) in faults {
        fault();
        until_within(PODS, reason, || asked(hub), || asked(hub) == reason);
        let before = (policies(hub), bundles(hub));
        for dry_run in ["--dry-run=client", "--dry-run=server"] {
            let (fixed, said) = fix(&mender, &[dry_run]);
            assert!(fixed["changed"] == false && fixed["changes"][0]["does"].is_string(), "{reason}: {said:?}");
            assert_eq!((policies(hub), bundles(hub)), before, "{reason} {dry_run}");
        }
        // Whoever has taken policies out of force puts them back.
        let mark = |mark: &str| kubectl(hub, &["annotate", "namespace", "ocm-policy-engine", "--overwrite", mark]);
        assert_eq!(mark("policy.kubectl-ocm.dev/emergency=incident"), Answer::Passed);
        let (fixed, said) = fix(&mender, &["--yes"]);
        assert!(text(&fixed, "/left/0/why").contains("taken out of force incident"), "{reason}: {said:?}");
        assert_eq!((policies(hub), bundles(hub)), before, "{reason}");
        assert_eq!(mark("policy.kubectl-ocm.dev/emergency-"), Answer::Passed);
        let (fixed, said) = fix(&mender, &["--yes"]);
        assert_eq!(fixed["mended"], json!(["OCM8103"]), "{reason}: {said:?}");
        assert_eq!((policies(hub), asked(hub)), (closed(), "Answered".to_owned()), "{reason}: {said:?}");
    }
    for (kind, name) in [
        ("validatingwebhookconfiguration", MANAGED_CLUSTER_VALIDATOR),
        ("mutatingwebhookconfiguration", MANAGED_CLUSTER_MUTATOR),
    ] {
        assert_eq!(kubectl(hub, &["delete", kind, name]), Answer::Passed);
    }
}

/// Takes policies out of force, with the documented rights: one of them less is too few.
fn emergency(hub: &Hub) {
    let command = |arguments: &[&str]| {
        let mut command = kubectl_ocm("policy", hub.cluster.kubeconfig());
        run(command.args(["emergency", "--reason", "incident 815"]).args(arguments))
    };
    let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    let asked = || {
        let all = hub.cluster.kubectl(&["get", kinds, "--output=name"]).expect("they are listed");
        all.lines().filter(|name| name.ends_with("/ocm-policy-webhook")).count()
    };
    let users = users_without_one_right(&hub.cluster, "policy-emergency.yaml");
    assert_eq!(users.len(), 5);
    for (user, missing) in &users {
        let said = command(&["--yes", "--as", user]);
        assert!(said.code == Some(1) && said.stderr.contains(missing), "without {missing:?}: {said:?}");
    }
    for dry_run in ["--dry-run=client", "--dry-run=server"] {
        let said = command(&[dry_run]);
        assert!(said.code == Some(0) && said.stdout.contains("deleted ("), "{said:?}");
    }
    let said = command(&[]);
    assert!(said.code == Some(2) && said.stderr.contains("--yes"), "{said:?}");
    assert_eq!((asked(), mark(hub)), (2, String::new()));
    user_with(&hub.cluster, "ann", &["policy-emergency.yaml"]);
    let said = command(&["--yes", "--as", "ann"]);
    assert!(said.code == Some(0) && said.stderr.contains("kubectl ocm install policy-engine --wait"), "{said:?}");
    let left = mark(hub);
    assert!(left.contains("\"by\":\"ann\"") && left.contains("incident 815"), "{left}");
    // Again: nobody is asked, and the mark says so once more.
    let said = command(&["--yes"]);
    assert!(said.code == Some(0) && said.stderr.contains("the API server asks no policies, and the contr"), "{said:?}");
    let at = |mark: &str| serde_json::from_str::<Value>(mark).expect("it is JSON")["at"].clone();
    let again = mark(hub);
    assert!(again != left && at(&again) == at(&left) && again.contains("incident 815"), "{again}");
    assert_eq!(asked(), 0);
}

/// Takes policies out of force while somebody puts them back: that one stops.
fn interrupted(hub: &Hub, keeper: &Path) {
    // Somebody who has looked at what is there before the configurations were.
    let note = json!({"at": "2026-01-01T00:00:00Z", "by": "cyd", "reason": "incident 817"});
    let note = format!("policy.kubectl-ocm.dev/emergency={note}");
    stopped(hub.cluster.kubeconfig(), "waiting until the API server asks the webhook", "by cyd", || {
        hub.cluster.kubectl(&["annotate", "--overwrite", "namespace", "ocm-policy-engine", &note]).expect("marked");
    });
    assert_eq!(policies(hub), BTreeMap::new(), "what the installation applied is gone");
    assert!(mark(hub).contains("incident 817"), "{}", mark(hub));

    kill_pods(hub);
    stopped(keeper, "waiting for the pods of the policy engine", "by ben", || {
        user_with(&hub.cluster, "ben", &["policy-emergency.yaml"]);
        let mut command = kubectl_ocm("policy", hub.cluster.kubeconfig());
        let said = run(command.args(["emergency", "--reason", "incident 816", "--yes", "--as", "ben"]));
        assert!(said.code == Some(0) && said.stderr.contains("under way stops before it does"), "{said:?}");
    });
    assert_eq!(policies(hub), BTreeMap::new());
    let left = mark(hub);
    assert!(left.contains("\"by\":\"cyd\"") && left.contains("\"by\":\"ben\""), "{left}");
}

/// Has an installation stop where something is done as soon as it says that it waits for `at`.
fn stopped(kubeconfig: &Path, at: &str, whose: &str, act: impl Fn()) {
    let mut command = command(kubeconfig, "install", &["--wait", "--replicas=1", "--timeout=180s"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (mut told, mut is_done) = (Vec::new(), false);
    for line in BufReader::new(child.stderr.take().expect("it is piped")).lines() {
        let line = line.expect("it is text");
        if line.contains(at) && !is_done {
            act();
            is_done = true;
        }
        told.push(line);
    }
    let code = child.wait().expect("it ends").code();
    assert!(code == Some(3) && is_done, "{told:?}");
    let says = |line: &String| line.contains("taken out of force meanwhile") && line.contains(whose);
    assert!(told.iter().any(says), "{told:?}");
}

/// What says that policies were taken out of force.
fn mark(hub: &Hub) -> String {
    let path = "--output=jsonpath={.metadata.annotations.policy\\.kubectl-ocm\\.dev/emergency}";
    hub.cluster.kubectl(&["get", "namespace", "ocm-policy-engine", path]).expect("it is read")
}

/// A request as kubelets make them, as an administrator; returns its name.
fn kubelet_request(hub: &Hub, name: &str) -> String {
    let mut ask = Ask::agent("c1").by(Who::Admin);
    (ask.label, ask.name) = (None, Some(name.to_owned()));
    ask.signer = "kubernetes.io/kubelet-serving".to_owned();
    ask.usages = vec!["digital signature".to_owned(), "server auth".to_owned()];
    hub.ask(&ask)
}

#[track_caller]
fn uninstall(kubeconfig: &Path, flags: &[&str], code: i32) -> Said {
    let said = run(&mut command(kubeconfig, "uninstall", flags));
    assert_eq!(said.code, Some(code), "{flags:?}: {}\n{}", said.stdout, said.stderr);
    said
}

/// Without the baseline, which is removed by its own command.
fn engine(hub: &Hub) -> BTreeMap<String, String> {
    let mut all = objects(hub);
    let baseline =
        |name: &str| name.starts_with("ValidatingAdmissionPolicy") || name.contains("/registrationapprovals.");
    all.retain(|name, _| !baseline(name));
    all
}

#[test]
fn what_was_installed_is_taken_away_and_what_people_made_stays_until_they_say_so() {
    let hub = ENGINES.get();
    let keeper = keeper(&hub);
    let remover = user_with(&hub.cluster, "remover", &["uninstall-policy-engine.yaml"]);
    let nothing = objects(&hub);
    assert!(nothing.is_empty(), "{nothing:?}");
    install(&keeper, &["--image", IMAGE, "--wait", "--replicas=1"], 0);
    let own = json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["*"]}});
    policy(&hub.cluster, "own", own);

    // Looking changes nothing.
    let installed = engine(&hub);
    for flag in ["--dry-run", "--dry-run=server"] {
        let said = uninstall(&remover, &[flag], 0);
        let first = said.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with("cronjob.batch/ocm-policy-certificates deleted ("), "{said:?}");
        assert!(said.stderr.contains("for real, the API server then asks no policies"), "{said:?}");
    }
    let said = uninstall(&remover, &[], 2);
    assert!(said.stderr.contains("cannot prompt") && said.stderr.contains("--yes"), "{said:?}");
    assert_eq!(engine(&hub), installed);

    // What somebody else made is named, and nothing is deleted.
    let service = ["service", "ocm-policy-webhook", "--namespace=ocm-policy-engine"];
    kubectl(&hub, &[&["label"], &service[..], &["app.kubernetes.io/part-of-"]].concat());
    let said = uninstall(&remover, &["--yes"], 3);
    assert!(said.stderr.contains("somebody else made service/ocm-policy-webhook"), "{said:?}");
    kubectl(&hub, &[&["label"], &service[..], &["app.kubernetes.io/part-of=kubectl-ocm"]].concat());
    assert_eq!(engine(&hub).into_keys().collect::<Vec<_>>(), installed.keys().cloned().collect::<Vec<_>>());

    // A run that was killed after each of its deletions goes on; here after the first ones.
    let job = ["delete", "cronjob", "ocm-policy-certificates", "--namespace=ocm-policy-engine"];
    assert_eq!(kubectl(&hub, &job), Answer::Passed);
    for configuration in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        assert_eq!(kubectl(&hub, &["delete", configuration, "ocm-policy-webhook"]), Answer::Passed);
    }
    uninstall(&remover, &["--yes", "--wait"], 0);
    assert!(pods(&hub).is_empty());
    let mut left: Vec<String> = engine(&hub).into_keys().collect();
    left.retain(|name| !name.starts_with("HubPolicy"));
    let kept = [
        "CustomResourceDefinition /hubpolicies.policy.kubectl-ocm.dev",
        "CustomResourceDefinition /registrations.policy.kubectl-ocm.dev",
        "Namespace /ocm-policy-engine",
    ];
    assert_eq!(left, kept);
    assert_eq!(kubectl(&hub, &["get", "hubpolicy", "own", "csr-hygiene"]), Answer::Passed);
    // The baseline is none of its business.
    assert_eq!(list(&hub, &["validatingadmissionpolicies"]).len(), 4);
    assert_eq!(create(&hub, Who::Bootstrap, |_| ()), Answer::Passed);
    let said = uninstall(&remover, &["--yes"], 0);
    assert!(said.stdout.is_empty() && said.stderr.contains("there is no policy engine"), "{said:?}");

    // Installed again over what was left, handed over to cert-manager, and taken away with all of it.
    install(&keeper, &["--image", IMAGE, "--wait", "--replicas=1"], 0);
    assert_eq!(policies(&hub), closed());
    hand_over(&hub, &keeper);
    let said = run(&mut command(&remover, "uninstall", &["--yes"]));
    assert!(said.code == Some(1) && said.stderr.contains("delete certificates.cert-manager.io"), "{said:?}");
    assert_eq!(policies(&hub), closed());
    let said = uninstall(hub.cluster.kubeconfig(), &["--yes", "--wait", "--purge", "-o", "json"], 0);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&document["gone"], &document["changed"]), (&json!(true), &json!(true)), "{said:?}");
    assert!(said.stdout.contains("ocm-policy-webhook-issued"), "{said:?}");
    assert!(engine(&hub).is_empty(), "{:?}", engine(&hub));
}

/// Has cert-manager look after the certificate of an engine for which registrations wait; none of them is refused meanwhile.
fn hand_over(hub: &Hub, keeper: &Path) {
    let admin = hub.cluster.kubeconfig();
    let by = |issuer: &'static str| ["--wait", "--certificate-issuer", issuer];
    let before = engine(hub);
    let said = install(admin, &by("ClusterIssuer/internal"), 3);
    assert!(said.stderr.contains("the cluster serves no cert-manager.io/v1"), "{said:?}");
    cert_manager::define(&hub.cluster);
    let said = install(admin, &by("ClusterIssuer/other"), 1);
    assert!(said.stderr.contains("there is no ClusterIssuer other"), "{said:?}");
    let said = install(keeper, &by("ClusterIssuer/internal"), 1);
    assert!(said.stderr.contains("create certificates.cert-manager.io"), "{said:?}");
    let said = install(admin, &["--certificate-issuer", "ClusterIssuer/internal"], 2);
    assert!(said.stderr.contains("add --wait"), "{said:?}");
    assert_eq!(engine(hub), before);

    // Nobody issues it: that is told, and the hub goes on with what it has.
    let said = run(command(admin, "install", &by("ClusterIssuer/internal")).arg("--timeout=4s"));
    let why = "cert-manager has said nothing of the Certificate ocm-policy-webhook yet";
    assert!(said.code == Some(124) && said.stderr.contains(why), "{said:?}");
    assert_eq!((policies(hub), create(hub, Who::Bootstrap, |_| ())), (closed(), Answer::Passed));
    let serves = || -> String {
        let path = "--output=jsonpath={.spec.template.spec.volumes[?(@.name==\"tls\")].secret.secretName}";
        let of = ["get", "deployment", "ocm-policy-webhook", "--namespace=ocm-policy-engine", path];
        hub.cluster.kubectl(&of).expect("it is read")
    };
    assert_eq!(serves(), "ocm-policy-webhook-tls");

    cert_manager::beside(&hub.cluster, || {
        let (ended, mut tries, mut refused) = (AtomicBool::new(false), 0, Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    tries += 1;
                    match create(hub, Who::Bootstrap, |_| ()) {
                        Answer::Passed => std::thread::sleep(Duration::from_millis(50)),
                        Answer::Refused(why) => refused.push(why),
                    }
                }
            });
            let _ends = Ends(&ended);
            let said = run(command(admin, "install", &by("ClusterIssuer/internal")).arg("--timeout=180s"));
            // The authority that is injected replaces all others.
            until_within(
                PODS,
                "it is injected",
                || bundles(hub).join("\n"),
                || {
                    let all = bundles(hub);
                    all.len() == closed().len()
                        && all.iter().all(|bundle| *bundle == all[0] && bundle.matches("BEGIN").count() == 1)
                },
            );
            assert_eq!(said.code, Some(0), "{said:?}");
        });
        assert!(tries > 100 && refused.is_empty(), "{tries}: {refused:?}");
        assert_eq!((policies(hub), serves()), (closed(), "ocm-policy-webhook-issued".to_owned()));
        let probe = create(hub, Who::Admin, |one| one.metadata.name = Some("ocm-policy-engine-probe".to_owned()));
        assert!(matches!(&probe, Answer::Refused(why) if why.contains("keeps this name to itself")), "{probe:?}");
        // Whoever does not say it again does not change it, and what renews our own leaves it alone.
        let said = install(admin, &[], 0);
        let changed: Vec<&str> = said.stdout.lines().filter(|line| !line.ends_with(" unchanged")).collect();
        assert_eq!((changed, policies(hub)), (Vec::new(), closed()));
        let place = "--namespace=ocm-policy-engine";
        let job = ["create", "job", "try", "--from=cronjob/ocm-policy-certificates", place];
        assert_eq!(kubectl(hub, &job), Answer::Passed);
        let wait = ["wait", "--for=condition=complete", "job/try", "--timeout=60s", place];
        assert_eq!(kubectl(hub, &wait), Answer::Passed);
        let rendered = install(admin, &["--image", IMAGE, "--render", "--certificate-issuer", "Issuer/x"], 0);
        assert!(rendered.stdout.contains("kind: Certificate") && !rendered.stdout.contains("kind: Secret"));
    });
}

/// What each entry has the API server trust, as PEM.
fn bundles(hub: &Hub) -> Vec<String> {
    let all = list(hub, &["validatingwebhookconfigurations,mutatingwebhookconfigurations"]);
    let ours = all.iter().filter(|one| text(one, "/metadata/name") == "ocm-policy-webhook");
    ours.flat_map(webhooks::bundles).map(|bundle| String::from_utf8_lossy(&bundle).into_owned()).collect()
}

#[test]
fn each_right_of_the_documented_roles_is_needed() {
    let hub = shared_hub::hub();
    let credentials = hub.cluster.dir().expect("a folder").join("credentials.json");
    std::fs::write(&credentials, r#"{"auths":{"registry.example.com":{"auth":"eDp5"}}}"#).expect("written");
    let credentials = credentials.to_str().expect("text");
    let flags = ["--image", IMAGE, "--image-pull-credential-file", credentials, "--without-baseline", "--wait"];
    let runs = [("install", &flags[..]), ("uninstall", &["--yes", "--wait", "--purge"])];
    for (verb, flags) in runs {
        let users = users_without_one_right(&hub.cluster, &format!("{verb}-policy-engine.yaml"));
        assert!(users.len() > 30, "{users:?}");
        for (user, missing) in users {
            let said = run(command(hub.cluster.kubeconfig(), verb, flags).args(["--as", &user]));
            assert_eq!(said.code, Some(1), "{verb}, {missing}: {said:?}");
            let mut told = said.stderr.lines().filter_map(|line| line.strip_prefix("  because: "));
            assert!(told.all(|line| line.starts_with(&missing)), "{verb}, {missing}: {said:?}");
            assert!(said.stderr.contains(&format!("your user lacks rights to {verb} the policy engine")), "{said:?}");
        }
        assert!(objects(&hub).is_empty(), "{:?}", objects(&hub));
    }
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let hub = shared_hub::hub();
    let keeper = keeper(&hub);
    let secrets = || -> BTreeMap<String, Value> {
        let all = list(&hub, &["secrets", "--namespace=ocm-policy-engine"]);
        all.iter().map(|secret| (text(secret, "/metadata/name"), secret["data"].clone())).collect()
    };
    let (mut all, mut before) = (0, secrets());
    let step = if series::is_whole() { 1 } else { 5 };
    for lines in (1..).step_by(step) {
        let mut child = command(&keeper, "install", &["--image", IMAGE, "--output=name"]);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let told = BufReader::new(child.stdout.take().expect("a pipe")).lines().take(lines).count();
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        // What was made stays, keys above all.
        let after = secrets();
        assert!(before.iter().all(|(name, data)| after.get(name) == Some(data)), "{lines}");
        (all, before) = (told, after);
        if told < lines {
            break;
        }
    }
    assert!(all > 20, "{all}");
    let said = install(&keeper, &[], 0);
    assert!(said.stdout.lines().all(|line| line.ends_with(" unchanged")), "{said:?}");
    assert_eq!((said.stdout.lines().count(), policies(&hub)), (all, open()));
    assert_eq!(secrets(), before);
    // Here no pod is ever ready: whoever waits for one gives up, and nobody waits for the webhook.
    let said = run(&mut command(&keeper, "install", &["--wait", "--timeout=3s"]));
    assert_eq!((said.code, policies(&hub)), (Some(124), open()), "{said:?}");
    assert!(said.stderr.contains("gave up waiting for the pods of the policy engine"), "{said:?}");
    assert_eq!(create(&hub, Who::Bootstrap, |_| ()), Answer::Passed);
}

#[test]
fn an_audit_refuses_nothing_and_what_people_chose_stays() {
    let hub = shared_hub::hub();
    let keeper = keeper(&hub);
    let modes = || -> Vec<String> { list(&hub, &["hubpolicies"]).iter().map(|one| text(one, "/spec/mode")).collect() };
    let actions = || -> Vec<Value> {
        list(&hub, &["validatingadmissionpolicybindings"])
            .iter()
            .map(|one| one["spec"]["validationActions"].clone())
            .collect()
    };
    // Who wrote an approval is proved in any case: it counts later.
    let warns = [vec![json!(["Warn", "Audit"]); 3], vec![json!(["Deny", "Audit"])]].concat();
    install(&keeper, &["--image", IMAGE, "--audit"], 0);
    assert_eq!((modes(), actions(), policies(&hub)), (vec!["Audit".to_owned(); 4], warns.clone(), open()));

    // The same command without the flag refuses. Settings, other policies, and numbers that somebody has chosen stay.
    let settings = r#"{"spec":{"settings":{"holdTaken":true},"onError":"Hold"}}"#;
    assert_eq!(
        kubectl(&hub, &["patch", "hubpolicy", "name-claim", "--type=merge", "--patch", settings]),
        Answer::Passed
    );
    install(&keeper, &["--replicas=3"], 0);
    install(&keeper, &[], 0);
    let denies = vec![json!(["Deny", "Audit"]); 4];
    assert_eq!((modes(), actions()), (vec!["Enforce".to_owned(); 4], denies.clone()));
    // What the baseline refuses already is not let through for the sake of policies that only record.
    let said = install(&keeper, &["--audit"], 0);
    assert!(said.stderr.contains("the hub's baseline refuses already what is wrong, which stays"), "{said:?}");
    assert_eq!((modes(), actions()), (vec!["Audit".to_owned(); 4], denies));
    install(&keeper, &[], 0);
    let spec = &e2e_tests::object(&hub.cluster, &["hubpolicy", "name-claim"])["spec"];
    assert_eq!((&spec["settings"], &spec["onError"]), (&json!({"holdTaken": true}), &json!("Hold")));
    let deployment =
        e2e_tests::object(&hub.cluster, &["deployment", "ocm-policy-webhook", "--namespace=ocm-policy-engine"]);
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], IMAGE);

    // So do the networks that may send reviews, until others are named.
    let ingress = || {
        let of = ["networkpolicy", "ocm-policy-webhook", "--namespace=ocm-policy-engine"];
        e2e_tests::object(&hub.cluster, &of)["spec"]["ingress"].clone()
    };
    // Where they change the pods are replaced, as connections that stand would go on.
    let told = || {
        let of = ["deployment", "ocm-policy-webhook", "--namespace=ocm-policy-engine"];
        let template = e2e_tests::object(&hub.cluster, &of)["spec"]["template"].clone();
        template["metadata"]["annotations"]["policy.kubectl-ocm.dev/reviews-from"].clone()
    };
    assert_eq!((ingress()[0].get("from"), told()), (None, Value::Null));
    install(&keeper, &["--api-server-cidr=10.0.0.0/28,192.0.2.1/32"], 0);
    let narrowed = ingress();
    let blocks = json!([{"ipBlock": {"cidr": "10.0.0.0/28"}}, {"ipBlock": {"cidr": "192.0.2.1/32"}}]);
    assert_eq!((&narrowed[0]["from"], narrowed[1].get("from")), (&blocks, None));
    let told_first = told();
    assert!(told_first.as_str().is_some_and(|told| told.contains("10.0.0.0/28")), "{told_first}");
    install(&keeper, &[], 0);
    assert_eq!((ingress(), told()), (narrowed, told_first.clone()));
    install(&keeper, &["--api-server-cidr=0.0.0.0/0,::/0"], 0);
    assert_eq!(ingress()[0]["from"][1]["ipBlock"]["cidr"], "::/0");
    assert_ne!(told(), told_first);
    // What somebody has written by hand stays whole, as the next run finds it.
    let by_hand = r#"{"spec":{"ingress":[{"ports":[{"port":"reviews"}],"from":[{"namespaceSelector":{}}]}]}}"#;
    let patch = [
        "patch",
        "networkpolicy",
        "ocm-policy-webhook",
        "--namespace=ocm-policy-engine",
        "--type=merge",
        "--patch",
        by_hand,
    ];
    assert_eq!(kubectl(&hub, &patch), Answer::Passed);
    let by_hand = ingress();

    // A policy that is deleted stays so, if the command is told; a baseline with settings of its own stays as it is.
    assert_eq!(kubectl(&hub, &["delete", "hubpolicy", "name-claim"]), Answer::Passed);
    install(&keeper, &["--without-policies"], 0);
    assert_eq!((modes().len(), ingress()), (3, by_hand));
    let baseline = user_with(&hub.cluster, "baseline", &["install-baseline.yaml"]);
    let said = run(kubectl_ocm("install", &baseline).args(["baseline", "--audit", "--allow-label=team-*"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let role = format!("--clusterrole={}", bootstrap::CLUSTER_ROLE);
    let account = "--serviceaccount=open-cluster-management:cluster-bootstrap";
    let binding = ["create", "clusterrolebinding", "former", &role, account];
    assert_eq!(kubectl(&hub, &binding), Answer::Passed);
    let said = install(&keeper, &[], 0);
    assert!(said.stderr.contains("has a baseline with other settings") && modes().len() == 4, "{said:?}");
    assert_eq!(actions(), warns);
    // A policy that is made knows whom the hub lets register clusters. One that is there has the settings that it has.
    let account = "system:serviceaccount:open-cluster-management:cluster-bootstrap";
    let settings = |name: &str| e2e_tests::object(&hub.cluster, &["hubpolicy", name])["spec"]["settings"].clone();
    let told = format!("the hub lets {account} register clusters: so do new policies");
    assert!(said.stderr.contains(&told), "{said:?}");
    let made = [json!({"requesters": [account]}), Value::Null];
    assert_eq!([settings("name-claim"), settings("csr-hygiene")], made);
    let said = install(&keeper, &[], 0);
    assert!(!said.stderr.contains(&told), "{said:?}");
    assert_eq!([settings("name-claim"), settings("csr-hygiene")], made);
}

#[test]
fn what_is_no_hub_is_told_so_and_nothing_is_installed() {
    let cluster = control_plane::Cluster::start(&Spec::api("nohub")).expect("a cluster");
    let said = install(cluster.kubeconfig(), &["--image", IMAGE], 3);
    assert!(said.stderr.contains("this is no hub") && said.stderr.contains("kubectl ocm install hub"), "{said:?}");
    assert!(cluster.kubectl(&["get", "namespace", "ocm-policy-engine"]).is_err());
}
