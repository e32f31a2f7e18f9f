//! Templates of Gatekeeper: Rego whose rule `violation` holds what is wrong.

use ocm_policy_abi::{Decision, EvidenceSource, Query, Request, Table, Verdict};
use serde_json::{Map, Value, json};

use super::answer::{checked, malformed, messages, one_result};
use crate::error::PolicyError;
use crate::json::shorten;
use crate::review::admission_request;
use crate::validate::Bounds;

/// Code of the reasons that Gatekeeper calls violations.
pub const VIOLATION: &str = "GatekeeperViolation";

/// What a Gatekeeper template finds as `input`. Of a deletion, the old object is the object as well, so that a template
/// that reads `input.review.object` judges it.
pub fn gatekeeper_input(request: &Request<'_>, parameters: &Value) -> Value {
    let mut review = admission_request(request, None);
    if review["operation"] == "DELETE" {
        review["object"] = review["oldObject"].clone();
    }
    json!({"review": review, "parameters": parameters})
}

/// Reads the result set of a Gatekeeper template's `violation`: each denies, and where there is none the template has
/// no opinion. It never allows: a template says what is wrong, not what is right.
///
/// # Errors
/// The rule is undefined, or its value is no set of violations.
pub fn gatekeeper_result(json: &[u8], bounds: &Bounds) -> Result<Decision, PolicyError> {
    let result = one_result(json, bounds)?;
    let Value::Array(violations) = &result else { return Err(malformed("the result is no set of violations")) };
    if let Some(other) = violations.iter().find(|violation| !violation.is_object()) {
        return Err(malformed(format!("{} is no violation", shorten(&other.to_string(), 64))));
    }
    let mut reasons = messages("violation", Some(&result), VIOLATION, bounds)?;
    reasons.truncate(bounds.reasons);
    let verdict = if reasons.is_empty() { Verdict::NoOpinion } else { Verdict::Deny };
    checked(Decision { verdict, reasons, ..Decision::default() }, bounds)
}

/// Version and kind of the objects that a source yields, as far as it says them.
fn kind_of(source: &EvidenceSource) -> Option<(&str, Option<&str>)> {
    match source {
        EvidenceSource::Clusters => Some(("cluster.open-cluster-management.io/v1", Some("ManagedCluster"))),
        EvidenceSource::ClusterSets => Some(("cluster.open-cluster-management.io/v1beta2", Some("ManagedClusterSet"))),
        EvidenceSource::Namespaces => Some(("v1", Some("Namespace"))),
        EvidenceSource::Objects { api_version, .. } => Some((api_version, None)),
        EvidenceSource::ConfigMap { .. }
        | EvidenceSource::Csrs
        | EvidenceSource::Approvals
        | EvidenceSource::Registrations => None,
    }
}

/// Whether the answer of a query can become part of `data.inventory`.
///
/// # Errors
/// It yields no whole objects.
pub fn check_inventory(query: &Query) -> Result<(), PolicyError> {
    match (kind_of(&query.source), query.fields.as_slice()) {
        (Some(_), [whole]) if whole.is_empty() => Ok(()),
        (None, _) => Err(PolicyError::Load(format!(
            "its evidence {:?} yields no objects of Kubernetes, and a Gatekeeper template finds nothing else in \
             data.inventory",
            query.name
        ))),
        _ => Err(PolicyError::Load(format!(
            "its evidence {:?} must be whole objects, fields: [\"\"], because a Gatekeeper template finds them in \
             data.inventory",
            query.name
        ))),
    }
}

/// The version under which a Gatekeeper template finds what a source yields in `data.inventory`; none: it finds nothing of it.
pub fn inventory_version(source: &EvidenceSource) -> Option<&str> {
    kind_of(source).map(|(version, _)| version)
}

/// What a Gatekeeper template finds as `data.inventory`: objects by namespace, version, kind and name.
///
/// # Errors
/// A table is cut off or holds something else than the objects that its query asks for. Rules about what is missing
/// would be silent, so nothing is left out.
pub fn inventory<'t>(tables: impl IntoIterator<Item = (&'t Query, &'t Table<'t>)>) -> Result<Value, PolicyError> {
    let mut cluster = Map::new();
    let mut namespace = Map::new();
    for (query, table) in tables {
        check_inventory(query)?;
        let wrong = |why: String| PolicyError::Evidence(format!("the evidence {:?} cannot be used: {why}", query.name));
        let Some((version, kind)) = kind_of(&query.source) else { continue };
        if !table.complete || table.rows.iter().any(|row| !row.complete) {
            return Err(wrong("it is cut off".to_owned()));
        }
        for row in &table.rows {
            let [object @ Value::Object(_)] = row.values.as_slice() else {
                return Err(wrong(format!("{} must be one object", row.name.as_str())));
            };
            let own = |name: &str| object.get(name).and_then(Value::as_str);
            let found = (own("apiVersion").unwrap_or(version), own("kind").or(kind));
            let (found_version, Some(found_kind)) = found else {
                return Err(wrong(format!("{} has no kind", row.name.as_str())));
            };
            if found_version != version || kind.is_some_and(|kind| kind != found_kind) {
                return Err(wrong(format!("{} is a {found_kind} of {found_version}", row.name.as_str())));
            }
            let place = match &row.namespace {
                Some(name) => member(&mut namespace, name),
                None => Some(&mut cluster),
            };
            let kinds = place.and_then(|place| member(place, version)).and_then(|place| member(place, found_kind));
            let Some(names) = kinds else { return Err(wrong("names of it are used for something else".to_owned())) };
            names.insert(row.name.to_string(), object.clone());
        }
    }
    Ok(json!({"cluster": cluster, "namespace": namespace}))
}

