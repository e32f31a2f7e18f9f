//! Policies of Kubewarden, called through waPC or started as WASI commands.

use std::collections::{BTreeMap, BTreeSet};

use ocm_policy_abi::{Decision, EditGrant, EvidenceSource, Manifest, Operation, Query, ReasonDoc, Request, Verdict};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{checked, malformed, read_object, reason};
use super::difference::diff;
use crate::error::PolicyError;
use crate::json::shorten;
use crate::review::{self, admission_request};
use crate::validate::Bounds;

/// What the manifest of a Kubewarden policy names as its contract.
pub const KUBEWARDEN_CONTRACT: &str = "kubewarden:policy@v1";

/// Code of the reason why a Kubewarden policy does not accept.
pub const REJECTED: &str = "KubewardenRejected";

/// What a Kubewarden policy is given to validate.
pub fn kubewarden_input(request: &Request<'_>, settings: &Value) -> Value {
    json!({"request": admission_request(request, None), "settings": settings})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValidationResponse {
    accepted: bool,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    code: Option<u16>,
    #[serde(default)]
    mutated_object: Option<Value>,
    #[serde(default)]
    audit_annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

/// Reads the answer of a Kubewarden policy about `original`, the object that it was given; none for a deletion.
///
/// Kubewarden's `accepted` says that there is nothing against it: that is no opinion, or, where the object is changed
/// while it is created or updated, an allow, which edits need.
///
/// # Errors
/// It is no answer, has unknown members, or contradicts itself. [`PolicyError::EditRefused`] names the path of a change that
/// is none of our edits.
pub fn kubewarden_response(
    json: &[u8],
    operation: Operation,
    original: Option<&Value>,
    bounds: &Bounds,
) -> Result<Decision, PolicyError> {
    // A mutated object comes back whole.
    let object = original.map_or(0, |object| object.to_string().len());
    let response: ValidationResponse = read_object(json, bounds.bytes.saturating_add(object.saturating_mul(2)))?;
    let mut decision = Decision {
        warnings: response
            .warnings
            .unwrap_or_default()
            .iter()
            .filter(|warning| !warning.is_empty())
            .take(bounds.warnings)
            .map(|warning| shorten(warning, bounds.warning))
            .collect(),
        audit: response
            .audit_annotations
            .unwrap_or_default()
            .iter()
            .filter_map(|(key, value)| Some((audit_key(key)?, shorten(value, bounds.audit_value))))
            .take(bounds.audit)
            .collect(),
        ..Decision::default()
    };
    let mutated = response.mutated_object.filter(|mutated| !mutated.is_null());
    if response.accepted {
        if let Some(code) = response.code.filter(|code| *code >= 400) {
            return Err(malformed(format!("it accepts, and fails with the code {code}")));
        }
        if let Some(mutated) = mutated {
            let original =
                original.ok_or_else(|| PolicyError::EditRefused("/: there is no object to change".to_owned()))?;
            decision.edits = diff(original, &mutated)?;
        }
        // That a policy has nothing against it is no reason to let somebody in.
        let lets_in = matches!(operation, Operation::Accept | Operation::Join | Operation::Approve);
        decision.verdict = match decision.edits.is_empty() {
            true => Verdict::NoOpinion,
            false if lets_in => {
                let said =
                    format!("/: a Kubewarden policy that has no opinion changes nothing with {}", operation.word());
                return Err(PolicyError::EditRefused(said));
            }
            false => Verdict::Allow,
        };
    } else {
        if mutated.is_some() {
            return Err(malformed("it rejects the object, and changes it"));
        }
        decision.verdict = Verdict::Deny;
        decision.reasons.push(reason(REJECTED, response.message.as_deref().unwrap_or_default(), bounds));
        if let Some(code) = response.code
            && decision.audit.len() < bounds.audit
        {
            decision.audit.insert("code".to_owned(), code.to_string());
        }
    }
    checked(decision, bounds)
}

/// A key that the audit log takes; none if nothing of it is left.
fn audit_key(key: &str) -> Option<String> {
    let fit = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    let key: String = key.chars().map(fit).take(63).collect();
    let key = key.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    (!key.is_empty()).then(|| key.to_owned())
}

/// What a policy says of its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settings {
    /// They can be used.
    Valid,
    /// They cannot, and why.
    Invalid(String),
}

/// Reads what a Kubewarden policy says of its settings.
///
/// # Errors
/// It says nothing that can be understood, or contradicts itself.
pub fn kubewarden_settings(json: &[u8], bounds: &Bounds) -> Result<Settings, PolicyError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Response {
        valid: bool,
        #[serde(default)]
        message: Option<String>,
    }
    let response: Response = read_object(json, bounds.bytes)?;
    let message = response.message.unwrap_or_default();
    match response.valid {
        true if message.trim().is_empty() => Ok(Settings::Valid),
        true => Err(malformed(format!("it calls its settings valid, and says: {message}"))),
        false => Ok(Settings::Invalid(reason(REJECTED, &message, bounds).message)),
    }
}

