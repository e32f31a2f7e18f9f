//! Answering queries.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use ocm_policy_abi::{EvidenceSource, Query, Request, Row, Table, Text};
use serde_json::{Value, json};

use super::field::Path;
use super::selector::Selector;
use crate::review;

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
    #[error("field {0:?} must be a JSON pointer, with steps such as [type=Ready] for the items of lists")]
    Field(String),
    /// Two members of the query exclude each other.
    #[error("{0} and {1} cannot be used together")]
    Both(&'static str, &'static str),
    /// What people said of other clusters is none of a policy's business.
    #[error("approvals can be asked for with the clusterField /cluster alone")]
    Approvals,
}

/// Checks a query without objects, for when a policy is loaded.
///
/// # Errors
/// Says what is wrong with it.
pub fn check(query: &Query) -> Result<(), BadQuery> {
    Plan::new(query).map(|_| ())
}

/// The clusters that an object is about: every text that stands in the `clusterField` of a query, or in the list there.
///
/// # Errors
/// Says that the field is none.
pub fn clusters<'v>(field: &str, object: &'v Value) -> Result<BTreeSet<&'v str>, BadQuery> {
    let path = Path::parse(field).ok_or_else(|| BadQuery::Field(field.to_owned()))?;
    Ok(texts(&path, object))
}

fn texts<'v>(field: &Path, object: &'v Value) -> BTreeSet<&'v str> {
    let found = field.find(object);
    let several = found.and_then(Value::as_array).into_iter().flatten();
    found.into_iter().chain(several).filter_map(Value::as_str).collect()
}

/// Where the objects that a query selects can be looked up: the field of a label, and the texts of which each holds one there; none
/// where its selector does not say.
///
/// # Errors
/// Says what is wrong with the query.
pub fn labelled(query: &Query) -> Result<Option<(String, BTreeSet<String>)>, BadQuery> {
    let plan = Plan::new(query)?;
    let place = |(key, values): (&str, &[String])| {
        let key = key.replace('~', "~0").replace('/', "~1");
        (format!("/metadata/labels/{key}"), values.iter().cloned().collect())
    };
    Ok(plan.selector.one_of().map(place))
}

/// Whether a query finds the same in two objects, so that it cannot tell them apart.
///
/// # Errors
/// Says what is wrong with the query.
pub fn finds_the_same(query: &Query, one: &Value, other: &Value) -> Result<bool, BadQuery> {
    let plan = Plan::new(query)?;
    let of = |object| plan.selects(object).then(|| (plan.keys(object), Projected::of(object, &plan, query)));
    Ok(of(one) == of(other))
}

/// A query that was understood.
struct Plan {
    selector: Selector,
    fields: Vec<Path>,
    of: Of,
}

/// Which of the rows a request gets.
enum Of {
    /// All.
    Hub,
    /// Those that name its cluster here.
    Cluster(Path),
    /// Those that name the user who asks here.
    User(Path),
}

impl Plan {
    fn new(query: &Query) -> Result<Self, BadQuery> {
        let path = |field: &String| Path::parse(field).ok_or_else(|| BadQuery::Field(field.clone()));
        let selector = query.selector.as_deref().unwrap_or_default();
        let of = match (&query.cluster_field, &query.user_field) {
            (None, None) => Of::Hub,
            (Some(field), None) => Of::Cluster(path(field)?),
            (None, Some(field)) => Of::User(path(field)?),
            (Some(_), Some(_)) => return Err(BadQuery::Both("clusterField", "userField")),
        };
        if query.source == EvidenceSource::Approvals && query.cluster_field.as_deref() != Some("/cluster") {
            return Err(BadQuery::Approvals);
        }
        if query.count && query.created_within_seconds.is_some() {
            return Err(BadQuery::Both("count", "createdWithinSeconds"));
        }
        Ok(Self {
            selector: Selector::parse(selector)
                .map_err(|wrong| BadQuery::Selector { selector: selector.to_owned(), wrong })?,
            fields: query.fields.iter().map(path).collect::<Result<_, _>>()?,
            of,
        })
    }
}

