//! Modules of other contracts, good and bad ones, written by hand.

use std::sync::{Arc, LazyLock};

use ocm_policy_abi::{Operation, Request, Row, Table, Verdict};
use ocm_policy_engine::{
    Artifact, Ceiling, Engine, EngineSettings, Kind, Outcome, Policy, PolicyError, Question, annotate, compile_here,
};
use serde_json::{Value, json};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    Engine::new(&EngineSettings { instances: 32, ..EngineSettings::default() }).expect("it runs here")
});

fn compile(wat: &str, settings: &str) -> Result<Artifact, PolicyError> {
    compile_here(&wat::parse_str(wat).expect("the module can be written"), settings, &Ceiling::default())
}

fn policy(wat: &str) -> Arc<Policy> {
    let artifact = compile(wat, "{}").expect("it can be compiled");
    Policy::load(&ENGINE, &artifact, &Ceiling::default(), &[]).expect("it can be loaded")
}

/// Why a module cannot be used.
fn refusal(wat: &str) -> String {
    match compile(wat, "{}") {
        Err(PolicyError::Load(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused"),
    }
}

fn question() -> Question {
    let request = json!({
        "id": "84bd3dc3", "operation": "create", "now": 1_790_000_000_000_i64,
        "requester": {"username": "system:serviceaccount:open-cluster-management:bootstrap", "groups": ["g"]},
        "resource": {"group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster",
                     "resource": "managedclusters", "operation": "CREATE", "name": "prod-1"},
        "cluster": {"name": "prod-1", "labels": {"env": "prod"}},
        "object": {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                   "metadata": {"name": "prod-1", "labels": {"env": "prod"}}, "spec": {}},
    });
    let text = request.to_string();
    Question::new(serde_json::from_str::<Request<'_>>(&text).expect("it is a request").into_owned())
}

/// The answer, which must be the same when it is asked for again.
fn ask(policy: &Arc<Policy>) -> Outcome {
    let question = question();
    let first = policy.decide(&question).outcome.clone();
    for _ in 0..3 {
        assert_eq!(policy.decide(&question).outcome, first, "the same request gets the same answer for the same fuel");
    }
    first
}

fn verdict(wat: &str) -> Verdict {
    ask(&policy(wat)).result.expect("there is a decision").verdict
}

fn policy_error(wat: &str) -> PolicyError {
    ask(&policy(wat)).result.expect_err("there is no decision")
}

/// Text in the memory of a module.
fn data(at: u32, text: &str) -> String {
    let escaped: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!("(data (i32.const {at}) \"{escaped}\")")
}

// ── waPC ──

/// A policy whose `validate` does this, with `$op` and `$len`, the sizes of what it may fetch.
fn wapc(body: &str) -> String {
    wapc_with(body, r#"{"valid":true}"#)
}

fn wapc_with(body: &str, settings: &str) -> String {
    format!(
        r#"(module
  (import "wapc" "__guest_request" (func $request (param i32 i32)))
  (import "wapc" "__guest_response" (func $response (param i32 i32)))
  (import "wapc" "__guest_error" (func $error (param i32 i32)))
  (import "wapc" "__host_call" (func $host (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wapc" "__host_error_len" (func $host_error_len (result i32)))
  (import "wapc" "__host_error" (func $host_error (param i32)))
  (import "wapc" "__host_response_len" (func $host_response_len (result i32)))
  (import "wapc" "__host_response" (func $host_response (param i32)))
  (import "wapc" "__console_log" (func $log (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 4)
  {version}{settings_answer}{accept}{deny}{kubernetes}{can_i}{tracing}{log}
  (global $ready (mut i32) (i32.const 0))
  (func (export "wapc_init") (global.set $ready (i32.const 1)))
  (func (export "__guest_call") (param $op i32) (param $len i32) (result i32)
    (local $n i32)
    (if (i32.eq (local.get $op) (i32.const 16))
      (then (call $response (i32.const 0) (i32.const 4)) (return (i32.const 1))))
    (if (i32.eq (local.get $op) (i32.const 17))
      (then (call $response (i32.const 16) (i32.const {settings_length})) (return (i32.const 1))))
    {body}))"#,
        version = data(0, r#""v1""#),
        settings_answer = data(16, settings),
        settings_length = settings.len(),
        accept = data(200, r#"{"accepted":true}"#),
        deny = data(300, r#"{"accepted":false,"message":"no","code":403}"#),
        kubernetes = data(400, "kubernetes"),
        can_i = data(420, "can_i"),
        tracing = data(440, "tracing"),
        log = data(460, "log"),
    )
}

const ACCEPT: &str = "(call $response (i32.const 200) (i32.const 17)) (i32.const 1)";

#[test]
fn a_wapc_policy_accepts_and_rejects() {
    let accepting = policy(&wapc(ACCEPT));
    assert_eq!(accepting.header().kind, Kind::KubewardenWapc);
    assert!(accepting.manifest().wants_object && accepting.judges(Operation::Approve));
    assert!(accepting.manifest().name.starts_with("kubewarden-wapc-"), "{}", accepting.manifest().name);
    let outcome = ask(&accepting);
    assert_eq!(outcome.result.expect("it decides").verdict, Verdict::NoOpinion);
    assert!(outcome.fuel > 0 && outcome.fuel < 1_000_000, "{}", outcome.fuel);
    let denied = ask(&policy(&wapc("(call $response (i32.const 300) (i32.const 44)) (i32.const 1)")));
    let denied = denied.result.expect("it decides");
    assert_eq!((denied.verdict, denied.reasons[0].message.as_str()), (Verdict::Deny, "no"));
}

#[test]
fn a_wapc_policy_is_started_before_it_is_called() {
    let body = format!("(if (i32.eqz (global.get $ready)) (then (unreachable))) {ACCEPT}");
    assert_eq!(verdict(&wapc(&body)), Verdict::NoOpinion);
}

#[test]
fn a_wapc_policy_reads_its_request() {
    // Somewhere in the request stands `CREATE`.
    let body = format!(
        r#"        (call $request (i32.const 65000) (i32.const 70000))
        (local.set $n (i32.const 70000))
        (block $found (loop $next
          (br_if $found (i32.eq (i32.load (local.get $n)) (i32.const 0x41455243)))
          (if (i32.ge_u (local.get $n) (i32.add (i32.const 70000) (local.get $len))) (then (unreachable)))
          (local.set $n (i32.add (local.get $n) (i32.const 1))) (br $next)))
        (if (i32.ne (i32.load (i32.const 65000)) (i32.const 0x696c6176)) (then (unreachable)))
        {ACCEPT}"#
    );
    assert_eq!(verdict(&wapc(&body)), Verdict::NoOpinion);
}

const CAN_I: &str = "(call $host (i32.const 400) (i32.const 10) (i32.const 400) (i32.const 10) \
                     (i32.const 420) (i32.const 5) (i32.const 0) (i32.const 0))";

#[test]
fn a_denied_host_call_never_allows() {
    let denied = PolicyError::HostCall("kubernetes/can_i".to_owned());
    // It swallows the error and accepts.
    assert_eq!(policy_error(&wapc(&format!("(drop {CAN_I}) {ACCEPT}"))), denied);
    // It was told so: with an error, and no response.
    let told = format!(
        "(if {CAN_I} (then (unreachable)))
         (if (i32.eqz (call $host_error_len)) (then (unreachable)))
         (if (call $host_response_len) (then (unreachable)))
         (call $host_error (i32.const 1000))
         (if (i32.eqz (i32.load (i32.const 1000))) (then (unreachable))) {ACCEPT}"
    );
    assert_eq!(policy_error(&wapc(&told)), denied);
    // It gives up.
    assert_eq!(policy_error(&wapc(&format!("(drop {CAN_I}) (unreachable)"))), denied);
}

#[test]
fn logging_is_granted() {
    let body = format!(
        "(if (i32.eqz (call $host (i32.const 0) (i32.const 0) (i32.const 440) (i32.const 7) (i32.const 460) (i32.const 3)
           (i32.const 0) (i32.const 64))) (then (unreachable)))
         (call $host_response (i32.const 0)) (call $log (i32.const 0) (i32.const 64)) {ACCEPT}"
    );
    assert_eq!(verdict(&wapc(&body)), Verdict::NoOpinion);
}

#[test]
fn broken_wapc_policies_have_precise_errors() {
    for (body, code) in [
        ("(loop $l (br $l)) (unreachable)", "out-of-fuel"),
        ("(unreachable)", "trap"),
        ("(call $response (i32.const 4) (i32.const 9)) (i32.const 1)", "malformed"),
        ("(i32.const 1)", "malformed"),
        ("(i32.const 0)", "trap"),
        ("(call $response (i32.const 0) (i32.const 2000000)) (i32.const 1)", "too-large"),
        ("(call $response (i32.const 0) (i32.const 200000)) (i32.const 1)", "too-large"),
        ("(call $response (i32.const 262140) (i32.const 5)) (i32.const 1)", "trap"),
        ("(call $response (i32.const -1) (i32.const 1)) (i32.const 1)", "trap"),
        ("(call $error (i32.const -1) (i32.const -1)) (i32.const 0)", "too-large"),
        ("(call $request (i32.const 0) (i32.const 262140)) (i32.const 1)", "trap"),
        ("(call $host_response (i32.const -1)) (call $host_error (i32.const -1)) (i32.const 1)", "trap"),
        ("(call $log (i32.const 0) (i32.const -1)) (i32.const 1)", "trap"),
        (
            "(drop (call $host (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 7) (i32.const 0) (i32.const 3)
           (i32.const 0) (i32.const 0))) (i32.const 1)",
            "trap",
        ),
        ("(drop (call $random (i32.const 0) (i32.const -1))) (i32.const 1)", "out-of-fuel"),
        ("(loop $l (drop (call $random (i32.const 0) (i32.const 65536))) (br $l)) (unreachable)", "out-of-fuel"),
        ("(loop $l (drop (memory.grow (i32.const 100))) (br $l)) (unreachable)", "out-of-memory"),
        ("(call $exit (i32.const 3)) (i32.const 1)", "exit"),
        ("(call $exit (i32.const 0)) (i32.const 1)", "malformed"),
    ] {
        assert_eq!(policy_error(&wapc(body)).code(), code, "{body}");
    }
}

#[test]
fn a_failing_wapc_policy_says_why() {
    let body = "(call $error (i32.const 400) (i32.const 10)) (i32.const 0)";
    assert_eq!(policy_error(&wapc(body)), PolicyError::Trap("validate fails: kubernetes".to_owned()));
    let PolicyError::Trap(said) = policy_error(&wapc("(call $log (i32.const 400) (i32.const 10)) (unreachable)"))
    else {
        panic!("no trap")
    };
    assert!(said.ends_with("; it said: kubernetes"), "{said}");
}

#[test]
fn settings_are_judged_when_a_policy_is_loaded() {
    let module = wapc_with(ACCEPT, r#"{"valid":false,"message":"names must not be empty"}"#);
    let refused = compile(&module, "{}").err();
    assert_eq!(refused, Some(PolicyError::Settings("names must not be empty".to_owned())));
    assert!(refusal(&wapc_with(ACCEPT, "yes")).starts_with("it cannot judge its settings: "));
}

#[test]
fn the_metadata_of_kubewarden_counts() {
    let metadata = json!({
        "protocolVersion": "v1", "mutating": true, "executionMode": "kubewarden-wapc",
        "rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["v1"],
                   "resources": ["managedclusters"], "operations": ["CREATE"]}],
        "annotations": {"io.kubewarden.policy.title": "Named", "io.kubewarden.policy.version": "1.2.3"},
    });
    let module = wat::parse_str(wapc(ACCEPT)).expect("it can be written");
    let module = annotate(&module, "io.kubewarden.metadata", metadata.to_string().as_bytes());
    let artifact = compile_here(&module, "{}", &Ceiling::default()).expect("it can be compiled");
    let manifest = &artifact.header().manifest;
    assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("named", "1.2.3"));
    assert_eq!(manifest.operations, [Operation::Create]);
    let mut aware = metadata;
    aware["contextAwareResources"] = json!([{"apiVersion": "v1", "kind": "Namespace"}]);
    let module = wat::parse_str(wapc(ACCEPT)).expect("it can be written");
    let aware = annotate(&module, "io.kubewarden.metadata", aware.to_string().as_bytes());
    let refused = compile_here(&aware, "{}", &Ceiling::default()).err().expect("nobody answers its calls").to_string();
    assert!(refused.contains("contextAwareResources") && refused.contains("not answered"), "{refused}");
    let opa = json!({"protocolVersion": "v1", "executionMode": "opa"});
    let module = annotate(
        &wat::parse_str(rego("", OPEN)).expect("it can be written"),
        "io.kubewarden.metadata",
        opa.to_string().as_bytes(),
    );
    assert_eq!(compile_here(&module, "{}", &Ceiling::default()).err().map(|error| error.code()), Some("load"));
}

#[test]
fn a_manifest_in_the_module_counts_before_everything_else() {
    let manifest = json!({"contract": "ocm:policy@0.1.0", "name": "mine", "version": "2.0.0", "operations": ["create"],
                          "limits": {"fuel": 1000}});
    let module = wat::parse_str(wapc("(loop $l (br $l)) (unreachable)")).expect("it can be written");
    let module = annotate(&module, "ocm-policy-manifest", manifest.to_string().as_bytes());
    let artifact = compile_here(&module, "{}", &Ceiling::default()).expect("it can be compiled");
    assert!(artifact.header().manifest.wants_object, "other contracts know whole objects");
    let policy = Policy::load(&ENGINE, &artifact, &Ceiling::default(), &[]).expect("it can be loaded");
    let outcome = ask(&policy);
    assert_eq!((outcome.policy.name.as_str(), outcome.fuel), ("mine", 1000));
    assert_eq!(outcome.result, Err(PolicyError::OutOfFuel));
}

// ── WASI commands ──

/// A command that does this when it is asked to decide; asked for its manifest, it says nothing.
fn command(body: &str) -> String {
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_send" (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 4)
  {allow}{deny}{wrong}
  (func $print (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func (export "_start")
    (local $n i32)
    (drop (call $args_sizes (i32.const 16) (i32.const 20)))
    (if (i32.ne (i32.load (i32.const 16)) (i32.const 2)) (then (unreachable)))
    (drop (call $args (i32.const 24) (i32.const 64)))
    (if (i32.ne (i32.load (i32.load (i32.const 28))) (i32.const 0x69636564))
      (then (call $exit (i32.const 0))))
    {body}))"#,
        allow = data(200, r#"{"verdict":"allow"}"#),
        deny = data(300, r#"{"verdict":"deny","reasons":[{"code":"No","message":"never"}]}"#),
        wrong = data(400, r#"{"verdict":"perhaps"}"#),
    )
}

const WASI: &str = "wasi_snapshot_preview1";
const ALLOW: &str = "(call $print (i32.const 200) (i32.const 19))";

#[test]
fn a_command_allows_and_denies() {
    let allowing = policy(&command(ALLOW));
    assert_eq!(allowing.header().kind, Kind::WasiCommand);
    assert!(allowing.manifest().name.starts_with("wasi-command-"));
    assert_eq!(ask(&allowing).result.expect("it decides").verdict, Verdict::Allow);
    let denied = ask(&policy(&command("(call $print (i32.const 300) (i32.const 62))"))).result.expect("it decides");
    assert_eq!((denied.verdict, denied.reasons[0].code.as_str()), (Verdict::Deny, "No"));
    assert_eq!(verdict(&command(&format!("{ALLOW} (call $exit (i32.const 0))"))), Verdict::Allow);
}

#[test]
fn a_command_reads_the_request_and_its_settings() {
    // The settings stand at the end: what it reads must end with them.
    let body = format!(
        r#"        (i32.store (i32.const 0) (i32.const 70000)) (i32.store (i32.const 4) (i32.const 90000))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (local.set $n (i32.load (i32.const 8)))
        (if (i32.ne (i32.load8_u (i32.const 70000)) (i32.const 123)) (then (unreachable)))
        (if (i64.ne (i64.load (i32.sub (i32.add (i32.const 70000) (local.get $n)) (i32.const 8)))
                    (i64.const 0x7d7d7b3a2273676e)) (then (unreachable)))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (if (i32.load (i32.const 8)) (then (unreachable)))
        {ALLOW}"#
    );
    assert_eq!(verdict(&command(&body)), Verdict::Allow);
}

#[test]
fn broken_commands_have_precise_errors() {
    for (body, code) in [
        ("(loop $l (br $l))", "out-of-fuel"),
        ("(unreachable)", "trap"),
        ("", "malformed"),
        ("(call $print (i32.const 400) (i32.const 21))", "malformed"),
        ("(call $exit (i32.const 7))", "exit"),
        ("(loop $l (call $print (i32.const 0) (i32.const 65536)) (br $l))", "too-large"),
        ("(call $print (i32.const 0) (i32.const 200000))", "too-large"),
        ("(call $print (i32.const 262140) (i32.const 5))", "trap"),
        ("(drop (call $write (i32.const 1) (i32.const -4) (i32.const 1) (i32.const 8)))", "trap"),
        ("(drop (call $read (i32.const 0) (i32.const -4) (i32.const 1) (i32.const 8)))", "trap"),
        ("(drop (call $args (i32.const -4) (i32.const -4)))", "trap"),
        ("(drop (call $clock (i32.const 0) (i64.const 0) (i32.const -4)))", "trap"),
        ("(drop (call $poll (i32.const -4) (i32.const 0) (i32.const 1) (i32.const 8)))", "trap"),
        ("(drop (call $random (i32.const -4) (i32.const 8)))", "trap"),
        ("(drop (memory.grow (i32.const 65000)))", "out-of-memory"),
    ] {
        assert_eq!(policy_error(&command(body)).code(), code, "{body}");
    }
    assert_eq!(policy_error(&command("(call $exit (i32.const 7))")), PolicyError::Exit(7));
    assert_eq!(policy_error(&command(&format!("{ALLOW} (call $exit (i32.const 1))"))), PolicyError::Exit(1));
}

#[test]
fn a_command_finds_no_world() {
    let body = format!(
        "(if (i32.ne (call $open (i32.const 3) (i32.const 0) (i32.const 200) (i32.const 4) (i32.const 0) (i64.const 0)
            (i64.const 0) (i32.const 0) (i32.const 8)) (i32.const 2)) (then (unreachable)))
         (if (i32.ne (call $prestat (i32.const 3) (i32.const 8)) (i32.const 8)) (then (unreachable)))
         (if (i32.ne (call $send (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const 57))
            (then (unreachable)))
         (if (i32.ne (call $write (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 8)) (i32.const 8)) (then (unreachable)))
         (if (i32.ne (call $poll (i32.const 0) (i32.const 0) (i32.const 100000) (i32.const 8)) (i32.const 28)) (then (unreachable)))
         (i32.store (i32.const 8) (i32.const 1))
         (drop (call $environ (i32.const 8) (i32.const 12)))
         (if (i32.load (i32.const 8)) (then (unreachable)))
         {ALLOW}"
    );
    assert_eq!(verdict(&command(&body)), Verdict::Allow);
}

#[test]
fn time_is_the_request_s_and_sleep_takes_none() {
    let body = format!(
        "(drop (call $clock (i32.const 0) (i64.const 0) (i32.const 80)))
         (if (i64.ne (i64.load (i32.const 80)) (i64.const 1790000000000001000)) (then (unreachable)))
         ;; One subscription: the monotonic clock, an hour from now.
         (i32.store (i32.const 1016) (i32.const 1))
         (i64.store (i32.const 1024) (i64.const 3600000000000))
         (drop (call $poll (i32.const 1000) (i32.const 2000) (i32.const 1) (i32.const 96)))
         (if (i32.ne (i32.load (i32.const 96)) (i32.const 1)) (then (unreachable)))
         (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 80)))
         (if (i64.lt_u (i64.load (i32.const 80)) (i64.const 1790003600000001000)) (then (unreachable)))
         {ALLOW}"
    );
    assert_eq!(verdict(&command(&body)), Verdict::Allow);
}

#[test]
fn randomness_is_made_of_the_request() {
    // The fuel depends on what is drawn, and `ask` compares it.
    let body = format!(
        "(drop (call $random (i32.const 80) (i32.const 4)))
         (local.set $n (i32.and (i32.load (i32.const 80)) (i32.const 1023)))
         (block $done (loop $l (br_if $done (i32.eqz (local.get $n)))
           (local.set $n (i32.sub (local.get $n) (i32.const 1))) (br $l))) {ALLOW}"
    );
    assert_eq!(verdict(&command(&body)), Verdict::Allow);
}

#[test]
fn what_a_module_cannot_have_is_named() {
    let why = refusal(
        r#"(module (import "wasi_snapshot_preview1" "fd_teleport" (func)) (memory (export "memory") 1) (func (export "_start")))"#,
    );
    assert!(why.contains("fd_teleport"), "{why}");
    let why = refusal(r#"(module (memory (export "memory") 16384) (func (export "_start")))"#);
    assert_eq!(why, "it starts with 1024 MiB of memory, and no policy gets more than 64 MiB");
    let why = refusal(r#"(module (memory 16384) (func (export "_start")))"#);
    assert!(why.starts_with("it starts with 1024 MiB"), "memory that is not exported counts too: {why}");
    let why = refusal(r#"(module (table 20000000 funcref) (memory (export "memory") 1) (func (export "_start")))"#);
    assert!(why.contains("table"), "{why}");
}

#[test]
fn a_ceiling_that_was_lowered_is_told_when_the_policy_is_loaded() {
    let artifact = compile(&command(ALLOW), "{}").expect("it can be compiled");
    let mut low = Ceiling::default();
    low.usual.memory_bytes = 1 << 17;
    low.most.memory_bytes = 1 << 17;
    match Policy::load(&ENGINE, &artifact, &low, &[]) {
        // Nothing runs before the request, so the memory itself is refused.
        Err(PolicyError::Load(why)) => assert!(why.contains("memory"), "{why}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is loaded"),
    }
}

#[test]
fn a_command_describes_itself() {
    let manifest = r#"{"contract":"ocm:policy@0.1.0","name":"itself","version":"1.0.0","operations":["accept"]}"#;
    let module = |text: &str, end: &str| {
        format!(
            r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1) {}
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const {}))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))) {end}))"#,
            data(100, text),
            text.len()
        )
    };
    let header = |wat: &str| compile(wat, "{}").map(|artifact| artifact.header().manifest.clone());
    let own = header(&module(manifest, "")).expect("it can be used");
    assert_eq!((own.name.as_str(), own.operations.as_slice()), ("itself", &[Operation::Accept][..]));
    for end in ["(call $exit (i32.const 2))", "(unreachable)"] {
        assert!(header(&module(manifest, end)).expect("it can be used").name.starts_with("wasi-command-"), "{end}");
    }
    assert!(refusal(&module("{]", "")).starts_with("its manifest cannot be read"));
    assert!(refusal(&module(&manifest.replace("0.1.0", "7.0.0"), "")).contains("ocm:policy@7.0.0"));
    assert_eq!(header(&module(manifest, "(loop $l (br $l))")).unwrap_err(), PolicyError::OutOfFuel);
}

