//! The decision about a cluster: every branch, with right requests and the ones that must not get through.

mod common;

use common::*;
use csr_fixtures::{Fixture, Key, Kind};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::registration::RegistrationKey;
use ocm_core::accept::{Chosen, Decision, Found, Help, Options, Refusal, another_requester, decide, is_denied, noted};
use ocm_core::csr::{Code, Request, Settings};
use ocm_rules::claim::Namespace;

#[test]
fn a_right_request_lets_a_cluster_in() {
    assert_eq!(decided(&cluster(), &[asks("r", 110, &key())]), lets_in(0));
    assert_eq!(decided(&cluster(), &[asks("r", REGISTERED, &key())]), lets_in(0), "in the same second");
    // An agent keeps its key and its request when the hub's administrator deletes the cluster and it registers again.
    assert_eq!(decided(&cluster(), &[asks("r", 90, &key())]), lets_in(0));
    let decision = decided(&accepted(), &[asks("r", 110, &key())]);
    assert_eq!(decision, Decision::Act { approve: Some(0), stands_on: Some(0), accept: false });
}

#[test]
fn nothing_is_done_without_a_cluster_or_a_request() {
    let request = Request::read(&asks("r", 110, &key()));
    let found = Found { requests: &[&request], ..Found::default() };
    let nobody = decide(CLUSTER, &found, &Options::default());
    assert_refused(&nobody, Code::NoManagedCluster);
    assert_eq!(decided(&cluster(), &[]), Decision::NoRequest);
    assert_eq!(decided(&accepted(), &[]), Decision::Settled { stray: vec![] });
    let of_another = labelled(asks("r", 110, &key()), LABEL, "c2");
    // The label is a claim: by its name it asks for this cluster.
    assert_refused(&decided(&cluster(), &[of_another]), Code::ClusterLabel);
}

#[test]
fn a_cluster_that_is_being_removed_is_left_alone() {
    let mut cluster = cluster();
    cluster.metadata.deletion_timestamp = Some(Time(at(150)));
    assert_refused(&decided(&cluster, &[asks("r", 110, &key())]), Code::Detaching);
}

#[test]
fn names_of_the_hub_are_not_given_away() {
    let request =
        |name: &str| Request::read(&labelled(object("r", 110, &Fixture::agent(name, "a1").pem()), LABEL, name));
    let of = |name: &str, namespace| {
        let (cluster, request) = (cluster(), request(name));
        let found = Found { cluster: Some(&cluster), namespace, requests: &[&request], ..Found::default() };
        decide(name, &found, &Options::default())
    };
    let own = Namespace::Own { created: Some(at(REGISTERED + 1).as_millisecond()) };
    for name in ["default", "kube-system", "kube-x", "open-cluster-management", "managed-clusters", "cluster-proxy"] {
        assert_refused(&of(name, Namespace::Absent), Code::NameReserved);
        assert_refused(&of(name, own), Code::NameReserved);
    }
    assert_refused(&of("shop", Namespace::Foreign), Code::NamespaceTaken);
    assert_eq!(of("shop", own), lets_in(0));
    // Names of agents of such a cluster would begin as those of add-ons do.
    assert_refused(&of("cluster", Namespace::Absent), Code::NameReserved);
}

#[test]
fn two_keys_for_one_name_wait_for_a_person() {
    let (one, two) = (key(), key());
    let both = [asks("one", 110, &one), asks("two", 120, &two)];
    assert_refused(&decided(&cluster(), &both), Code::TwoKeys);
    assert_eq!(decide_with(&cluster(), &both, &naming(&one)), lets_in(0));
    assert_eq!(decide_with(&cluster(), &both, &naming(&two)), lets_in(1));
    assert_refused(&decide_with(&cluster(), &both, &naming(&key())), Code::NoSuchKey);
    assert_refused(&decide_with(&cluster(), &both, &replacing()), Code::TwoKeys);
    // One key may ask twice; the newer request counts.
    assert_eq!(decided(&cluster(), &[asks("one", 110, &one), asks("again", 120, &one)]), lets_in(1));
    assert_eq!(decided(&cluster(), &[asks("again", 120, &one), asks("one", 110, &one)]), lets_in(0));
}

