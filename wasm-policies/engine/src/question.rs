//! A request as the policies of one call get it: each its own evidence and, if it asked, the object.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ocm_policy_abi::{Manifest, Map, Operation, Query, Request, Table};
use serde::Deserialize as _;
use serde_json::Value;

use ocm_policy_rules::PolicyError;
use ocm_policy_rules::adapt;
use ocm_policy_rules::review::admission_request;

use crate::wit_types;

/// A request with everything that any policy may want of it.
pub struct Question {
    /// Without objects and evidence, which is all that most policies get.
    request: Request<'static>,
    /// Tables that answer one query of one policy.
    answers: Vec<QueryAnswer>,
    /// Tables that came with the request: by the name of the query, or by `<policy>/<query>` where two policies name
    /// different queries alike.
    evidence: Map<'static, Table<'static>>,
    /// Names of queries that policies of this call give to different ones.
    shared_names: BTreeSet<String>,
    object: Option<Value>,
    previous_object: Option<Value>,
    /// Both objects as JSON.
    objects: OnceLock<[Option<String>; 2]>,
    /// As policies get it that ask for neither objects nor evidence.
    block: OnceLock<wit_types::Block>,
    /// Texts that were made for policies that read JSON, by what they get.
    texts: Mutex<HashMap<String, Arc<str>>>,
    /// The text that every such policy gets, whatever it asks for.
    recorded: Option<Arc<str>>,
}

/// What the hub answers to one query of one policy. Another version of the policy may call another query alike.
struct QueryAnswer {
    policy: String,
    query: Query,
    answer: Result<Arc<Table<'static>>, PolicyError>,
}

/// A table that a policy gets.
struct Found<'q> {
    /// Under which name.
    name: &'q str,
    table: &'q Table<'static>,
}

impl Question {
    /// Takes a request with all its objects and tables.
    pub fn new(mut request: Request<'static>) -> Self {
        let (object, previous_object) = (request.object.take(), request.previous_object.take());
        let evidence = std::mem::take(&mut request.evidence);
        Self {
            request,
            answers: Vec::new(),
            evidence,
            shared_names: BTreeSet::new(),
            object,
            previous_object,
            objects: OnceLock::new(),
            block: OnceLock::new(),
            texts: Mutex::default(),
            recorded: None,
        }
    }

    /// Takes a request that a policy has got before, to be given byte by byte as it was.
    ///
    /// # Errors
    /// When it is no request.
    pub fn recorded(request: &str) -> Result<Self, PolicyError> {
        let read =
            |error: serde_json::Error| PolicyError::Malformed(format!("the recorded request cannot be read: {error}"));
        let value: Value = serde_json::from_str(request).map_err(read)?;
        let question = Self::new(Request::deserialize(value).map_err(read)?);
        Ok(Self { recorded: Some(request.into()), ..question })
    }

    /// Whether it is given byte by byte as it was.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    /// Adds what the hub answers to a query of a policy. That policy gets it and no other.
    pub(crate) fn answer(&mut self, policy: &str, query: &Query, answer: Result<Arc<Table<'static>>, PolicyError>) {
        self.answers.push(QueryAnswer { policy: policy.to_owned(), query: query.clone(), answer });
    }

