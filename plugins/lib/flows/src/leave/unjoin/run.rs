//! An unjoin: what was seen goes, in the order that leaves nothing.

use ocm_core::leave::klusterlet::Known;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator};
use ocm_kube::Cluster;

use super::definitions::definitions;
use super::klusterlet::klusterlet;
use super::operator::operator;
use super::request::{Departure, UnjoinRequest, Unjoined};
use super::seen::Seen;
use super::works::works;
use crate::leave::leaving::noted;
use crate::leave::{guest, hub};

/// Takes the agent away. `each` hears of every object.
///
/// # Errors
/// [`ocm_core::Reason::TimedOut`] with what holds it up; the failure of a request.
pub async fn unjoin(
    managed: &Cluster,
    hub: Option<&Cluster>,
    seen: &Seen,
    request: &UnjoinRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Unjoined, Failure> {
    let leaving = request.leaving;
    let each = &noted(leaving, narrator, each);
    let mut unjoined = Unjoined::default();
    if let (Some(hub), Some(held)) = (hub, &seen.held) {
        hub::drain(hub, held, leaving, narrator, each).await?;
    }
    if let (Some(guest), Some(known), DryRun::No) = (&seen.guest, &seen.known, leaving.dry_run)
        && !matches!(guest::own_namespace(guest, known).await, Ok(None))
    {
        // With the Klusterlet goes what leads there.
        narrator.tell(Event::note(format!(
            "on the managed cluster the operator's account goes last, with its namespace {:?}: if this run is interrupted, see that \
             it does",
            known.name()
        )));
    }
    if let Some(known) = &seen.known {
        klusterlet(managed, known, seen, leaving, narrator, each).await?;
    }
    let is_hosted = seen.known.as_ref().is_some_and(Known::is_hosted);
    match (&seen.guest, is_hosted) {
        (Some(guest), _) => {
            unjoined.works = works(guest, seen, request, narrator, each).await?;
            let mut departure = Departure::default();
            definitions(guest, true, seen, leaving, &mut departure, each).await?;
            unjoined.guest = departure.definitions_kept;
            if let Some(known) = &seen.known {
                guest::account(guest, known, leaving.dry_run, each).await?;
            }
        }
        (None, true) => {
            let known = seen.known.as_ref().filter(|_| leaving.dry_run == DryRun::No);
            unjoined.account_left = known.map(|known| known.name().to_owned());
        }
        (None, false) => unjoined.works = works(managed, seen, request, narrator, each).await?,
    }
    if seen.operator_goes(request) {
        unjoined.operator = operator(managed, seen, leaving, narrator, each).await?;
    }
    if let (Some(hub), Some(held)) = (hub, &seen.held) {
        unjoined.hub = Some(hub::residue(hub, held, leaving, narrator, each).await?);
    }
    Ok(unjoined)
}
