//! What stands in the files, and what is applied of it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use ocm_api::Manifest;
use ocm_api::policy::{HubPolicy, HubPolicySpec, Module, ObjectKey};
use ocm_rules::name::is_dns_label;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{FilesError, Holder, MAX_DATA};
use crate::hub_policy::Version;
use crate::order::Collect as _;
use crate::plan::{Plan, Stage, without_bookkeeping};

/// One document and where it stands.
#[derive(Clone, Debug)]
pub struct Document {
    /// For people: a file, or that it came otherwise.
    pub source: String,
    /// What stands there.
    pub value: Value,
}

/// A HubPolicy of a file.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where it stands.
    pub source: String,
    /// What it says.
    pub policy: HubPolicy,
    /// As it stands there.
    manifest: Manifest,
}

impl Given {
    /// Its name.
    pub fn name(&self) -> &str {
        self.manifest.name()
    }

    /// The policy as it would be with its candidate in force; none: it has no candidate.
    pub fn candidate(&self) -> Option<HubPolicy> {
        let candidate = self.policy.spec.candidate.as_ref()?;
        let Version { module, sha256, settings, tests } = Version::of(&self.policy).tried(candidate);
        let mut policy = self.policy.clone();
        policy.spec = HubPolicySpec { module, sha256, settings, tests, candidate: None, ..policy.spec };
        Some(policy)
    }

    /// Has its candidate name the digest of its module, if it has one of its own.
    pub fn pin_candidate(&mut self, sha256: &str) {
        let Some(candidate) = self.policy.spec.candidate.as_mut().filter(|candidate| candidate.module.is_some()) else {
            return;
        };
        candidate.sha256 = Some(sha256.to_owned());
        self.manifest.body_mut()["spec"]["candidate"]["sha256"] = Value::from(sha256);
    }

    /// Has it name the digest of its module.
    pub fn pin(&mut self, sha256: &str) {
        self.policy.spec.sha256 = Some(sha256.to_owned());
        self.manifest.body_mut()["spec"]["sha256"] = Value::from(sha256);
    }
}