    /// Takes what the policies of a call ask for, by their places: a table that came with the request under a name that several give
    /// to different queries is none of theirs.
    pub(crate) fn asked_by<'q>(&mut self, queries: impl IntoIterator<Item = (&'q str, &'q Query)>) {
        if self.evidence.is_empty() {
            return;
        }
        let mut first: HashMap<&str, (&str, &Query)> = HashMap::new();
        for (place, query) in queries {
            let (other, known) = *first.entry(&query.name).or_insert((place, query));
            // Versions of one policy have one place, and so one name for their tables.
            if other != place && known != query {
                self.shared_names.insert(query.name.clone());
            }
        }
    }

    /// The table of a query that came with the request, by name.
    ///
    /// # Errors
    /// When its name may mean the query of another policy.
    pub(crate) fn own_evidence(&self, policy: &str, query: &Query) -> Option<Result<&Table<'static>, PolicyError>> {
        if self.evidence.is_empty() {
            return None;
        }
        let own = format!("{policy}/{}", query.name);
        let named = |wanted: &str| self.evidence.iter().find(|(name, _)| *name == wanted).map(|(_, table)| table);
        if let Some(table) = named(&own) {
            return Some(Ok(table));
        }
        let table = named(&query.name)?;
        Some(match self.shared_names.contains(&query.name) {
            false => Ok(table),
            true => Err(PolicyError::Evidence(format!(
                "policies ask for different things as {:?}: name the table of this one {own:?}",
                query.name
            ))),
        })
    }

    /// The request without objects and evidence.
    pub fn request(&self) -> &Request<'static> {
        &self.request
    }

    /// The whole object, if the asker has it.
    pub fn object(&self) -> Option<&Value> {
        self.object.as_ref()
    }

    /// The whole object as it was, if the asker has it.
    pub fn previous_object(&self) -> Option<&Value> {
        self.previous_object.as_ref()
    }

    /// The object that policies of other contracts are given as the new one; none for a deletion.
    pub(crate) fn given_object(&self) -> Option<&Value> {
        let deleted = self.request.resource.as_ref().is_some_and(|resource| resource.operation == "DELETE");
        self.object.as_ref().filter(|_| !deleted)
    }

    /// The object as it was, as policies of other contracts are given it. Nothing is changed yet where a controller
    /// asks about what is stored.
    fn given_previous(&self) -> Option<&Value> {
        let stored = matches!(self.request.operation, Operation::Approve | Operation::Accept | Operation::Join);
        match &*self.request.resource.as_ref()?.operation {
            "DELETE" => self.previous_object.as_ref().or(self.object()),
            "UPDATE" if stored => self.previous_object.as_ref().or(self.object()),
            _ => self.previous_object(),
        }
    }

    /// The request with its objects, in the words of an admission review.
    ///
    /// # Errors
    /// When an object is missing: rules about it would be silent.
    fn admitted(&self) -> Result<Value, PolicyError> {
        let (object, previous) = (self.given_object(), self.given_previous());
        let verb = self.request.resource.as_ref().map_or("CREATE", |resource| &*resource.operation);
        self.missing_object(verb).map_or(Ok(()), |what| Err(no_object(what)))?;
        let mut request = self.request.clone();
        request.object = object.cloned();
        request.previous_object = previous.cloned();
        Ok(admission_request(&request, None))
    }

    /// A text that is made once.
    fn once(&self, key: &str, make: impl FnOnce() -> Result<String, PolicyError>) -> Result<Arc<str>, PolicyError> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(key) {
            return Ok(text.clone());
        }
        let text: Arc<str> = make()?.into();
        texts.insert(key.to_owned(), text.clone());
        Ok(text)
    }

    /// The request in the words of an admission review, for policies of other contracts.
    pub(crate) fn admission(&self) -> Result<Arc<str>, PolicyError> {
        self.once("admission", || Ok(self.admitted()?.to_string()))
    }

    /// The same for Gatekeeper, whose templates find a deleted object as the object.
    fn gatekeeper_review(&self) -> Result<Arc<str>, PolicyError> {
        self.once("gatekeeper", || {
            let mut review = self.admitted()?;
            if review["operation"] == "DELETE" {
                review["object"] = review["oldObject"].clone();
            }
            Ok(review.to_string())
        })
    }

    /// The objects that a Gatekeeper template with this manifest finds as `data.inventory`; none where it asks for none.
    ///
    /// # Errors
    /// When a table is missing, cut off or of another form.
    pub(crate) fn inventory(&self, manifest: &Manifest) -> Result<Option<Value>, PolicyError> {
        if manifest.evidence.is_empty() {
            return Ok(None);
        }
        let tables = self.tables(manifest)?;
        let table = |query: &Query| {
            let found = tables.iter().find(|found| found.name == query.name).map(|found| found.table);
            found.ok_or_else(|| no_table(query))
        };
        let tables = manifest
            .evidence
            .iter()
            .map(|query| Ok((query, table(query)?)))
            .collect::<Result<Vec<_>, PolicyError>>()?;
        adapt::inventory(tables).map(Some)
    }

    /// What a Kubewarden policy with these settings is given: [`ocm_policy_rules::adapt::kubewarden_input`] without
    /// writing the request anew for each policy.
    pub(crate) fn kubewarden_input(&self, settings: &str) -> Result<String, PolicyError> {
        Ok(format!("{{\"request\":{},\"settings\":{settings}}}", self.admission()?))
    }

    /// What a Gatekeeper template with these parameters is given, likewise.
    pub(crate) fn gatekeeper_input(&self, parameters: &str) -> Result<String, PolicyError> {
        Ok(format!("{{\"review\":{},\"parameters\":{parameters}}}", self.gatekeeper_review()?))
    }

    /// The tables that a policy with this manifest asks for.
    ///
    /// # Errors
    /// When one is missing, or has other columns than the query asks for: a policy reads columns by their numbers.
    fn tables<'q>(&'q self, manifest: &'q Manifest) -> Result<Vec<Found<'q>>, PolicyError> {
        let find = |query: &'q Query| {
            let answered = |one: &&QueryAnswer| one.policy == manifest.name && one.query == *query;
            let table = match self.answers.iter().find(answered) {
                Some(QueryAnswer { answer: Ok(table), .. }) => &**table,
                Some(QueryAnswer { answer: Err(error), .. }) => return Some(Err(error.clone())),
                None => match self.own_evidence(&manifest.name, query) {
                    Some(Ok(table)) => table,
                    Some(Err(error)) => return Some(Err(error)),
                    // What was asked without it once is asked without it again.
                    None if self.recorded.is_some() => return None,
                    None => return Some(Err(no_table(query))),
                },
            };
            Some(fits(table, query).map(|()| Found { name: &query.name, table }))
        };
        manifest.evidence.iter().filter_map(find).collect()
    }

    /// The revision of the first table that a policy gets; none: it gets no evidence. The request holds those of all.
    pub(crate) fn revision(&self, manifest: &Manifest) -> Result<Option<String>, PolicyError> {
        Ok(self.tables(manifest)?.first().map(|found| found.table.revision.to_string()))
    }

    /// The request as a policy with this manifest gets it, as records.
    ///
    /// # Errors
    /// When it needs a table or an object that the asker does not have: deciding without would be deciding something
    /// else.
    pub(crate) fn records_for<'q>(&'q self, manifest: &'q Manifest) -> Result<wit_types::Request<'q>, PolicyError> {
        self.has_objects_for(manifest)?;
        let evidence = self.tables(manifest)?.into_iter().map(|found| (found.name, found.table)).collect();
        let [object, previous_object] = if manifest.wants_object { self.objects() } else { [None; 2] };
        Ok(wit_types::Request::new(&self.request, wit_types::Given { object, previous_object, evidence }))
    }

    /// The same in one block of memory.
    ///
    /// # Errors
    /// As [`Self::records_for`].
    pub(crate) fn block_for(&self, manifest: &Manifest) -> Result<Cow<'_, wit_types::Block>, PolicyError> {
        let whole = || Ok(wit_types::Block::new(&self.records_for(manifest)?));
        if manifest.wants_object || !manifest.evidence.is_empty() {
            return whole().map(Cow::Owned);
        }
        Ok(Cow::Borrowed(match self.block.get() {
            Some(block) => block,
            None => {
                let block = whole()?;
                self.block.get_or_init(|| block)
            }
        }))
    }

    /// Whether the objects are there that a policy with this manifest judges. A request that is about no object of the
    /// API has none.
    fn has_objects_for(&self, manifest: &Manifest) -> Result<(), PolicyError> {
        let Some(resource) = &self.request.resource else { return Ok(()) };
        if !manifest.wants_object || self.recorded.is_some() {
            return Ok(());
        }
        self.missing_object(&resource.operation).map_or(Ok(()), |what| Err(no_object(what)))
    }

    /// The object that every review of this operation carries, if it is not there.
    fn missing_object(&self, verb: &str) -> Option<&'static str> {
        match verb {
            "CREATE" | "UPDATE" if self.object.is_none() => Some("the object"),
            "UPDATE" if self.given_previous().is_none() => Some("the object before the update"),
            "DELETE" if self.given_previous().is_none() => Some("the object that is deleted"),
            _ => None,
        }
    }

    fn objects(&self) -> [Option<&str>; 2] {
        let json = |object: &Option<Value>| object.as_ref().map(Value::to_string);
        let objects = self.objects.get_or_init(|| [json(&self.object), json(&self.previous_object)]);
        objects.each_ref().map(Option::as_deref)
    }

    /// The request as a policy with this manifest gets it, as JSON: for policies that read JSON, and for records of what
    /// was decided.
    ///
    /// # Errors
    /// When it needs a table or an object that the asker does not have.
    pub fn text_for(&self, manifest: &Manifest) -> Result<Arc<str>, PolicyError> {
        if let Some(recorded) = &self.recorded {
            return Ok(recorded.clone());
        }
        self.has_objects_for(manifest)?;
        let tables = self.tables(manifest)?;
        let mut key = String::from(if manifest.wants_object { "object" } else { "" });
        // Versions of a policy may call different queries alike; the tables stay where they are as long as this does.
        for Found { name, table } in &tables {
            key += &format!("\n{name}@{:p}", *table);
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(&key) {
            return Ok(text.clone());
        }
        let mut request = self.request.clone();
        request.evidence = tables.into_iter().map(|found| (found.name.to_owned(), found.table.clone())).collect();
        if manifest.wants_object {
            request.object.clone_from(&self.object);
            request.previous_object.clone_from(&self.previous_object);
        }
        let text: Arc<str> = serde_json::to_string(&request)
            .map_err(|error| PolicyError::Malformed(format!("the request cannot be written: {error}")))?
            .into();
        texts.insert(key, text.clone());
        Ok(text)
    }
}

