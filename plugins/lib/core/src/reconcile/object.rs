//! One object of a plan and the live one, brought together.

use ocm_api::Manifest;
use serde_json::{Map, Value};

use super::definition;
use super::lists::unite;
use super::owned::{carry, owned_by_us};
use super::retired::without_retired;

/// What to apply for an object of a plan, given what the cluster holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Reconciled {
    /// Apply this: the planned object, with what must not be lost of the live one carried over.
    Apply(Manifest),
    /// Leave the live object as it is, for this reason.
    Keep(String),
}

/// Decides for one object. `live` is what the cluster holds now.
pub fn reconcile(planned: &Manifest, live: Option<&Value>) -> Reconciled {
    let mut planned = planned.clone();
    if planned.kind() == "Namespace" {
        own_something(&mut planned);
    }
    let Some(live) = live.filter(|_| !planned.is_exact()) else { return Reconciled::Apply(planned) };
    if planned.kind() == "CustomResourceDefinition"
        && let Some(reason) = definition::reason_to_keep(planned.body(), live)
    {
        return Reconciled::Keep(reason);
    }
    if planned.is_secret() && is_empty_pull_secret(planned.body()) && !is_empty_pull_secret(live) {
        return Reconciled::Keep("it holds credentials, and none were given to replace them".to_owned());
    }
    carry(planned.body_mut(), &owned_by_us(live));
    unite(planned.body_mut(), &without_retired(live), "");
    Reconciled::Apply(planned)
}

/// An apply that owns no field is forgotten, and the next one changes the object to note down who was there before.
/// A bare namespace therefore says the one label that the server would give it anyhow.
fn own_something(namespace: &mut Manifest) {
    let name = Value::from(namespace.name());
    if let Some(metadata) = namespace.body_mut()["metadata"].as_object_mut() {
        let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
        labels["kubernetes.io/metadata.name"] = name;
    }
}

