//! How requests lie in the memory of a guest.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod support;

use std::sync::Arc;

use ocm_policy_abi::{Request, Verdict};
use ocm_policy_engine::{Policy, PolicyError, Question};
use serde_json::{Value, json};
use support::{ANSWER, Guest, engine, policy, question};

/// Asks again after so many seconds as a number that depends on each byte which the host has written.
fn hashing(one_block: bool) -> Guest {
    let block = if one_block { r#","requestInOneBlock":true"# } else { "" };
    let evidence =
        r#","evidence":[{"name":"clusters","source":{"kind":"clusters"},"fields":["/a","/b","/c","/d","/e","/f"]}]"#;
    Guest {
        manifest: Guest::manifest("hashing", &format!("{block}{evidence}")),
        answer: r#"{"verdict":"hold","askAgainSeconds":1,"reasons":[{"code":"Hashed","message":"m"}]}"#.to_owned(),
        fields: "(global $hash (mut i32) (i32.const -2128831035)) (global $at (mut i32) (i32.const 0))".to_owned(),
        decide: format!(
            "(global.set $at (local.get 0))
             (loop $bytes
               (global.set $hash (i32.mul (i32.const 16777619)
                 (i32.xor (global.get $hash) (i32.load8_u (global.get $at)))))
               (global.set $at (i32.add (global.get $at) (i32.const 1)))
               (br_if $bytes (i32.lt_u (global.get $at) (global.get $next))))
             (i32.store (i32.const {}) (i32.or (global.get $hash) (i32.const 1)))",
            ANSWER + 8
        ),
        ..Guest::default()
    }
}

/// A request in which nothing is missing.
fn everything() -> Value {
    let requester = |user: &str| {
        json!({
            "username": user, "uid": "u1", "groups": ["g1", "group-2"], "extra": {"key": ["a", "bc"], "none": []},
            "certificateSha256": "ab",
        })
    };
    let cluster = |name: &str| {
        json!({
            "name": name, "uid": "u2", "resourceVersion": "77", "generation": 3, "labels": {"a": "b", "empty": ""},
            "annotations": {"x/y": "ä and more"}, "finalizers": ["f/1"],
            "owners": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u3", "controller": true}],
            "created": 5, "deleting": true, "accepted": true, "leaseDurationSeconds": 60,
            "taints": [{"key": "t", "value": "v", "effect": "NoSelect", "added": 9}, {"key": "u", "effect": "NoSelect"}],
            "clientConfigs": [{"url": "https://a", "caSha256": "cd"}], "claims": [{"name": "id", "value": "1"}],
            "kubernetesVersion": "v1.35", "truncated": ["/status"],
            "conditions": [{"type": "Joined", "status": "True", "reason": "r", "message": "m", "since": -1}],
            "more": {"flag": true, "none": null, "number": 12, "ratio": 1.5, "text": "t", "texts": ["a", ""], "map": {}},
        })
    };
    let values = [json!(null), json!(false), json!(-3), json!("text"), json!(["a", "b"]), json!({"k": [1]})];
    json!({
        "id": "1", "operation": "create", "now": 1_790_000_000_000_i64, "dryRun": true, "attempt": 2,
        "stage": "validating", "requester": requester("one"), "creator": requester("another"),
        "resource": {
            "group": "g", "version": "v1", "kind": "K", "resource": "ks", "subresource": "status", "namespace": "n",
            "name": "o", "operation": "CREATE", "fieldManager": "m", "options": {"o": "p"},
        },
        "cluster": cluster("c1"), "previous": cluster("c2"),
        "csr": {
            "name": "r", "uid": "u4", "resourceVersion": "5", "labels": {"l": "m"}, "annotations": {"n": "o"},
            "signer": "s", "usages": ["client auth"], "lifetimeSeconds": 3600, "requester": requester("agent"),
            "created": 8, "unreadable": "why", "commonNames": ["cn"], "organizations": ["o1", "o2"],
            "otherAttributes": ["2.5.4.6"], "alternativeNames": ["dns"], "extensions": ["1.2"],
            "key": {"algorithm": "rsa", "bits": 2048}, "spkiSha256": "ef", "signature": "valid",
            "addsCondition": "Approved", "state": "pending", "more": {"m": 1},
        },
        "evidence": {"clusters": {"revision": "9", "complete": true, "rows": [
            {"namespace": "a", "name": "b", "values": values, "complete": false}, {"name": "c", "values": values},
        ]}},
        "setByPolicies": {"label a": "p"}, "obligations": ["o1"], "more": {"later": ["x"]},
    })
}

/// All members, and items of lists, below a value.
fn members(value: &Value, path: &str, into: &mut Vec<String>) {
    let keys: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.replace('/', "~1"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(number, item)| (number.to_string(), item)).collect(),
        _ => return,
    };
    for (key, below) in keys {
        let path = format!("{path}/{key}");
        members(below, &path, into);
        into.push(path);
    }
}

