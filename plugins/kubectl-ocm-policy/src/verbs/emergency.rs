//! The emergency exit: the API server asks no policy any more.

use std::sync::Arc;

use ocm_cli::{OutputArgs, PlanView, RemovalArgs, Ui};
use ocm_core::plan::Mode;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator};
use ocm_flows::policies::{find_asking, stop_asking};
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
    let is_there = found.is_there();
    let question = format!(
        "Take all policies of {} out of force? What they refuse or hold then passes, until the policy engine is \
         installed again.",
        hub.label()
    );
    if is_there && !yes && dry_run == DryRun::No && !ui.confirm(&question).await? {
        return Err(Failure::refused("nothing was changed"));
    }
    stop_asking(&hub, found, reason, dry_run, &*ui, |applied| view.row(applied)).await?;
    view.document(Map::new())?;
    ui.tell(Event::note(match is_there {
        true if dry_run == DryRun::No => {
            "registrations pass without policies, as far as the baseline lets them; to have policies asked again: \
             kubectl ocm install policy-engine --wait"
        }
        true => "nothing was changed",
        false => "the API server asks no policies: there was nothing to do",
    }));
    Ok(Exit::Ok)
}
