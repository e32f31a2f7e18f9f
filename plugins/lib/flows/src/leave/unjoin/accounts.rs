//! Agents that have rights on a cluster, and no account any more.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use ocm_core::leave::klusterlet as rules;
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, apply};

use crate::observe::managed as observe;

/// Klusterlets whose agents have rights on a cluster, and no namespace in which their accounts would be, or one that goes. That of
/// a Klusterlet on another cluster is here as long as its agents work. Whoever may not look finds none.
pub(super) async fn without_accounts(managed: &Cluster) -> Result<Vec<String>, Failure> {
    let spaces: Api<Namespace> = Api::all(managed.client.clone());
    let mut all = Vec::new();
    for klusterlet in observe::other_agents(managed, None).await? {
        let binding = match apply::read(managed, &rules::binding_of_agent(&klusterlet)).await {
            Err(failure) if failure.reason == Reason::Forbidden => continue,
            binding => binding?,
        };
        // What is left without it gives nobody a right.
        let Some(binding) = binding else {
            all.push(klusterlet);
            continue;
        };
        let space = binding.pointer("/subjects/0/namespace").and_then(|space| space.as_str());
        let Some(space) = space else { continue };
        let found = spaces.get_metadata_opt(space).await;
        let found = found.map_err(|error| managed.explain(format_args!("read namespace {space:?}"), error))?;
        if found.is_none_or(|found| found.metadata.deletion_timestamp.is_some()) {
            all.push(klusterlet);
        }
    }
    Ok(all)
}
