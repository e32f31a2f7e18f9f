//! Running all test cases, with what every policy has to keep to whatever its test cases say.

use ocm_policy_abi::Manifest;
use ocm_policy_abi::{Decision, Operation};
use ocm_policy_rules::{Bounds, PolicyError, read_decision};
use ocm_policy_rules::{edits, evidence};

use crate::expect::Mismatch;
use crate::suite::{Case, Suite};

impl Case {
    /// What is wrong with what a policy of this manifest answered.
    pub fn wrong(&self, manifest: &Manifest, result: &Result<Decision, PolicyError>) -> Vec<String> {
        let mut wrong = sentences(self.expect.check(result));
        let announced = |code: &str| manifest.reasons.iter().any(|known| known.code == code);
        let reasons = result.as_ref().map(|decision| decision.reasons.as_slice()).unwrap_or_default();
        let unknown = reasons.iter().filter(|reason| !announced(&reason.code));
        wrong.extend(unknown.map(|reason| format!("the manifest does not announce the reason {}", reason.code)));
        wrong
    }

    /// What is wrong with a policy that cannot be had with the settings of the case.
    pub fn refused(&self, error: &PolicyError) -> Vec<String> {
        sentences(match error {
            PolicyError::Settings(why) => self.expect.check_refusal(std::slice::from_ref(why)),
            error => self.expect.check(&Err(error.clone())),
        })
    }

    /// What is wrong where the policy does not judge what the case asks about.
    pub fn not_asked(&self, operation: Operation) -> String {
        let word = operation.word();
        format!("the policy is not evaluated for this {word}: its manifest, or its HubPolicy, does not say so")
    }
}

fn sentences(wrong: Vec<Mismatch>) -> Vec<String> {
    wrong.into_iter().map(|mismatch| mismatch.0).collect()
}

/// Asks every case of a file, and looks whether the policy keeps to its manifest: its reasons are announced, its edits
/// granted, its evidence declared; every code is expected by some case, and every setting of the schema is set in one.
///
/// `ask` takes settings and a request as JSON and gives the decision as JSON, or why the settings are refused.
/// Nothing comes back where all is well.
pub fn run(yaml: &str, manifest: &Manifest, ask: impl FnMut(&str, &str) -> Result<String, Vec<String>>) -> Vec<String> {
    match Suite::read(yaml) {
        Ok(suite) => run_suite(&suite, manifest, ask),
        Err(bad) => vec![bad.to_string()],
    }
}

/// As [`run`], for test cases that have been read.
pub fn run_suite(
    suite: &Suite,
    manifest: &Manifest,
    mut ask: impl FnMut(&str, &str) -> Result<String, Vec<String>>,
) -> Vec<String> {
    let mut failures = Vec::new();
    for case in &suite.cases {
        let told = ask_one(suite, case, manifest, &mut ask);
        failures.extend(told.into_iter().map(|told| format!("line {}: {}: {told}", case.line, case.name)));
    }
    failures.extend(suite.uncovered(manifest).into_iter().map(|code| format!("no case expects the reason {code}")));
    for query in &manifest.evidence {
        failures.extend(evidence::check(query).err().map(|error| format!("evidence {}: {error}", query.name)));
    }
    let known = manifest.settings_schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    for name in known.into_iter().flat_map(|known| known.keys()) {
        if !suite.cases.iter().any(|case| case.settings_value(suite).get(name).is_some()) {
            failures.push(format!("no case sets the setting {name}"));
        }
    }
    failures
}