impl Plan {
    /// Whether an object has the labels.
    fn selects(&self, object: &Value) -> bool {
        self.selector.matches(|key| object.pointer("/metadata/labels")?.get(key)?.as_str())
    }

    /// The clusters or users whose rows an object is among; none where it is among those of all.
    fn keys<'v>(&self, object: &'v Value) -> BTreeSet<&'v str> {
        match &self.of {
            Of::Hub => BTreeSet::new(),
            Of::Cluster(field) | Of::User(field) => texts(field, object),
        }
    }
}

/// What a query finds in one state of the hub: its fields alone, sorted, and by cluster or user where the query asks for
/// the rows of the request's. It is made once for a state, and gives the table of a request without looking at the rows
/// of others.
#[derive(Clone, Debug)]
pub struct Evidence {
    revision: Text<'static>,
    budget: Budget,
    limit: usize,
    /// Only rows of objects that are not older, in milliseconds.
    within: Option<i64>,
    /// Whether objects are counted.
    counts: bool,
    found: Found,
}

#[derive(Clone, Debug)]
enum Found {
    /// The same rows for all requests.
    All(Rows),
    /// The rows of each cluster.
    ByCluster(BTreeMap<String, Rows>),
    /// The rows of each user.
    ByUser(BTreeMap<String, Rows>),
}

/// Rows in their order.
#[derive(Clone, Debug, Default)]
struct Rows {
    rows: Vec<Row<'static>>,
    /// When the object of each was created, the oldest first, where the query asks for new ones.
    by_age: Vec<(i64, usize)>,
}

/// What a query needs of an object.
#[derive(Clone, PartialEq)]
struct Projected {
    namespace: Option<String>,
    name: String,
    values: Vec<Value>,
    /// When it was created; none: the query does not ask for new ones, or nobody knows.
    created: Option<i64>,
}

impl Evidence {
    /// Reads the objects of a query's source, of which nothing is kept but what the query asks for. Rows are sorted by
    /// namespace and name before anything is cut off, so that the same objects give the same tables in whatever order
    /// they come.
    ///
    /// # Errors
    /// Says what is wrong with the query.
    pub fn new<V: Borrow<Value>>(
        query: &Query,
        objects: impl IntoIterator<Item = V>,
        revision: &str,
        budget: Budget,
    ) -> Result<Self, BadQuery> {
        let plan = Plan::new(query)?;
        let mut all = Vec::new();
        let mut groups: BTreeMap<String, Vec<Projected>> = BTreeMap::new();
        for object in objects {
            let object = object.borrow();
            if !plan.selects(object) {
                continue;
            }
            let projected = Projected::of(object, &plan, query);
            match &plan.of {
                Of::Hub => all.push(projected),
                Of::Cluster(_) | Of::User(_) => {
                    for key in plan.keys(object) {
                        groups.entry(key.to_owned()).or_default().push(projected.clone());
                    }
                }
            }
        }
        let rows = |objects| Rows::of(objects, &plan, query, budget);
        let found = match &plan.of {
            Of::Hub => Found::All(rows(all)),
            Of::Cluster(_) => Found::ByCluster(groups.into_iter().map(|(key, objects)| (key, rows(objects))).collect()),
            Of::User(_) => Found::ByUser(groups.into_iter().map(|(key, objects)| (key, rows(objects))).collect()),
        };
        let limit = query.limit.map_or(budget.rows, |limit| budget.rows.min(limit as usize));
        let within = query.created_within_seconds.map(|seconds| i64::from(seconds) * 1000);
        Ok(Self { revision: revision.to_owned().into(), budget, limit, within, counts: query.count, found })
    }