/// Makes a manifest of the section `io.kubewarden.metadata` of a Kubewarden policy. What it may edit is not told in
/// detail, so one that changes objects announces everything that an administrator can permit by pattern. The resources
/// that it is aware of become evidence: whole objects of these kinds.
///
/// # Errors
/// [`PolicyError::Load`]: it is no such section, the policy is not about objects of Kubernetes, or it would never be asked.
pub fn kubewarden_manifest(section: &[u8]) -> Result<Manifest, PolicyError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        protocol_version: Option<String>,
        #[serde(default)]
        rules: Vec<Rule>,
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
        #[serde(default)]
        mutating: bool,
        #[serde(default)]
        policy_type: Option<String>,
        #[serde(default)]
        context_aware_resources: Option<BTreeSet<ContextAwareResource>>,
    }
    let metadata: Metadata = read_object(section, usize::MAX)
        .map_err(|error| PolicyError::Load(format!("io.kubewarden.metadata: {error}")))?;
    if let Some(version) = metadata.protocol_version.filter(|version| version != "v1") {
        return Err(PolicyError::Load(format!("protocol version {version:?} is not known")));
    }
    if let Some(kind) = metadata.policy_type.filter(|kind| kind != "kubernetes") {
        return Err(PolicyError::Load(format!("policies of type {kind:?} are not about objects of Kubernetes")));
    }
    let annotations = metadata.annotations.unwrap_or_default();
    let about = |name: &str| annotations.get(&format!("io.kubewarden.policy.{name}")).map(String::as_str);
    let mut operations: Vec<Operation> = metadata.rules.iter().flat_map(Rule::operations).collect();
    operations.sort();
    operations.dedup();
    if operations.is_empty() {
        return Err(PolicyError::Load(
            "none of the rules in its metadata is about a request that policies are evaluated for; it would never \
             be evaluated"
                .to_owned(),
        ));
    }
    let evidence: Vec<Query> =
        metadata.context_aware_resources.into_iter().flatten().map(ContextAwareResource::query).collect();
    if let Some(index) =
        (1..evidence.len()).find(|index| evidence[..*index].iter().any(|q| q.name == evidence[*index].name))
    {
        return Err(PolicyError::Load(format!("two of its contextAwareResources are called {}", evidence[index].name)));
    }
    let any = || "*".to_owned();
    let edits = match metadata.mutating {
        true => vec![
            EditGrant::Label { key: any() },
            EditGrant::Annotation { key: any() },
            EditGrant::Taint { key: any() },
            EditGrant::ClusterSet,
            EditGrant::LeaseDuration,
        ],
        false => Vec::new(),
    };
    Ok(Manifest {
        contract: KUBEWARDEN_CONTRACT.to_owned(),
        name: name_of(about("title").unwrap_or_default()),
        version: about("version").unwrap_or("0.0.0").to_owned(),
        description: shorten(about("description").unwrap_or_default(), Bounds::default().message),
        operations,
        wants_object: true,
        evidence,
        edits,
        reasons: vec![ReasonDoc {
            code: REJECTED.to_owned(),
            description: "the policy does not accept the object".to_owned(),
        }],
        ..Manifest::default()
    })
}

/// A DNS label that resembles a title.
fn name_of(title: &str) -> String {
    let fit = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = title.chars().map(fit).take(63).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "kubewarden-policy".to_owned() } else { name.to_owned() }
}

/// A rule of a webhook: what a Kubewarden policy wants to see.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(default)]
    api_groups: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    operations: Vec<String>,
}

