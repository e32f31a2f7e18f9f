//! The registry: which policy decides in a place, and how others take it over.

mod support;

use std::sync::Arc;
use std::time::Duration;

use ocm_api::policy::HubPolicySpec;
use ocm_policy_abi::{Csr, Operation, Request, Requester, Resource, Verdict};
use ocm_policy_engine::{
    Ceiling, Comparison, Deadline, Engine, Evaluated, Final, NoEvidence, Operations, Policy, PolicyError, Registry,
    compile_here, evaluate,
};
use ocm_policy_rules::{Enforcement, Scope, canary};
use serde_json::{Value, json};
use support::{Guest, ask, engine, policy, request};

fn verdict(asked: &Evaluated) -> Result<Verdict, PolicyError> {
    asked.outcome().result.clone().map(|decision| decision.verdict)
}

const DENY: &str = r#"{"verdict":"deny","reasons":[{"code":"No","message":"no"}]}"#;

/// A policy for a place.
fn placed(engine: &Engine, place: &str, guest: &Guest) -> Result<Arc<Policy>, PolicyError> {
    let ceiling = Ceiling::default();
    Policy::load_as(place, engine, &compile_here(&guest.module(), "{}", &ceiling)?, &ceiling, &[], Scope::default())
}

#[test]
fn an_error_that_closes_a_place_is_kept_with_few_words() {
    let registry = Registry::default();
    let error = || PolicyError::Load("e".repeat(1 << 20));
    assert!(registry.install(registry.begin("a"), Err(error()), |_| Ok(())).is_err());
    assert!(registry.close("b", error(), Enforcement::default()));
    for slot in registry.slots().values() {
        let kept = slot.active.as_ref().err().expect("nothing is in force").to_string();
        assert!(kept.len() < 4096 && kept.ends_with('…'), "{} bytes", kept.len());
    }
}

#[test]
fn a_bad_module_never_disturbs_the_good_one() {
    let engine = engine();
    let registry = Registry::default();
    let proof = |_: &_| Ok(());
    let install = |place: &str, policy| registry.install(registry.begin(place), policy, proof);
    install("gate", placed(&engine, "gate", &Guest::default())).unwrap();
    let asked = |registry: &Registry| ask(registry, "c").asked().iter().map(verdict).collect::<Vec<_>>();
    assert_eq!(asked(&registry), [Ok(Verdict::Allow)]);

    let bad = policy(&engine, b"\0asm");
    assert!(install("gate", bad).is_err());
    let denying = || placed(&engine, "gate", &Guest::answering(DENY));
    let failed = PolicyError::Load("its own test cases fail".to_owned());
    assert_eq!(registry.install(registry.begin("gate"), denying(), |_| Err(failed.clone())), Err(failed.clone()));
    assert_eq!(asked(&registry), [Ok(Verdict::Allow)], "the good one stays");

    install("gate", denying()).unwrap();
    assert_eq!(asked(&registry), [Ok(Verdict::Deny)]);
    registry.roll_back("gate", Operations::Keep).unwrap();
    assert_eq!(asked(&registry), [Ok(Verdict::Allow)]);

    // A place that never held anything is closed, not open.
    assert!(install("second", Err(failed.clone())).is_err());
    assert_eq!(asked(&registry), [Ok(Verdict::Allow), Err(failed)]);
    let other = PolicyError::Load("it is being loaded".to_owned());
    assert!(registry.close("second", other.clone(), Enforcement::default()));
    assert!(!registry.close("gate", other.clone(), Enforcement::default()), "a policy is in force");
    assert_eq!(asked(&registry), [Ok(Verdict::Allow), Err(other)]);
    assert!(registry.remove("second") && !registry.remove("second"));
}

