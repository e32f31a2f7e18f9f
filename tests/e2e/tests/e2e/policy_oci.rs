//! Modules of policies from a real registry: fetched once, kept on the hub, and believed by digest and signature alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use control_plane::Spec;
use e2e_tests::accept_support::Hub;
use e2e_tests::controller_support::{Controller, hub_as, shared};
use e2e_tests::manifests::apply;
use e2e_tests::registry_support::{Registry, USER};
use e2e_tests::roles::{unused_rights, user_with};
use e2e_tests::webhook_support::{Webhook, policy};
use e2e_tests::{SOON, Said, kubectl_ocm, object, run, until_within};
use rcgen::KeyPair;
use serde_json::{Value, json};

const NAMESPACE: &str = "ocm-policy-engine";

/// `kubectl ocm policy` as an administrator, whom the registries of this machine know nothing of.
fn ocm_policy(hub: &Hub, words: &[&str]) -> Said {
    let folder = hub.cluster.dir().expect("a folder").join("docker");
    run(kubectl_ocm("policy", hub.cluster.kubeconfig()).args(words).env("DOCKER_CONFIG", folder))
}

fn right(hub: &Hub, words: &[&str]) -> Said {
    let said = ocm_policy(hub, words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    said
}

/// Puts a module into a registry; returns the image with its digest.
fn push(hub: &Hub, module: &Path, reference: &str, words: &[&str]) -> String {
    let module = module.to_str().expect("text");
    right(hub, &[&["push", module, reference], words].concat()).stdout.trim().to_owned()
}

/// Status, reason and message of a condition.
fn condition(hub: &Hub, name: &str, type_: &str) -> [String; 3] {
    let policy = object(&hub.cluster, &["hpol", name]);
    let all = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let current = policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
    let one = all.into_iter().find(|one| current && one["type"] == type_).unwrap_or_default();
    ["status", "reason", "message"].map(|member| one[member].as_str().unwrap_or_default().to_owned())
}

fn becomes(hub: &Hub, name: &str, expected: [&str; 2]) -> String {
    until_within(
        SOON,
        &format!("{name}: {expected:?}"),
        || condition(hub, name, "Loaded").join(" "),
        || condition(hub, name, "Loaded")[..2] == expected,
    );
    condition(hub, name, "Loaded")[2].clone()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

const LOADED: [&str; 2] = ["True", "Loaded"];

/// Why the hub does not take a cluster of this name; empty: it does. Nothing is stored.
fn refused(hub: &Hub, name: &str) -> String {
    let file = hub.cluster.dir().expect("a folder").join("cluster.json");
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
        "spec": {"hubAcceptsClient": false},
    });
    fs::write(&file, cluster.to_string()).expect("it is written");
    let file = file.to_str().expect("text");
    run(hub.cluster.kubectl_command().args(["create", "--dry-run=server", "--filename", file])).stderr
}

/// Waits until the hub takes no cluster of this name, and says so with these words.
fn refuses(hub: &Hub, name: &str, words: &[&str]) {
    let says_all = || {
        let said = refused(hub, name);
        words.iter().all(|word| said.contains(word))
    };
    until_within(SOON, &format!("{name} is refused with {words:?}"), || refused(hub, name), says_all);
}

fn takes(hub: &Hub, name: &str) {
    until_within(SOON, &format!("{name} is taken"), || refused(hub, name), || refused(hub, name).is_empty());
}

/// A file beside the hub.
fn write(hub: &Hub, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let file = hub.cluster.dir().expect("a folder").join(name);
    fs::write(&file, bytes).expect("it is written");
    file
}

/// The module of our contract that looks at names.
fn name_pattern() -> PathBuf {
    cli_tests::guests(&cli_tests::target(), &["name-pattern"]).expect("it is built").remove(0)
}

/// Where modules of other contracts are built.
fn cache() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A registry of this name, with nothing in it.
fn registry(hub: &Hub, name: &str) -> Registry {
    Registry::start(&hub.cluster.dir().expect("a folder").join(name), false)
}

/// The names of the objects in which modules are kept.
fn kept(hub: &Hub) -> Vec<String> {
    let words = ["get", "configmaps", "-n", NAMESPACE, "-l", "policy.kubectl-ocm.dev/store=modules", "-o", "name"];
    hub.cluster.kubectl(&words).expect("they are listed").lines().map(str::to_owned).collect()
}

