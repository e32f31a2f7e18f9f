//! From arguments to a list, once or for as long as somebody watches.

use std::sync::Arc;

use ocm_api::{ManagedClusterAddOn, ManifestWork};
use ocm_cli::list::{ListArgs, ListFormat, View, follow, show};
use ocm_cli::{Format, Ui, follow_tokens, options};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::cluster_sets::{cluster_sets, selector_in, watch_cluster_sets};
use ocm_flows::deliveries::{Delivery, DeliveryRow, Wanted, deliveries, watch_deliveries};
use ocm_flows::get::{self, RequestRow};
use ocm_flows::hub_addons::{hub_addons, watch_hub_addons};
use ocm_flows::info::{hubs, klusterlets, watch_hubs, watch_klusterlets};
use ocm_flows::placements::{WantedPlacements, choices_of, placements, watch_placements};
use ocm_flows::registrations::{registrations, watch_registrations};
use ocm_flows::token;
use ocm_kube::{Cluster, connect};

use crate::args::{ClustersArgs, CsrArgs, DeliveryArgs, GetArgs, PlacementArgs, What};
use crate::delivery::{AddOns, Works};
use crate::hub_addon::HubAddOns;
use crate::info::{self, Infos, OfHub, OfKlusterlet};
use crate::selection::{Choices, Placements, Sets};
use crate::view::{Clusters, Registrations, Requests};

pub(crate) async fn run(args: GetArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let GetArgs { what, client } = args;
    let hub = connect(&client.connection()?, ui.clone()).await?;
    match what {
        What::Clusters(args) => clusters(&hub, args, &ui).await,
        What::Csr(CsrArgs { pending, list }) => {
            let wanted = |row: &RequestRow| !pending || row.is_pending();
            let selector = list.selector.clone();
            if list.watch {
                let names = list.names.clone();
                let named = |row: &RequestRow| {
                    names.is_empty()
                        || names
                            .iter()
                            .any(|name| row.request.name == *name || row.request.cluster_label.as_ref() == Some(name))
                };
                let changes = get::watch_requests(&hub, selector.as_deref());
                return follow::<Requests>(&ui, &list, changes, |row| wanted(row) && named(row)).await;
            }
            let mut rows = get::requests(&hub, &list.names, selector.as_deref()).await?;
            rows.retain(wanted);
            // A cluster may have several requests; only its own name means one.
            let is_own = |row: &RequestRow| list.names == [row.request.name.as_str()];
            let list = if rows.iter().all(is_own) { list } else { list.of_several() }.narrowed_if(pending);
            show::<Requests>(&ui, &list, rows)
        }
        What::Registrations(list) => {
            let selector = list.selector.clone();
            if list.watch {
                let changes = watch_registrations(&hub, &list.names, selector.as_deref());
                return follow::<Registrations>(&ui, &list, changes, |_| true).await;
            }
            show::<Registrations>(&ui, &list, registrations(&hub, &list.names, selector.as_deref()).await?)
        }
        What::Works(works) => delivered::<ManifestWork, Works>(&hub, works, &ui).await,
        What::Addons(addons) => delivered::<ManagedClusterAddOn, AddOns>(&hub, addons, &ui).await,
        What::HubAddons(list) => {
            let selector = list.selector.clone();
            if list.watch {
                let changes = watch_hub_addons(&hub, list.names.clone(), selector.as_deref());
                return follow::<HubAddOns>(&ui, &list, changes, |_| true).await;
            }
            show::<HubAddOns>(&ui, &list, hub_addons(&hub, &list.names, selector.as_deref()).await?)
        }
        What::Clustersets(list) => {
            let selector = list.selector.clone();
            if list.watch {
                let changes = watch_cluster_sets(&hub, list.names.clone(), selector.as_deref());
                return follow::<Sets>(&ui, &list, changes, |_| true).await;
            }
            show::<Sets>(&ui, &list, cluster_sets(&hub, &list.names, selector.as_deref()).await?)
        }
        What::Placements(placements) => placed(&hub, placements, &ui).await,
        What::Tokens(args) if args.watch => follow_tokens(&ui, args, token::watch(&hub)).await,
        What::Tokens(args) => ocm_cli::tokens(&ui, &args, &token::list(&hub).await?),
        What::HubInfo(args) => {
            let list = info::list(args);
            if list.watch {
                return follow::<Infos<OfHub>>(&ui, &list, watch_hubs(&hub), |row| info::is_wanted(&list, row)).await;
            }
            info::show::<OfHub>(&ui, &list, hubs(&hub).await?)
        }
        What::KlusterletInfo(args) => {
            let list = info::list(args);
            if list.watch {
                let changes = watch_klusterlets(&hub);
                return follow::<Infos<OfKlusterlet>>(&ui, &list, changes, |row| info::is_wanted(&list, row)).await;
            }
            info::show::<OfKlusterlet>(&ui, &list, klusterlets(&hub).await?)
        }
    }
}