    /// The table of a request. Where the query asks for the rows of its cluster, or of the user who asks, and the request
    /// has none, there are no rows, and the table is not complete.
    pub fn table(&self, request: &Request<'_>) -> Table<'static> {
        let (rows, known) = self.rows(request);
        self.cut(rows, known, &self.revision)
    }

    /// The table of a request with what the same query finds in more objects, and their revision.
    pub fn table_with(&self, more: &Self, request: &Request<'_>) -> Table<'static> {
        let ((mut rows, known), (others, _)) = (self.rows(request), more.rows(request));
        rows.extend(others);
        if !self.counts {
            rows.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
            return self.cut(rows, known, &more.revision);
        }
        let summed = summed(rows);
        self.cut(summed.iter().collect(), known, &more.revision)
    }

    /// The rows of a request, and whether it names whose they are.
    fn rows(&self, request: &Request<'_>) -> (Vec<&Row<'static>>, bool) {
        let (rows, known) = match &self.found {
            Found::All(rows) => (Some(rows), true),
            Found::ByCluster(groups) => of(groups, review::cluster_of(request)),
            Found::ByUser(groups) => of(groups, Some(review::asking_user(request)).filter(|user| !user.is_empty())),
        };
        (rows.map_or_else(Vec::new, |rows| rows.since(self.within.map(|within| request.now - within))), known)
    }

    fn cut(&self, rows: Vec<&Row<'static>>, known: bool, revision: &Text<'static>) -> Table<'static> {
        let mut table =
            Table { revision: revision.clone(), complete: known && rows.len() <= self.limit, rows: Vec::new() };
        let mut bytes = 0;
        for row in rows.into_iter().take(self.limit) {
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

/// Rows of numbers of objects, those with the same values as one.
fn summed(rows: Vec<&Row<'static>>) -> Vec<Row<'static>> {
    let mut sums: BTreeMap<String, (&Row<'static>, u64)> = BTreeMap::new();
    let mut others = Vec::new();
    for row in rows {
        match row.values.split_last() {
            Some((number, values)) if number.is_u64() => {
                let sum = sums.entry(Value::from(values).to_string()).or_insert((row, 0));
                sum.1 = sum.1.saturating_add(number.as_u64().unwrap_or_default());
            }
            // One that was too large for its values.
            _ => others.push(row.clone()),
        }
    }
    let sum = |(row, number): (&Row<'static>, u64)| {
        let mut row = row.clone();
        row.values.last_mut().into_iter().for_each(|last| *last = number.into());
        row
    };
    sums.into_values().map(sum).chain(others).collect()
}

/// The rows of a key, and whether there is one.
fn of<'r>(groups: &'r BTreeMap<String, Rows>, key: Option<&str>) -> (Option<&'r Rows>, bool) {
    (key.and_then(|key| groups.get(key)), key.is_some())
}

impl Projected {
    fn of(object: &Value, plan: &Plan, query: &Query) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        Self {
            namespace: text("/metadata/namespace").map(str::to_owned),
            name: text("/metadata/name").unwrap_or_default().to_owned(),
            values: plan.fields.iter().map(|field| field.find(object).cloned().unwrap_or(Value::Null)).collect(),
            created: query.created_within_seconds.and_then(|_| created(object)),
        }
    }
}

impl Rows {
    /// The rows of objects; where they are counted, one for each combination of values.
    fn of(mut objects: Vec<Projected>, plan: &Plan, query: &Query, budget: Budget) -> Self {
        let whole = plan.fields.iter().any(Path::is_whole);
        let bounded = |row: Row<'static>| {
            // Whoever asks for whole objects wants large ones as well: for those the bound of the table is enough.
            match !whole && size(&row) > budget.row_bytes {
                true => Row { values: vec![Value::Null; row.values.len()], complete: false, ..row },
                false => row,
            }
        };
        let row = |namespace: Option<String>, name: String, values: Vec<Value>| {
            bounded(Row { namespace: namespace.map(Text::from), name: name.into(), values, complete: true })
        };
        if query.count {
            let mut counted: BTreeMap<String, (Vec<Value>, u64)> = BTreeMap::new();
            for Projected { values, .. } in objects {
                counted.entry(Value::from(values.clone()).to_string()).or_insert((values, 0)).1 += 1;
            }
            let row = |(mut values, number): (Vec<Value>, u64)| {
                values.push(number.into());
                row(None, String::new(), values)
            };
            return Self { rows: counted.into_values().map(row).collect(), by_age: Vec::new() };
        }
        objects.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
        let mut by_age = Vec::new();
        if query.created_within_seconds.is_some() {
            let ages = objects.iter().enumerate();
            // Of those whose age nobody knows it cannot be told that they are old.
            by_age = ages.map(|(index, one)| (one.created.unwrap_or(i64::MAX), index)).collect();
            by_age.sort_unstable();
        }
        let rows = objects.into_iter().map(|one| row(one.namespace, one.name, one.values)).collect();
        Self { rows, by_age }
    }

    /// All rows, or those of objects that were created after a moment, in milliseconds since 1970.
    fn since(&self, moment: Option<i64>) -> Vec<&Row<'static>> {
        let Some(moment) = moment else { return self.rows.iter().collect() };
        let new = &self.by_age[self.by_age.partition_point(|(created, _)| *created <= moment)..];
        let mut indices: Vec<usize> = new.iter().map(|(_, index)| *index).collect();
        indices.sort_unstable();
        indices.into_iter().map(|index| &self.rows[index]).collect()
    }
}

/// When an object was created, in milliseconds since 1970: of certificate requests a fact, of all else in the metadata.
fn created(object: &Value) -> Option<i64> {
    let fact = || object.get("created")?.as_i64();
    let written = || object.pointer("/metadata/creationTimestamp")?.as_str()?.parse::<Timestamp>().ok();
    fact().or_else(|| written().map(Timestamp::as_millisecond))
}

/// Makes a whole table of what people write: the list of its rows alone may be meant, and it is complete unless it says otherwise.
pub fn fill_table(table: &mut Value) {
    if table.is_array() {
        *table = json!({"rows": table.take()});
    }
    if let Some(members) = table.as_object_mut() {
        members.entry("revision").or_insert_with(|| "1".into());
        members.entry("complete").or_insert(true.into());
    }
}

/// Gives every row a value for each field of the query, as a hub does: what an object does not have is null. For tables
/// that people write.
pub fn fill_columns(table: &mut Table<'_>, query: &Query) {
    for row in &mut table.rows {
        let missing = query.columns().saturating_sub(row.values.len());
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
pub fn table<V: Borrow<Value>>(
    query: &Query,
    objects: impl IntoIterator<Item = V>,
    request: &Request<'_>,
    revision: &str,
    budget: Budget,
) -> Result<Table<'static>, BadQuery> {
    Ok(Evidence::new(query, objects, revision, budget)?.table(request))
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{Cluster, Operation, Requester};
    use serde_json::json;

    use super::*;
    use crate::evidence::entries;

    fn query(fields: &[&str], limit: Option<u32>) -> Query {
        let query = Query::new("q", EvidenceSource::Clusters, fields.iter().copied());
        Query { selector: Some("env=prod".into()), limit, ..query }
    }

    fn objects() -> Vec<Value> {
        let object =
            |name: &str, env: &str| json!({"metadata": {"name": name, "labels": {"env": env}}, "spec": {"n": 1}});
        vec![object("c", "prod"), object("a", "prod"), object("x", "dev"), object("b", "prod")]
    }

    /// A request of a user about a cluster, an hour after the first of January began.
    fn about(cluster: Option<&str>) -> Request<'static> {
        let cluster = cluster.map(|name| Cluster { name: name.to_owned().into(), ..Cluster::default() });
        let requester = Requester { username: "alice".into(), ..Requester::default() };
        Request { cluster, now: 1_767_229_200_000, ..Request::new(Operation::Create, requester) }
    }

    fn all(query: &Query, budget: Budget) -> Table<'static> {
        table(query, objects(), &about(None), "7", budget).unwrap()
    }

    #[test]
    fn approvals_of_other_clusters_cannot_be_asked_for() {
        let query = |field: Option<&str>| Query {
            cluster_field: field.map(str::to_owned),
            ..Query::new("q", EvidenceSource::Approvals, ["/approver"])
        };
        assert_eq!(check(&query(Some("/cluster"))), Ok(()));
        for field in [None, Some("/approver")] {
            assert_eq!(check(&query(field)), Err(BadQuery::Approvals), "{field:?}");
        }
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
    fn what_has_one_of_several_labels_can_be_looked_up() {
        let place = |selector: &str| labelled(&Query { selector: Some(selector.into()), ..query(&[], None) }).unwrap();
        let of = |key: &str, values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned());
            Some((format!("/metadata/labels/{key}"), values.collect::<BTreeSet<String>>()))
        };
        assert_eq!(place("example.com/env=prod"), of("example.com~1env", &["prod"]));
        assert_eq!(place("a,!b,env in (prod, dev, prod),c=d"), of("env", &["dev", "prod"]));
        for other in ["", "env", "!env", "env!=prod", "env notin (prod)"] {
            assert_eq!(place(other), None, "{other}");
        }
    }