#[test]
fn modules_of_every_contract_come_from_a_registry_and_stay_in_force_without_it() {
    let hub = shared(false);
    let mut registry = registry(&hub, "open");
    let place = |name: &str| format!("{}/policies/{name}:v1", registry.address);
    let kubewarden = write(&hub, "kubewarden.wasm", policy_tests::kubewarden(cache()));
    let rego = write(&hub, "rego.wasm", policy_tests::rego(cache(), "plain.rego", "ocm/decision").0);
    let ours = push(&hub, &name_pattern(), &place("ours"), &[]);
    let other = push(&hub, &name_pattern(), &place("other"), &["--layout", "kubewarden"]);
    let kubewarden = push(&hub, &kubewarden, &place("kubewarden"), &["--layout", "kubewarden"]);
    let rego = push(&hub, &rego, &place("rego"), &[]);
    let (patterns, prefix) = (json!({"patterns": ["prod-*"]}), json!({"prefix": "prod-"}));
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure(&hub.cluster);
    let rights = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let controller = Controller::start_as(&rights);
    for (name, image, settings, kind) in [
        ("ours", &ours, &patterns, "component"),
        ("other", &other, &patterns, "component"),
        ("warden", &kubewarden, &prefix, "kubewarden-wapc"),
        ("rego", &rego, &prefix, "opa"),
    ] {
        policy(&hub.cluster, name, json!({"module": {"oci": {"image": image}}, "settings": settings}));
        becomes(&hub, name, LOADED);
        assert_eq!(object(&hub.cluster, &["hpol", name])["status"]["kind"], json!(kind), "{name}");
    }
    // The same module from a web server, which is the registry here.
    let digest = object(&hub.cluster, &["hpol", "rego"])["status"]["sha256"].as_str().expect("a digest").to_owned();
    let url = format!("http://{}/v2/policies/rego/blobs/sha256:{digest}", registry.address);
    policy(&hub.cluster, "file", json!({"module": {"url": {"url": url, "sha256": digest}}, "settings": prefix}));
    becomes(&hub, "file", LOADED);
    takes(&hub, "prod-1");
    // Each of them refuses it.
    let all = "denied by policies file, other, ours, rego, warden";
    refuses(&hub, "test-1", &[all]);
    let table = hub.cluster.kubectl(&["get", "hpol", "ours"]).expect("it is listed");
    assert!(table.contains(&ours), "{table}");
    let said = right(&hub, &["describe", "ours"]);
    assert!(said.stdout.contains(&format!("image {ours}\n")), "{said:?}");
    // The module of our contract is kept once, and so is that of Rego, though two policies name each of them.
    let modules = kept(&hub).iter().filter(|name| name.contains("/ocm-policy-module-") && name.ends_with("-0")).count();
    assert_eq!((modules, kept(&hub).iter().filter(|name| name.contains("/ocm-policy-image-")).count()), (3, 4));

    // Nobody needs the registry any more.
    registry.kill();
    drop(controller);
    let webhook = webhook.restart(&hub.cluster);
    webhook.configure(&hub.cluster);
    refuses(&hub, "test-2", &[all]);
    takes(&hub, "prod-2");
    let controller = Controller::start_as(&rights);
    policy(&hub.cluster, "again", json!({"module": {"oci": {"image": ours}}, "settings": patterns}));
    becomes(&hub, "again", LOADED);
    assert!(!controller.says.lock().expect("nobody failed").contains("is not on the hub"), "nothing was fetched");

    // What nobody wants is deleted, and what somebody else deletes cannot be fetched again without a registry.
    hub.cluster.kubectl(&["delete", "hpol", "rego", "file"]).expect("they are deleted");
    until_within(
        Duration::from_secs(150),
        "two modules are kept",
        || kept(&hub).join(" "),
        || kept(&hub).iter().filter(|name| name.ends_with("-0")).count() == 2,
    );
    takes(&hub, "prod-3");
}