/// A member that is an object, made where it is missing.
fn member<'m>(of: &'m mut Map<String, Value>, name: &str) -> Option<&'m mut Map<String, Value>> {
    of.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::Row;

    use super::*;

    #[test]
    fn violations_deny_and_nothing_allows() {
        let ask = |result: &str| gatekeeper_result(result.as_bytes(), &Bounds::default());
        assert_eq!(ask(r#"[{"result": []}]"#), Ok(Decision::default()), "nothing is wrong, so it has no opinion");
        let deny = ask(r#"[{"result": [{"msg": "no", "details": {"a": 1}}, {}]}]"#).unwrap();
        assert_eq!((deny.verdict, deny.reasons.len()), (Verdict::Deny, 2));
        assert_eq!((&*deny.reasons[0].code, &*deny.reasons[0].message), (VIOLATION, "no"));
        let error = ask("[]").unwrap_err();
        assert!(error.to_string().contains("the rule is undefined"), "{error}");
        for wrong in [
            "",
            "null",
            "{}",
            "[[]]",
            "[{}]",
            "[null]",
            r#"[{"result": null}]"#,
            r#"[{"result": true}]"#,
            r#"[{"result": false}]"#,
            r#"[{"result": {}}]"#,
            r#"[{"result": ["no"]}]"#,
            r#"[{"result": [null]}]"#,
            r#"[{"result": [], "violation": [{"msg": "no"}]}]"#,
            r#"[{"result": [{"msg": "no"}], "result": []}]"#,
            r#"[{"result": []}, {"result": [{"msg": "no"}]}]"#,
            r#"{"result": []}"#,
        ] {
            assert_eq!(ask(wrong).unwrap_err().code(), "malformed", "{wrong}");
        }
    }

    fn query(source: EvidenceSource, field: &str) -> Query {
        Query::new("q", source, [field])
    }

    fn row(namespace: Option<&str>, name: &str, value: Value) -> Row<'static> {
        Row {
            namespace: namespace.map(|namespace| namespace.to_owned().into()),
            name: name.to_owned().into(),
            values: vec![value],
            complete: true,
        }
    }

    fn table(rows: Vec<Row<'static>>) -> Table<'static> {
        Table { revision: "1".into(), complete: true, rows }
    }

    #[test]
    fn an_inventory_is_objects_by_where_they_are() {
        let ingresses = query(
            EvidenceSource::Objects {
                api_version: "networking.k8s.io/v1".into(),
                resource: "ingresses".into(),
                namespace: None,
            },
            "",
        );
        let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"});
        let spaces = query(EvidenceSource::Namespaces, "");
        let plain = json!({"metadata": {"name": "a"}});
        let tables = [
            (&ingresses, &table(vec![row(Some("a"), "i", object.clone()), row(Some("b"), "i", object.clone())])),
            (&spaces, &table(vec![row(None, "a", plain.clone())])),
        ];
        let one = json!({"networking.k8s.io/v1": {"Ingress": {"i": object}}});
        assert_eq!(
            inventory(tables).unwrap(),
            json!({"namespace": {"a": one, "b": one}, "cluster": {"v1": {"Namespace": {"a": plain}}}})
        );
        assert_eq!(inventory([]).unwrap(), json!({"namespace": {}, "cluster": {}}));
    }

    #[test]
    fn an_inventory_with_something_missing_is_none() {
        let spaces = query(EvidenceSource::Namespaces, "");
        let cut = Table { complete: false, ..table(Vec::new()) };
        let wordless = Row { values: Vec::new(), ..row(None, "a", Value::Null) };
        let doubled = Row { values: vec![json!({}), json!({})], ..row(None, "a", Value::Null) };
        for (table, why) in [
            (cut, "it is cut off"),
            (table(vec![row(None, "a", Value::Null)]), "a must be one object"),
            (table(vec![wordless]), "a must be one object"),
            (table(vec![doubled]), "a must be one object"),
            (table(vec![row(None, "a", json!({"kind": "Pod"}))]), "a is a Pod of v1"),
            (table(vec![row(None, "a", json!({"apiVersion": "v2", "kind": "Namespace"}))]), "a is a Namespace of v2"),
        ] {
            let said = inventory([(&spaces, &table)]).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
        let others =
            query(EvidenceSource::Objects { api_version: "v1".into(), resource: "pods".into(), namespace: None }, "");
        let said = inventory([(&others, &table(vec![row(Some("n"), "a", json!({}))]))]).unwrap_err().to_string();
        assert!(said.contains("a has no kind"), "{said}");
        for wrong in [query(EvidenceSource::Csrs, ""), query(EvidenceSource::Namespaces, "/metadata")] {
            assert_eq!(check_inventory(&wrong).unwrap_err().code(), "load");
        }
        let none = Query { fields: Vec::new(), ..query(EvidenceSource::Namespaces, "") };
        assert_eq!(check_inventory(&none).unwrap_err().code(), "load");
    }

    #[test]
    fn a_deleted_object_is_judged_as_the_object() {
        let request: Request<'_> = serde_json::from_str(
            r#"{"id": "1", "operation": "delete", "now": 0, "requester": {"username": "u"},
                "resource": {"group": "", "version": "v1", "kind": "Namespace", "resource": "namespaces",
                             "operation": "DELETE"}, "previousObject": {"metadata": {"name": "a"}}}"#,
        )
        .unwrap();
        let input = gatekeeper_input(&request, &Value::Null);
        assert_eq!(input["review"]["object"], json!({"metadata": {"name": "a"}}));
        assert_eq!(input["review"]["oldObject"], input["review"]["object"]);
    }
}
