//! The Secrets with the kubeconfigs that an agent registers with and that its operator works with.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use ocm_api::Manifest;
use ocm_api::names::secrets;

use crate::kubeconfig::{Bootstrap, EXCLUSIVE_TOKEN, HUB_UID, exclusive_mark};
use crate::order::Collect as _;

/// The Secret with the kubeconfig that the agent in `namespace` registers with.
pub fn bootstrap_secret(namespace: &str, bootstrap: &Bootstrap) -> Manifest {
    let files = (bootstrap.to_yaml(), bootstrap.grpc_config());
    let mark = exclusive_mark(&bootstrap.token, bootstrap.exclusive);
    bootstrap_secret_of(namespace, files, mark, bootstrap.hub.uid.as_deref())
}

/// The same Secret, with a kubeconfig as it is, and with what an agent registers with over gRPC, if it does. `mark`: what
/// [`exclusive_mark`] says of its token; `hub`: the UID of the hub, where it is known.
pub fn bootstrap_secret_of(
    namespace: &str,
    files: (String, Option<String>),
    mark: String,
    hub: Option<&str>,
) -> Manifest {
    secret_named(secrets::BOOTSTRAP_HUB_KUBECONFIG, namespace, files, mark, hub)
}

/// The same, of this name.
pub(super) fn secret_named(
    name: &str,
    namespace: &str,
    (kubeconfig, grpc_config): (String, Option<String>),
    mark: String,
    hub: Option<&str>,
) -> Manifest {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.namespace = Some(namespace.to_owned());
    // Said in both directions: what was true of an earlier token must not stay.
    let mut annotations = [(EXCLUSIVE_TOKEN.to_owned(), mark)].collect_map();
    annotations.insert(HUB_UID.to_owned(), hub.unwrap_or_default().to_owned());
    secret.metadata.annotations = Some(annotations);
    let file = |key: &str, text: String| (key.to_owned(), ByteString(text.into_bytes()));
    let grpc_config = grpc_config.map(|text| file(secrets::GRPC_CONFIG_KEY, text));
    secret.data = Some([file(secrets::KUBECONFIG_KEY, kubeconfig)].into_iter().chain(grpc_config).collect_map());
    // What an agent registered with over gRPC goes when it registers in another way.
    Manifest::of(&secret).exactly()
}

/// The Secret with the kubeconfig through which the operator manages a hosted cluster, in the namespace of its agents.
pub fn external_secret(namespace: &str, kubeconfig: &Bootstrap) -> Manifest {
    let mut secret = Secret::default();
    secret.metadata.name = Some(secrets::EXTERNAL_MANAGED_KUBECONFIG.to_owned());
    secret.metadata.namespace = Some(namespace.to_owned());
    let text = ByteString(kubeconfig.to_yaml().into_bytes());
    secret.data = Some([(secrets::KUBECONFIG_KEY.to_owned(), text)].into());
    Manifest::of(&secret)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kubeconfig::HubAddress;
    use crate::reconcile;

    #[test]
    fn a_secret_of_an_agent_that_leaves_grpc_carries_nothing_over() {
        let live = json!({"metadata": {"managedFields": [{"manager": reconcile::FIELD_MANAGER, "operation": "Apply",
            "fieldsV1": {"f:data": {"f:config.yaml": {}, "f:kubeconfig": {}}}}]},
            "data": {"config.yaml": "bw==", "kubeconfig": "bw=="}});
        let hub = HubAddress { server: "https://hub:6443".to_owned(), ..HubAddress::default() };
        let planned = bootstrap_secret("n", &Bootstrap { hub, token: "to.ken".to_owned(), ..Bootstrap::default() });
        match reconcile::reconcile(&planned, Some(&live)) {
            reconcile::Reconciled::Apply(sent) => assert_eq!(sent.body()["data"].get("config.yaml"), None),
            reconcile::Reconciled::Keep(reason) => panic!("{reason}"),
        }
    }
}
