//! Clusters have names of a certain form.

use ocm_policy_sdk::{Answer, ManifestBuilder, Operation, Policy, Request, allow, deny, manifest, no_opinion};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug)]
pub struct NamePattern {
    prefixes: Vec<String>,
    max_length: usize,
}

/// Settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// What a name may begin with; nothing: anything.
    #[serde(default)]
    prefixes: Vec<String>,
    #[serde(default)]
    max_length: Option<usize>,
}

impl Policy for NamePattern {
    type Settings = Settings;

    fn manifest() -> ManifestBuilder {
        manifest("name-pattern", env!("CARGO_PKG_VERSION"), "Lets in clusters whose names have a certain form")
            .judges([Operation::Create, Operation::Join, Operation::Accept])
            .gives("name-prefix", "The name does not begin as it must")
            .gives("name-length", "The name is too long")
    }

    fn configure(settings: Settings) -> Result<Self, Vec<String>> {
        Ok(Self { prefixes: settings.prefixes, max_length: settings.max_length.unwrap_or(63) })
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        let Some(cluster) = request.cluster() else { return no_opinion() };
        if cluster.name.len() > self.max_length {
            return deny("name-length", format!("the name is longer than {} characters", self.max_length))
                .at("metadata.name");
        }
        if !self.prefixes.is_empty() && !self.prefixes.iter().any(|prefix| cluster.name.starts_with(prefix)) {
            let known = self.prefixes.join(", ");
            return deny("name-prefix", format!("the name must begin with one of: {known}")).at("metadata.name");
        }
        allow()
    }
}

ocm_policy_sdk::export!(NamePattern);
