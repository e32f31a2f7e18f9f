//! What the policy decides, apart from how it is asked. The tests run it natively, too.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The settings.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Settings {
    /// What names begin with.
    pub prefix: String,
    /// A label that clusters get which have none of that key.
    pub default_region: Option<String>,
    /// Whether to ask the host about the name, too.
    pub look_up: bool,
}

/// What is wrong with settings.
pub fn check(settings: &Settings) -> Result<(), String> {
    if settings.prefix.is_empty() { Err("the prefix must not be empty".to_owned()) } else { Ok(()) }
}

/// The object as it should be, unchanged or not, or why it is rejected.
pub fn judge(object: &Value, settings: &Settings) -> Result<Option<Value>, String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if !name.starts_with(&settings.prefix) {
        return Err(format!("{name} does not begin with {}", settings.prefix));
    }
    match &settings.default_region {
        Some(region) if object["metadata"]["labels"]["region"].is_null() => {
            let mut object = object.clone();
            object["metadata"]["labels"]["region"] = json!(region);
            Ok(Some(object))
        }
        _ => Ok(None),
    }
}