fn no_table(query: &Query) -> PolicyError {
    PolicyError::Evidence(format!("the evidence {:?} is missing", query.name))
}

fn no_object(what: &str) -> PolicyError {
    PolicyError::Evidence(format!("{what} is missing, and the policy judges whole objects"))
}

/// Whether every row has a value for each column of the query.
fn fits(table: &Table<'_>, query: &Query) -> Result<(), PolicyError> {
    let wanted = query.columns();
    match table.rows.iter().find(|row| row.values.len() != wanted) {
        None => Ok(()),
        Some(row) => Err(PolicyError::Evidence(format!(
            "the evidence {:?} has {} values in the row {:?}, and {wanted} are asked for",
            query.name,
            row.values.len(),
            row.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::EvidenceSource;
    use serde_json::json;

    use super::*;

    #[test]
    fn other_contracts_get_what_their_adapters_say() {
        let text = json!({
            "id": "7", "operation": "create", "now": 5, "requester": {"username": "u", "groups": ["g"]},
            "resource": {"group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster",
                         "resource": "managedclusters", "operation": "CREATE", "name": "a"},
            "object": {"metadata": {"name": "a"}},
        })
        .to_string();
        let request = serde_json::from_str::<Request<'_>>(&text).unwrap().into_owned();
        assert_eq!(request.operation, Operation::Create);
        let settings = json!({"n": [1, "x"]});
        let question = Question::new(request.clone());
        let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(
            read(question.kubewarden_input(&settings.to_string()).unwrap()),
            adapt::kubewarden_input(&request, &settings)
        );
        assert_eq!(
            read(question.gatekeeper_input(&settings.to_string()).unwrap()),
            adapt::gatekeeper_input(&request, &settings)
        );
        let manifest = Manifest { wants_object: true, ..Manifest::default() };
        assert_eq!(read(question.text_for(&manifest).unwrap().to_string()), adapt::opa_input(&request));
        assert_eq!(question.given_object(), Some(&json!({"metadata": {"name": "a"}})));
    }

    #[test]
    fn versions_that_call_their_queries_alike_read_their_own_tables() {
        let version = |field: &str| {
            let query = Query::new("clusters", EvidenceSource::Clusters, [field]);
            Manifest { name: "p".into(), evidence: vec![query], ..Manifest::default() }
        };
        let (one, other) = (version("/a"), version("/b"));
        let mut question = Question::new(Request::new(Operation::Create, ocm_policy_abi::Requester::default()));
        for manifest in [&one, &other] {
            let values = vec![json!(manifest.evidence[0].fields[0])];
            let row = ocm_policy_abi::Row { namespace: None, name: "c1".into(), values, complete: true };
            let table = Table { revision: "1".into(), complete: true, rows: vec![row] };
            question.answer("p", &manifest.evidence[0], Ok(Arc::new(table)));
        }
        for manifest in [&one, &other, &one] {
            let text: Value = serde_json::from_str(&question.text_for(manifest).unwrap()).unwrap();
            let field = &manifest.evidence[0].fields[0];
            assert_eq!(text["evidence"]["clusters"]["rows"][0]["values"], json!([field]));
        }
    }

    #[test]
    fn a_deletion_gives_no_new_object() {
        let mut request = Request {
            id: "1".into(),
            resource: Some(ocm_policy_abi::Resource { operation: "DELETE".into(), ..Default::default() }),
            object: Some(json!({"a": 1})),
            ..Request::new(Operation::Delete, ocm_policy_abi::Requester::default())
        };
        request.resource.as_mut().unwrap().kind = "ManagedCluster".into();
        let question = Question::new(request);
        assert_eq!(question.given_object(), None);
        let admission: Value = serde_json::from_str(&question.admission().unwrap()).unwrap();
        assert_eq!((&admission["object"], &admission["oldObject"]), (&Value::Null, &json!({"a": 1})));
        let input: Value = serde_json::from_str(&question.gatekeeper_input("{}").unwrap()).unwrap();
        assert_eq!((&input["review"]["object"], &input["review"]["oldObject"]), (&json!({"a": 1}), &json!({"a": 1})));
    }

    #[test]
    fn a_missing_object_is_an_error_for_whoever_judges_objects() {
        let ask = |verb: &str, operation: Operation, object: Option<Value>, previous: Option<Value>| {
            let question = Question::new(Request {
                id: "1".into(),
                resource: Some(ocm_policy_abi::Resource { operation: verb.to_owned().into(), ..Default::default() }),
                object,
                previous_object: previous,
                ..Request::new(operation, ocm_policy_abi::Requester::default())
            });
            let made = [question.kubewarden_input("{}"), question.gatekeeper_input("{}")];
            made.map(|made| made.map(drop).map_err(|error| error.code()))
        };
        let (there, refused) = ([Ok(()), Ok(())], [Err("evidence"), Err("evidence")]);
        let some = || Some(json!({"a": 1}));
        assert_eq!(ask("CREATE", Operation::Create, None, None), refused);
        assert_eq!(ask("CREATE", Operation::Create, some(), None), there);
        assert_eq!(ask("UPDATE", Operation::Update, None, some()), refused);
        assert_eq!(ask("UPDATE", Operation::Update, some(), None), refused);
        assert_eq!(ask("UPDATE", Operation::Update, some(), some()), there);
        assert_eq!(ask("UPDATE", Operation::Accept, some(), None), there, "nothing is changed yet");
        assert_eq!(ask("UPDATE", Operation::Accept, None, None), refused);
        assert_eq!(ask("DELETE", Operation::Delete, None, None), refused);
        assert_eq!(ask("DELETE", Operation::Delete, None, some()), there);
    }
}
