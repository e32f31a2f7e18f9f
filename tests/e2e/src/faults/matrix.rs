//! Each is found as the one cause, and is no longer found once it is undone.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use control_plane::Cluster;
use serde_json::Value;

use super::fault::{Fault, Made, Of};
use super::pair::Pair;
use super::table::all;
use crate::join_support::{JoinCommand, alone, hub, hub_access, join};
use crate::shared_hub::node;
use crate::trouble_support::{KNOWN, TIME, finds, forget, is_well, read, report, restart};
use crate::{kubectl_ocm, pause_after, run, until_within};

/// What is found, of errors or, where there are none, of warnings.
fn found(pair: &Pair<'_>, fault: &Fault) -> (Value, Vec<String>) {
    let looked = |cluster: &Cluster, words: &[&str]| {
        read(&run(kubectl_ocm("troubleshoot", cluster.kubeconfig()).arg("--output=json").args(words)))
    };
    match fault.of {
        Of::Pair => report(pair.cluster, pair.hub, pair.name),
        Of::Other(name) => report(pair.cluster, pair.hub, name),
        Of::WrongHub => report(pair.cluster, pair.cluster, pair.name),
        Of::Release => looked(pair.cluster, &[pair.name, &hub_access(pair.hub)]),
        Of::Name(name) => looked(pair.hub, &[name, KNOWN]),
        Of::Fleet => looked(pair.hub, &["--all-clusters", KNOWN]),
        Of::Registering => {
            forget(pair.cluster, pair.hub, pair.name);
            report(pair.cluster, pair.hub, pair.name)
        }
    }
}

/// Whether the headline of the cluster that it is about names the cause. With a warning a cluster is where it was, and what is
/// wrong with a hub or a managed cluster as a whole is said of those that it stops.
fn is_in_headline(value: &Value) -> bool {
    let cause = &value["findings"][0];
    let (Some(summary), Some(name)) = (cause["summary"].as_str(), cause["cluster"].as_str()) else { return true };
    let clusters = value["clusters"].as_array().into_iter().flatten();
    let mut own = clusters.filter(|cluster| cluster["name"] == name);
    cause["severity"] != "error"
        || own.all(|cluster| cluster["headline"].as_str().is_some_and(|headline| headline.ends_with(summary)))
}

/// How long it took until the fault was the one cause that is found; else what was found in its place.
fn look(pair: &Pair<'_>, fault: &Fault) -> Result<Duration, String> {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        let (value, ids) = found(pair, fault);
        if ids == [fault.id] {
            let next = value["findings"][0]["next"].as_array().is_some_and(|next| !next.is_empty());
            return match (next, is_in_headline(&value)) {
                (true, true) => Ok(begun.elapsed()),
                (false, _) => Err(format!("nothing says what to do next: {value:#}")),
                (true, false) => Err(format!("the headline names something else: {:#}", value["clusters"])),
            };
        }
        if begun.elapsed() > fault.patience {
            return Err(format!("{ids:?} {:#}", value["findings"]));
        }
        pause_after(looked);
    }
}

/// What has come of the faults so far.
#[derive(Default)]
struct Told {
    table: String,
    faults: usize,
    wrong: usize,
}

impl Told {
    /// Tells of one.
    #[expect(clippy::print_stdout, reason = "who waits for a matrix sees how far it is")]
    fn tell(&mut self, fault: &Fault, looked: &Result<Duration, String>) {
        let line = match looked {
            Ok(took) => format!("found after {:.1} s", took.as_secs_f32()),
            Err(why) => format!("NOT the one cause that is found: {why}"),
        };
        self.faults += 1;
        self.wrong += usize::from(looked.is_err());
        println!("{} {}: {line}", fault.id, fault.words);
        let _ = writeln!(self.table, "{} {}: {line}", fault.id, fault.words);
    }
}

/// Whether some fault is about this word.
pub fn is_about(word: &str) -> bool {
    all().iter().any(|fault| fault.words.contains(word))
}

