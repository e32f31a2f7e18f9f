//! Users who hold the rights that the documentation names, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use control_plane::{Allowed, Cluster};
use http::Request;
use kube::Client;
use ocm_core::yaml;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::connection::connect;
use crate::manifests::apply;
use crate::until;

/// Applies the documented roles of a command and binds them to a new user, whose kubeconfig it returns.
///
/// # Panics
///
/// When a role cannot be read, applied or bound.
pub fn user_with(cluster: &Cluster, user: &str, files: &[&str]) -> PathBuf {
    let roles: Vec<Value> = files.iter().flat_map(|file| documented(file)).collect();
    let bindings = roles.iter().map(|role| binding(user, role));
    apply(cluster, &list(roles.iter().cloned().chain(bindings).collect()));
    hold(cluster, &roles.iter().filter_map(|role| last_held(user, role)).collect::<Vec<_>>());
    cluster.user_kubeconfig(user, &[]).expect("a user can be made")
}

/// What binds a role to a user.
fn binding(user: &str, role: &Value) -> Value {
    let (kind, name) = (role["kind"].as_str().expect("a role has a kind"), name(role));
    let mut metadata = json!({"name": format!("{user}-{name}")});
    if let Some(namespace) = namespace(role) {
        metadata["namespace"] = json!(namespace);
    }
    bound(kind, &metadata, name, user)
}

/// The binding with this metadata of a role of its namespace, or of none, to a user.
fn bound(kind: &str, metadata: &Value, role: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

fn list(items: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn name(role: &Value) -> &str {
    role.pointer("/metadata/name").and_then(Value::as_str).expect("a role has a name")
}

/// The namespace of a Role; a ClusterRole has none.
fn namespace(role: &Value) -> Option<&str> {
    role.pointer("/metadata/namespace").and_then(Value::as_str)
}

/// The last right of a role, as a rule of its own.
fn last_right(role: &Value) -> Option<Value> {
    single(role["rules"].as_array()?.last()?).pop()
}

/// A right that somebody holds in a namespace, or in all of them.
struct Held<'a> {
    user: &'a str,
    namespace: Option<&'a str>,
    right: Value,
}

/// The last right of a role that is bound to a user.
fn last_held<'a>(user: &'a str, role: &'a Value) -> Option<Held<'a>> {
    Some(Held { user, namespace: namespace(role), right: last_right(role)? })
}

/// Waits until the API server knows that these rights are held: it learns of roles and bindings by watches.
fn hold(cluster: &Cluster, all: &[Held<'_>]) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(connect(cluster.kubeconfig())).client;
    for held in all {
        until(&format!("{} gets its rights", held.user), || runtime.block_on(holds(&client, held)));
    }
}

/// Whether a right is held. The user itself is asked: in an audit log a question about somebody else is one that a webhook asks.
async fn holds(client: &Client, held: &Held<'_>) -> bool {
    let part = |member: &str| held.right[member][0].as_str().unwrap_or_default();
    let (resource, subresource) = part("resources").split_once('/').unwrap_or((part("resources"), ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": part("verbs"), "group": part("apiGroups"), "resource": resource, "subresource": subresource,
            "name": part("resourceNames"), "namespace": held.namespace.unwrap_or_default(),
        }},
    });
    let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header("content-type", "application/json")
        .header("impersonate-user", held.user)
        .body(review.to_string().into_bytes())
        .expect("it is a request");
    let answer: Value = client.request(request).await.expect("the API server answers");
    answer["status"]["allowed"] == true
}

/// The documented roles of a file.
fn documented(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rbac").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    yaml::documents(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Users who hold all rights of the documented roles of a file but one, for every right of them, each with the words in
/// which a command misses that right. Administrators may act as them.
///
/// # Panics
///
/// When the roles cannot be read, or the users get no rights.
pub fn users_without_one_right(cluster: &Cluster, file: &str) -> Vec<(String, String)> {
    let rights: Vec<(Option<String>, Value)> = documented(file)
        .iter()
        .flat_map(|role| {
            let namespace = namespace(role).map(str::to_owned);
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
            objects.push(bound(kind, &metadata, &name, &name));
        }
        users.push((name, words(&missing.1)));
    }
    apply(cluster, &list(objects));
    // The API server learns of roles of one kind in the order in which they were made: who has the last ones, has all.
    let last = last.iter().map(|(namespace, (user, right))| {
        let namespace = namespace.as_deref();
        Held { user, namespace, right: right.clone() }
    });
    hold(cluster, &last.collect::<Vec<_>>());
    users
}

/// Users who hold all rights of the documented ClusterRole of a file but those of one rule, for every rule, each with that
/// rule. Of its Roles they hold everything.
///
/// # Panics
///
/// When the roles cannot be read or bound.
pub fn users_without_one_rule(cluster: &Cluster, file: &str) -> Vec<(PathBuf, Value)> {
    let roles = documented(file);
    let whole = roles.iter().find(|role| role["kind"] == "ClusterRole").expect("a ClusterRole");
    let rules = whole["rules"].as_array().expect("it has rules");
    let of_namespaces = || roles.iter().filter(|role| role["kind"] != "ClusterRole");
    let (mut objects, mut users): (Vec<Value>, Vec<_>) = (of_namespaces().cloned().collect(), Vec::new());
    for (index, missing) in rules.iter().enumerate() {
        let user = format!("{}-{index}", file.trim_end_matches(".yaml"));
        let mut role = whole.clone();
        role["metadata"]["name"] = json!(user);
        role["rules"] = rules.iter().filter(|rule| *rule != missing).cloned().collect();
        let bound = binding(&user, &role);
        objects.extend([role, bound]);
        objects.extend(of_namespaces().map(|role| binding(&user, role)));
        users.push((user, missing.clone()));
    }
    apply(cluster, &list(objects));
    // The last one has its rights when all others have theirs.
    if let Some((user, missing)) = users.last() {
        let right = rules.first().filter(|rule| *rule != missing).and_then(|rule| single(rule).pop());
        let of_cluster = right.map(|right| Held { user, namespace: None, right });
        let of_namespaces = of_namespaces().filter_map(|role| last_held(user, role));
        hold(cluster, &of_cluster.into_iter().chain(of_namespaces).collect::<Vec<_>>());
    }
    let kubeconfig = |user: &str| cluster.user_kubeconfig(user, &[]).expect("a user can be made");
    users.into_iter().map(|(user, missing)| (kubeconfig(&user), missing)).collect()
}

/// Every right of the documented roles of a file, each as a rule of its own.
///
/// # Panics
///
/// When the roles cannot be read.
pub fn rights(file: &str) -> Vec<Value> {
    documented(file)
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
    for role in documented(file) {
        let namespace = namespace(&role);
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
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules,
    });
    let right = last_right(&role).expect("it grants something");
    apply(cluster, &list(vec![role, bound("ClusterRole", &metadata, user, user)]));
    hold(cluster, &[Held { user, namespace: None, right }]);
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
