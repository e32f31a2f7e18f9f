//! From arguments to the flows.

use std::sync::Arc;

use ocm_cli::{Format, OutputArgs, PlanView, RemovalArgs, Ui, options};
use ocm_core::plan::Mode;
use ocm_core::{Applied, DryRun, Event, Exit, Failure, Narrator};
use ocm_flows::cluster_sets::{self, Moves, NamespaceChange, Removal, Who};
use ocm_kube::{Cluster, connect};

use crate::args::{BindArgs, ChangeArgs, ClusterSetArgs, CreateArgs, DeleteArgs, MembersArgs, UnbindArgs, Verb};
use crate::view;

pub(crate) async fn run(args: ClusterSetArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let ClusterSetArgs { verb, client } = args;
    let hub = async || connect(&client.connection()?, ui.clone()).await;
    match verb {
        Verb::Create(args) => create(args, hub, &ui).await,
        Verb::Bind(args) => bind(args, hub, &ui).await,
        Verb::Unbind(args) => unbind(args, hub, &ui).await,
        Verb::Set(args) => members(args, true, hub, &ui).await,
        Verb::Unset(args) => members(args, false, hub, &ui).await,
        Verb::Delete(args) => delete(args, hub, &ui).await,
    }
}

/// How the command is carried out, and what shows it.
struct Way {
    dry_run: DryRun,
    view: PlanView,
}

impl Way {
    fn of(ui: &Arc<Ui>, dry_run: DryRun, output: Format) -> Self {
        Self { dry_run, view: PlanView::of(ui.clone(), Mode::Apply(dry_run), output) }
    }

    fn changing(ui: &Arc<Ui>, args: ChangeArgs) -> Self {
        let ChangeArgs { dry_run, output: OutputArgs { output } } = args;
        Self::of(ui, dry_run.into(), output)
    }

    fn is_real(&self) -> bool {
        self.dry_run == DryRun::No
    }

    /// Whether it goes on: the question is asked only if something is changed for real.
    async fn agreed(&self, ui: &Ui, yes: bool, question: impl FnOnce() -> String) -> Result<(), Failure> {
        if !self.is_real() || yes || ui.confirm(&question()).await? {
            return Ok(());
        }
        Err(Failure::refused("nothing was changed"))
    }
}

async fn create(
    args: CreateArgs,
    hub: impl AsyncFn() -> Result<Cluster, Failure>,
    ui: &Arc<Ui>,
) -> Result<Exit, Failure> {
    let CreateArgs { names, change } = args;
    let names = options::set_names(names)?;
    let way = Way::changing(ui, change);
    let hub = hub().await?;
    if way.is_real() {
        cluster_sets::check_rights_to_create(&hub, &names).await?;
    }
    let each = |applied: &Applied| way.view.row(applied);
    cluster_sets::create(&hub, &names, way.dry_run, &**ui, &each).await?;
    view::finish(&way.view)
}

async fn bind(args: BindArgs, hub: impl AsyncFn() -> Result<Cluster, Failure>, ui: &Arc<Ui>) -> Result<Exit, Failure> {
    let BindArgs { name, namespaces, create_namespace, change } = args;
    let name = set_name(name)?;
    let way = Way::changing(ui, change);
    let hub = hub().await?;
    let namespaces = spaces(namespaces, &hub)?;
    let plan = cluster_sets::binding_plan(&hub, &name, &namespaces, create_namespace).await?;
    if way.is_real() {
        cluster_sets::check_rights_to_bind(&hub, &name, &plan).await?;
    }
    let each = |applied: &Applied| way.view.row(applied);
    cluster_sets::bind(&hub, &plan, way.dry_run, &**ui, &each).await?;
    view::finish(&way.view)
}

async fn unbind(
    args: UnbindArgs,
    hub: impl AsyncFn() -> Result<Cluster, Failure>,
    ui: &Arc<Ui>,
) -> Result<Exit, Failure> {
    let UnbindArgs { name, namespaces, removal } = args;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let name = set_name(name)?;
    let way = Way::of(ui, dry_run.into(), output);
    let hub = hub().await?;
    let namespaces = spaces(namespaces, &hub)?;
    let bound = cluster_sets::inspect_bound(&hub, &name, &namespaces).await?;
    if way.is_real() {
        cluster_sets::check_rights_to_unbind(&hub, &bound).await?;
    }
    view::tell_effects(ui, &bound.effects);
    if !bound.absent.is_empty() {
        ui.tell(Event::note(view::not_bound(&bound)));
    }
    if !bound.there.is_empty() {
        way.agreed(ui, yes, || view::about_bindings(&hub, &bound)).await?;
    }
    let each = |applied: &Applied| way.view.row(applied);
    cluster_sets::unbind(&hub, &bound, way.dry_run, &**ui, &each).await?;
    view::finish_with(&way.view, view::lost_by(&bound.effects))
}

