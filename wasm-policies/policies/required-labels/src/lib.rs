//! Clusters carry certain labels, and not others.

use ocm_policy_sdk::rules::Code;
use ocm_policy_sdk::{
    Answer, EditGrant, ManifestBuilder, Operation, Policy, Request, Stage, allow, deny, glob, hub, manifest, no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequiredLabels {
    required: Vec<Label>,
    /// Keys, as patterns, that nobody sets.
    forbidden: Vec<String>,
}

/// A label that clusters carry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    key: String,
    /// Its values, as patterns; nothing: any.
    #[serde(default)]
    values: Vec<String>,
    /// What it is where nobody says it.
    #[serde(default)]
    default: Option<String>,
}

impl Policy for RequiredLabels {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        manifest("required-labels", env!("CARGO_PKG_VERSION"), "Lets in clusters that carry the right labels")
            .judges([Operation::Create, Operation::Update, Operation::Join, Operation::Accept])
            .may_edit(EditGrant::Label { key: "*".to_owned() })
            .gives("LabelMissing", "A label is missing")
            .gives("LabelValue", "A label has a value that it may not have")
            .gives("LabelForbidden", "There is a label that nobody may set")
            .gives("ClusterMissing", "There is no cluster to look at")
            .gives_codes([Code::EvidenceIncomplete])
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let mut wrong: Vec<String> =
            settings.forbidden.iter().filter_map(|pattern| glob::check(pattern).err()).collect();
        for label in &settings.required {
            wrong.extend(label.values.iter().filter_map(|pattern| glob::check(pattern).err()));
            let key = &label.key;
            if glob::any(&settings.forbidden, key) {
                wrong.push(format!("the label {key} is both required and forbidden"));
            }
            if let Some(default) = &label.default {
                if !label.values.is_empty() && !glob::any(&label.values, default) {
                    wrong.push(format!("the default of {key} is none of its values"));
                }
                if hub::is_system_key(key) {
                    wrong.push(format!("the label {key} is the hub's: it can have no default"));
                }
            }
        }
        if settings.required.is_empty() && settings.forbidden.is_empty() {
            wrong.push("nothing is required or forbidden".to_owned());
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request)
    }
}

impl RequiredLabels {
    fn judge(&self, request: &Request<'_>) -> Answer {
        if hub::is_subresource(request) {
            return no_opinion();
        }
        let Some(cluster) = request.cluster() else { return deny("ClusterMissing", "there is no cluster") };
        let previous = request.previous().filter(|_| request.operation() == Operation::Update);
        // What was wrong before must not keep others from writing; only what changes is judged.
        let left_out = |key: Option<&str>| hub::left_out(request, "labels", key);
        if left_out(None).is_none() && previous.is_some_and(|previous| same(&previous.labels, &cluster.labels)) {
            return no_opinion();
        }
        let unchanged =
            |key: &str| previous.is_some_and(|previous| previous.labels.get(key) == cluster.labels.get(key));
        let mut wrong: Vec<(&str, String, &str)> = Vec::new();
        let again = request.stage() == Some(Stage::Mutating);
        let mut answer = allow();
        // Asked last: what is seen to be wrong stays wrong.
        let mut unknown = if self.forbidden.is_empty() { None } else { left_out(None) };
        for label in &self.required {
            let key = label.key.as_str();
            if let Some(missed) = left_out(Some(key)) {
                unknown.get_or_insert(missed);
                continue;
            }
            match (cluster.labels.get(key), &label.default) {
                _ if unchanged(key) => {}
                (None, Some(default)) => answer = answer.label(key, default),
                // What is said again at this stage is known at the next one as what this policy wants, not as somebody's
                // claim.
                (Some(value), Some(default)) if again && **value == **default => answer = answer.label(key, default),
                (None, None) => wrong.push(("LabelMissing", format!("the label {key} is missing"), key)),
                (Some(value), _) if !label.values.is_empty() && !glob::any(&label.values, value) => {
                    wrong.push(("LabelValue", format!("the label {key} has a value that it may not have"), key));
                }
                (Some(_), _) => {}
            }
        }
        for (key, _) in cluster.labels.iter() {
            // The key may be as long as whoever asks likes.
            if glob::any(&self.forbidden, key) && !unchanged(key) {
                wrong.push(("LabelForbidden", "nobody may set this label".to_owned(), key));
            }
        }
        let field = |key: &str| format!("metadata.labels.{}", key.chars().take(60).collect::<String>());
        let mut wrong = wrong.into_iter().take(16);
        match wrong.next() {
            None => unknown.unwrap_or(answer),
            Some((code, message, key)) => wrong
                .fold(deny(code, message).at(field(key)), |answer, (code, message, key)| {
                    answer.because(code, message).at(field(key))
                }),
        }
    }
}

type Labels<'a> = ocm_policy_sdk::Map<'a, ocm_policy_sdk::Text<'a>>;

fn same(one: &Labels<'_>, other: &Labels<'_>) -> bool {
    one.len() == other.len() && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| **other == **value))
}

ocm_policy_sdk::export!(RequiredLabels);