#[test]
fn wrong_requests_are_refused_and_not_in_the_way_of_right_ones() {
    let right = key();
    let greedy = Fixture::agent(CLUSTER, "a1").organization("system:masters");
    let wrong = object("wrong", 120, &greedy.pem());
    assert_refused(&decided(&cluster(), std::slice::from_ref(&wrong)), Code::ForeignOrganization);
    assert_eq!(decided(&accepted(), std::slice::from_ref(&wrong)), Decision::Settled { stray: vec![0] });
    assert_eq!(decided(&cluster(), &[wrong.clone(), asks("r", 110, &right)]), lets_in(1));
    // Somebody asks with the public key of the right request, which it cannot sign with.
    let copied = object("copied", 120, &Fixture::agent(CLUSTER, "a1").key(&right).signed_by(&key()).pem());
    assert_eq!(decided(&cluster(), &[asks("r", 110, &right), copied.clone()]), lets_in(0));
    assert_eq!(decide_with(&cluster(), &[asks("r", 110, &right), copied.clone()], &naming(&right)), lets_in(0));
    assert_refused(&decide_with(&cluster(), &[copied], &naming(&right)), Code::Signature);
    // A fingerprint says which request is meant, not that it is right.
    let named = Options { fingerprint: Request::read(&wrong).fingerprint(), ..replacing() };
    assert_refused(&decide_with(&cluster(), &[wrong], &named), Code::ForeignOrganization);
}

#[test]
fn a_taken_name_goes_to_another_key_only_when_that_is_said() {
    let holder = concluded(asks("holder", 110, &key()), "Approved");
    let new = asks("new", 300, &key());
    for objects in [vec![holder.clone(), new.clone()], vec![new.clone()]] {
        let last = objects.len() - 1;
        let decision = decide_with(&joined(120), &objects, &replacing());
        assert_eq!(decision, Decision::Act { approve: Some(last), stands_on: Some(last), accept: false });
        // The cluster is well; whoever else asks is left alone, unless that one is named.
        assert_eq!(decided(&joined(120), &objects), Decision::Settled { stray: vec![last] });
        let named = Options { fingerprint: Request::read(&new).fingerprint(), ..Options::default() };
        assert_refused(&decide_with(&joined(120), &objects, &named), Code::NameTaken);
    }
    // Nobody has joined yet, but a certificate is on its way to another key.
    let both = [holder.clone(), new.clone()];
    assert_refused(&decided(&cluster(), &both), Code::NameTaken);
    assert_eq!(decided(&accepted(), &both), Decision::Settled { stray: vec![1] });
    let the_holder = Options { fingerprint: Request::read(&holder).fingerprint(), ..Options::default() };
    let later = Decision::Act { approve: None, stands_on: Some(0), accept: true };
    assert_eq!(decide_with(&cluster(), &both, &the_holder), later);
    // A signer of others gives no identity on the hub: what it signs holds no name.
    let mut foreign = holder.clone();
    foreign.spec.signer_name = "example.com/foo".to_owned();
    assert_eq!(decided(&cluster(), &[foreign, new.clone()]), lets_in(1));
    // What was approved under the name's label for something else holds no name.
    let other = object("other", 110, &Fixture::agent("c2", "a1").pem());
    assert_eq!(decided(&cluster(), &[concluded(other, "Approved"), new]), lets_in(1));
}

#[test]
fn only_the_holder_itself_may_ask_again() {
    let mine = key();
    let first = concluded(asks("first", 110, &mine), "Approved");
    let again = asks("again", 300, &mine);
    let goes_on = Decision::Act { approve: Some(1), stands_on: Some(1), accept: false };
    assert_eq!(decided(&joined(120), &[first.clone(), again.clone()]), goes_on);
    // Its key was approved for the name, but in a registration that is over.
    let before = concluded(asks("before", 90, &mine), "Approved");
    let stray = Decision::Settled { stray: vec![1] };
    assert_eq!(decided(&joined(120), &[before, again.clone()]), stray);
    // It was approved after another one had joined.
    let after = concluded(asks("after", 200, &mine), "Approved");
    assert_eq!(decided(&joined(120), &[after, again.clone()]), stray);
    // It was approved for something else.
    let other = object("other", 110, &Fixture::agent("c2", "a1").key(&mine).pem());
    assert_eq!(decided(&joined(120), &[concluded(other, "Approved"), again]), stray);
}

#[test]
fn what_is_over_is_no_obstacle() {
    let new = asks("new", 110, &key());
    for end in ["Denied", "Failed"] {
        let old = concluded(asks("old", 90, &key()), end);
        assert_eq!(decided(&cluster(), &[old.clone(), new.clone()]), lets_in(1), "{end}");
        assert_eq!(decided(&cluster(), &[old]), Decision::NoRequest, "{end}");
    }
    // A denial of this registration does not bind a person who looks again, either.
    assert_eq!(decided(&cluster(), &[concluded(asks("old", 105, &key()), "Denied"), new]), lets_in(1));
}