/// Where the module of a policy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located<'a> {
    /// It comes along under this name.
    Builtin(&'a str),
    /// In the files.
    Here(&'a [u8]),
    /// On the hub, or of a source that this release does not know.
    Elsewhere,
}

/// What holds modules, by kind, namespace and name.
type Place = (Holder, String, String);

/// What stands in the files: nothing that the API server would judge otherwise is judged here.
#[derive(Clone, Debug, Default)]
pub struct Files {
    holders: Vec<Manifest>,
    entries: BTreeMap<Place, BTreeMap<String, Vec<u8>>>,
    /// ConfigMaps that are made for modules.
    made: BTreeMap<(String, String), BTreeMap<String, ByteString>>,
    policies: Vec<Given>,
}

impl Files {
    /// Reads all documents.
    ///
    /// # Errors
    /// What is wrong with the first that cannot be applied.
    pub fn read(documents: Vec<Document>) -> Result<Self, FilesError> {
        let mut files = Self::default();
        for Document { source, value } in documents {
            files.add(source, value)?;
        }
        if files.holders.is_empty() && files.policies.is_empty() {
            return Err(FilesError::Nothing);
        }
        Ok(files)
    }

    fn add(&mut self, document: String, value: Value) -> Result<(), FilesError> {
        let word = |member: &str| value[member].as_str().filter(|word| !word.is_empty()).map(str::to_owned);
        let (Some(api_version), Some(kind)) = (word("apiVersion"), word("kind")) else {
            return Err(FilesError::NoObject { document });
        };
        match (api_version.as_str(), kind.as_str()) {
            ("policy.kubectl-ocm.dev/v1alpha1", "HubPolicy") => {
                let policy: HubPolicy = typed(&document, "HubPolicy", &value)?;
                let mut manifest = written(&document, "HubPolicy", Manifest::of(&policy), value)?;
                // Left out, it would stay as others have set it, and letting clusters join is nobody's by default.
                if let Some(spec) = manifest.body_mut()["spec"].as_object_mut() {
                    spec.entry("autoApprove").or_insert(Value::Bool(false));
                }
                // Both are DNS labels.
                if !is_dns_label(manifest.name()) {
                    return Err(FilesError::Name { document, name: manifest.name().to_owned() });
                }
                self.once(&document, &manifest)?;
                self.policies.push(Given { source: document, policy, manifest });
            }
            ("v1", "ConfigMap") => {
                let map: ConfigMap = typed(&document, "ConfigMap", &value)?;
                let manifest = written(&document, "ConfigMap", Manifest::of(&map), value)?;
                let text: usize = map.data.iter().flatten().map(|(_, text)| text.len()).sum();
                self.hold(document, Holder::ConfigMap, manifest, map.binary_data.unwrap_or_default(), text)?;
            }
            ("v1", "Secret") => {
                let secret: Secret = typed(&document, "Secret", &value)?;
                let manifest = written(&document, "Secret", Manifest::of(&secret), value)?;
                let text: usize = secret.string_data.iter().flatten().map(|(_, text)| text.len()).sum();
                self.hold(document, Holder::Secret, manifest, secret.data.unwrap_or_default(), text)?;
            }
            _ => return Err(FilesError::Kind { document, kind, api_version }),
        }
        Ok(())
    }

    fn hold(
        &mut self,
        document: String,
        holder: Holder,
        manifest: Manifest,
        data: BTreeMap<String, ByteString>,
        text: usize,
    ) -> Result<(), FilesError> {
        let Some(namespace) = manifest.namespace().filter(|namespace| !namespace.is_empty()).map(str::to_owned) else {
            let kind = if holder == Holder::Secret { "Secret" } else { "ConfigMap" };
            return Err(FilesError::Missing { document, kind, member: "namespace" });
        };
        self.once(&document, &manifest)?;
        let place = (holder, namespace, manifest.name().to_owned());
        let entries: BTreeMap<String, Vec<u8>> =
            data.into_iter().map(|(key, ByteString(bytes))| (key, bytes)).collect_map();
        fits(&place, text + entries.values().map(Vec::len).sum::<usize>())?;
        self.entries.insert(place, entries);
        self.holders.push(manifest);
        Ok(())
    }

    /// Whether an object is there for the first time.
    fn once(&self, document: &str, manifest: &Manifest) -> Result<(), FilesError> {
        let all = self.holders.iter().chain(self.policies.iter().map(|given| &given.manifest));
        let same =
            |other: &Manifest| (other.reference(), other.namespace()) == (manifest.reference(), manifest.namespace());
        match all.into_iter().any(same) {
            true => Err(FilesError::Twice { document: document.to_owned(), reference: manifest.reference() }),
            false => Ok(()),
        }
    }

    /// Adds the module of a policy of these files that takes it from a ConfigMap, which is made for it.
    ///
    /// # Errors
    /// When there is no such policy, it takes its module from something else, or the ConfigMap stands in the files or
    /// becomes too large.
    pub fn add_module(&mut self, policy: &str, module: Vec<u8>) -> Result<(), FilesError> {
        let given = self.policies.iter().find(|given| given.name() == policy);
        let given = given.ok_or_else(|| FilesError::NoPolicy { policy: policy.to_owned() })?;
        let Some(Module::ConfigMap(ObjectKey { namespace, name, key })) = given.policy.spec.module.module() else {
            return Err(FilesError::NoConfigMap { policy: policy.to_owned() });
        };
        let place = (Holder::ConfigMap, namespace.clone(), name.clone());
        let stands = self.holders.iter().find(|holder| {
            holder.kind() == "ConfigMap"
                && (holder.namespace(), holder.name()) == (Some(place.1.as_str()), place.2.as_str())
        });
        let entries = self.made.entry((place.1.clone(), place.2.clone())).or_default();
        let former = entries.insert(key.clone(), ByteString(module.clone()));
        if stands.is_some() || former.is_some_and(|former| former.0 != module) {
            let reference = stands.map_or_else(|| format!("configmap/{name}, key {key}"), Manifest::reference);
            return Err(FilesError::Twice { document: format!("the module of policy {policy}"), reference });
        }
        fits(&place, entries.values().map(|entry| entry.0.len()).sum())?;
        self.entries.entry(place).or_default().insert(key.clone(), module);
        Ok(())
    }

    /// The policies, in the order of the files.
    pub fn policies(&self) -> &[Given] {
        &self.policies
    }

    /// The policies, to change.
    pub fn policies_mut(&mut self) -> &mut [Given] {
        &mut self.policies
    }

    /// Where the module of a policy is.
    ///
    /// # Errors
    /// When it should be in an object of these files, and is not.
    pub fn module<'a>(&'a self, policy: &'a HubPolicy) -> Result<Located<'a>, FilesError> {
        let (holder, entry) = match policy.spec.module.module() {
            Some(Module::Builtin(name)) => return Ok(Located::Builtin(name)),
            Some(Module::ConfigMap(entry)) => (Holder::ConfigMap, entry),
            Some(Module::Secret(entry)) => (Holder::Secret, entry),
            _ => return Ok(Located::Elsewhere),
        };
        let ObjectKey { namespace, name, key } = entry.clone();
        let Some(entries) = self.entries.get(&(holder, namespace.clone(), name.clone())) else {
            return Ok(Located::Elsewhere);
        };
        if let Some(module) = entries.get(&key) {
            return Ok(Located::Here(module));
        }
        let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
        let member = if holder == Holder::Secret { "data" } else { "binaryData" };
        let has = match keys.as_slice() {
            [] => format!("nothing in {member}"),
            keys => format!("in {member} only {}", keys.join(", ")),
        };
        let policy = policy.metadata.name.clone().unwrap_or_default();
        Err(FilesError::NoKey { policy, holder, namespace, name, key, has })
    }

    /// What is applied: modules before the policies that name them.
    pub fn plan(self) -> Plan {
        let made = self.made.into_iter().map(|((namespace, name), entries)| {
            let mut map = ConfigMap { binary_data: Some(entries), ..ConfigMap::default() };
            (map.metadata.namespace, map.metadata.name) = (Some(namespace), Some(name));
            // Other entries of it, which an earlier run has set, are other policies' modules.
            Manifest::of(&map)
        });
        Plan::new([
            Stage::new("modules", self.holders.into_iter().chain(made).collect()),
            Stage::new("policies", self.policies.into_iter().map(|given| given.manifest).collect()),
        ])
    }
}

fn fits((holder, namespace, name): &Place, bytes: usize) -> Result<(), FilesError> {
    match bytes > MAX_DATA {
        true => Err(FilesError::TooLarge { holder: *holder, namespace: namespace.clone(), name: name.clone(), bytes }),
        false => Ok(()),
    }
}

/// The object, for what is looked at here. Members that the type does not know are the API server's to refuse.
fn typed<K: DeserializeOwned>(document: &str, kind: &'static str, value: &Value) -> Result<K, FilesError> {
    serde_json::from_value(value.clone()).map_err(|error| FilesError::Unreadable {
        document: document.to_owned(),
        kind,
        // The parser quotes what it stumbles over.
        why: if kind == "Secret" {
            "it has other members, or data that is not base64".to_owned()
        } else {
            error.to_string()
        },
    })
}

/// The manifest of an object as it stands in the file, without what only a server writes.
fn written(document: &str, kind: &'static str, mut manifest: Manifest, value: Value) -> Result<Manifest, FilesError> {
    if manifest.name().is_empty() {
        return Err(FilesError::Missing { document: document.to_owned(), kind, member: "name" });
    }
    let mut body = without_bookkeeping(&value);
    if let Some(members) = body.as_object_mut() {
        members.remove("status");
    }
    *manifest.body_mut() = body;
    Ok(manifest.exactly())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn read(values: &[Value]) -> Result<Files, FilesError> {
        let document = |(index, value): (usize, &Value)| Document { source: format!("f{index}"), value: value.clone() };
        Files::read(values.iter().enumerate().map(document).collect())
    }

    fn policy(name: &str, module: Value) -> Value {
        json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
            "metadata": {"name": name}, "spec": {"module": module},
        })
    }

    fn entry(key: &str) -> Value {
        json!({"namespace": "n", "name": "m", "key": key})
    }

    fn holder(kind: &str, member: &str, module: &[u8]) -> Value {
        json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"namespace": "n", "name": "m"},
            member: {"k": STANDARD.encode(module)},
        })
    }

    fn said(values: &[Value]) -> String {
        read(values).map(|files| format!("{files:?}")).unwrap_err().to_string()
    }

    #[test]
    fn modules_come_before_policies_and_everything_stays_as_it_is_written() {
        let mut written = policy("p", json!({"configMap": entry("k")}));
        written["spec"]["unknown"] = json!(1);
        let mut stored = written.clone();
        stored["status"] = json!({"kind": "x"});
        stored["metadata"]["resourceVersion"] = json!("7");
        stored["metadata"]["managedFields"] = json!([]);
        let files = read(&[stored, holder("ConfigMap", "binaryData", b"x")]).unwrap();
        // What is not said is said: that it approves nothing.
        written["spec"]["autoApprove"] = json!(false);
        assert_eq!(files.module(&files.policies()[0].policy), Ok(Located::Here(b"x")));
        let plan = files.plan();
        let kinds: Vec<(&str, &str)> = plan.objects().map(|object| (object.kind(), object.name())).collect();
        assert_eq!(kinds, [("ConfigMap", "m"), ("HubPolicy", "p")]);
        assert!(plan.objects().all(Manifest::is_exact));
        assert_eq!(plan.objects().last().map(Manifest::body), Some(&written));
    }

    #[test]
    fn a_module_is_found_where_the_policy_takes_it_from() {
        let of = |policy: Value, holder: Value| {
            let files = read(&[policy, holder]).unwrap();
            let found = files.module(&files.policies()[0].policy);
            found.map(|found| format!("{found:?}")).map_err(|error| error.to_string())
        };
        let map = || holder("ConfigMap", "binaryData", b"x");
        assert_eq!(of(policy("p", json!({"builtin": "b"})), map()), Ok("Builtin(\"b\")".to_owned()));
        let secret = policy("p", json!({"secret": entry("k")}));
        assert_eq!(of(secret.clone(), map()), Ok("Elsewhere".to_owned()));
        assert_eq!(of(secret, holder("Secret", "data", b"x")), Ok("Here([120])".to_owned()));
        let missing = of(policy("p", json!({"configMap": entry("l")})), map());
        let why = "policy \"p\" takes its module from the key \"l\" of ConfigMap n/m, which has in binaryData only k";
        assert_eq!(missing, Err(why.to_owned()));
        let mut text = map();
        text["binaryData"].take();
        text["data"] = json!({"k": "x"});
        let why = of(policy("p", json!({"configMap": entry("k")})), text).unwrap_err();
        assert!(why.ends_with("which has nothing in binaryData"), "{why}");
    }

    #[test]
    fn whatever_has_no_place_is_told() {
        let good = || policy("p", json!({"builtin": "b"}));
        let map = || holder("ConfigMap", "binaryData", b"x");
        assert_eq!(said(&[]), "the files hold no object");
        for odd in [json!("x"), json!([]), json!({"kind": "HubPolicy"}), json!({"apiVersion": "v1", "kind": ""})] {
            assert_eq!(said(&[odd]), "f0 must be a Kubernetes object with apiVersion and kind");
        }
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        let why = "f1 is of the kind Pod of v1, and only HubPolicy, ConfigMap and Secret can be applied";
        assert_eq!(said(&[good(), pod]), why);
        let mut newer = good();
        newer["apiVersion"] = json!("policy.kubectl-ocm.dev/v2");
        assert!(said(&[newer]).contains("of policy.kubectl-ocm.dev/v2"));
        let mut odd = good();
        odd["spec"]["settings"] = json!(7);
        assert!(said(&[odd]).starts_with("f0 is no HubPolicy: spec.settings: invalid type"));
        let mut leaking = holder("Secret", "data", b"x");
        leaking["data"] = json!("s3cret");
        assert_eq!(said(&[leaking]), "f0 is no Secret: it has other members, or data that is not base64");
        let mut nameless = good();
        nameless["metadata"] = json!({"generateName": "p-"});
        assert_eq!(said(&[nameless]), "f0, a HubPolicy, has no metadata.name");
        let mut homeless = map();
        homeless["metadata"] = json!({"name": "m"});
        assert_eq!(said(&[homeless]), "f0, a ConfigMap, has no metadata.namespace");
        for name in ["a.b", "A", &"n".repeat(64)] {
            assert!(
                said(&[policy(name, json!({"builtin": "b"}))]).contains("cannot be the name of a HubPolicy"),
                "{name}"
            );
        }
        assert_eq!(said(&[good(), map(), good()]), "f2: hubpolicy.policy.kubectl-ocm.dev/p stands in the files before");
        assert_eq!(said(&[map(), map()]), "f1: configmap/m stands in the files before");
        let mut elsewhere = map();
        elsewhere["metadata"]["namespace"] = json!("other");
        assert!(read(&[map(), elsewhere]).is_ok());
        let large = holder("Secret", "data", &vec![0; MAX_DATA + 1]);
        assert_eq!(said(&[large]), "Secret n/m would hold 1048577 bytes, and at most 1048576 fit into one");
    }

    #[test]
    fn a_module_of_its_own_becomes_the_config_map_that_the_policy_names() {
        let mut files =
            read(&[policy("p", json!({"configMap": entry("k")})), policy("q", json!({"configMap": entry("l")}))])
                .unwrap();
        files.add_module("p", b"x".to_vec()).unwrap();
        files.add_module("q", b"y".to_vec()).unwrap();
        files.add_module("q", b"y".to_vec()).unwrap();
        assert_eq!(files.module(&files.policies()[1].policy), Ok(Located::Here(b"y")));
        files.policies_mut()[0].pin("ab");
        let plan = files.plan();
        let objects: Vec<&Manifest> = plan.objects().collect();
        assert_eq!((objects.len(), objects[0].namespace(), objects[0].is_exact()), (3, Some("n"), false));
        assert_eq!(objects[0].body()["binaryData"], json!({"k": "eA==", "l": "eQ=="}));
        assert_eq!(objects[1].body()["spec"]["sha256"], "ab");

        let with = |values: &[Value], policy: &str, module: Vec<u8>| {
            let mut files = read(values).unwrap();
            files.add_module(policy, module).unwrap_err().to_string()
        };
        let one = || policy("p", json!({"configMap": entry("k")}));
        assert_eq!(with(&[one()], "q", Vec::new()), "the files hold no HubPolicy \"q\" for the module");
        let other = policy("p", json!({"secret": entry("k")}));
        assert_eq!(with(&[other], "p", Vec::new()), "policy \"p\" does not take its module from a ConfigMap");
        let there = holder("ConfigMap", "binaryData", b"x");
        let why = "the module of policy p: configmap/m stands in the files before";
        assert_eq!(with(&[one(), there], "p", Vec::new()), why);
        let why = with(&[one()], "p", vec![0; MAX_DATA + 1]);
        assert_eq!(why, "ConfigMap n/m would hold 1048577 bytes, and at most 1048576 fit into one");
        let mut files = read(&[one(), policy("q", json!({"configMap": entry("k")}))]).unwrap();
        files.add_module("p", b"x".to_vec()).unwrap();
        let why = files.add_module("q", b"y".to_vec()).unwrap_err().to_string();
        assert_eq!(why, "the module of policy q: configmap/m, key k stands in the files before");
    }
}
