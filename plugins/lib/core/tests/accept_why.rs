//! Why a decision is what it is: what is in a cluster's way, and what its requests are to the decision.

mod common;

use common::*;
use csr_fixtures::Fixture;
use ocm_api::ManagedCluster;
use ocm_core::accept::{Chosen, Decision, Found, Judged, Options, Part, Way, decide, judged, way};
use ocm_core::csr::{Code, Request};
use ocm_rules::claim::Namespace;

/// A cluster whose name was used before, of a set and with a label that it chose itself.
fn in_everybodys_way() -> ManagedCluster {
    let mut cluster = cluster();
    let labels = [("cluster.open-cluster-management.io/clusterset", "prod"), ("env", "prod")];
    cluster.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    cluster
}

/// What was found of it, with requests.
fn found<'a>(cluster: &'a ManagedCluster, requests: &'a [&'a Request]) -> Found<'a> {
    let namespace = Namespace::Own { created: Some(at(REGISTERED - 1).as_millisecond()) };
    Found { cluster: Some(cluster), namespace, requests, ..Found::default() }
}

fn codes_of(way: &Way) -> Vec<Code> {
    way.overridden.iter().map(|refusal| refusal.code).collect()
}

#[test]
fn past_what_an_option_overrides_the_next_is_told_and_the_options_together_let_in() {
    let (cluster, request) = (in_everybodys_way(), Request::read(&asks("r", 110, &key())));
    let requests = [&request];
    let found = found(&cluster, &requests);
    let plain = Options::default();
    let told = way(CLUSTER, &found, &plain);
    assert_eq!(codes_of(&told), [Code::NameUsedBefore, Code::ClusterSet, Code::Labels]);
    let options =
        Options { reuse_name: true, as_registered: true, cluster_sets: vec!["prod".to_owned()], ..Options::default() };
    assert_eq!((&told.options, &told.decision), (&options, &lets_in(0)));
    // The request is told as what it is to that, and not to the first refusal.
    assert_eq!(told.judged, [Judged { part: Part::Approve, violations: Vec::new() }]);
    // It is what is decided with them, and the first one is what is decided without.
    assert_eq!(decide(CLUSTER, &found, &told.options), told.decision);
    assert_eq!(decide(CLUSTER, &found, &plain), Decision::Refused(told.overridden[0].clone()));
    // What was said already is not in the way.
    let told = way(CLUSTER, &found, &Options { reuse_name: true, ..Options::default() });
    assert_eq!(codes_of(&told), [Code::ClusterSet, Code::Labels]);
    // Whom a selector does not let in, its name does.
    let told = way(CLUSTER, &Found { cluster: Some(&denied()), ..Found::default() }, &in_bulk());
    assert_eq!((codes_of(&told), told.options.chosen), (vec![Code::DeniedBefore], Chosen::ByName));
    assert!(matches!(told.decision, Decision::Act { .. }), "{told:?}");
}

fn in_bulk() -> Options {
    Options { chosen: Chosen::InBulk, ..Options::default() }
}

#[test]
fn what_no_yes_overrides_ends_the_way() {
    let (cluster, one, two) =
        (in_everybodys_way(), Request::read(&asks("one", 110, &key())), Request::read(&asks("two", 120, &key())));
    let requests = [&one, &two];
    let told = way(CLUSTER, &found(&cluster, &requests), &Options::default());
    assert!(told.overridden.is_empty(), "{told:?}");
    assert_refused(&told.decision, Code::TwoKeys);
    assert_eq!(told.options, Options::default());
    let told = way(CLUSTER, &found(&cluster, &[]), &Options::default());
    assert_eq!((codes_of(&told), &told.decision), (vec![], &Decision::NoRequest));
}

#[test]
fn each_request_is_told_with_the_rules_that_it_breaks_and_what_it_is_to_the_decision() {
    let cluster = cluster();
    let mut wrong = object("wrong", 130, &Fixture::agent(CLUSTER, "a1").organization("system:masters").pem());
    wrong.spec.usages = Some(vec!["server auth".to_owned()]);
    let addon = labelled(object("addon", 140, &Fixture::addon(CLUSTER, "x").pem()), ADDON_LABEL, "x");
    let objects = [wrong, asks("right", 120, &key()), addon];
    let requests: Vec<Request> = objects.iter().map(Request::read).collect();
    let requests: Vec<&Request> = requests.iter().collect();
    let found = Found { cluster: Some(&cluster), requests: &requests, ..Found::default() };
    let told = |found: &Found<'_>, options: &Options| -> Vec<(Part, Vec<Code>)> {
        let decision = decide(CLUSTER, found, options);
        let codes = |one: Judged| (one.part, one.violations.into_iter().map(|violation| violation.code).collect());
        judged(CLUSTER, found, options, &decision).into_iter().map(codes).collect()
    };
    let [wrong, right, addon] = &told(&found, &Options::default())[..] else { panic!("three requests") };
    assert_eq!(wrong.0, Part::Asks);
    assert!(wrong.1.contains(&Code::Usages) && wrong.1.contains(&Code::ForeignOrganization), "{wrong:?}");
    assert_eq!((right, addon), (&(Part::Approve, vec![]), &(Part::Others, vec![])));

    // It was approved before.
    let approved = [concluded(asks("right", 120, &key()), "Approved")].map(|object| Request::read(&object));
    let approved: Vec<&Request> = approved.iter().collect();
    let found = Found { requests: &approved, ..found };
    assert_eq!(told(&found, &Options::default()), [(Part::StandsOn, vec![])]);

    // Whom the hub lets register clusters, and whom the user names, may ask.
    let mut asked = asks("right", 120, &key());
    ask_as(&mut asked, "ann", &[], None);
    let asked = Request::read(&asked);
    let (asked, bound) = ([&asked], ["ann".to_owned()]);
    let found = Found { requests: &asked, ..found };
    assert_eq!(told(&found, &Options::default()), [(Part::Asks, vec![Code::Requester])]);
    let mut named = Options::default();
    named.settings.requesters.push("ann".to_owned());
    assert_eq!(told(&found, &named), [(Part::Approve, vec![])]);
    let found = Found { bound_accounts: &bound, ..found };
    assert_eq!(told(&found, &Options::default()), [(Part::Approve, vec![])]);
}
