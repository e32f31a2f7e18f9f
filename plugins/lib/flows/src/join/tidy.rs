//! What an agent that has registered over gRPC leaves behind when it registers in another way.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::names::secrets;
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::access::Right;
use ocm_kube::apply::FIELD_MANAGER;
use serde_json::json;

use super::survey::Survey;

/// The Secrets that have a file for gRPC and are to have none: `by_grpc` is whether the agent registers over gRPC.
fn left(survey: &Survey, by_grpc: bool) -> Vec<&'static str> {
    let registers = survey.found.bootstrap.as_ref().is_some_and(|bootstrap| bootstrap.grpc.is_some());
    let all = [(secrets::BOOTSTRAP_HUB_KUBECONFIG, registers), (secrets::HUB_KUBECONFIG, survey.by_grpc)];
    all.into_iter().filter(|(_, has_it)| *has_it && !by_grpc).map(|(name, _)| name).collect()
}

/// What taking the files away needs.
pub(super) fn rights(survey: &Survey, by_grpc: bool) -> Vec<Right> {
    let right = |name| Right::new("patch", "", "secrets").within(&survey.names.namespace).on(name);
    left(survey, by_grpc).into_iter().map(right).collect()
}

/// Takes the files away. Whoever wrote them: of the one, an apply of ours removes only what we have written, and in the
/// other the agent keeps every key that it finds.
///
/// # Errors
/// The failure of a request.
pub(super) async fn tidy(
    managed: &Cluster,
    survey: &Survey,
    by_grpc: bool,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let namespace = &survey.names.namespace;
    let api: Api<Secret> = Api::namespaced(managed.client.clone(), namespace);
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let without = json!({"data": {secrets::GRPC_CONFIG_KEY: null}});
    for name in left(survey, by_grpc) {
        match api.patch_metadata(name, &params, &Patch::Merge(&without)).await {
            Ok(_) => narrator.tell(Event::done(format!(
                "took {} out of Secret {namespace}/{name}: the agent does not register over gRPC any more",
                secrets::GRPC_CONFIG_KEY
            ))),
            Err(error) => {
                let failure = managed.explain(format_args!("change Secret {namespace}/{name}"), error);
                if failure.reason != Reason::NotFound {
                    return Err(failure);
                }
            }
        }
    }
    Ok(())
}
