//! From rules to the objects of the API.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation,
    Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_rules::Code;

use super::cel::text;
use super::settings::Enforcement;

/// How many letters of what others wrote are repeated.
const SHOWN: usize = 200;

/// First minor release of Kubernetes 1 that serves ValidatingAdmissionPolicies without a feature gate (KEP-3488).
pub const FIRST_MINOR: u32 = 30;
/// Kind of the policies.
pub const POLICY_KIND: &str = "ValidatingAdmissionPolicy";

/// The kind of what puts policies of the baseline in force.
pub const BINDING_KIND: &str = "ValidatingAdmissionPolicyBinding";

/// The label of all that is ours.
pub(super) const MARK: (&str, &str) = ("app.kubernetes.io/part-of", "kubectl-ocm");

/// One policy.
pub(super) struct Policy {
    pub(super) name: &'static str,
    /// Group, version and resource that it is about, with the subresource if there is one; and which operations.
    pub(super) rules: Vec<Rule>,
    /// What has to hold for the policy to be asked at all.
    pub(super) conditions: Vec<(&'static str, String)>,
    /// Names and what they stand for; a later one may use those before it.
    pub(super) variables: Vec<(&'static str, String)>,
    pub(super) checks: Vec<Check>,
}

/// Requests that a policy is about.
pub(super) struct Rule {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) resource: &'static str,
    pub(super) operations: &'static [&'static str],
}

/// What has to hold.
pub(super) struct Check {
    pub(super) code: Code,
    /// An expression that is true where the rule is kept.
    pub(super) holds: String,
    /// What is said where it is not.
    pub(super) sentence: Sentence,
}

/// What is said where a rule is broken. Whoever broke it has written what it repeats.
pub(super) enum Sentence {
    /// Always the same.
    Plain(String),
    /// With what the expression evaluates to behind it, cut short.
    Naming(&'static str, &'static str),
}

impl Check {
    pub(super) fn new(code: Code, sentence: impl Into<String>, holds: impl Into<String>) -> Self {
        Self { code, holds: holds.into(), sentence: Sentence::Plain(sentence.into()) }
    }

    /// The list that `what` evaluates to has to be empty; what is in it is named.
    pub(super) fn none_of(code: Code, sentence: &'static str, what: &'static str) -> Self {
        Self { code, holds: format!("{what}.size() == 0"), sentence: Sentence::Naming(sentence, what) }
    }

    fn validation(&self) -> Validation {
        let code = format!(" ({} {})", self.code.rule(), self.code.word());
        let (message, expression) = match &self.sentence {
            Sentence::Plain(sentence) => (format!("{sentence}{code}"), None),
            Sentence::Naming(sentence, list) => {
                let all = format!("{list}.join(\", \")");
                let shown = format!("({all}.size() > {SHOWN} ? {all}.substring(0, {SHOWN}) + \"…\" : {all})");
                let expression = format!("{} + {shown} + {}", text(&format!("{sentence}: ")), text(&code));
                (format!("{sentence}{code}"), Some(expression))
            }
        };
        Validation {
            expression: self.holds.clone(),
            message: Some(message),
            message_expression: expression,
            reason: Some("Forbidden".to_owned()),
        }
    }
}

/// The server writes no empty list.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

impl Policy {
    /// The policy itself.
    pub(super) fn object(&self) -> ValidatingAdmissionPolicy {
        let owned = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
        let rules = self.rules.iter().map(|rule| NamedRuleWithOperations {
            api_groups: owned(&[rule.group]),
            api_versions: owned(&[rule.version]),
            resources: owned(&[rule.resource]),
            operations: owned(rule.operations),
            scope: Some("*".to_owned()),
            ..NamedRuleWithOperations::default()
        });
        let condition = |(name, expression): &(&str, String)| MatchCondition {
            name: (*name).to_owned(),
            expression: expression.clone(),
        };
        let variable =
            |(name, expression): &(&str, String)| Variable { name: (*name).to_owned(), expression: expression.clone() };
        ValidatingAdmissionPolicy {
            metadata: self.metadata(),
            spec: Some(ValidatingAdmissionPolicySpec {
                failure_policy: Some("Fail".to_owned()),
                match_constraints: Some(MatchResources {
                    match_policy: Some("Equivalent".to_owned()),
                    resource_rules: Some(rules.collect()),
                    ..MatchResources::default()
                }),
                match_conditions: some(self.conditions.iter().map(condition).collect()),
                variables: some(self.variables.iter().map(variable).collect()),
                validations: some(self.checks.iter().map(Check::validation).collect()),
                ..ValidatingAdmissionPolicySpec::default()
            }),
            status: None,
        }
    }

    /// What puts it in force.
    pub(super) fn binding(&self, enforcement: Enforcement) -> ValidatingAdmissionPolicyBinding {
        let actions = match enforcement {
            Enforcement::Deny => ["Deny", "Audit"],
            Enforcement::Audit => ["Warn", "Audit"],
        };
        ValidatingAdmissionPolicyBinding {
            metadata: self.metadata(),
            spec: Some(ValidatingAdmissionPolicyBindingSpec {
                policy_name: Some(self.name.to_owned()),
                validation_actions: Some(actions.map(str::to_owned).to_vec()),
                ..ValidatingAdmissionPolicyBindingSpec::default()
            }),
        }
    }

    fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.to_owned()),
            labels: Some([(MARK.0.to_owned(), MARK.1.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }
}
