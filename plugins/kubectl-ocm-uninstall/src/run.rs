//! From arguments to the flow.

use std::sync::Arc;

use ocm_cli::{OutputArgs, PlanView, RemovalArgs, Ui, options};
use ocm_core::plan::Mode;
use ocm_core::{DryRun, Exit, Failure, baseline};
use ocm_flows::leave::Leaving;
use ocm_flows::uninstall as flow;
use ocm_kube::{ClientArgs, connect};

use crate::args::{BaselineArgs, HubArgs, PolicyEngineArgs, UninstallArgs, What};
use crate::view;

pub(crate) async fn run(arguments: UninstallArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let UninstallArgs { what, client } = arguments;
    match what {
        What::Hub(hub) => hub_command(hub, client, ui).await,
        What::Baseline(baseline) => baseline_command(baseline, client, ui).await,
        What::PolicyEngine(engine) => policy_engine_command(engine, client, ui).await,
    }
}

async fn baseline_command(arguments: BaselineArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let BaselineArgs { wait, timeout, removal } = arguments;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let timeout = options::timeout(&timeout)?;
    let dry_run = DryRun::from(dry_run);
    let view = PlanView::of(ui.clone(), Mode::Apply(dry_run), output);
    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let request = flow::Request { dry_run, wait: wait.then_some(timeout) };
    let found = flow::find_baseline(&cluster, request, &*ui).await?;
    let effects = baseline::effects(&found);
    let is_there = found.iter().any(|found| found.live.is_some());
    if is_there && dry_run == DryRun::No && !yes && !ui.confirm(&view::question(&cluster, &effects)).await? {
        return Err(Failure::refused("nothing was deleted"));
    }
    let uninstalled = flow::uninstall_baseline(&cluster, found, request, &*ui, |applied| view.row(applied)).await?;
    view::finish(&view, &ui, &cluster, &effects, uninstalled)
}

async fn policy_engine_command(arguments: PolicyEngineArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PolicyEngineArgs { purge, wait, timeout, removal } = arguments;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let timeout = options::timeout(&timeout)?;
    let dry_run = DryRun::from(dry_run);
    let view = PlanView::of(ui.clone(), Mode::Apply(dry_run), output);
    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let request = flow::EngineRequest { purge, dry_run, wait: wait.then_some(timeout) };
    let found = flow::find_policy_engine(&cluster, request, &*ui).await?;
    if found.is_there() && dry_run == DryRun::No && !yes {
        let question = view::engine_question(&cluster, purge, found.policies());
        if !ui.confirm(&question).await? {
            return Err(Failure::refused("nothing was deleted"));
        }
    }
    let is_there = found.is_there();
    let uninstalled =
        flow::uninstall_policy_engine(&cluster, found, request, &*ui, |applied| view.row(applied)).await?;
    view::finish_engine(&view, &ui, &cluster, is_there, purge, uninstalled)
}

async fn hub_command(arguments: HubArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let HubArgs { purge, timeout, removal } = arguments;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let timeout = options::timeout(&timeout)?;
    let leaving = Leaving { force: false, purge, dry_run: DryRun::from(dry_run), timeout };
    let view = PlanView::of(ui.clone(), Mode::Apply(leaving.dry_run), output);
    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let found = flow::find_hub(&cluster, leaving, &*ui).await?;
    if !found.is_there() {
        return view::no_hub(&view, &ui, &cluster);
    }
    if leaving.dry_run == DryRun::No && !yes && !ui.confirm(&view::hub_question(&cluster, &found)).await? {
        return Err(Failure::refused("nothing was deleted"));
    }
    let each = |applied: &ocm_core::Applied| view.row(applied);
    let uninstalled = flow::uninstall_hub(&cluster, &found, leaving, &*ui, &each).await?;
    view::finish_hub(&view, &ui, &found, uninstalled)
}