/// A Kubewarden policy of the other kind.
fn kubewarden_command(body: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "host" "call" (func $host (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 4)
  {}{}{}{}{}{}
  (func $print (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $length))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func (export "_start")
    (drop (call $args (i32.const 24) (i32.const 64)))
    ;; The ninth letter tells validate from validate-settings.
    (if (i32.load8_u (i32.add (i32.load (i32.const 28)) (i32.const 8)))
      (then (call $print (i32.const 500) (i32.const 14)) (return)))
    {body}))"#,
        data(200, r#"{"accepted":true}"#),
        data(300, r#"{"accepted":false,"message":"no","code":403}"#),
        data(400, "kubernetes"),
        data(420, "can_i"),
        data(440, "tracing"),
        data(500, r#"{"valid":true}"#),
    );
    let metadata = json!({"protocolVersion": "v1", "executionMode": "wasi", "rules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]});
    annotate(
        &wat::parse_str(wat).expect("it can be written"),
        "io.kubewarden.metadata",
        metadata.to_string().as_bytes(),
    )
}

fn ask_kubewarden_command(body: &str) -> Result<Verdict, PolicyError> {
    let artifact = compile_here(&kubewarden_command(body), "{}", &Ceiling::default())?;
    assert_eq!(artifact.header().kind, Kind::KubewardenWasi);
    ask(&Policy::load(&ENGINE, &artifact, &Ceiling::default(), &[])?).result.map(|decision| decision.verdict)
}

#[test]
fn kubewarden_commands_are_asked_and_may_not_ask() {
    let accept = "(call $print (i32.const 200) (i32.const 17))";
    assert_eq!(ask_kubewarden_command(accept), Ok(Verdict::NoOpinion));
    assert_eq!(ask_kubewarden_command("(call $print (i32.const 300) (i32.const 44))"), Ok(Verdict::Deny));
    let asking = "(drop (call $host (i32.const 0) (i32.const 0) (i32.const 400) (i32.const 10) (i32.const 420)
                  (i32.const 5) (i32.const 0) (i32.const 0)))";
    let denied = Err(PolicyError::HostCall("kubernetes/can_i".to_owned()));
    assert_eq!(ask_kubewarden_command(&format!("{asking} {accept}")), denied);
    assert_eq!(ask_kubewarden_command(&format!("{asking} (call $exit (i32.const 1))")), denied);
    assert_eq!(ask_kubewarden_command("(call $exit (i32.const 1))"), Err(PolicyError::Exit(1)));
    assert_eq!(ask_kubewarden_command("").map_err(|error| error.code()), Err("malformed"));
}

// ── Rego ──

const OPEN: &str = "(i32.const 300)";

/// A module with the interface of Rego: strings stand for their values, and the result is what `eval` says.
fn rego(builtins: &str, eval: &str) -> String {
    format!(
        r#"(module
  (import "env" "memory" (memory 2))
  (import "env" "opa_abort" (func $abort (param i32)))
  (import "env" "opa_println" (func $println (param i32)))
  (import "env" "opa_builtin0" (func $builtin0 (param i32 i32) (result i32)))
  (import "env" "opa_builtin1" (func $builtin1 (param i32 i32 i32) (result i32)))
  (import "env" "opa_builtin2" (func $builtin2 (param i32 i32 i32 i32) (result i32)))
  (import "env" "opa_builtin3" (func $builtin3 (param i32 i32 i32 i32 i32) (result i32)))
  (import "env" "opa_builtin4" (func $builtin4 (param i32 i32 i32 i32 i32 i32) (result i32)))
  (global $heap (mut i32) (i32.const 4096))
  {}{}{}{}{}{}
  (func (export "builtins") (result i32) (i32.const 100))
  (func (export "entrypoints") (result i32) (i32.const 200))
  (func (export "opa_malloc") (param i32) (result i32)
    (global.get $heap) (global.set $heap (i32.add (global.get $heap) (local.get 0))))
  (func (export "opa_heap_ptr_get") (result i32) (global.get $heap))
  (func (export "opa_json_parse") (param i32 i32) (result i32) (local.get 0))
  (func (export "opa_json_dump") (param i32) (result i32) (local.get 0))
  (func (export "opa_value_dump") (param i32) (result i32) (local.get 0))
  (func (export "opa_eval_ctx_new") (result i32) (i32.const 0))
  (func (export "opa_eval") (param i32 i32 i32 i32 i32 i32 i32) (result i32) {eval}))"#,
        data(100, &format!("{{{builtins}}}\0")),
        data(200, "{\"ocm/allow\":0}\0"),
        data(300, "[{\"result\":true}]\0"),
        data(400, "[{\"result\":false}]\0"),
        data(500, "\"%v is %v\"\0"),
        data(600, "[\"a\",{\"b\",\"c\"}]\0"),
    )
}

