//! The kind HubPolicy on a real API server: what it takes, what it refuses and with which words, and what kubectl shows.
//!
//! `cargo test -p e2e-tests --test e2e hub_policy::`; it needs no root.

use std::time::Duration;

use e2e_tests::shared_hub::{SharedHub, hub};
use e2e_tests::{object, run, until_within};
use ocm_api::policy::{MAX_FUEL, MAX_MEMORY_BYTES, MIN_MEMORY_BYTES, Module, OnError, PolicyMode};
use ocm_api::{HubPolicy, crds};
use serde_json::{Value, json};

/// An API server that serves the kind.
struct Hub(SharedHub);

impl Hub {
    fn start() -> Self {
        let hub = Self(hub());
        hub.apply(&crds::hub_policy_manifest().body().clone()).expect("the definition is applied");
        let name = format!("crd/{}", crds::HUB_POLICY_NAME);
        for condition in ["NamesAccepted", "Established"] {
            let condition = format!("--for=condition={condition}");
            hub.0.cluster.kubectl(&["wait", &condition, "--timeout=60s", &name]).expect("the kind is served");
        }
        hub
    }

    /// Applies an object as administrators do, with the checks that kubectl makes by default.
    fn apply(&self, object: &Value) -> Result<String, String> {
        self.send(&["apply", "--server-side"], object)
    }

    fn send(&self, verb: &[&str], object: &Value) -> Result<String, String> {
        let file = self.0.cluster.dir().expect("it is ours").join("object.json");
        std::fs::write(&file, object.to_string()).expect("it is written");
        let said = run(self.0.cluster.kubectl_command().args(verb).arg("--filename").arg(&file));
        if said.code == Some(0) { Ok(said.stdout) } else { Err(said.stderr) }
    }

    fn policy(&self, name: &str, spec: &Value) -> Result<String, String> {
        self.apply(&policy(name, spec))
    }

    fn get(&self, name: &str) -> Value {
        object(&self.0.cluster, &["hubpolicies", name])
    }

    fn show(&self, words: &[&str]) -> String {
        self.0.cluster.kubectl(words).expect("kubectl shows it")
    }
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1",
        "kind": "HubPolicy",
        "metadata": { "name": name },
        "spec": spec,
    })
}

fn entry() -> Value {
    json!({ "namespace": "policies", "name": "quota.v2", "key": "quota.wasm" })
}

