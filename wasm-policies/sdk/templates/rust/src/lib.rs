//! Clusters are let in under names that begin as they must.

use ocm_policy_sdk::{Answer, ManifestBuilder, Operation, Policy, Request, allow, deny, manifest, no_opinion};
use serde::Deserialize;

/// What administrators can set.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    /// What a name may begin with; nothing: anything.
    #[serde(default)]
    prefixes: Vec<String>,
}

/// The policy with its settings.
struct NamePrefix {
    prefixes: Vec<String>,
}

impl Policy for NamePrefix {
    type Settings = Settings;

    fn manifest() -> ManifestBuilder {
        manifest("{{name}}", env!("CARGO_PKG_VERSION"), "Lets in clusters whose names begin as they must")
            .judges([Operation::Create, Operation::Accept, Operation::Join])
            .gives("NamePrefix", "The name does not begin as it must")
            .settings_schema(
                r#"{"type": "object", "additionalProperties": false, "properties": {
                    "prefixes": {"type": "array", "items": {"type": "string", "minLength": 1},
                                 "description": "What a name may begin with; nothing: anything"}}}"#,
            )
    }

    fn configure(settings: Settings) -> Result<Self, Vec<String>> {
        // Settings are checked once, here; decide can rely on them.
        if settings.prefixes.iter().any(String::is_empty) {
            return Err(vec!["prefixes: an empty prefix fits every name; leave prefixes out instead".to_owned()]);
        }
        Ok(Self { prefixes: settings.prefixes })
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        let Some(cluster) = request.cluster() else { return no_opinion() };
        if self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| cluster.name.starts_with(prefix)) {
            return allow();
        }
        deny("NamePrefix", format!("the name must begin with one of: {}", self.prefixes.join(", "))).at("metadata.name")
    }
}

ocm_policy_sdk::export!(NamePrefix);