#[test]
fn rego_allows_and_denies() {
    let open = policy(&rego("", OPEN));
    assert_eq!(open.header().kind, Kind::Opa);
    assert_eq!(ask(&open).result.expect("it decides").verdict, Verdict::Allow);
    let denied = ask(&policy(&rego("", "(i32.const 400)"))).result.expect("it decides");
    assert_eq!((denied.verdict, denied.reasons[0].code.as_str()), (Verdict::Deny, "RegoDenies"));
}

#[test]
fn broken_rego_has_precise_errors() {
    for (eval, code) in [
        ("(loop $l (br $l)) (unreachable)", "out-of-fuel"),
        ("(unreachable)", "trap"),
        ("(call $abort (i32.const 500)) (unreachable)", "trap"),
        ("(call $abort (i32.const -1)) (unreachable)", "trap"),
        ("(i32.const 500)", "malformed"),
        ("(i32.const -1)", "trap"),
        ("(memory.fill (i32.const 300) (i32.const 32) (i32.const 130000)) (i32.const 300)", "too-large"),
        ("(call $builtin0 (i32.const 9) (i32.const 0))", "host-call"),
        ("(call $builtin3 (i32.const 9) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))", "host-call"),
        ("(drop (memory.grow (i32.const 65000))) (unreachable)", "out-of-memory"),
    ] {
        assert_eq!(policy_error(&rego("", eval)).code(), code, "{eval}");
    }
    assert_eq!(
        policy_error(&rego("", "(call $abort (i32.const 500)) (unreachable)")),
        PolicyError::Trap("\"%v is %v\"".to_owned())
    );
}

