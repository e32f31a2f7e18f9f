//! The configurations by which the API server asks the webhook: which requests, and what becomes of them without it.
//!
//! | entry | about | without the webhook |
//! |---|---|---|
//! | `register` | a managed cluster is created | refused |
//! | `accept` | a managed cluster is accepted | refused |
//! | `self-edit` | an agent changes its own, or somebody releases a cluster that is held | refused |
//! | `update` | somebody else changes one | passes |
//! | `delete` | one is deleted | passes |
//! | `request` | a certificate of clusters is asked for | passes; nobody can approve it |
//! | `approve` | such a request is approved | refused |
//! | `work` | an agent changes a ManifestWork | passes; the baseline judges it |
//! | `change` | what policies change of a cluster that is created | passes; `register` misses the changes |
//! | `change-accepted` | what they change of one that is accepted | passes; `accept` misses the changes |
//! | `change-updated` | what they change of one that somebody else changes | passes; `update` misses the changes |
//!
//! Of the first six, at most one matches a request. Each of the last three matches what `register`, `accept` or `update` matches.
//! None matches a status, a lease, a denial, what the hub's own controllers write but an acceptance, or requests of kubelets; and
//! none matches what makes, mends or removes the webhook itself.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use ocm_api::Manifest;
use ocm_api::cert_manager::INJECT_CA_FROM;
use ocm_api::names::{namespaces, signers};
use ocm_rules::cluster::ACCEPTED_BY_HUB;
use ocm_rules::csr::CLUSTER_NAME;
use ocm_rules::identity::GRPC_SERVER_USER;
use serde_json::{Map, Value, json};

use super::certificates::Trust;
use super::names::{NAMESPACE, WEBHOOK, meta};
use crate::baseline::cel::{list, text};
use crate::baseline::certificate_requests::KUBELET_SIGNERS;
use crate::baseline::identities;
use crate::certificate::{from_pem, to_base64};
use crate::plan::{Plan, Stage};

/// First minor release of Kubernetes 1 whose webhooks have match conditions without a feature gate (KEP-3716).
pub const FIRST_MINOR: u32 = 30;
/// The entry that judges managed clusters that are created.
pub const REGISTER: &str = "register.policy.kubectl-ocm.dev";
/// The entry that judges acceptances of managed clusters.
pub const ACCEPT: &str = "accept.policy.kubectl-ocm.dev";
/// The entry that judges what agents change of their own clusters.
pub const SELF_EDIT: &str = "self-edit.policy.kubectl-ocm.dev";
/// The entry that judges what others change of managed clusters.
pub const UPDATE: &str = "update.policy.kubectl-ocm.dev";
/// The entry that judges deletions of managed clusters.
pub const DELETE: &str = "delete.policy.kubectl-ocm.dev";
/// The entry that judges certificate requests that are created.
pub const REQUEST: &str = "request.policy.kubectl-ocm.dev";
/// The entry that judges approvals of certificate requests.
pub const APPROVE: &str = "approve.policy.kubectl-ocm.dev";
/// The entry that judges what agents write of ManifestWorks.
pub const WORK: &str = "work.policy.kubectl-ocm.dev";

const CLUSTERS: (&str, &str) = ("cluster.open-cluster-management.io", "managedclusters");
const REQUESTS: (&str, &str) = ("certificates.k8s.io", "certificatesigningrequests");
const APPROVALS: (&str, &str) = ("certificates.k8s.io", "certificatesigningrequests/approval");
const WORKS: (&str, &str) = ("work.open-cluster-management.io", "manifestworks");
const UPDATES: &[&str] = &["UPDATE"];

/// What becomes of registrations while nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// They pass: until the webhook was seen to answer, and while it only records.
    Ignore,
    /// They are refused, where an entry is about nothing else.
    Fail,
}

/// Both configurations. The mutating one sorts behind that of Open Cluster Management, which fills in what policies read.
pub fn configurations(trust: &Trust, failure: FailurePolicy) -> Plan {
    let mut metadata = meta(WEBHOOK);
    if *trust == Trust::Injected {
        metadata.annotations = Some([(INJECT_CA_FROM.to_owned(), format!("{NAMESPACE}/{WEBHOOK}"))].into());
    }
    let judge: Vec<Value> = entries().iter().map(|entry| entry.object(trust, "/v1/validate", failure)).collect();
    let mut change: Vec<Value> =
        changes_made().iter().map(|entry| entry.object(trust, "/v1/mutate", failure)).collect();
    change.iter_mut().for_each(|entry| entry["reinvocationPolicy"] = "Never".into());
    let mutating = Manifest::with::<MutatingWebhookConfiguration>(&metadata, json!({"webhooks": change}));
    let validating = Manifest::with::<ValidatingWebhookConfiguration>(&metadata, json!({"webhooks": judge}));
    Plan::new([
        Stage::new("what the webhook changes", vec![mutating]),
        Stage::new("what the webhook judges", vec![validating]),
    ])
}

