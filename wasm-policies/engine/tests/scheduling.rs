//! Who runs when: nothing that one policy does keeps others from being asked.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ocm_policy_engine::{
    Cancellation, Ceiling, Deadline, Engine, EngineSettings, NoEvidence, Policy, PolicyError, Registry, compile_here,
    evaluate,
};
use ocm_policy_rules::Scope;
use support::{Guest, ask, question, request};

const ENDLESS: &str = "(loop $l (br $l))";

fn engine(settings: EngineSettings) -> Engine {
    Engine::new(&EngineSettings { shards: 1, slow_decisions: 1, ..settings }).expect("it is made")
}

/// A policy with so much fuel that only time ends it.
fn without_end(engine: &Engine) -> Arc<Policy> {
    let mut ceiling = Ceiling::default();
    for limits in [&mut ceiling.usual, &mut ceiling.most] {
        (limits.fuel, limits.ticks) = (u64::MAX / 2, u64::MAX / 4);
    }
    let artifact = compile_here(&Guest::deciding(ENDLESS).module(), "{}", &Ceiling::default()).expect("it is made");
    Policy::load(engine, &artifact, &ceiling, &[]).expect("it is made")
}

fn named(engine: &Engine, place: &str, guest: &Guest) -> Arc<Policy> {
    let artifact = compile_here(&guest.module(), "{}", &Ceiling::default()).expect("it is made");
    Policy::load_as(place, engine, &artifact, &Ceiling::default(), &[], Scope::default()).expect("it is made")
}

/// Does something while the only place for slow decisions is taken.
fn while_busy<T>(engine: &Engine, work: impl FnOnce() -> T) -> T {
    let endless = without_end(engine);
    let cancellation = Cancellation::default();
    let deadline = Deadline::NONE.or_cancelled(&cancellation);
    thread::scope(|scope| {
        let running = scope.spawn(|| endless.decide_before(&question("c"), &deadline).outcome.clone());
        while engine.load().free_permits > 0 {
            thread::yield_now();
        }
        // Also when an assertion fails: nobody waits for what does not end.
        let result = catch_unwind(AssertUnwindSafe(work));
        cancellation.cancel();
        let ended = running.join().expect("it ends").result;
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        assert_eq!(ended, Err(PolicyError::DeadlineExceeded));
        result
    })
}

#[test]
fn instances_that_have_answered_never_keep_others_waiting_for_long() {
    // Less instances than callers times policies, and a slow policy behind the quick ones.
    let engine = engine(EngineSettings { instances: 6, ..EngineSettings::default() });
    let registry = Registry::default();
    for place in ["a", "b", "c"] {
        registry.install(registry.begin(place), Ok(named(&engine, place, &Guest::default())), |_| Ok(())).unwrap();
    }
    let slow = named(&engine, "z", &Guest::deciding(ENDLESS));
    registry.install(registry.begin("z"), Ok(slow), |_| Ok(())).unwrap();
    thread::scope(|scope| {
        let callers: Vec<_> = (0..12)
            .map(|_| {
                scope.spawn(|| {
                    let answer = ask(&registry, "c");
                    answer.asked().iter().map(|one| one.outcome().result.clone().map(|_| ())).collect::<Vec<_>>()
                })
            })
            .collect();
        for caller in callers {
            assert_eq!(caller.join().unwrap(), [Ok(()), Ok(()), Ok(()), Err(PolicyError::OutOfFuel)]);
        }
    });
}

#[test]
fn the_first_decision_of_a_policy_needs_a_place_and_the_next_ones_do_not() {
    let engine = engine(EngineSettings::default());
    let (known, new) = (named(&engine, "known", &Guest::default()), named(&engine, "new", &Guest::default()));
    assert!(known.decide(&question("c")).outcome.result.is_ok());
    let (known, new) = while_busy(&engine, || {
        let soon = Deadline::after(Duration::from_millis(20));
        let new = new.decide_before(&question("c"), &soon).outcome.result.clone();
        (known.decide(&question("c")).outcome.result.clone(), new)
    });
    assert!(known.is_ok());
    assert_eq!(new, Err(PolicyError::DeadlineExceeded));
}

#[test]
fn dropping_an_answer_runs_no_code_of_a_guest() {
    // No snapshot can be taken of it, so each instance is configured while it is made, and that takes a place.
    let guest = Guest { fields: r#"(@custom "name" (after memory) "")"#.to_owned(), ..Guest::default() };
    let engine = engine(EngineSettings::default());
    let policy = named(&engine, "p", &guest);
    let answered = policy.decide(&question("c"));
    assert!(answered.outcome.result.is_ok());
    while_busy(&engine, || {
        let before = engine.load().ready_instances;
        drop(answered);
        assert_eq!(engine.load().ready_instances, before, "nobody can have made it");
    });
    // Once there is a place, a thread of the engine makes it.
    while policy.decide_before(&question("c"), &Deadline::after(Duration::from_secs(60))).outcome.result.is_err() {}
}

#[test]
fn a_deadline_ends_a_policy_and_keeps_the_next_ones_from_being_asked() {
    let engine = engine(EngineSettings::default());
    let endless = without_end(&engine);
    let soon = Deadline::after(Duration::from_millis(30));
    assert_eq!(endless.decide_before(&question("c"), &soon).outcome.result, Err(PolicyError::DeadlineExceeded));
    let registry = Registry::default();
    for place in ["a", "b"] {
        registry.install(registry.begin(place), Ok(named(&engine, place, &Guest::default())), |_| Ok(())).unwrap();
    }
    let answer = evaluate(&registry, request("c"), &NoEvidence, &soon);
    let outcomes: Vec<_> =
        answer.asked().iter().map(|one| (one.outcome().result.clone(), one.outcome().fuel)).collect();
    assert_eq!(outcomes, [(Err(PolicyError::DeadlineExceeded), 0), (Err(PolicyError::DeadlineExceeded), 0)]);
}

#[test]
fn the_queue_has_an_end() {
    let engine = engine(EngineSettings { queue: 0, ..EngineSettings::default() });
    let new = named(&engine, "new", &Guest::default());
    let endless = without_end(&engine);
    let cancellation = Cancellation::default();
    let deadline = Deadline::NONE.or_cancelled(&cancellation);
    thread::scope(|scope| {
        let running = scope.spawn(|| endless.decide_before(&question("c"), &deadline).outcome.clone());
        while engine.load().free_permits > 0 {
            thread::yield_now();
        }
        let refused = new.decide(&question("c")).outcome.result.clone();
        assert!(matches!(refused, Err(PolicyError::Overloaded(_))), "{refused:?}");
        cancellation.cancel();
        running.join().unwrap();
    });
    assert_eq!(engine.load().refused, 1);
    assert!(new.decide(&question("c")).outcome.result.is_ok());
}

#[test]
fn fuel_decides_and_not_how_busy_the_machine_is() {
    let engine = engine(EngineSettings::default());
    let policy = named(&engine, "p", &Guest::deciding(ENDLESS));
    let over = std::sync::atomic::AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        // Hours pass by the clock, and the thread of the policy has computed for a few milliseconds.
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                engine.tick();
            }
        });
        let outcome = policy.decide(&question("c")).outcome.clone();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        outcome
    });
    assert_eq!(outcome.result, Err(PolicyError::OutOfFuel));
}
