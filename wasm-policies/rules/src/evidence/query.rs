//! Answering queries.

use std::collections::{BTreeMap, BTreeSet};

use ocm_policy_abi::{Query, Row, Table, Text};
use serde_json::Value;

use super::field::Path;
use super::selector::Selector;

/// How much one table may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Rows, whatever the query says.
    pub rows: usize,
    /// Bytes of all rows as JSON.
    pub bytes: usize,
    /// Bytes of one row as JSON. An object with more in it gets a row that is not complete, so that whoever fills one
    /// object hides no other.
    pub row_bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rows: 5000, bytes: 256 * 1024, row_bytes: 4 * 1024 }
    }
}

/// Why a query cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// The selector is none.
    #[error("selector {selector:?}: {wrong}")]
    Selector {
        /// The selector.
        selector: String,
        /// What is wrong.
        wrong: String,
    },
    /// A field is no JSON pointer.
    #[error("field {0:?} is no JSON pointer, with steps such as [type=Ready] for the items of lists")]
    Field(String),
}

/// Checks a query without objects, for when a policy is loaded.
///
/// # Errors
/// Says what is wrong with it.
pub fn check(query: &Query) -> Result<(), BadQuery> {
    Plan::new(query).map(|_| ())
}

/// A query that was understood.
struct Plan {
    selector: Selector,
    fields: Vec<Path>,
    /// Where the name of the cluster stands that a row is about.
    cluster: Option<Path>,
}

impl Plan {
    fn new(query: &Query) -> Result<Self, BadQuery> {
        let path = |field: &String| Path::parse(field).ok_or_else(|| BadQuery::Field(field.clone()));
        let selector = query.selector.as_deref().unwrap_or_default();
        Ok(Self {
            selector: Selector::parse(selector)
                .map_err(|wrong| BadQuery::Selector { selector: selector.to_owned(), wrong })?,
            fields: query.fields.iter().map(path).collect::<Result<_, _>>()?,
            cluster: query.cluster_field.as_ref().map(path).transpose()?,
        })
    }
}

/// What a query finds in one state of the hub: its fields alone, sorted, and by cluster where the query asks for the
/// rows of the request's cluster. It is made once for a state, and gives the table of a request without looking at the
/// rows of others.
#[derive(Clone, Debug)]
pub struct Evidence {
    revision: Text<'static>,
    budget: Budget,
    limit: usize,
    found: Found,
}

