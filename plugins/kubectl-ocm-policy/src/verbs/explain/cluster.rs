//! Why a cluster of the hub is let in, or what keeps it out.

use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::cluster_name::check_known;
use ocm_core::explanation::explain;
use ocm_core::{Exit, Failure, Reason};
use ocm_flows::explanation::facts;
use ocm_flows::registrations::registrations;
use ocm_kube::{Cluster, connect};
use ocm_policy_rules::record::Record;

use super::view::View;
use crate::args::{AboutArgs, ExplainArgs};

pub(crate) async fn run(args: ExplainArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let ExplainArgs { kind, subjects, settings, files: _, hypothetical: _, about, record, output, client } = args;
    let name = cluster(&subjects)?;
    let AboutArgs { operation, as_user, now, evidence } = &about;
    let unused = [
        ("--kind", kind.kind.is_some()),
        ("--settings", settings.is_some()),
        ("--operation", operation.is_some()),
        ("--as-user", *as_user != AboutArgs::USER),
        ("--now", now.is_some()),
        ("--evidence", !evidence.is_empty()),
    ];
    if let Some((flag, _)) = unused.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!("{flag} is for modules that are evaluated on a request"))
            .hint("leave it out, or name the request with -f FILE"));
    }
    let hub = connect(&client.connection()?, ui.clone()).await?;
    if record {
        ui.out(&replayable(&hub, name).await?);
        return Ok(Exit::Ok);
    }
    let explanation = explain(&facts(&hub, name).await?);
    View { ui: &ui, format: output.output }.show(&explanation)?;
    // It was asked for the why, and that was found, whatever the answer.
    Ok(Exit::Ok)
}

/// The one cluster that is named. What cannot be a cluster is taken for a module.
pub(super) fn cluster(subjects: &[String]) -> Result<&str, Failure> {
    const WITH_A_FILE: &str = "to evaluate modules on a request, add -f FILE";
    match subjects {
        [name] => match check_known(name) {
            Ok(()) => Ok(name),
            Err(error) => Err(error.failure().hint(WITH_A_FILE)),
        },
        _ => Err(Failure::usage("one cluster is explained at a time").hint(WITH_A_FILE)),
    }
}

/// The record of the last decision, as a line.
async fn replayable(hub: &Cluster, name: &str) -> Result<String, Failure> {
    let row = registrations(hub, &[name.to_owned()], None).await?.pop();
    let decision = row.and_then(|row| row.status.decision);
    let none = |why: &str| Failure::new(Reason::NotFound, format!("no record is kept of {name}")).because(why);
    let decision = decision.ok_or_else(|| none("no policy was evaluated for it"))?;
    let record = decision.record.ok_or_else(|| none("no policy decided, or its record is larger than 64 KiB"))?;
    match serde_json::from_str::<Record>(&record) {
        Ok(_) => Ok(record + "\n"),
        Err(error) => Err(Failure::other(format!("the record of {name} cannot be read")).because(error)),
    }
}