impl Rule {
    /// What the policy has to be asked about, so that it sees every request that its rule names.
    fn operations(&self) -> Vec<Operation> {
        let verb = |word: &&&str| self.operations.iter().any(|known| known == *word || known == "*");
        let group = |name: &str| self.api_groups.iter().any(|known| known == name || known == "*");
        let resource = |name: &str, below: Option<&str>| self.resources.iter().any(|known| reaches(known, name, below));
        let own = [(review::CLUSTER_GROUP, review::CLUSTERS), (review::CSR_GROUP, review::CSRS)];
        let mut found = Vec::new();
        for (of, name) in own {
            for below in [None, Some("approval"), Some("status")] {
                if group(of) && resource(name, below) {
                    let verbs = ["CREATE", "UPDATE", "DELETE", "CONNECT"].iter().filter(verb);
                    found.extend(verbs.flat_map(|verb| review::operations(of, name, below, verb)));
                }
            }
        }
        let known = |pattern: &String| {
            own.iter().any(|(_, name)| pattern.split('/').next() == Some(name)) && !pattern.contains('*')
        };
        let elsewhere = self.api_groups.iter().any(|group| own.iter().all(|(of, _)| group != of));
        if elsewhere || !self.resources.iter().all(known) {
            found.push(Operation::Admit);
        }
        found
    }
}

/// Whether a resource of a rule (`admissionregistration.k8s.io`: `pods`, `pods/log`, `pods/*`, `*`, `*/scale`, `*/*`)
/// reaches a resource, or a subresource of it.
fn reaches(pattern: &str, resource: &str, subresource: Option<&str>) -> bool {
    let fits = |pattern: &str, word: &str| pattern == word || pattern == "*";
    match (pattern.split_once('/'), subresource) {
        (Some(("*", "*")), _) => true,
        (Some((own, below)), Some(subresource)) => fits(own, resource) && fits(below, subresource),
        (None, None) => fits(pattern, resource),
        _ => false,
    }
}

/// A kind of objects that a policy wants to know besides the one that it judges.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContextAwareResource {
    api_version: String,
    kind: String,
}

impl ContextAwareResource {
    /// All objects of this kind, whole.
    fn query(self) -> Query {
        let fit = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        let name: String = format!("{}-{}", self.api_version, self.kind).chars().map(fit).collect();
        let resource = plural(&self.kind);
        let source = EvidenceSource::Objects { resource, api_version: self.api_version, namespace: None };
        Query::new(name, source, [""])
    }
}

