//! What has changed between reports.

mod common;

use common::{agent, healthy, on_hub, read};
use ocm_checks::changes::{Change, History};
use ocm_checks::judge::judge;
use ocm_checks::snapshot::{Observed, Snapshot, Trouble};
use ocm_core::Reason;
use serde_json::{Value, json};

/// What a report tells, in short.
fn observe(history: &mut History, snapshot: &Snapshot) -> Vec<String> {
    let short = |change: &Change| match change {
        Change::Moved { standing } => format!("{} {:?}", standing.name, standing.way),
        Change::Gone { cluster } => format!("{cluster} gone"),
        Change::Found { finding } => format!("found {}", finding.name()),
        Change::Ended { finding } => format!("ended {}", finding.name()),
        Change::Unknown { unknown } => format!("unknown {}", unknown.ids.len()),
        Change::Known { ids } => format!("known {}", ids.len()),
    };
    history.observe(snapshot, &judge(snapshot, &[])).iter().map(short).collect()
}

fn unread() -> Trouble {
    Trouble {
        reason: Reason::Unreachable,
        message: "the hub does not answer".to_owned(),
        rule: None,
        behind: String::new(),
    }
}

/// The hub denies the cluster.
fn denied() -> Snapshot {
    let mut snapshot = healthy();
    read(&mut on_hub(&mut snapshot).clusters)[0].spec.hub_accepts_client = Some(false);
    snapshot
}

#[test]
fn a_look_at_the_same_tells_nothing() {
    let mut history = History::default();
    assert_eq!(observe(&mut history, &healthy()), ["c1 Done"]);
    assert!(observe(&mut history, &healthy()).is_empty());
    // Sentences tell times.
    let mut later = healthy();
    later.observed.0 += jiff::SignedDuration::from_secs(5);
    assert!(observe(&mut history, &later).is_empty());
}

#[test]
fn what_is_found_is_told_once_and_ends_once() {
    let mut history = History::default();
    observe(&mut history, &healthy());
    let told = observe(&mut history, &denied());
    assert!(told.iter().any(|line| line.starts_with("found ") && line.ends_with(":c1")), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("c1 StoppedAt")), "{told:?}");
    assert!(observe(&mut history, &denied()).is_empty());
    let cured = observe(&mut history, &healthy());
    let ended = |line: &String| line.replace("found", "ended");
    for found in told.iter().filter(|line| line.starts_with("found ")).map(ended) {
        assert!(cured.contains(&found), "{found}: {cured:?}");
    }
    assert!(cured.contains(&"c1 Done".to_owned()), "{cured:?}");
    assert!(observe(&mut history, &healthy()).is_empty());
}

#[test]
fn what_cannot_be_looked_at_has_not_ended_and_is_not_gone() {
    let mut history = History::default();
    observe(&mut history, &denied());
    let mut blind = denied();
    on_hub(&mut blind).clusters = Observed::Trouble(unread());
    let told = observe(&mut history, &blind);
    assert!(told.iter().any(|line| line.starts_with("unknown ")), "{told:?}");
    assert!(!told.iter().any(|line| line.starts_with("ended ") || line.ends_with(" gone")), "{told:?}");
    assert!(observe(&mut history, &blind).is_empty());
    // It is found again, as it was.
    let told = observe(&mut history, &denied());
    assert!(told.iter().any(|line| line.starts_with("known ")), "{told:?}");
    assert!(!told.iter().any(|line| line.starts_with("found ")), "{told:?}");
}

#[test]
fn checks_that_cannot_be_made_are_told_once() {
    let mut history = History::default();
    observe(&mut history, &healthy());
    let mut blind = healthy();
    agent(&mut blind).identity = Observed::Trouble(unread());
    let told = observe(&mut history, &blind);
    assert!(told.iter().any(|line| line.starts_with("unknown ")), "{told:?}");
    assert!(observe(&mut history, &blind).is_empty());
    let told = observe(&mut history, &healthy());
    assert!(told.iter().any(|line| line.starts_with("known ")), "{told:?}");
}

#[test]
fn a_cluster_that_is_removed_is_gone() {
    let mut history = History::default();
    let mut hub = healthy();
    hub.managed = None;
    observe(&mut history, &hub);
    on_hub(&mut hub).clusters = Observed::Read(Vec::new());
    let told = observe(&mut history, &hub);
    assert!(told.contains(&"c1 gone".to_owned()), "{told:?}");
}

#[test]
fn a_change_is_an_object_that_says_what_it_is() {
    let mut history = History::default();
    let snapshot = healthy();
    let changes = history.observe(&snapshot, &judge(&snapshot, &[]));
    let documents: Value = serde_json::to_value(changes).expect("JSON");
    assert_eq!(documents[0]["change"], json!("moved"));
    assert_eq!(documents[0]["standing"]["name"], json!("c1"));
}
