//! Users who hold the rights that the documentation names, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use control_plane::{Allowed, Cluster};
use serde_json::{Value, json};

use crate::until;

/// Applies the documented roles of a command and binds them to a new user, whose kubeconfig it returns.
///
/// # Panics
///
/// When a role cannot be read, applied or bound.
pub fn user_with(cluster: &Cluster, user: &str, files: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rbac");
    for file in files {
        let path = folder.join(file);
        let text = path.to_str().expect("the path is text");
        cluster.kubectl(&["apply", "--filename", text]).expect("the documented roles can be applied");
        documented(cluster, file).iter().for_each(|role| bind(cluster, user, role));
    }
    cluster.user_kubeconfig(user, &[]).expect("a user can be made")
}

fn bind(cluster: &Cluster, user: &str, role: &Value) {
    let name = role.pointer("/metadata/name").and_then(Value::as_str).expect("a role has a name");
    let user_flag = format!("--user={user}");
    let binding = format!("{user}-{name}");
    let bound = match role["kind"].as_str() {
        Some("ClusterRole") => {
            cluster.kubectl(&["create", "clusterrolebinding", &binding, "--clusterrole", name, &user_flag])
        }
        _ => {
            let namespace =
                role.pointer("/metadata/namespace").and_then(Value::as_str).expect("a Role has a namespace");
            cluster.kubectl(&["create", "rolebinding", &binding, "--role", name, &user_flag, "--namespace", namespace])
        }
    };
    bound.expect("the role can be bound");
}

/// The documented roles of a file.
fn documented(cluster: &Cluster, file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rbac").join(file);
    let text = path.to_str().expect("the path is text");
    let listed = cluster.kubectl(&["create", "--dry-run=client", "--output=json", "--filename", text]);
    let listed = listed.expect("the documented roles can be read");
    serde_json::Deserializer::from_str(&listed)
        .into_iter::<Value>()
        .map(|role| role.expect("kubectl prints JSON"))
        .flat_map(|role| role["items"].as_array().cloned().unwrap_or_else(|| vec![role.clone()]))
        .collect()
}

/// Users who hold all rights of the documented roles of a file but one, for every right of them, each with the words in
/// which a command misses that right. Administrators may act as them.
///
/// # Panics
///
/// When the roles cannot be read, or the users get no rights.
pub fn users_without_one_right(cluster: &Cluster, file: &str) -> Vec<(String, String)> {
    // Of a ClusterRole there is no namespace.
    let rights: Vec<(Option<String>, Value)> = documented(cluster, file)
        .iter()
        .flat_map(|role| {
            let namespace = role.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
            let rights = role["rules"].as_array().into_iter().flatten().flat_map(single);
            rights.map(move |right| (namespace.clone(), right)).collect::<Vec<_>>()
        })
        .collect();
    let namespaces: BTreeSet<&Option<String>> = rights.iter().map(|(namespace, _)| namespace).collect();
    let (mut objects, mut users, mut last) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (index, missing) in rights.iter().enumerate() {
        let name = format!("{}-{index}", file.trim_end_matches(".yaml"));
        for namespace in &namespaces {
            let held = rights.iter().filter(|right| right.0 == **namespace && *right != missing);
            let rules: Vec<&Value> = held.map(|(_, rule)| rule).collect();
            let Some(first) = rules.first() else { continue };
            last.insert(*namespace, (name.clone(), (*first).clone()));
            let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
            let mut metadata = json!({"name": name});
            namespace.iter().for_each(|namespace| metadata["namespace"] = json!(namespace));
            objects.push(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules}));
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
            }));
        }
        users.push((name, words(&missing.1)));
    }
    let list = cluster.dir().expect("a folder").join("roles.json");
    std::fs::write(&list, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).expect("written");
    cluster.kubectl(&["apply", "--filename", list.to_str().expect("text")]).expect("the roles can be applied");
    // The API server learns of roles of one kind in the order in which they were made: who has the last ones, has all.
    for (namespace, (user, right)) in last {
        let part = |member: &str| right[member][0].as_str().unwrap_or_default().to_owned();
        let what = match (part("apiGroups"), part("resourceNames")) {
            (group, name) if group.is_empty() && name.is_empty() => part("resources"),
            (group, name) if group.is_empty() => format!("{}/{name}", part("resources")),
            (group, name) => format!("{}.{group}/{name}", part("resources")),
        };
        let mut question = vec!["auth", "can-i"];
        let (verb, namespace) = (part("verbs"), namespace.as_ref().map(|name| format!("--namespace={name}")));
        question.extend([&*verb, what.trim_end_matches('/'), "--as", &user]);
        question.extend(namespace.as_deref());
        until(&format!("{user} gets its rights"), || cluster.kubectl(&question).is_ok());
    }
    users
}

