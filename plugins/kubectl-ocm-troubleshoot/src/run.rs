//! From arguments to a report.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use ocm_checks::finding::Id;
use ocm_checks::judge::judge;
use ocm_checks::registry::check;
use ocm_checks::snapshot::Snapshot;
use ocm_cli::{Stop, Ui, options};
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, Reason, nearest};
use ocm_flows::in_cluster::InCluster;
use ocm_flows::observe::logs::logs;
use ocm_flows::troubleshoot::{Sides, side_of};
use ocm_kube::{Connection, HubArgs, connect};

use crate::args::TroubleshootArgs;
use crate::exit::{exit, waits_in_vain};
use crate::inspection::{Inspection, PAUSE};
use crate::{bundle, files, fix, view, watch, words};

/// Runs until done or interrupted. What was made to look from within a cluster is removed in any case.
pub(crate) async fn run(args: TroubleshootArgs, ui: Arc<Ui>, interrupted: Stop) -> Result<Exit, Failure> {
    let in_cluster = InCluster::with_image(args.in_cluster_image.clone());
    let done = tokio::select! {
        done = until_done(args, ui.clone(), in_cluster.clone()) => done,
        () = interrupted => Err(Failure::new(Reason::Interrupted, "interrupted")),
    };
    in_cluster.remove_all(ui.as_ref()).await;
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
    file.as_deref().map_or(Ok(()), bundle::require_new)?;
    let interval = is_watched.then(|| watch::interval(&interval, output)).transpose()?;
    let wanted = fix.map(|ids| fix::wanted(&ids, output)).transpose()?;
    let sides = sides(&client.connection()?, &hub, &ui).await?;
    if is_within && sides.managed.is_none() {
        return Err(Failure::usage("--in-cluster looks from a managed cluster, and only a hub was named")
            .hint("name both: --context MANAGED --hub-context HUB"));
    }
    let inspection = Inspection {
        sides,
        clusters,
        all_clusters,
        suppressions,
        probed: RefCell::default(),
        in_cluster: is_within.then_some(in_cluster),
        ui: ui.clone(),
    };
    if let Some(interval) = interval {
        return watch::run(&inspection, interval, output, fail_on, &ui).await;
    }
    if let Some((only, format)) = wanted {
        let dry_run = DryRun::from(dry_run);
        let request = fix::Request { only, yes, dry_run, format, output, fail_on, wait: wait.then_some(timeout) };
        return fix::run(&inspection, &request, &ui).await;
    }
    // None: later than any time that can be told.
    let until = Instant::now().checked_add(timeout);
    let (snapshot, report, exit) = loop {
        let (snapshot, report) = inspection.inspect().await?;
        let exit = exit(&report, fail_on);
        if !wait || exit == Exit::Ok || waits_in_vain(&report, exit) {
            break (snapshot, report, exit);
        }
        if until.is_some_and(|until| until.saturating_duration_since(Instant::now()) < PAUSE) {
            break (snapshot, report, Exit::TimedOut);
        }
        ui.tell(Event::blocked("waiting for all to be well", words::headline(&report)));
        tokio::time::sleep(PAUSE).await;
    };
    // The report first: a file that cannot be written takes nothing away from it.
    view::report(&ui, output, fail_on, &snapshot, &report)?;
    report.notes.iter().for_each(|note| ui.tell(Event::note(note.clone())));
    fix::advertise(&ui, output, &snapshot, &report);
    if let Some(file) = file {
        ui.tell(Event::now("reading logs"));
        let Sides { hub, managed } = &inspection.sides;
        let logs = logs(hub.as_ref(), managed.as_ref(), &snapshot).await;
        let unreadable = bundle::write(&file, &snapshot, &report, &logs)?;
        ui.tell(Event::note(format!(
            "wrote {}: without values of Secrets and without what looks like a credential, but with names, addresses and \
             log lines, which may name other clusters; read it before you pass it on",
            file.display()
        )));
        let missing = logs.iter().filter(|log| log.log.read().is_none()).count();
        if missing > 0 {
            let all = words::count(logs.len(), "log");
            ui.tell(Event::note(format!("{missing} of {all} are not there: `logs` in the file says why")));
        }
        if let Some(why) = unreadable {
            ui.tell(Event::warning(format!("--from will not read {}: {why}", file.display())));
        }
    }
    Ok(exit)
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