/// Whether a Secret is one for pulling images that holds no credentials.
fn is_empty_pull_secret(secret: &Value) -> bool {
    // `{}` with or without white space, in base64.
    secret["type"] == "kubernetes.io/dockerconfigjson"
        && matches!(
            secret["data"][".dockerconfigjson"].as_str(),
            None | Some("" | "e30=" | "e30K" | "eyJhdXRocyI6e319" | "eyJhdXRocyI6IHt9fQ==")
        )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
    use k8s_openapi::api::rbac::v1::ClusterRole;
    use ocm_api::{ClusterManager, HubPolicy, crds};
    use serde_json::json;

    use super::*;
    use crate::reconcile::lists::unite;
    use crate::reconcile::{FIELD_MANAGER, is_applied, over};

    fn applied(planned: &Manifest, live: &Value) -> Value {
        match reconcile(planned, Some(live)) {
            Reconciled::Apply(manifest) => manifest.body().clone(),
            Reconciled::Keep(reason) => panic!("kept: {reason}"),
        }
    }

    fn manager(spec: Value) -> Manifest {
        let mut manifest = Manifest::of(&ClusterManager::new("cluster-manager", Default::default()));
        manifest.body_mut()["spec"] = spec;
        manifest
    }

    #[test]
    fn a_new_object_is_applied_as_planned() {
        let planned = manager(json!({"deployOption": {"mode": "Default"}}));
        assert_eq!(reconcile(&planned, None), Reconciled::Apply(planned));
    }

    #[test]
    fn foreign_feature_gates_stay_and_ours_win() {
        let planned = manager(json!({"registrationConfiguration": {"featureGates": [
            {"feature": "A", "mode": "Enable"}, {"feature": "B", "mode": "Enable"}]}}));
        let live = json!({"spec": {"registrationConfiguration": {"featureGates": [
            {"feature": "X", "mode": "Enable"}, {"feature": "B", "mode": "Disable"}], "autoApproveUsers": ["u"]}}});
        assert_eq!(
            applied(&planned, &live)["spec"],
            json!({"registrationConfiguration": {"featureGates": [
                {"feature": "X", "mode": "Enable"}, {"feature": "B", "mode": "Enable"}, {"feature": "A", "mode": "Enable"}]}})
        );
    }

    #[test]
    fn amounts_of_cpu_and_memory_are_one_value_and_go_with_their_class() {
        let own = json!({"type": "ResourceRequirement", "resourceRequirements": {"limits": {"cpu": "1"}}});
        let live = json!({
            "metadata": {"managedFields": [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec":
                {"f:resourceRequirement": {"f:type": {}, "f:resourceRequirements": {"f:limits": {"f:cpu": {}}}}}}}]},
            "spec": {"resourceRequirement": own},
        });
        let requirement = |typed: &Value| {
            applied(&manager(json!({"resourceRequirement": typed})), &live)["spec"]["resourceRequirement"].clone()
        };
        let requests = json!({"type": "ResourceRequirement", "resourceRequirements": {"requests": {"cpu": "2"}}});
        assert_eq!(requirement(&requests), requests);
        assert_eq!(requirement(&json!({"type": "BestEffort"})), json!({"type": "BestEffort"}));
        assert_eq!(requirement(&json!({"type": "ResourceRequirement"})), own, "they stay with it");
    }

    #[test]
    fn rules_are_united_and_nothing_moves_when_nothing_is_new() {
        let mut role = ClusterRole::default();
        role.metadata.name = Some("r".to_owned());
        let mut planned = Manifest::of(&role);
        planned.body_mut()["rules"] = json!([{"verbs": ["get"], "resources": ["pods"]}, {"verbs": ["list"]}]);
        let live =
            json!({"rules": [{"verbs": ["watch"]}, {"verbs": ["list"]}, {"verbs": ["get"], "resources": ["pods"]}]});
        assert_eq!(applied(&planned, &live)["rules"], live["rules"]);
    }

    #[test]
    fn a_rule_that_grants_nothing_new_is_left_out() {
        let mut planned = Manifest::of(&ClusterRole::default());
        planned.body_mut()["rules"] = json!([
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        let live = json!({"rules": [
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
            {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["list", "watch"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]});
        let mut expected = live["rules"].clone();
        expected.as_array_mut().unwrap().push(planned.body()["rules"][2].clone());
        assert_eq!(applied(&planned, &live)["rules"], expected);
    }

    #[test]
    fn pull_secrets_of_others_stay() {
        let mut planned = Manifest::of(&ServiceAccount::default());
        planned.body_mut()["imagePullSecrets"] = json!([{"name": "ours"}]);
        let live = json!({"imagePullSecrets": [{"name": "theirs"}, {"name": "ours"}], "secrets": [{"name": "s"}]});
        assert_eq!(applied(&planned, &live)["imagePullSecrets"], live["imagePullSecrets"]);
        let before = json!({"imagePullSecrets": [{"name": "theirs"}]});
        assert_eq!(applied(&planned, &before)["imagePullSecrets"], json!([{"name": "theirs"}, {"name": "ours"}]));
    }

    #[test]
    fn arguments_are_told_apart_by_flag() {
        let mut planned = json!({"args": ["/registration-operator", "hub", "--a=2", "--new"]});
        let live = json!({"args": ["hub", "--a=1", "--own", "-v=4"]});
        unite(&mut planned, &live, "");
        assert_eq!(planned, json!({"args": ["hub", "--a=2", "--own", "-v=4", "--new"]}));
    }

    #[test]
    fn what_we_set_before_and_do_not_mention_now_is_carried() {
        let planned = manager(json!({"registrationConfiguration": {"registrationDrivers": [{"authType": "csr"}]}}));
        let live = json!({
            "metadata": {"managedFields": [{
                "manager": FIELD_MANAGER, "operation": "Apply",
                "fieldsV1": {"f:spec": {
                    "f:serverConfiguration": {"f:endpointsExposure": {}},
                    "f:registrationConfiguration": {"f:registrationDrivers": {
                        "k:{\"authType\":\"csr\"}": {".": {}, "f:authType": {}, "f:csr": {"f:autoApprovedIdentities": {}}},
                        "k:{\"authType\":\"grpc\"}": {".": {}, "f:authType": {}}}}}},
            }]},
            "spec": {
                "nodePlacement": {"nodeSelector": {"a": "b"}},
                "serverConfiguration": {"endpointsExposure": [{"protocol": "grpc"}]},
                "registrationConfiguration": {"registrationDrivers": [
                    {"authType": "csr", "csr": {"autoApprovedIdentities": ["u"]}}, {"authType": "grpc"}]},
            },
        });
        // The list of drivers is the plan's: grpc was left out on purpose. nodePlacement is somebody else's.
        assert_eq!(
            applied(&planned, &live)["spec"],
            json!({
                "serverConfiguration": {"endpointsExposure": [{"protocol": "grpc"}]},
                "registrationConfiguration": {"registrationDrivers": [
                    {"authType": "csr", "csr": {"autoApprovedIdentities": ["u"]}}]},
            })
        );
    }

    #[test]
    fn what_somebody_has_written_is_applied_as_it_stands() {
        let policy = |spec: Value| {
            let mut manifest = Manifest::of(&HubPolicy::new("p", Default::default()));
            manifest.body_mut()["spec"] = spec;
            manifest
        };
        // Each of them would be carried over, or united.
        let live = json!({
            "metadata": {"managedFields": [{
                "manager": FIELD_MANAGER, "operation": "Apply",
                "fieldsV1": {"f:spec": {"f:autoApprove": {}, "f:settings": {}}},
            }]},
            "spec": {"autoApprove": true, "settings": {"rules": ["a", "b"], "x": 1}},
        });
        let planned = policy(json!({"settings": {"rules": ["a"]}}));
        assert_ne!(applied(&planned, &live)["spec"], planned.body()["spec"]);
        let exact = planned.exactly();
        assert_eq!(applied(&exact, &live)["spec"], exact.body()["spec"]);
        assert!(!is_applied(&exact, &live));
        // Also where others have set it: a list that holds more is another one.
        let more = policy(json!({"settings": {"rules": [{"a": 1}]}}));
        let mut foreign = more.body().clone();
        foreign["spec"] = json!({"settings": {"rules": [{"a": 1}, {"b": 1}]}});
        assert!(is_applied(&more, &foreign) && !is_applied(&more.exactly(), &foreign));
    }

    #[test]
    fn live_values_lie_over_defaults() {
        let defaults = json!({"spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "a"}},
            "template": {"spec": {
                "containers": [{"name": "c", "image": "i:1", "livenessProbe": {"httpGet": {"port": 1}},
                    "readinessProbe": {"httpGet": {"port": 1}},
                    "env": [{"name": "E", "value": "1"}]}],
                "volumes": [{"name": "tmp", "emptyDir": {}}]}}}});
        let live = json!({"spec": {
            "replicas": 3, "paused": false, "selector": {"matchLabels": {"b": "c"}},
            "template": {"spec": {
                "containers": [{"name": "side"}, {"name": "c", "image": "i:2", "livenessProbe": {"tcpSocket": {}},
                    "readinessProbe": {"httpGet": {"port": 2}, "timeoutSeconds": 1},
                    "env": [{"name": "F", "value": "2"}]}],
                "volumes": [{"name": "tmp", "hostPath": {}}]}}}});
        assert_eq!(
            over(&defaults, &live),
            json!({"spec": {
                "replicas": 3, "selector": {"matchLabels": {"b": "c"}},
                "template": {"spec": {
                    "containers": [{"name": "c", "image": "i:2", "livenessProbe": {"tcpSocket": {}},
                        "readinessProbe": {"httpGet": {"port": 2}},
                        "env": [{"name": "E", "value": "1"}]}],
                    "volumes": [{"name": "tmp", "hostPath": {}}]}}}})
        );
    }

    #[test]
    fn credentials_are_not_emptied() {
        let secret = |config: &str| {
            let mut secret = Secret { type_: Some("kubernetes.io/dockerconfigjson".to_owned()), ..Secret::default() };
            secret.data = Some([(".dockerconfigjson".to_owned(), ByteString(config.as_bytes().to_vec()))].into());
            Manifest::of(&secret)
        };
        let (empty, real) = (secret("{}"), secret(r#"{"auths":{"r":{"auth":"eA=="}}}"#));
        assert!(matches!(reconcile(&empty, Some(real.body())), Reconciled::Keep(_)));
        assert!(matches!(reconcile(&empty, Some(empty.body())), Reconciled::Apply(_)));
        assert!(matches!(reconcile(&real, Some(real.body())), Reconciled::Apply(_)));
        assert!(matches!(reconcile(&real, Some(empty.body())), Reconciled::Apply(_)));
    }

    #[test]
    fn a_definition_is_never_replaced_by_a_poorer_one() {
        let ours = crds::cluster_manager_manifest();
        let same = ours.body().clone();
        assert!(matches!(reconcile(&ours, Some(&same)), Reconciled::Keep(reason) if reason.contains("everything")));

        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let mut richer = same.clone();
        let properties = richer.pointer_mut(spec).and_then(Value::as_object_mut).unwrap();
        properties.insert("tomorrow".to_owned(), json!({"type": "string"}));
        properties.remove("nodePlacement");
        let Reconciled::Keep(reason) = reconcile(&ours, Some(&richer)) else { panic!("replaced") };
        assert!(reason.contains("v1.spec.tomorrow") && reason.contains("lacks"), "{reason}");

        let mut poorer = same;
        poorer.pointer_mut(spec).and_then(Value::as_object_mut).unwrap().remove("nodePlacement");
        assert!(matches!(reconcile(&ours, Some(&poorer)), Reconciled::Apply(_)));
    }
}