fn without(value: &Value, path: &str) -> Value {
    let (mut value, (parent, key)) = (value.clone(), path.rsplit_once('/').unwrap());
    match value.pointer_mut(parent).unwrap() {
        Value::Object(members) => drop(members.remove(&key.replace("~1", "/"))),
        Value::Array(items) => drop(items.remove(key.parse().unwrap())),
        _ => unreachable!("only these have members"),
    }
    value
}

/// What the guest has made of a request; none where the request cannot be one.
fn seen(policy: &Arc<Policy>, request: &Value) -> Option<u32> {
    let text = request.to_string();
    let request = serde_json::from_str::<Request<'_>>(&text).ok()?;
    let answered = policy.decide(&Question::new(request.into_owned()));
    Some(answered.outcome.result.as_ref().ok()?.ask_again_seconds.unwrap())
}

#[test]
fn in_one_block_it_lies_as_if_it_had_been_written_piece_by_piece() {
    let engine = engine();
    let [pieces, block] = [false, true].map(|one_block| policy(&engine, &hashing(one_block).module()).unwrap());
    let whole = everything();
    let all = seen(&pieces, &whole).unwrap();
    assert_eq!(seen(&block, &whole), Some(all));
    let mut paths = Vec::new();
    members(&whole, "", &mut paths);
    let mut compared = 0;
    for path in &paths {
        let less = without(&whole, path);
        let Some(expected) = seen(&pieces, &less) else { continue };
        assert_eq!(seen(&block, &less), Some(expected), "without {path}");
        // The guest does look at everything, but for what says the same when it is missing.
        let same = path.ends_with("/complete") || path.ends_with("/none");
        assert!(same || expected != all, "without {path} nothing changes");
        compared += 1;
    }
    assert!(compared > 150, "{compared}");
}

#[test]
fn whoever_gives_away_wrong_memory_harms_nobody_else() {
    let engine = engine();
    let text = everything().to_string();
    let whole = serde_json::from_str::<Request<'_>>(&text).unwrap().into_owned();
    let answer = |address: &str| {
        // `configure` gets its settings by the same function.
        let realloc = format!("(if (i32.gt_u (local.get 3) (i32.const 100)) (then (return (i32.const {address}))))");
        let policy = policy(&engine, &Guest { realloc, ..hashing(true) }.module()).unwrap();
        policy.decide(&Question::new(whole.clone())).outcome.result.clone()
    };
    for outside in ["65528", "-8", "9"] {
        assert!(answer(outside).is_err(), "{outside}");
    }
    // Record and block in one place: nobody but the guest is confused by it.
    drop(answer("20480"));
    drop(answer("0"));
    assert_eq!(answer("65528").unwrap_err().code(), "malformed");
}

#[test]
fn what_a_decision_says_beyond_the_contract_is_an_error_and_never_passed_over() {
    let engine = engine();
    let decide = |answer: &str| {
        let policy = policy(&engine, &Guest::answering(answer).module()).unwrap();
        policy.decide(&question("c")).outcome.result.clone()
    };
    assert_eq!(decide(r#"{"verdict":"allow","more":{}}"#).map(|decision| decision.verdict), Ok(Verdict::Allow));
    for more in [r#"{"expires":{"seconds":5}}"#, r#"{"later":null}"#, r#"{"a":["x"],"b":true}"#] {
        let error = decide(&format!(r#"{{"verdict":"allow","more":{more}}}"#)).unwrap_err();
        assert!(matches!(&error, PolicyError::Malformed(why) if why.contains("more than this hub knows")), "{error:?}");
    }
}
