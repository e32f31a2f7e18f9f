//! From arguments to the flow.

use std::path::Path;
use std::sync::Arc;

use ocm_cli::{Format, ImageArgs, OutputArgs, PlanView, Troubleshoot, Ui, fleet_file, of_contexts, options};
use ocm_core::images::Source;
use ocm_core::release::Component;
use ocm_core::upgrade::staging::Size;
use ocm_core::upgrade::{Target, Wanted};
use ocm_core::{Exit, Failure, fleet as file};
use ocm_flows::fleet::Reach;
use ocm_flows::upgrade::{self as flow, Fleet, HubRequest, KlusterletRequest, Member};
use ocm_kube::{ClientArgs, Cluster, Connection, connect};

use crate::args::{HubUpgradeArgs, KlusterletUpgradeArgs, UpgradeArgs, What};
use crate::view::{self, Named, Way};

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
        filename,
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
        wait: (wait || filename.is_some() || !contexts.is_empty()).then_some(limit),
    };
    let size = Size::parse(&stage).ok_or_else(|| {
        Failure::usage(format!("--stage {stage:?} is neither a number nor a share")).hint("for example: 5, or 10%")
    })?;
    let fleet = Fleet { size, sets: cluster_sets };
    if let Some(file) = filename {
        return file_command(&file, &client, &request, &fleet, output, ui).await.map_err(fleet_file::of_fields);
    }
    let connection = client.connection()?;
    let members = client.several(&contexts)?;
    if !members.is_empty() && !fleet.sets.is_empty() && !hub.is_given() {
        return Err(Failure::usage("--cluster-sets are those of the hub: name it with --hub-context"));
    }
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
        Ok::<_, Failure>(Member { name: context.clone(), cluster, request: request.clone() })
    });
    let members = futures::future::try_join_all(each).await.map_err(of_contexts)?;
    let rows = flow::upgrade_fleet(&members, hub, fleet, ui.clone()).await?;
    view::finish_fleet(&ui, format, request.mode, Named::ByContext, &rows)
}

/// The clusters of a fleet file. `request` is what was typed for all of them.
async fn file_command(
    path: &Path,
    client: &ClientArgs,
    request: &KlusterletRequest,
    fleet: &Fleet,
    format: Format,
    ui: Arc<Ui>,
) -> Result<Exit, Failure> {
    let others = ClientArgs { kubeconfig: None, ..client.clone() };
    if others.is_given() || !others.as_group.is_empty() {
        return Err(Failure::usage("--filename says how each cluster is reached, and as whom").hint(
            "leave out every flag of the connection but --kubeconfig, of the clusters that the file gives no other, and \
             --request-timeout",
        ));
    }
    let file::Fleet { hub, members } = fleet_file::read(path).await?;
    let plain = client.connection()?;
    let reach = Reach { folder: fleet_file::folder(path), plain: &plain, narrator: ui.clone() };
    let hub = reach.hub(&hub).await?;
    let typed = Wanted { bundle: request.bundle.clone(), source: request.source.clone() };
    let mut reached = Vec::new();
    for member in members {
        let cluster = reach.agents(&member).await?;
        let name = member.settings.name.clone();
        let Wanted { bundle, source } = typed.or(&member.settings);
        let request = KlusterletRequest { cluster: Some(name.clone()), bundle, source, ..request.clone() };
        reached.push(Member { name, cluster, request });
    }
    let rows = flow::upgrade_fleet(&reached, Some(&hub), fleet, ui.clone()).await?;
    view::finish_fleet(&ui, format, request.mode, Named::InFile, &rows)
}
