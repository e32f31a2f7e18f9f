//! From arguments to the flow.

use std::sync::Arc;

use ocm_cli::{OutputArgs, PlanView, RemovalArgs, Ui, options};
use ocm_core::plan::Mode;
use ocm_core::{Applied, DryRun, Exit, Failure, Role, baseline};
use ocm_flows::hub_addons::{HubAddOnFound, HubAddOnRemoval, find_hub_addons, uninstall_hub_addon};
use ocm_flows::leave::Leaving;
use ocm_flows::uninstall as flow;
use ocm_kube::{ClientArgs, Cluster, connect};

use crate::args::{BaselineArgs, HubAddOnArgs, HubUninstallArgs, ModeWord, PolicyEngineArgs, UninstallArgs, What};
use crate::view;

pub(crate) async fn run(arguments: UninstallArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let UninstallArgs { what, client } = arguments;
    match what {
        What::Hub(hub) => hub_command(*hub, client, ui).await,
        What::Baseline(baseline) => baseline_command(baseline, client, ui).await,
        What::PolicyEngine(engine) => policy_engine_command(engine, client, ui).await,
        What::HubAddon(addon) => hub_addon_command(addon, client, ui).await,
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

async fn hub_command(arguments: HubUninstallArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let HubUninstallArgs { purge, timeout, mode, removal, hub } = arguments;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let timeout = options::timeout(&timeout)?;
    match (mode, hub.is_given()) {
        (Some(ModeWord::Hosted), false) => {
            return Err(Failure::usage("of a hosted hub there are two clusters")
                .hint("name the hub: --hub-context NAME or --hub-kubeconfig FILE; --context is that of its pods"));
        }
        (Some(ModeWord::Default), true) => {
            return Err(Failure::usage("--hub-context and --hub-kubeconfig go with --mode hosted")
                .hint("a hub whose pods run on itself is named by --context and --kubeconfig"));
        }
        _ => {}
    }
    let leaving = Leaving { force: false, purge, dry_run: DryRun::from(dry_run), timeout };
    let view = PlanView::of(ui.clone(), Mode::Apply(leaving.dry_run), output);
    let connection = client.connection()?;
    let cluster = connect(&connection, ui.clone()).await?;
    let itself = match hub.is_given() {
        true => Some(connect(&hub.connection(&connection), ui.clone()).await?),
        false => None,
    };
    let reached = itself.as_ref().unwrap_or(&cluster);
    let found = flow::find_hub(&cluster, itself.as_ref(), leaving, &*ui).await?;
    if !found.is_there() {
        return view::no_hub(&view, &ui, reached);
    }
    if leaving.dry_run == DryRun::No && !yes && !ui.confirm(&view::hub_question(reached, &found)).await? {
        return Err(Failure::refused("nothing was deleted"));
    }
    // Of a hosted hub, objects of the same names are on both clusters.
    let each = |cluster: &Cluster, applied: &Applied| match (itself.is_some(), cluster.role) {
        (false, _) => view.row(applied),
        (true, Role::Hub | Role::FormerHub) => view.row_on(&format!("hub, {}", cluster.label()), applied),
        (true, Role::Target | Role::Managed) => {
            view.row_on(&format!("hosting cluster, {}", cluster.label()), applied);
        }
    };
    let uninstalled = flow::uninstall_hub(&cluster, itself.as_ref(), &found, leaving, &*ui, &each).await?;
    view::finish_hub(&view, &ui, &found, uninstalled)
}

async fn hub_addon_command(arguments: HubAddOnArgs, client: ClientArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let HubAddOnArgs { names, force, delete_crds, purge, timeout, removal } = arguments;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let names = options::hub_addon_names(names)?;
    let timeout = options::timeout(&timeout)?;
    let leaving = Leaving { force, purge, dry_run: DryRun::from(dry_run), timeout };
    let removal = HubAddOnRemoval { leaving, definitions: delete_crds };
    let view = PlanView::of(ui.clone(), Mode::Apply(leaving.dry_run), output);
    let cluster = connect(&client.connection()?, ui.clone()).await?;
    let found = find_hub_addons(&cluster, &names, removal, &*ui).await?;
    let is_there = found.iter().any(HubAddOnFound::is_there);
    if is_there && leaving.dry_run == DryRun::No && !yes {
        let question = view::hub_addon_question(&cluster, &found, removal);
        if !ui.confirm(&question).await? {
            return Err(Failure::refused("nothing was deleted"));
        }
    }
    let each = |applied: &Applied| view.row(applied);
    let mut spaces = Vec::new();
    for one in &found {
        spaces.extend(uninstall_hub_addon(&cluster, one, removal, &*ui, &each).await?.namespaces_kept);
    }
    view::finish_hub_addons(&view, &ui, &cluster, &found, removal, &spaces)
}
