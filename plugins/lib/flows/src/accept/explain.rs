//! Why clusters would be accepted, or what is in the way: the decision that is carried out otherwise, with all that it stands
//! on, and what the policies of the hub say.

use ocm_core::Failure;
use ocm_core::accept::{Help, Judged, Options, Refusal, Way, way};
use ocm_core::csr::Request;
use ocm_core::explanation::{Explanation, explain};
use ocm_kube::Cluster;

use super::candidate::Candidate;
use super::rows::{Outcome, Row, row};
use super::survey::{decided, names};
use crate::explanation::Engine;
use crate::registry::{Registry, Scope};

/// What would become of a cluster, and why.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What would be done, as a dry run tells it.
    pub row: Row,
    /// What options of a person override of that, in the order in which the rules come to it.
    pub overridden: Vec<Refusal>,
    /// What was asked with.
    pub typed: Options,
    /// The options that override it.
    pub options: Options,
    /// What would be done with them.
    pub last: Row,
    /// The requests of the cluster, each with what it is to what would be done with them, and the rules that it breaks.
    pub requests: Vec<(Request, Judged)>,
    /// What the policies of the hub say; none: it has no policy engine, or knows nothing of the name.
    pub policies: Option<Explanation>,
    /// Why nobody looked at what the policy controller has noted of the name, in a sentence, where it would have counted.
    pub unread: Option<String>,
}

/// Something that keeps a cluster from being accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Obstacle {
    /// How the cluster comes out because of it.
    pub outcome: Outcome,
    /// The rule, `R1` to `M8`; none: no rule is broken.
    pub rule: Option<&'static str>,
    /// What was found, for people.
    pub detail: String,
    /// What would help.
    pub help: Option<Help>,
}

impl Explained {
    /// Everything that keeps the cluster from being accepted by the rules, in their order. What comes after one that nothing
    /// but the cluster itself changes is not known.
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let overridden = self.overridden.iter().map(|Refusal { code, detail, help, .. }| Obstacle {
            outcome: Outcome::Refused(*code),
            rule: Some(code.rule()),
            detail: detail.clone(),
            help: help.clone(),
        });
        let last = (!lets_in(&self.last.outcome)).then(|| Obstacle {
            outcome: self.last.outcome.clone(),
            rule: match self.last.outcome {
                Outcome::Refused(code) => Some(code.rule()),
                _ => None,
            },
            detail: self.last.detail.clone(),
            help: self.last.help.clone(),
        });
        overridden.chain(last).collect()
    }

    /// Because of what the policies refuse what would be done, if anything would.
    pub fn refused_by_policies(&self) -> Option<String> {
        let settled = self.last.outcome == Outcome::AlreadyAccepted;
        self.policies.as_ref().filter(|_| !settled)?.refused_by_policies()
    }

    /// Whether the cluster would be accepted, or is.
    pub fn is_let_in(&self) -> bool {
        lets_in(&self.row.outcome) && self.refused_by_policies().is_none()
    }
}

fn lets_in(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Accepted | Outcome::Approved | Outcome::AlreadyAccepted)
}

/// Looks at every cluster of the scope and decides as [`survey`](super::survey) does, and tells why.
///
/// # Errors
/// When the hub cannot be read. What its policies say is told as far as the user may read it.
pub async fn explained(hub: &Cluster, scope: &Scope, options: &Options) -> Result<Vec<Explained>, Failure> {
    let mut registry = Registry::read(hub, scope).await?;
    let names = names(&registry, scope);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut engine = Engine::of(hub, &names).await;
    Ok(names.into_iter().map(|name| one(&mut registry, engine.as_mut(), name, options)).collect())
}

fn one(registry: &mut Registry, engine: Option<&mut Engine>, name: String, options: &Options) -> Explained {
    let of = name.clone();
    let (candidate, way) = decided(registry, name, options, |found| way(&of, found, options));
    told(candidate, way, engine)
}

fn told(mut candidate: Candidate, way: Way, engine: Option<&mut Engine>) -> Explained {
    let Way { overridden, options, decision, judged } = way;
    let policies = engine.and_then(|engine| {
        let requests = std::mem::take(&mut candidate.requests);
        let facts = engine.facts(&candidate.name, Ok(candidate.cluster.take()), Ok(requests));
        let is_known = matches!(facts.cluster, Ok(Some(_))) || matches!(facts.registration, Ok(Some(_)));
        let explained = is_known.then(|| explain(&facts));
        (candidate.cluster, candidate.requests) = engine.back(facts);
        explained
    });
    let unread = candidate.unread.clone().filter(|_| !candidate.options.reuse_name);
    let first = row(&candidate);
    let typed = candidate.options.clone();
    let candidate = Candidate { options: options.clone(), decision, ..candidate };
    Explained {
        row: first,
        overridden,
        typed,
        options,
        last: row(&candidate),
        requests: candidate.requests.into_iter().zip(judged).collect(),
        policies,
        unread,
    }
}
