//! What has to be answered.

use std::collections::BTreeMap;
use std::fmt;

use ocm_policy_abi::{Decision, Edit, Obligation, Reason, Verdict};
use ocm_policy_rules::PolicyError;
use serde::{Deserialize, Serialize};

/// An answer in one word, with the one for no answer at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// It may happen.
    Allow,
    /// It must not happen.
    Deny,
    /// Not now.
    Hold,
    /// Nothing to say.
    NoOpinion,
    /// There is no decision, but an error.
    Error,
}

impl Word {
    /// The word as it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Hold => "hold",
            Self::NoOpinion => "no-opinion",
            Self::Error => "error",
        }
    }
}

impl From<Verdict> for Word {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self::Allow,
            Verdict::Deny => Self::Deny,
            Verdict::Hold => Self::Hold,
            Verdict::NoOpinion => Self::NoOpinion,
        }
    }
}

/// What has to be answered. What is not written is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// The answer in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Word>,
    /// Exactly these reasons, in any order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<WantedReason>>,
    /// Exactly these warnings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
    /// Exactly these edits, in any order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<Edit>>,
    /// Exactly these obligations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obligations: Option<Vec<Obligation>>,
    /// Exactly these entries for the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<BTreeMap<String, String>>,
    /// When to ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_again_seconds: Option<u32>,
    /// With the verdict `error`: its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Instead of a verdict: the settings are refused, with a message that holds this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A reason that has to be given: its code, or more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WantedReason {
    /// Any reason of this code.
    Code(String),
    /// A reason of this code whose message holds a text, and that is about a field.
    More {
        /// The code.
        code: String,
        /// A piece of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        field: Option<String>,
    },
}

impl WantedReason {
    /// The code.
    pub fn code(&self) -> &str {
        match self {
            Self::Code(code) | Self::More { code, .. } => code,
        }
    }

    fn fits(&self, reason: &Reason) -> bool {
        match self {
            Self::Code(code) => *code == reason.code,
            Self::More { code, message, field } => {
                *code == reason.code
                    && message.as_ref().is_none_or(|piece| reason.message.contains(piece))
                    && field.as_ref().is_none_or(|field| reason.field.as_ref() == Some(field))
            }
        }
    }
}