#[test]
fn the_definition_is_structural_and_right_policies_are_stored_as_they_are_written() {
    let hub = Hub::start();
    let definition = object(&hub.0.cluster, &["crd", crds::HUB_POLICY_NAME]);
    let conditions = definition["status"]["conditions"].as_array().expect("it has conditions");
    assert!(conditions.iter().all(|condition| condition["type"] != "NonStructuralSchema"), "{conditions:?}");
    // What the server stores is what we say: nothing of the definition is dropped or filled in.
    let ours = crds::hub_policy_manifest();
    for part in ["names", "versions", "scope", "group"] {
        assert_eq!(definition["spec"][part], ours.body()["spec"][part], "{part}");
    }

    // What is not said is the strictest, and it is the server that says so.
    hub.policy("least", &json!({ "module": { "builtin": "csr-hygiene" } })).expect("it is applied");
    let least = json!({ "module": { "builtin": "csr-hygiene" }, "mode": "Enforce", "onError": "Deny" });
    assert_eq!(hub.get("least")["spec"], least);

    let full = json!({
        "module": { "configMap": entry() },
        "sha256": "0123456789abcdef".repeat(4),
        "settings": { "most": 3, "any": { "depth": [1, 2.5, "three", { "four": true }] } },
        "mode": "Audit",
        "onError": "Hold",
        "grants": { "edits": [
            { "edit": "label", "key": "example.com/*" },
            { "edit": "annotation", "key": "*" },
            { "edit": "taint", "key": "example.com/quarantine" },
            { "edit": "cluster-set" },
            { "edit": "lease-duration" },
        ] },
        "limits": { "fuel": MAX_FUEL, "memoryBytes": MAX_MEMORY_BYTES },
        "match": { "conditions": [{ "name": "n", "expression": "request.dryRun" }] },
        "tests": "cases: []",
    });
    let path =
        json!({ "module": { "path": "team/a.v1.wasm" }, "sha256": "0".repeat(64), "mode": "Audit", "onError": "Deny" });
    hub.policy("path", &path).expect("it is applied");
    assert_eq!(hub.get("path")["spec"], path);
    hub.policy("full", &full).expect("it is applied");
    assert_eq!(hub.get("full")["spec"], full);
    let approves =
        json!({ "module": { "builtin": "inventory" }, "mode": "Enforce", "onError": "Deny", "autoApprove": true });
    hub.policy("approves", &approves).expect("it is applied");
    assert_eq!(hub.get("approves")["spec"], approves);
    let secret = json!({ "module": { "secret": entry() }, "mode": "Warn", "limits": { "fuel": 1, "memoryBytes": MIN_MEMORY_BYTES } });
    hub.policy(&"n".repeat(63), &secret).expect("it is applied");

    let key = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n";
    let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let digest = "0".repeat(64);
    for (name, source) in [
        ("image", json!({ "oci": { "image": format!("ghcr.io/o/p/q-r@sha256:{digest}") } })),
        ("local-image", json!({ "oci": { "image": format!("127.0.0.1:5000/p:v1.2@sha256:{digest}") } })),
        ("localhost-image", json!({ "oci": { "image": format!("localhost/p_q@sha256:{digest}") } })),
        ("ipv6-image", json!({ "oci": { "image": format!("[fd00::1]:5000/p@sha256:{digest}") } })),
        (
            "signed-image",
            json!({ "oci": {
                "image": format!("registry.example.com/p@sha256:{digest}"), "caCertificates": certificate,
                "signature": { "publicKey": key }, "pullSecret": { "namespace": "n", "name": "registry.v1" },
            } }),
        ),
        ("file", json!({ "url": { "url": "https://example.com:8443/p.wasm?v=1", "sha256": digest } })),
        ("local-file", json!({ "url": { "url": "http://127.0.0.1:8080/p.wasm", "sha256": digest } })),
    ] {
        hub.policy(name, &json!({ "module": source })).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(hub.get(name)["spec"]["module"], source);
        let typed: HubPolicy = serde_json::from_value(hub.get(name)).expect("it is read");
        assert_eq!(serde_json::to_value(&typed.spec.module).expect("it is written"), source);
    }

    // The types read what the server stores, and lose nothing of it.
    let typed: HubPolicy = serde_json::from_value(hub.get("full")).expect("it is read");
    assert!(matches!(typed.spec.module.module(), Some(Module::ConfigMap(entry)) if entry.key == "quota.wasm"));
    assert_eq!((&typed.spec.mode, &typed.spec.on_error), (&PolicyMode::Audit, &OnError::Hold));
    assert_eq!(serde_json::to_value(&typed.spec).expect("it is written"), full);

    // A field that nobody knows is told of by kubectl, and dropped where that is not asked for.
    let unknown = json!({ "module": { "builtin": "b", "image": { "reference": "example.com/b:1" } } });
    let error = hub.policy("unknown", &unknown).expect_err("it is refused");
    assert!(error.contains(".spec.module.image"), "{error}");
}

