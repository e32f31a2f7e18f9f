//! From arguments to the flow.

use std::sync::Arc;

use ocm_cli::{Format, ImageArgs, OutputArgs, PlanView, Troubleshoot, Ui, options};
use ocm_core::images::Source;
use ocm_core::release::Component;
use ocm_core::upgrade::Target;
use ocm_core::upgrade::staging::Size;
use ocm_core::{Exit, Failure};
use ocm_flows::upgrade::{self as flow, Fleet, HubRequest, KlusterletRequest, Member};
use ocm_kube::{ClientArgs, Cluster, Connection, connect};

use crate::args::{HubUpgradeArgs, KlusterletUpgradeArgs, UpgradeArgs, What};
use crate::view::{self, Way};

pub(crate) async fn run(arguments: UpgradeArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let UpgradeArgs { what, client } = arguments;
    match what {
        What::Hub(hub) => hub_command(*hub, client, ui).await,
        What::Klusterlet(klusterlet) => klusterlet_command(*klusterlet, client, ui).await,
    }
}

/// From where the images are taken.
async fn source(registry: Option<&str>, images: &ImageArgs, needed: &[Component]) -> Result<Source, Failure> {
    let registry = registry.map(options::registry).transpose()?;
    Ok(Source { registry, digests: images.digests(needed.iter().copied()).await? })
}

async fn hub_command(arguments: HubUpgradeArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let HubUpgradeArgs {
        wait,
        timeout: limit,
        plan,
        bundle_version,
        registry,
        images,
        allow_downgrade,
        output: OutputArgs { output },
    } = arguments;
    let limit = options::timeout(&limit)?;
    let bundle = images.bundle(bundle_version.as_deref()).await?.unwrap_or_default();
    let source = source(registry.as_deref(), &images, &Component::ALL).await?;
    let target = Target { bundle, downgrade: allow_downgrade };
    let view = PlanView::new(ui.clone(), &plan, output)?;
    let way = Way::hub(client.words(), source.registry.is_some());
    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let request = HubRequest { target, source, mode: view.mode(), wait: wait.then_some(limit) };
    let upgraded = flow::upgrade_hub(&cluster, &request, &*ui, |applied| view.row(applied)).await?;
    match view::finish_hub(&view, &ui, &cluster, &request.target.bundle, &way, upgraded) {
        Err(failure) => Err(Troubleshoot::new(client.words()).explain(failure, &[], &*ui).await),
        done => done,
    }
}

async fn klusterlet_command(
    arguments: KlusterletUpgradeArgs,
    client: ClientArgs,
    ui: Arc<Ui>,
) -> Result<Exit, Failure> {
    let KlusterletUpgradeArgs {
        name,
        klusterlet,
        wait,
        timeout: limit,
        plan,
        bundle_version,
        registry,
        images,
        allow_downgrade,
        contexts,
        stage,
        cluster_sets,
        output: OutputArgs { output },
        hub,
    } = arguments;
    let limit = options::timeout(&limit)?;
    let mode = plan.mode(output)?;
    let request = KlusterletRequest {
        cluster: name,
        klusterlet,
        bundle: images.bundle(bundle_version.as_deref()).await?,
        source: source(registry.as_deref(), &images, &Component::AGENT).await?,
        downgrade: allow_downgrade,
        mode,
        wait: (wait || !contexts.is_empty()).then_some(limit),
    };
    let size = Size::parse(&stage).ok_or_else(|| {
        Failure::usage(format!("--stage {stage:?} is neither a number nor a share")).hint("for example: 5, or 10%")
    })?;
    let fleet = Fleet { size, sets: cluster_sets };
    let connection = client.connection()?;
    let members = members(&contexts, &client, &fleet, hub.is_given())?;
    let reached = match hub.is_given() {
        true => Some(connect(&hub.connection(&connection), ui.clone()).await?),
        false => None,
    };
    if !members.is_empty() {
        return fleet_command(&members, &connection, reached.as_ref(), &request, &fleet, output, ui).await;
    }
    let view = PlanView::new(ui.clone(), &plan, output)?;
    let way = Way::klusterlet(client.words(), &hub.words(), request.source.registry.is_some());
    let managed = connect(&connection, ui.clone()).await?;
    let prepared = flow::prepare(&managed, reached.as_ref(), &request, &*ui).await?;
    let each = |applied: &ocm_core::Applied| view.row(applied);
    let upgraded = flow::upgrade_klusterlet(&managed, reached.as_ref(), &request, &prepared, &*ui, each).await?;
    view::finish_klusterlet(&view, &ui, &managed, &way, &prepared, upgraded)
}

/// The contexts of a fleet, each once.
fn members(contexts: &[String], client: &ClientArgs, fleet: &Fleet, has_hub: bool) -> Result<Vec<String>, Failure> {
    if contexts.is_empty() {
        return Ok(Vec::new());
    }
    if client.context.is_some() || client.cluster.is_some() || client.server.is_some() {
        return Err(Failure::usage("--contexts names the clusters: leave out --context, --cluster and --server"));
    }
    if !fleet.sets.is_empty() && !has_hub {
        return Err(Failure::usage("--cluster-sets are those of the hub: name it with --hub-context"));
    }
    let mut names: Vec<String> = Vec::new();
    for name in contexts.iter().map(|name| name.trim()) {
        if name.is_empty() {
            return Err(Failure::usage("--contexts has an empty name"));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

async fn fleet_command(
    contexts: &[String],
    connection: &Connection,
    hub: Option<&Cluster>,
    request: &KlusterletRequest,
    fleet: &Fleet,
    format: Format,
    ui: Arc<Ui>,
) -> Result<Exit, Failure> {
    let each = contexts.iter().map(async |context| {
        let connection = Connection { context: Some(context.clone()), ..connection.clone() };
        let cluster = connect(&connection, ui.clone()).await?;
        Ok::<_, Failure>(Member { name: context.clone(), cluster })
    });
    let members = futures::future::try_join_all(each).await?;
    let rows = flow::upgrade_fleet(&members, hub, request, fleet, ui.clone()).await?;
    view::finish_fleet(&ui, format, request.mode, &rows)
}
