//! What was decided, written down so that it can be checked and repeated elsewhere.

use ocm_policy_abi::{CONTRACT, Decision};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::PolicyError;
use crate::json::{canonical, canonical_of, sha256_hex, step};
use crate::outcome::{Outcome, PolicyId, take_allow};

/// The members that tell about a run and not about the decision.
const INFORMATIONAL: [&str; 1] = ["micros"];

/// One decision of one policy, with everything that it depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    /// The contract between host and policy.
    pub contract: String,
    /// Which policy.
    pub policy: PolicyId,
    /// SHA-256 of its module, lower-case hex.
    pub module_sha256: String,
    /// SHA-256 of [`Self::settings`].
    pub settings_sha256: String,
    /// SHA-256 of [`Self::request`].
    pub request_sha256: String,
    /// The revision of the first table of its evidence; none: it asked for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_revision: Option<String>,
    /// What it was allowed to use.
    pub limits: Limits,
    /// What it answered.
    pub answer: Answered,
    /// Fuel that it used.
    pub fuel: u64,
    /// The settings, byte by byte as the policy got them.
    pub settings: String,
    /// The request, byte by byte as the policy got it.
    pub request: String,
    /// Whether it could only object, since the request does not tell whether its administrator has it asked about such: then the
    /// answer is that of [`Outcome::without_allow`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_objects: bool,
    /// Microseconds that it took: differs with each run, so no digest covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
}

/// What a policy was allowed to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Fuel.
    pub fuel: u64,
    /// Bytes of linear memory.
    pub memory_bytes: u64,
    /// Milliseconds; 0: no deadline.
    #[serde(default)]
    pub millis: u64,
    /// Elements of tables; 0: not recorded.
    #[serde(default)]
    pub table_elements: u64,
    /// Bytes that the host takes from the policy; 0: not recorded.
    #[serde(default)]
    pub host_bytes: u64,
}

/// What a policy answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answered {
    /// A decision.
    Decision(Decision),
    /// None.
    Error(PolicyError),
}

/// What the answer of a policy depended on, besides itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// SHA-256 of the module, lower-case hex; modules are large and hashed once.
    pub module_sha256: String,
    /// The settings as the policy got them.
    pub settings: String,
    /// The request as the policy got it.
    pub request: String,
    /// The revision of the first table of its evidence; none: it asked for none.
    pub evidence_revision: Option<String>,
    /// What the policy was allowed to use.
    pub limits: Limits,
    /// Whether it could only object: the outcome is that of [`Outcome::without_allow`].
    pub only_objects: bool,
    /// Microseconds that it took.
    pub micros: Option<u64>,
}

/// One difference between two records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where, as a JSON pointer.
    pub at: String,
    /// What the first one has there, as JSON; none: nothing.
    pub ours: Option<String>,
    /// What the other one has there.
    pub theirs: Option<String>,
}

impl Record {
    /// Writes down an outcome. The digests are taken here, so that they fit.
    pub fn new(outcome: &Outcome, circumstances: Circumstances) -> Self {
        let Circumstances { module_sha256, settings, request, evidence_revision, limits, only_objects, micros } =
            circumstances;
        Self {
            contract: CONTRACT.to_owned(),
            policy: PolicyId::clone(&outcome.policy),
            module_sha256,
            settings_sha256: sha256_hex(settings.as_bytes()),
            request_sha256: sha256_hex(request.as_bytes()),
            evidence_revision,
            limits,
            answer: match &outcome.result {
                Ok(decision) => Answered::Decision(decision.clone()),
                Err(error) => Answered::Error(error.clone()),
            },
            fuel: outcome.fuel,
            settings,
            request,
            only_objects,
            micros,
        }
    }

    /// The record as JSON that is the same for the same record: keys sorted, no white space, no floats.
    pub fn canonical(&self) -> String {
        canonical_of(self)
    }

