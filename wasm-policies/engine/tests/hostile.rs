//! Modules that mean harm. Whatever they do, the host answers within the budget, keeps its memory, and decides rightly
//! the next time.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use ocm_policy_abi::Verdict;
use ocm_policy_engine::{Ceiling, Compiler, Engine, Policy, PolicyError, compile_here};
use support::{ANSWER, ANSWER_TEXTS, Guest, compiler, engine, policy, question};

/// Anonymous memory of this process in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or_default() << 10
}

/// Asks a policy and a harmless one beside it, several times.
fn attack(engine: &Engine, hostile: &Arc<Policy>) -> PolicyError {
    let harmless = policy(engine, &Guest::default().module()).expect("the harmless one loads");
    let before = resident();
    let mut errors = Vec::new();
    for _ in 0..3 {
        let error = hostile.decide(&question("c")).outcome.result.clone().expect_err("the attack is no decision");
        errors.push(error);
        let next = harmless.decide(&question("c")).outcome.result.clone();
        assert_eq!(next.map(|decision| decision.verdict), Ok(Verdict::Allow), "the next decision is right");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 96 << 20, "the host grew by {} MiB", grown >> 20);
    errors.dedup();
    assert_eq!(errors.len(), 1, "the same attack ends in the same way: {errors:?}");
    errors.remove(0)
}

fn decides(guest: &Guest) -> PolicyError {
    let engine = engine();
    let hostile = policy(&engine, &guest.module()).expect("it loads");
    attack(&engine, &hostile)
}

fn does_not_load(module: &[u8]) -> PolicyError {
    let engine = engine();
    let error = policy(&engine, module).err().expect("it does not load");
    assert!(policy(&engine, &Guest::default().module()).is_ok(), "the next module loads");
    error
}

#[test]
fn loops_end_with_the_fuel() {
    let endless = "(loop $l (br $l))";
    assert_eq!(decides(&Guest::deciding(endless)), PolicyError::OutOfFuel);
    // Before any request, the most that anybody gets is the limit.
    let start = Guest { fields: format!("(func $s {endless}) (start $s)"), ..Guest::default() };
    assert_eq!(does_not_load(&start.module()), PolicyError::OutOfFuel);
    assert_eq!(
        does_not_load(&Guest { configure: endless.to_owned(), ..Guest::default() }.module()),
        PolicyError::OutOfFuel
    );
    assert_eq!(
        does_not_load(&Guest { describe: endless.to_owned(), ..Guest::default() }.module()),
        PolicyError::OutOfFuel
    );
}

#[test]
fn time_is_a_limit_of_its_own() {
    let guest = Guest::deciding("(loop $l (br $l))");
    let mut ceiling = Ceiling::default();
    ceiling.usual.fuel = u64::MAX / 2;
    ceiling.most.fuel = u64::MAX / 2;
    ceiling.usual.ticks = 5;
    let engine = engine();
    let artifact = compile_here(&guest.module(), "{}", &Ceiling::default()).unwrap();
    let hostile = Policy::load(&engine, &artifact, &ceiling, &[]).unwrap();
    assert_eq!(attack(&engine, &hostile), PolicyError::TimedOut);
}

#[test]
fn recursion_ends_with_the_stack() {
    let fields = "(func $deep (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))".to_owned();
    let guest = Guest { fields, ..Guest::deciding("(drop (call $deep (i32.const 1)))") };
    assert_eq!(decides(&guest), PolicyError::StackExhausted);
}

#[test]
fn memory_is_bounded() {
    let grow = "(loop $l (drop (memory.grow (i32.const 16))) (br $l))";
    assert_eq!(decides(&Guest::deciding(grow)), PolicyError::OutOfMemory);
    let touch = "(drop (memory.grow (i32.const 200))) (memory.fill (i32.const 65536) (i32.const 1) (i32.const 13107200)) unreachable";
    assert!(matches!(decides(&Guest::deciding(touch)), PolicyError::Trap(_)));
    let fields = "(table $t 1 funcref)".to_owned();
    let table = "(loop $l (drop (table.grow $t (ref.null func) (i32.const 4096))) (br $l))";
    assert_eq!(decides(&Guest { fields, ..Guest::deciding(table) }), PolicyError::OutOfMemory);
    for (pages, fields) in [(65_536, ""), (2_048, ""), (1, "(table 10000000 funcref)")] {
        let error = does_not_load(&Guest { pages, fields: fields.to_owned(), ..Guest::default() }.module());
        assert!(
            matches!(error, PolicyError::Load(_) | PolicyError::OutOfMemory | PolicyError::Malformed(_)),
            "{error:?}"
        );
    }
}

