//! From arguments to a report.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ocm_checks::finding::Id;
use ocm_checks::judge::{Report, Unknown, judge};
use ocm_checks::registry::check;
use ocm_checks::snapshot::Snapshot;
use ocm_checks::suppress::Suppression;
use ocm_cli::{Stop, Ui, options};
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, Reason, nearest};
use ocm_flows::in_cluster::InCluster;
use ocm_flows::troubleshoot::{Probed, Sides, observe, side_of};
use ocm_kube::{Connection, HubArgs, connect};

use crate::args::{FailOn, TroubleshootArgs};
use crate::{bundle, files, fix, view, watch};

/// Time between two looks.
pub(crate) const PAUSE: Duration = Duration::from_secs(3);
/// How long it goes by what the hub has answered to the credentials of agents: a token is not sent with every look.
const PROBES: Duration = Duration::from_secs(30);

/// Runs until done or interrupted. What was made to look from within a cluster is removed in any case.
pub(crate) async fn run(args: TroubleshootArgs, ui: Arc<Ui>, interrupted: Stop) -> Result<Exit, Failure> {
    let looks = InCluster::with_image(args.in_cluster_image.clone());
    let done = tokio::select! {
        done = until_done(args, ui.clone(), looks.clone()) => done,
        () = interrupted => Err(Failure::new(Reason::Interrupted, "interrupted")),
    };
    looks.remove_all(ui.as_ref()).await;
    done
}

async fn until_done(args: TroubleshootArgs, ui: Arc<Ui>, in_cluster: InCluster) -> Result<Exit, Failure> {
    let TroubleshootArgs {
        clusters,
        all_clusters,
        fail_on,
        suppress,
        wait,
        timeout,
        watch: is_watched,
        interval,
        fix,
        yes,
        dry_run,
        in_cluster: is_within,
        in_cluster_image: _,
        bundle: file,
        from,
        list,
        explain,
        output,
        hub,
        client,
    } = args;
    if list {
        view::list(&ui, output)?;
        return Ok(Exit::Ok);
    }
    if let Some(id) = explain {
        return view::explain(&ui, id_of(&id)?).map(|()| Exit::Ok);
    }
    let suppressions = suppress.read()?;
    let timeout = options::timeout(&timeout)?;
    if !from.is_empty() {
        let mut snapshot = files::read(&from, clusters, all_clusters, &ui).await?;
        name_contexts(&mut snapshot, client.context, hub.hub_context);
        let report = judge(&snapshot, &suppressions);
        view::report(&ui, output, fail_on, &snapshot, &report)?;
        report.notes.iter().for_each(|note| ui.tell(Event::note(note.clone())));
        if view::lacks_context(output, &snapshot, &report) {
            ui.tell(Event::note(
                "the commands name no context, for what was read was taken elsewhere: name yours with --context and --hub-context",
            ));
        }
        return Ok(exit(&report, fail_on));
    }
    let interval = is_watched.then(|| watch::interval(&interval, output)).transpose()?;
    let wanted = fix.map(|ids| fix::wanted(&ids, output)).transpose()?;
    let sides = sides(&client.connection()?, &hub, &ui).await?;
    if is_within && sides.managed.is_none() {
        return Err(Failure::usage("--in-cluster looks from a managed cluster, and only a hub was named")
            .hint("name both: --context MANAGED --hub-context HUB"));
    }
    let looks = Looks {
        sides,
        clusters,
        all_clusters,
        suppressions,
        probed: RefCell::default(),
        in_cluster: is_within.then_some(in_cluster),
        ui: ui.clone(),
    };
    if let Some(interval) = interval {
        return watch::run(&looks, interval, output, fail_on, &ui).await;
    }
    if let Some((only, format)) = wanted {
        let dry_run = DryRun::from(dry_run);
        let request = fix::Request { only, yes, dry_run, format, output, fail_on, wait: wait.then_some(timeout) };
        return fix::run(&looks, &request, &ui).await;
    }
    // None: later than any time that can be told.
    let until = Instant::now().checked_add(timeout);
    let (snapshot, report, exit) = loop {
        let (snapshot, report) = looks.look().await?;
        let exit = exit(&report, fail_on);
        if !wait || exit == Exit::Ok || waits_in_vain(&report, exit) {
            break (snapshot, report, exit);
        }
        if until.is_some_and(|until| until.saturating_duration_since(Instant::now()) < PAUSE) {
            break (snapshot, report, Exit::TimedOut);
        }
        ui.tell(Event::blocked("waiting for all to be well", view::headline(&report)));
        tokio::time::sleep(PAUSE).await;
    };
    // The report first: a file that cannot be written takes nothing away from it.
    view::report(&ui, output, fail_on, &snapshot, &report)?;
    report.notes.iter().for_each(|note| ui.tell(Event::note(note.clone())));
    fix::advertise(&ui, output, &snapshot, &report);
    if let Some(file) = file {
        let unreadable = bundle::write(&file, &snapshot, &report)?;
        ui.tell(Event::note(format!(
            "wrote {}: without values of Secrets and without what looks like a credential, but with names, addresses and \
             last log lines; read it before you pass it on",
            file.display()
        )));
        if let Some(why) = unreadable {
            ui.tell(Event::warning(format!("--from will not read {}: {why}", file.display())));
        }
    }
    Ok(exit)
}

