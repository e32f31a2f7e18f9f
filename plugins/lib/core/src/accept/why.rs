//! Why a decision is what it is: everything that is in a cluster's way, and what each of its requests is to the decision.

use super::case::{Chosen, Found, Options, settings};
use super::decide::decide;
use super::outcome::{Decision, Help, Refusal};
use crate::csr::{Request, Violation};

/// What is in a cluster's way, one after the other, as far as an option of a person overrides it.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// What an option overrides, in the order in which the decision comes to it.
    pub overridden: Vec<Refusal>,
    /// The options that override it.
    pub options: Options,
    /// What is decided with them.
    pub decision: Decision,
    /// What each request that was found is to that decision, in the order in which they were found.
    pub judged: Vec<Judged>,
}

/// Decides for the cluster `name` as [`decide`] does, and anew past each refusal that an option overrides: who answers the
/// first one shall not have to come back for the next.
pub fn way(name: &str, found: &Found<'_>, options: &Options) -> Way {
    let decision = decide(name, found, options);
    let mut way = Way { overridden: Vec::new(), options: options.clone(), decision, judged: Vec::new() };
    while let Decision::Refused(refusal) = &way.decision {
        let Some(options) = overriding(refusal, &way.options).filter(|_| !way.overridden.contains(refusal)) else {
            break;
        };
        way.overridden.push(refusal.clone());
        way.decision = decide(name, found, &options);
        way.options = options;
    }
    way.judged = judged(name, found, &way.options, &way.decision);
    way
}

/// The options with which a refusal that a person overrides is decided anew; none for those that nobody may override by
/// a yes alone.
pub fn overriding(refusal: &Refusal, options: &Options) -> Option<Options> {
    let mut options = options.clone();
    match refusal.help.as_ref()? {
        Help::ReuseName(_) => options.reuse_name = true,
        Help::AsRegistered => options.as_registered = true,
        Help::ClusterSet(set) => options.cluster_sets.push(set.clone()),
        Help::ByName(_) => options.chosen = Chosen::ByName,
        _ => return None,
    }
    Some(options)
}

/// What a request is to the decision about a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It is to be approved.
    Approve,
    /// It was approved before, and the cluster is accepted because of it.
    StandsOn,
    /// It asks for the name of an agent of the cluster, and nothing follows from it.
    Asks,
    /// Others decide about it: an add-on asks, or an agent that has its name for its certificate again.
    Others,
}

/// A request as it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What it is to the decision.
    pub part: Part,
    /// Every rule that it breaks. What others decide about is not judged.
    pub violations: Vec<Violation>,
}

/// What each request that was found is to a decision, in the order in which they were found.
pub fn judged(name: &str, found: &Found<'_>, options: &Options, decision: &Decision) -> Vec<Judged> {
    let settings = settings(found, options);
    let (approve, stands_on) = match decision {
        Decision::Act { approve, stands_on, .. } => (*approve, *stands_on),
        _ => (None, None),
    };
    let one = |(index, request): (usize, &&Request)| {
        if !request.facts().is_first_of(name) {
            return Judged { part: Part::Others, violations: Vec::new() };
        }
        let part = match Some(index) {
            index if index == approve => Part::Approve,
            index if index == stands_on => Part::StandsOn,
            _ => Part::Asks,
        };
        Judged { part, violations: request.violations(name, &settings) }
    };
    found.requests.iter().enumerate().map(one).collect()
}
