//! Each is found as the one cause, and is no longer found once it is undone.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use serde_json::Value;

use super::table::all;
use super::{Fault, Pair};
use crate::join_support::{alone, hub, hub_access, join};
use crate::trouble_support::{KNOWN, is_well, read, report};
use crate::{kubectl_ocm, pause_after, run};

/// What is found, of errors or, where there are none, of warnings.
fn found(pair: &Pair<'_>, fault: &Fault) -> (Value, Vec<String>) {
    let Some(name) = fault.of else { return report(pair.cluster, pair.hub, pair.name) };
    read(&run(kubectl_ocm("troubleshoot", pair.hub.kubeconfig()).args([name, KNOWN, "--output=json"])))
}

/// How long it took until the fault was the one cause that is found; else what was found in its place.
fn look(pair: &Pair<'_>, fault: &Fault) -> Result<Duration, String> {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        let (value, ids) = found(pair, fault);
        if ids == [fault.id] {
            let next = value["findings"][0]["next"].as_array().is_some_and(|next| !next.is_empty());
            return if next { Ok(begun.elapsed()) } else { Err(format!("nothing says what to do next: {value:#}")) };
        }
        if begun.elapsed() > fault.patience {
            return Err(format!("{ids:?} {:#}", value["findings"]));
        }
        pause_after(looked);
    }
}

/// Makes each of these faults, and undoes it. Tells the result of each, and at the end of all.
///
/// # Panics
/// When one is not found as the one cause, or is still found when it is undone.
#[expect(clippy::print_stdout, reason = "who waits for a matrix sees how far it is, and its result")]
pub fn matrix(is_meant: impl Fn(&Fault) -> bool) {
    let _alone = alone();
    let (hub, cluster, name) = (hub(), Cluster::start(&Spec::node("faults")).expect("a cluster"), "f1");
    let said = join(&cluster, name, &["--wait", "--accept", &hub_access(hub)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    is_well(&cluster, hub, name);
    let pair = Pair { hub, cluster: &cluster, name };
    let (mut table, mut wrong) = (String::new(), 0);
    let faults: Vec<Fault> = all().into_iter().filter(|fault| is_meant(fault)).collect();
    // Some show only after a while, in which the others are made.
    let (apart, of_pair): (Vec<&Fault>, Vec<&Fault>) = faults.iter().partition(|fault| fault.is_apart());
    let waiting: Vec<_> = apart.iter().map(|fault| (*fault, Some(fault.make(&pair)))).collect();
    for (fault, made) in of_pair.into_iter().map(|fault| (fault, None)).chain(waiting) {
        let made = made.unwrap_or_else(|| fault.make(&pair));
        let looked = look(&pair, fault);
        made.undo();
        let line = match &looked {
            Ok(took) => format!("found after {:.1} s", took.as_secs_f32()),
            Err(why) => format!("NOT the one cause that is found: {why}"),
        };
        wrong += usize::from(looked.is_err());
        println!("{} {}: {line}", fault.id, fault.words);
        let _ = writeln!(table, "{} {}: {line}", fault.id, fault.words);
        is_well(&cluster, hub, name);
    }
    println!(
        "{} of {} faults found as the one cause, and none once they were undone",
        faults.len() - wrong,
        faults.len()
    );
    assert_eq!(wrong, 0, "{table}");
}
