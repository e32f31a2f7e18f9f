//! `kubectl ocm addon delete`: from arguments to the flow.

use std::sync::Arc;

use ocm_cli::{OutputArgs, PlanView, RemovalArgs, Ui, WithdrawArgs, options};
use ocm_core::plan::Mode;
use ocm_core::{Applied, DryRun, Exit, Failure};
use ocm_flows::addons::{self, AddOnFound};
use ocm_flows::deliveries::Removing;
use ocm_kube::{Connection, connect};

use crate::args::DeleteArgs;
use crate::view;

pub(crate) async fn run(args: DeleteArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DeleteArgs { names, withdraw } = args;
    let WithdrawArgs { force, timeout, concurrency, removal } = withdraw;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let names = options::object_names(names, "an add-on")?;
    let removing = Removing { force, dry_run: DryRun::from(dry_run), timeout: options::timeout(&timeout)? };
    let view = PlanView::of(ui.clone(), Mode::Apply(removing.dry_run), output).with_namespaces();
    let at_once = concurrency.at_once();
    let hub = connect(connection, ui.clone()).await?;
    let all = addons::find(&hub, &names, removing, at_once, &*ui).await?;
    view::tell_found(&ui, &hub, &all);
    let is_any = all.iter().any(AddOnFound::is_there);
    if is_any && removing.dry_run == DryRun::No && !yes && !ui.confirm(&view::about_addons(&hub, &all)).await? {
        return Err(Failure::refused("nothing was deleted"));
    }
    let each = |applied: &Applied| view.row(applied);
    let mut answers = Vec::new();
    for one in &all {
        answers.push(addons::delete(&hub, one, removing, at_once, &*ui, &each).await);
    }
    view::deleted(&view, &all, answers)
}
