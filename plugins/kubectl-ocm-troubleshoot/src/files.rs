//! `--from`: what files tell, in the place of clusters.

use std::sync::Arc;

use ocm_checks::facts::Facts;
use ocm_checks::snapshot::{Observed, Snapshot};
use ocm_cli::{Ui, files, words};
use ocm_core::name::is_dns_label;
use ocm_core::{Event, Failure, Narrator};
use ocm_dump::{Input, open};
use ocm_flows::troubleshoot::{Probed, Sides, observe};

use crate::args::Source;
use crate::bundle;

/// Reads a bundle, or dumps of one cluster or of both.
pub(crate) async fn read(from: &[Source], clusters: Vec<String>, all: bool, ui: &Arc<Ui>) -> Result<Snapshot, Failure> {
    let from: Vec<_> = from.iter().map(|from| (from.side, from.path.clone())).collect();
    let opened = move || from.into_iter().map(|(side, path)| open(side, &path)).collect::<Result<Vec<Input>, _>>();
    let inputs = files::beside(opened).await?;
    match inputs.iter().find_map(|input| Some((input, input.text().filter(|text| bundle::is_bundle(text))?))) {
        Some((input, _)) if inputs.len() > 1 => {
            Err(Failure::usage(format!("{} is a bundle, which is read alone", input.name)))
        }
        Some((input, text)) => {
            let mut snapshot = bundle::read(&input.name, text)?;
            if !clusters.is_empty() {
                // What was left out where nobody named it is in it, too.
                snapshot.unnamed = false;
                within(&snapshot, &clusters)?;
                snapshot.clusters = clusters;
            }
            Ok(snapshot)
        }
        None => dumps(inputs, clusters, all, ui).await,
    }
}

/// Looks at dumps as at clusters.
async fn dumps(inputs: Vec<Input>, clusters: Vec<String>, all: bool, ui: &Arc<Ui>) -> Result<Snapshot, Failure> {
    // Of an archive most is still to come.
    let dump = files::beside(move || ocm_dump::read(inputs)).await?;
    dump.notes.iter().for_each(|note| ui.tell(Event::note(words(note))));
    let names = match &dump.managed {
        None if clusters.is_empty() && !all => dump.clusters,
        _ => clusters,
    };
    let sides = Sides { hub: dump.hub, managed: dump.managed };
    // Nobody is sent a token that a dump holds.
    let mut snapshot = observe(&sides, &names, all, Some(Probed::default()), None, ui.clone()).await?;
    snapshot.clock = Some(dump.clock);
    if let Some(hub) = &mut snapshot.hub {
        // A dump does not tell at which address and by which authorities agents reach its hub: those of its API server
        // alone would make it another hub than theirs.
        hub.authorities.clear();
        // Nor when it was written, as whoever looks for what is no longer written has to know.
        hub.storage = Observed::NotAsked;
    }
    if let Some(managed) = &mut snapshot.managed {
        managed.storage = Observed::NotAsked;
    }
    Ok(snapshot)
}

/// Whether a bundle tells of these clusters.
fn within(snapshot: &Snapshot, names: &[String]) -> Result<(), Failure> {
    let facts = Facts::of(snapshot);
    // One of all clusters tells that a name is none of them, too, if it has the hub's list.
    let listed = snapshot.hub.as_ref().is_some_and(|hub| hub.clusters.read().is_some());
    let is_whole = snapshot.clusters.is_empty() && listed;
    let Some(other) = names.iter().find(|name| match is_whole {
        true => !is_dns_label(name),
        false => !facts.clusters.contains_key(name.as_str()),
    }) else {
        return Ok(());
    };
    let known: Vec<&str> = facts.clusters.keys().take(5).copied().collect();
    let failure = Failure::usage(format!("the bundle does not tell of cluster {other:?}"));
    Err(match known.as_slice() {
        [] => failure,
        known => failure.hint(format!("it tells of: {}", known.join(", "))),
    })
}
