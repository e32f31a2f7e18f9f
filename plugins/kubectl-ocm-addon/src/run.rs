//! From arguments to the flows.

use std::sync::Arc;

use ocm_cli::contents::ObjectFilesArgs;
use ocm_cli::{ApplyArgs, OutputArgs, PlanView, RemovalArgs, SendArgs, Ui, WithdrawArgs, contents, files, options};
use ocm_core::addon::{AddOnOptions, DefinitionOptions, definition_plan, template_name};
use ocm_core::leave::hub::Kind;
use ocm_core::plan::Mode;
use ocm_core::work::is_object_name;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator};
use ocm_flows::addons::{self, DefineRequest, EnableRequest};
use ocm_flows::deliveries::{self, Removing, check_rights_to_remove, remove_all};
use ocm_kube::{Connection, connect};

use crate::args::{AddOnArgs, CreateArgs, DisableArgs, EnableArgs, StatusArgs, Verb};
use crate::config::parsed_configs;
use crate::{config, delete, proxy, status, view};

pub(crate) async fn run(args: AddOnArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let AddOnArgs { verb, client } = args;
    let connection = client.connection()?;
    match verb {
        Verb::Create(args) => create(*args, &connection, ui).await,
        Verb::Status(args) => status(args, &connection, ui).await,
        Verb::Enable(args) => enable(*args, &connection, ui).await,
        Verb::Config(verb) => config::run(verb, &connection, ui).await,
        Verb::ProxyConfig(args) => proxy::run(*args, &connection, ui).await,
        Verb::Disable(args) => disable(args, &connection, ui).await,
        Verb::Delete(args) => delete::run(args, &connection, ui).await,
    }
}

async fn create(args: CreateArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let CreateArgs {
        name,
        files: ObjectFilesArgs { files, recursive },
        version,
        placement,
        hub_registration,
        cluster_role_bind,
        labels,
        overwrite,
        apply: ApplyArgs { wait, plan: plan_args, output: OutputArgs { output } },
    } = args;
    let name = options::object_names(vec![name], "an add-on")?.remove(0);
    let template = template_name(&name, &version);
    if !is_object_name(&template) {
        return Err(Failure::usage(format!("--version {version:?}: {template:?} cannot be the name of a template"))
            .hint("versions are lower-case letters, digits, '-' and '.'"));
    }
    let wait = wait.limit()?;
    let view = PlanView::new(ui.clone(), &plan_args, output)?;
    let placement = placement.map(|text| options::namespaced("--placement", &text)).transpose()?;
    let content = files::beside(move || contents::read(&files, recursive)).await?;
    for object in content.without_namespace() {
        ui.tell(Event::warning(format!("{object} names no namespace: agents cannot apply it; set metadata.namespace")));
    }
    let options = DefinitionOptions {
        name: name.clone(),
        version,
        placement: placement.clone(),
        hub_registration,
        cluster_role: cluster_role_bind.clone(),
        labels: options::pairs("--labels", &labels)?,
    };
    let plan = definition_plan(&options, &content);
    if view.mode() == Mode::Render {
        return view.manifests(&plan);
    }
    let hub = connect(connection, ui.clone()).await?;
    let request = DefineRequest {
        name,
        template,
        plan,
        placement,
        cluster_role: cluster_role_bind,
        overwrite,
        mode: view.mode(),
        wait,
    };
    let applied = addons::define(&hub, &request, &*ui, &|applied| view.row(applied)).await?;
    view::defined(&view, &ui, &request, &applied)
}

async fn status(args: StatusArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let StatusArgs { name, clusters, output: OutputArgs { output } } = args;
    let name = options::object_names(vec![name], "an add-on")?.remove(0);
    let clusters = options::cluster_names(clusters)?;
    let hub = connect(connection, ui.clone()).await?;
    let status = addons::status(&hub, &name, &clusters).await?;
    status::show(&ui, output, &status)
}

async fn enable(args: EnableArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let EnableArgs {
        names,
        clusters,
        namespace,
        configs,
        labels,
        annotations,
        without_definition,
        send: SendArgs { wait, concurrency, plan, output: OutputArgs { output } },
    } = args;
    let wait = wait.limit()?;
    let view = PlanView::new(ui.clone(), &plan, output)?.with_namespaces();
    let namespace = options::namespaces(namespace.into_iter().collect())?.pop();
    let request = EnableRequest {
        names: options::object_names(names, "an add-on")?,
        clusters: options::cluster_names(clusters)?,
        options: AddOnOptions {
            namespace,
            labels: options::pairs("--labels", &labels)?,
            annotations: options::pairs("--annotate", &annotations)?,
            configs: parsed_configs(&configs)?,
        },
        without_definition,
        mode: view.mode(),
        wait,
        at_once: concurrency.at_once(),
    };
    if view.mode() == Mode::Render {
        return view.manifests(&request.plan());
    }
    let hub = connect(connection, ui.clone()).await?;
    let enabled = addons::enable(&hub, &request, &*ui, &|applied| view.row(applied)).await?;
    view::enabled(&view, &ui, enabled)
}

async fn disable(args: DisableArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DisableArgs { names, clusters, withdraw } = args;
    let WithdrawArgs { force, timeout, concurrency, removal } = withdraw;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let (names, clusters) = (options::object_names(names, "an add-on")?, options::cluster_names(clusters)?);
    let removing = Removing { force, dry_run: DryRun::from(dry_run), timeout: options::timeout(&timeout)? };
    let view = PlanView::of(ui.clone(), Mode::Apply(removing.dry_run), output).with_namespaces();
    let hub = connect(connection, ui.clone()).await?;
    if removing.dry_run == DryRun::No {
        ui.tell(Event::now("checking your rights"));
        check_rights_to_remove(&hub, Kind::AddOn, &names, &clusters, force).await?;
    }
    ui.tell(Event::now(format!("looking at add-ons ({})", hub.label())));
    let at_once = concurrency.at_once();
    let all = deliveries::inspect(&hub, Kind::AddOn, &names, &clusters, at_once).await?;
    for (name, definition) in addons::definitions(&hub, &names).await? {
        if let Some(definition) = definition {
            addons::tell_of_placements(&name, &definition, "adds it again where these select a cluster", &*ui);
        }
    }
    deliveries::refuse(&all, force, &*ui)?;
    let is_there = all.iter().any(|of_cluster| !of_cluster.remaining.is_empty());
    if is_there && removing.dry_run == DryRun::No && !yes && !ui.confirm(&view::question(&hub, &all)).await? {
        return Err(Failure::refused("nothing was deleted"));
    }
    let each = |applied: &ocm_core::Applied| view.row(applied);
    let answers = remove_all(&hub, &all, removing, at_once, &*ui, &each).await;
    view::disabled(&view, &ui, &names, &all, answers)
}