/// Whether a live configuration refuses registrations while nobody answers.
pub fn fails(live: &Value) -> bool {
    live["webhooks"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|entry| entry["name"] == REGISTER && entry["failurePolicy"] == "Fail")
}

/// The entries that are to have requests wait for an answer, and of a live configuration do not: they are missing, or let
/// pass what nobody answers.
pub fn open(live: &Value) -> Vec<&'static str> {
    let live = live["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fails = |name: &str| live.iter().any(|entry| entry["name"] == name && entry["failurePolicy"] == "Fail");
    entries().iter().filter(|entry| entry.waits && !fails(entry.name)).map(|entry| entry.name).collect()
}

/// Whether a live configuration has all approvals of certificates of clusters wait for an answer: its entry is about what this
/// release has it be about, and lets nothing pass.
pub fn approvals_wait(live: &Value) -> bool {
    let Some(planned) = entries().into_iter().find(|entry| entry.name == APPROVE) else { return false };
    named(live, APPROVE).is_some_and(|live| planned.is_about_the_same(live) && live["failurePolicy"] == "Fail")
}

/// The entries of a live configuration that are missing, are not about what this release has them be about, or ask somebody else
/// than the one does that was seen to be asked. What they let pass while nobody answers is for [`open`], whom they trust for
/// [`strangers`].
pub fn altered(live: &Value, seen: &str) -> Vec<&'static str> {
    let asked = |entry: &Value| {
        let mut client = entry["clientConfig"].clone();
        if let Some(members) = client.as_object_mut() {
            members.remove("caBundle");
        }
        client
    };
    let webhook = named(live, seen).map(asked);
    let is_whole = |planned: &Entry| {
        let live = named(live, planned.name);
        live.is_some_and(|live| planned.is_about_the_same(live) && Some(asked(live)) == webhook)
    };
    entries().iter().filter(|planned| !is_whole(planned)).map(|planned| planned.name).collect()
}

/// The entry of this name of a live configuration.
fn named<'a>(live: &'a Value, name: &str) -> Option<&'a Value> {
    live["webhooks"].as_array().into_iter().flatten().find(|entry| entry["name"] == name)
}

/// What each entry of ours of a live configuration has the API server trust, as PEM; empty: nothing of its own.
pub fn bundles(live: &Value) -> Vec<Vec<u8>> {
    ours(live).into_iter().map(|(_, entry)| bundle(entry)).collect()
}

/// Names of the entries of a planned configuration that a live one lacks.
pub fn lacking(planned: &Value, live: &Value) -> Vec<String> {
    let names = |object: &Value| -> Vec<String> {
        let entries = object["webhooks"].as_array().into_iter().flatten();
        entries.filter_map(|entry| entry["name"].as_str().map(str::to_owned)).collect()
    };
    let there = names(live);
    names(planned).into_iter().filter(|name| !there.contains(name)).collect()
}

/// What has every entry of ours of a live configuration trust these authorities (PEM), as a JSON patch of exactly this
/// version that changes nothing else; none if they all do.
pub fn trust(live: &Value, authorities: &str) -> Option<Value> {
    let wanted = Value::from(to_base64(authorities.as_bytes()));
    let pin = |path: String, value: &Value| json!({"op": "test", "path": path, "value": value});
    let mut patch =
        ["uid", "resourceVersion"].map(|pinned| pin(format!("/metadata/{pinned}"), &live["metadata"][pinned])).to_vec();
    let pins = patch.len();
    for (index, entry) in ours(live) {
        if entry.pointer("/clientConfig/caBundle") != Some(&wanted) {
            let path = format!("/webhooks/{index}");
            patch.push(pin(format!("{path}/name"), &entry["name"]));
            patch.push(json!({"op": "add", "path": format!("{path}/clientConfig/caBundle"), "value": wanted}));
        }
    }
    (patch.len() > pins).then(|| patch.into())
}