    /// What a query finds in some objects, told of in two parts or at once.
    #[track_caller]
    fn is_the_same_in_two_parts(query: &Query, objects: &[Value], request: &Request<'_>) {
        let evidence = |objects: &[Value]| Evidence::new(query, objects, "7", Budget::default()).unwrap();
        let whole = evidence(objects).table(request);
        for middle in 0..=objects.len() {
            let (some, others) = objects.split_at(middle);
            assert_eq!(evidence(some).table_with(&evidence(others), request), whole, "{middle}");
        }
    }

    #[test]
    fn what_is_found_in_two_parts_is_what_is_found_in_all() {
        let count = Query { count: true, selector: None, ..query(&["/metadata/labels/env"], None) };
        let by_cluster = Query { cluster_field: Some("/metadata/name".into()), ..query(&["/spec"], None) };
        for query in [query(&["/spec/n"], None), query(&[], Some(2)), count.clone(), by_cluster] {
            for cluster in [Some("a"), Some("z"), None] {
                is_the_same_in_two_parts(&query, &objects(), &about(cluster));
            }
        }
        let evidence = |objects: Vec<Value>| Evidence::new(&count, objects, "7", Budget::default()).unwrap();
        let table = evidence(objects()).table_with(&evidence(objects()), &about(None));
        assert_eq!(
            table.rows.iter().map(|row| row.values.clone()).collect::<Vec<_>>(),
            [[json!("dev"), json!(2)], [json!("prod"), json!(6)]]
        );
        assert!(table.complete);
    }

