//! Rules in the Common Expression Language (CEL), as Kubernetes has them in its own admission policies.

mod known;
mod names;

use std::sync::Arc;

use cel::extractors::This;
use cel::{Context, Env, ExecutionError, Program, Value};
use ocm_policy_sdk::rules::Code;
use ocm_policy_sdk::{Answer, ManifestBuilder, Operation, Policy, Request, allow, deny, hub, manifest, no_opinion};
use regex_lite::Regex;
use serde::Deserialize;

use crate::names::Members;

/// Bytes of an expression at most.
const LONGEST: usize = 4096;
/// Rules at most.
const MOST: usize = 64;
/// What expressions know of the request.
const REQUEST: &str = "request";

/// The settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    rules: Vec<Rule>,
    /// Whether a rule that looks at something of which a part was left out holds whatever is asked, and not only whoever creates,
    /// inflates or lets in a cluster, or may hide what they change.
    #[serde(default)]
    always_hold: bool,
}

/// One rule as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    name: String,
    expression: String,
    /// What whoever asked is told where it does not hold; empty: that it does not.
    #[serde(default)]
    message: String,
    #[serde(default = "of_clusters")]
    operations: Vec<Operation>,
}

/// Where a request is about a cluster that is to come in.
fn of_clusters() -> Vec<Operation> {
    vec![Operation::Create, Operation::Accept, Operation::Join]
}

/// The policy with its rules.
pub struct Cel {
    rules: Vec<Compiled>,
    /// As [`Settings::always_hold`].
    always_hold: bool,
    /// What the rules look at.
    members: Members,
    /// The functions of the language. Making them takes longer than any decision, so it is done once, with the settings.
    language: Arc<Env>,
}

struct Compiled {
    rule: Rule,
    program: Program,
    /// What it looks at.
    members: Members,
}

impl Compiled {
    /// Why it cannot be told whether it holds: it looks at a member of the cluster, or of what it was before, of which something was
    /// left out. Where that does not count, as [`hub::left_out`] has it, only if it always holds.
    fn left_out(&self, request: &Request<'_>, always: bool) -> Option<Answer> {
        let versions = [("cluster", request.cluster()), ("previous", request.previous())];
        let cut = versions.into_iter().flat_map(|(name, version)| {
            let cut = version.into_iter().flat_map(|cluster| &cluster.truncated);
            cut.filter(move |member| self.members.has_part(name, member))
        });
        let missed = |member| hub::left_out(request, member, None).or_else(|| always.then(|| hub::not_shown(member)));
        cut.map(|member| &**member).find_map(missed)
    }
}

impl Policy for Cel {
    type Settings = Settings;

    fn manifest() -> ManifestBuilder {
        manifest("cel", env!("CARGO_PKG_VERSION"), "Lets in what fulfils rules in the Common Expression Language")
            .judges([
                Operation::Create,
                Operation::Update,
                Operation::Request,
                Operation::Approve,
                Operation::Join,
                Operation::Accept,
            ])
            .gives("RuleViolated", "A rule does not hold")
            .gives("RuleFailed", "Whether a rule holds cannot be told")
            .gives_codes([Code::EvidenceIncomplete])
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Settings) -> Result<Self, Vec<String>> {
        let mut wrong = Vec::new();
        let Settings { rules, always_hold } = settings;
        if rules.is_empty() || rules.len() > MOST {
            wrong.push(format!("rules are 1 to {MOST}, not {}", rules.len()));
        }
        let language = Arc::new(Env::stdlib());
        let mut compiled: Vec<Compiled> = Vec::new();
        let mut members = Members::default();
        for rule in rules.into_iter().take(MOST) {
            let name = &rule.name;
            if name.is_empty() || compiled.iter().any(|other| other.rule.name == *name) {
                wrong.push(format!("{name:?} names no rule, or two"));
            }
            if rule.operations.is_empty() {
                wrong.push(format!("the rule {name} has no operations, so it would never be asked"));
            }
            if rule.expression.len() > LONGEST {
                wrong.push(format!("the expression of the rule {name} is longer than {LONGEST} bytes"));
                continue;
            }
            match language.compile(&rule.expression) {
                Ok(program) => {
                    wrong.extend(names::unknown(program.expression(), &[REQUEST]).map(|unknown| {
                        format!("the expression of the rule {name} names {unknown:?}: nothing but {REQUEST} is known")
                    }));
                    members.add(program.expression(), REQUEST);
                    let mut own = Members::default();
                    own.add(program.expression(), REQUEST);
                    compiled.push(Compiled { rule, program, members: own });
                }
                Err(error) => wrong.push(format!("the expression of the rule {name} cannot be read: {error}")),
            }
        }
        if wrong.is_empty() { Ok(Self { rules: compiled, always_hold, members, language }) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        let mut rules = self.rules.iter().filter(|rule| rule.rule.operations.contains(&request.operation())).peekable();
        if rules.peek().is_none() {
            return no_opinion();
        }
        let context = match self.context(request) {
            Ok(context) => context,
            Err(why) => return deny("RuleFailed", format!("the request cannot be shown to rules: {why}")),
        };
        let mut unknown = None;
        let wrong = rules.filter_map(|compiled| {
            let Compiled { rule, program, members: _ } = compiled;
            let Rule { name, message, .. } = rule;
            if let Some(missed) = compiled.left_out(request, self.always_hold) {
                unknown.get_or_insert(missed);
                return None;
            }
            match program.execute(&context) {
                Ok(Value::Bool(true)) => None,
                Ok(Value::Bool(false)) if message.is_empty() => {
                    Some(("RuleViolated", format!("the rule {name} does not hold")))
                }
                Ok(Value::Bool(false)) => Some(("RuleViolated", message.clone())),
                // What it is instead may be long, and of whoever asked.
                Ok(_) => Some(("RuleFailed", format!("the rule {name} is neither true nor false"))),
                Err(_) => Some(("RuleFailed", format!("whether the rule {name} holds cannot be told"))),
            }
        });
        let mut wrong = wrong.take(16);
        let denied = wrong.next().map(|(code, message)| {
            wrong.fold(deny(code, message), |answer, (code, message)| answer.because(code, message))
        });
        // What is seen to be wrong stays wrong.
        denied.or(unknown).unwrap_or_else(allow)
    }
}

impl Cel {
    /// What expressions know: the request, and the functions of the language.
    fn context(&self, request: &Request<'_>) -> Result<Context<'static, 'static>, String> {
        let mut context = Context::with_env(self.language.clone());
        context.add_function("matches", matches).map_err(|error| error.to_string())?;
        context.add_variable_from_value(REQUEST, known::of(request, &self.members).map_err(|error| error.to_string())?);
        Ok(context)
    }
}

/// `matches` of the language: whether a part of a text is as a regular expression says.
fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    let pattern = Regex::new(&pattern).map_err(|error| ExecutionError::function_error("matches", error))?;
    Ok(pattern.is_match(&text))
}

ocm_policy_sdk::export!(Cel);