/// The plural name of a kind, as the API of Kubernetes forms them.
fn plural(kind: &str) -> String {
    let word = kind.to_ascii_lowercase();
    if word == "endpoints" {
        return word;
    }
    if let Some(stem) = word.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    match word.ends_with('s') || word.ends_with('x') || word.ends_with("ch") || word.ends_with("sh") {
        true => word + "es",
        false => word + "s",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kubewarden(response: Value, original: Option<&Value>) -> Result<Decision, PolicyError> {
        kubewarden_response(response.to_string().as_bytes(), Operation::Create, original, &Bounds::default())
    }

    #[test]
    fn kubewarden_accepts_and_rejects() {
        let accepted = kubewarden(json!({"accepted": true, "mutated_object": null}), None).unwrap();
        assert_eq!(accepted, Decision { verdict: Verdict::NoOpinion, ..Decision::default() });
        let response = json!({
            "accepted": false, "message": "no\nreason ", "code": 403,
            "audit_annotations": {"a/b": "c", "//": "d"}, "warnings": ["w".repeat(300), ""],
        });
        let deny = kubewarden(response, None).unwrap();
        assert_eq!((deny.verdict, &*deny.reasons[0].code), (Verdict::Deny, REJECTED));
        assert_eq!(deny.reasons[0].message, "no reason");
        assert_eq!(deny.audit, [("a-b".into(), "c".into()), ("code".into(), "403".into())].into());
        assert_eq!((deny.warnings.len(), deny.warnings[0].len()), (1, 256));
        let silent = kubewarden(json!({"accepted": false}), None).unwrap();
        assert_eq!(silent.reasons[0].message, "the policy does not say why");
    }

    #[test]
    fn a_policy_that_has_nothing_against_it_lets_nobody_in() {
        let object = json!({"metadata": {"name": "c1"}});
        let labelled = json!({"accepted": true, "mutated_object": {"metadata": {"name": "c1", "labels": {"a": "b"}}}});
        let said = |operation: Operation| {
            kubewarden_response(labelled.to_string().as_bytes(), operation, Some(&object), &Bounds::default())
        };
        assert_eq!(said(Operation::Create).unwrap().verdict, Verdict::Allow);
        for operation in [Operation::Accept, Operation::Join, Operation::Approve] {
            assert_eq!(said(operation).unwrap_err().code(), "edit-refused", "{}", operation.word());
        }
    }

    #[test]
    fn nothing_missing_unknown_or_contradictory_accepts() {
        let object = json!({"metadata": {"name": "c1"}});
        for wrong in [
            "",
            "null",
            "true",
            "{}",
            "[true]",
            "[]",
            r#"{"accepted": null}"#,
            r#"{"accepted": "true"}"#,
            r#"{"accepted": 1}"#,
            r#"{"accepted": []}"#,
            r#"{"message": "no"}"#,
            r#"{"Accepted": true}"#,
            r#"{"accepted": true, "denied": ["no"]}"#,
            r#"{"accepted": true, "allowed": false}"#,
            r#"{"accepted": false, "accepted": true}"#,
            r#"{"accepted": true, "accepted": false}"#,
            r#"{"accepted": true, "code": 403}"#,
            r#"{"accepted": true, "code": "403"}"#,
            r#"{"accepted": true, "message": ["no"]}"#,
            r#"{"accepted": true, "warnings": "w"}"#,
            r#"{"accepted": true, "audit_annotations": {"a": 1}}"#,
            r#"{"accepted": false, "mutated_object": {"metadata": {"name": "c1"}}}"#,
            r#"{"accepted": true, "mutated_object": {"metadata": {"name": "c2", "name": "c1"}}}"#,
            r#"{"accepted": true} {"accepted": false}"#,
        ] {
            let error = kubewarden_response(wrong.as_bytes(), Operation::Create, Some(&object), &Bounds::default())
                .unwrap_err();
            assert_eq!(error.code(), "malformed", "{wrong}");
        }
        let deleted = kubewarden(json!({"accepted": true, "mutated_object": object}), None);
        assert_eq!(deleted.unwrap_err().code(), "edit-refused");
        for wrong in [
            r#"{"valid": true, "message": "no"}"#,
            r#"{"valid": true, "errors": []}"#,
            "{}",
            "[true]",
            r#"{"valid": false, "valid": true}"#,
        ] {
            assert!(kubewarden_settings(wrong.as_bytes(), &Bounds::default()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_it_is_aware_of_is_evidence() {
        let section = json!({
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]}],
            "contextAwareResources": [
                {"apiVersion": "v1", "kind": "Namespace"},
                {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"},
                {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"},
                {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway"},
            ],
        });
        let manifest = kubewarden_manifest(section.to_string().as_bytes()).unwrap();
        let found: Vec<_> = manifest
            .evidence
            .iter()
            .map(|query| match &query.source {
                EvidenceSource::Objects { api_version, resource, namespace: None } => {
                    (&*query.name, &**api_version, &**resource)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            found,
            [
                ("gateway-networking-k8s-io-v1-gateway", "gateway.networking.k8s.io/v1", "gateways"),
                ("networking-k8s-io-v1-ingress", "networking.k8s.io/v1", "ingresses"),
                ("networking-k8s-io-v1-networkpolicy", "networking.k8s.io/v1", "networkpolicies"),
                ("v1-namespace", "v1", "namespaces"),
            ]
        );
        assert!(manifest.evidence.iter().all(|query| query.fields == [""] && query.limit.is_none()));
        for (wrong, why) in [
            (json!({"rules": [], "contextAwareResources": []}), "it would never be evaluated"),
            (
                json!({"rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"],
                               "operations": []}]}),
                "it would never be evaluated",
            ),
            (json!({"rules": [], "contextAwareResources": [{"apiVersion": "v1"}]}), "missing field"),
            (
                json!({"rules": [], "contextAwareResources": [{"apiVersion": "v1", "kind": "Pod", "namespace": "a"}]}),
                "unknown field",
            ),
        ] {
            match kubewarden_manifest(wrong.to_string().as_bytes()) {
                Err(PolicyError::Load(said)) => assert!(said.contains(why), "{said}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }

    #[test]
    fn kubewarden_settings_and_metadata() {
        let bounds = Bounds::default();
        assert_eq!(kubewarden_settings(br#"{"valid": true}"#, &bounds), Ok(Settings::Valid));
        let invalid = kubewarden_settings(br#"{"valid": false, "message": "no"}"#, &bounds);
        assert_eq!(invalid, Ok(Settings::Invalid("no".into())));
        assert!(kubewarden_settings(b"{}", &bounds).is_err());
        let section = json!({
            "protocolVersion": "v1", "mutating": true, "executionMode": "kubewarden-wapc",
            "annotations": {"io.kubewarden.policy.title": "Team Labels!", "io.kubewarden.policy.version": "1.2.3"},
            "rules": [
                {"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["v1"],
                 "resources": ["managedclusters"], "operations": ["CREATE", "UPDATE"]},
                {"apiGroups": ["certificates.k8s.io"], "apiVersions": ["v1"],
                 "resources": ["certificatesigningrequests/approval"], "operations": ["UPDATE"]},
            ],
        });
        let manifest = kubewarden_manifest(section.to_string().as_bytes()).unwrap();
        assert_eq!((&*manifest.name, &*manifest.version), ("team-labels", "1.2.3"));
        use Operation::{Accept, Approve, Create, Join, Update};
        assert_eq!(manifest.operations, [Create, Update, Approve, Accept, Join]);
        assert!(manifest.wants_object && manifest.edits.len() == 5);
        let pods = br#"{"rules": [{"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}]}"#;
        let manifest = kubewarden_manifest(pods).unwrap();
        assert_eq!((&manifest.operations[..], &manifest.edits[..]), (&[Operation::Admit][..], &[][..]));
        assert_eq!(kubewarden_manifest(br#"{"policyType": "raw"}"#).unwrap_err().code(), "load");
        assert_eq!(kubewarden_manifest(br#"{"protocolVersion": "v9"}"#).unwrap_err().code(), "load");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "recorded reviews are files")]
    fn a_policy_is_asked_about_every_review_that_its_rules_name() {
        let folder = format!("{}/tests/data", env!("CARGO_MANIFEST_DIR"));
        let mut seen = BTreeSet::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let review: Value = serde_json::from_str(&std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
            let Ok(request) = review::request_of(&review) else { continue };
            let asking = review::Asking::default();
            let Ok(Request { operation, resource: Some(resource), .. }) = review::from_admission(request, &asking)
            else {
                continue;
            };
            seen.insert(operation);
            let plural = &*resource.resource;
            let (exact, below, any) = match resource.subresource.as_deref() {
                Some(subresource) => {
                    (format!("{plural}/{subresource}"), format!("{plural}/*"), format!("*/{subresource}"))
                }
                None => (plural.to_owned(), plural.to_owned(), "*".to_owned()),
            };
            for group in [&*resource.group, "*"] {
                for pattern in [&*exact, &*below, &*any, "*/*"] {
                    for verb in [&*resource.operation, "*"] {
                        let rule = json!({"apiGroups": [group], "resources": [pattern], "operations": [verb]});
                        let section = json!({"rules": [rule]}).to_string();
                        let manifest = kubewarden_manifest(section.as_bytes()).unwrap();
                        assert!(manifest.operations.contains(&operation), "{section} and {}", operation.word());
                    }
                }
            }
        }
        let wanted = [
            Operation::Create,
            Operation::Update,
            Operation::Delete,
            Operation::Accept,
            Operation::Request,
            Operation::Approve,
            Operation::Admit,
        ];
        assert!(wanted.iter().all(|operation| seen.contains(operation)), "{seen:?}");
    }

    proptest! {
        #[test]
        fn what_is_made_of_foreign_answers_keeps_to_the_bounds(
            message in ".{0,600}", warning in ".{0,200}", key in ".{0,80}",
        ) {
            let response = json!({
                "accepted": false, "message": message, "warnings": [warning], "audit_annotations": {key: message},
            });
            prop_assert!(kubewarden(response, None).is_ok());
        }
    }
}