#[test]
fn addons_and_renewals_are_others_business() {
    let new = asks("new", 110, &key());
    let addon = labelled(object("addon", 115, &Fixture::addon(CLUSTER, "x").pem()), ADDON_LABEL, "x");
    let mut renewal = asks("renewal", 116, &key());
    ask_as(&mut renewal, "system:open-cluster-management:c1:a1", &["system:authenticated"], Some("X509SHA256=2d"));
    assert_eq!(decided(&cluster(), &[addon.clone(), renewal.clone(), new]), lets_in(2));
    assert_eq!(decided(&cluster(), &[addon.clone(), renewal.clone()]), Decision::NoRequest);
    assert_eq!(decided(&accepted(), &[addon.clone(), renewal.clone()]), Decision::Settled { stray: vec![] });
    let approved = [concluded(addon, "Approved"), concluded(renewal, "Approved")];
    assert_eq!(decided(&cluster(), &approved), Decision::NoRequest);
    // An agent's request that is labelled as an add-on's is judged as what it is, and is wrong.
    let hidden = labelled(asks("hidden", 115, &key()), ADDON_LABEL, "x");
    assert_refused(&decided(&cluster(), std::slice::from_ref(&hidden)), Code::AddonLabel);
    assert_eq!(decided(&cluster(), &[hidden, asks("new", 110, &key())]), lets_in(1));
    // Another cluster's agent is no agent that renews.
    let mut foreign = asks("foreign", 116, &key());
    ask_as(&mut foreign, "system:open-cluster-management:c2:a1", &["system:authenticated"], Some("X509SHA256=2d"));
    assert_refused(&decided(&cluster(), &[foreign]), Code::OtherAgent);
}

#[test]
fn an_approved_request_lets_a_cluster_in_later() {
    let mine = key();
    let approved = concluded(asks("r", 110, &mine), "Approved");
    let later = Decision::Act { approve: None, stands_on: Some(0), accept: true };
    assert_eq!(decided(&cluster(), std::slice::from_ref(&approved)), later);
    assert_eq!(decide_with(&cluster(), std::slice::from_ref(&approved), &naming(&mine)), later);
    assert_eq!(decide_with(&cluster(), std::slice::from_ref(&approved), &naming(&key())), Decision::NoRequest);
    // Two keys were approved: only a person can tell which one is meant.
    let two = [approved.clone(), concluded(asks("s", 111, &key()), "Approved")];
    assert_refused(&decided(&cluster(), &two), Code::NameTaken);
    assert_eq!(decide_with(&cluster(), &two, &naming(&mine)), later);
    // Somebody approved what should not have been.
    let wrong = object("wrong", 110, &Fixture::agent(CLUSTER, "a1").organization("system:masters").pem());
    let wrong = concluded(wrong, "Approved");
    assert_refused(&decided(&cluster(), &[wrong]), Code::ForeignOrganization);
    // Approved and denied is denied.
    let both = concluded(approved, "Denied");
    assert_refused(&decided(&cluster(), &[both]), Code::RequestDenied);
}

#[test]
fn what_was_denied_or_failed_stays_so() {
    assert_refused(&decided(&cluster(), &[concluded(asks("r", 110, &key()), "Denied")]), Code::RequestDenied);
    let failed = concluded(concluded(asks("r", 110, &key()), "Approved"), "Failed");
    assert_refused(&decided(&cluster(), &[failed]), Code::RequestFailed);
    let newest = [concluded(asks("old", 110, &key()), "Approved"), concluded(asks("new", 120, &key()), "Denied")];
    let decision = decided(&cluster(), &newest);
    assert_eq!(decision, Decision::Act { approve: None, stands_on: Some(0), accept: true }, "the approved one counts");
}

#[test]
fn a_cluster_that_was_denied_after_it_joined_is_let_in_again_with_the_key_that_it_has() {
    let with_what_it_has = Decision::Act { approve: None, stands_on: None, accept: true };
    assert_eq!(decided(&denied(), &[]), with_what_it_has);
    // It never joined, or nobody ever let it in: then it has no certificate.
    let never = with_condition(cluster(), "HubAcceptedManagedCluster", "False", 130);
    assert_eq!(decided(&never, &[]), Decision::NoRequest);
    let forged = with_condition(cluster(), "ManagedClusterJoined", "True", 130);
    assert_eq!(decided(&forged, &[]), Decision::NoRequest);
    // What strangers ask for, or asked for, is no obstacle and gives them nothing.
    assert_eq!(decided(&denied(), &[concluded(asks("r", 140, &key()), "Denied")]), with_what_it_has);
    let stranger = asks("r", 140, &key());
    assert_eq!(decided(&denied(), std::slice::from_ref(&stranger)), with_what_it_has);
    let mine = key();
    let own = concluded(asks("own", 110, &mine), "Approved");
    let on_its_own = Decision::Act { approve: None, stands_on: Some(0), accept: true };
    assert_eq!(decided(&denied(), &[own.clone(), stranger.clone()]), on_its_own);
    assert_eq!(decided(&denied(), &[own.clone(), stranger.clone(), asks("again", 150, &mine)]), lets_in(2));
    // Who names the stranger's key is told which keys there are.
    let named = Options { fingerprint: Request::read(&stranger).fingerprint(), ..Options::default() };
    let Decision::Refused(refusal) = decide_with(&denied(), &[own, stranger], &named) else { panic!("it is refused") };
    let asks_for_it = named.fingerprint.into_iter().collect();
    assert_eq!(refusal.help, Some(Help::Replace { asks: asks_for_it, holds: vec![mine.fingerprint()] }));
    // Another key was approved since.
    let approved = concluded(asks("r", 140, &key()), "Approved");
    assert_refused(&decided(&denied(), std::slice::from_ref(&approved)), Code::NameTaken);
    let replaced = decide_with(&denied(), &[approved], &replacing());
    assert_eq!(replaced, Decision::Act { approve: None, stands_on: Some(0), accept: true });
    assert_eq!(decide_with(&denied(), &[], &naming(&key())), Decision::NoRequest);
}