/// Names of the entries of live configurations that trust none of the authorities which the one trusts that was seen to be asked:
/// the webhook is believed there, and not here.
pub fn strangers<'a>(live: impl IntoIterator<Item = &'a Value>, seen: &str) -> Vec<String> {
    let entries: Vec<&Value> = live.into_iter().flat_map(|live| ours(live)).map(|(_, entry)| entry).collect();
    let trusted = |entry: &Value| from_pem(&bundle(entry)).unwrap_or_default();
    let Some(believed) = entries.iter().find(|entry| entry["name"] == seen).map(|entry| trusted(entry)) else {
        return Vec::new();
    };
    let is_strange = |entry: &&&Value| !believed.is_empty() && !trusted(entry).iter().any(|one| believed.contains(one));
    entries.iter().filter(is_strange).filter_map(|entry| entry["name"].as_str().map(str::to_owned)).collect()
}

/// The entries of ours, and where they stand: those of these names, and whatever else asks our Service.
fn ours(live: &Value) -> Vec<(usize, &Value)> {
    let names: Vec<&str> = entries().iter().chain(&changes_made()).map(|entry| entry.name).collect();
    let all = live["webhooks"].as_array().into_iter().flatten().enumerate();
    let is_ours = |entry: &Value| {
        let service = &entry["clientConfig"]["service"];
        let named = entry["name"].as_str().is_some_and(|name| names.contains(&name));
        named || (service["namespace"] == NAMESPACE && service["name"] == WEBHOOK)
    };
    all.filter(|(_, entry)| is_ours(entry)).collect()
}

fn bundle(entry: &Value) -> Vec<u8> {
    use base64::Engine as _;
    let text = entry.pointer("/clientConfig/caBundle").and_then(Value::as_str).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
}

/// A name and an expression in CEL.
type Condition = (&'static str, String);

/// One entry.
struct Entry {
    name: &'static str,
    about: (&'static str, &'static str),
    operations: &'static [&'static str],
    /// Only if all of these hold.
    conditions: Vec<Condition>,
    /// Whether registrations wait for an answer.
    waits: bool,
}

impl Entry {
    /// Whether the API server asks by a live entry about what it asks about by this one.
    fn is_about_the_same(&self, live: &Value) -> bool {
        let planned = self.object(&Trust::Injected, "", FailurePolicy::Fail);
        let is_same = |member: &str| live[member] == planned[member];
        let selects_all = |member: &str| live[member].as_object().is_none_or(Map::is_empty);
        ["matchConditions", "matchPolicy", "rules"].into_iter().all(is_same)
            && ["namespaceSelector", "objectSelector"].into_iter().all(selects_all)
    }

    fn object(&self, trust: &Trust, path: &str, failure: FailurePolicy) -> Value {
        let fails = self.waits && failure == FailurePolicy::Fail;
        let conditions =
            self.conditions.iter().map(|(name, expression)| json!({"name": name, "expression": expression}));
        let mut entry = json!({
            "name": self.name,
            "clientConfig": {
                "service": {"namespace": NAMESPACE, "name": WEBHOOK, "path": path, "port": 443},
            },
            "rules": [{
                "apiGroups": [self.about.0], "apiVersions": ["v1"], "operations": self.operations,
                "resources": [self.about.1], "scope": "*",
            }],
            "matchPolicy": "Equivalent",
            "failurePolicy": if fails { "Fail" } else { "Ignore" },
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            // Whoever does not have to wait for an answer does not wait long.
            "timeoutSeconds": if self.waits { 5 } else { 2 },
        });
        if let Trust::Bundle(bundle) = trust {
            entry["clientConfig"]["caBundle"] = to_base64(bundle.as_bytes()).into();
        }
        if !self.conditions.is_empty() {
            entry["matchConditions"] = conditions.collect();
        }
        entry
    }
}

fn entries() -> Vec<Entry> {
    let agents = vec![does_not_accept(), ("changes", changes()), ("of-an-agent", of_an_agent())];
    let of_requests =
        |versions: &[&str]| vec![("not-a-kubelets", not_a_kubelets()), ("of-clusters", of_clusters(versions))];
    let mut approval = of_requests(&["object", "oldObject"]);
    approval.push(("approves", approves()));
    let cluster = |name, operations, waits, conditions| Entry { name, about: CLUSTERS, operations, conditions, waits };
    vec![
        cluster(REGISTER, &["CREATE"], true, Vec::new()),
        cluster(ACCEPT, UPDATES, true, acceptance()),
        cluster(SELF_EDIT, UPDATES, true, agents),
        cluster(UPDATE, UPDATES, false, others_update()),
        cluster(DELETE, &["DELETE"], false, vec![("not-the-hubs", not_the_hubs())]),
        Entry {
            name: REQUEST,
            about: REQUESTS,
            operations: &["CREATE"],
            conditions: of_requests(&["object"]),
            waits: false,
        },
        Entry { name: APPROVE, about: APPROVALS, operations: UPDATES, conditions: approval, waits: true },
        Entry {
            name: WORK,
            about: WORKS,
            operations: &["CREATE", "UPDATE"],
            conditions: vec![("by-an-agent", identities::is_agent("request.userInfo"))],
            waits: false,
        },
    ]
}