    #[test]
    fn a_query_tells_objects_apart_by_what_it_asks_for_alone() {
        let object = |env: &str, n: u64| json!({"metadata": {"name": "a", "labels": {"env": env}}, "spec": {"n": n}});
        let same = |query: &Query, one: Value, other: Value| finds_the_same(query, &one, &other).unwrap();
        assert!(same(&query(&["/spec/m"], None), object("prod", 1), object("prod", 2)));
        assert!(!same(&query(&["/spec/n"], None), object("prod", 1), object("prod", 2)));
        // Both are none of its rows.
        assert!(same(&query(&["/spec/n"], None), object("dev", 1), object("test", 2)));
        assert!(!same(&query(&[], None), object("dev", 1), object("prod", 1)));
        let by_user = Query { user_field: Some("/spec/n".into()), ..query(&[], None) };
        assert!(!same(
            &by_user,
            json!({"metadata": {"labels": {"env": "prod"}}, "spec": {"n": "eva"}}),
            object("prod", 1)
        ));
    }

    #[test]
    fn a_config_map_has_a_row_for_each_key() {
        let map = json!({"metadata": {"name": "m", "namespace": "n"}, "data": {"b": "2", "a": "1"}});
        let query = Query { selector: None, ..query(&["/value"], None) };
        let table = table(&query, entries(&map), &about(None), "", Budget::default()).unwrap();
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
        let evidence = Evidence::new(&query, clusters(10_000), "7", Budget::default()).unwrap();
        let table = evidence.table(&about(Some("c9999")));
        assert_eq!((table.rows.len(), table.complete, &table.rows[0].values[0]), (1, true, &json!("True")));
        let none = evidence.table(&about(Some("other")));
        assert_eq!((none.rows.len(), none.complete), (0, true));
        assert!(!evidence.table(&about(None)).complete, "a request that is about no cluster has seen nothing");
    }

    #[test]
    fn an_object_may_be_about_several_clusters() {
        let query = Query { selector: None, cluster_field: Some("/clusters".into()), ..query(&[], None) };
        let both = json!({"metadata": {"name": "x"}, "clusters": ["c1", "c2", "c1", 7]});
        let evidence = Evidence::new(&query, &[both], "7", Budget::default()).unwrap();
        let rows = |cluster: &str| evidence.table(&about(Some(cluster))).rows.len();
        assert_eq!((rows("c1"), rows("c2"), rows("c3")), (1, 1, 0));
    }