/// Looks at the same clusters, one after the other.
pub(crate) struct Looks {
    pub(crate) sides: Sides,
    clusters: Vec<String>,
    all_clusters: bool,
    suppressions: Vec<Suppression>,
    /// When the hub was last asked with credentials of agents, and what it answered.
    probed: RefCell<Option<(Instant, Probed)>>,
    /// How one looks from beside the agents; none: not at all.
    in_cluster: Option<InCluster>,
    ui: Arc<Ui>,
}

impl Looks {
    /// What the clusters show now, and what that means.
    pub(crate) async fn look(&self) -> Result<(Snapshot, Report), Failure> {
        let is_known = |(at, probed): &(Instant, Probed)| {
            at.elapsed() < PROBES && !(probed.here.is_empty() && probed.in_cluster.is_empty())
        };
        let known = self.probed.borrow().clone().filter(is_known);
        let known = known.map(|(_, probed)| probed);
        let is_asked = known.is_none();
        let within = self.in_cluster.as_ref();
        let snapshot = observe(&self.sides, &self.clusters, self.all_clusters, known, within, self.ui.clone()).await?;
        if is_asked {
            let probed = Probed { here: snapshot.probes.clone(), in_cluster: snapshot.in_cluster.clone() };
            *self.probed.borrow_mut() = Some((Instant::now(), probed));
        }
        let report = judge(&snapshot, &self.suppressions);
        Ok((snapshot, report))
    }

    /// Has the hub asked anew with the next look: what it answered before counts no longer.
    pub(crate) fn forget(&self) {
        *self.probed.borrow_mut() = None;
    }
}

/// Lets commands name the contexts of whoever pastes them; those in a bundle are its author's. As where clusters are looked
/// at, --context alone is a hub or a managed cluster, whichever there is, and with both the managed cluster.
fn name_contexts(snapshot: &mut Snapshot, target: Option<String>, hub: Option<String>) {
    let (of_hub, of_managed) = match (&hub, &snapshot.managed) {
        (None, None) => (target, None),
        _ => (hub, target),
    };
    if let Some(hub) = &mut snapshot.hub {
        hub.context = of_hub;
    }
    if let Some(managed) = &mut snapshot.managed {
        managed.context = of_managed;
    }
}

/// Whether nothing is left to wait for: rights do not come by themselves.
pub(crate) fn waits_in_vain(report: &Report, exit: Exit) -> bool {
    let forbidden = |unknown: &Unknown| unknown.trouble.reason == Reason::Forbidden;
    exit == Exit::Inconclusive && report.unknown.iter().all(forbidden)
}

/// How the command ends.
pub(crate) fn exit(report: &Report, fail_on: FailOn) -> Exit {
    let Some(severity) = fail_on.least() else { return Exit::Ok };
    match report.at_least(severity).next() {
        Some(_) => Exit::Findings,
        None if !report.unknown.is_empty() => Exit::Inconclusive,
        None => Exit::Ok,
    }
}

/// Which clusters were named: with flags for the hub both, as with join.
async fn sides(plain: &Connection, hub: &HubArgs, ui: &Arc<Ui>) -> Result<Sides, Failure> {
    let target = connect(plain, ui.clone()).await?;
    if hub.is_given() {
        let hub = connect(&hub.connection(plain), ui.clone()).await?;
        return Ok(Sides { hub: Some(hub), managed: Some(target) });
    }
    side_of(target).await
}

fn id_of(text: &str) -> Result<Id, Failure> {
    let known = || ocm_checks::registry::checks().map(|check| check.id.to_string()).collect::<Vec<_>>();
    let id: Id = text
        .parse()
        .map_err(|error| Failure::usage(format!("--explain: {error}")).hint("--list prints the table of all checks"))?;
    if check(id).is_some() {
        return Ok(id);
    }
    let names = known();
    let failure = Failure::usage(format!("there is no check {id}"));
    let near = nearest(&id.to_string(), names.iter().map(String::as_str)).map(str::to_owned);
    Err(match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure,
    }
    .hint("--list prints the table of all checks"))
}

#[cfg(test)]
mod tests {
    use ocm_checks::snapshot::{HubSide, ManagedSide};

    use super::*;

    #[test]
    fn contexts_are_those_that_were_given_for_the_sides_that_there_are() {
        let named = |is_hub: bool, is_managed: bool, target: Option<&str>, hub: Option<&str>| {
            let theirs = Some("theirs".to_owned());
            let empty = serde_json::json!({"format": 1, "observed": "2026-03-01T12:00:00Z"});
            let mut snapshot: Snapshot = serde_json::from_value(empty).unwrap();
            snapshot.hub = is_hub.then(|| HubSide { context: theirs.clone(), ..HubSide::default() });
            snapshot.managed = is_managed.then(|| ManagedSide { context: theirs.clone(), ..ManagedSide::default() });
            name_contexts(&mut snapshot, target.map(str::to_owned), hub.map(str::to_owned));
            (snapshot.hub.and_then(|side| side.context), snapshot.managed.and_then(|side| side.context))
        };
        let (one, other) = (Some("one".to_owned()), Some("other".to_owned()));
        assert_eq!(named(true, true, None, None), (None, None));
        assert_eq!(named(true, false, Some("one"), None), (one.clone(), None));
        assert_eq!(named(false, true, Some("one"), None), (None, one.clone()));
        assert_eq!(named(true, true, Some("one"), Some("other")), (other, one));
    }
}