#[test]
fn a_place_keeps_what_it_judges_and_who_speaks_there() {
    let engine = engine();
    let registry = Registry::default();
    let judging = |operations: &str| {
        let manifest = format!(
            r#"{{"contract":"ocm:policy@0.1.0","name":"other","version":"1.0.0","operations":[{operations}]}}"#
        );
        placed(&engine, "gate", &Guest { manifest, ..Guest::answering(DENY) })
    };
    let install = |installation, policy| registry.install(installation, policy, |_| Ok(()));
    install(registry.begin("gate"), judging(r#""create","update""#)).unwrap();
    // Not under the name that the module claims.
    assert_eq!(ask(&registry, "c").asked()[0].outcome().policy.name, "gate");
    assert!(install(registry.begin("elsewhere"), judging(r#""create""#)).is_err(), "loaded for another place");
    assert!(registry.remove("elsewhere"));

    for fewer in [r#""create""#, r#""delete","create""#, ""] {
        let error = install(registry.begin("gate"), judging(fewer)).unwrap_err();
        assert_eq!(error.code(), if fewer.is_empty() { "load" } else { "stops-to-judge" }, "{error}");
        assert!(registry.propose("gate", judging(fewer).unwrap(), 10_000, Operations::Keep).is_err());
    }
    for operations in [Operations::Keep, Operations::MayShrink] {
        let none = install(registry.begin("gate").operations(operations), judging("")).unwrap_err();
        assert!(matches!(&none, PolicyError::Load(why) if why.contains("no operation at all")), "{none}");
        assert_eq!(registry.propose("gate", judging("").unwrap(), 0, operations), Err(none));
    }
    assert_eq!(ask(&registry, "c").asked().len(), 1, "the place still answers");
    install(registry.begin("gate").operations(Operations::MayShrink), judging(r#""delete""#)).unwrap();
    assert_eq!(ask(&registry, "c").asked().len(), 0);
    assert!(registry.roll_back("gate", Operations::Keep).is_err(), "nobody would be asked about deletions");
    registry.roll_back("gate", Operations::MayShrink).unwrap();
    assert_eq!(ask(&registry, "c").asked().len(), 1);
    assert!(
        install(
            registry.begin("new"),
            placed(
                &engine,
                "new",
                &Guest { manifest: Guest::manifest("n", "").replace(r#""create","update""#, ""), ..Guest::default() }
            )
        )
        .is_err()
    );
}

#[test]
fn what_was_judged_before_is_judged_also_where_nothing_is_in_force() {
    let engine = engine();
    let judging = |operations: &str, scope: Value| {
        let manifest =
            format!(r#"{{"contract":"ocm:policy@0.1.0","name":"gate","version":"1.0.0","operations":[{operations}]}}"#);
        let guest = Guest { manifest, ..Guest::answering(DENY) };
        let spec = json!({"module": {"builtin": "b"}, "operations": scope});
        let scope = Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).unwrap());
        let ceiling = Ceiling::default();
        let artifact = compile_here(&guest.module(), "{}", &ceiling)?;
        Policy::load_as("gate", &engine, &artifact, &ceiling, &[], scope)
    };
    let judged = || vec![Operation::Create, Operation::Join];
    let install = |registry: &Registry, operations: Operations, policy| {
        let installation = registry.begin("gate").operations(operations).judged(judged());
        registry.install(installation, policy, |_| Ok(()))
    };
    let lost = Err(PolicyError::StopsToJudge("join".to_owned()));
    // A word about what is in force here is none about what was in force elsewhere.
    for operations in [Operations::Keep, Operations::MayShrink] {
        let registry = Registry::default();
        assert_eq!(install(&registry, operations, judging(r#""create""#, json!([]))), lost);
        let closed = verdict(&ask(&registry, "c").asked()[0]);
        assert_eq!(closed, Err(PolicyError::StopsToJudge("join".to_owned())));
        install(&registry, operations, judging(r#""join","create""#, json!([]))).unwrap();
        assert_eq!(install(&registry, operations, judging(r#""create""#, json!([]))), lost);
        assert_eq!(verdict(&ask(&registry, "c").asked()[0]), Ok(Verdict::Deny), "the one in force stays");
    }
    // Its administrator does not have it asked about more: the word of a newer release may mean anything.
    let registry = Registry::default();
    assert_eq!(install(&registry, Operations::Keep, judging(r#""create""#, json!(["create", "newer"]))), lost);
    install(&registry, Operations::Keep, judging(r#""create""#, json!(["create"]))).unwrap();
    let registry = Registry::default();
    registry.install(registry.begin("gate"), judging(r#""create","join""#, json!([])), |_| Ok(())).unwrap();
    let fewer = || judging(r#""create""#, json!(["create"])).unwrap();
    registry.propose("gate", fewer(), 0, Operations::Keep).unwrap();
    registry.install(registry.begin("gate"), Ok(fewer()), |_| Ok(())).unwrap();
}

#[test]
fn an_older_installation_never_replaces_a_newer_one() {
    let engine = engine();
    let registry = Registry::default();
    let (first, second) = (registry.begin("gate"), registry.begin("gate"));
    registry.install(second, placed(&engine, "gate", &Guest::answering(DENY)), |_| Ok(())).unwrap();
    let late = registry.install(first, placed(&engine, "gate", &Guest::default()), |_| Ok(()));
    assert!(matches!(&late, Err(PolicyError::Load(why)) if why.contains("newer")), "{late:?}");
    assert_eq!(verdict(&ask(&registry, "c").asked()[0]), Ok(Verdict::Deny));
}

#[test]
fn candidates_are_compared_and_decide_for_their_share() {
    let engine = engine();
    let registry = Registry::default();
    registry.install(registry.begin("gate"), placed(&engine, "gate", &Guest::default()), |_| Ok(())).unwrap();
    let candidate = placed(&engine, "gate", &Guest::answering(DENY)).unwrap();
    let propose = |place: &str, share| registry.propose(place, candidate.clone(), share, Operations::Keep);
    assert!(propose("gate", 0).is_ok() && propose("none", 0).is_err());
    let denied = |share: u16| {
        propose("gate", share).unwrap();
        let names = (0..200).map(|number| format!("cluster-{number}"));
        names.filter(|name| verdict(&ask(&registry, name).asked()[0]) == Ok(Verdict::Deny)).collect::<Vec<_>>()
    };
    assert_eq!(denied(0), Vec::<String>::new(), "a shadow decides nothing");
    let compare = || ask(&registry, "c").compare(&Deadline::NONE, |_, _| ());
    assert_eq!(compare().len(), 1);
    let (some, more) = (denied(2_000), denied(6_000));
    assert!(!some.is_empty() && some.len() < more.len() && more.len() < 200);
    assert!(some.iter().all(|name| more.contains(name)), "whoever was in stays in");
    assert_eq!(denied(10_000).len(), 200);
    assert!(ask(&registry, "c").asked()[0].is_candidate());
    let differences = compare();
    let results = differences.iter().map(|it| (it.active.result.is_ok(), it.differs())).collect::<Vec<_>>();
    assert_eq!(results, [(true, true)], "also where the candidate has decided");
    assert!(registry.promote("gate") && compare().is_empty());
    assert!(!ask(&registry, "c").asked()[0].is_candidate());
    assert_eq!(verdict(&ask(&registry, "c").asked()[0]), Ok(Verdict::Deny));
    assert!(registry.roll_back("gate", Operations::Keep).is_ok() && !registry.withdraw("gate"));
}

#[test]
fn a_cluster_and_its_certificate_request_go_to_the_same_version() {
    let (engine, registry) = (engine(), Registry::default());
    let both = |answer: &str| Guest {
        manifest: Guest::manifest("gate", "").replace(r#""update"]"#, r#""request"]"#),
        ..Guest::answering(answer)
    };
    registry
        .install(registry.begin("gate"), placed(&engine, "gate", &both(r#"{"verdict":"allow"}"#)), |_| Ok(()))
        .unwrap();
    let candidate = placed(&engine, "gate", &both(DENY)).unwrap();
    registry.propose("gate", candidate, 5_000, Operations::Keep).unwrap();
    let denied =
        |request| verdict(&evaluate(&registry, request, &NoEvidence, &Deadline::NONE).asked()[0]) == Ok(Verdict::Deny);
    let csr = |cluster: &str, object: Option<&str>| {
        let mut csr = Csr { name: object.map(|name| name.to_owned().into()), ..Csr::default() };
        csr.labels.insert("open-cluster-management.io/cluster-name", cluster.to_owned().into());
        Request { csr: Some(csr), ..Request::new(Operation::Request, Requester::default()) }
    };
    let mut seen = [0, 0];
    for n in 0..100 {
        let cluster = format!("c{n}");
        let chosen = denied(request(&cluster));
        seen[usize::from(chosen)] += 1;
        // Whatever the request's object is called, and before it is called anything.
        for object in [None, Some("a"), Some("b")] {
            assert_eq!(denied(csr(&cluster, object)), chosen, "{cluster} {object:?}");
        }
    }
    assert!(seen[0] > 25 && seen[1] > 25, "{seen:?}");
}

#[test]
fn where_no_cluster_is_named_a_canary_decides_by_the_object_or_else_by_the_requester() {
    let (engine, registry) = (engine(), Registry::default());
    registry.install(registry.begin("gate"), placed(&engine, "gate", &Guest::default()), |_| Ok(())).unwrap();
    let candidate = placed(&engine, "gate", &Guest::answering(DENY)).unwrap();
    registry.propose("gate", candidate, 5_000, Operations::Keep).unwrap();
    let denied = |user: &str, object: Option<&str>| {
        let name = |name: &str| Resource { name: Some(name.to_owned().into()), ..Resource::default() };
        let requester = Requester { username: user.to_owned().into(), ..Requester::default() };
        let request = Request { resource: object.map(name), ..Request::new(Operation::Create, requester) };
        verdict(&evaluate(&registry, request, &NoEvidence, &Deadline::NONE).asked()[0]) == Ok(Verdict::Deny)
    };
    let mut seen = [0, 0];
    for n in 0..100 {
        let name = format!("name-{n}");
        let chosen = canary::chosen("gate", &name, 5_000);
        seen[usize::from(chosen)] += 1;
        assert_eq!(denied(&name, None), chosen, "{name}");
        assert_eq!(denied("somebody", Some(&name)), chosen, "{name}");
    }
    assert!(seen[0] > 25 && seen[1] > 25, "{seen:?}");
}

#[test]
fn whoever_has_answered_is_not_asked_again_to_compare() {
    let (engine, registry) = (engine(), Registry::default());
    registry.install(registry.begin("gate"), placed(&engine, "gate", &Guest::default()), |_| Ok(())).unwrap();
    let candidate = placed(&engine, "gate", &Guest::answering(DENY)).unwrap();
    // Whoever would be asked now could not answer any more.
    let passed = Deadline::after(Duration::ZERO);
    let late: Result<Verdict, PolicyError> = Err(PolicyError::DeadlineExceeded);
    for (share, active, tried) in [(0, Ok(Verdict::Allow), late.clone()), (10_000, late.clone(), Ok(Verdict::Deny))] {
        registry.propose("gate", candidate.clone(), share, Operations::Keep).unwrap();
        let compared = ask(&registry, "c").compare(&passed, |_, _| ()).into_iter();
        let compared: Vec<_> = compared
            .map(|it| [it.active, it.candidate].map(|outcome| outcome.result.map(|decision| decision.verdict)))
            .collect();
        assert_eq!(compared, [[active, tried]]);
    }
}

#[test]
fn the_fuel_of_a_comparison_is_that_of_whoever_was_asked_for_it() {
    let (engine, registry) = (engine(), Registry::default());
    registry.install(registry.begin("gate"), placed(&engine, "gate", &Guest::default()), |_| Ok(())).unwrap();
    let answered = |asked: &Final| asked.asked().iter().map(Evaluated::fuel).sum::<u64>();
    let spent = |asked: &Final| {
        let mut spent = Vec::new();
        let compared = asked.compare(&Deadline::NONE, |place, fuel| spent.push((place.to_owned(), fuel)));
        (compared, spent)
    };
    assert_eq!(spent(&ask(&registry, "c")), (Vec::new(), Vec::new()), "nobody is tried");
    let candidate = placed(&engine, "gate", &Guest::deciding("(drop (i32.add (i32.const 1) (i32.const 2)))")).unwrap();
    for share in [0, 10_000] {
        registry.propose("gate", candidate.clone(), share, Operations::Keep).unwrap();
        let asked = ask(&registry, "c");
        let (compared, spent) = spent(&asked);
        let [one] = &*compared else { panic!("{compared:?}") };
        assert_ne!(one.active.fuel, one.candidate.fuel);
        let (before, now) = if share == 0 { (&one.active, &one.candidate) } else { (&one.candidate, &one.active) };
        assert_eq!(answered(&asked), before.fuel, "counted with the answer");
        assert_eq!(spent, [("gate".to_owned(), now.fuel)]);
        assert!(now.fuel > 0);
    }
}

#[test]
fn what_was_removed_stays_removed_and_no_candidate_outlives_what_it_was_compared_with() {
    let (engine, registry) = (engine(), Registry::default());
    let install = |installation, policy| registry.install(installation, policy, |_| Ok(()));
    let (slow, broken) = (registry.begin("gate"), registry.begin("gate"));
    install(registry.begin("gate"), placed(&engine, "gate", &Guest::default())).unwrap();
    assert!(registry.remove("gate"));
    assert!(install(slow, placed(&engine, "gate", &Guest::default())).is_err());
    assert!(install(broken, Err(PolicyError::Load("broken".to_owned()))).is_err());
    assert!(registry.slots().is_empty(), "neither back nor closed");

    install(registry.begin("gate"), placed(&engine, "gate", &Guest::default())).unwrap();
    install(registry.begin("gate"), placed(&engine, "gate", &Guest::answering(DENY))).unwrap();
    let candidate = placed(&engine, "gate", &Guest::default()).unwrap();
    registry.propose("gate", candidate, 0, Operations::Keep).unwrap();
    registry.roll_back("gate", Operations::Keep).unwrap();
    assert!(!registry.promote("gate"));
}

#[test]
fn whoever_does_not_judge_has_no_opinion_to_compare() {
    let (engine, registry) = (engine(), Registry::default());
    let evidence = r#","evidence":[{"name":"q","source":{"kind":"clusters"},"fields":[]}]"#;
    let other = Guest {
        manifest: Guest::manifest("gate", evidence).replace(r#"["create","update"]"#, r#"["update"]"#),
        ..Guest::default()
    };
    registry.install(registry.begin("gate"), placed(&engine, "gate", &other), |_| Ok(())).unwrap();
    let silent = Guest::answering(r#"{"verdict":"no-opinion"}"#);
    registry.propose("gate", placed(&engine, "gate", &silent).unwrap(), 0, Operations::MayShrink).unwrap();
    let differs = || -> Vec<bool> {
        ask(&registry, "c").compare(&Deadline::NONE, |_, _| ()).iter().map(Comparison::differs).collect()
    };
    assert_eq!(differs(), [false]);
    registry
        .propose("gate", placed(&engine, "gate", &Guest::answering(DENY)).unwrap(), 0, Operations::MayShrink)
        .unwrap();
    assert_eq!(differs(), [true]);
}