/// Makes each of these faults, and undoes it. Tells the result of each, and at the end of all.
///
/// # Panics
/// When none is meant, and when one is not found as the one cause, or is still found when it is undone.
#[expect(clippy::print_stdout, reason = "who waits for a matrix sees its result")]
pub fn matrix(is_meant: impl Fn(&Fault) -> bool) {
    let _alone = alone();
    let faults: Vec<Fault> = all().into_iter().filter(|fault| is_meant(fault)).collect();
    assert!(!faults.is_empty(), "no fault is meant");
    let (registering, others): (Vec<&Fault>, Vec<&Fault>) =
        faults.iter().partition(|fault| fault.of == Of::Registering);
    let mut told = Told::default();
    of_joined(&others, &mut told);
    of_registering(&registering, &mut told);
    let Told { table, faults, wrong } = told;
    println!("{} of {faults} faults found as the one cause, and none once they were undone", faults - wrong);
    assert_eq!(wrong, 0, "{table}");
}

/// Faults that are made long before anybody looks.
fn made_before<'a>(faults: Vec<&'a Fault>, pair: &Pair<'a>) -> Vec<(&'a Fault, Option<Made<'a>>)> {
    faults.into_iter().map(|fault| (fault, Some(fault.make(pair)))).collect()
}

/// The faults of a hub and of a cluster that has joined it.
fn of_joined(faults: &[&Fault], told: &mut Told) {
    if faults.is_empty() {
        return;
    }
    let (hub, cluster, name) = (hub(), node(), "f1");
    let said = join(&cluster, name, &["--wait", "--accept", &hub_access(hub)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    is_well(&cluster, hub, name);
    let pair = Pair { hub, cluster: &cluster, name };
    let (of_fleet, others): (Vec<&Fault>, Vec<&Fault>) = faults.iter().copied().partition(|fault| fault.is_of_fleet());
    let (apart, of_pair): (Vec<&Fault>, Vec<&Fault>) = others.into_iter().partition(|fault| fault.is_apart());
    // Some show only after a while, which they share. Those of names come first: API servers forget decided requests after an
    // hour. Those of the fleet come last: whoever asks about all clusters finds the others, too.
    let (first, last) = (made_before(apart, &pair), made_before(of_fleet, &pair));
    let of_pair = of_pair.into_iter().map(|fault| (fault, None));
    for (fault, made) in first.into_iter().chain(of_pair).chain(last) {
        let made = made.unwrap_or_else(|| fault.make(&pair));
        let looked = look(&pair, fault);
        made.undo();
        told.tell(fault, &looked);
        is_well(&cluster, hub, name);
        if matches!(fault.of, Of::Other(_) | Of::Fleet) {
            is_gone(&pair, fault);
        }
    }
}

/// Waits until it is no longer found.
fn is_gone(pair: &Pair<'_>, fault: &Fault) {
    let found = || found(pair, fault);
    until_within(
        TIME,
        "it is no longer found",
        || format!("{:#}", found().0["findings"]),
        || !found().1.iter().any(|id| id == fault.id),
    );
}

/// The faults of a cluster whose agent has to register.
fn of_registering(faults: &[&Fault], told: &mut Told) {
    if faults.is_empty() {
        return;
    }
    let (hub, cluster, name) = (hub(), node(), "f2");
    let said = join(&cluster, name, &JoinCommand::create(hub, &[]).flags());
    assert_eq!(said.code, Some(0), "{said:?}");
    finds(&cluster, hub, name, "OCM2205");
    let pair = Pair { hub, cluster: &cluster, name };
    for fault in faults {
        let made = fault.make(&pair);
        let looked = look(&pair, fault);
        made.undo();
        told.tell(fault, &looked);
        let found = || report(&cluster, hub, name);
        until_within(
            TIME,
            "it is no longer found",
            || format!("{:#}", found().0["findings"]),
            || !found().1.iter().any(|id| id == fault.id),
        );
    }
    restart(&cluster);
    finds(&cluster, hub, name, "OCM2205");
}
