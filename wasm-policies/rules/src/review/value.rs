//! JSON that is read member by member: whatever is wrong is named by its path.

use jiff::Timestamp;
use ocm_policy_abi::{Map, Text};
use serde_json::Value;

/// Why something cannot be made a question of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {wrong}")]
pub struct Unusable {
    /// The field, such as `object.metadata.name`.
    pub path: String,
    /// What is wrong with it.
    pub wrong: String,
}

pub(super) fn unusable(path: impl Into<String>, wrong: impl Into<String>) -> Unusable {
    Unusable { path: path.into(), wrong: wrong.into() }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) path: String,
}

impl<'a> At<'a> {
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// What a member holds; null is nothing.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn typed<T>(
        &self,
        name: &str,
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Unusable> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| unusable(self.at(name), format!("it must be {what}")))
    }

    pub(super) fn member(&self, name: &str) -> Result<Option<Self>, Unusable> {
        let value = self.typed(name, "an object", |value| value.is_object().then_some(value))?;
        Ok(value.map(|value| Self { value, path: self.at(name) }))
    }

    pub(super) fn needed(&self, name: &str) -> Result<Self, Unusable> {
        self.member(name)?.ok_or_else(|| unusable(self.at(name), "there is none"))
    }

    /// A text; an empty one is none, as Go writes it.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Unusable> {
        Ok(self.typed(name, "a string", Value::as_str)?.filter(|text| !text.is_empty()))
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Unusable> {
        self.typed(name, "a boolean", Value::as_bool)
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Unusable> {
        self.typed(name, "a whole number", Value::as_i64)
    }

    pub(super) fn time(&self, name: &str) -> Result<Option<i64>, Unusable> {
        self.typed(name, "a time", |value| Some(value.as_str()?.parse::<Timestamp>().ok()?.as_millisecond()))
    }

    pub(super) fn items(&self, name: &str) -> Result<Vec<Self>, Unusable> {
        let items = self.typed(name, "an array", Value::as_array)?.map(Vec::as_slice).unwrap_or_default();
        let path = |index| format!("{}[{index}]", self.at(name));
        Ok(items.iter().enumerate().map(|(index, value)| Self { value, path: path(index) }).collect())
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<Text<'a>>, Unusable> {
        let text =
            |item: Self| item.value.as_str().map(Text::from).ok_or_else(|| unusable(item.path, "it must be a string"));
        self.items(name)?.into_iter().map(text).collect()
    }

    /// The entries of a map of texts, sorted by key.
    pub(super) fn map(&self, name: &str) -> Result<Map<'a, Text<'a>>, Unusable> {
        let Some(member) = self.member(name)? else { return Ok(Map::default()) };
        let mut entries = Vec::new();
        for (key, value) in member.value.as_object().into_iter().flatten() {
            let value = value.as_str().ok_or_else(|| unusable(member.at(key), "it must be a string"))?;
            entries.push((key.as_str(), Text::from(value)));
        }
        entries.sort_by_key(|(key, _)| *key);
        Ok(entries.into_iter().collect())
    }
}