/// Users who hold all rights of the documented ClusterRole of a file but those of one rule, for every rule, each with that
/// rule. Of its Roles they hold everything.
///
/// # Panics
///
/// When the roles cannot be read or bound.
pub fn users_without_one_rule(cluster: &Cluster, file: &str) -> Vec<(PathBuf, Value)> {
    let roles = documented(cluster, file);
    let rules = roles.iter().find(|role| role["kind"] == "ClusterRole").expect("a ClusterRole")["rules"].clone();
    let rules = rules.as_array().expect("it has rules");
    let mut users = Vec::new();
    for (index, missing) in rules.iter().enumerate() {
        let user = format!("{}-{index}", file.trim_end_matches(".yaml"));
        for role in &roles {
            let mut role = role.clone();
            if role["kind"] == "ClusterRole" {
                role["metadata"]["name"] = json!(user);
                role["rules"] = rules.iter().filter(|rule| *rule != missing).cloned().collect();
            }
            let file = cluster.dir().expect("a folder").join("role.json");
            std::fs::write(&file, role.to_string()).expect("written");
            cluster.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("the role can be applied");
            bind(cluster, &user, &role);
        }
        users.push((cluster.user_kubeconfig(&user, &[]).expect("a user can be made"), missing.clone()));
    }
    users
}

/// Every right of the documented roles of a file, each as a rule of its own.
///
/// # Panics
///
/// When the roles cannot be read.
pub fn rights(cluster: &Cluster, file: &str) -> Vec<Value> {
    documented(cluster, file)
        .iter()
        .flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default())
        .flat_map(|rule| single(&rule))
        .collect()
}

/// What the documented roles of a file grant a user and an audited cluster was never seen to allow: of each rule the verbs with
/// each resource, and the names of a rule that was used.
///
/// # Panics
///
/// When the roles or the log cannot be read.
pub fn unused_rights(cluster: &Cluster, file: &str, user: &str) -> BTreeSet<String> {
    let allowed = cluster.allowed_to(user).expect("the audit log can be read");
    let mut unused = BTreeSet::new();
    for role in documented(cluster, file) {
        let namespace = role.pointer("/metadata/namespace").and_then(Value::as_str);
        let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
        for rule in role["rules"].as_array().into_iter().flatten() {
            let list = |member: &str| -> Vec<&str> {
                rule[member].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
            };
            let [groups, resources, names, verbs] = ["apiGroups", "resources", "resourceNames", "verbs"].map(list);
            let is_by_rule = |one: &&Allowed| {
                groups.contains(&&*one.group)
                    && resources.contains(&&*one.resource)
                    && (names.is_empty() || names.contains(&&*one.name))
                    && verbs.contains(&&*one.verb)
                    && namespace.is_none_or(|namespace| one.namespace == namespace)
            };
            let used: Vec<&Allowed> = allowed.iter().filter(is_by_rule).collect();
            let pairs = verbs.iter().flat_map(|verb| resources.iter().map(move |resource| (*verb, *resource)));
            let never = pairs.filter(|pair| !used.iter().any(|one| (&*one.verb, &*one.resource) == *pair));
            unused.extend(never.map(|(verb, resource)| format!("{verb} {resource}{place}")));
            let never = names.iter().filter(|name| !used.is_empty() && !used.iter().any(|one| one.name == **name));
            unused.extend(never.map(|name| format!("{} {name}{place}", resources.join(","))));
        }
    }
    unused
}

/// Lets a user do what these rules say, and waits until the API server knows so.
///
/// # Panics
///
/// When they cannot be applied.
pub fn bind_rules(cluster: &Cluster, user: &str, rules: &[Value]) {
    let metadata = json!({"name": user});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
         "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]},
    ]});
    let file = cluster.dir().expect("a folder").join("rules.json");
    std::fs::write(&file, list.to_string()).expect("written");
    cluster.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("the rules can be applied");
    let last = single(rules.last().expect("there are rules")).pop().expect("it grants something");
    let part = |member: &str| last[member][0].as_str().unwrap_or_default().to_owned();
    let what = format!("{}.{}", part("resources"), part("apiGroups"));
    let what = format!("{}/{}", what.trim_end_matches('.'), part("resourceNames"));
    let question = ["auth", "can-i", &part("verbs"), what.trim_end_matches('/'), "--as", user];
    until(&format!("{user} gets its rights"), || cluster.kubectl(&question).is_ok());
}

/// The resources of a rule.
///
/// # Panics
///
/// When it has none.
pub fn resources(rule: &Value) -> Vec<String> {
    let resources = rule["resources"].as_array().expect("a rule has resources");
    resources.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether the controller needs a rule only to tell what becomes of policies.
pub fn tells_of_policies(rule: &Value) -> bool {
    let resources = resources(rule);
    resources.iter().any(|resource| resource == "hubpolicies/status" || resource.ends_with("webhookconfigurations"))
        || rule["resourceNames"].to_string().contains("ocm-policy-engine-probe")
}

/// The rights of a rule, each as a rule of its own.
fn single(rule: &Value) -> Vec<Value> {
    let list = |member: &str| rule[member].as_array().cloned().unwrap_or_default();
    let names = list("resourceNames");
    let names: Vec<Option<Value>> = if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
    let mut all = Vec::new();
    for (group, resource) in
        list("apiGroups").iter().flat_map(|group| list("resources").into_iter().map(move |one| (group, one)))
    {
        for verb in list("verbs") {
            for name in &names {
                let mut one = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
                if let Some(name) = name {
                    one["resourceNames"] = json!([name]);
                }
                all.push(one);
            }
        }
    }
    all
}

fn words(right: &Value) -> String {
    let part = |member: &str| right[member][0].as_str().unwrap_or_default();
    let name = match part("resourceNames") {
        "" => String::new(),
        name => format!(" {name:?}"),
    };
    let group = match part("apiGroups") {
        "" => String::new(),
        group => format!(".{group}"),
    };
    format!("may not {} {}{group}{name}", part("verbs"), part("resources"))
}