#[test]
fn a_wrong_signature_a_wrong_digest_and_a_missing_password_keep_a_policy_closed() {
    let hub = shared(false);
    let registry = registry(&hub, "closed");
    let place = |name: &str| format!("{}/policies/{name}:v1", registry.address);
    let [key, stranger] = [(); 2].map(|()| KeyPair::generate().expect("a key"));
    let file = write(&hub, "key.pem", key.serialize_pem());
    let public = write(&hub, "key.pub", key.public_key_pem());
    let other = write(&hub, "other.pub", stranger.public_key_pem());
    let signed = push(&hub, &name_pattern(), &place("signed"), &["--sign-key", file.to_str().expect("text")]);
    // The same module packed alike would be the same image, and as well signed.
    let plain = push(&hub, &name_pattern(), &place("plain"), &["--layout", "kubewarden"]);
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure(&hub.cluster);
    let _controller = Controller::start(&hub);
    let spec = |image: &str, key: Option<&KeyPair>| {
        let mut oci = json!({"image": image});
        if let Some(key) = key {
            oci["signature"] = json!({"publicKey": key.public_key_pem()});
        }
        json!({"module": {"oci": oci}, "settings": {"patterns": ["prod-*"]}})
    };

    policy(&hub.cluster, "names", spec(&signed, Some(&stranger)));
    let said = becomes(&hub, "names", ["False", "SignatureWrong"]);
    assert!(
        said.contains("no version is in force") && said.contains("none of its signatures is by this key"),
        "{said}"
    );
    let said = condition(&hub, "names", "Degraded");
    assert!(said[0] == "True" && said[1] == "SignatureWrong" && said[2].contains("see who has signed it"), "{said:?}");
    refuses(&hub, "prod-1", &["policy names: the policy cannot be loaded"]);
    assert!(kept(&hub).is_empty(), "nothing of it came to the hub");
    // By the right key it is in force, and stays so when a wrong one is named afterwards.
    policy(&hub.cluster, "names", spec(&signed, Some(&key)));
    becomes(&hub, "names", LOADED);
    refuses(&hub, "test-1", &["denied by policy names"]);
    takes(&hub, "prod-1");
    policy(&hub.cluster, "names", spec(&signed, Some(&stranger)));
    let said = becomes(&hub, "names", ["False", "SignatureWrong"]);
    assert!(said.contains("stays in force"), "{said}");
    takes(&hub, "prod-1");
    policy(&hub.cluster, "names", spec(&signed, Some(&key)));
    becomes(&hub, "names", LOADED);

    // That an image is on the hub for a policy that wants no signature makes it none that is signed.
    policy(&hub.cluster, "plain", spec(&plain, None));
    becomes(&hub, "plain", LOADED);
    policy(&hub.cluster, "wants", spec(&plain, Some(&key)));
    let said = becomes(&hub, "wants", ["False", "SignatureMissing"]);
    assert!(said.contains("it is not signed"), "{said}");
    refuses(&hub, "prod-1", &["policy wants: the policy cannot be loaded"]);
    hub.cluster.kubectl(&["delete", "hpol", "wants", "plain"]).expect("they are deleted");

    // What is not what its digest says is not loaded, wherever it was changed.
    let rego = policy_tests::rego(cache(), "plain.rego", "ocm/decision").0;
    let module = write(&hub, "rego.wasm", &rego);
    let image = push(&hub, &module, &place("changed"), &[]);
    let digest = sha256(&rego);
    registry.tamper(&digest, &fs::read(name_pattern()).expect("a module")[..rego.len().min(100)]);
    let mut changed = spec(&image, None);
    changed["settings"] = json!({"prefix": "prod-"});
    policy(&hub.cluster, "changed", changed.clone());
    let said = becomes(&hub, "changed", ["False", "DigestDiffers"]);
    assert!(said.contains(&digest), "{said}");
    refuses(&hub, "prod-1", &["policy changed: the policy cannot be loaded"]);
    registry.tamper(&digest, &rego);
    // It is tried again when the policy changes, or after a while.
    changed["onError"] = json!("Hold");
    changed["module"]["oci"]["image"] = json!(image.replace(":v1@", "@"));
    policy(&hub.cluster, "changed", changed);
    becomes(&hub, "changed", LOADED);
    takes(&hub, "prod-1");
    hub.cluster.kubectl(&["delete", "hpol", "changed"]).expect("it is deleted");
    for (sentence, image, reason) in [
        ("does not have", format!("{}/policies/none@sha256:{}", registry.address, "0".repeat(64)), "ModuleNotFound"),
        ("connection refused", format!("127.0.0.1:1/policies/none@sha256:{}", "0".repeat(64)), "SourceUnreachable"),
    ] {
        policy(&hub.cluster, "away", spec(&image, None));
        let said = becomes(&hub, "away", ["False", reason]);
        assert!(said.contains(sentence), "{said}");
    }
    hub.cluster.kubectl(&["delete", "hpol", "away"]).expect("it is deleted");

    // Somebody changes what is kept on the hub: it is not believed, and fetched again.
    let signed_digest = object(&hub.cluster, &["hpol", "names"])["status"]["sha256"].as_str().expect("one").to_owned();
    let part = format!("ocm-policy-module-{signed_digest}-0");
    hub.cluster.kubectl(&["delete", "configmap", &part, "-n", NAMESPACE]).expect("it is deleted");
    // Another module, packed as the hub keeps them.
    let packed = Command::new("gzip").arg("--stdout").arg(&module).output().expect("gzip runs").stdout;
    let forged = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": part, "namespace": NAMESPACE, "labels": {"policy.kubectl-ocm.dev/store": "modules"}},
        "binaryData": {"part": base64::engine::general_purpose::STANDARD.encode(packed)}, "data": {"parts": "1"},
    });
    apply(&hub.cluster, &forged);
    policy(&hub.cluster, "second", spec(&signed, Some(&key)));
    becomes(&hub, "second", LOADED);
    assert_eq!(object(&hub.cluster, &["hpol", "second"])["status"]["sha256"], json!(signed_digest));
    let part = object(&hub.cluster, &["configmap", &part, "-n", NAMESPACE]);
    assert_ne!(part["binaryData"], forged["binaryData"]);

    // The commands say the same on this machine.
    let (public, other) = (public.to_str().expect("text"), other.to_str().expect("text"));
    assert_eq!(right(&hub, &["verify", &place("signed"), "--key", public]).stdout.trim(), signed);
    for (reference, key, why) in [
        (place("signed"), other, "none of its signatures is by this key"),
        (place("plain"), public, "it is not signed"),
        (place("none"), public, "does not have"),
    ] {
        let said = ocm_policy(&hub, &["verify", &reference, "--key", key]);
        assert!(said.code == Some(1) && said.stdout.is_empty() && said.stderr.contains(why), "{said:?}");
    }
    let pulled = write(&hub, "pulled.wasm", "");
    let pulled = pulled.to_str().expect("text");
    let said = ocm_policy(&hub, &["pull", &signed, "--key", other, "-o", pulled]);
    assert!(said.code == Some(1) && fs::read(pulled).expect("a file").is_empty(), "{said:?}");
    right(&hub, &["pull", &signed, "--key", public, "-o", pulled]);
    assert_eq!(fs::read(pulled).expect("a file"), fs::read(name_pattern()).expect("a file"));
}

