//! A request as the policies of one call get it: each its own evidence and, if it asked, the object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ocm_policy_abi::{Manifest, Map, Request};
use serde::Deserialize as _;
use serde_json::Value;

use ocm_policy_rules::outcome::Fault;

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