#[test]
fn what_an_administrator_allows_is_allowed_exactly() {
    let mut by_eva = asks("r", 110, &key());
    ask_as(&mut by_eva, "eva", &["system:authenticated"], None);
    let allowing = |user: &str| Options {
        settings: Settings { requesters: vec![user.to_owned()], ..Settings::default() },
        ..Options::default()
    };
    assert_refused(&decided(&cluster(), std::slice::from_ref(&by_eva)), Code::Requester);
    assert_eq!(decide_with(&cluster(), std::slice::from_ref(&by_eva), &allowing("eva")), lets_in(0));
    for other in ["ev", "eva2", "Eva", "", "*"] {
        let decision = decide_with(&cluster(), std::slice::from_ref(&by_eva), &allowing(other));
        assert_refused(&decision, Code::Requester);
    }
    let mut long = asks("r", 110, &key());
    long.spec.expiration_seconds = Some(31_536_001);
    let longer = Options {
        settings: Settings { max_lifetime_seconds: 31_536_001, ..Settings::default() },
        ..Options::default()
    };
    assert_refused(&decided(&cluster(), std::slice::from_ref(&long)), Code::Lifetime);
    assert_eq!(decide_with(&cluster(), &[long], &longer), lets_in(0));
}

#[test]
fn accounts_that_the_hub_lets_register_may_ask_and_need_their_tokens() {
    let mut object = asks("r", 110, &key());
    ask_as_service_account(&mut object, "ocm", "agent-registration-bootstrap");
    let decided = |object: &CertificateSigningRequest, bound: &[&str]| {
        let bound: Vec<String> = bound.iter().map(|account| format!("system:serviceaccount:{account}")).collect();
        let (request, cluster) = (Request::read(object), cluster());
        let requests = [&request];
        let found = Found { cluster: Some(&cluster), requests: &requests, bound_accounts: &bound, ..Found::default() };
        decide(CLUSTER, &found, &Options::default())
    };
    assert_eq!(decided(&object, &["ocm:agent-registration-bootstrap"]), lets_in(0));
    for other in [&[][..], &["ocm:agent"], &["other:agent-registration-bootstrap"]] {
        assert_refused(&decided(&object, other), Code::Requester);
    }
    object.spec.uid = None;
    assert_refused(&decided(&object, &["ocm:agent-registration-bootstrap"]), Code::Impersonated);
}

#[test]
fn an_approved_request_counts_by_its_approval_not_by_its_age() {
    // The agent asked before it registered, and a person approved after.
    let mut early = asks("r", 90, &key());
    conclude_at(&mut early, "Approved", 110);
    let later = Decision::Act { approve: None, stands_on: Some(0), accept: true };
    assert_eq!(decided(&cluster(), &[early]), later);
}

#[test]
fn a_name_that_was_used_before_needs_a_word() {
    let reuse = Options { reuse_name: true, ..Options::default() };
    let old = concluded(asks("old", 90, &key()), "Approved");
    let both = [old.clone(), asks("new", 110, &key())];
    assert_refused(&decided(&cluster(), &both), Code::NameUsedBefore);
    assert_eq!(decide_with(&cluster(), &both, &reuse), lets_in(1));
    // The former holder has no need to ask.
    assert_eq!(decided(&cluster(), std::slice::from_ref(&old)), Decision::NoRequest);
    let request = Request::read(&asks("new", 110, &key()));
    let requests = [&request];
    let with = |namespace, role_created, options: &Options| {
        let cluster = cluster();
        decide(
            CLUSTER,
            &Found { cluster: Some(&cluster), namespace, role_created, requests: &requests, ..Found::default() },
            options,
        )
    };
    let own = |second| Namespace::Own { created: Some(at(second).as_millisecond()) };
    assert_eq!(with(own(REGISTERED), Some(at(REGISTERED)), &Options::default()), lets_in(0));
    for decision in [
        with(own(REGISTERED - 1), None, &Options::default()),
        with(Namespace::Absent, Some(at(REGISTERED - 1)), &Options::default()),
    ] {
        assert_refused(&decision, Code::NameUsedBefore);
        let Decision::Refused(refusal) = decision else { continue };
        let year_later = at(REGISTERED + 31_536_000);
        assert_eq!(refusal.help, Some(Help::ReuseName(Some(year_later))));
    }
    assert_eq!(with(own(REGISTERED - 1), None, &reuse), lets_in(0));
}