/// What the webhook changes: of each request, before the entry that judges it. Entries have names of their own, so that an
/// installation which lacks one is seen to.
fn changes_made() -> [Entry; 3] {
    let change = |name, operations, conditions| Entry { name, about: CLUSTERS, operations, conditions, waits: false };
    [
        change("change.policy.kubectl-ocm.dev", &["CREATE"], Vec::new()),
        change("change-accepted.policy.kubectl-ocm.dev", UPDATES, acceptance()),
        change("change-updated.policy.kubectl-ocm.dev", UPDATES, others_update()),
    ]
}

/// What has somebody accept a cluster.
fn acceptance() -> Vec<Condition> {
    vec![("accepts", accepts())]
}

/// What has somebody change a cluster who is neither an agent nor the hub, and accept none.
fn others_update() -> Vec<Condition> {
    let others = [("not-of-an-agent", not(&of_an_agent())), ("not-the-hubs", not_the_hubs())];
    [does_not_accept(), ("changes", changes())].into_iter().chain(others).collect()
}

fn does_not_accept() -> Condition {
    ("does-not-accept", not(&accepts()))
}

fn not(expression: &str) -> String {
    format!("!({expression})")
}

/// Only the step counts: whoever writes to a cluster that is accepted accepts nobody. OCM's schema does not require a spec.
fn accepts() -> String {
    let accepted = |object: &str| format!("{object}.?spec.?hubAcceptsClient.orValue(false)");
    format!("{} && !{}", accepted("object"), accepted("oldObject"))
}

/// Whether anything differs but what the API server notes down, and the status.
fn changes() -> String {
    let members =
        ["?spec", "metadata.?labels", "metadata.?annotations", "metadata.?finalizers", "metadata.?ownerReferences"];
    members.map(|member| format!("object.{member} != oldObject.{member}")).join(" || ")
}

/// An agent writes, or the hub's gRPC server for one; or what holds a cluster is taken away or changed, whoever does it.
fn of_an_agent() -> String {
    let of = |object: &str| format!("{object}.metadata.?annotations[?{}]", text(ACCEPTED_BY_HUB));
    let (old, new) = (of("oldObject"), of("object"));
    format!("{} || ({old}.hasValue() && {old} != {new})", identities::is_agent("request.userInfo"))
}

/// The hub's controllers, and those of Kubernetes that collect what is left over. The hub's gRPC server is none of them: it
/// writes for agents.
fn not_the_hubs() -> String {
    let by = |namespace: &str| {
        format!("request.userInfo.username.startsWith({})", text(&format!("system:serviceaccount:{namespace}:")))
    };
    let grpc = text(GRPC_SERVER_USER);
    format!("!({} || ({} && request.userInfo.username != {grpc}))", by("kube-system"), by(namespaces::HUB))
}

fn not_a_kubelets() -> String {
    format!("!(object.spec.signerName in {})", list(KUBELET_SIGNERS))
}

/// By the signer, since people's certificates and those of clusters have the same one and only their content tells them
/// apart; or by the label, since add-ons may have a signer of their own. An approval may not hide the label.
fn of_clusters(versions: &[&str]) -> String {
    let label = |object: &&str| format!("{} in {object}.metadata.?labels.orValue({{}})", text(CLUSTER_NAME));
    let signer = format!("object.spec.signerName in {}", list([signers::KUBE_APISERVER_CLIENT, signers::GRPC]));
    [signer].into_iter().chain(versions.iter().map(label)).collect::<Vec<_>>().join(" || ")
}

