//! Rules of roles: what they grant, as the API server reads them.

use serde_json::Value;

/// Whether `rules` together grant everything that `rule` grants.
///
/// As the API server does when it asks whether somebody may grant a rule: it is taken apart into single rights, each of
/// which one of the rules has to grant.
pub(super) fn are_covered(rules: &[Value], rule: &Value) -> bool {
    let rights = rights(rule);
    !rights.is_empty() && rights.iter().all(|right| rules.iter().any(|rule| grants(rule, right)))
}

/// One verb on one thing.
enum Right<'a> {
    Resource { verb: &'a str, group: &'a str, resource: &'a str, name: Option<&'a str> },
    Path { verb: &'a str, path: &'a str },
}

fn rights(rule: &Value) -> Vec<Right<'_>> {
    let mut rights = Vec::new();
    for verb in words(rule, "verbs") {
        rights.extend(words(rule, "nonResourceURLs").map(|path| Right::Path { verb, path }));
        for group in words(rule, "apiGroups") {
            for resource in words(rule, "resources") {
                let mut names = words(rule, "resourceNames").peekable();
                if names.peek().is_none() {
                    rights.push(Right::Resource { verb, group, resource, name: None });
                }
                rights.extend(names.map(|name| Right::Resource { verb, group, resource, name: Some(name) }));
            }
        }
    }
    rights
}

fn grants(rule: &Value, right: &Right<'_>) -> bool {
    let has = |member: &str, word: &str| words(rule, member).any(|own| own == word || own == "*");
    match *right {
        Right::Path { verb, path } => {
            let reaches = |own: &str| match own.strip_suffix('*') {
                Some(start) => path.starts_with(start),
                None => own == path,
            };
            has("verbs", verb) && words(rule, "nonResourceURLs").any(reaches)
        }
        Right::Resource { verb, group, resource, name } => {
            // `*/scale` is the subresource of everything.
            let of_all = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            let resource = has("resources", resource) || of_all.is_some_and(|all| has("resources", &all));
            let mut names = words(rule, "resourceNames").peekable();
            let named = names.peek().is_none() || names.any(|own| Some(own) == name);
            has("verbs", verb) && has("apiGroups", group) && resource && named
        }
    }
}

fn words<'a>(rule: &'a Value, member: &str) -> impl Iterator<Item = &'a str> {
    rule[member].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]) -> Value {
        json!({"apiGroups": groups, "resources": resources, "resourceNames": names, "verbs": verbs})
    }

    #[test]
    fn several_rules_cover_one_together() {
        let live = [rule(&["a"], &["x"], &[], &["get"]), rule(&["a", "b"], &["x", "y"], &[], &["list"])];
        assert!(are_covered(&live, &rule(&["a"], &["x"], &[], &["get", "list"])));
        assert!(!are_covered(&live, &rule(&["a"], &["x", "y"], &[], &["get", "list"])));
        assert!(!are_covered(&live, &rule(&["c"], &["x"], &[], &["list"])));
    }

    #[test]
    fn names_and_wildcards_count_as_the_api_server_counts_them() {
        let all = [rule(&["*"], &["*"], &[], &["*"])];
        assert!(are_covered(&all, &rule(&[""], &["pods/log"], &["a"], &["get"])));
        let named = [rule(&[""], &["secrets"], &["a", "b"], &["get"])];
        assert!(are_covered(&named, &rule(&[""], &["secrets"], &["b"], &["get"])));
        assert!(!are_covered(&named, &rule(&[""], &["secrets"], &["c"], &["get"])));
        assert!(!are_covered(&named, &rule(&[""], &["secrets"], &[], &["get"])), "all is more than some");
        let scale = [rule(&["apps"], &["*/scale"], &[], &["get"])];
        assert!(are_covered(&scale, &rule(&["apps"], &["deployments/scale"], &[], &["get"])));
        assert!(!are_covered(&scale, &rule(&["apps"], &["deployments"], &[], &["get"])));
        let paths = [json!({"nonResourceURLs": ["/healthz/*"], "verbs": ["get"]})];
        assert!(are_covered(&paths, &json!({"nonResourceURLs": ["/healthz/etcd"], "verbs": ["get"]})));
        assert!(!are_covered(&paths, &json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})));
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_not_covered() {
        assert!(!are_covered(&[rule(&["*"], &["*"], &[], &["*"])], &json!({"verbs": ["get"]})));
    }
}