#[test]
fn thousands_of_instances_are_refused() {
    let instances = "(core instance (instantiate $m))".repeat(2_000);
    let component = wat::parse_str(format!("(component (core module $m) {instances})")).unwrap();
    assert!(matches!(does_not_load(&component), PolicyError::Load(_)), "it is no policy");
    let nested = "(core module)".repeat(1_000);
    let error = does_not_load(&wat::parse_str(format!("(component {nested})")).unwrap());
    assert!(matches!(&error, PolicyError::Load(text) if text.contains("nested modules")), "{error:?}");
}

const DENY: &str = r#"{"verdict":"deny","reasons":[{"code":"No","message":"no"}]}"#;

/// Writes a number into the answer before it is given.
fn patched(answer: &str, at: u32, number: u32) -> PolicyError {
    let decide = format!("(i32.store (i32.const {at}) (i32.const {number}))");
    decides(&Guest { decide, ..Guest::answering(answer) })
}

#[test]
fn answers_that_cannot_be_taken_are_errors() {
    // Beyond the end of the memory: the answer itself, a list, a text.
    let outside = Guest::deciding("(return (i32.const 65528))");
    assert!(matches!(decides(&outside), PolicyError::Malformed(_) | PolicyError::Trap(_)));
    let many = patched(DENY, ANSWER + 16, 1 << 30);
    assert!(matches!(many, PolicyError::Malformed(_) | PolicyError::TooLarge(_)), "{many:?}");
    let long = "(i32.store (i32.load (i32.const 8204)) (i32.const 65530))";
    let long = Guest { decide: long.to_owned(), ..Guest::answering(DENY) };
    assert!(matches!(decides(&Guest { pages: 1, ..long }), PolicyError::Malformed(_)), "a text ends where memory ends");
    // Not where such things may lie.
    assert!(matches!(patched(DENY, ANSWER + 12, ANSWER_TEXTS + 1), PolicyError::Malformed(_)), "a list is aligned");
    // Words that the contract does not have.
    for (at, number) in [(ANSWER, 4), (ANSWER, 255), (ANSWER + 4, 2), (ANSWER + 4, 255)] {
        let error = patched(DENY, at, number);
        assert!(matches!(error, PolicyError::Malformed(_)), "{at}: {error:?}");
    }
    // Parts that do not fit each other.
    let error = patched(r#"{"verdict":"allow"}"#, ANSWER + 4, 1);
    assert!(matches!(error, PolicyError::Malformed(_)), "an allow does not ask again: {error:?}");
    let twice = r#"{"verdict":"allow","audit":{"ka":"1","kb":"2"}}"#;
    let same = Guest {
        // The second key is the first one.
        decide: format!(
            "(i32.store (i32.add (i32.load (i32.const {0})) (i32.const 16)) (i32.load (i32.load (i32.const {0}))))",
            ANSWER + 44
        ),
        ..Guest::answering(twice)
    };
    let error = decides(&same);
    assert!(matches!(&error, PolicyError::Malformed(text) if text.contains("twice")), "{error:?}");
    // Not UTF-8.
    assert!(matches!(patched(DENY, ANSWER_TEXTS, 0xff), PolicyError::Malformed(_)));
}

#[test]
fn answers_that_are_too_large_are_errors() {
    // One warning, within the memory and far too long.
    let warning = format!(
        "(i32.store (i32.const {}) (i32.const 12288)) (i32.store (i32.const {}) (i32.const 1))
         (i32.store (i32.const 12288) (i32.const 65536)) (i32.store (i32.const 12292) (i32.const 6000000))",
        ANSWER + 20,
        ANSWER + 24,
    );
    let error = decides(&Guest { pages: 100, ..Guest::deciding(&warning) });
    assert!(matches!(error, PolicyError::TooLarge(_)), "{error:?}");
    // A hundred thousand warnings, each of them the same half megabyte.
    let warnings = format!(
        "(i32.store (i32.const {}) (i32.const 1048576)) (i32.store (i32.const {}) (i32.const 100000))
         (local.set 0 (i32.const 0))
         (loop $l
           (i32.store (i32.add (i32.const 1048576) (i32.mul (local.get 0) (i32.const 8))) (i32.const 65536))
           (i32.store (i32.add (i32.const 1048580) (i32.mul (local.get 0) (i32.const 8))) (i32.const 500000))
           (local.set 0 (i32.add (local.get 0) (i32.const 1)))
           (br_if $l (i32.lt_u (local.get 0) (i32.const 100000))))",
        ANSWER + 20,
        ANSWER + 24,
    );
    let error = decides(&Guest { pages: 32, ..Guest::deciding(&warnings) });
    assert!(matches!(error, PolicyError::TooLarge(_)), "{error:?}");
    // More of them than anybody reads, though each is short.
    let many = vec!["w"; 10_000];
    let answer = serde_json::json!({"verdict": "allow", "warnings": many}).to_string();
    let error = decides(&Guest { pages: 10, fields: String::new(), ..Guest::answering(&answer) });
    assert!(matches!(error, PolicyError::TooLarge(_)), "{error:?}");
}

#[test]
fn an_answer_whose_parts_are_small_enough_is_measured_as_a_whole() {
    const MOST: usize = 64 << 10;
    let answer = |last: usize| {
        let reasons = vec![serde_json::json!({"code": "No", "message": "m".repeat(1024)}); 32];
        let value = |number: usize| "v".repeat(if number == 31 { last } else { 1000 });
        let audit: BTreeMap<String, String> = (0..32).map(|number| (format!("k{number:02}"), value(number))).collect();
        serde_json::json!({"verdict": "deny", "reasons": reasons, "audit": audit}).to_string()
    };
    let engine = engine();
    let decides = |last: usize| {
        let guest = Guest { pages: 4, ..Guest::answering(&answer(last)) };
        let policy = policy(&engine, &guest.module()).expect("it loads");
        policy.decide(&question("c")).outcome.result.clone().map(|decision| decision.verdict)
    };
    let left = MOST - answer(0).len();
    assert!((1..1000).contains(&left), "an entry for the audit log cannot be of {left} bytes");
    assert_eq!(decides(left), Ok(Verdict::Deny));
    let error = PolicyError::TooLarge(format!("{} bytes, {MOST} allowed", MOST + 1));
    assert_eq!(decides(left + 1), Err(error));
}

#[test]
fn only_the_contract_is_the_contract() {
    // The functions have their names, and take and give something else.
    let text = r#"(component
      (core module $m (memory (export "memory") 1)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
        (func (export "text") (result i32) (i32.const 0))
        (func (export "configure") (param i32 i32) (result i32) (i32.const 8))
        (func (export "decide") (param i32 i32) (result i32) (i32.const 0))
        (data (i32.const 0) "\10\00\00\00\ff\00\00\00")
        (data (i32.const 16) "MANIFEST"))
      (core instance $i (instantiate $m))
      (func $describe (result string) (canon lift (core func $i "text") (memory $i "memory")))
      (func $configure (param "settings" string) (result (result (error (list string))))
        (canon lift (core func $i "configure") (memory $i "memory") (realloc (func $i "realloc"))))
      (func $decide (param "request" string) (result string)
        (canon lift (core func $i "decide") (memory $i "memory") (realloc (func $i "realloc"))))
      (instance $policy
        (export "describe" (func $describe)) (export "configure" (func $configure)) (export "decide" (func $decide)))
      (export "ocm:policy/policy@0.1.0" (instance $policy)))"#;
    let manifest = format!("{:255}", Guest::manifest("guest", "")).replace('"', "\\\"");
    let error = does_not_load(&wat::parse_str(text.replace("MANIFEST", &manifest)).unwrap());
    assert!(matches!(&error, PolicyError::Load(text) if text.contains("not that of the contract")), "{error:?}");
}