    /// SHA-256 over the canonical form without what tells about the run alone, lower-case hex.
    pub fn digest(&self) -> String {
        sha256_hex(canonical(&self.essence()).as_bytes())
    }

    /// The record of the same decision where the policy could only object.
    #[must_use]
    pub fn without_allow(mut self) -> Self {
        self.only_objects = true;
        if let Answered::Decision(decision) = &mut self.answer {
            take_allow(decision);
        }
        self
    }

    /// Whether settings and request are those that the digests are of.
    pub fn is_whole(&self) -> bool {
        self.settings_sha256 == sha256_hex(self.settings.as_bytes())
            && self.request_sha256 == sha256_hex(self.request.as_bytes())
    }

    /// Everything in which another record of the same question differs; nothing: the decision was repeated. How long
    /// it took does not matter.
    pub fn replays_as(&self, other: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        compare("", Some(&self.essence()), Some(&other.essence()), &mut found);
        found
    }

    fn essence(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Some(members) = value.as_object_mut() {
            members.retain(|key, _| !INFORMATIONAL.contains(&key.as_str()));
        }
        value
    }
}

fn compare(at: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<Difference>) {
    if ours == theirs {
        return;
    }
    match (ours, theirs) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                compare(&format!("{at}/{}", step(key)), one.get(key), other.get(key), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                compare(&format!("{at}/{index}"), one.get(index), other.get(index), found);
            }
        }
        _ => found.push(Difference { at: at.to_owned(), ours: ours.map(canonical), theirs: theirs.map(canonical) }),
    }
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::Verdict;

    use super::*;

    fn record() -> Record {
        let decision = Decision { verdict: Verdict::Allow, ..Decision::default() };
        let policy = PolicyId { name: "p".into(), version: "1.0.0".into() };
        let outcome = Outcome { policy: policy.into(), result: Ok(decision), fuel: 12 };
        let circumstances = Circumstances {
            settings: "{}".into(),
            request: r#"{"id": "1", "ratio": 0.5}"#.into(),
            micros: Some(80),
            ..Circumstances::default()
        };
        Record::new(&outcome, circumstances)
    }

    #[test]
    fn a_record_survives_the_way_through_json() {
        let record = record();
        let again: Record = serde_json::from_str(&record.canonical()).unwrap();
        assert_eq!((&again, again.canonical()), (&record, record.canonical()));
        assert!(again.is_whole() && again.replays_as(&record).is_empty());
        assert!(!Record { request: "{}".into(), ..again }.is_whole());
    }

    #[test]
    fn a_record_of_who_could_only_object_says_so_and_is_repeated_as_that() {
        let allowed = record();
        assert!(!allowed.canonical().contains("onlyObjects"), "records of others stay as they were");
        let recorded = allowed.clone().without_allow();
        let Answered::Decision(decision) = &recorded.answer else { panic!("{recorded:?}") };
        assert_eq!((recorded.only_objects, decision.verdict), (true, Verdict::NoOpinion));
        assert!(recorded.replays_as(&allowed.clone().without_allow()).is_empty());
        assert!(!recorded.replays_as(&allowed).is_empty());
        assert_eq!(serde_json::from_str::<Record>(&recorded.canonical()).unwrap(), recorded);
    }

    #[test]
    fn time_is_no_difference_and_an_answer_is() {
        let one = record();
        let slow = Record { micros: Some(9000), ..one.clone() };
        assert_eq!((one.digest(), one.replays_as(&slow)), (slow.digest(), Vec::new()));
        assert_ne!(one.canonical(), slow.canonical());
        let other = Record { answer: Answered::Error(PolicyError::OutOfFuel), fuel: 13, ..one.clone() };
        assert_ne!(one.digest(), other.digest());
        let at: Vec<_> = one.replays_as(&other).into_iter().map(|difference| difference.at).collect();
        assert_eq!(at, ["/answer/decision", "/answer/error", "/fuel"]);
    }
}
