//! From arguments to the flows.

use std::collections::BTreeSet;
use std::sync::Arc;

use ocm_api::ManifestWork;
use ocm_api::work::UpdateStrategyType;
use ocm_cli::contents::ObjectFilesArgs;
use ocm_cli::{OutputArgs, PlanView, RemovalArgs, SendArgs, Ui, WithdrawArgs, contents, files, options};
use ocm_core::leave::hub::Kind;
use ocm_core::order::Collect as _;
use ocm_core::plan::Mode;
use ocm_core::work::{Executor, WorkOptions, is_replica_set_name, plan, replica_set_plan, spec, unsure_resources};
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, Reason};
use ocm_flows::deliveries::{self, Removing, Targets, Wanted, check_rights_to_remove, clusters_of, remove_all};
use ocm_flows::registry::some_clusters;
use ocm_flows::replica_sets::{self, ReplicaSetRequest};
use ocm_flows::works::{self, CreateRequest};
use ocm_kube::{Connection, connect};
use serde_json::Value;

use crate::args::{CreateArgs, DeleteArgs, StatusArgs, StrategyArg, Verb, WorkArgs};
use crate::view;

pub(crate) async fn run(args: WorkArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let WorkArgs { verb, client } = args;
    let connection = client.connection()?;
    match verb {
        Verb::Create(args) => create(*args, &connection, ui).await,
        Verb::Status(args) => status(args, &connection, ui).await,
        Verb::Delete(args) => delete(args, &connection, ui).await,
    }
}

async fn create(args: CreateArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let CreateArgs {
        name,
        files: ObjectFilesArgs { files: paths, recursive },
        clusters,
        placement,
        replicaset,
        update_strategy,
        force_conflicts,
        orphan,
        feedback,
        executor,
        overwrite,
        send: SendArgs { wait, concurrency, plan: plan_args, output: OutputArgs { output } },
    } = args;
    let names = options::object_names(vec![name], "a work")?;
    let wait = wait.limit()?;
    let view = PlanView::new(ui.clone(), &plan_args, output)?.with_namespaces();
    let options = WorkOptions {
        strategy: strategy(update_strategy, force_conflicts)?,
        force: force_conflicts,
        orphan,
        feedback,
        executor: executor.map(|text| options::namespaced("--executor", &text)).transpose()?.map(executor_of),
    };
    let targets = match placement {
        Some(text) => {
            let (namespace, name) = options::namespaced("--placement", &text)?;
            Targets::Placement { namespace, name }
        }
        None => Targets::Clusters(options::cluster_names(clusters)?),
    };
    let content = files::beside(move || contents::read(&paths, recursive)).await?;
    for object in content.without_namespace() {
        ui.tell(Event::warning(format!("{object} names no namespace: agents cannot apply it; set metadata.namespace")));
    }
    for resource in unsure_resources(&content, &options) {
        let how = "that name is made from the kind, since the files hold no definition of it";
        ui.tell(Event::note(format!("--update-strategy is set for {resource}: {how}")));
    }
    let spec = spec(&content, &options);
    if let (true, Targets::Placement { namespace, name: placement }) = (replicaset, &targets) {
        let request = replica_set(&names[0], namespace, placement, &spec, (overwrite, view.mode()))?;
        return create_replica_set(&request, connection, &view, ui).await;
    }
    // What is only printed needs no hub, unless that has to tell the clusters.
    if let (Mode::Render, Targets::Clusters(clusters)) = (view.mode(), &targets) {
        return view.manifests(&plan(&names[0], clusters, &spec));
    }
    let hub = connect(connection, ui.clone()).await?;
    let clusters = clusters_of(&hub, &targets, &*ui).await?;
    let request = CreateRequest {
        plan: plan(&names[0], &clusters, &spec),
        overwrite,
        mode: view.mode(),
        wait,
        at_once: concurrency.at_once(),
    };
    if view.mode() == Mode::Render {
        return view.manifests(&request.plan);
    }
    let created = works::create(&hub, &request, &*ui, &|applied| view.row(applied)).await?;
    view::created(&view, &ui, &names[0], created)
}