#[test]
fn a_module_that_asks_to_know_too_much_is_refused() {
    let queries = |name: &dyn Fn(usize) -> String, number: usize| {
        let query = |index| format!(r#"{{"name":"{}","source":{{"kind":"clusters"}}}}"#, name(index));
        format!(r#","evidence":[{}]"#, (0..number).map(query).collect::<Vec<_>>().join(","))
    };
    let distinct = |index: usize| index.to_string();
    for (more, why) in [
        (queries(&distinct, 33), "33 queries for evidence, 32 allowed"),
        (queries(&|_| "q".to_owned(), 2), "have the name \"q\""),
        (format!(r#","description":"{}""#, " ".repeat(64 << 10)), "bytes, 65536 allowed"),
    ] {
        let mut guest = Guest { manifest: Guest::manifest("guest", &more), pages: 4, ..Guest::default() };
        // Behind everything else, where it has room.
        let (at, length) = (1 << 17, guest.manifest.len());
        guest.fields = format!("(data (i32.const {at}) \"{}\")", guest.manifest.replace('"', "\\\""));
        guest.manifest.clear();
        guest.describe = format!(
            "(i32.store (i32.const 16) (i32.const {at})) (i32.store (i32.const 20) (i32.const {length})) (return (i32.const 16))"
        );
        let module = guest.module();
        let ceiling = Ceiling::default();
        for error in [
            does_not_load(&module),
            compiler().compile(&module, "{}", &ceiling).err().expect("it does not load"),
            compiler().describe(&module, &ceiling).expect_err("it is not described"),
        ] {
            assert!(matches!(&error, PolicyError::Load(said) if said.contains(why)), "{why}: {error:?}");
        }
    }
    let most = Guest { manifest: Guest::manifest("guest", &queries(&distinct, 32)), ..Guest::default() };
    assert!(policy(&engine(), &most.module()).is_ok());
}

#[test]
fn a_module_does_not_choose_how_long_an_error_about_it_is() {
    let module = wat::parse_str(format!(r#"(module (func (export "{}")))"#, "ä".repeat(20_000))).unwrap();
    let ceiling = Ceiling::default();
    for compiler in [Compiler::Here, compiler()] {
        let compiled = compiler.compile(&module, "{}", &ceiling).err();
        let described = compiler.describe(&module, &ceiling).err();
        for error in [compiled, described] {
            let Some(PolicyError::Load(said)) = &error else { panic!("{error:?}") };
            assert!(said.contains("exports ä") && said.ends_with('…') && said.len() <= 2048, "{said}");
        }
    }
}

#[test]
fn lists_that_point_at_one_text_are_refused() {
    // 65 536 errors, each of them the same megabyte.
    let configure = "(local.set 0 (i32.const 0))
        (i32.store8 (i32.const 32) (i32.const 1))
        (i32.store (i32.const 36) (i32.const 131072))
        (i32.store (i32.const 40) (i32.const 65536))
        (loop $l
          (i32.store (i32.add (i32.const 131072) (i32.mul (local.get 0) (i32.const 8))) (i32.const 1048576))
          (i32.store (i32.add (i32.const 131076) (i32.mul (local.get 0) (i32.const 8))) (i32.const 1048576))
          (local.set 0 (i32.add (local.get 0) (i32.const 1)))
          (br_if $l (i32.lt_u (local.get 0) (i32.const 65536))))";
    let before = resident();
    let error = does_not_load(&Guest { pages: 40, configure: configure.to_owned(), ..Guest::default() }.module());
    assert!(matches!(error, PolicyError::TooLarge(_)), "{error:?}");
    assert!(resident().saturating_sub(before) < 96 << 20);
}

#[test]
fn traps_are_errors() {
    for (decide, word) in [
        ("unreachable", "unreachable"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "divide by zero"),
        ("(drop (i32.load (i32.const -8)))", "out of bounds"),
    ] {
        let error = decides(&Guest::deciding(decide));
        assert!(matches!(&error, PolicyError::Trap(text) if text.contains(word)), "{error:?}");
    }
}

#[test]
fn a_policy_imports_nothing() {
    let fields = r#"(import "env" "clock" (func $clock (result i64)))"#;
    let module = wat::parse_str(format!(
        r#"(module {fields} (memory (export "memory") 1)
           (func (export "ocm:policy/policy@0.1.0#decide") (param i32 i32) (result i32) unreachable))"#
    ));
    assert!(matches!(does_not_load(&module.unwrap()), PolicyError::Load(_)));
    let component = wat::parse_str(
        r#"(component (import "wasi:clocks/wall-clock@0.2.0" (instance $c))
           (component $inner) (instance $i (instantiate $inner)) (export "ocm:policy/policy@0.1.0" (instance $i)))"#,
    );
    let error = does_not_load(&component.unwrap());
    assert!(matches!(&error, PolicyError::Load(_)), "{error:?}");
}

#[test]
fn what_costs_too_much_to_compile_is_not_compiled() {
    // One function of a megabyte.
    let long = "(drop (i32.const 1))".repeat(400_000);
    let error = does_not_load(&Guest { fields: format!("(func {long})"), ..Guest::default() }.module());
    assert!(matches!(&error, PolicyError::Load(text) if text.contains("bytes in one function")), "{error:?}");
    let many = "(func)".repeat(100_001);
    let error = does_not_load(&Guest { fields: many, ..Guest::default() }.module());
    assert!(matches!(&error, PolicyError::Load(text) if text.contains("functions")), "{error:?}");
    // Below those limits, the kernel ends the process that compiles.
    let costly = "(func (param i32) (result i32) (local.get 0) ".to_owned()
        + &"(if (result i32) (then (i32.const 1)) (else (i32.const 2)))".repeat(20_000)
        + ")";
    let module = Guest { fields: costly.repeat(8), ..Guest::default() }.module();
    let Compiler::Process { program, arguments, memory_bytes, .. } = compiler() else { unreachable!() };
    let hasty = Compiler::Process { program, arguments, cpu_seconds: 1, memory_bytes };
    let error = hasty.compile(&module, "{}", &Ceiling::default()).err();
    assert!(matches!(&error, Some(PolicyError::Load(text)) if text.contains("processor time")), "{error:?}");
    assert!(hasty.compile(&Guest::default().module(), "{}", &Ceiling::default()).is_ok(), "the next one is compiled");
}

/// A compiler that answers as it likes.
#[test]
fn what_a_process_answers_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let module = Guest::default().module();
    let ceiling = Ceiling::default();
    let compiled = |script: &str, settings: &str| {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        // Only who says nothing has to be ended by the clock.
        let cpu_seconds = if script.contains("sleep") { 1 } else { 60 };
        let process = Compiler::Process { program: "/bin/sh".into(), arguments, cpu_seconds, memory_bytes: 1 << 30 };
        process.compile(&module, settings, &ceiling).map(|artifact| artifact.bytes().to_vec())
    };
    let answer = folder.path().join("answer");
    let right = [&[0][..], compile_here(&module, "{}", &ceiling).unwrap().bytes()].concat();
    fs::write(&answer, &right).unwrap();
    let read = format!("cat > /dev/null; cat {}", answer.display());
    assert_eq!(compiled(&read, "{}").as_deref(), Ok(&right[1..]), "this is how it should be");
    assert!(compiled(&read, "null").is_err(), "that is of other settings");
    let other = Guest { manifest: Guest::manifest("another", ""), ..Guest::default() }.module();
    fs::write(&answer, [&[0][..], compile_here(&other, "{}", &ceiling).unwrap().bytes()].concat()).unwrap();
    assert!(compiled(&read, "{}").is_err(), "that is of another module");
    fs::write(&answer, &right).unwrap();
    let scripts = [
        "cat > /dev/null",
        "printf junk",
        "cat > /dev/null; printf '\\0junk'",
        "cat > /dev/null; printf '\\1junk'",
        &format!("cat > /dev/null; head -c 40 {}", answer.display()),
        // Fails after it has answered, does not read, says nothing, says nothing more.
        &format!("{read}; exit 1"),
        "head -c 1000000 /dev/zero",
        "exec sleep 1000",
        "exec >&-; exec sleep 1000",
    ];
    std::thread::scope(|scope| {
        for script in scripts {
            let compiled = &compiled;
            scope.spawn(move || {
                let error = compiled(script, "{}").expect_err(script);
                assert!(
                    matches!(&error, PolicyError::Load(why) if why.contains("cannot be compiled")),
                    "{script}: {error:?}"
                );
            });
        }
    });
}

#[test]
fn damaged_modules_are_refused_or_harmless() {
    let module = Guest::default().module();
    let engine = engine();
    let whole = (0..module.len()).filter(|end| policy(&engine, &module[..*end]).is_ok()).collect::<Vec<_>>();
    // Only what stands behind everything that counts may be missing: a custom section.
    assert!(whole.len() < 2 && whole.iter().all(|end| module[*end] == 0), "cut at {whole:?}");
    for at in (0..module.len()).step_by(3) {
        let mut flipped = module.clone();
        flipped[at] ^= 1 << (at % 8);
        // What still loads is another policy; it decides or fails, and never takes the host with it.
        if let Ok(policy) = policy(&engine, &flipped) {
            let _ = policy.decide(&question("c")).outcome.result.clone();
        }
    }
}