async fn clusters(hub: &Cluster, args: ClustersArgs, ui: &Arc<Ui>) -> Result<Exit, Failure> {
    let ClustersArgs { cluster_set, list } = args;
    let set = options::set_names(cluster_set.into_iter().collect())?.pop();
    let selector = match &set {
        Some(set) => selector_in(hub, set, list.selector.as_deref()).await?,
        None => list.selector.clone(),
    };
    let with_names = !matches!(list.output.output, ListFormat::As(Format::Table | Format::Name));
    if list.watch {
        let changes = get::watch_clusters(hub, &list.names, selector.as_deref(), with_names);
        return follow::<Clusters>(ui, &list, changes, |_| true).await;
    }
    let mut rows = get::clusters(hub, &list.names, selector.as_deref()).await?;
    if with_names && let Some(unread) = get::add_noted_names(hub, &mut rows).await? {
        ui.tell(Event::note(unread));
    }
    if let (true, true, Some(set)) = (rows.is_empty(), for_people(&list), &set) {
        ui.tell(Event::note(format!("no such cluster is in set {set}")));
        return Ok(Exit::Ok);
    }
    show::<Clusters>(ui, &list, rows)
}

/// Whether people read the list as it is made for them: an empty one is a sentence then.
fn for_people(list: &ListArgs) -> bool {
    matches!(list.output.output, ListFormat::Tree | ListFormat::As(Format::Table | Format::Wide))
}

async fn delivered<K, V>(hub: &Cluster, args: DeliveryArgs, ui: &Arc<Ui>) -> Result<Exit, Failure>
where
    K: Delivery,
    V: View<Row = DeliveryRow<K>>,
{
    // Those of all clusters are the default.
    let DeliveryArgs { clusters, all_namespaces: _, list } = args;
    let list = list.narrowed_if(!clusters.is_empty());
    let wanted = Wanted { clusters, names: list.names.clone(), selector: list.selector.clone() };
    if list.watch {
        return follow::<V>(ui, &list, watch_deliveries::<K>(hub, wanted), |_| true).await;
    }
    let rows = deliveries::<K>(hub, &wanted).await?;
    // Each cluster may have one of the name.
    let list = if wanted.clusters.len() == 1 { list } else { list.of_several() };
    show::<V>(ui, &list, rows)
}

async fn placed(hub: &Cluster, args: PlacementArgs, ui: &Arc<Ui>) -> Result<Exit, Failure> {
    let PlacementArgs { namespace, all_namespaces, explain, list } = args;
    let namespace = (!all_namespaces).then(|| namespace.unwrap_or_else(|| hub.namespace.clone()));
    if explain {
        let (Some(namespace), [name]) = (&namespace, list.names.as_slice()) else {
            return Err(Failure::usage("--explain is about one placement")
                .hint("name it: kubectl ocm get placements NAME --explain --namespace NAMESPACE"));
        };
        let rows = choices_of(hub, namespace, name).await?;
        // The name is that of the placement: there may be a single cluster, and it is a list still.
        return show::<Choices>(ui, &ListArgs { names: Vec::new(), ..list }, rows);
    }
    let wanted = WantedPlacements { namespace, names: list.names.clone(), selector: list.selector.clone() };
    if list.watch {
        return follow::<Placements>(ui, &list, watch_placements(hub, wanted), |_| true).await;
    }
    let (rows, unread) = placements(hub, &wanted).await?;
    if let Some(unread) = unread {
        ui.tell(Event::note(format!("WHY is only what the placement controller says: {unread}")));
    }
    // Each namespace may have one of the name.
    let list = if wanted.namespace.is_some() { list.narrowed_if(true) } else { list.of_several() };
    let is_empty = rows.is_empty();
    let exit = show::<Placements>(ui, &list, rows)?;
    if let (true, true, Some(namespace)) = (is_empty, for_people(&list), &wanted.namespace) {
        ui.tell(Event::note(format!(
            "only namespace {namespace} was read; --all-namespaces shows those of all namespaces"
        )));
    }
    Ok(exit)
}