#[derive(Clone, Debug)]
enum Found {
    /// The same rows for all requests.
    All(Vec<Row<'static>>),
    /// The rows of each cluster.
    ByCluster(BTreeMap<String, Vec<Row<'static>>>),
}

impl Evidence {
    /// Reads the objects of a query's source. Rows are sorted by namespace and name before anything is cut off, so that
    /// the same objects give the same tables in whatever order they come.
    ///
    /// # Errors
    /// Says what is wrong with the query.
    pub fn new<'v>(
        query: &Query,
        objects: impl IntoIterator<Item = &'v Value>,
        revision: &str,
        budget: Budget,
    ) -> Result<Self, BadQuery> {
        let plan = Plan::new(query)?;
        let text = |object: &'v Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let labelled =
            |object: &&Value| plan.selector.matches(|key| object.pointer("/metadata/labels")?.get(key)?.as_str());
        let mut objects: Vec<_> = objects
            .into_iter()
            .filter(labelled)
            .map(|object| {
                let namespace = text(object, "/metadata/namespace").filter(|namespace| !namespace.is_empty());
                (namespace, text(object, "/metadata/name").unwrap_or_default(), object)
            })
            .collect();
        objects.sort_by_key(|(namespace, name, _)| (*namespace, *name));
        let row = |namespace: Option<&str>, name: &str, object: &Value| {
            let values = plan.fields.iter().map(|field| field.find(object).cloned().unwrap_or(Value::Null)).collect();
            let row = Row {
                namespace: namespace.map(|namespace| namespace.to_owned().into()),
                name: name.to_owned().into(),
                values,
                complete: true,
            };
            // Whoever asks for whole objects wants large ones as well: for those the bound of the table is enough.
            match !plan.fields.iter().any(Path::is_whole) && size(&row) > budget.row_bytes {
                true => Row { values: vec![Value::Null; plan.fields.len()], complete: false, ..row },
                false => row,
            }
        };
        let found = match &plan.cluster {
            None => {
                Found::All(objects.into_iter().map(|(namespace, name, object)| row(namespace, name, object)).collect())
            }
            Some(cluster) => {
                let mut rows: BTreeMap<String, Vec<Row<'static>>> = BTreeMap::new();
                for (namespace, name, object) in objects {
                    let found = cluster.find(object);
                    let several = found.and_then(Value::as_array).into_iter().flatten();
                    let clusters: BTreeSet<&str> = found.into_iter().chain(several).filter_map(Value::as_str).collect();
                    for cluster in clusters {
                        rows.entry(cluster.to_owned()).or_default().push(row(namespace, name, object));
                    }
                }
                Found::ByCluster(rows)
            }
        };
        let limit = query.limit.map_or(budget.rows, |limit| budget.rows.min(limit as usize));
        Ok(Self { revision: revision.to_owned().into(), budget, limit, found })
    }

    /// The table of a request that is about this cluster; where the query asks for the rows of the cluster, and the
    /// request is about none, there are none, and the table is not complete.
    pub fn table(&self, cluster: Option<&str>) -> Table<'static> {
        let (rows, known): (&[_], _) = match (&self.found, cluster) {
            (Found::All(rows), _) => (rows, true),
            (Found::ByCluster(rows), Some(cluster)) => (rows.get(cluster).map_or(&[], Vec::as_slice), true),
            (Found::ByCluster(_), None) => (&[], false),
        };
        let mut table =
            Table { revision: self.revision.clone(), complete: known && rows.len() <= self.limit, rows: Vec::new() };
        let mut bytes = 0;
        for row in rows.iter().take(self.limit) {
            bytes += size(row);
            if bytes > self.budget.bytes {
                table.complete = false;
                break;
            }
            table.rows.push(row.clone());
        }
        table
    }
}

/// Gives every row a value for each field of the query, as a hub does: what an object does not have is null. For tables
/// that people write.
pub fn fill_columns(table: &mut Table<'_>, query: &Query) {
    for row in &mut table.rows {
        let missing = query.fields.len().saturating_sub(row.values.len());
        row.values.extend(std::iter::repeat_n(Value::Null, missing));
    }
}

fn size(row: &Row<'_>) -> usize {
    serde_json::to_vec(row).map_or(usize::MAX, |json| json.len())
}

