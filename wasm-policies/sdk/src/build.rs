//! Short ways to say what a policy decides and what it is.

use ocm_policy_abi::{
    CONTRACT, Decision, Edit, EditGrant, EvidenceSource, LimitsAsked, Manifest, Obligation, Operation, Query, QuotaKey,
    Reason, ReasonDoc, Verdict,
};
use serde::Serialize;

/// A decision that is being put together. It becomes a [`Decision`] where one is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer(Box<Decision>);

fn of(verdict: Verdict) -> Answer {
    Answer(Box::new(Decision { verdict, ..Decision::default() }))
}

/// It may happen.
pub fn allow() -> Answer {
    of(Verdict::Allow)
}

/// It must not happen, for a reason: its stable code and one sentence.
pub fn deny(code: &str, message: impl Into<String>) -> Answer {
    of(Verdict::Deny).because(code, message)
}

/// Not now, for a reason: its stable code and one sentence.
pub fn hold(code: &str, message: impl Into<String>) -> Answer {
    of(Verdict::Hold).because(code, message)
}

/// The policy has nothing to say.
pub fn no_opinion() -> Answer {
    Answer::default()
}

impl Answer {
    /// Adds a reason.
    #[must_use]
    pub fn because(mut self, code: &str, message: impl Into<String>) -> Self {
        self.0.reasons.push(Reason { code: code.to_owned(), message: message.into(), field: None });
        self
    }

    /// Names the field that the last reason is about.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        if let Some(reason) = self.0.reasons.last_mut() {
            reason.field = Some(field.into());
        }
        self
    }

    /// Tells the requester something that changes nothing.
    #[must_use]
    pub fn warn(mut self, text: impl Into<String>) -> Self {
        self.0.warnings.push(text.into());
        self
    }

    /// Changes the object.
    #[must_use]
    pub fn edit(mut self, edit: Edit) -> Self {
        self.0.edits.push(edit);
        self
    }

    /// Sets a label of the object.
    #[must_use]
    pub fn label(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.edit(Edit::SetLabel { key: key.into(), value: value.into() })
    }

    /// Sets an annotation of the object.
    #[must_use]
    pub fn annotate(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.edit(Edit::SetAnnotation { key: key.into(), value: value.into() })
    }

    /// Asks to be asked again.
    #[must_use]
    pub fn again_in(mut self, seconds: u32) -> Self {
        self.0.ask_again_seconds = Some(seconds);
        self
    }

    /// Has the hub do something because of the answer.
    #[must_use]
    pub fn oblige(mut self, obligation: Obligation) -> Self {
        self.0.obligations.push(obligation);
        self
    }

    /// Adds to the audit log.
    #[must_use]
    pub fn audit(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.audit.insert(key.into(), value.into());
        self
    }
}

impl Answer {
    /// The decision as it stands.
    pub fn decision(&self) -> &Decision {
        &self.0
    }
}

impl From<Answer> for Decision {
    fn from(answer: Answer) -> Self {
        *answer.0
    }
}

/// A manifest that is being put together. It becomes a [`Manifest`] where one is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestBuilder {
    manifest: Manifest,
    /// As text: policies that only hand it on need no parser for it.
    schema: Option<&'static str>,
}

/// Begins a manifest: name, version, and what the policy does in one sentence.
pub fn manifest(name: &str, version: &str, description: &str) -> ManifestBuilder {
    let manifest = Manifest {
        contract: CONTRACT.to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
        description: description.to_owned(),
        // The allocator only moves forward, and texts are looked at where they lie.
        request_in_one_block: true,
        ..Manifest::default()
    };
    ManifestBuilder { manifest, schema: None }
}

impl ManifestBuilder {
    /// The operations that the policy has an opinion about.
    #[must_use]
    pub fn judges(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.manifest.operations.extend(operations);
        self
    }

    /// A code that its reasons may have, and what it means.
    #[must_use]
    pub fn gives(mut self, code: &str, description: &str) -> Self {
        self.manifest.reasons.push(ReasonDoc { code: code.to_owned(), description: description.to_owned() });
        self
    }

    /// Codes of the common rules that its reasons may have.
    #[must_use]
    pub fn gives_codes(self, codes: impl IntoIterator<Item = ocm_rules::Code>) -> Self {
        codes.into_iter().fold(self, |builder, code| builder.gives(code.word(), code.doc().trim_end_matches('.')))
    }

