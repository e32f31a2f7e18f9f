//! Loading, the cache, the registry, and that decisions depend on nothing but the request.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ocm_policy_abi::{EditGrant, Verdict};
use ocm_policy_engine::{
    Cache, CacheError, Ceiling, Compiler, Engine, EngineSettings, Policy, PolicyError, compile_here,
};
use support::{ANSWER, Guest, compiler, engine, policy, question};

const DENY: &str = r#"{"verdict":"deny","reasons":[{"code":"No","message":"no"}]}"#;

#[test]
fn every_decision_is_made_by_an_instance_that_made_no_other() {
    // Counts its decisions and denies from the second on.
    let guest = Guest {
        fields: "(global $asked (mut i32) (i32.const 0))".to_owned(),
        ..Guest::deciding(
            "(global.set $asked (i32.add (global.get $asked) (i32.const 1)))
             (i32.store (i32.const 12288) (i32.add (i32.load (i32.const 12288)) (i32.const 1)))
             (if (i32.gt_u (i32.add (global.get $asked) (i32.load (i32.const 12288))) (i32.const 2)) (then unreachable))",
        )
    };
    let engine = engine();
    let policy = policy(&engine, &guest.module()).unwrap();
    let fuel: Vec<u64> = (0..20)
        .map(|_| {
            let answered = policy.decide(&question("c"));
            assert!(answered.outcome.result.is_ok(), "{:?}", answered.outcome);
            answered.outcome.fuel
        })
        .collect();
    assert!(fuel.iter().all(|used| *used == fuel[0] && *used > 0), "{fuel:?}");
}

#[test]
fn settings_become_part_of_the_code() {
    // Its verdict is what `configure` wrote, which happens once.
    let guest = Guest {
        configure: format!("(i32.store8 (i32.const {ANSWER}) (i32.sub (i32.load8_u (local.get 0)) (i32.const 48)))"),
        ..Guest::default()
    };
    let ceiling = Ceiling::default();
    let artifact = compile_here(&guest.module(), "1", &ceiling).unwrap();
    assert_eq!(artifact.header().settings_for_instances, None, "a snapshot was taken");
    let engine = engine();
    let policy = Policy::load(&engine, &artifact, &ceiling, &[]).unwrap();
    assert_eq!(policy.decide(&question("c")).outcome.result.clone().map(|it| it.verdict), Ok(Verdict::Allow));
    let broken = compile_here(&guest.module(), "7", &ceiling).unwrap();
    let policy = Policy::load(&engine, &broken, &ceiling, &[]).unwrap();
    assert!(policy.decide(&question("c")).outcome.result.is_err(), "the settings are in the answer now");
    assert_ne!(artifact.header().settings_digest, broken.header().settings_digest);
    assert!(matches!(compile_here(&guest.module(), "{", &ceiling), Err(PolicyError::Load(_))), "settings are JSON");
}

#[test]
fn what_only_configure_needs_is_not_compiled() {
    let long = "(global.set $sum (i32.add (global.get $sum) (i32.mul (global.get $sum) (i32.const 7))))".repeat(2_000);
    let fields = format!(
        "(global $sum (mut i32) (i32.const 1)) (func $long {long}) (func $short)
         (type $nothing (func)) (table 2 funcref) (elem (i32.const 0) func $short $long)"
    );
    let made = |configure: &str, decide: &str| {
        let guest = Guest { fields: fields.clone(), configure: configure.to_owned(), ..Guest::deciding(decide) };
        compile_here(&guest.module(), "{}", &Ceiling::default()).unwrap()
    };
    let call = "(call $long)";
    let (once, always) = (made(call, ""), made(call, call));
    assert_eq!(
        (&once.header().settings_for_instances, &always.header().settings_for_instances),
        (&None, &None),
        "snapshots were taken"
    );
    assert!(once.bytes().len() + 10_000 < always.bytes().len(), "{} {}", once.bytes().len(), always.bytes().len());
    // What is called by its number stays, and whatever else has one.
    let engine = engine();
    for decide in ["(call_indirect (type $nothing) (i32.const 0))", "(call_indirect (type $nothing) (i32.const 1))"] {
        let artifact = made(call, decide);
        let policy = Policy::load(&engine, &artifact, &Ceiling::default(), &[]).unwrap();
        assert_eq!(policy.decide(&question("c")).outcome.result.clone().map(|it| it.verdict), Ok(Verdict::Allow));
    }
}

