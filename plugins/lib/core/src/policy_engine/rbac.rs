//! What the webhook, the controller and what renews certificates may do on the hub: the very roles that the documentation
//! shows.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use ocm_api::Manifest;
use serde_json::{Value, json};

use super::names::{CERTIFICATES, CONTROLLER, NAMESPACE, WEBHOOK, meta};

/// The files of the documentation.
const ROLES: &str = include_str!("../../../../../docs/rbac/policy-webhook.yaml");
const CONTROLLERS_ROLES: &str = include_str!("../../../../../docs/rbac/policy-controller.yaml");
const CERTIFICATES_ROLES: &str = include_str!("../../../../../docs/rbac/policy-certificates.yaml");

/// The roles of the webhook, each with its binding.
pub(super) fn webhook() -> Vec<Manifest> {
    bound(ROLES, WEBHOOK)
}

/// The roles of the controller, each with its binding.
pub(super) fn controller() -> Vec<Manifest> {
    bound(CONTROLLERS_ROLES, CONTROLLER)
}

/// The roles of what renews certificates, each with its binding.
pub(super) fn certificates() -> Vec<Manifest> {
    bound(CERTIFICATES_ROLES, CERTIFICATES)
}

/// Every role of a file, and what gives it to a ServiceAccount of ours.
fn bound(file: &str, account: &str) -> Vec<Manifest> {
    let roles: Vec<Value> = serde_saphyr::from_multiple(file).expect("a test reads the file");
    roles.iter().flat_map(|role| both(role, account)).collect()
}

fn both(role: &Value, account: &str) -> [Manifest; 2] {
    let text = |member: &str| role["metadata"][member].as_str().map(str::to_owned);
    let mut metadata = meta(&text("name").unwrap_or_default());
    metadata.namespace = text("namespace");
    let rules = json!({"rules": role["rules"]});
    let own = match metadata.namespace {
        None => Manifest::with::<ClusterRole>(&metadata, rules),
        Some(_) => Manifest::with::<Role>(&metadata, rules),
    };
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": own.kind(), "name": own.name()});
    let subjects = json!([{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}]);
    let bound = json!({"roleRef": reference, "subjects": subjects});
    let binding = match metadata.namespace {
        None => Manifest::with::<ClusterRoleBinding>(&metadata, bound),
        Some(_) => Manifest::with::<RoleBinding>(&metadata, bound),
    };
    [own, binding]
}

#[cfg(test)]
mod tests {
    use super::super::names::MARK;
    use super::*;

    /// The documented roles, after a look at whether the plan holds exactly these.
    fn documented(plan: &[Manifest], file: &str, account: &str) -> Vec<Value> {
        let roles: Vec<Value> = serde_saphyr::from_multiple(file).unwrap();
        assert_eq!(plan.len(), 2 * roles.len());
        for (pair, role) in plan.chunks(2).zip(&roles) {
            let [own, binding] = pair else { panic!("a role without its binding") };
            assert_eq!((&own.body()["rules"], own.kind()), (&role["rules"], role["kind"].as_str().unwrap()));
            assert_eq!(own.namespace(), role["metadata"]["namespace"].as_str());
            assert_eq!((binding.name(), binding.namespace()), (own.name(), own.namespace()));
            assert_eq!(binding.body()["roleRef"]["kind"], role["kind"]);
            assert_eq!(binding.body()["subjects"][0]["name"], account);
            assert_eq!(own.body()["metadata"]["labels"][MARK.0], MARK.1);
        }
        roles.iter().flat_map(|role| role["rules"].as_array().unwrap().clone()).collect()
    }

    /// Whether rules give access to the authority's key, or let it be had from elsewhere.
    fn reaches_the_key(rules: &[Value]) -> bool {
        let rules = json!(rules).to_string();
        ["\"secrets\"", "\"*\"", "serviceaccounts", "pods"].iter().any(|word| rules.contains(word))
    }

    #[test]
    fn the_webhook_gets_what_the_documentation_says_and_only_reads() {
        let rules = documented(&webhook(), ROLES, WEBHOOK);
        let verbs: Vec<&str> = rules
            .iter()
            .flat_map(|rule| rule["verbs"].as_array().unwrap())
            .map(|verb| verb.as_str().unwrap())
            .collect();
        assert!(!reaches_the_key(&rules));
        assert!(verbs.len() > 10 && verbs.iter().all(|verb| ["get", "list", "watch"].contains(verb)), "{verbs:?}");
    }

    #[test]
    fn the_controller_gets_what_the_documentation_says_and_grants_nothing() {
        let rules = documented(&controller(), CONTROLLERS_ROLES, CONTROLLER);
        assert!(!reaches_the_key(&rules));
        let changes = |rule: &&Value| {
            !rule["verbs"]
                .as_array()
                .unwrap()
                .iter()
                .all(|verb| ["get", "list", "watch"].contains(&verb.as_str().unwrap()))
        };
        let changed: Vec<String> = rules.iter().filter(changes).map(|rule| rule["resources"].to_string()).collect();
        assert!(changed.iter().any(|kinds| kinds.contains("certificatesigningrequests/approval")), "{changed:?}");
        // Whoever changes these changes what it may do, or by what it is judged.
        for kind in ["hubpolicies\"", "roles", "bindings", "webhook", "admission", "deployments", "namespaces"] {
            assert!(!changed.iter().any(|kinds| kinds.contains(kind)), "{kind}: {changed:?}");
        }
    }

    #[test]
    fn what_renews_certificates_reads_and_changes_what_they_are_in_and_makes_nothing() {
        let rules = documented(&certificates(), CERTIFICATES_ROLES, CERTIFICATES);
        assert!(reaches_the_key(&rules), "nothing else does");
        let mut rights: Vec<String> = Vec::new();
        for rule in &rules {
            let list = |member: &str| -> Vec<&str> {
                rule[member].as_array().expect("a list").iter().map(|one| one.as_str().expect("text")).collect()
            };
            assert_eq!(list("verbs"), ["get", "patch"]);
            for (kind, name) in list("resources")
                .iter()
                .flat_map(|kind| list("resourceNames").into_iter().map(move |name| (kind, name)))
            {
                rights.push(format!("{kind} {name}"));
            }
        }
        rights.sort();
        let all = [
            "mutatingwebhookconfigurations ocm-policy-webhook",
            "secrets ocm-policy-webhook-ca",
            "secrets ocm-policy-webhook-tls",
            "validatingwebhookconfigurations ocm-policy-webhook",
        ];
        assert_eq!(rights, all);
    }
}
