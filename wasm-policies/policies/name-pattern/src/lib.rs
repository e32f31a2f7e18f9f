//! Clusters have names of a certain form.

use ocm_policy_sdk::{
    Answer, ManifestBuilder, Operation, Policy, Request, allow, deny, glob, hub, manifest, no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NamePattern {
    /// What a name may begin with; nothing: anything.
    prefixes: Vec<String>,
    /// What a name may end with; nothing: anything.
    suffixes: Vec<String>,
    /// The whole of a name; nothing: anything.
    patterns: Vec<String>,
    /// Names, as patterns, that no cluster has.
    forbidden: Vec<String>,
    min_length: usize,
    max_length: usize,
}

impl Default for NamePattern {
    fn default() -> Self {
        let none = Vec::new;
        Self { prefixes: none(), suffixes: none(), patterns: none(), forbidden: none(), min_length: 1, max_length: 63 }
    }
}

impl Policy for NamePattern {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        manifest("name-pattern", env!("CARGO_PKG_VERSION"), "Lets in clusters whose names have a certain form")
            .judges([Operation::Create, Operation::Join, Operation::Accept, Operation::Request, Operation::Approve])
            .gives_codes(hub::CLUSTER_CODES)
            .gives("NameMissing", "The name is not known yet, so it cannot be judged")
            .gives("NamePrefix", "The name does not begin as it must")
            .gives("NameSuffix", "The name does not end as it must")
            .gives("NamePattern", "The name is of no allowed pattern")
            .gives("NameForbidden", "The name is one that no cluster may have")
            .gives("NameLength", "The name is too short or too long")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let patterns = settings.patterns.iter().chain(&settings.forbidden);
        let mut wrong: Vec<String> = patterns.filter_map(|pattern| glob::check(pattern).err()).collect();
        if settings.min_length > settings.max_length {
            wrong.push("minLength is more than maxLength, so that no name fits".to_owned());
        }
        if settings.prefixes.iter().chain(&settings.suffixes).any(String::is_empty) {
            wrong.push("an empty prefix or suffix fits every name: leave it out".to_owned());
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request)
    }
}

impl NamePattern {
    fn judge(&self, request: &Request<'_>) -> Answer {
        if hub::is_denial(request) {
            return no_opinion();
        }
        let name = match hub::cluster_name(request) {
            Err(violation) => return hub::violated(violation),
            // Requests for certificates that have nothing to do with clusters carry no name of one.
            Ok(None) if request.csr().is_some() => return no_opinion(),
            Ok(None) => return deny("NameMissing", "the cluster has no name yet").at("metadata.name"),
            Ok(Some(name)) => name,
        };
        let no = |code: &str, message: String| deny(code, message).at("metadata.name");
        if name.len() < self.min_length || name.len() > self.max_length {
            let (least, most) = (self.min_length, self.max_length);
            return no("NameLength", format!("the name must have {least} to {most} characters"));
        }
        if glob::any(&self.forbidden, name) {
            return no("NameForbidden", "no cluster may have this name".to_owned());
        }
        if !self.prefixes.is_empty() && !self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str())) {
            return no("NamePrefix", format!("the name must begin with one of: {}", some(&self.prefixes)));
        }
        if !self.suffixes.is_empty() && !self.suffixes.iter().any(|suffix| name.ends_with(suffix.as_str())) {
            return no("NameSuffix", format!("the name must end with one of: {}", some(&self.suffixes)));
        }
        if !self.patterns.is_empty() && !glob::any(&self.patterns, name) {
            return no("NamePattern", format!("the name must be like one of: {}", some(&self.patterns)));
        }
        allow()
    }
}

/// The first of many, so that messages stay short.
fn some(texts: &[String]) -> String {
    let rest = texts.get(5).map(|_| "…");
    texts.iter().take(5).map(String::as_str).chain(rest).collect::<Vec<_>>().join(", ")
}

ocm_policy_sdk::export!(NamePattern);
