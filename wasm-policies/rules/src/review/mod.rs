//! Questions to policies: from admission reviews, from plain objects, and back into the form of Kubernetes.

mod cluster;
mod csr;
mod request;
mod requester;
mod response;
#[cfg(test)]
mod tests;
mod value;

pub use cluster::{cluster, versions};
pub use csr::{asked_by, cluster_of_csr};
pub(crate) use csr::{certificate_request, clusters_of_csr};
pub use request::{
    Asking, admission_request, agents_cluster, asking_user, cluster_of, from_admission, is_registration, join, join_of,
    of_cluster, of_csr, registers, request_of,
};
pub(crate) use request::{CLUSTER_GROUP, CLUSTERS, CSR_GROUP, CSRS, operations};
pub(crate) use requester::is_grpc_server;
pub use response::{
    is_refused, passage, refusal, refusal_for_programs, response, sentence, takes_away, unchanged, unjudged,
};
pub use value::Unusable;
