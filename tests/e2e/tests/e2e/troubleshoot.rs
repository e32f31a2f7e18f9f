//! Faults that are made for real, found as the one cause, and no longer found once they are undone.

use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use control_plane::Cluster;
use e2e_tests::join_support::{JoinCommand, alone, hub, hub_access, join};
use e2e_tests::roles::user_with;
use e2e_tests::shared_hub::node;
use e2e_tests::trouble_support::{
    AGENTS, KNOWN, TIME, apply, finds, finds_after, forget_replaced, is_well, kubectl, look,
};
use e2e_tests::{canaries, kubectl_ocm, object, run, series, until, until_within};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};

/// A Secret as it can be applied again.
fn secret(cluster: &Cluster, name: &str) -> Value {
    let mut secret = object(cluster, &["secret", name, "--namespace", AGENTS]);
    let annotations = secret["metadata"]["annotations"].clone();
    secret["metadata"] = json!({"name": name, "namespace": AGENTS, "annotations": annotations});
    secret
}

/// Which version of a Secret of the agents there is.
fn secret_version(cluster: &Cluster, name: &str) -> String {
    object(cluster, &["secret", name, "--namespace", AGENTS])["metadata"]["resourceVersion"].to_string()
}

/// The fault while `with` runs: a merge patch, and the one that undoes it.
fn patched(cluster: &Cluster, what: &[&str], fault: &Value, cure: &Value, with: impl FnOnce()) {
    let patch = |patch: &Value| {
        let patch = format!("--patch={patch}");
        kubectl(cluster, &[&["patch", "--type=merge", &patch], what].concat());
    };
    patch(fault);
    with();
    patch(cure);
}

fn scaled(cluster: &Cluster, namespace: &str, name: &str, replicas: u32) {
    let replicas = format!("--replicas={replicas}");
    kubectl(cluster, &["scale", "deployment", name, "--namespace", namespace, &replicas]);
}

