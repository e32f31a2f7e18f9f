//! From arguments to the flow.

use std::sync::Arc;

use futures::StreamExt;
use ocm_cli::{OutputArgs, PlanView, RemovalArgs, Ui, options};
use ocm_core::plan::Mode;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator};
use ocm_flows::leave::{self, Held, Leaving};
use ocm_kube::{Cluster, connect};

use crate::args::DetachArgs;
use crate::view::{self, Told};

pub(crate) async fn run(args: DetachArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DetachArgs { names, force, purge, timeout, concurrency, removal, client } = args;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let names = options::cluster_names(names)?;
    let timeout = options::timeout(&timeout)?;
    let leaving = Leaving { force, purge, dry_run: DryRun::from(dry_run), timeout };
    let view = PlanView::of(ui.clone(), Mode::Apply(leaving.dry_run), output);
    let hub = connect(&client.connection()?, ui.clone()).await?;
    if leaving.dry_run == DryRun::No {
        ui.tell(Event::now("checking your rights"));
        leave::check_rights_to_detach(&hub, &names, force).await?;
    }
    let at_once = concurrency.at_once();
    let all = inspect(&hub, &names, at_once, &ui).await?;
    let there: Vec<&Held> = all.iter().filter(|held| !held.is_empty()).collect();
    refuse(&there, force, &ui)?;
    if !there.is_empty() && leaving.dry_run == DryRun::No && !yes && !ui.confirm(&view::question(&hub, &there)).await? {
        return Err(Failure::refused("nothing was deleted"));
    }
    let each = |applied: &ocm_core::Applied| view.row(applied);
    let told: Vec<Told> = futures::stream::iter(&all)
        .map(async |held| {
            let done = match held.is_empty() {
                true => Ok(None),
                false => leave::detach(&hub, held, leaving, &*ui, &each).await.map(Some),
            };
            Told { held, done }
        })
        .buffered(at_once)
        .collect()
        .await;
    view::finish(&view, &ui, &hub, told)
}

async fn inspect(hub: &Cluster, names: &[String], at_once: usize, ui: &Arc<Ui>) -> Result<Vec<Held>, Failure> {
    ui.tell(Event::now(format!("looking at {}", hub.label())));
    let found: Vec<Result<Held, Failure>> =
        futures::stream::iter(names).map(|name| leave::inspect(hub, name)).buffered(at_once).collect().await;
    found.into_iter().collect()
}

/// Nothing is touched if one of them must not go.
fn refuse(all: &[&Held], force: bool, ui: &Arc<Ui>) -> Result<(), Failure> {
    let mut refused = all.iter().filter_map(|held| leave::refuse(held, force, &**ui).err());
    let Some(first) = refused.next() else { return Ok(()) };
    Err(refused.fold(first, |first, other| {
        other.causes.iter().fold(first.because(&other.message), |first, cause| first.because(cause))
    }))
}
