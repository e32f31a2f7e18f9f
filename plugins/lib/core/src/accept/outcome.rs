//! How a decision comes out.

use jiff::Timestamp;

use crate::csr::Code;

/// What is to be done for one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Approve this request, if any, and then accept the cluster, if it is not yet.
    Act {
        /// Index of the request to approve; none if an approved one is there already.
        approve: Option<usize>,
        /// Index of the request that the decision is based on: the one to approve, or the approved one. None if the
        /// cluster joined before it was denied, so that its agent holds a certificate already, or if the user accepts
        /// it without a request.
        stands_on: Option<usize>,
        /// Whether `hubAcceptsClient` is still to be set.
        accept: bool,
    },
    /// It is accepted already and nothing of its own waits for approval.
    Settled {
        /// Indexes of pending requests for its name that are not its own, or that break a rule.
        stray: Vec<usize>,
    },
    /// The agent has not asked yet, or what it asked for is gone.
    NoRequest,
    /// It is not accepted.
    Refused(Refusal),
}

/// Why a cluster is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stable word.
    pub code: Code,
    /// What was found.
    pub detail: String,
    /// What would help.
    pub help: Option<Help>,
    /// Whether it is about a request that somebody has approved or denied: no agent asks anew because of it.
    pub is_decided: bool,
}

/// What would help. How to type it is the business of the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Help {
    /// To name the key that is meant: these are there.
    NameKey(Vec<String>),
    /// To give the name to a key that asks.
    Replace {
        /// The keys that ask.
        asks: Vec<String>,
        /// The keys that were approved for the name, as far as the hub still knows.
        holds: Vec<String>,
    },
    /// To use the name again; until then certificates of the former holder may be valid.
    ReuseName(Option<Timestamp>),
    /// To accept the cluster without a request.
    WithoutRequest,
    /// To wait for the request with the key that is meant.
    Wait,
    /// To accept what the cluster was registered with.
    AsRegistered,
    /// To allow clusters of this set.
    ClusterSet(String),
    /// To let this user register clusters.
    Requester(String),
    /// To allow longer lifetimes.
    Lifetime,
    /// To look at a request.
    Request(String),
    /// To delete a request, so that the agent asks again.
    AskAgain(String),
    /// To name the cluster.
    ByName(String),
    /// To join the cluster under another name.
    OtherName,
    /// To look at the agent, or to wait for it.
    Agent,
    /// To look at it again and repeat the command.
    Again,
}

impl Refusal {
    pub(super) fn new(code: Code, detail: impl Into<String>, help: impl Into<Option<Help>>) -> Self {
        Self { code, detail: detail.into(), help: help.into(), is_decided: false }
    }
}

impl From<Refusal> for Decision {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
