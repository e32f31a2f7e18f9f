//! Modules.

use ocm_policy_engine::{Ceiling, Policy, annotate, compile_here, componentize, inspect};

use crate::guests::{Guest, engine, question};
use crate::support::{compiled, ours};
use crate::{fuzz, mutate};

/// A policy of Kubewarden that accepts.
const WAPC: &str = r#"(module
  (import "wapc" "__guest_request" (func $request (param i32 i32)))
  (import "wapc" "__guest_response" (func $response (param i32 i32)))
  (import "wapc" "__host_call" (func $host (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "\"v1\"") (data (i32.const 16) "{\"valid\":true}") (data (i32.const 64) "{\"accepted\":true}")
  (func (export "__guest_call") (param $op i32) (param $len i32) (result i32)
    (if (i32.eq (local.get $op) (i32.const 16))
      (then (call $response (i32.const 0) (i32.const 4)) (return (i32.const 1))))
    (if (i32.eq (local.get $op) (i32.const 17))
      (then (call $response (i32.const 16) (i32.const 14)) (return (i32.const 1))))
    (call $request (i32.const 1024) (i32.const 32768))
    (call $response (i32.const 64) (i32.const 17))
    (i32.const 1)))"#;

/// A program that prints that it allows, whatever it is asked; a section says what it is.
const COMMAND: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 64) "{\"verdict\":\"allow\"}")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 4096))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
    (drop (call $random (i32.const 32) (i32.const 8)))
    (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 19))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#;

/// A module with the interface of Rego that allows.
const REGO: &str = r#"(module
  (import "env" "memory" (memory 2))
  (import "env" "opa_abort" (func (param i32)))
  (import "env" "opa_builtin1" (func (param i32 i32 i32) (result i32)))
  (global $heap (mut i32) (i32.const 4096))
  (data (i32.const 100) "{}\00") (data (i32.const 200) "{\"ocm/allow\":0}\00")
  (data (i32.const 300) "[{\"result\":true}]\00")
  (func (export "builtins") (result i32) (i32.const 100))
  (func (export "entrypoints") (result i32) (i32.const 200))
  (func (export "opa_malloc") (param i32) (result i32)
    (global.get $heap) (global.set $heap (i32.add (global.get $heap) (local.get 0))))
  (func (export "opa_heap_ptr_get") (result i32) (global.get $heap))
  (func (export "opa_json_parse") (param i32 i32) (result i32) (local.get 0))
  (func (export "opa_json_dump") (param i32) (result i32) (local.get 0))
  (func (export "opa_value_dump") (param i32) (result i32) (local.get 0))
  (func (export "opa_eval_ctx_new") (result i32) (i32.const 0))
  (func (export "opa_eval") (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 300)))"#;

/// Tries damaged forms of a module. Those that are no longer valid have to be refused by everybody; of those that are,
/// some are compiled and asked.
fn modules(part: &str, module: &[u8], other: &[u8], usually: u64, some: usize) {
    let engine = engine();
    let ceiling = Ceiling::default();
    let whole =
        compiled(module, "{}").and_then(|made| Policy::load(&engine, &made, &ceiling, &made.header().manifest.edits));
    let whole = whole.unwrap_or_else(|error| panic!("{part}: {error}"));
    assert!(whole.decide(&question("prod-1")).outcome.result.is_ok(), "{part}: the undamaged one decides");
    let (mut refused, mut valid, mut asked) = (0, 0, 0);
    // Whoever wants more wants more of them compiled.
    let most = crate::number("OCM_FUZZ_ITERATIONS").map_or(some, |_| usize::MAX);
    fuzz(
        part,
        usually,
        |random| mutate::module(module, other, random),
        |_, damaged| {
            if inspect(damaged).is_err() {
                refused += 1;
                assert!(compile_here(damaged, "{}", &ceiling).is_err(), "what is no module is compiled");
                return;
            }
            valid += 1;
            if valid > most {
                return;
            }
            let made = compile_here(damaged, "{}", &ceiling)
                .and_then(|made| Policy::load(&engine, &made, &ceiling, &made.header().manifest.edits));
            let Ok(policy) = made else { return };
            asked += 1;
            // An endless loop takes as long as its fuel or its time lasts, and no longer.
            let outcome = policy.decide(&question("prod-1")).outcome.clone();
            assert!(outcome.fuel <= policy.limits().fuel, "{} of {}", outcome.fuel, policy.limits().fuel);
            let next = whole.decide(&question("prod-1")).outcome.result.clone();
            assert!(next.is_ok(), "the next policy decides: {next:?}");
        },
    );
    crate::say(&format!("{part}: {refused} refused, {valid} valid, {asked} of them asked"));
    assert!(refused > 0 && asked > 0, "{part}: {refused} refused, {valid} valid, {asked} asked");
}

#[test]
fn damaged_policies_of_ours() {
    let module = ours(&["name-pattern"]).remove(0).module;
    modules("core", &module, &Guest::default().module(), 400, 4);
    modules("component", &componentize(&module).expect("it is one of ours"), &module, 400, 4);
}

#[test]
fn damaged_small_modules() {
    let own = Guest::default().module();
    modules("own", &own, WAPC.as_bytes(), 1_500, 25);
    let [wapc, command, rego] = [WAPC, COMMAND, REGO].map(|text| wat::parse_str(text).expect("it is a module"));
    let manifest = br#"{"contract":"ocm:policy@0.1.0","name":"guest","version":"1.0.0","operations":["create"]}"#;
    let command = annotate(&command, "ocm-policy-manifest", manifest);
    modules("wapc", &wapc, &command, 1_500, 25);
    modules("command", &command, &rego, 1_500, 25);
    modules("rego", &rego, &wapc, 1_500, 25);
}