/// One way in which an answer is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(pub String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Expect {
    /// Whether its members fit each other; what does not can never come true.
    pub(crate) fn sound(&self) -> Result<(), String> {
        let parts = [
            ("reasons", self.reasons.is_some()),
            ("warnings", self.warnings.is_some()),
            ("edits", self.edits.is_some()),
            ("obligations", self.obligations.is_some()),
            ("audit", self.audit.is_some()),
            ("askAgainSeconds", self.ask_again_seconds.is_some()),
        ];
        let part = parts.iter().find(|(_, there)| *there).map(|(name, _)| *name);
        match (self.verdict, &self.refused) {
            (None, None) => Err("it expects nothing: write `verdict: deny`, for instance, or `refused`".to_owned()),
            (Some(_), Some(_)) => Err("`refused` stands instead of `verdict`: keep one of them".to_owned()),
            (None, Some(_)) if part.is_some() || self.error.is_some() => {
                Err("where the settings are refused there is no answer: leave out the other members".to_owned())
            }
            (Some(Word::Error), _) => part.map_or(Ok(()), |part| {
                Err(format!("with the verdict `error` there is no decision: write `error` instead of `{part}`"))
            }),
            _ if self.error.is_some() => Err("`error` goes with `verdict: error`".to_owned()),
            (Some(verdict), _) if verdict != Word::Hold && self.ask_again_seconds.is_some() => {
                Err("`askAgainSeconds` goes with `verdict: hold`".to_owned())
            }
            (Some(verdict), _)
                if verdict != Word::Allow && self.edits.as_ref().is_some_and(|edits| !edits.is_empty()) =>
            {
                Err("`edits` go with `verdict: allow`".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Compares with what came. Nothing: it is as expected.
    pub fn check(&self, got: &Result<Decision, PolicyError>) -> Vec<Mismatch> {
        if let Some(refused) = &self.refused {
            let word = word(got).word();
            return vec![Mismatch(format!("expected settings that are refused ({refused:?}), got {word}"))];
        }
        let mut wrong = Vec::new();
        let mut mismatch =
            |expected: String, got: String| wrong.push(Mismatch(format!("expected {expected}, got {got}")));
        let expected = self.verdict.unwrap_or(Word::NoOpinion);
        if expected != word(got) {
            mismatch(expected.word().to_owned(), tell(got));
        }
        let decision = match got {
            Ok(decision) => decision,
            Err(error) => {
                if let Some(code) = self.error.as_ref().filter(|code| *code != error.code()) {
                    mismatch(format!("the error {code}"), format!("{} ({error})", error.code()));
                }
                return wrong;
            }
        };
        if let Some(wanted) = &self.reasons
            && !all_fit(wanted, &decision.reasons)
        {
            mismatch(format!("the reasons {}", list(wanted.iter().map(wanted_reason))), tell(got));
        }
        if let Some(wanted) = self.ask_again_seconds
            && Some(wanted) != decision.ask_again_seconds
        {
            let got =
                decision.ask_again_seconds.map_or_else(|| "never".to_owned(), |seconds| format!("after {seconds} s"));
            mismatch(format!("to be asked again after {wanted} s"), got);
        }
        let sorted = |edits: &[Edit]| {
            let mut edits = edits.to_vec();
            edits.sort();
            edits
        };
        if let Some(wanted) = &self.edits
            && sorted(wanted) != sorted(&decision.edits)
        {
            mismatch(format!("the edits {}", json(wanted)), json(&decision.edits));
        }
        if let Some(wanted) = self.warnings.as_ref().filter(|wanted| **wanted != decision.warnings) {
            mismatch(format!("the warnings {}", json(wanted)), json(&decision.warnings));
        }
        if let Some(wanted) = self.obligations.as_ref().filter(|wanted| **wanted != decision.obligations) {
            mismatch(format!("the obligations {}", json(wanted)), json(&decision.obligations));
        }
        if let Some(wanted) = self.audit.as_ref().filter(|wanted| **wanted != decision.audit) {
            mismatch(format!("the audit entries {}", json(wanted)), json(&decision.audit));
        }
        wrong
    }

    /// Compares with settings that were refused, and why.
    pub fn check_refusal(&self, errors: &[String]) -> Vec<Mismatch> {
        let got = errors.join("; ");
        match &self.refused {
            Some(piece) if errors.iter().any(|error| error.contains(piece)) => Vec::new(),
            Some(piece) => vec![Mismatch(format!("expected settings refused with {piece:?}, got {got:?}"))],
            None => {
                let expected = self.verdict.map_or("an answer", Word::word);
                vec![Mismatch(format!("expected {expected}, got settings that are refused: {got}"))]
            }
        }
    }

    /// What would have been right for what came, in the same detail: parts that were written are written again, and
    /// so are edits, because they change objects.
    #[must_use]
    pub fn update(&self, got: &Result<Decision, PolicyError>) -> Self {
        if self.check(got).is_empty() {
            return self.clone();
        }
        let decision = match got {
            Ok(decision) => decision,
            Err(error) => {
                return Self { verdict: Some(Word::Error), error: Some(error.code().to_owned()), ..Self::default() };
            }
        };
        let known = self.reasons.as_deref().unwrap_or_default();
        let reason = |reason: &Reason| {
            known
                .iter()
                .find(|wanted| wanted.fits(reason))
                .cloned()
                .unwrap_or_else(|| WantedReason::Code(reason.code.clone()))
        };
        let reasons: Vec<_> = decision.reasons.iter().map(reason).collect();
        Self {
            verdict: Some(decision.verdict.into()),
            reasons: (self.reasons.is_some() || !reasons.is_empty()).then_some(reasons),
            warnings: self.warnings.as_ref().map(|_| decision.warnings.clone()),
            edits: (self.edits.is_some() || !decision.edits.is_empty()).then(|| decision.edits.clone()),
            obligations: self.obligations.as_ref().map(|_| decision.obligations.clone()),
            audit: self.audit.as_ref().map(|_| decision.audit.clone()),
            ask_again_seconds: decision.ask_again_seconds,
            error: None,
            refused: None,
        }
    }

    /// What would have been right for settings that were refused.
    #[must_use]
    pub fn update_refusal(&self, errors: &[String]) -> Self {
        if self.check_refusal(errors).is_empty() {
            return self.clone();
        }
        Self { refused: Some(errors.first().cloned().unwrap_or_default()), ..Self::default() }
    }
}

/// Whether each wanted reason can be given one of its own, and none is left.
fn all_fit(wanted: &[WantedReason], given: &[Reason]) -> bool {
    /// Gives a wanted reason one that is free, or one whose holder takes another: each is tried once, so that the time grows
    /// with the cube of how many there are and no faster.
    fn place(
        one: usize,
        wanted: &[WantedReason],
        given: &[Reason],
        holders: &mut [Option<usize>],
        tried: &mut [bool],
    ) -> bool {
        (0..given.len()).any(|at| {
            if tried[at] || !wanted[one].fits(&given[at]) {
                return false;
            }
            tried[at] = true;
            let free = holders[at].is_none_or(|holder| place(holder, wanted, given, holders, tried));
            if free {
                holders[at] = Some(one);
            }
            free
        })
    }
    let mut holders = vec![None; given.len()];
    wanted.len() == given.len()
        && (0..wanted.len()).all(|one| place(one, wanted, given, &mut holders, &mut vec![false; given.len()]))
}

fn word(got: &Result<Decision, PolicyError>) -> Word {
    got.as_ref().map_or(Word::Error, |decision| decision.verdict.into())
}

fn tell(got: &Result<Decision, PolicyError>) -> String {
    match got {
        Err(error) => format!("error ({}: {error})", error.code()),
        Ok(decision) if decision.reasons.is_empty() => decision.verdict.word().to_owned(),
        Ok(decision) => {
            let reason = |reason: &Reason| match &reason.field {
                Some(field) => format!("{} at {field}: {}", reason.code, reason.message),
                None => format!("{}: {}", reason.code, reason.message),
            };
            format!("{} ({})", decision.verdict.word(), list(decision.reasons.iter().map(reason)))
        }
    }
}

fn wanted_reason(reason: &WantedReason) -> String {
    match reason {
        WantedReason::Code(code) => code.clone(),
        more @ WantedReason::More { .. } => json(more),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join("; ") }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(json: &str) -> Expect {
        serde_json::from_str(json).unwrap()
    }

    fn got(json: &str) -> Result<Decision, PolicyError> {
        Ok(serde_json::from_str(json).unwrap())
    }

    fn wrong(wanted: &str, answer: &Result<Decision, PolicyError>) -> Vec<String> {
        expect(wanted).check(answer).into_iter().map(|mismatch| mismatch.0).collect()
    }

    #[test]
    fn answers_are_compared() {
        let denied = got(r#"{"verdict": "deny", "reasons": [{"code": "A", "message": "one two", "field": "f"}]}"#);
        for fits in [
            r#"{"verdict": "deny"}"#,
            r#"{"verdict": "deny", "reasons": ["A"], "warnings": []}"#,
            r#"{"verdict": "deny", "reasons": [{"code": "A", "message": "two", "field": "f"}]}"#,
        ] {
            assert_eq!(wrong(fits, &denied), Vec::<String>::new(), "{fits}");
        }
        assert_eq!(wrong(r#"{"verdict": "allow"}"#, &denied), ["expected allow, got deny (A at f: one two)"]);
        for bad in [
            r#"{"verdict": "deny", "reasons": []}"#,
            r#"{"verdict": "deny", "reasons": ["B"]}"#,
            r#"{"verdict": "deny", "reasons": ["A", "A"]}"#,
            r#"{"verdict": "deny", "reasons": [{"code": "A", "message": "three"}]}"#,
            r#"{"verdict": "deny", "reasons": [{"code": "A", "field": "g"}]}"#,
            r#"{"verdict": "deny", "warnings": ["w"]}"#,
            r#"{"verdict": "deny", "audit": {"k": "v"}}"#,
            r#"{"refused": "no"}"#,
        ] {
            assert_eq!(wrong(bad, &denied).len(), 1, "{bad}");
        }
    }

    #[test]
    fn reasons_of_one_code_are_told_apart() {
        let two =
            got(r#"{"verdict": "deny", "reasons": [{"code": "A", "message": "x"}, {"code": "A", "message": "y"}]}"#);
        assert!(wrong(r#"{"verdict": "deny", "reasons": ["A", {"code": "A", "message": "x"}]}"#, &two).is_empty());
        assert_eq!(wrong(r#"{"verdict": "deny", "reasons": ["A", {"code": "A", "message": "z"}]}"#, &two).len(), 1);
    }

    #[test]
    fn as_many_reasons_as_there_may_be_are_compared_at_once() {
        let given: Vec<Reason> =
            (0..32).map(|at| Reason { code: "A".into(), message: format!("m{at}"), field: None }).collect();
        let code = WantedReason::Code("A".to_owned());
        let about =
            |message: &str| WantedReason::More { code: "A".to_owned(), message: Some(message.to_owned()), field: None };
        let with = |last: WantedReason| {
            let mut wanted = vec![code.clone(); 31];
            wanted.push(last);
            wanted
        };
        assert!(all_fit(&with(code.clone()), &given));
        // What came first has to give up its own for what fits nothing else.
        assert!(all_fit(&with(about("m0")), &given));
        assert!(!all_fit(&with(about("nowhere")), &given));
        assert!(!all_fit(&with(WantedReason::Code("B".to_owned())), &given));
        assert!(!all_fit(&with(code.clone())[..31], &given));
    }

    #[test]
    fn edits_holds_and_errors_are_compared() {
        let edited = got(r#"{"verdict": "allow", "edits": [{"op": "set-label", "key": "k", "value": "v"}]}"#);
        assert!(wrong(r#"{"verdict": "allow"}"#, &edited).is_empty());
        assert_eq!(wrong(r#"{"verdict": "allow", "edits": []}"#, &edited).len(), 1);
        let held = got(r#"{"verdict": "hold", "askAgainSeconds": 5, "reasons": [{"code": "A", "message": "m"}]}"#);
        assert!(wrong(r#"{"verdict": "hold", "askAgainSeconds": 5}"#, &held).is_empty());
        assert_eq!(
            wrong(r#"{"verdict": "hold", "askAgainSeconds": 6}"#, &held),
            ["expected to be asked again after 6 s, got after 5 s"]
        );
        let error = Err(PolicyError::OutOfFuel);
        assert!(wrong(r#"{"verdict": "error", "error": "out-of-fuel"}"#, &error).is_empty());
        assert_eq!(wrong(r#"{"verdict": "error", "error": "trap"}"#, &error).len(), 1);
        assert_eq!(wrong(r#"{"verdict": "deny", "reasons": ["A"]}"#, &error).len(), 1);
    }

    #[test]
    fn refusals_are_compared() {
        let errors = ["prefixes: too many".to_owned()];
        assert!(expect(r#"{"refused": "too many"}"#).check_refusal(&errors).is_empty());
        assert_eq!(expect(r#"{"refused": "few"}"#).check_refusal(&errors).len(), 1);
        assert_eq!(expect(r#"{"verdict": "allow"}"#).check_refusal(&errors).len(), 1);
    }

    #[test]
    fn what_cannot_come_true_is_unsound() {
        for bad in [
            "{}",
            r#"{"verdict": "allow", "refused": "x"}"#,
            r#"{"refused": "x", "reasons": []}"#,
            r#"{"verdict": "deny", "error": "trap"}"#,
            r#"{"verdict": "error", "reasons": ["A"]}"#,
            r#"{"verdict": "deny", "askAgainSeconds": 5}"#,
            r#"{"verdict": "deny", "edits": [{"op": "remove-label", "key": "k"}]}"#,
        ] {
            assert!(expect(bad).sound().is_err(), "{bad}");
        }
        assert_eq!(expect(r#"{"verdict": "error", "error": "trap"}"#).sound(), Ok(()));
    }

    #[test]
    fn an_update_fits_what_came_and_keeps_detail() {
        let denied =
            got(r#"{"verdict": "deny", "reasons": [{"code": "A", "message": "m"}, {"code": "B", "message": "n"}]}"#);
        let old = expect(r#"{"verdict": "deny", "reasons": [{"code": "A", "message": "m"}], "warnings": ["w"]}"#);
        let new = old.update(&denied);
        assert!(new.check(&denied).is_empty());
        assert_eq!(json(&new), r#"{"verdict":"deny","reasons":[{"code":"A","message":"m"},"B"],"warnings":[]}"#);
        assert_eq!(new.update(&denied), new);
        let error = Err(PolicyError::TimedOut);
        assert!(old.update(&error).check(&error).is_empty());
        let errors = ["no".to_owned()];
        assert!(old.update_refusal(&errors).check_refusal(&errors).is_empty());
    }
}
