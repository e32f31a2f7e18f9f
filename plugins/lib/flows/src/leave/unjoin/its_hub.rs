//! Which hub a Klusterlet belongs to, and whether that is the one that is asked.

use kube::Api;
use kube::api::ListParams;
use ocm_api::ManifestWork;
use ocm_api::names::secrets;
use ocm_core::kubeconfig::{HubAddress, Likeness};
use ocm_core::leave::klusterlet::Known;
use ocm_core::leave::works::with_their_objects;
use ocm_core::{Failure, Remedy};
use ocm_kube::Cluster;

use crate::grpc_server;
use crate::hub as address;
use crate::observe::managed as observe;
use crate::registry::{PAGE, pages};
use crate::served::or_nothing;

/// All Klusterlets, each with the name of its cluster.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn all_known(managed: &Cluster) -> Result<Vec<Known>, Failure> {
    let mut all = Vec::new();
    for klusterlet in observe::klusterlets(managed).await? {
        let mut known = Known { klusterlet, cluster: None };
        let named = known.klusterlet.spec.cluster_name.clone().filter(|name| !name.is_empty());
        known.cluster = match named {
            Some(named) => Some(named),
            None => observe::identity(managed, known.agents()).await?.cluster,
        };
        all.push(known);
    }
    Ok(all)
}

/// The hub of an agent: as it was let in, else as it registers.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn agents_hub(managed: &Cluster, known: &Known) -> Result<Option<HubAddress>, Failure> {
    let space = known.agents();
    let (identity, bootstrap) = futures::join!(observe::identity(managed, space), observe::bootstrap(managed, space));
    let (identity, bootstrap) = (identity?.hub, bootstrap?.map(|bootstrap| bootstrap.hub));
    Ok(match (identity, bootstrap) {
        (Some(mut identity), Some(bootstrap)) => {
            if identity.is_at(&bootstrap.server) {
                identity.uid = bootstrap.uid;
            }
            Some(identity)
        }
        (identity, bootstrap) => identity.or(bootstrap),
    })
}

/// Whether a cluster is the hub at the address that an agent knows.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn is_hub_at(hub: &Cluster, known: &HubAddress) -> Result<bool, Failure> {
    let wanted = HubAddress {
        server: hub.server.clone(),
        ca: hub.ca.clone().unwrap_or_default(),
        uid: address::uid(hub).await,
        ..HubAddress::default()
    };
    Ok(match known.likeness(&wanted) {
        Likeness::Same => true,
        Likeness::OtherAddress if known.uid.is_some() && wanted.uid.is_some() => true,
        // Several hubs can be behind one authority, but not behind the one that a cluster has made for itself.
        Likeness::OtherAddress => {
            let own = address::readable_root_ca(hub).await?;
            !known.ca.is_empty() && known.ca.iter().all(|certificate| own.contains(certificate))
        }
        Likeness::OtherCa | Likeness::OtherHub => false,
    })
}

/// Refuses a hub that is not the agent's: a cluster of that name there is another one.
pub(super) async fn is_its_hub(hub: &Cluster, known: &HubAddress, label: &str) -> Result<(), Failure> {
    if is_hub_at(hub, known).await? {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "the agent on {label} belongs to the hub at {}, not to {}: nothing was deleted",
        known.server,
        hub.label()
    ))
    .hint(Remedy::NameItsHub)
    .hint(Remedy::WithoutHub))
}

/// Refuses an agent that was not let in under the name of a cluster that has joined.
pub(super) async fn was_let_in(managed: &Cluster, known: &Known, name: &str) -> Result<(), Failure> {
    let space = known.agents();
    let because = match observe::identity(managed, space).await?.cluster {
        Some(own) if own == name => return Ok(()),
        Some(own) => format!("Secret {space}/{} is of cluster {own:?}", secrets::HUB_KUBECONFIG),
        None => format!("Secret {space}/{} names no cluster, or is not there", secrets::HUB_KUBECONFIG),
    };
    Err(Failure::refused(format!(
        "the hub has a cluster {name:?} that has joined, and the agent on {} was not let in under that name: \
         it is another one; nothing was deleted",
        managed.label()
    ))
    .because(because)
    .hint(Remedy::WithoutHub))
}

/// The addresses of an agent's hub, in the words in which agents dial it: the one that the agent has, ours, and that of the
/// hub's gRPC server. An agent that has gone over from one to another has records of both.
pub(super) async fn addresses(hub: &Cluster, known: Option<&HubAddress>) -> Result<Vec<String>, Failure> {
    let mut all: Vec<String> = known.map(|known| known.server.clone()).into_iter().collect();
    all.push(hub.server.clone());
    if let Some(manager) = grpc_server::manager(hub).await? {
        all.extend(grpc_server::published(hub, &manager).await?.map(|address| address.to_string()));
    }
    Ok(all)
}

/// By what records name the works of a cluster that its hub removes with all of their objects.
pub(super) async fn removed(hub: &Cluster, cluster: &str) -> Result<Vec<String>, Failure> {
    let api: Api<ManifestWork> = Api::namespaced(hub.client.clone(), cluster);
    // Works hold whatever they apply, of which nothing is kept.
    let words = |work: ManifestWork| Some(with_their_objects(&[work]));
    let words = pages(hub, &api, ListParams::default(), || PAGE, "list works", words).await;
    Ok(or_nothing(words)?.into_iter().flatten().collect())
}