#[test]
fn a_name_is_used_as_long_as_the_controller_has_noted_keys_of_another_cluster() {
    let request = Request::read(&asks("new", 110, &key()));
    let (waits, requests) = (cluster(), [&request]);
    let with = |cluster: &ocm_api::ManagedCluster, registration, second, options: &Options| {
        let (cluster, now) = (Some(cluster), Some(at(second)));
        let found = Found { cluster, requests: &requests, registration: Some(registration), now, ..Found::default() };
        decide(CLUSTER, &found, options)
    };
    let of = |uid: &'static str, ends: &[&str]| noted(Some(uid), ends.iter().copied());
    let end = at(7200).to_string();
    let other = of("0", &[&at(150).to_string(), &end]);
    // Neither a namespace nor a role nor a request of the other one is left.
    let refused = with(&waits, other, 7199, &Options::default());
    let detail = format!("a cluster of this name was here before: its certificates may be valid until {end}");
    let help = Some(Help::ReuseName(Some(at(7200))));
    let refusal = Refusal { code: Code::NameUsedBefore, detail, help, is_decided: false };
    assert_eq!(refused, Decision::Refused(refusal));
    let in_bulk = Options { chosen: Chosen::InBulk, ..Options::default() };
    assert_refused(&with(&waits, other, 7199, &in_bulk), Code::NameUsedBefore);
    let reuse = Options { reuse_name: true, ..Options::default() };
    assert_eq!(with(&waits, other, 7199, &reuse), lets_in(0));
    // They have ended, it has none, or they are its own.
    assert_eq!(with(&waits, other, 7200, &Options::default()), lets_in(0));
    assert_eq!(with(&waits, of("0", &[]), 7199, &Options::default()), lets_in(0));
    assert_eq!(with(&waits, of("1", &[&end]), 7199, &Options::default()), lets_in(0));
    // What nobody can read never ends.
    let unknown = with(&waits, of("0", &["soon"]), 7200, &Options::default());
    assert_refused(&unknown, Code::NameUsedBefore);
    assert!(matches!(unknown, Decision::Refused(Refusal { help: Some(Help::ReuseName(None)), .. })), "{unknown:?}");
    // A cluster that has joined holds the name itself.
    let again = with(&joined(120), other, 7199, &Options::default());
    assert!(!matches!(&again, Decision::Refused(refusal) if refusal.code == Code::NameUsedBefore), "{again:?}");
}

#[test]
fn a_cluster_without_a_request_is_accepted_only_when_that_is_said() {
    let without = Options { without_request: true, ..Options::default() };
    let act = Decision::Act { approve: None, stands_on: None, accept: true };
    assert_eq!(decided(&cluster(), &[]), Decision::NoRequest);
    assert_eq!(decide_with(&cluster(), &[], &without), act);
    // Requests that break rules are not in its way; one that waits and is right is decided about as ever.
    let wrong = object("wrong", 120, &Fixture::agent(CLUSTER, "a1").organization("system:masters").pem());
    assert_eq!(decide_with(&cluster(), &[wrong], &without), act);
    // One that was approved is an identity on the hub; whatever the user says, nothing is built on it.
    let granted = concluded(asks("greedy", 120, &key()), "Approved");
    let greedy = Fixture::agent(CLUSTER, "a1").organization("platform-admins").pem();
    let granted = [CertificateSigningRequest { spec: object("greedy", 120, &greedy).spec, ..granted }];
    assert_refused(&decided(&cluster(), &granted), Code::ForeignOrganization);
    assert_refused(&decide_with(&cluster(), &granted, &without), Code::ForeignOrganization);
    let both = [asks("one", 110, &key()), asks("two", 120, &key())];
    assert_refused(&decide_with(&cluster(), &both, &without), Code::TwoKeys);
    assert_refused(
        &decide_with(&cluster(), &[concluded(asks("r", 110, &key()), "Denied")], &without),
        Code::RequestDenied,
    );
}