#[test]
fn credentials_are_those_of_a_secret_on_the_hub_and_those_of_docker_here() {
    let hub = shared(false);
    let folder = hub.cluster.dir().expect("a folder").to_owned();
    let registry = Registry::start(&folder.join("secret"), true);
    let reference = format!("{}/policies/names:v1", registry.address);
    let module = name_pattern();
    let module = module.to_str().expect("text");
    let said = ocm_policy(&hub, &["push", module, &reference]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("with no credentials (HTTP 401)") && said.stderr.contains("docker login"), "{said:?}");
    let login = |password: &str| {
        let auth = base64::engine::general_purpose::STANDARD.encode(format!("{}:{password}", USER.0));
        let text = json!({"auths": {(registry.address.clone()): {"auth": auth}}}).to_string();
        fs::create_dir_all(folder.join("docker")).expect("a folder");
        fs::write(folder.join("docker/config.json"), text).expect("it is written");
    };
    login("wrong");
    let said = ocm_policy(&hub, &["push", module, &reference]);
    assert!(said.code == Some(1) && said.stderr.contains("with the credentials that it was given"), "{said:?}");
    login(USER.1);
    let image = push(&hub, Path::new(module), &reference, &[]);

    let _controller = Controller::start(&hub);
    let mut spec = json!({"module": {"oci": {"image": image}}, "settings": {"patterns": ["prod-*"]}});
    policy(&hub.cluster, "names", spec.clone());
    let said = becomes(&hub, "names", ["False", "SourceUnauthorized"]);
    assert!(said.contains("spec.module.oci.pullSecret"), "{said}");
    spec["module"]["oci"]["pullSecret"] = json!({"namespace": NAMESPACE, "name": "registry"});
    policy(&hub.cluster, "names", spec.clone());
    until_within(
        SOON,
        "the Secret cannot be read",
        || condition(&hub, "names", "Loaded").join(" "),
        || condition(&hub, "names", "Loaded")[2].contains("needs a Role that allows to get it"),
    );
    let secret = ["create", "secret", "docker-registry", "registry", "-n", NAMESPACE];
    let server = format!("--docker-server={}", registry.address);
    let (user, password) = (format!("--docker-username={}", USER.0), format!("--docker-password={}", USER.1));
    hub.cluster
        .kubectl(&[&secret[..], &[server.as_str(), user.as_str(), password.as_str()]].concat())
        .expect("it is created");
    let role =
        ["create", "role", "pull", "-n", NAMESPACE, "--verb=get", "--resource=secrets", "--resource-name=registry"];
    hub.cluster.kubectl(&role).expect("it is created");
    let binding = ["create", "rolebinding", "pull", "-n", NAMESPACE, "--role=pull", "--user=controller"];
    hub.cluster.kubectl(&binding).expect("it is created");
    spec["onError"] = json!("Hold");
    spec["module"]["oci"]["image"] = json!(image.replace(":v1@", "@"));
    policy(&hub.cluster, "names", spec.clone());
    becomes(&hub, "names", LOADED);

    // The module is loaded here first, and the command waits until the hub has it.
    let file = |spec: &Value| {
        let object = json!({"apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
                            "metadata": {"name": "applied"}, "spec": spec});
        write(&hub, "applied.json", object.to_string()).to_str().expect("text").to_owned()
    };
    right(&hub, &["apply", "-f", &file(&spec), "--wait"]);
    let applied = object(&hub.cluster, &["hpol", "applied"]);
    assert!(applied["spec"]["sha256"].is_null() && applied["status"]["sha256"].is_string(), "{applied:#}");
    let mut wrong = spec.clone();
    wrong["settings"] = json!({"pattern": "x"});
    let said = ocm_policy(&hub, &["apply", "-f", &file(&wrong)]);
    assert!(said.code == Some(2) && said.stderr.contains("unknown field `pattern`"), "{said:?}");
    drop(registry);
    let said = ocm_policy(&hub, &["apply", "-f", &file(&spec)]);
    assert!(said.code == Some(1) && said.stderr.contains("--without-fetch"), "{said:?}");
    assert!(said.stderr.contains("nothing was applied") && said.stderr.contains("connection refused"), "{said:?}");
    right(&hub, &["apply", "-f", &file(&spec), "--without-fetch", "--wait"]);
}