#[test]
fn rego_gets_the_built_in_functions_that_are_there() {
    let why = refusal(&rego(r#""http.send":4,"sprintf":3"#, OPEN));
    assert_eq!(why, "it needs built-in functions that are not there: http.send");
    // What sprintf makes is written as JSON behind everything else: here it is no result, but shown in the error.
    let sprintf =
        "(call $abort (call $builtin2 (i32.const 3) (i32.const 0) (i32.const 500) (i32.const 600))) (unreachable)";
    let PolicyError::Trap(text) = policy_error(&rego(r#""sprintf":3"#, sprintf)) else { panic!("no trap") };
    assert!(text.starts_with(r#""a is {\"b\", \"c\"}""#), "{text}");
    let wrong = "(call $builtin2 (i32.const 3) (i32.const 0) (i32.const 600) (i32.const 600))";
    assert_eq!(policy_error(&rego(r#""sprintf":3"#, wrong)).code(), "trap");
    let now = "(call $abort (call $builtin0 (i32.const 3) (i32.const 0))) (unreachable)";
    let PolicyError::Trap(text) = policy_error(&rego(r#""time.now_ns":3"#, now)) else { panic!("no trap") };
    assert!(text.starts_with("1790000000000000000"), "{text}");
}

#[test]
fn rego_that_imports_anything_else_is_refused() {
    let why = refusal(
        r#"(module (import "env" "memory" (memory 1)) (import "env" "table" (table 1 funcref))
           (func (export "opa_eval_ctx_new")))"#,
    );
    assert_eq!(why, "it imports env.table, which Rego does not");
    let why = refusal(r#"(module (import "env" "memory" (memory 20000)) (func (export "opa_eval_ctx_new")))"#);
    assert!(why.starts_with("it starts with 1250 MiB"), "{why}");
    let why = refusal(&rego("", OPEN).replace("entrypoints", "entrance").replace("(export \"builtins\")", ""));
    assert!(why.contains("builtins"), "{why}");
}

#[test]
fn gatekeeper_denies_by_violations() {
    let metadata = json!({"protocolVersion": "v1", "executionMode": "gatekeeper", "rules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]});
    let asked = |result: &str| {
        let module = wat::parse_str(rego("", "(i32.const 700)").replace(
            "(func (export \"builtins\")",
            &format!("{} (func (export \"builtins\")", data(700, &format!("{result}\0"))),
        ));
        let module =
            annotate(&module.expect("it can be written"), "io.kubewarden.metadata", metadata.to_string().as_bytes());
        let artifact = compile_here(&module, "{}", &Ceiling::default()).expect("it can be compiled");
        assert_eq!(artifact.header().kind, Kind::Gatekeeper);
        ask(&Policy::load(&ENGINE, &artifact, &Ceiling::default(), &[]).expect("it can be loaded")).result
    };
    // Nothing is wrong, which is no reason to let anybody in.
    assert_eq!(asked(r#"[{"result":[]}]"#).expect("it decides").verdict, Verdict::NoOpinion);
    let denied = asked(r#"[{"result":[{"msg":"no owner"}]}]"#).expect("it decides");
    assert_eq!((denied.verdict, denied.reasons[0].message.as_str()), (Verdict::Deny, "no owner"));
    assert_eq!(asked(r#"[{"result":7}]"#).unwrap_err().code(), "malformed");
    assert_eq!(asked("[]").unwrap_err().code(), "malformed", "the rule is undefined");
}

/// A module of Rego with these texts among its data, this metadata of Kubewarden, and these sections.
fn declared(texts: &str, metadata: Option<Value>, sections: &[(&str, &str)]) -> Result<Artifact, PolicyError> {
    let wat = rego("", OPEN);
    let wat = wat.replace("(func (export \"builtins\")", &format!("{} (func (export \"builtins\")", data(700, texts)));
    let mut module = wat::parse_str(wat).expect("it can be written");
    if let Some(metadata) = metadata {
        module = annotate(&module, "io.kubewarden.metadata", metadata.to_string().as_bytes());
    }
    for (name, content) in sections {
        module = annotate(&module, name, content.as_bytes());
    }
    compile_here(&module, "{}", &Ceiling::default())
}

fn template(resources: Option<Value>) -> Option<Value> {
    let mut metadata = json!({"protocolVersion": "v1", "executionMode": "gatekeeper", "rules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]});
    if let Some(resources) = resources {
        metadata["contextAwareResources"] = resources;
    }
    Some(metadata)
}

#[test]
fn a_template_that_reads_an_inventory_must_ask_for_one() {
    let reads = "review\0inventory\0cluster\0";
    for silent in [template(None), template(Some(json!([]))), template(Some(Value::Null))] {
        let Err(PolicyError::Load(why)) = declared(reads, silent, &[]) else { panic!("it is not refused") };
        assert!(why.contains("data.inventory") && why.contains("contextAwareResources"), "{why}");
    }
    let Err(PolicyError::Load(why)) = declared(reads, None, &[("ocm-policy-kind", "gatekeeper")]) else {
        panic!("not refused")
    };
    assert!(why.contains("data.inventory"), "{why}");
    // A word that only holds it is another word.
    assert!(declared("inventory-of-things\0my inventory\0", template(None), &[]).is_ok());
    let asks = template(Some(json!([{"apiVersion": "v1", "kind": "Namespace"}])));
    let artifact = declared(reads, asks, &[]).expect("it asks");
    assert_eq!(artifact.header().manifest.evidence.len(), 1);
    // Asked for and not given is an error, not an empty inventory.
    let policy = Policy::load(&ENGINE, &artifact, &Ceiling::default(), &[]).expect("it can be loaded");
    let Err(error) = ask(&policy).result else { panic!("it decides") };
    assert!(error.to_string().contains("v1-namespace"), "{error}");
    let unstable = declared("_unstable\0namespace\0", template(None), &[]);
    assert!(matches!(unstable, Err(PolicyError::Load(why)) if why.contains("_unstable")));
    let parts = json!({"contract": "ocm:policy@0.1.0", "name": "n", "version": "1.0.0", "operations": ["create"],
        "kind": "gatekeeper", "evidence": [{"name": "n", "source": {"kind": "namespaces"}, "fields": ["/metadata"]}]});
    let parts = declared(reads, None, &[("ocm-policy-manifest", &parts.to_string())]);
    assert!(matches!(parts, Err(PolicyError::Load(why)) if why.contains("whole objects")));
}

#[test]
fn the_kind_of_a_module_can_be_declared() {
    let kind = |texts: &str, sections: &[(&str, &str)]| {
        declared(texts, None, sections).map(|artifact| artifact.header().kind).map_err(|error| error.to_string())
    };
    let manifest = |kind: &str| {
        json!({"contract": "ocm:policy@0.1.0", "name": "n", "version": "1.0.0", "operations": ["create"], "kind": kind})
            .to_string()
    };
    assert_eq!(kind("", &[]), Ok(Kind::Opa));
    assert_eq!(kind("", &[("ocm-policy-kind", "gatekeeper")]), Ok(Kind::Gatekeeper));
    assert_eq!(kind("", &[("ocm-policy-manifest", &manifest("gatekeeper"))]), Ok(Kind::Gatekeeper));
    let both = [("ocm-policy-kind", "opa"), ("ocm-policy-manifest", &*manifest("gatekeeper"))];
    assert!(kind("", &both).unwrap_err().contains("of the kinds"));
    for (wrong, why) in [
        ("gatekeepr", "kinds are component"),
        ("kubewarden", "does not export _start"),
        ("kubewarden-wapc", "does not export __guest_call"),
        ("wasi-command", "does not export _start"),
        ("component", "does not export ocm:policy"),
    ] {
        let said = kind("", &[("ocm-policy-kind", wrong)]).unwrap_err();
        assert!(said.contains(why), "{wrong}: {said}");
    }
    // A template of Gatekeeper that does not say so would find no review, and never deny.
    let looks = "review\0parameters\0violation\0";
    assert_eq!(declared(looks, None, &[]).err(), Some(PolicyError::UndeclaredKind));
    assert_eq!(kind(looks, &[("ocm-policy-kind", "opa")]), Ok(Kind::Opa));
    assert_eq!(kind(looks, &[("ocm-policy-kind", "gatekeeper")]), Ok(Kind::Gatekeeper));
    // Rego about reviews finds no request either.
    let reviews = "input\0request\0kind\0resource\0userInfo\0deny\0";
    assert_eq!(declared(reviews, None, &[]).err(), Some(PolicyError::UndeclaredKind));
    assert_eq!(kind(reviews, &[("ocm-policy-kind", "opa")]), Ok(Kind::Opa));
    let labels = format!("{reviews}stage\0now\0");
    assert_eq!(declared(&labels, None, &[]).err(), Some(PolicyError::UndeclaredKind), "words of labels are no proof");
    for own in ["cluster", "csr", "requester"] {
        assert_eq!(kind(&format!("operation\0request\0{own}\0"), &[]), Ok(Kind::Opa), "{own}");
    }
}

#[test]
fn a_template_asks_for_every_version_that_it_names() {
    let reads = |texts: &str| {
        let asks = template(Some(json!([{"apiVersion": "apps/v1", "kind": "Deployment"}])));
        let made = declared(&format!("review\0inventory\0{texts}\0"), asks, &[]);
        made.map(drop).map_err(|error| error.to_string())
    };
    for named in ["apps/v1", "v1", "a/b", "apps/v", "apps/v1x", "apps/v1beta", "Apps/v2", "/v1", "images/v1.2"] {
        assert_eq!(reads(named), Ok(()), "{named}");
    }
    for missing in ["networking.k8s.io/v1", "policy/v1beta1", "apps/v2"] {
        assert!(reads(missing).is_err_and(|why| why.contains(missing)), "{missing}");
    }
    assert!(declared("review\0apps/v2\0", template(None), &[]).is_ok(), "it reads no inventory");
    let clusters = json!({"contract": "ocm:policy@0.1.0", "name": "n", "version": "1.0.0", "operations": ["create"],
        "kind": "gatekeeper", "evidence": [{"name": "n", "source": {"kind": "clusters"}, "fields": [""]}]});
    let clusters = [("ocm-policy-manifest", &*clusters.to_string())];
    let of_clusters = "inventory\0cluster.open-cluster-management.io/v1\0";
    assert!(declared(of_clusters, None, &clusters).is_ok(), "other sources have versions, too");
}

#[test]
fn work_of_the_host_costs_fuel() {
    let fuel = |wat: &str| ask(&policy(wat)).fuel;
    // A thousand buffers that hold nothing are looked at all the same.
    let plain = fuel(&command(ALLOW));
    for call in [
        "(drop (call $write (i32.const 2) (i32.const 90000) (i32.const 1024) (i32.const 8)))",
        "(drop (call $write (i32.const 1) (i32.const 90000) (i32.const 1024) (i32.const 8)))",
        "(drop (call $read (i32.const 0) (i32.const 90000) (i32.const 1024) (i32.const 8)))",
    ] {
        let used = fuel(&command(&format!("{call} {ALLOW}"))) - plain;
        assert!(used >= 16 * 1024, "{call}: {used}");
    }
    // Nothing is free, however little the host does.
    let importing = |name: &str, parameters: &str, body: &str| {
        let import = format!("(import \"{WASI}\" \"{name}\" (func ${name} (param {parameters}) (result i32)))");
        command(body).replacen("(module", &format!("(module {import}"), 1)
    };
    let zero = "(i32.const 0)";
    let seek = format!("{zero} (i64.const 0) {zero} {zero}");
    for (name, parameters, call) in [
        ("fd_seek", "i32 i64 i32 i32", &*seek),
        ("fd_close", "i32", zero),
        ("fd_fdstat_set_flags", "i32 i32", "(i32.const 9) (i32.const 0)"),
        ("environ_get", "i32 i32", "(i32.const 0) (i32.const 0)"),
    ] {
        let again = format!("(loop $l (drop (call ${name} {call})) (br $l))");
        assert_eq!(policy_error(&importing(name, parameters, &again)), PolicyError::OutOfFuel, "{name}");
        // A thousand calls cost as much as those of other functions, not only what the loop does.
        let often = format!(
            "(loop $l (drop (call ${name} {call})) (local.set $n (i32.add (local.get $n) (i32.const 1)))
             (br_if $l (i32.lt_u (local.get $n) (i32.const 1000)))) {ALLOW}"
        );
        let used = fuel(&importing(name, parameters, &often)) - plain;
        assert!(used >= 100_000, "{name}: {used}");
    }
    let none = "(drop (call $write (i32.const 7) (i32.const 0) (i32.const 0) (i32.const 8)))";
    assert!(fuel(&command(&format!("{none} {ALLOW}"))) - plain >= 100, "a descriptor that nobody has");
    let plain_wapc = fuel(&wapc(ACCEPT));
    for length in ["$host_response_len", "$host_error_len"] {
        assert!(fuel(&wapc(&format!("(drop (call {length})) {ACCEPT}"))) - plain_wapc >= 100, "{length}");
    }
    // Looking for the end of a text costs as much as the text is long, whether there is an end or not.
    let long = |eval: &str| {
        let grown = format!("(memory.fill (i32.const 8192) (i32.const 32) (i32.const 110000)) {eval}");
        ask(&policy(&rego(r#""trace":3"#, &grown)))
    };
    let pointed = "(drop (call $builtin1 (i32.const 3) (i32.const 0) (i32.const 8192))) (i32.const 300)";
    let outcome = long(pointed);
    assert!(outcome.fuel > 110_000 / 8 + long("(i32.const 300)").fuel, "{}", outcome.fuel);
    // What is compared with the object costs fuel as well.
    let (said, padded) = (r#"{"accepted":true}"#, format!(r#"{{"accepted":true{}}}"#, " ".repeat(10_000)));
    let answering = |text: &str| {
        let stored = data(100_000, text);
        let body = format!("(call $response (i32.const 100000) (i32.const {})) (i32.const 1)", text.len());
        fuel(&wapc(&body).replace("(global $ready", &format!("{stored} (global $ready")))
    };
    assert!(answering(&padded) - answering(said) >= 4 * 10_000);
    // So is the data of a template, into which what is known of the hub is written for each decision.
    let asks = || template(Some(json!([{"apiVersion": "v1", "kind": "Namespace"}])));
    let mut request = question().request().clone();
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    request.object = question().object().cloned();
    let row = Row { namespace: None, name: "n".into(), values: vec![object], complete: true };
    let table = Table { revision: "1".into(), complete: true, rows: vec![row] };
    request.evidence = [("v1-namespace".to_owned(), table)].into_iter().collect();
    let with_data = |text: &str| {
        let stored = json!({"text": text}).to_string();
        let artifact =
            declared("review\0inventory\0", asks(), &[("ocm-policy-data", stored.as_str())]).expect("it asks");
        let policy = Policy::load(&ENGINE, &artifact, &Ceiling::default(), &[]).expect("it can be loaded");
        let outcome = policy.decide(&Question::new(request.clone())).outcome.clone();
        // The inventory was there: what follows is the answer of the module.
        assert_eq!(outcome.result.map_err(|error| error.code()), Err("malformed"));
        outcome.fuel
    };
    assert!(with_data(&"x".repeat(10_000)) - with_data("") >= 4 * 10_000 + 10_000 / 8);
}

#[test]
fn the_pool_is_given_back() {
    let policy = policy(&rego("", OPEN));
    let question = question();
    for _ in 0..200 {
        assert!(policy.decide(&question).outcome.result.is_ok());
    }
    let mut object = question.object().cloned().unwrap_or(Value::Null);
    object["metadata"]["name"] = json!("still there");
    assert_ne!(Some(&object), question.object());
}