#[test]
fn of_a_key_that_has_no_request_any_more_a_cluster_is_accepted_whatever_others_ask_for() {
    let own = key();
    let named = Options { fingerprint: Some(own.fingerprint()), ..Options::default() };
    let without = Options { without_request: true, ..named.clone() };
    let act = Decision::Act { approve: None, stands_on: None, accept: true };
    assert_eq!(decide_with(&cluster(), &[], &named), Decision::NoRequest);
    assert_eq!(decide_with(&cluster(), &[], &without), act);
    // A stranger's request waits on, unapproved.
    let stranger = asks("stranger", 110, &key());
    assert_refused(&decide_with(&cluster(), std::slice::from_ref(&stranger), &named), Code::NoSuchKey);
    assert_eq!(decide_with(&cluster(), std::slice::from_ref(&stranger), &without), act);
    // One that was approved has a certificate of the name.
    let granted = [concluded(stranger, "Approved")];
    assert_refused(&decide_with(&cluster(), &granted, &without), Code::NameTaken);
    // Somebody else has accepted it meanwhile.
    let waits = [asks("stranger", 110, &key())];
    assert_eq!(decide_with(&accepted(), &waits, &without), Decision::Settled { stray: vec![0] });
    // Its own is decided about as ever.
    let waits = [asks("own", 110, &own)];
    assert_eq!(decide_with(&cluster(), &waits, &without), lets_in(0));
    let denied = [concluded(asks("own", 110, &own), "Denied")];
    assert_refused(&decide_with(&cluster(), &denied, &without), Code::RequestDenied);
}

#[test]
fn a_key_that_the_agent_itself_has_lost_is_in_the_way_of_no_key_and_a_strangers_is() {
    let (lost, own, stranger) = (key(), key(), key());
    let granted = |name: &str, key: &Key| concluded(asks(name, 105, key), "Approved");
    let former = Options { former: vec![lost.fingerprint()], ..naming(&own) };
    let requests = [granted("lost", &lost), asks("own", 110, &own)];
    assert_refused(&decide_with(&cluster(), &requests, &naming(&own)), Code::NameTaken);
    assert_eq!(decide_with(&cluster(), &requests, &former), lets_in(1));
    let besides = [requests.to_vec(), vec![granted("stranger", &stranger)]].concat();
    assert_refused(&decide_with(&cluster(), &besides, &former), Code::NameTaken);
    // Whoever has joined holds a certificate, and has lost nothing.
    assert_refused(&decide_with(&joined(120), &requests, &former), Code::NameTaken);
}

#[test]
fn of_a_cluster_that_is_meant_by_its_uid_no_other_one_gets_its_place() {
    let mut there = cluster();
    there.metadata.uid = Some("2".to_owned());
    let of = |uid: &str| Options { uid: Some(uid.to_owned()), ..Options::default() };
    let requests = [asks("r", 110, &key())];
    assert_eq!(decide_with(&there, &requests, &of("2")), lets_in(0));
    assert_refused(&decide_with(&there, &requests, &of("1")), Code::NameUsedBefore);
    there.metadata.uid = None;
    assert_refused(&decide_with(&there, &requests, &of("1")), Code::NameUsedBefore);
}

#[test]
fn a_denied_cluster_is_let_in_by_its_name_only() {
    let in_bulk = Options { chosen: Chosen::InBulk, ..Options::default() };
    assert_refused(&decide_with(&denied(), &[], &in_bulk), Code::DeniedBefore);
    // It was never accepted; its request was denied, and it asks again with another key.
    let (mut no, again) = (right(), object("again", 20, &Fixture::agent(CLUSTER, "a1").pem()));
    conclude_at(&mut no, "Denied", REGISTERED + 5);
    assert_refused(&decide_with(&cluster(), &[no.clone(), again.clone()], &in_bulk), Code::DeniedBefore);
    assert_eq!(decide_with(&cluster(), &[no.clone(), again.clone()], &Options::default()), lets_in(1));
    // What was denied before it registered is another cluster's.
    no.status = None;
    conclude_at(&mut no, "Denied", REGISTERED - 5);
    assert_eq!(decide_with(&cluster(), &[no, again], &in_bulk), lets_in(1));
    // Also before the hub has acted on the denial.
    let mut now = with_condition(joined(120), "HubAcceptedManagedCluster", "True", 115);
    now.spec.hub_accepts_client = Some(false);
    assert_refused(&decide_with(&now, &[], &in_bulk), Code::DeniedBefore);
}

