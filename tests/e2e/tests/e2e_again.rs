//! `kubectl ocm accept` decides again: after somebody answered a question, and after the hub changed under a decision.
//!
//! `cargo test -p e2e-tests --test e2e_again`; it needs no root.

use std::thread::sleep;
use std::time::Duration;

use cli_tests::Cli;
use cli_tests::terminal::Terminal;
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, Hub, accept_binary};
use e2e_tests::roles::user_with;
use ocm_core::accept::{Chosen, Options};
use ocm_core::{DryRun, Silent};
use ocm_flows::accept::{Limits, Outcome, carry_out, survey};
use ocm_flows::registry::Scope;

const REUSE: &str = "Accept it all the same? [y/N] ";
const ACCEPT: &str = "Accept this cluster? [y/N] ";
const TOLD: &str = "managedcluster/b1 refused, NameUsedBefore: a cluster of this name was here before";

/// Each question with what is typed at it, the exit code, and how it ends.
type Case = (&'static [(&'static str, &'static str)], i32, &'static str);

#[test]
fn whether_a_name_is_used_again_is_a_question() {
    let hub = Hub::start("reuse");
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
    let hub = Hub::start("bulk");
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
