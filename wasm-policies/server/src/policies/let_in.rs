//! What lets a cluster in without the policy controller: the hub's own approvals and acceptances, and whoever creates a cluster
//! as accepted. Policies that judge joins, or acceptances, are asked about it in these words, too.

use ocm_api::names::identity::{GRPC_SERVER_USER, REGISTRATION_CONTROLLER_USER};
use ocm_api::names::namespaces;
use ocm_core::policy_engine;
use ocm_policy_abi::{Csr, Operation, Request};
use ocm_policy_engine::{Deadline, Final, PolicyError};
use ocm_policy_rules::Combined;
use ocm_policy_rules::review::{self, Asking};

use super::Policies;
use super::changes::changes_more;

/// How many certificate requests of one cluster are asked about. Whoever sends more keeps the hub from letting it in by itself.
const MOST: usize = 8;

/// Why the hub must not let a cluster in.
pub enum Objection {
    /// Policies refuse it.
    Policies(Box<Final>),
    /// It cannot be judged.
    Unknown(String),
}

impl Policies {
    /// Whether a request is one by which the hub lets a cluster in by itself, and policies judge joins.
    pub fn joins_by_the_hub(&self, request: &Request<'_>) -> bool {
        let lets_in = match request.operation {
            Operation::Accept => true,
            Operation::Approve => request
                .csr
                .as_ref()
                .is_some_and(|csr| csr.adds_condition.as_deref() == Some("Approved") && review::is_registration(csr)),
            _ => false,
        };
        lets_in && is_the_hubs(&request.requester.username) && self.judge_joins()
    }

    /// Asks about what [`Self::joins_by_the_hub`] says as about a join, once with each certificate request that the cluster may
    /// join with: whichever it is, the hub would let it in. One that has not asked yet is judged when the hub approves its request.
    /// The answer to all of them, with what any of them tells; none: nobody has asked yet.
    ///
    /// # Errors
    /// Why it must not.
    pub fn join_by_the_hub(
        &self,
        request: &Request<'static>,
        deadline: &Deadline,
    ) -> Result<Option<Combined>, Objection> {
        let questions = self.questions(request).map_err(|error| Objection::Unknown(error.to_string()))?;
        let mut passed: Option<Combined> = None;
        for question in questions {
            let mut made = self.evaluate(question, deadline);
            if review::is_refused(made.request(), &made.answer) {
                passed.iter().for_each(|before| made.answer.tell_also(before));
                return Err(Objection::Policies(Box::new(made)));
            }
            passed.get_or_insert_with(|| made.answer.clone()).tell_also(&made.answer);
        }
        Ok(passed)
    }

    fn questions(&self, request: &Request<'static>) -> Result<Vec<Request<'static>>, PolicyError> {
        let unknown = |why: &str| PolicyError::Evidence(why.to_owned());
        let name = review::cluster_of(request).ok_or_else(|| unknown("it names no cluster"))?;
        if let (Operation::Approve, Some(csr)) = (request.operation, &request.csr) {
            // The certificate is for whatever the hub reads in it.
            let name =
                review::agents_cluster(csr).ok_or_else(|| unknown("its request does not clearly name one cluster"))?;
            let object = self.knowledge.cluster(name).ok_or_else(|| unknown("the hub has no such cluster yet"))?;
            let about = review::of_cluster(Operation::Accept, &object, csr.requester.clone(), &Asking::default())
                .map_err(|error| PolicyError::Evidence(error.to_string()))?;
            let cluster = about.cluster.map(ocm_policy_abi::Cluster::into_owned);
            let about = Request { cluster, object: Some(object.clone()), previous_object: None, ..request.clone() };
            return Ok(vec![review::join_of(&about, csr.clone())]);
        }
        let requests: Vec<Csr<'static>> = self.knowledge.registrations_of(name)?;
        match requests.len() {
            0..=MOST => Ok(requests.into_iter().map(|csr| review::join_of(request, csr)).collect()),
            many => Err(unknown(&format!("the cluster has {many} certificate requests"))),
        }
    }
}

/// Whether this is the hub's registration controller, in the namespace of the hub, which is another one for each hosted hub.
fn is_the_hubs(user: &str) -> bool {
    fn name(user: &str) -> Option<&str> {
        Some(user.strip_prefix("system:serviceaccount:")?.split_once(':')?.1)
    }
    name(user).is_some_and(|found| Some(found) == name(REGISTRATION_CONTROLLER_USER))
}

/// Whether a request creates a cluster as accepted.
pub(crate) fn is_accepted_at_once(request: &Request<'_>) -> bool {
    request.operation == Operation::Create && request.cluster.as_ref().is_some_and(|cluster| cluster.accepted)
}

/// What whoever makes a request does besides, as a question of its own: who creates a cluster as accepted accepts it, and who changes
/// it in the write that accepts it changes it. Of the latter, what the hub's controllers write is not asked about, as in any other
/// write of theirs, and what the policy controller writes is what policies want.
pub(crate) fn beside(request: &Request<'static>) -> Option<Request<'static>> {
    if is_accepted_at_once(request) {
        // The hub has no such cluster yet.
        let mut asked = Request { operation: Operation::Accept, ..request.clone() };
        if let Some(cluster) = &mut asked.cluster {
            cluster.uid = None;
        }
        return Some(asked);
    }
    let user = &*request.requester.username;
    let changes = request.operation == Operation::Accept && changes_more(request) && !is_of_controllers(user);
    changes.then(|| Request { operation: Operation::Update, ..request.clone() })
}

/// The controllers of the hub and of Kubernetes about whose updates the webhook is not asked, and the policy controller. The hub's
/// gRPC server writes for agents.
fn is_of_controllers(user: &str) -> bool {
    let of = |namespace: &str| user.strip_prefix("system:serviceaccount:")?.strip_prefix(namespace)?.strip_prefix(':');
    let is_the_policys = of(policy_engine::NAMESPACE) == Some(policy_engine::CONTROLLER);
    let is_the_hubs = [namespaces::HUB, "kube-system"].into_iter().any(|one| of(one).is_some());
    is_the_policys || (is_the_hubs && user != GRPC_SERVER_USER)
}
