//! `kubectl ocm accept` decides again: after somebody answered a question, and after the hub changed under a decision.
//!
//! `cargo test -p e2e-tests --test e2e again::`; it needs no root.

use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use cli_tests::Cli;
use cli_tests::terminal::Terminal;
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, accept_binary};
use e2e_tests::roles::user_with;
use e2e_tests::shared_hub::hub;
use ocm_core::accept::{Chosen, Options};
use ocm_core::{DryRun, Event, Narrator, Silent};
use ocm_flows::accept::{Denial, Limits, Outcome, carry_out, survey};
use ocm_flows::registry::Scope;

const REUSE: &str = "Accept it all the same? [y/N] ";
const ACCEPT: &str = "Accept this cluster? [y/N] ";
const TOLD: &str = "managedcluster/b1 refused, NameUsedBefore: a cluster of this name was here before";

/// Each question with what is typed at it, the exit code, and how it ends.
type Case = (&'static [(&'static str, &'static str)], i32, &'static str);

#[test]
fn whether_a_name_is_used_again_is_a_question() {
    let hub = hub();
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    let user = user.to_str().expect("text");
    hub.join("b1");
    assert_eq!(hub.accept(&["b1"]).code, 0);
    hub.remove("b1");
    sleep(Duration::from_millis(1100));
    let request = hub.join("b1");

    let cases: [Case; 7] = [
        (&[(REUSE, "n\n")], 3, TOLD),
        (&[(REUSE, "\n")], 3, TOLD),
        (&[(REUSE, "why\n")], 3, TOLD),
        (&[(REUSE, "\u{3}")], 130, "nothing was changed"),
        (&[(REUSE, "y\n"), (ACCEPT, "\u{3}")], 130, "nothing was changed"),
        (&[(REUSE, "y\n"), (ACCEPT, "n\n")], 3, "nothing was accepted"),
        (&[(REUSE, "y\n"), (ACCEPT, "y\n")], 0, "managedcluster/b1 accepted"),
    ];
    for (questions, code, words) in cases {
        let (before, cli) = (hub.versions(), Cli::new());
        let mut terminal = Terminal::run(&cli, &accept_binary(), &["b1", "--kubeconfig", user]);
        for (question, keys) in questions {
            terminal.wait_for(question);
            terminal.press(keys);
        }
        let (exit, seen) = terminal.end();
        assert_eq!(exit, code, "{questions:?}: {seen}");
        assert!(seen.contains("b1: a cluster of this name was here before") && seen.contains(words), "{seen}");
        assert!(seen.contains("Certificates of the former holder may be valid until 2"), "{seen}");
        assert_eq!(seen.matches("[y/N]").count(), questions.len(), "{seen}");
        assert_eq!(hub.versions() == before, code != 0, "{questions:?}: {seen}");
    }
    assert!(hub.accepts("b1") && hub.is("Approved", &request));
}

#[test]
fn what_holds_for_a_selector_holds_after_a_conflict_too() {
    let hub = hub();
    let connection = hub.connection();
    let limits = Limits { at_once: 1, deadline: None };
    // Looks, lets something happen that makes the approval of the request a conflict, then acts.
    let between = |name: &str, chosen: Chosen, happens: &dyn Fn()| {
        let request = hub.join(name);
        let scope = match chosen {
            Chosen::ByName => Scope::Names(vec![name.to_owned()]),
            Chosen::InBulk => Scope::All,
        };
        let options = Options { chosen, ..Options::default() };
        let mut found = hub.wait(survey(&connection, &scope, &options)).expect("a look");
        found.retain(|candidate| candidate.name == name);
        happens();
        hub.cluster.kubectl(&["label", "csr", &request, "touched=yes"]).expect("a label");
        let rows = hub.wait(carry_out(&connection, found, DryRun::No, limits, &Silent, |_| {}));
        let row = rows.into_iter().next().expect("a row");
        assert_eq!(hub.is("Approved", &request), row.outcome == Outcome::Accepted, "{row:?}");
        assert_eq!(hub.accepts(name), row.outcome == Outcome::Accepted, "{row:?}");
        row.outcome.code()
    };
    // Somebody let the cluster in and denied it; and somebody denied a request for its name.
    let cluster = |name: &str| hub.set_conditions(name, &[("HubAcceptedManagedCluster", "False")]);
    let request = |name: &str| {
        let other = hub.ask(&Ask::with(name, &Fixture::agent(name, "other")));
        hub.conclude(&other, "deny");
    };
    assert_eq!(between("c1", Chosen::InBulk, &|| cluster("c1")), "DeniedBefore");
    assert_eq!(between("c2", Chosen::InBulk, &|| request("c2")), "DeniedBefore");
    // Whoever typed the name means this very cluster.
    assert_eq!(between("c3", Chosen::ByName, &|| cluster("c3")), "Accepted");
    assert_eq!(between("c4", Chosen::ByName, &|| request("c4")), "Accepted");
    // Nothing happened but the conflict.
    assert_eq!(between("c5", Chosen::InBulk, &|| ()), "Accepted");
}