    /// An edit that it may make.
    #[must_use]
    pub fn may_edit(mut self, grant: EditGrant) -> Self {
        self.manifest.edits.push(grant);
        self
    }

    /// Something of the hub that it needs to know: the name of the table, where it comes from, and the JSON pointers of
    /// the values of a row.
    #[must_use]
    pub fn needs(mut self, name: &str, source: EvidenceSource, fields: &[&str]) -> Self {
        self.manifest.evidence.push(Query::new(name, source, fields.iter().copied()));
        self
    }

    /// As [`Self::needs`], and only the rows in which this field is the name of the cluster that the request is about.
    #[must_use]
    pub fn needs_of_cluster(self, name: &str, source: EvidenceSource, cluster_field: &str, fields: &[&str]) -> Self {
        let query = Query::new(name, source, fields.iter().copied());
        self.needs_query(Query { cluster_field: Some(cluster_field.to_owned()), ..query })
    }

    /// As [`Self::needs`], with everything that a query may have.
    #[must_use]
    pub fn needs_query(mut self, query: Query) -> Self {
        self.manifest.evidence.push(query);
        self
    }

    /// What the policy counts by.
    #[must_use]
    pub fn counts_by(mut self, keys: impl IntoIterator<Item = QuotaKey>) -> Self {
        self.manifest.counts_by.extend(keys);
        self
    }

    /// Asks for whole objects as JSON.
    #[must_use]
    pub fn wants_object(mut self) -> Self {
        self.manifest.wants_object = true;
        self
    }

    /// JSON Schema of the settings, as text.
    #[must_use]
    pub fn settings_schema(mut self, json: &'static str) -> Self {
        self.schema = Some(json);
        self
    }

    /// Fuel of one decision, where the usual does not do.
    #[must_use]
    pub fn fuel(mut self, fuel: u64) -> Self {
        self.manifest.limits.fuel = Some(fuel);
        self
    }
}

/// A manifest without the schema of its settings. Writing JSON of any kind needs 17 KB of tables for numbers, which every
/// instance would have to set back.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Plain<'m> {
    contract: &'m str,
    name: &'m str,
    version: &'m str,
    description: &'m str,
    operations: &'m [Operation],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    wants_object: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    request_in_one_block: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    evidence: &'m [Query],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    edits: &'m [EditGrant],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    counts_by: &'m [QuotaKey],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasons: &'m [ReasonDoc],
    limits: LimitsAsked,
}

impl ManifestBuilder {
    /// The manifest as JSON.
    pub(crate) fn into_json(self) -> String {
        let Manifest {
            contract,
            name,
            version,
            description,
            operations,
            wants_object,
            request_in_one_block,
            evidence,
            edits,
            counts_by,
            reasons,
            settings_schema: _,
            limits,
        } = &self.manifest;
        let plain = Plain {
            contract,
            name,
            version,
            description,
            operations,
            wants_object: *wants_object,
            request_in_one_block: *request_in_one_block,
            evidence,
            edits,
            counts_by,
            reasons,
            limits: *limits,
        };
        // No host takes an empty text for a manifest.
        let mut json = serde_json::to_string(&plain).unwrap_or_default();
        if let (Some(schema), Some('}')) = (self.schema, json.pop()) {
            json += ",\"settingsSchema\":";
            json += schema;
        }
        json + "}"
    }
}

impl From<ManifestBuilder> for Manifest {
    /// # Panics
    /// When the schema of the settings is no JSON: that is a mistake in the policy, and the first look at it finds it.
    fn from(builder: ManifestBuilder) -> Self {
        let settings_schema =
            builder.schema.map(|text| serde_json::from_str(text).expect("the schema of the settings is JSON"));
        Self { settings_schema, ..builder.manifest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_manifest_is_the_manifest() {
        let full = || {
            manifest("a", "1.0.0", "b")
                .judges([Operation::Join])
                .gives("c", "d")
                .may_edit(EditGrant::ClusterSet)
                .needs("e", EvidenceSource::Clusters, &["/f"])
                .needs_of_cluster("g", EvidenceSource::Namespaces, "/metadata/name", &[])
                .counts_by([QuotaKey::Hub])
                .wants_object()
                .settings_schema(r#"{"maximum": 1.5}"#)
                .fuel(7)
        };
        for builder in [full(), manifest("a", "1.0.0", "b")] {
            let read: Manifest = serde_json::from_str(&builder.clone().into_json()).unwrap();
            assert_eq!(read, Manifest::from(builder));
        }
    }
}