fn replica_set(
    name: &str,
    namespace: &str,
    placement: &str,
    spec: &Value,
    (overwrite, mode): (bool, Mode),
) -> Result<ReplicaSetRequest, Failure> {
    if !is_replica_set_name(namespace, name) {
        let sentence = format!("{namespace}.{name} is longer than 63 characters, and the hub writes it into a label");
        return Err(Failure::usage(sentence).hint("take a shorter name"));
    }
    let plan = replica_set_plan(namespace, name, placement, spec);
    Ok(ReplicaSetRequest { plan, namespace: namespace.to_owned(), placement: placement.to_owned(), overwrite, mode })
}

async fn create_replica_set(
    request: &ReplicaSetRequest,
    connection: &Connection,
    view: &PlanView,
    ui: Arc<Ui>,
) -> Result<Exit, Failure> {
    if view.mode() == Mode::Render {
        return view.manifests(&request.plan);
    }
    let hub = connect(connection, ui.clone()).await?;
    let applied = replica_sets::create(&hub, request, &*ui, &|applied| view.row(applied)).await?;
    view::replica_set(view, &ui, request, &applied)
}

async fn status(args: StatusArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let StatusArgs { names, clusters, output: OutputArgs { output } } = args;
    let (names, clusters) = (options::object_names(names, "a work")?, options::cluster_names(clusters)?);
    let hub = connect(connection, ui.clone()).await?;
    let wanted = Wanted { clusters, names, selector: None };
    let rows = deliveries::deliveries::<ManifestWork>(&hub, &wanted).await?;
    let of: BTreeSet<String> = rows.iter().map(|row| row.cluster().to_owned()).collect_set();
    let managed = match some_clusters(&hub, &of.into_iter().collect::<Vec<_>>()).await {
        Err(failure) if failure.reason == Reason::Forbidden => {
            ui.tell(Event::note(format!("it cannot be told whether the agents report: {failure}")));
            Vec::new()
        }
        managed => managed?,
    };
    view::status(&ui, output, &rows, &managed)
}

async fn delete(args: DeleteArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DeleteArgs { names, clusters, withdraw } = args;
    let WithdrawArgs { force, timeout, concurrency, removal } = withdraw;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let (names, clusters) = (options::object_names(names, "a work")?, options::cluster_names(clusters)?);
    let removing = Removing { force, dry_run: DryRun::from(dry_run), timeout: options::timeout(&timeout)? };
    let view = PlanView::of(ui.clone(), Mode::Apply(removing.dry_run), output).with_namespaces();
    let hub = connect(connection, ui.clone()).await?;
    if removing.dry_run == DryRun::No {
        ui.tell(Event::now("checking your rights"));
        check_rights_to_remove(&hub, Kind::Work, &names, &clusters, force).await?;
    }
    ui.tell(Event::now(format!("looking at works ({})", hub.label())));
    let at_once = concurrency.at_once();
    let all = deliveries::inspect(&hub, Kind::Work, &names, &clusters, at_once).await?;
    deliveries::refuse(&all, force, &*ui)?;
    let is_there = all.iter().any(|of_cluster| !of_cluster.remaining.is_empty());
    if is_there && removing.dry_run == DryRun::No && !yes && !ui.confirm(&view::question(&hub, &all)).await? {
        return Err(Failure::refused("nothing was deleted"));
    }
    let each = |applied: &ocm_core::Applied| view.row(applied);
    let answers = remove_all(&hub, &all, removing, at_once, &*ui, &each).await;
    view::deleted(&view, &ui, &names, &all, answers)
}

fn executor_of((namespace, name): (String, String)) -> Executor {
    Executor { namespace, name }
}

fn strategy(arg: Option<StrategyArg>, force: bool) -> Result<Option<UpdateStrategyType>, Failure> {
    if force && arg != Some(StrategyArg::ServerSideApply) {
        return Err(Failure::usage("--force-conflicts is about --update-strategy=ServerSideApply"));
    }
    Ok(arg.map(|arg| match arg {
        StrategyArg::Update => UpdateStrategyType::Update,
        StrategyArg::CreateOnly => UpdateStrategyType::CreateOnly,
        StrategyArg::ServerSideApply => UpdateStrategyType::ServerSideApply,
        StrategyArg::ReadOnly => UpdateStrategyType::ReadOnly,
    }))
}