fn ask_one(
    suite: &Suite,
    case: &Case,
    manifest: &Manifest,
    ask: &mut impl FnMut(&str, &str) -> Result<String, Vec<String>>,
) -> Vec<String> {
    let (request, json) = match case.request_for(manifest).map(|request| {
        let json = serde_json::to_string(&request);
        (request, json)
    }) {
        Ok((request, Ok(json))) => (request, json),
        Ok((_, Err(error))) => return vec![error.to_string()],
        Err(bad) => return vec![bad.to_string()],
    };
    let mut told = Vec::new();
    if !manifest.operations.contains(&request.operation) && case.expect.refused.is_none() {
        told.push(format!("the policy is never asked about {}", request.operation.word()));
    }
    for (name, _) in request.evidence.iter() {
        if !manifest.evidence.iter().any(|query| query.name == name) {
            told.push(format!("the policy never gets the evidence {name}"));
        }
    }
    let got = match ask(&case.settings(suite), &json) {
        Ok(answer) => read_decision(answer.as_bytes(), &Bounds::default()),
        Err(errors) => {
            told.extend(case.expect.check_refusal(&errors).into_iter().map(|mismatch| mismatch.0));
            return told;
        }
    };
    let got = got.and_then(|decision| {
        edits::check(&decision.edits, &request, &manifest.edits, &manifest.edits)?;
        Ok(decision)
    });
    if let Ok(decision) = &got {
        for reason in &decision.reasons {
            if !manifest.reasons.iter().any(|known| known.code == reason.code) {
                told.push(format!("the manifest does not announce the reason {}", reason.code));
            }
        }
    }
    told.extend(case.expect.check(&got).into_iter().map(|mismatch| mismatch.0));
    told
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{EditGrant, EvidenceSource, Operation, Query, ReasonDoc};

    use super::*;

    const FILE: &str = "
settings: {size: 1}
cases:
  - name: it is let in
    request: {operation: create}
    expect: {verdict: allow}
  - name: settings
    settings: {size: 2}
    expect: {refused: too large}
";

    fn manifest() -> Manifest {
        Manifest {
            operations: vec![Operation::Create],
            settings_schema: Some(serde_json::json!({"properties": {"size": {}}})),
            ..Manifest::default()
        }
    }

    fn answer(text: &'static str) -> impl Fn(&str, &str) -> Result<String, Vec<String>> {
        move |settings, _| match settings {
            r#"{"size":1}"# => Ok(text.to_owned()),
            _ => Err(vec!["it is too large".to_owned()]),
        }
    }

    #[test]
    fn a_policy_that_keeps_to_everything_passes() {
        assert_eq!(run(FILE, &manifest(), answer(r#"{"verdict": "allow"}"#)), Vec::<String>::new());
        assert_eq!(run("cases: 1", &manifest(), answer("")).len(), 1);
    }

    #[test]
    fn what_a_manifest_does_not_say_is_told() {
        let told = |manifest: &Manifest, text: &'static str| run(FILE, manifest, answer(text)).join("\n");
        assert!(told(&manifest(), "{}").contains("malformed"));
        let edit = r#"{"verdict": "allow", "edits": [{"op": "set-label", "key": "k", "value": "v"}]}"#;
        assert!(told(&manifest(), edit).contains("edit-refused"));
        let granted = Manifest { edits: vec![EditGrant::Label { key: "k".into() }], ..manifest() };
        assert_eq!(told(&granted, edit), "");
        let reason = r#"{"verdict": "allow", "reasons": [{"code": "A", "message": "m"}]}"#;
        assert!(told(&manifest(), reason).contains("does not announce the reason A"));
        let allow = r#"{"verdict": "allow"}"#;
        let never = Manifest { operations: vec![Operation::Join], ..manifest() };
        assert!(told(&never, allow).contains("never asked about create"));
        let code = ReasonDoc { code: "A".into(), description: "d".into() };
        assert_eq!(told(&Manifest { reasons: vec![code], ..manifest() }, allow), "no case expects the reason A");
        let query = Query { selector: Some("=".into()), ..Query::new("q", EvidenceSource::Clusters, [""]) };
        assert!(told(&Manifest { evidence: vec![query], ..manifest() }, allow).contains("evidence q"));
        let schema = Some(serde_json::json!({"properties": {"size": {}, "other": {}}}));
        assert_eq!(told(&Manifest { settings_schema: schema, ..manifest() }, allow), "no case sets the setting other");
    }
}