/// Lets the webhook of managed clusters have a certificate that has expired.
fn expire_webhook(hub: &Cluster) {
    let service = "cluster-manager-registration-webhook.open-cluster-management-hub.svc";
    let mut params = CertificateParams::new(vec![service.to_owned()]).expect("a name");
    (params.not_before, params.not_after) = (date_time_ymd(2023, 1, 1), date_time_ymd(2023, 1, 31));
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    let data = json!({"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key.serialize_pem())});
    let patch = format!("--patch={}", json!({"data": data}));
    let what = ["secret", "registration-webhook-serving-cert", "--namespace", "open-cluster-management-hub"];
    kubectl(hub, &[&["patch", "--type=merge", &patch], what.as_slice()].concat());
}

/// A command that goes on, and what it has written so far.
struct Watch {
    process: Child,
    file: PathBuf,
}

impl Watch {
    fn start(mut command: Command, folder: &Path) -> Self {
        let file = folder.join("changes.jsonl");
        let process = command.stdout(File::create(&file).expect("a file")).spawn().expect("it starts");
        Self { process, file }
    }

    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.file).expect("it is read");
        // The last line may not be whole yet.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Ends it as Ctrl-C does, and tells its exit code.
    fn interrupt(&mut self) -> Option<i32> {
        let killed = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        assert!(killed.expect("it runs").success());
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn faults_of_a_joined_pair_are_found_and_gone_when_they_are_undone() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let name = "t1";
    let said = join(&cluster, name, &[hub_access(hub)]);
    assert_eq!(said.code, Some(0), "{said:?}");

    // Until it is accepted.
    let waits = "stopped at step 5 of 9: waits for acceptance on the hub since";
    let headline = || finds(&cluster, hub, name, "OCM2205")["clusters"][0]["headline"].as_str().map(str::to_owned);
    // Its request may come after it.
    until("it has asked", || headline().is_some_and(|headline| headline.starts_with(waits)));
    // Waits that give up say the same.
    let said = join(&cluster, name, &[hub_access(hub), "--wait=available".to_owned(), "--timeout=10s".to_owned()]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("t1: stopped at step 5 of 9: waits for acceptance on the hub since"), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm accept t1 --context"), "{said:?}");
    let said = run(kubectl_ocm("accept", hub.kubeconfig()).args(["nobody", "--wait", "--timeout=5s"]));
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("nobody: stopped at step 4 of 9: the hub has no managed cluster"), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm troubleshoot nobody shows the evidence"), "{said:?}");
    let request = object(hub, &["csr", "--selector", &format!("open-cluster-management.io/cluster-name={name}")]);
    let request = request.pointer("/items/0/metadata/name").and_then(Value::as_str).expect("a request").to_owned();
    kubectl(hub, &["certificate", "deny", &request]);
    finds(&cluster, hub, name, "OCM2208");
    kubectl(hub, &["delete", "csr", &request]);
    finds(&cluster, hub, name, "OCM2205");
    // Somebody else asks for the name.
    let foreign = csr_fixtures::Fixture::agent(name, "stranger").pem();
    apply(
        hub,
        &json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "t1-stranger", "labels": {"open-cluster-management.io/cluster-name": name}},
            "spec": {"request": STANDARD.encode(foreign), "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["digital signature", "key encipherment", "client auth"]},
        }),
    );
    let two = finds(&cluster, hub, name, "OCM2203");
    assert!(two["findings"][0]["consequences"].to_string().contains("OCM2205"), "{two:#}");
    kubectl(hub, &["delete", "csr", "t1-stranger"]);
    let said = run(kubectl_ocm("accept", hub.kubeconfig()).args([name, "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    is_well(&cluster, hub, name);
    // Nothing is wrong with an agent that still joins, either.
    let looked = || look(&cluster, hub, name, &[]);
    until_within(
        TIME,
        "it has joined",
        || format!("{:?}", looked()),
        || {
            let said = looked();
            said.code == Some(0) && said.stdout.starts_with("t1: joined and available, heard of ")
        },
    );

    // Users who hold the documented rights see everything; users without any are told which.
    let reader = user_with(hub, "trouble-reader", &["troubleshoot-hub.yaml"]);
    let local = user_with(&cluster, "trouble-reader", &["troubleshoot.yaml"]);
    let flag = format!("--hub-kubeconfig={}", reader.display());
    let as_reader = || run(kubectl_ocm("troubleshoot", &local).args([name, KNOWN, &flag, "--output=json"]));
    until_within(
        TIME,
        "the documented rights suffice",
        || format!("{:?}", as_reader()),
        || as_reader().code == Some(0),
    );
    // Without the hub's word, conditions of the operator that are behind count for a while.
    let as_nobody = || look(&cluster, hub, name, &["--hub-as=nobody", "--output=json"]);
    until_within(
        TIME,
        "nobody is told which rights are missing",
        || format!("{:?}", as_nobody()),
        || {
            let said = as_nobody();
            said.code == Some(4) && said.stdout.contains("\"resource\": \"managedclusters\"")
        },
    );

    // The hub.
    let operator = ["open-cluster-management", "cluster-manager"];
    scaled(hub, operator[0], operator[1], 0);
    finds(&cluster, hub, name, "OCM1102");
    // What the operator would restore is a consequence of its absence.
    scaled(hub, "open-cluster-management-hub", "cluster-manager-registration-webhook", 0);
    until_within(TIME, "the webhook is gone", String::new, || {
        let found = finds(&cluster, hub, name, "OCM1102")["findings"][0]["consequences"].to_string();
        found.contains("OCM1106") && found.contains("OCM1108")
    });
    // Nor does anybody renew the webhook's certificate. The operator does as soon as it is there again.
    expire_webhook(hub);
    let found = finds(&cluster, hub, name, "OCM1102")["findings"][0]["consequences"].to_string();
    assert!(found.contains("OCM1118") && found.contains("until 2023-01-31T00:00:00Z"), "{found}");
    // That is told to those who may read its Secret; others need not.
    let files = ["troubleshoot-hub.yaml", "troubleshoot-hub-certificates.yaml"];
    let holder = user_with(hub, "certificate-reader", &files);
    // Whether it is found, while the operator is missing, and whether a right is said to be.
    let told = |user: &Path| {
        let said = run(kubectl_ocm("troubleshoot", user).args([name, KNOWN, "--output=json"]));
        let value: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
        let (found, unknown) = (value["findings"].to_string(), value["unknown"].to_string());
        (found.contains("OCM1102").then(|| found.contains("OCM1118")), unknown.contains("OCM1118"), said)
    };
    until_within(
        TIME,
        "the documented rights suffice",
        || format!("{:?}", told(&holder)),
        || matches!(told(&holder), (Some(true), false, _)),
    );
    let others = told(&reader);
    assert!(matches!(others, (Some(false), false, _)), "{others:?}");
    scaled(hub, operator[0], operator[1], 1);
    is_well(&cluster, hub, name);

    // Denied.
    let (fault, cure) = (json!({"spec": {"hubAcceptsClient": false}}), json!({"spec": {"hubAcceptsClient": true}}));
    patched(hub, &["managedcluster", name], &fault, &cure, || {
        let found = finds(&cluster, hub, name, "OCM2204");
        assert!(found["findings"][0]["next"].to_string().contains("kubectl ocm accept t1"), "{found:#}");
    });
    is_well(&cluster, hub, name);

    // The managed cluster.
    scaled(&cluster, "open-cluster-management", "klusterlet", 0);
    finds(&cluster, hub, name, "OCM2102");
    // With nobody to restore them: agents that are gone, and a Secret.
    scaled(&cluster, AGENTS, "klusterlet-registration-agent", 0);
    let found = finds(&cluster, hub, name, "OCM2102");
    assert!(found["findings"][0]["consequences"].to_string().contains("OCM2106"), "{found:#}");
    scaled(&cluster, "open-cluster-management", "klusterlet", 1);
    is_well(&cluster, hub, name);
    let bootstrap = secret(&cluster, "bootstrap-hub-kubeconfig");
    kubectl(&cluster, &["delete", "secret", "bootstrap-hub-kubeconfig", "--namespace", AGENTS]);
    finds(&cluster, hub, name, "OCM2107");
    apply(&cluster, &bootstrap);
    is_well(&cluster, hub, name);
    let unschedulable = json!({"spec": {"nodePlacement": {"nodeSelector": {"no": "such"}}}});
    patched(&cluster, &["klusterlet", "klusterlet"], &unschedulable, &json!({"spec": {"nodePlacement": null}}), || {
        let found = finds(&cluster, hub, name, "OCM2106");
        assert!(found.to_string().contains("cannot be scheduled"), "{found:#}");
    });
    is_well(&cluster, hub, name);

    no_secret_is_told(&cluster, hub, name);

    // The agent's node is gone: the lease grows old, while the hub still calls the cluster Available.
    let folder = tempfile::tempdir().expect("a directory");
    let mut watch = kubectl_ocm("troubleshoot", hub.kubeconfig());
    watch.args([name, KNOWN, "--watch", "--interval=1s", "--output=jsonl"]);
    let mut watch = Watch::start(watch, folder.path());
    until("the first report is there", || watch.lines().iter().any(|line| line["verdict"] == "ok"));
    cluster.pause().expect("paused");
    let on_hub = || run(kubectl_ocm("troubleshoot", hub.kubeconfig()).args([name, KNOWN, "--fail-on=warning"]));
    until_within(
        TIME,
        "the silence is found",
        || format!("{:?}", on_hub()),
        || {
            let said = on_hub();
            let words = ["the agent has not been heard of since", "still calls the cluster Available"];
            said.code == Some(3) && words.iter().all(|words| said.stdout.contains(words))
        },
    );
    let silence = |line: &&Value| {
        line["finding"]["summary"].as_str().is_some_and(|summary| summary.contains("the agent has not been heard of"))
    };
    let told = |watch: &Watch, change: &str| {
        watch.lines().iter().filter(silence).filter(|line| line["change"] == change).count()
    };
    until("who watches is told", || told(&watch, "found") == 1);
    cluster.resume().expect("resumed");
    is_well(&cluster, hub, name);
    until("who watches is told of the end", || told(&watch, "ended") == 1);
    assert_eq!(told(&watch, "found"), 1, "{:#?}", watch.lines());
    assert_eq!(watch.interrupt(), Some(130));
}

fn no_secret_is_told(cluster: &Cluster, hub: &Cluster, name: &str) {
    let canaries: Vec<String> = canaries(cluster).into_iter().chain(canaries(hub)).collect();
    assert!(canaries.len() > 5, "the clusters hold secrets");
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("bundle.json");
    let mut told = Vec::new();
    for format in ["table", "wide", "json", "jsonl", "yaml", "name", "junit", "sarif", "markdown", "html"] {
        let said = look(cluster, hub, name, &["--output", format]);
        told.push((format.to_owned(), said.stdout + &said.stderr));
    }
    let said = look(cluster, hub, name, &["--bundle", &bundle.display().to_string()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let written = fs::read_to_string(&bundle).expect("it was written");
    has_logs(&written);
    told.push(("bundle".to_owned(), written));
    for (where_, text) in &told {
        for canary in &canaries {
            let encoded = STANDARD.encode(canary);
            assert!(
                !text.contains(canary) && !text.contains(encoded.trim_end_matches('=')),
                "a secret is told in {where_}"
            );
        }
    }
    let elsewhere =
        run(kubectl_ocm("troubleshoot", Path::new("/nowhere")).args([KNOWN, "--from", &bundle.display().to_string()]));
    assert_eq!((elsewhere.code, elsewhere.stdout), (Some(0), said.stdout));
}

/// The logs of both sides are in a bundle.
fn has_logs(bundle: &str) {
    let bundle: Value = serde_json::from_str(bundle).expect("JSON");
    let logs = bundle["logs"].as_array().expect("it has logs");
    for (side, deployment) in [
        ("hub", "cluster-manager"),
        ("hub", "cluster-manager-registration-controller"),
        ("managed", "klusterlet"),
        ("managed", "klusterlet-registration-agent"),
        ("managed", "klusterlet-work-agent"),
    ] {
        let is_read = |log: &Value| log["log"]["read"].as_array().is_some_and(|lines| !lines.is_empty());
        let found = logs.iter().any(|log| log["side"] == side && log["deployment"] == deployment && is_read(log));
        assert!(found, "no log of {deployment}: {logs:#?}");
    }
}

/// A kubeconfig with a token.
fn kubeconfig(server: &str, authority: &str, token: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(authority)}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string()
}

fn no_job_is_left(cluster: &Cluster) {
    let jobs = || cluster.kubectl(&["get", "jobs", "--namespace", AGENTS, "--output=name"]).expect("a list");
    until("no Job is left", || jobs().is_empty());
}

/// What a pod beside the agent saw of the hub, as a bundle has it.
fn seen_from_within(cluster: &Cluster, hub: &Cluster, name: &str, flags: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bundle.json");
    let bundle = format!("--bundle={}", file.display());
    let said = look(cluster, hub, name, &[&["--in-cluster", &bundle], flags].concat());
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let bundle: Value = serde_json::from_str(&text).expect("JSON");
    bundle["snapshot"]["inCluster"][0].clone()
}

fn looks_from_within_that_fail(cluster: &Cluster, hub: &Cluster, name: &str) {
    let why = |seen: &Value| seen["answer"]["notAsked"]["message"].as_str().unwrap_or_default().to_owned();
    // An image without a shell.
    let seen = seen_from_within(cluster, hub, name, &["--in-cluster-image=ocm.local/pause:1"]);
    assert!(why(&seen).starts_with("cannot look from within the managed cluster: the pod of Job"), "{seen}");
    no_job_is_left(cluster);
    // A hub has no agents.
    let said = run(kubectl_ocm("troubleshoot", hub.kubeconfig()).args([name, "--in-cluster"]));
    assert!(said.code == Some(2) && said.stderr.contains("only a hub was named"), "{said:?}");
    // Nobody gives the right.
    let local = user_with(cluster, "outsider", &["troubleshoot.yaml"]);
    let said =
        run(kubectl_ocm("troubleshoot", &local).args([name, KNOWN, &hub_access(hub), "--in-cluster", "--output=json"]));
    assert!(said.code == Some(3) && !said.stderr.contains("starting a pod"), "{said:?}");
    // Ctrl-C while it looks.
    let mut command = kubectl_ocm("troubleshoot", cluster.kubeconfig());
    command.args([name, KNOWN, &hub_access(hub), "--in-cluster"]).stdout(Stdio::null());
    let mut looking = command.spawn().expect("it starts");
    let jobs = || cluster.kubectl(&["get", "jobs", "--namespace", AGENTS, "--output=name"]).expect("a list");
    until("it has made a Job", || {
        // On a busy machine its Job may be gone before anybody has looked.
        if looking.try_wait().expect("it runs").is_some() {
            looking = command.spawn().expect("it starts");
        }
        !jobs().is_empty()
    });
    let killed = Command::new("kill").args(["-INT", &looking.id().to_string()]).status();
    assert!(killed.expect("it runs").success());
    assert_eq!(looking.wait().expect("it ends").code(), Some(130));
    no_job_is_left(cluster);
}

#[test]
fn what_keeps_an_agent_from_registering_is_found() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let name = "t2";
    // Not joined yet.
    finds(&cluster, hub, name, "OCM2101");
    let right = JoinCommand::create(hub, &[]);
    let said = join(&cluster, name, &right.flags());
    assert_eq!(said.code, Some(0), "{said:?}");
    finds_after(&cluster, hub, name, "OCM2205", || forget_replaced(hub, name));
    let bootstrap = secret(&cluster, "bootstrap-hub-kubeconfig");
    // As if it had never come so far: agents may still register with what they had before.
    let forget = || {
        kubectl(&cluster, &["delete", "secret", "hub-kubeconfig-secret", "--ignore-not-found", "--namespace", AGENTS]);
        kubectl(hub, &["delete", "managedcluster", name, "--ignore-not-found", "--wait=true"]);
        kubectl(hub, &["delete", "csr", "--selector", &format!("open-cluster-management.io/cluster-name={name}")]);
    };
    let register_with = |kubeconfig: &str| {
        let mut secret = bootstrap.clone();
        // What our join noted of the hub does not go with other kubeconfigs.
        secret["metadata"]["annotations"] = Value::Null;
        secret["data"]["kubeconfig"] = STANDARD.encode(kubeconfig).into();
        kubectl(&cluster, &["delete", "secret", "bootstrap-hub-kubeconfig", "--namespace", AGENTS]);
        apply(&cluster, &secret);
    };
    let (server, ca, token) = (hub.server(), hub.ca_pem(), right.token.as_str());
    let claims = URL_SAFE_NO_PAD.encode(r#"{"exp":1000000000,"sub":"system:serviceaccount:x:y"}"#);
    let expired = format!("e30.{claims}.c2ln");
    let server_host = server.rsplit_once(':').map(|(host, _)| host).expect("a port");
    // A port at which nobody listens.
    let refused = format!("{server_host}:1");
    // Somebody whom another hub lets register.
    for words in [
        "create serviceaccount elsewhere --namespace=default",
        "create clusterrolebinding elsewhere --clusterrole=cluster-admin --serviceaccount=default:elsewhere",
    ] {
        kubectl(&cluster, &words.split(' ').collect::<Vec<_>>());
    }
    let elsewhere = cluster.kubectl(&["create", "token", "elsewhere", "--namespace=default"]).expect("a token");
    // What a fault is known by, whether it stands for others like it, and what the agent registers with.
    let faults: [(&str, bool, String); 8] = [
        ("OCM2113", true, kubeconfig(server, ca, "abcdef.0123456789abcdef")),
        ("OCM2108", false, kubeconfig("https://127.0.0.1:6443", ca, token)),
        ("OCM2109", true, kubeconfig(server, ca, &expired)),
        ("OCM2112", true, kubeconfig(server, cluster.ca_pem(), token)),
        ("OCM2111", true, kubeconfig(&refused, ca, token)),
        // A name that no DNS server knows: RFC 6761.
        ("OCM2111", false, kubeconfig("https://hub.invalid:6443", ca, token)),
        ("OCM2113", false, kubeconfig(cluster.server(), cluster.ca_pem(), token)),
        ("OCM2110", true, kubeconfig(cluster.server(), cluster.ca_pem(), elsewhere.trim())),
    ];
    for (id, _, kubeconfig) in series::cases(faults, |(_, stands_for_others, _)| *stands_for_others) {
        register_with(&kubeconfig);
        let found = finds_after(&cluster, hub, name, id, forget);
        let headline = found["clusters"][0]["headline"].as_str().unwrap_or_default();
        let summary = found["findings"][0]["summary"].as_str().unwrap_or_default();
        assert!(headline.ends_with(summary), "{headline}: {summary}");
        // A pod beside the agent sees the same.
        if ["OCM2111", "OCM2112", "OCM2113"].contains(&id) && kubeconfig.contains(server_host) {
            let within = "as a pod in open-cluster-management-agent of the managed cluster sees it";
            // On a busy machine it may not get its answer in time, and says so.
            let last = RefCell::new(None);
            until_within(
                Duration::from_secs(90),
                &format!("{id} {within}"),
                || format!("{last:?}"),
                || {
                    let said = look(&cluster, hub, name, &["--in-cluster", "--output=json"]);
                    let value: Value =
                        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
                    let first = &value["findings"][0];
                    let is_seen = first["id"] == id && first["evidence"].to_string().contains(within);
                    last.replace(Some(said));
                    is_seen
                },
            );
            no_job_is_left(&cluster);
        }
    }
    looks_from_within_that_fail(&cluster, hub, name);
    // What can be mended is, by somebody who holds the documented rights.
    let local = user_with(&cluster, "mender", &["troubleshoot.yaml", "troubleshoot-fix.yaml"]);
    let at_hub = user_with(hub, "mender", &["troubleshoot-hub.yaml", "troubleshoot-fix-hub.yaml"]);
    let at_hub = format!("--hub-kubeconfig={}", at_hub.display());
    let fix = |id: &str, flags: &[&str]| {
        let said =
            run(kubectl_ocm("troubleshoot", &local).args([name, KNOWN, &at_hub, id, "--output=json"]).args(flags));
        let value: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        (value["fix"].clone(), said)
    };
    let mends = |id: &str, name: &str| {
        let (fixed, said) = fix(&format!("--fix={id}"), &["--yes"]);
        assert_eq!(fixed["mended"], json!([format!("{id}:{name}")]), "{said:?}");
        said
    };
    register_with(&kubeconfig(server, ca, &expired));
    finds_after(&cluster, hub, name, "OCM2109", forget);
    let version = || secret_version(&cluster, "bootstrap-hub-kubeconfig");
    let before = version();
    for who in ["client", "server"] {
        let (fixed, said) = fix("--fix", &[&format!("--dry-run={who}")]);
        assert_eq!(said.code, Some(3), "{said:?}");
        assert_eq!(fixed["changes"][0]["objects"][0]["outcome"], "configured", "{said:?}");
    }
    assert_eq!(version(), before, "a dry run changes nothing");
    let said = mends("OCM2109", name);
    let new = object(&cluster, &["secret", "bootstrap-hub-kubeconfig", "--namespace", AGENTS]);
    let new = STANDARD.decode(new["data"]["kubeconfig"].as_str().expect("a kubeconfig")).expect("base64");
    let new: Value = serde_json::from_slice(&new).expect("it stays as it was but for the token");
    let new = new["users"][0]["user"]["token"].as_str().expect("a token");
    assert!(new != expired && !said.stdout.contains(new) && !said.stderr.contains(new), "a new one that nobody sees");
    finds_after(&cluster, hub, name, "OCM2205", || forget_replaced(hub, name));
    // The pod that holds the lease of an agent is gone.
    let lock = "lease/registration-agent-lock";
    let gone = json!({"spec": {"holderIdentity": "klusterlet-registration-agent-gone_x"}});
    kubectl(&cluster, &["patch", lock, "--namespace", AGENTS, "--type=merge", &format!("--patch={gone}")]);
    mends("OCM2116", name);
    let held = || cluster.kubectl(&["get", lock, "--namespace", AGENTS, "--output=json"]).unwrap_or_default();
    assert!(!held().contains("klusterlet-registration-agent-gone"), "{}", held());
    // A hub that lets nobody register.
    register_with(&kubeconfig(server, ca, token));
    kubectl(hub, &["delete", "clusterrolebinding", "open-cluster-management:bootstrap:agent-registration"]);
    finds_after(&cluster, hub, name, "OCM2117", forget);
    mends("OCM2117", name);
    kubectl(&cluster, &["delete", "secret", "bootstrap-hub-kubeconfig", "--namespace", AGENTS]);
    finds_after(&cluster, hub, name, "OCM2107", forget);
    apply(&cluster, &bootstrap);
    finds_after(&cluster, hub, name, "OCM2205", || forget_replaced(hub, name));
    let said = run(kubectl_ocm("accept", hub.kubeconfig()).args([name, "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    is_well(&cluster, hub, name);
    // From beside the agent the hub is reached, too, by somebody who holds the documented rights.
    let local = user_with(&cluster, "insider", &["troubleshoot.yaml", "troubleshoot-in-cluster.yaml"]);
    let said =
        run(kubectl_ocm("troubleshoot", &local).args([name, KNOWN, &hub_access(hub), "--in-cluster", "--output=json"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(seen_from_within(&cluster, hub, name, &[])["answer"], "known");
    no_job_is_left(&cluster);
    // The managed cluster alone knows as much of itself; conditions of its operator are behind for a while.
    let alone = || run(kubectl_ocm("troubleshoot", cluster.kubeconfig()).args::<_, &str>([]));
    let said = || format!("{:?}", alone());
    until_within(TIME, "all that is seen is well", said, || {
        let said = alone();
        said.code == Some(0) && said.stdout.starts_with("t2: steps 1 to 6 of 9 are done")
    });
}
