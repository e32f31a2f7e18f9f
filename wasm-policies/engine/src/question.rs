//! A request as the policies of one call get it: each its own evidence and, if it asked, the object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ocm_policy_abi::{Manifest, Map, Request};
use serde::Deserialize as _;
use serde_json::Value;

use ocm_policy_rules::outcome::Fault;
use ocm_policy_rules::review::admission_request;

/// A request with everything that any policy may want of it.
///
/// Tables of evidence are found by the name of the query, or by `<policy>/<query>` where two policies name different
/// queries alike.
pub struct Question {
    request: Request<'static>,
    /// The request without objects and evidence, which is all that most policies get.
    plain: Arc<str>,
    /// Texts that were made for policies that get more, by what they get.
    special: Mutex<HashMap<String, Arc<str>>>,
    evidence: Map<'static, ocm_policy_abi::Table<'static>>,
    object: Option<Value>,
    previous_object: Option<Value>,
    /// The text that every policy gets, whatever it asks for.
    recorded: Option<Arc<str>>,
}

impl Question {
    /// Takes a request with all its objects and tables.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn new(mut request: Request<'static>) -> Result<Self, Fault> {
        let (object, previous_object) = (request.object.take(), request.previous_object.take());
        let evidence = std::mem::take(&mut request.evidence);
        let plain = text(&request)?;
        Ok(Self { request, plain, special: Mutex::default(), evidence, object, previous_object, recorded: None })
    }

    /// Takes a request that a policy has got before, to be given byte by byte as it was.
    ///
    /// # Errors
    /// When it is no request.
    pub fn recorded(request: &str) -> Result<Self, Fault> {
        let read = |error: serde_json::Error| Fault::Malformed(format!("the recorded request cannot be read: {error}"));
        let value: Value = serde_json::from_str(request).map_err(read)?;
        let question = Self::new(Request::deserialize(value).map_err(read)?)?;
        Ok(Self { recorded: Some(request.into()), ..question })
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

    /// The request in the words of an admission review, for policies of other contracts.
    pub(crate) fn admission(&self) -> Result<Arc<str>, Fault> {
        const KEY: &str = "admission";
        let mut special = self.special.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = special.get(KEY) {
            return Ok(text.clone());
        }
        let mut request = self.request.clone();
        request.object = self.given_object().cloned();
        request.previous_object.clone_from(&self.previous_object);
        let text: Arc<str> = admission_request(&request, self.object()).to_string().into();
        special.insert(KEY.to_owned(), text.clone());
        Ok(text)
    }

    /// What a Kubewarden policy with these settings is given: [`ocm_policy_rules::adapt::kubewarden_input`] without
    /// writing the request anew for each policy.
    pub(crate) fn kubewarden_input(&self, settings: &str) -> Result<String, Fault> {
        Ok(format!("{{\"request\":{},\"settings\":{settings}}}", self.admission()?))
    }

    /// What a Gatekeeper template with these parameters is given, likewise.
    pub(crate) fn gatekeeper_input(&self, parameters: &str) -> Result<String, Fault> {
        Ok(format!("{{\"review\":{},\"parameters\":{parameters}}}", self.admission()?))
    }

    /// The request as a policy with this manifest gets it.
    ///
    /// # Errors
    /// When it needs an object or a table that the asker does not have: deciding without would be deciding something else.
    pub fn text_for(&self, manifest: &Manifest) -> Result<Arc<str>, Fault> {
        if let Some(recorded) = &self.recorded {
            return Ok(recorded.clone());
        }
        if !manifest.wants_object && manifest.evidence.is_empty() {
            return Ok(self.plain.clone());
        }
        let mut key = String::from(if manifest.wants_object { "object" } else { "" });
        let mut tables = Vec::new();
        for query in &manifest.evidence {
            let own = format!("{}/{}", manifest.name, query.name);
            let found = self.evidence.iter().find(|(name, _)| *name == own);
            let Some((found, table)) = found.or_else(|| self.evidence.iter().find(|(name, _)| *name == query.name))
            else {
                return Err(Fault::Load(format!("the evidence {:?} is missing", query.name)));
            };
            key += &format!("\n{found}={}", query.name);
            tables.push((query.name.clone(), table.clone()));
        }
        let mut special = self.special.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = special.get(&key) {
            return Ok(text.clone());
        }
        let mut request = self.request.clone();
        request.evidence = tables.into_iter().collect();
        if manifest.wants_object {
            request.object.clone_from(&self.object);
            request.previous_object.clone_from(&self.previous_object);
        }
        let text = text(&request)?;
        special.insert(key, text.clone());
        Ok(text)
    }
}

fn text(request: &Request<'_>) -> Result<Arc<str>, Fault> {
    let text = serde_json::to_string(request);
    text.map(Arc::from).map_err(|error| Fault::Malformed(format!("the request cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::Operation;
    use ocm_policy_rules::adapt;
    use serde_json::json;

    use super::*;

    #[test]
    fn other_contracts_get_what_their_adapters_say() {
        let request: Request<'static> = serde_json::from_str(Box::leak(
            json!({
                "id": "7", "operation": "create", "now": 5, "requester": {"username": "u", "groups": ["g"]},
                "resource": {"group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster",
                             "resource": "managedclusters", "operation": "CREATE", "name": "a"},
                "object": {"metadata": {"name": "a"}},
            })
            .to_string()
            .into_boxed_str(),
        ))
        .unwrap();
        assert_eq!(request.operation, Operation::Create);
        let settings = json!({"n": [1, "x"]});
        let question = Question::new(request.clone()).unwrap();
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
    fn a_deletion_gives_no_new_object() {
        let mut request = Request::<'static> {
            id: "1".into(),
            operation: Operation::Delete,
            now: 0,
            dry_run: false,
            attempt: 0,
            requester: ocm_policy_abi::Requester::default(),
            resource: Some(ocm_policy_abi::Resource { operation: "DELETE".into(), ..Default::default() }),
            cluster: None,
            previous: None,
            csr: None,
            object: Some(json!({"a": 1})),
            previous_object: None,
            evidence: Map::default(),
        };
        request.resource.as_mut().unwrap().kind = "ManagedCluster".into();
        let question = Question::new(request).unwrap();
        assert_eq!(question.given_object(), None);
        let admission: Value = serde_json::from_str(&question.admission().unwrap()).unwrap();
        assert_eq!((&admission["object"], &admission["oldObject"]), (&Value::Null, &json!({"a": 1})));
    }
}