    #[test]
    fn whoever_inflates_an_object_hides_no_other() {
        let mut clusters = clusters(400);
        clusters[0]["status"]["conditions"][1]["status"] = json!("x".repeat(300 * 1024));
        let query = Query { selector: None, ..query(&["/status/conditions/[type=ManagedClusterJoined]/status"], None) };
        let table = table(&query, &clusters, &about(None), "7", Budget::default()).unwrap();
        assert_eq!((table.rows.len(), table.complete), (400, true));
        assert_eq!((table.rows[0].complete, &table.rows[0].values[0]), (false, &Value::Null));
        assert!(table.rows[1..].iter().all(|row| row.complete));
    }
    #[test]
    fn the_hub_counts_however_many_there_are() {
        let set = |n: usize| if n.is_multiple_of(4) { json!({"set": "eu"}) } else { json!({}) };
        let cluster = |n: usize| json!({"metadata": {"name": format!("c{n}"), "labels": set(n)}});
        let clusters: Vec<Value> = (0..10_000).map(cluster).collect();
        let query = Query { count: true, ..Query::new("q", EvidenceSource::Clusters, ["/metadata/labels/set"]) };
        let found = table(&query, &clusters, &about(None), "7", Budget::default()).unwrap();
        let rows: Vec<_> = found.rows.iter().map(|row| (&*row.name, row.values.clone())).collect();
        assert_eq!(rows, [("", vec![json!("eu"), json!(2500)]), ("", vec![Value::Null, json!(7500)])]);
        assert!(found.complete && query.columns() == 2);
        let both = Query { created_within_seconds: Some(1), ..query };
        assert_eq!(check(&both), Err(BadQuery::Both("count", "createdWithinSeconds")));
    }

    #[test]
    fn a_request_sees_what_is_new_and_what_its_user_asked_for() {
        let request = |name: &str, user: &str, created: Value| json!({"metadata": {"name": name}, "askedBy": user, "created": created});
        let objects = [
            request("old", "alice", json!(1_767_229_200_000_i64 - 3_600_000)),
            request("new", "alice", json!(1_767_229_200_000_i64 - 3_599_999)),
            request("unknown", "alice", Value::Null),
            request("other", "bob", json!(1_767_229_200_000_i64)),
        ];
        let query = Query {
            user_field: Some("/askedBy".into()),
            created_within_seconds: Some(3600),
            ..Query::new("q", EvidenceSource::Csrs, ["/created"])
        };
        let names = |query: &Query, request: &Request<'_>| {
            let table = table(query, &objects, request, "7", Budget::default()).unwrap();
            (table.rows.iter().map(|row| row.name.to_string()).collect::<Vec<_>>().join(" "), table.complete)
        };
        assert_eq!(names(&query, &about(None)), ("new unknown".to_owned(), true));
        let everybody = Query { user_field: None, ..query.clone() };
        assert_eq!(names(&everybody, &about(None)), ("new other unknown".to_owned(), true));
        let nobody = Request::new(Operation::Create, Requester::default());
        assert_eq!(names(&query, &nobody), (String::new(), false), "nobody is no user");
        let both = Query { cluster_field: Some("/cluster".into()), ..query };
        assert_eq!(check(&both), Err(BadQuery::Both("clusterField", "userField")));
        // Objects of the API tell their age as the API server writes it.
        let query = Query { created_within_seconds: Some(60), ..Query::new("q", EvidenceSource::Clusters, [""]) };
        let cluster = |at: &str| json!({"metadata": {"name": at, "creationTimestamp": at}});
        let clusters = [cluster("2026-01-01T00:58:59Z"), cluster("2026-01-01T00:59:01Z")];
        let found = table(&query, &clusters, &about(None), "7", Budget::default()).unwrap();
        assert_eq!((found.rows.len(), &*found.rows[0].name), (1, "2026-01-01T00:59:01Z"));
    }
}