/// Answers a query once: [`Evidence::new`] and [`Evidence::table`].
///
/// # Errors
/// Says what is wrong with the query.
pub fn table<'v>(
    query: &Query,
    objects: impl IntoIterator<Item = &'v Value>,
    cluster: Option<&str>,
    revision: &str,
    budget: Budget,
) -> Result<Table<'static>, BadQuery> {
    Ok(Evidence::new(query, objects, revision, budget)?.table(cluster))
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::EvidenceSource;
    use serde_json::json;

    use super::*;
    use crate::evidence::entries;

    fn query(fields: &[&str], limit: Option<u32>) -> Query {
        Query {
            name: "q".into(),
            source: EvidenceSource::Clusters,
            selector: Some("env=prod".into()),
            cluster_field: None,
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
            limit,
        }
    }

    fn objects() -> Vec<Value> {
        let object =
            |name: &str, env: &str| json!({"metadata": {"name": name, "labels": {"env": env}}, "spec": {"n": 1}});
        vec![object("c", "prod"), object("a", "prod"), object("x", "dev"), object("b", "prod")]
    }

    fn all(query: &Query, budget: Budget) -> Table<'static> {
        table(query, &objects(), None, "7", budget).unwrap()
    }

    #[test]
    fn tables_are_sorted_and_say_when_they_are_cut() {
        let found = all(&query(&["/spec/n", "/none", ""], None), Budget::default());
        assert_eq!(found.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((&*found.revision, found.complete), ("7", true));
        assert_eq!(found.rows[0].values[..2], [json!(1), Value::Null]);
        let cut = all(&query(&[], Some(2)), Budget::default());
        assert_eq!((cut.rows.len(), cut.complete, &*cut.rows[0].name), (2, false, "a"));
        assert!(all(&query(&[], Some(3)), Budget::default()).complete);
        let small = all(&query(&[], None), Budget { rows: 9, bytes: 50, row_bytes: 50 });
        assert!(!small.complete && small.rows.len() < 3);
        assert_eq!(check(&query(&["spec"], None)), Err(BadQuery::Field("spec".into())));
        let bad = Query { selector: Some("=".into()), ..query(&[], None) };
        assert!(matches!(check(&bad), Err(BadQuery::Selector { .. })));
    }

    #[test]
    fn a_config_map_has_a_row_for_each_key() {
        let map = json!({"metadata": {"name": "m", "namespace": "n"}, "data": {"b": "2", "a": "1"}});
        let query = Query { selector: None, ..query(&["/value"], None) };
        let table = table(&query, &entries(&map), None, "", Budget::default()).unwrap();
        assert_eq!((&*table.rows[0].name, &table.rows[0].values[0]), ("a", &json!("1")));
        assert_eq!(table.rows[0].namespace.as_deref(), Some("n"));
    }

    fn clusters(many: usize) -> Vec<Value> {
        let cluster = |n| {
            json!({
                "metadata": {"name": format!("c{n}")},
                "status": {"conditions": [{"type": "Other", "status": "x"}, {"type": "ManagedClusterJoined", "status": "True"}]},
            })
        };
        (0..many).map(cluster).collect()
    }

    #[test]
    fn a_request_sees_the_rows_of_its_cluster_however_many_there_are() {
        let joined = "/status/conditions/[type=ManagedClusterJoined]/status";
        let query = Query { selector: None, cluster_field: Some("/metadata/name".into()), ..query(&[joined], None) };
        let evidence = Evidence::new(&query, &clusters(10_000), "7", Budget::default()).unwrap();
        let table = evidence.table(Some("c9999"));
        assert_eq!((table.rows.len(), table.complete, &table.rows[0].values[0]), (1, true, &json!("True")));
        let none = evidence.table(Some("other"));
        assert_eq!((none.rows.len(), none.complete), (0, true));
        assert!(!evidence.table(None).complete, "a request that is about no cluster has seen nothing");
    }

    #[test]
    fn an_object_may_be_about_several_clusters() {
        let query = Query { selector: None, cluster_field: Some("/clusters".into()), ..query(&[], None) };
        let both = json!({"metadata": {"name": "x"}, "clusters": ["c1", "c2", "c1", 7]});
        let evidence = Evidence::new(&query, &[both], "7", Budget::default()).unwrap();
        let rows = |cluster: &str| evidence.table(Some(cluster)).rows.len();
        assert_eq!((rows("c1"), rows("c2"), rows("c3")), (1, 1, 0));
    }

    #[test]
    fn whoever_inflates_an_object_hides_no_other() {
        let mut clusters = clusters(400);
        clusters[0]["status"]["conditions"][1]["status"] = json!("x".repeat(300 * 1024));
        let query = Query { selector: None, ..query(&["/status/conditions/[type=ManagedClusterJoined]/status"], None) };
        let table = table(&query, &clusters, None, "7", Budget::default()).unwrap();
        assert_eq!((table.rows.len(), table.complete), (400, true));
        assert_eq!((table.rows[0].complete, &table.rows[0].values[0]), (false, &Value::Null));
        assert!(table.rows[1..].iter().all(|row| row.complete));
    }
}
