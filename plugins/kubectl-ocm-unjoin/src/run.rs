//! From arguments to the flow.

use std::sync::Arc;

use ocm_cli::{OutputArgs, PlanView, RemovalArgs, Ui, options};
use ocm_core::plan::Mode;
use ocm_core::{DryRun, Exit, Failure};
use ocm_flows::leave::{self, Further, Leaving, UnjoinRequest, Works};
use ocm_kube::connect;

use crate::args::{UnjoinArgs, WorksArg};
use crate::view;

pub(crate) async fn run(args: UnjoinArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let UnjoinArgs {
        name,
        cluster_name,
        klusterlet,
        works,
        keep_operator,
        purge_operator,
        force,
        purge,
        timeout,
        removal,
        hub,
        further,
        client,
    } = args;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let timeout = options::timeout(&timeout)?;
    let leaving = Leaving { force, purge, dry_run: DryRun::from(dry_run), timeout };
    let request = UnjoinRequest {
        cluster: name.or(cluster_name),
        klusterlet,
        works: works.map(|works| match works {
            WorksArg::Delete => Works::Delete,
            WorksArg::Keep => Works::Keep,
        }),
        keep_operator: keep_operator || !purge_operator,
        leaving,
    };
    let view = PlanView::of(ui.clone(), Mode::Apply(leaving.dry_run), output);
    let connection = client.connection()?;
    let managed = connect(&connection, ui.clone()).await?;
    let mut hubs = Vec::new();
    for further in further.connections(&hub, &connection) {
        hubs.push(connect(&further, ui.clone()).await?);
    }
    let hub = match hub.is_given() {
        true => Some(connect(&hub.connection(&connection), ui.clone()).await?),
        false => None,
    };
    let seen = leave::see(&managed, hub.as_ref(), &request, ui.clone()).await?;
    let further = leave::see_further(&managed, hub.as_ref(), hubs, &seen, &request, ui.clone()).await?;
    if seen.is_empty() && further.given.iter().all(Further::is_empty) {
        return view::nothing(&view, &ui, &managed);
    }
    if leaving.dry_run == DryRun::No && !yes {
        let question = view::question(&managed, hub.as_ref(), &seen, &further, &request);
        if !ui.confirm(&question).await? {
            return Err(Failure::refused("nothing was deleted"));
        }
    }
    let each = |applied: &ocm_core::Applied| view.row(applied);
    leave::detach_further(&further, leaving, &*ui, &each).await?;
    let unjoined = leave::unjoin(&managed, hub.as_ref(), &seen, &request, &*ui, &each).await?;
    view::finish(&view, &ui, &seen, &further, &request, unjoined)
}
