//! The hub of a fleet.

use std::sync::Arc;

use ocm_core::fleet::options_failure;
use ocm_core::install::Options;
use ocm_core::plan::Mode;
use ocm_core::{Event, Narrator};
use ocm_kube::Cluster;

use super::outcome::{Outcome, Row};
use super::request::{HUB, Request};
use crate::install::{self, InstallError};
use crate::join::Coming;
use crate::named::OneOfMany;

/// Installs the hub, or does with its plan what the request says. Whoever waits for it hears of `coming` that it is in vain.
pub(super) async fn install(
    hub: &Cluster,
    options: &Options,
    request: &Request,
    coming: Coming,
    narrator: Arc<dyn Narrator>,
) -> Row {
    let narrator = OneOfMany::new(0, HUB, narrator);
    let (row, is_usable) = carry_out(hub, options, request, coming, &narrator).await;
    let said = match &row.outcome {
        Outcome::Failed(failure) => Event::warning(failure.to_string()),
        _ if is_usable => Event::note("it is usable"),
        _ => Event::now("it was looked at"),
    };
    narrator.end(row.outcome.word(request.mode.changes()), said);
    row
}

/// What became of it, and whether it was seen to be usable.
async fn carry_out(
    hub: &Cluster,
    options: &Options,
    request: &Request,
    coming: Coming,
    narrator: &OneOfMany,
) -> (Row, bool) {
    let wanted = install::Request {
        options: options.clone(),
        hub: None,
        internal: false,
        mode: request.mode,
        wait: true,
        timeout: request.timeout,
    };
    let mut row = Row { label: hub.label(), ..Row::default() };
    let installed = match install::install(hub, &wanted, narrator, |_, _| ()).await {
        Ok(installed) => installed,
        Err(error) => {
            coming.fail();
            row.outcome = Outcome::Failed(match error {
                InstallError::Failed(failure) => failure,
                InstallError::Options(error) => options_failure(error),
            });
            return (row, false);
        }
    };
    let is_changed = installed.applied.iter().any(|applied| applied.outcome.is_change());
    row.plan = installed.installation.plan;
    row.applied = installed.applied;
    let is_usable = matches!(installed.usable, Some(Ok(())));
    row.outcome = match installed.usable {
        Some(Err(failure)) => Outcome::Failed(failure),
        Some(Ok(())) if is_changed => Outcome::Changed,
        None if is_changed || request.mode == Mode::Render => Outcome::Changed,
        Some(Ok(())) | None => Outcome::Unchanged,
    };
    (row, is_usable)
}