#[test]
fn what_the_controller_has_noted_of_a_denial_counts_when_the_hub_tells_nothing_of_it_any_more() {
    let in_bulk = Options { chosen: Chosen::InBulk, ..Options::default() };
    let (waits, let_in, asks, mut no) = (cluster(), accepted(), asks("again", 110, &key()), right());
    let (again, approved) = (Request::read(&asks), Request::read(&concluded(asks.clone(), "Approved")));
    let (again, approved) = ([&again], [&approved]);
    let found = |requests| Found { cluster: Some(&waits), requests, ..Found::default() };
    for noted in [
        Found { accepted_before: true, ..found(&again) },
        Found { accepted_before: true, ..found(&approved) },
        Found { denied_before: true, ..found(&again) },
        Found { denied_before: true, ..found(&approved) },
    ] {
        assert_refused(&decide(CLUSTER, &noted, &in_bulk), Code::DeniedBefore);
        // Whoever names it means it.
        assert!(matches!(decide(CLUSTER, &noted, &Options::default()), Decision::Act { accept: true, .. }));
    }
    assert!(matches!(decide(CLUSTER, &found(&approved), &in_bulk), Decision::Act { .. }), "nothing was noted");
    // It is to be noted while the hub has the request, and as long as nobody lets the cluster in.
    conclude_at(&mut no, "Denied", REGISTERED + 5);
    let no = Request::read(&no);
    let no = [&no];
    assert!(is_denied(CLUSTER, &found(&no), &in_bulk) && !is_denied(CLUSTER, &found(&again), &in_bulk));
    let noted = Found { denied_before: true, ..found(&again) };
    assert!(is_denied(CLUSTER, &noted, &in_bulk));
    assert!(!is_denied(CLUSTER, &Found { cluster: Some(&let_in), ..noted }, &in_bulk));
    assert!(!is_denied(CLUSTER, &Found { cluster: None, ..noted }, &in_bulk));
}

#[test]
fn a_key_that_was_approved_keeps_another_out_when_the_hub_has_collected_its_request() {
    let in_bulk = Options { chosen: Chosen::InBulk, ..Options::default() };
    let (waits, request) = (cluster(), Request::read(&asks("again", 110, &key())));
    let requests = [&request];
    let own = request.key_digest().unwrap_or_default();
    let with = |of: &'static str, keys: &[(&str, i64)], cluster: &ocm_api::ManagedCluster, options: &Options| {
        let known = |(digest, second): &(&str, i64)| RegistrationKey {
            until: at(*second).to_string(),
            spki_sha256: (*digest).to_owned(),
        };
        let keys: Vec<RegistrationKey> = keys.iter().map(known).collect();
        let registration = Some(noted(Some(of), keys.iter().map(|key| key.until.as_str())));
        let (cluster, now) = (Some(cluster), Some(at(500)));
        let found = Found { cluster, requests: &requests, registration, noted_keys: &keys, now, ..Found::default() };
        decide(CLUSTER, &found, options)
    };
    // Also one that nobody knows.
    for another in ["another", ""] {
        assert_refused(&with("1", &[(another, 7200)], &waits, &in_bulk), Code::NameTaken);
        assert_refused(&with("1", &[(another, 7200), (own, 7200)], &waits, &in_bulk), Code::NameTaken);
        assert_eq!(with("1", &[(another, 7200)], &waits, &Options::default()), lets_in(0), "a person means it");
        assert_eq!(with("1", &[(another, 500)], &waits, &in_bulk), lets_in(0), "it has ended");
    }
    assert_eq!(with("1", &[(own, 7200)], &waits, &in_bulk), lets_in(0));
    assert_refused(&with("0", &[(own, 7200)], &waits, &in_bulk), Code::NameUsedBefore);
}

#[test]
fn clusters_with_an_aws_identity_have_no_request() {
    let with = |arn: &str, options: &Options| {
        let mut cluster = cluster();
        let annotations =
            [("managed-cluster-arn", arn), ("managed-cluster-iam-role-suffix", "7f8141296c75f2871e3d030f85c35692")];
        cluster.metadata.annotations = Some(
            annotations
                .map(|(key, value)| (format!("agent.open-cluster-management.io/{key}"), value.to_owned()))
                .into(),
        );
        decide_with(&cluster, &[], options)
    };
    const ARN: &str = "arn:aws:eks:us-west-2:123456789012:cluster/c1";
    let without = Options { without_request: true, ..Options::default() };
    assert_refused(&with(ARN, &Options::default()), Code::AwsIdentity);
    assert_eq!(with(ARN, &without), Decision::Act { approve: None, stands_on: None, accept: true });
    assert_refused(&with("arn:aws:iam::1:role/x", &without), Code::AwsIdentity);
}

#[test]
fn an_omitted_lifetime_counts_as_the_signers() {
    let day =
        Options { settings: Settings { max_lifetime_seconds: 86_400, ..Settings::default() }, ..Options::default() };
    let request = asks("r", 110, &key());
    assert_refused(&decide_with(&cluster(), std::slice::from_ref(&request), &day), Code::Lifetime);
    let mut short = request;
    short.spec.expiration_seconds = Some(86_400);
    assert_eq!(decide_with(&cluster(), &[short], &day), lets_in(0));
}