#[test]
fn who_declines_a_later_cluster_is_told_that_an_earlier_one_was_accepted() {
    let hub = hub();
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    let user = user.to_str().expect("text");
    hub.join("w1");
    let words = ["w1", "w2", "--wait", "--timeout=60s", "--output=json", "--kubeconfig", user];
    let mut terminal = Terminal::run(&Cli::new(), &accept_binary(), &words);
    terminal.wait_for(ACCEPT);
    terminal.press("y\n");
    terminal.wait_for("waiting for the certificate requests of w2");
    hub.join("w2");
    terminal.wait_for(ACCEPT);
    terminal.press("n\n");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 3, "{seen}");
    assert!(seen.contains("nothing was accepted after the first cluster"), "{seen}");
    assert!(seen.contains(r#""code": "Accepted""#) && seen.contains(r#""name": "w1""#), "{seen}");
    assert_eq!(hub.accepted(), ["w1".to_owned()].into());
}

/// What was done, as it is told to somebody who breaks off.
#[derive(Default)]
struct Done(Mutex<Vec<String>>);

impl Narrator for Done {
    fn tell(&self, event: Event) {
        if let Event::Done(what) = event {
            self.0.lock().expect("nobody panics").push(what);
        }
    }
}

#[test]
fn every_change_is_told_when_it_is_made() {
    let hub = hub();
    let connection = hub.connection();
    let look = |name: &str| {
        let scope = Scope::Names(vec![name.to_owned()]);
        hub.wait(survey(&connection, &scope, &Options::default())).expect("a look")
    };
    let (done, first) = (Done::default(), hub.join("c1"));
    // An object with much in it is not kept, but read again when it is approved.
    let note = format!("note={}", "x".repeat(5000));
    hub.cluster.kubectl(&["annotate", "csr", &first, &note]).expect("an annotation");
    let found = look("c1");
    hub.cluster.kubectl(&["label", "csr", &first, "touched=yes"]).expect("a label");
    let limits = Limits { at_once: 1, deadline: None };
    let rows = hub.wait(carry_out(&connection, found, DryRun::No, limits, &done, |_| {}));
    assert_eq!(rows[0].outcome, Outcome::Accepted);
    assert_eq!(hub.request(&first).metadata.annotations.map(|all| all["note"].len()), Some(5000));

    let second = hub.ask(&Ask::with("c1", &Fixture::agent("c1", "other")));
    let scope = Scope::Names(vec!["c1".to_owned()]);
    let denial = hub.wait(Denial::read(&connection, &scope, &Options::default(), 1)).expect("a look");
    let rows = hub.wait(denial.carry_out(&connection, "no", DryRun::No, 1, &done, |_| {}));
    assert_eq!(rows[0].outcome, Outcome::Denied);
    assert!(hub.is("Denied", &second) && !hub.accepts("c1"));
    let all = [
        format!("approved request {first}"),
        "accepted c1".to_owned(),
        "withdrew the acceptance of c1".to_owned(),
        format!("denied request {second}"),
    ];
    assert_eq!(done.0.into_inner().expect("nobody panics"), all);

    // What is asked now, under the same name, is another request than the one that was looked at.
    let third = hub.join("c3");
    hub.cluster.kubectl(&["annotate", "csr", &third, &note]).expect("an annotation");
    let found = look("c3");
    hub.cluster.kubectl(&["delete", "csr", &third]).expect("it is deleted");
    hub.ask(&Ask { name: Some(third.clone()), ..Ask::agent("c3") });
    let rows = hub.wait(carry_out(&connection, found, DryRun::No, limits, &Silent, |_| {}));
    assert_eq!(rows[0].outcome.code(), "KeyChanged");
    assert!(!hub.is("Approved", &third) && !hub.accepts("c3"));
}