async fn members(
    args: MembersArgs,
    into: bool,
    hub: impl AsyncFn() -> Result<Cluster, Failure>,
    ui: &Arc<Ui>,
) -> Result<Exit, Failure> {
    let MembersArgs { name, clusters, more, selector, namespaces, yes, change } = args;
    let name = set_name(name)?;
    let who = Who { names: options::cluster_names(clusters.into_iter().chain(more).collect())?, selector };
    let namespaces = options::namespaces(namespaces)?;
    let is_anybody = !who.names.is_empty() || who.selector.is_some();
    if !is_anybody && namespaces.is_empty() {
        let verb = if into { "set" } else { "unset" };
        return Err(Failure::usage("which clusters?").hint(format!(
            "name them, or say which labels they have: kubectl ocm clusterset {verb} {name} -l SELECTOR"
        )));
    }
    let way = Way::changing(ui, change);
    let hub = hub().await?;
    let moves = match (is_anybody, into) {
        (false, _) => Moves::default(),
        (true, true) => cluster_sets::moves_into(&hub, &name, &who).await?,
        (true, false) => cluster_sets::moves_out_of(&hub, &name, &who).await?,
    };
    if !moves.not_accepted.is_empty() {
        ui.tell(Event::warning(view::not_accepted(&moves.not_accepted)));
    }
    if is_anybody && moves.all.is_empty() && moves.unchanged.is_empty() && moves.not_accepted.is_empty() {
        ui.tell(Event::note(format!("no cluster has such labels ({})", hub.label())));
    }
    if way.is_real() && !moves.all.is_empty() {
        cluster_sets::check_rights_to_move(&hub, &moves).await?;
    }
    if way.is_real() && !namespaces.is_empty() {
        cluster_sets::check_rights_to_change_namespaces(&hub, &name).await?;
    }
    view::tell_effects(ui, &moves.effects);
    if moves.need_consent() {
        way.agreed(ui, yes, || view::about_clusters(&hub, &name, into, &moves)).await?;
    }
    let each = |applied: &Applied| way.view.row(applied);
    let mut managed = None;
    if !namespaces.is_empty() {
        let change = if into { NamespaceChange::Add } else { NamespaceChange::Remove };
        let change = (change, namespaces.as_slice());
        managed = Some(cluster_sets::change_namespaces(&hub, &name, change, way.dry_run, &**ui, &each).await?);
    }
    let moved = cluster_sets::move_clusters(&hub, &moves, way.dry_run, &**ui, &each).await;
    view::finish_moves(&way.view, ui, (name.as_str(), managed), &moves, moved)
}

async fn delete(
    args: DeleteArgs,
    hub: impl AsyncFn() -> Result<Cluster, Failure>,
    ui: &Arc<Ui>,
) -> Result<Exit, Failure> {
    let DeleteArgs { names, force, removal } = args;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let names = options::set_names(names)?;
    let way = Way::of(ui, dry_run.into(), output);
    let hub = hub().await?;
    let mut all = Vec::new();
    for name in &names {
        all.push(cluster_sets::inspect(&hub, name).await?);
    }
    // Nothing is touched if one of them must not go.
    let mut refused = all.iter().filter_map(|one| cluster_sets::refuse(one, force).err());
    if let Some(first) = refused.next() {
        return Err(refused.fold(first, |first, other| first.because(other)));
    }
    for one in all.iter().filter(|one| way.is_real() && one.is_there()) {
        cluster_sets::check_rights_to_delete(&hub, one).await?;
    }
    all.iter().for_each(|one| view::tell_effects(ui, &one.effects));
    let (there, absent): (Vec<&Removal>, Vec<&Removal>) = all.iter().partition(|one| one.is_there());
    for one in absent {
        ui.tell(Event::note(format!("the hub has no set of clusters {:?} ({})", one.set, hub.label())));
    }
    if !there.is_empty() {
        way.agreed(ui, yes, || view::about_sets(&hub, &there)).await?;
    }
    let each = |applied: &Applied| way.view.row(applied);
    for one in &all {
        cluster_sets::delete(&hub, one, way.dry_run, &**ui, &each).await?;
    }
    view::finish_with(&way.view, all.iter().flat_map(|one| view::lost_by(&one.effects)).collect())
}

fn set_name(name: String) -> Result<String, Failure> {
    Ok(options::set_names(vec![name])?.remove(0))
}

/// The namespaces that are meant.
fn spaces(named: Vec<String>, hub: &Cluster) -> Result<Vec<String>, Failure> {
    options::namespaces(if named.is_empty() { vec![hub.namespace.clone()] } else { named })
}