#[test]
fn a_key_that_was_also_given_a_wrong_certificate_lets_nobody_in() {
    let one = key();
    let right = concluded(asks("right", 110, &one), "Approved");
    let lets_in = Decision::Act { approve: None, stands_on: Some(0), accept: true };
    assert_eq!(decided(&cluster(), std::slice::from_ref(&right)), lets_in);
    let greedy = |name, key: &Key| {
        let fixture = Fixture::agent(CLUSTER, "a1").organization("platform-admins").key(key);
        object(name, 105, &fixture.pem())
    };
    let wrong = concluded(greedy("wrong", &one), "Approved");
    for objects in [[right.clone(), wrong.clone()], [wrong, right.clone()]] {
        assert_refused(&decided(&cluster(), &objects), Code::ForeignOrganization);
        assert_refused(&decide_with(&cluster(), &objects, &naming(&one)), Code::ForeignOrganization);
        assert_refused(&decide_with(&cluster(), &objects, &replacing()), Code::ForeignOrganization);
    }
    // Nobody gave it one; and one of another key is not this one's.
    assert_eq!(decided(&cluster(), &[right.clone(), greedy("wrong", &one)]), lets_in);
    let others = [right, concluded(greedy("wrong", &key()), "Approved")];
    assert_refused(&decided(&cluster(), &others), Code::NameTaken);
    assert_eq!(decide_with(&cluster(), &others, &naming(&one)), lets_in);
}

#[test]
fn when_a_request_was_approved_is_not_known_from_times_that_cannot_be() {
    let key = key();
    let approved = |created, second| {
        let mut object = asks("r", created, &key);
        conclude_at(&mut object, "Approved", second);
        object
    };
    let reuse = Options { reuse_name: true, ..Options::default() };
    let lets_in = Decision::Act { approve: None, stands_on: Some(0), accept: true };
    // Before it was there: perhaps in this registration, perhaps in an earlier one. The worse holds.
    let backdated = approved(REGISTERED + 10, REGISTERED - 10);
    assert_refused(&decided(&cluster(), std::slice::from_ref(&backdated)), Code::NameUsedBefore);
    assert_eq!(decide_with(&cluster(), std::slice::from_ref(&backdated), &reuse), lets_in);
    let other = [backdated, asks("new", 120, &Key::new(Kind::P256))];
    assert_refused(&decide_with(&cluster(), &other, &reuse), Code::NameTaken);
    // Nor is its key that of an agent which joined before there was the request.
    let asks_again = [approved(130, 115), asks("again", 300, &key)];
    assert_eq!(decided(&joined(120), &asks_again), Decision::Settled { stray: vec![1] });

    let at_time = |now: Option<i64>, second| {
        let (request, cluster) = (Request::read(&approved(REGISTERED - 10, second)), cluster());
        let now = now.map(at);
        let found = Found { cluster: Some(&cluster), requests: &[&request], now, ..Found::default() };
        decide(CLUSTER, &found, &Options::default())
    };
    assert_eq!(at_time(Some(200), 200), lets_in);
    assert_eq!(at_time(Some(200), 200 + 60), lets_in, "clocks differ");
    assert_eq!(at_time(None, 9000), lets_in);
    assert_refused(&at_time(Some(200), 9000), Code::NameUsedBefore);
}

#[test]
fn an_approval_with_break_glass_is_for_one_requester_and_nobody_else_may_hold_a_certificate() {
    let by = |user: &str, state: Option<&str>| {
        let mut object = asks("other", 110, &key());
        ask_as(&mut object, user, &[], None);
        state.iter().for_each(|state| conclude(&mut object, state));
        Request::read(&object)
    };
    let own = Request::read(&concluded(asks("own", 110, &key()), "Approved"));
    let agent = format!("system:open-cluster-management:{CLUSTER}:a1");
    let mut of_another = by("stranger", Some("Approved"));
    of_another.content = Request::read(&object("r", 110, &Fixture::agent("c2", "a1").pem())).content;
    for harmless in [
        by("stranger", None),
        by("stranger", Some("Denied")),
        by(BOOTSTRAP, Some("Approved")),
        by(&agent, Some("Approved")),
        of_another,
    ] {
        assert_eq!(another_requester(CLUSTER, BOOTSTRAP, &[own.clone(), harmless]), None);
    }
    let refusal = another_requester(CLUSTER, BOOTSTRAP, &[own, by("stranger", Some("Approved"))]).unwrap();
    assert_eq!((refusal.code, refusal.help), (Code::SeveralRequesters, Some(Help::Request("other".to_owned()))));
    assert!(refusal.detail.contains("request other of stranger was approved"), "{}", refusal.detail);
}