/// Writes an object into the place where modules are kept that nobody wants, and waits until it is deleted.
fn is_tidied(hub: &Hub) {
    let orphan = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "ocm-policy-module-orphan", "namespace": NAMESPACE,
            "labels": {"policy.kubectl-ocm.dev/store": "modules"},
        },
    });
    apply(&hub.cluster, &orphan);
    let is_gone = || !kept(hub).contains(&"configmap/ocm-policy-module-orphan".to_owned());
    until_within(Duration::from_secs(60), "what nobody wants is deleted", || kept(hub).join(" "), is_gone);
}

#[test]
fn a_candidate_comes_from_a_registry_and_what_was_in_force_before_stays_on_the_hub() {
    let hub = hub_as(&Spec::api("policy-oci-candidate").audited(true), false);
    let mut registry = registry(&hub, "candidate");
    let place = |name: &str| format!("{}/policies/{name}:v1", registry.address);
    let first = fs::read(name_pattern()).expect("a module");
    // The same policy with a note in it, which makes it another module.
    let variant = |note: u8| [first.as_slice(), &[0, 3, 1, b'n', note]].concat();
    let (second, third) = (write(&hub, "second.wasm", variant(1)), write(&hub, "third.wasm", variant(2)));
    let images = [(name_pattern(), "first"), (second, "second"), (third, "third")]
        .map(|(file, name)| push(&hub, &file, &place(name), &[]));
    let parts = [first.clone(), variant(1), variant(2)].map(|bytes| format!("ocm-policy-module-{}-0", sha256(&bytes)));
    let is_kept = |index: usize| kept(&hub).contains(&format!("configmap/{}", parts[index]));
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure(&hub.cluster);
    let controller = Controller::start(&hub);
    let spec =
        |index: usize, settings: Value| json!({"module": {"oci": {"image": images[index]}}, "settings": settings});
    let (prod, dev) = (json!({"patterns": ["prod-*"]}), json!({"patterns": ["dev-*"]}));

    // Several that want the same at once, a candidate among them.
    let mut tried = spec(0, prod.clone());
    tried["candidate"] = spec(0, dev.clone());
    for (name, spec) in [("names", tried.clone()), ("twin", spec(0, prod.clone())), ("other", spec(0, prod.clone()))] {
        policy(&hub.cluster, name, spec);
    }
    for name in ["names", "twin", "other"] {
        becomes(&hub, name, LOADED);
    }
    assert!(
        !controller.says.lock().expect("nobody failed").contains("is not on the hub"),
        "nobody was in another's way"
    );
    hub.cluster.kubectl(&["delete", "hpol", "twin", "other"]).expect("they are deleted");

    // What somebody has damaged is fetched again, though no policy has changed.
    let part = ["configmap", &parts[0], "-n", NAMESPACE];
    // It is gone for a moment while it is replaced.
    let content = || {
        let words = [&["get"], &part[..], &["-o", "jsonpath={.binaryData}"]].concat();
        hub.cluster.kubectl(&words).unwrap_or_default()
    };
    let before = content();
    // So is what is known of its image.
    let (_, digest) = images[0].rsplit_once("sha256:").expect("a digest");
    let about = format!("configmap/ocm-policy-image-{digest}");
    let signatures = || hub.cluster.kubectl(&["get", &about, "-n", NAMESPACE, "-o", "jsonpath={.data}"]).expect("read");
    let known = signatures();
    let patch = ["patch", &about, "-n", NAMESPACE, "--type=merge", "--patch", r#"{"data":{"signatures":"none"}}"#];
    hub.cluster.kubectl(&patch).expect("it is changed");
    hub.cluster.kubectl(&[&["delete"], &part[..]].concat()).expect("it is deleted");
    let forged = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": parts[0], "namespace": NAMESPACE, "labels": {"policy.kubectl-ocm.dev/store": "modules"}},
        "binaryData": {"part": "AAAA"}, "data": {"parts": "1"},
    });
    apply(&hub.cluster, &forged);
    until_within(Duration::from_secs(60), "it is repaired", content, || content() == before);
    until_within(SOON, "its image is known again", signatures, || signatures() == known);

    // A candidate of its own module, which is promoted.
    tried["candidate"] = spec(1, dev);
    policy(&hub.cluster, "names", tried);
    let candidate = || {
        let policy = object(&hub.cluster, &["hpol", "names"]);
        let current = policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
        if current { policy["status"]["candidate"].clone() } else { Value::Null }
    };
    let digest = json!(sha256(&variant(1)));
    until_within(SOON, "it is tried", || candidate().to_string(), || candidate()["sha256"] == digest);
    assert!(candidate()["failed"].is_null(), "{}", candidate());
    right(&hub, &["promote", "names", "--yes"]);
    becomes(&hub, "names", LOADED);
    takes(&hub, "dev-1");
    refuses(&hub, "prod-1", &["denied by policy names"]);
    is_tidied(&hub);
    assert!(is_kept(0) && is_kept(1), "the one before stays for a rollback: {:?}", kept(&hub));

    // A version that cannot be loaded: the one in force may be wanted again.
    let promoted = object(&hub.cluster, &["hpol", "names"])["spec"].clone();
    let replaced = |spec: &Value| {
        let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]).to_string();
        hub.cluster.kubectl(&["patch", "hpol", "names", "--type=json", "-p", &patch]).expect("it is patched");
    };
    replaced(&spec(2, json!({"pattern": "x"})));
    becomes(&hub, "names", ["False", "LoadFailed"]);
    assert!(is_kept(2));
    registry.kill();
    // Longer than it takes until it is looked at what is kept.
    std::thread::sleep(Duration::from_secs(40));
    assert!(is_kept(0) && is_kept(1), "{:?}", kept(&hub));
    replaced(&promoted);
    becomes(&hub, "names", LOADED);
    is_tidied(&hub);
    assert!(is_kept(0) && is_kept(1) && !is_kept(2), "{:?}", kept(&hub));

    // Back without the registry.
    right(&hub, &["rollback", "names", "--yes"]);
    becomes(&hub, "names", LOADED);
    takes(&hub, "prod-1");
    refuses(&hub, "dev-1", &["denied by policy names"]);

    // Each right that the controller has for modules was used.
    let unused = unused_rights(&hub.cluster, "policy-controller.yaml", "controller");
    assert!(!unused.iter().any(|right| right.ends_with(" configmaps in ocm-policy-engine")), "{unused:?}");
}