#[test]
fn what_no_snapshot_can_be_taken_of_is_configured_while_it_gets_ready() {
    // Custom sections may stand anywhere; with this one Wizer makes a module that is not valid.
    let guest = Guest { fields: r#"(@custom "name" (after memory) "")"#.to_owned(), ..Guest::default() };
    let ceiling = Ceiling::default();
    let artifact = compile_here(&guest.module(), "[1]", &ceiling).unwrap();
    assert_eq!(artifact.header().settings_for_instances.as_deref(), Some("[1]"));
    let policy = Policy::load(&engine(), &artifact, &ceiling, &[]).unwrap();
    assert!(policy.decide(&question("c")).outcome.result.is_ok());
}

#[test]
fn a_process_of_its_own_compiles_the_same() {
    let module = Guest::default().module();
    let ceiling = Ceiling::default();
    let (here, there) =
        (compile_here(&module, "{}", &ceiling).unwrap(), compiler().compile(&module, "{}", &ceiling).unwrap());
    assert_eq!(here.header(), there.header());
    assert!(Policy::load(&engine(), &there, &ceiling, &[]).is_ok());
    let missing = Compiler::process("/nowhere/compiler", []);
    assert!(matches!(missing.compile(&module, "{}", &ceiling), Err(PolicyError::Load(_))));
    let silent = Compiler::process("/bin/true", []);
    assert!(matches!(silent.compile(&module, "{}", &ceiling), Err(PolicyError::Load(_))));
    let refused =
        compiler().compile(&Guest { configure: "unreachable".to_owned(), ..Guest::default() }.module(), "{}", &ceiling);
    assert!(matches!(refused, Err(PolicyError::Trap(_))), "what the process says is what is said");
}

#[test]
fn the_cache_gives_back_what_it_was_given_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let (one, other) = (Guest::default().module(), Guest::answering(DENY).module());
    let ceiling = Ceiling::default();
    let never = Compiler::process("/nowhere/compiler", []);
    let cache = Cache::open(&path).unwrap();
    let made = cache.artifact(&Compiler::Here, &one, "{}", &ceiling).unwrap();
    cache.artifact(&Compiler::Here, &other, "{}", &ceiling).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let cache = Cache::open(&path).unwrap();
    assert_eq!(cache.artifact(&never, &one, "{}", &ceiling).unwrap().bytes(), made.bytes(), "found without a compiler");
    assert!(cache.artifact(&never, &one, "[]", &ceiling).is_err(), "other settings are another artifact");

    let mut files: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "policy"));
    let [first, second] = files.as_slice() else { panic!("{files:?}") };
    // One file in the place of the other: sound, and not what was asked for.
    let (a, b) = (fs::read(first).unwrap(), fs::read(second).unwrap());
    fs::write(first, &b).unwrap();
    fs::write(second, &a).unwrap();
    assert!(
        cache.artifact(&never, &one, "{}", &ceiling).is_err()
            && cache.artifact(&never, &other, "{}", &ceiling).is_err()
    );
    // A single bit.
    let mut flipped = a.clone();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(first, &flipped).unwrap();
    fs::write(second, &flipped).unwrap();
    assert!(cache.artifact(&never, &one, "{}", &ceiling).is_err());
    // Compiled anew, and right again.
    assert!(cache.artifact(&Compiler::Here, &one, "{}", &ceiling).is_ok());
    assert!(cache.artifact(&never, &one, "{}", &ceiling).is_ok());
    // A file that others could have written is not run.
    for file in [first, second] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    }
    assert!(cache.artifact(&never, &one, "{}", &ceiling).is_err());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(Cache::open(&path), Err(CacheError::Shared(_))));
    // Another key makes other codes.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(path.join("key")).unwrap();
    assert!(Cache::open(&path).unwrap().artifact(&never, &other, "{}", &ceiling).is_err());
}

#[test]
fn threads_that_open_a_new_cache_at_once_agree_on_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let (module, ceiling) = (Guest::default().module(), Ceiling::default());
    let never = Compiler::process("/nowhere/compiler", []);
    for round in 0..64 {
        let path = folder.path().join(round.to_string());
        let caches: Vec<Cache> = std::thread::scope(|scope| {
            let open = || scope.spawn(|| Cache::open(&path).unwrap());
            let threads: Vec<_> = std::iter::repeat_with(open).take(4).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "nothing but the key lies there");
        if round == 0 {
            caches[0].artifact(&Compiler::Here, &module, "{}", &ceiling).unwrap();
            for cache in &caches {
                assert!(cache.artifact(&never, &module, "{}", &ceiling).is_ok(), "what one keeps, all find");
            }
        }
    }
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    Cache::open(&path).unwrap();
    fs::set_permissions(path.join("key"), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(Cache::open(&path), Err(CacheError::KeyExposed(file)) if file.ends_with("key")));
}