#[test]
fn wrong_policies_are_refused_with_a_sentence_that_names_the_field() {
    let hub = Hub::start();
    // Server-side apply has words of its own for a wrong type.
    let create = |object: &Value| hub.send(&["create"], object);
    let builtin = || json!({ "builtin": "b" });
    let edits = |edits: Value| json!({ "module": builtin(), "grants": { "edits": edits } });
    let limits = |limits: Value| json!({ "module": builtin(), "limits": limits });
    let digest = "0".repeat(64);
    let one =
        "spec.module: Invalid value: module must have exactly one of builtin, configMap, secret, oci, url and path";
    let key = "key must be set with the edits label, annotation and taint, and with no other";
    let most = format!("spec.limits.fuel in body should be less than or equal to {MAX_FUEL}");
    let memory = format!("spec.limits.memoryBytes in body should be less than or equal to {MAX_MEMORY_BYTES}");
    let page = format!("spec.limits.memoryBytes in body should be greater than or equal to {MIN_MEMORY_BYTES}");
    let mut entry_without_key = entry();
    entry_without_key.as_object_mut().expect("an object").remove("key");
    let oci = |image: &str| json!({ "module": { "oci": { "image": image } } });
    let url = |url: &str| json!({ "module": { "url": { "url": url, "sha256": "0".repeat(64) } } });
    let pinned = format!("registry.example.com/p@sha256:{digest}");
    let image = "image must name a registry, a repository and a digest, such as \
                 registry.example.com/policies/quota@sha256:DIGEST";
    let https = "url must be https://HOST/PATH without credentials";
    let ours = json!({ "namespace": "ocm-policy-engine", "name": "n", "key": "k" });
    let pin = "sha256 must be set for a module in an object of namespace ocm-policy-engine";
    let cases = [
        (json!({}), "spec.module: Required value"),
        (oci("registry.example.com/p:v1"), image),
        (oci("registry.example.com/p"), image),
        (oci(&format!("library/p@sha256:{digest}")), image),
        (oci(&format!("registry.example.com@sha256:{digest}")), image),
        (oci(&format!("registry.example.com/P@sha256:{digest}")), image),
        (oci(&format!("https://registry.example.com/p@sha256:{digest}")), image),
        (oci(&format!("registry.example.com/p@sha256:{}", "A".repeat(64))), image),
        (oci(&"x".repeat(600)), "spec.module.oci.image: Too long"),
        (
            json!({ "module": { "oci": { "image": pinned, "signature": { "publicKey": "cosign.pub" } } } }),
            "publicKey must be a public key in PEM",
        ),
        (
            json!({ "module": { "oci": { "image": pinned, "caCertificates": "ca.crt" } } }),
            "caCertificates must be certificates in PEM",
        ),
        (
            json!({ "module": { "oci": { "image": pinned, "pullSecret": { "name": "n" } } } }),
            "spec.module.oci.pullSecret.namespace: Required value",
        ),
        (json!({ "module": { "oci": { "image": pinned }, "builtin": "b" } }), one),
        (url("http://example.com/p.wasm"), https),
        (url("https://user:password@example.com/p.wasm"), https),
        (url("https://example.com"), https),
        (url("http://127.0.0.1.example.com/p.wasm"), https),
        (url("file:///p.wasm"), https),
        (json!({ "module": { "url": { "url": "https://example.com/p" } } }), "spec.module.url.sha256: Required value"),
        (
            json!({ "module": builtin(), "autoApprove": true, "mode": "Warn" }),
            "spec.autoApprove: Invalid value: autoApprove needs mode Enforce",
        ),
        (json!({ "module": builtin(), "autoApprove": true, "mode": "Audit" }), "autoApprove needs mode Enforce"),
        (json!({ "module": builtin(), "operations": ["join", "migrate"] }), "spec.operations[1]: Unsupported value"),
        (json!({ "module": builtin(), "operations": ["join", "join"] }), "spec.operations[1]: Duplicate value"),
        (
            json!({ "module": builtin(), "match": { "clusterSelector": { "matchExpressions": [{ "key": "a", "operator": "In" }] } } }),
            "values must be set with the operators In and NotIn, and with no other",
        ),
        (
            json!({ "module": builtin(), "match": { "clusterSelector": { "matchExpressions": [{ "key": "a", "operator": "Gt" }] } } }),
            "operator: Unsupported value",
        ),
        (
            json!({ "module": builtin(), "match": { "conditions": [{ "name": "n", "expression": "" }] } }),
            "spec.match.conditions[0].expression: Invalid value",
        ),
        (
            json!({ "module": builtin(), "match": { "conditions": [
                { "name": "n", "expression": "true" }, { "name": "n", "expression": "false" },
            ] } }),
            "spec.match.conditions[1]: Duplicate value",
        ),
        (json!({ "module": {} }), one),
        (json!({ "module": { "builtin": "b", "configMap": entry() } }), one),
        (json!({ "module": { "configMap": entry(), "secret": entry() } }), one),
        (json!({ "module": { "builtin": "b", "configMap": entry(), "secret": entry() } }), one),
        (json!({ "module": { "configMap": ours } }), pin),
        (json!({ "module": { "secret": ours } }), pin),
        (json!({ "module": builtin(), "candidate": { "module": { "configMap": ours } } }), pin),
        (json!({ "module": { "path": "p.wasm" } }), "sha256 must be set for module.path"),
        (
            json!({ "module": builtin(), "candidate": { "module": { "path": "p.wasm" } } }),
            "sha256 must be set for module.path",
        ),
        (json!({ "module": { "path": "../token" }, "sha256": digest }), "spec.module.path in body should match"),
        (json!({ "module": { "path": "/token" }, "sha256": digest }), "spec.module.path in body should match"),
        (json!({ "module": { "path": "a/.b" }, "sha256": digest }), "spec.module.path in body should match"),
        (json!({ "module": builtin(), "tests": "" }), "spec.tests in body should be at least 1 chars long"),
        (json!({ "module": builtin(), "tests": "x".repeat(70_000) }), "spec.tests: Too long"),
        (json!({ "module": { "builtin": "Upper" } }), "spec.module.builtin in body should match"),
        (json!({ "module": { "builtin": "" } }), "spec.module.builtin in body should be at least 1 chars long"),
        (json!({ "module": { "builtin": "b".repeat(64) } }), "spec.module.builtin: Too long: may not be more than 63"),
        (json!({ "module": { "secret": entry_without_key } }), "spec.module.secret.key: Required value"),
        (
            json!({ "module": { "secret": { "namespace": "a/b", "name": "n", "key": "k" } } }),
            "spec.module.secret.namespace in body should match",
        ),
        (
            json!({ "module": { "secret": { "namespace": "a", "name": "../n", "key": "k" } } }),
            "spec.module.secret.name in body should match",
        ),
        (
            json!({ "module": { "secret": { "namespace": "a", "name": "n", "key": "a/b" } } }),
            "spec.module.secret.key in body should match",
        ),
        (
            json!({ "module": builtin(), "sha256": digest }),
            "spec.sha256: Invalid value: sha256 may not be set together with module.builtin",
        ),
        (json!({ "module": { "secret": entry() }, "sha256": "ABC" }), "spec.sha256 in body should match"),
        (json!({ "module": { "secret": entry() }, "sha256": "0".repeat(65) }), "spec.sha256: Too long"),
        (json!({ "module": builtin(), "mode": "enforce" }), "spec.mode: Unsupported value: \"enforce\""),
        (json!({ "module": builtin(), "onError": "Allow" }), "spec.onError: Unsupported value: \"Allow\""),
        (json!({ "module": builtin(), "settings": "free" }), "spec.settings in body must be of type object"),
        (json!({ "module": builtin(), "settings": [1] }), "spec.settings in body must be of type object"),
        (edits(json!([{ "edit": "label" }])), key),
        (edits(json!([{ "edit": "cluster-set", "key": "k" }])), key),
        (edits(json!([{ "edit": "name" }])), "spec.grants.edits[0].edit: Unsupported value: \"name\""),
        (edits(json!([{ "key": "k" }])), "spec.grants.edits[0].edit: Required value"),
        (edits(json!([{ "edit": "label", "key": "a*b" }])), "spec.grants.edits[0].key in body should match"),
        (edits(json!(vec![json!({ "edit": "cluster-set" }); 65])), "spec.grants.edits: Too many: 65"),
        (limits(json!({ "fuel": 0 })), "spec.limits.fuel in body should be greater than or equal to 1"),
        (limits(json!({ "fuel": MAX_FUEL + 1 })), &most),
        (limits(json!({ "memoryBytes": MAX_MEMORY_BYTES + 1 })), &memory),
        (limits(json!({ "memoryBytes": MIN_MEMORY_BYTES - 1 })), &page),
        (limits(json!({ "memoryBytes": "1Mi" })), "spec.limits.memoryBytes in body must be of type integer"),
    ];
    let mut wrong = Vec::new();
    for (spec, words) in &cases {
        match create(&policy("wrong", spec)) {
            Ok(_) => wrong.push(format!("{spec} is stored")),
            Err(error) if error.contains(words) => {}
            Err(error) => wrong.push(format!("{spec}: {words}\n  is not in: {error}")),
        }
    }
    let name = "metadata.name must be a DNS label";
    for long in ["n".repeat(64), "a.b".to_owned()] {
        match create(&policy(&long, &json!({ "module": builtin() }))) {
            Ok(_) => wrong.push(format!("{long} is stored")),
            Err(error) if error.contains(name) => {}
            Err(error) => wrong.push(format!("{long}: {error}")),
        }
    }
    let bare =
        json!({ "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": { "name": "bare" } });
    match create(&bare) {
        Err(error) if error.contains("spec: Required value") => {}
        other => wrong.push(format!("without a spec: {other:?}")),
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(hub.show(&["get", "hubpolicies", "--output=name"]), "");
}

#[test]
fn kubectl_shows_what_a_policy_is_and_explains_its_fields() {
    let hub = Hub::start();
    hub.policy("hygiene", &json!({ "module": { "builtin": "csr-hygiene" } })).expect("it is applied");
    hub.policy("quota", &json!({ "module": { "configMap": entry() }, "mode": "Audit" })).expect("it is applied");
    hub.policy("route", &json!({ "module": { "secret": entry() }, "mode": "Warn", "onError": "Hold" }))
        .expect("it is applied");
    // By the kind, its short name and its category.
    for words in [&["get", "hubpolicies"][..], &["get", "hpol"], &["get", "ocm-policy"]] {
        let table = hub.show(words);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows[0],
            ["NAME", "MODULE", "MODE", "LOADED", "ENFORCING", "DIGEST", "AUTO-APPROVE", "AGE"],
            "{table}"
        );
        for (row, cells) in [
            (1, ["hygiene", "csr-hygiene", "Enforce"]),
            (2, ["quota", "quota.v2", "Audit"]),
            (3, ["route", "quota.v2", "Warn"]),
        ] {
            let name = rows[row][0].rsplit('/').next().expect("a name");
            assert_eq!((name, &rows[row][1..3]), (cells[0], &cells[1..]), "{table}");
            // Nobody has written a status.
            assert_eq!(rows[row].len(), 4, "{table}");
        }
    }
    let wide = hub.show(&["get", "hpol", "--output=wide"]);
    assert!(wide.lines().next().is_some_and(|head| head.contains("NAMESPACE")), "{wide}");
    let row = |words: [&str; 3]| wide.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(row(["quota", "quota.v2", " policies "]) && row(["hygiene", "Enforce", " Deny "]), "{wide}");
    assert!(row(["route", "Warn", " Hold "]), "{wide}");

    // The server publishes a new kind after a moment.
    until_within(Duration::from_secs(60), "the kind is published", String::new, || {
        run(hub.0.cluster.kubectl_command().args(["explain", "hubpolicies"])).code == Some(0)
    });
    for (field, words) in [
        ("hubpolicies", "a WebAssembly module that is asked about registrations of clusters"),
        ("hpol.spec.mode", "ENUM: Enforce Warn Audit"),
        ("hpol.spec.onError", "An error is never an approval."),
        ("hpol.spec.module.configMap", "that holds the module, in binaryData."),
        ("hpol.spec.settings", "Settings of the policy"),
    ] {
        let text = hub.show(&["explain", field]);
        // The words may be on two lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{field}: {text}");
    }
    // The bounds in the words are those that count.
    let limits = hub.show(&["explain", "hpol.spec.limits"]);
    for number in [MAX_FUEL, MAX_MEMORY_BYTES, MIN_MEMORY_BYTES] {
        assert!(limits.contains(&number.to_string()), "{limits}");
    }
}
