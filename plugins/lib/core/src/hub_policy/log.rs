//! Lines of the decision log, as the webhook and the controller write them.

use serde_json::Value;

/// One decision that was logged.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// When it was made, in RFC 3339.
    pub time: String,
    /// What was decided about, such as `create`, `approve` or `join`.
    pub operation: String,
    /// The managed cluster that it is about.
    pub cluster: Option<String>,
    /// What was decided: `allow`, `hold`, `deny`, `error` or `no-opinion`. None: what was decided could not be done.
    pub verdict: Option<String>,
    /// Who asked.
    pub requester: Option<String>,
    /// What each policy said.
    pub said: Vec<Said>,
    /// What whoever asked was told, or what a join waits for.
    pub message: Option<String>,
    /// The line as it stands in the log.
    pub line: Value,
}

/// What one policy said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Name of the HubPolicy.
    pub policy: String,
    /// Its verdict, in the words of [`Logged::verdict`].
    pub verdict: String,
    /// The codes of its reasons, or of its error.
    pub codes: Vec<String>,
}

impl Logged {
    /// Reads a line. None: it is no decision; containers write other lines, too.
    pub fn read(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let said = |one: &Value| {
            // The webhook writes what the engine says, the controller what a Registration holds.
            let policy = text(&one["name"]).or_else(|| text(&one["policy"]))?;
            let codes = one["reasons"].as_array().or_else(|| one["codes"].as_array());
            let codes = codes.into_iter().flatten().filter_map(text).collect();
            Some(Said { policy, verdict: word(one["verdict"].as_str()?), codes })
        };
        let message = text(&line["message"]).or_else(|| text(&line["waitingFor"]));
        Some(Self {
            time: text(&line["time"])?,
            operation: text(&line["operation"])?,
            cluster: text(&line["cluster"]),
            verdict: line["verdict"].as_str().map(word),
            requester: text(&line["requester"]).or_else(|| text(&line["requester"]["username"])),
            said: line["policies"].as_array().into_iter().flatten().filter_map(said).collect(),
            message,
            line,
        })
    }
}

/// A verdict in lower case, words apart: Registrations hold `NoOpinion`, the engine says `no-opinion`.
fn word(verdict: &str) -> String {
    let mut word = String::new();
    for (index, letter) in verdict.char_indices() {
        if letter.is_ascii_uppercase() && index > 0 {
            word.push('-');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

/// Which decisions are wanted. A part that is empty takes all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Those that one of these policies was asked about.
    pub policies: Vec<String>,
    /// Those about one of these managed clusters.
    pub clusters: Vec<String>,
    /// Those with one of these verdicts: of the policies that are named, or of all of them together.
    pub verdicts: Vec<String>,
}

impl Selection {
    /// Whether it is one of them.
    pub fn takes(&self, logged: &Logged) -> bool {
        let is_about = self.clusters.is_empty() || logged.cluster.as_ref().is_some_and(|it| self.clusters.contains(it));
        let is_verdict = |verdict: &String| self.verdicts.is_empty() || self.verdicts.contains(verdict);
        let is_said = if self.policies.is_empty() {
            logged.verdict.as_ref().map_or(self.verdicts.is_empty(), is_verdict)
        } else {
            logged.said.iter().any(|said| self.policies.contains(&said.policy) && is_verdict(&said.verdict))
        };
        is_about && is_said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEBHOOK: &str = r#"{"time":"2026-01-02T03:04:05Z","uid":"u","stage":"validating","operation":"create","cluster":"c1",
        "requester":"alice","dryRun":false,"verdict":"deny","refused":true,"message":"denied by policy names: no",
        "policies":[{"name":"names","version":"1","mode":"Enforce","verdict":"deny","reasons":["Name"],"error":null,"fuel":1,"micros":2},
                    {"name":"quota","version":"1","mode":"Enforce","verdict":"no-opinion","reasons":[],"error":null,"fuel":1,"micros":2}]}"#;
    const CONTROLLER: &str = r#"{"time":"2026-01-02T03:04:06Z","operation":"join","cluster":"c2","clusterUid":"u","outcome":"Held",
        "verdict":"NoOpinion","waitingFor":"a policy","requester":{"username":"bob"},"request":null,"approvedBy":[],
        "policies":[{"policy":"names","verdict":"NoOpinion","codes":[]}]}"#;
    const REFUSED: &str =
        r#"{"time":"2026-01-02T03:04:07Z","operation":"join","cluster":"c2","outcome":"Refused","message":"why"}"#;

    fn read(line: &str) -> Logged {
        Logged::read(line).unwrap()
    }

    #[test]
    fn lines_of_both_are_read_in_the_same_words() {
        let webhook = read(WEBHOOK);
        assert_eq!((webhook.verdict.as_deref(), webhook.requester.as_deref()), (Some("deny"), Some("alice")));
        assert_eq!(
            (webhook.said[0].codes.as_slice(), webhook.said[1].verdict.as_str()),
            (&["Name".to_owned()][..], "no-opinion")
        );
        let controller = read(CONTROLLER);
        assert_eq!((controller.verdict.as_deref(), controller.requester.as_deref()), (Some("no-opinion"), Some("bob")));
        assert_eq!((controller.message.as_deref(), controller.said[0].policy.as_str()), (Some("a policy"), "names"));
        assert_eq!(read(REFUSED).verdict, None);
        for other in ["", "warning: slow", "[]", "3", r#"{"time":"t"}"#] {
            assert_eq!(Logged::read(other), None, "{other}");
        }
    }

    #[test]
    fn a_selection_takes_what_it_names() {
        let lines = [WEBHOOK, CONTROLLER, REFUSED].map(read);
        let taken = |policies: &[&str], clusters: &[&str], verdicts: &[&str]| {
            let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            let selection = Selection { policies: list(policies), clusters: list(clusters), verdicts: list(verdicts) };
            lines.iter().map(|logged| selection.takes(logged)).collect::<Vec<_>>()
        };
        assert_eq!(taken(&[], &[], &[]), [true, true, true]);
        assert_eq!(taken(&["names"], &[], &[]), [true, true, false]);
        assert_eq!(taken(&[], &["c2"], &[]), [false, true, true]);
        assert_eq!(taken(&[], &[], &["deny"]), [true, false, false]);
        // The verdict of the policy that is named, and not that of all together.
        assert_eq!(taken(&["quota"], &[], &["deny"]), [false, false, false]);
        assert_eq!(taken(&["quota"], &[], &["no-opinion"]), [true, false, false]);
    }
}