#[test]
fn a_volume_that_became_writable_for_its_group_is_used_again_and_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let (module, ceiling) = (Guest::default().module(), Ceiling::default());
    let cache = Cache::open(&path).unwrap();
    cache.artifact(&Compiler::Here, &module, "{}", &ceiling).unwrap();
    // What the kubelet does to a volume with `fsGroup` when a pod starts again.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o2770)).unwrap();
    for file in fs::read_dir(&path).unwrap() {
        fs::set_permissions(file.unwrap().path(), fs::Permissions::from_mode(0o660)).unwrap();
    }
    let cache = Cache::open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let never = Compiler::process("/nowhere/compiler", []);
    assert!(cache.artifact(&never, &module, "{}", &ceiling).is_err(), "the group could have written it");
    assert!(cache.artifact(&Compiler::Here, &module, "{}", &ceiling).is_ok());
    assert!(cache.artifact(&never, &module, "{}", &ceiling).is_ok());
}

#[test]
fn the_cache_forgets_what_was_not_used_for_the_longest_time() {
    let folder = tempfile::tempdir().unwrap();
    let (module, ceiling) = (Guest::default().module(), Ceiling::default());
    let never = Compiler::process("/nowhere/compiler", []);
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let size = cache.artifact(&Compiler::Here, &module, "1", &ceiling).unwrap().bytes().len() as u64;
    let cache = cache.with_most_bytes(size * 5 / 2);
    cache.artifact(&Compiler::Here, &module, "2", &ceiling).unwrap();
    cache.artifact(&never, &module, "1", &ceiling).unwrap();
    cache.artifact(&Compiler::Here, &module, "3", &ceiling).unwrap();
    let kept: Vec<_> =
        ["1", "2", "3"].into_iter().filter(|it| cache.artifact(&never, &module, it, &ceiling).is_ok()).collect();
    assert_eq!(kept, ["1", "3"]);
}

#[test]
fn of_several_that_want_the_same_one_compiles() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let count = folder.path().join("count");
    let (good, module, ceiling) = (compiler_that_counts(&count), Guest::default().module(), Ceiling::default());
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..8).map(|_| scope.spawn(|| cache.artifact(&good, &module, "{}", &ceiling).is_ok())).collect();
        assert!(all.into_iter().all(|one| one.join().unwrap()));
    });
    assert_eq!(fs::read_to_string(&count).unwrap(), "once\n");
}

/// The process that compiles, which leaves a line in a file each time.
fn compiler_that_counts(file: &std::path::Path) -> Compiler {
    let Compiler::Process { program, cpu_seconds, memory_bytes, .. } = compiler() else { unreachable!() };
    let script = format!("echo once >> {}; exec {}", file.display(), program.display());
    let arguments = vec!["-c".to_owned(), script];
    Compiler::Process { program: "/bin/sh".into(), arguments, cpu_seconds, memory_bytes }
}

#[test]
fn decisions_are_those_of_any_other_thread() {
    // More threads than shards, and more shards than most machines have processors to spare.
    let engine = Engine::new(&EngineSettings { shards: 3, instances: 64, ..EngineSettings::default() }).unwrap();
    let policy = policy(&engine, &Guest::default().module()).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| (0..200).map(|_| policy.decide(&question("c")).outcome.clone()).collect::<Vec<_>>())
            })
            .collect();
        let all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert!(all.iter().all(|outcome| *outcome == all[0] && outcome.result.is_ok()));
    });
}

#[test]
fn edits_need_the_manifest_and_the_administrator() {
    let engine = engine();
    let ceiling = Ceiling::default();
    let label = |key: &str| EditGrant::Label { key: key.to_owned() };
    let asked = |manifest: &str, administrator: &[EditGrant]| {
        let guest = Guest {
            manifest: Guest::manifest("guest", manifest),
            ..Guest::answering(r#"{"verdict":"allow","edits":[{"op":"set-label","key":"team","value":"a"}]}"#)
        };
        let artifact = compile_here(&guest.module(), "{}", &ceiling).unwrap();
        let policy = Policy::load(&engine, &artifact, &ceiling, administrator).unwrap();
        policy.decide(&question("c")).outcome.result.clone().map(|decision| decision.edits.len())
    };
    let grant = r#","edits":[{"edit":"label","key":"team"}]"#;
    assert_eq!(asked(grant, &[label("team")]), Ok(1));
    assert!(matches!(asked(grant, &[]), Err(PolicyError::EditRefused(_))));
    assert!(matches!(asked(grant, &[label("other")]), Err(PolicyError::EditRefused(_))));
    assert!(matches!(asked("", &[label("team")]), Err(PolicyError::EditRefused(_))));
}
