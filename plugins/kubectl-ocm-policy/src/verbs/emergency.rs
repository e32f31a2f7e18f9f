//! The emergency exit: the API server asks no policy any more.

use std::sync::Arc;

use ocm_cli::{OutputArgs, PlanView, RemovalArgs, Ui};
use ocm_core::plan::Mode;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator};
use ocm_flows::policies::{Asked, find_asking, stop_asking};
use ocm_kube::connect;
use serde_json::Map;

use crate::args::hub::EmergencyArgs;

/// The most characters of a reason: it is an annotation.
const LONGEST: usize = 1024;

pub(crate) async fn run(args: EmergencyArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let EmergencyArgs { reason, removal, client } = args;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let reason = reason.trim();
    match reason.chars().count() {
        0 => return Err(Failure::usage("--reason is empty")),
        long if long > LONGEST => {
            return Err(Failure::usage(format!("--reason has {long} characters, and {LONGEST} are the most")));
        }
        _ => {}
    }
    let dry_run = DryRun::from(dry_run);
    let view = PlanView::of(ui.clone(), Mode::Apply(dry_run), output);
    let hub = connect(&client.connection()?, ui.clone()).await?;
    let found = find_asking(&hub, dry_run, &*ui).await?;
    let question = format!(
        "Take all policies of {} out of force? What they refuse or hold then passes, until the policy engine is \
         installed again.",
        hub.label()
    );
    if !yes && dry_run == DryRun::No && !ui.confirm(&question).await? {
        return Err(Failure::refused("nothing was changed"));
    }
    let asked = stop_asking(&hub, found, reason, dry_run, &*ui, |applied| view.row(applied)).await?;
    view.document(Map::new())?;
    ui.tell(Event::note(match (asked, dry_run) {
        (_, DryRun::Client | DryRun::Server) => "nothing was changed",
        (Asked::Nothing, DryRun::No) => {
            "the API server asks no policies, and no mark is left: there is no namespace of the policy engine; an installation \
             that only begins goes on"
        }
        (Asked::Policies, DryRun::No) => {
            "registrations pass without policies, as far as the baseline lets them, and the controller holds no cluster and \
             withdraws no acceptance; to have policies asked again: kubectl ocm install policy-engine --wait"
        }
        (Asked::Nobody, DryRun::No) => {
            "the API server asks no policies, and the controller holds no cluster and withdraws no acceptance; an installation \
             that is under way stops before it does. To have policies asked: kubectl ocm install policy-engine --wait"
        }
    }));
    Ok(Exit::Ok)
}
