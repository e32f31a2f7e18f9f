//! What became of wanted policies and of their candidates.

use ocm_policy_abi::Operation;

use super::wanted::Wanted;

/// What became of a wanted policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The UID and the generation of the HubPolicy that this is the state of.
    pub observed: (Option<String>, i64),
    /// SHA-256 of the module in force, lower-case hex; none: nothing is in force but a refusal.
    pub sha256: Option<String>,
    /// The kind of the module in force.
    pub kind: Option<&'static str>,
    /// What the module in force judges, if it was put in force by this HubPolicy and no former one of its name.
    pub operations: Vec<Operation>,
    /// What the administrator does not have it asked about; nothing while the newest version is not in force.
    pub left_out: Vec<Operation>,
    /// Why the newest version is not in force.
    pub failed: Option<String>,
    /// The same without what may quote settings.
    pub in_short: Option<String>,
    /// What that lies with.
    pub with: With,
    /// The evidence that it asks for and that cannot be told, each with the reason: it answers with errors meanwhile, or no
    /// approval counts.
    pub unread: Vec<String>,
    /// Whether the version that is wanted has test cases.
    pub has_tests: bool,
    /// What became of the candidate; none: none is wanted.
    pub candidate: Option<CandidateState>,
}

/// What it lies with that a version is not in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum With {
    /// The module or its settings.
    #[default]
    Policy,
    /// It fails its test cases.
    Tests,
    /// It stops to judge what was judged before.
    Operations,
    /// The module was not fetched yet.
    Fetching,
    /// The module cannot be had: a stable word for the reason.
    Source(&'static str),
}

/// What became of a wanted candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidateState {
    /// SHA-256 of its module, lower-case hex; none: it is not tried.
    pub sha256: Option<String>,
    /// For how many of a hundred clusters it decides.
    pub share: u8,
    /// Why it is not tried.
    pub failed: Option<String>,
    /// What that lies with.
    pub with: With,
    /// Of how many clusters it is known what it says.
    pub compared: u64,
    /// Of how many of them it says something else than the policy in force.
    pub differed: u64,
    /// The last of them, and what both say.
    pub last_difference: Option<String>,
}

impl State {
    /// Why the newest version is not in force, for whoever may not read the policies. What a policy says of a test case may quote
    /// settings, too.
    pub fn failed_in_short(&self) -> Option<&str> {
        let in_short = self.in_short.as_deref()?;
        Some(if self.with == With::Tests { "it fails a test case" } else { in_short })
    }

    pub(super) fn of(wanted: &Wanted) -> Self {
        let observed = (wanted.uid.clone(), wanted.generation);
        let has_tests = wanted.tests.is_some();
        Self {
            observed,
            sha256: None,
            kind: None,
            operations: Vec::new(),
            left_out: Vec::new(),
            failed: None,
            in_short: None,
            with: With::Policy,
            unread: Vec::new(),
            has_tests,
            candidate: None,
        }
    }
}