fn approves() -> String {
    let approved = |object: &str| format!("{object}.?status.?conditions.orValue([]).exists(c, c.type == \"Approved\")");
    format!("{} && !{}", approved("object"), approved("oldObject"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(bundle: &str) -> Vec<Value> {
        let plan = configurations(&Trust::Bundle(bundle.to_owned()), FailurePolicy::Fail);
        let mut all: Vec<Value> = plan.objects().map(|object| object.body().clone()).collect();
        for object in &mut all {
            object["metadata"]["uid"] = "u".into();
            object["metadata"]["resourceVersion"] = "7".into();
            let entries = object["webhooks"].as_array_mut().unwrap();
            entries.insert(0, json!({"name": "theirs.example", "clientConfig": {"caBundle": "dGhlaXJz"}}));
        }
        all
    }

    #[test]
    fn a_bundle_is_written_into_our_entries_alone_and_only_where_it_differs() {
        for mut before in live("before") {
            assert_eq!(trust(&before, "before"), None);
            // One without any, one with another.
            before["webhooks"][1]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
            let patch = trust(&before, "now").unwrap();
            let mut after = before.clone();
            let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
            json_patch::patch(&mut after, &patch).unwrap();
            let entries = before["webhooks"].as_array().unwrap().len();
            assert_eq!(bundles(&after), vec![b"now".to_vec(); entries - 1]);
            let without = |object: &Value| {
                let mut object = object.clone();
                for entry in object["webhooks"].as_array_mut().unwrap().iter_mut().skip(1) {
                    entry["clientConfig"].as_object_mut().unwrap().remove("caBundle");
                }
                object
            };
            assert_eq!(without(&after), without(&before));
            // Of another version, or where another entry stands in its place, nothing is changed.
            for path in ["/metadata/resourceVersion", "/metadata/uid", "/webhooks/1/name"] {
                let mut other = before.clone();
                *other.pointer_mut(path).unwrap() = "other".into();
                assert!(json_patch::patch(&mut other, &patch).is_err(), "{path}");
            }
        }
    }

    #[test]
    fn an_entry_of_another_name_that_asks_our_service_is_written_as_well() {
        let mut before = live("before").remove(1);
        before["webhooks"][1]["name"] = "earlier.policy.kubectl-ocm.dev".into();
        let mut after = before.clone();
        let patch: json_patch::Patch = serde_json::from_value(trust(&before, "now").unwrap()).unwrap();
        json_patch::patch(&mut after, &patch).unwrap();
        assert_eq!(after["webhooks"][1]["clientConfig"]["caBundle"], to_base64(b"now"));
        assert_eq!(after["webhooks"][0], before["webhooks"][0], "that of others");
    }

    #[test]
    fn no_condition_about_a_managed_cluster_is_an_error_where_there_is_no_spec() {
        for entry in entries().iter().chain(&changes_made()).filter(|entry| entry.about == CLUSTERS) {
            for (name, expression) in &entry.conditions {
                assert!(!expression.contains(".spec"), "{} {name}: {expression}", entry.name);
            }
        }
        assert!(accepts().contains("object.?spec") && changes().contains("object.?spec"));
    }

    #[test]
    fn what_is_changed_is_what_is_judged_and_only_an_agents_own_is_judged_alone() {
        let plan = configurations(&Trust::Injected, FailurePolicy::Fail);
        let [changes, judges] = ["Mutating", "Validating"].map(|kind| {
            let found = plan.objects().find(|object| object.kind().starts_with(kind)).unwrap().body();
            found["webhooks"].as_array().unwrap().clone()
        });
        let named = |all: &[Value], name: &str| {
            all.iter().find(|entry| entry["name"] == format!("{name}.policy.kubectl-ocm.dev")).unwrap().clone()
        };
        let pairs = [("change", "register"), ("change-accepted", "accept"), ("change-updated", "update")];
        for (change, judge) in pairs {
            let (change, judge) = (named(&changes, change), named(&judges, judge));
            for member in ["rules", "matchConditions", "matchPolicy"] {
                assert_eq!(change[member], judge[member], "{}", change["name"]);
            }
            assert_eq!((&change["failurePolicy"], &change["sideEffects"]), (&json!("Ignore"), &json!("None")));
            assert_eq!(
                (&change["reinvocationPolicy"], &change["clientConfig"]["service"]["path"]),
                (&json!("Never"), &json!("/v1/mutate"))
            );
        }
        assert_eq!(changes.len(), pairs.len());
        let conditions = |name: &str| named(&judges, name)["matchConditions"].clone();
        assert_ne!(conditions("self-edit"), conditions("update"));
    }

    #[test]
    fn an_installation_without_what_changes_acceptances_and_updates_lacks_it() {
        let plan = configurations(&Trust::Injected, FailurePolicy::Fail);
        let planned = plan.objects().find(|object| object.kind().starts_with("Mutating")).unwrap().body();
        let mut former = planned.clone();
        former["webhooks"].as_array_mut().unwrap().truncate(1);
        let new = ["change-accepted", "change-updated"].map(|name| format!("{name}.policy.kubectl-ocm.dev"));
        assert_eq!(lacking(planned, &former), new);
        assert_eq!(bundles(planned).len(), 3);
    }

    #[test]
    fn an_entry_that_is_missing_narrowed_or_asks_somebody_else_is_named() {
        let judges = || live("b").remove(1);
        let edited = |name: &str, change: &dyn Fn(&mut Value)| {
            let mut live = judges();
            let entries = live["webhooks"].as_array_mut().unwrap();
            change(entries.iter_mut().find(|entry| entry["name"] == name).unwrap());
            live
        };
        let changed = |change: &dyn Fn(&mut Value)| altered(&edited(SELF_EDIT, change), REGISTER);
        assert_eq!(altered(&judges(), REGISTER), Vec::<&str>::new());
        let narrowed = json!({"name": "never", "expression": "false"});
        let changes: [&dyn Fn(&mut Value); 8] = [
            &|entry| entry["name"] = "another.example.com".into(),
            &|entry| entry["rules"][0]["resources"] = json!(["managedclustersets"]),
            &|entry| entry["rules"] = json!([]),
            &|entry| entry["matchConditions"].as_array_mut().unwrap().push(narrowed.clone()),
            &|entry| entry["matchPolicy"] = "Exact".into(),
            &|entry| entry["objectSelector"] = json!({"matchLabels": {"a": "b"}}),
            &|entry| entry["clientConfig"]["service"]["name"] = "somebody-else".into(),
            &|entry| entry["clientConfig"] = json!({"url": "https://example.com/v1/validate"}),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            assert_eq!(changed(change), [SELF_EDIT], "{index}");
        }
        // As the API server fills it in, and what others look at.
        let same: [&dyn Fn(&mut Value); 4] = [
            &|entry| entry["objectSelector"] = json!({}),
            &|entry| entry["timeoutSeconds"] = 7.into(),
            &|entry| entry["failurePolicy"] = "Ignore".into(),
            &|entry| entry["clientConfig"]["caBundle"] = "b3RoZXI=".into(),
        ];
        for (index, change) in same.into_iter().enumerate() {
            assert_eq!(changed(change), Vec::<&str>::new(), "{index}");
        }
        // Whom all ask is who was seen to be asked.
        let redirected = edited(REGISTER, &|entry| entry["clientConfig"]["service"]["name"] = "somebody-else".into());
        assert_eq!(altered(&redirected, REQUEST), [REGISTER]);
        let without = edited(REQUEST, &|entry| entry["name"] = "another.example.com".into());
        assert_eq!(altered(&without, REQUEST).len(), entries().len(), "whoever was not seen is nobody's measure");
    }

    #[test]
    fn entries_that_are_missing_are_named() {
        for (planned, live) in configurations(&Trust::Injected, FailurePolicy::Fail).objects().zip(live("b")) {
            assert_eq!(lacking(planned.body(), &live), Vec::<String>::new());
            let mut live = live;
            let last = live["webhooks"].as_array_mut().unwrap().pop().unwrap();
            assert_eq!(lacking(planned.body(), &live), [last["name"].as_str().unwrap()]);
        }
    }

    #[test]
    fn an_entry_that_trusts_nobody_whom_registrations_trust_is_a_stranger() {
        let one = || rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap().cert.pem();
        let (own, former, other) = (one(), one(), one());
        let mut all = live(&format!("{own}{former}"));
        assert_eq!(strangers(&all, REGISTER), Vec::<String>::new());
        let mut set = |bundle: &str| {
            all[1]["webhooks"][2]["clientConfig"]["caBundle"] = to_base64(bundle.as_bytes()).into();
            strangers(&all, REGISTER)
        };
        // In the middle of a rotation.
        assert_eq!(set(&own), Vec::<String>::new());
        assert_eq!(set(&other), ["accept.policy.kubectl-ocm.dev"]);
        assert_eq!(set(""), ["accept.policy.kubectl-ocm.dev"]);
        // Where another one was seen to be asked, that of registrations may be a stranger.
        all[1]["webhooks"][2]["clientConfig"]["caBundle"] = to_base64(own.as_bytes()).into();
        all[1]["webhooks"][1]["clientConfig"]["caBundle"] = to_base64(other.as_bytes()).into();
        assert_eq!(strangers(&all, REQUEST), [REGISTER]);
    }
}
