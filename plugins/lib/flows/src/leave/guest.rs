//! The managed cluster of a hosted Klusterlet, through the kubeconfig that its operator has.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::config::AuthInfo;
use ocm_api::names::secrets;
use ocm_core::join::hosted::is_ours;
use ocm_core::leave::klusterlet::{self as rules, Known};
use ocm_core::{Applied, DryRun, Failure, Narrator, Reason};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::{Cluster, Connection, connect_to};

use crate::hub::{entries, way};

/// How long a request to it may take.
const REQUEST: Duration = Duration::from_secs(15);

/// Connects to it. Whether it answers is not known then.
///
/// # Errors
/// When there is no kubeconfig, or it cannot be used from here.
pub(super) async fn connect(host: &Cluster, known: &Known, narrator: Arc<dyn Narrator>) -> Result<Cluster, Failure> {
    let space = known.agents();
    let name = secrets::EXTERNAL_MANAGED_KUBECONFIG;
    let api: Api<Secret> = Api::namespaced(host.client.clone(), space);
    let found = api.get_opt(name).await;
    let found = found.map_err(|error| host.explain(format_args!("read Secret {space}/{name}"), error))?;
    let unusable = |why: &str| Failure::new(Reason::Kubeconfig, format!("Secret {space}/{name} {why}"));
    let data = found.and_then(|secret| secret.data?.remove(secrets::KUBECONFIG_KEY));
    let text = data.ok_or_else(|| unusable("is not there, or holds no kubeconfig"))?;
    let text = String::from_utf8(text.0).map_err(|_| unusable("is not UTF-8"))?;
    let (entry, user) = entries(&text).ok_or_else(|| unusable("holds no kubeconfig that can be read"))?;
    let user = user.unwrap_or_default();
    // Whoever may write that Secret must not have anything run or read on this machine: only what the kubeconfig itself holds
    // counts, no programs and no files.
    let user = AuthInfo {
        token: user.token,
        client_certificate_data: user.client_certificate_data,
        client_key_data: user.client_key_data,
        ..AuthInfo::default()
    };
    let connection = Connection { request_timeout: Some(REQUEST), ..Connection::default() };
    connect_to(way(entry), user, &connection, narrator).await
}

/// Deletes the namespace of the account that a join has made for the operator, and with it the account and its rights. It may
/// be the account by which we are there, so nothing is waited for.
///
/// # Errors
/// The failure of a request.
pub(super) async fn account(
    guest: &Cluster,
    known: &Known,
    dry_run: DryRun,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let Some(uid) = own_namespace(guest, known).await? else { return Ok(()) };
    each(&remove::known(guest, &rules::namespace(known.name()), &uid, Dependents::Usual, dry_run).await?);
    Ok(())
}

/// The UID of the namespace with the account that a join has made for the operator, if there is one.
///
/// # Errors
/// The failure of a request.
pub(super) async fn own_namespace(guest: &Cluster, known: &Known) -> Result<Option<String>, Failure> {
    let name = known.name();
    let api: Api<Namespace> = Api::all(guest.client.clone());
    let found = api.get_metadata_opt(name).await;
    let found = found.map_err(|error| guest.explain(format_args!("read namespace {name:?}"), error))?;
    Ok(found.map(|found| found.metadata).filter(is_ours).and_then(|found| found.uid))
}
