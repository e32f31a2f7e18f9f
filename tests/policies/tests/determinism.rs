//! The same request gets the same answer for the same fuel, in whichever process, in whichever order.
//!
//! Two processes load the same policies, decide the same ten thousand requests, one of them from the end, and write
//! down a digest for every five hundred.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;

use ocm_policy_abi::{Operation, Request};
use ocm_policy_engine::{Ceiling, Engine, EngineSettings, Policy, Question, digest};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use support::{Ours, Random};

const SEED: u64 = 0x6f63_6d00_0001;
const BLOCKS: u64 = 20;
const BLOCK: u64 = 500;

/// Policies that need nothing of the hub but the request, and two that are given evidence.
const POLICIES: [&str; 7] = [
    "agent-self-edit",
    "allowed-identities",
    "csr-hygiene",
    "freeze-window",
    "name-claim",
    "name-pattern",
    "required-labels",
];

/// Where the other process writes its digests.
const FILE: &str = "OCM_DETERMINISM_FILE";

/// Pieces of texts: plain ones, what JSON escapes, and letters of one to four bytes.
const PIECES: [&str; 24] = [
    "prod-",
    "test-",
    "-eu",
    "a",
    "Z",
    "7",
    ".",
    "/",
    ":",
    "*",
    "\"",
    "\\",
    "\u{0}",
    "\u{1b}[2J",
    "\n",
    "\u{7f}",
    "ä",
    "ß",
    "€",
    "漢字",
    "\u{1F600}",
    "\u{200B}",
    "\u{FEFF}",
    "system:",
];

fn text(random: &mut Random) -> String {
    (0..random.below(7)).map(|_| *random.one(&PIECES)).collect()
}

/// What the test cases ask and every text in it: requests that policies have opinions about.
struct Seeds {
    requests: Vec<Value>,
    /// What policies are given as evidence, by query.
    tables: BTreeMap<String, Vec<Value>>,
    texts: Vec<String>,
}

impl Seeds {
    fn of(policies: &[Ours]) -> Self {
        let mut requests = Vec::new();
        for ours in policies {
            for case in ours.suite().cases {
                let request = case.request().expect("a test case can be asked");
                requests.push(serde_json::to_value(request).expect("a request can be written"));
            }
        }
        let mut tables = BTreeMap::<String, Vec<Value>>::new();
        for (query, table) in requests.iter().filter_map(|request| request["evidence"].as_object()).flatten() {
            tables.entry(query.clone()).or_default().push(table.clone());
        }
        let mut texts = BTreeSet::new();
        requests.iter().for_each(|request| collect(request, &mut texts));
        Self { requests, tables, texts: texts.into_iter().collect() }
    }

    /// A request of these, changed in a few places.
    fn request(&self, random: &mut Random) -> Request<'static> {
        loop {
            let mut value = random.one(&self.requests).clone();
            value["id"] = format!("{:016x}", random.next()).into();
            if random.once_in(4) {
                value["operation"] = random.one(&Operation::ALL).word().into();
            }
            if random.once_in(4) {
                value["now"] = (1_700_000_000_000_i64 + (random.next() >> 26) as i64 % 200_000_000_000).into();
            }
            // Whichever policy the request was made for, the others are given their evidence, too.
            for (query, tables) in &self.tables {
                if value["evidence"][query].is_null() {
                    value["evidence"][query] = random.one(tables).clone();
                }
            }
            for _ in 0..random.below(6) {
                self.change(&mut value, random);
            }
            // A change may leave something that is no request; then another one is made.
            if let Ok(request) = Request::deserialize(value) {
                return request;
            }
        }
    }

    fn word(&self, random: &mut Random) -> String {
        if random.once_in(2) { text(random) } else { random.one(&self.texts).clone() }
    }

    /// Changes one place, found by going down at random.
    fn change(&self, value: &mut Value, random: &mut Random) {
        match value {
            Value::Object(members) => {
                let keys: Vec<String> = members.keys().cloned().collect();
                let maps = ["labels", "annotations"];
                if let Some(map) = keys.iter().find(|key| maps.contains(&key.as_str()))
                    && random.once_in(3)
                    && let Some(map) = members[map].as_object_mut()
                {
                    map.insert(self.word(random), self.word(random).into());
                } else if members.contains_key("username") && random.once_in(3) {
                    members.insert("groups".to_owned(), json!([self.word(random), self.word(random)]));
                } else if members.contains_key("spkiSha256") && random.once_in(3) {
                    let lists = ["commonNames", "organizations", "otherAttributes", "alternativeNames", "extensions"];
                    members.insert((*random.one(&lists)).to_owned(), json!([self.word(random)]));
                } else if let Some(key) = (!keys.is_empty()).then(|| random.one(&keys)) {
                    if random.once_in(12) {
                        members.remove(key);
                    } else if let Some(member) = members.get_mut(key) {
                        self.change(member, random);
                    }
                } else {
                    *members = Map::from_iter([(self.word(random), self.word(random).into())]);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let at = random.below(items.len());
                match random.below(4) {
                    0 => items.push(items[at].clone()),
                    1 => drop(items.remove(at)),
                    _ => self.change(&mut items[at], random),
                }
            }
            Value::String(text) => *text = self.word(random),
            Value::Number(_) => *value = (random.next() >> random.below(64)).into(),
            Value::Bool(said) => *said = !*said,
            _ => {}
        }
    }
}

fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(texts.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => {
            for (key, value) in members {
                texts.insert(key.clone());
                collect(value, texts);
            }
        }
        _ => {}
    }
}

/// Policies that are loaded, and requests for them.
struct Hub {
    policies: Vec<Arc<Policy>>,
    seeds: Seeds,
    /// How often each policy gave each answer.
    answers: BTreeMap<(String, &'static str), u32>,
}

impl Hub {
    fn open() -> Self {
        let ours = support::ours(&POLICIES);
        // Time does not pass here: how long a thread has to wait for a busy machine is no part of a decision.
        let engine = Engine::new(&EngineSettings::default()).expect("there is an engine");
        let ceiling = Ceiling::default();
        let load = |ours: &Ours| {
            let made = support::compiled(&ours.module, &ours.settings()).expect("it can be compiled");
            Policy::load(&engine, &made, &ceiling, &made.header().manifest.edits).expect("it can be loaded")
        };
        Self { policies: ours.iter().map(load).collect(), seeds: Seeds::of(&ours), answers: BTreeMap::new() }
    }

    /// The digest over five hundred requests, the answers of all policies to them, and the fuel of each.
    fn block(&mut self, seed: u64, block: u64) -> String {
        let mut told = String::new();
        for number in block * BLOCK..(block + 1) * BLOCK {
            let request = self.seeds.request(&mut Random::nth(seed, number));
            let question = Question::new(request);
            for policy in self.policies.iter().filter(|policy| policy.judges(question.request().operation)) {
                let answered = policy.decide(&question);
                let outcome = &answered.outcome;
                let answer = match &outcome.result {
                    Ok(decision) => serde_json::to_string(decision).expect("a decision can be written"),
                    Err(error) => error.to_string(),
                };
                // A policy that judges objects is not asked where a change has left none.
                let asked = question.text_for(policy.manifest()).unwrap_or_default();
                // Writing to a string does not fail.
                let _ = writeln!(told, "{number} {} {asked}\n{answer} {}", policy.manifest().name, outcome.fuel);
                let word =
                    outcome.result.as_ref().map_or_else(|error| error.code(), |decision| decision.verdict.word());
                *self.answers.entry((policy.manifest().name.clone(), word)).or_default() += 1;
            }
        }
        digest(told.as_bytes())
    }
}

/// What the other process does, which is this very test, told where to write.
fn the_other_process(file: &OsStr) {
    let mut hub = Hub::open();
    let mut digests: Vec<String> = (0..BLOCKS).rev().map(|block| hub.block(SEED, block)).collect();
    digests.reverse();
    fs::write(file, digests.join("\n")).expect("the digests can be written");
}

#[test]
fn two_processes_decide_ten_thousand_requests_alike() {
    if let Some(file) = env::var_os(FILE) {
        return the_other_process(&file);
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("digests");
    // Built here, so that both do not build at once.
    let mut hub = Hub::open();
    let other = Command::new(env::current_exe().expect("a test has a path"))
        .args(["--exact", "two_processes_decide_ten_thousand_requests_alike"])
        .env(FILE, &file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let ours: Vec<String> = (0..BLOCKS).map(|block| hub.block(SEED, block)).collect();
    let other = other.wait_with_output().expect("it ends");
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stdout));
    let theirs = fs::read_to_string(file).expect("it has written its digests");
    let theirs: Vec<&str> = theirs.lines().collect();
    assert_eq!(theirs.len() as u64, BLOCKS);
    for (block, (one, other)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(one, other, "requests {} to {}", block as u64 * BLOCK, (block as u64 + 1) * BLOCK);
    }
    // That the requests are worth asking: every policy both lets in and keeps out, and none fails but for objects that a
    // change has removed.
    for name in POLICIES {
        let words: BTreeMap<&str, u32> =
            hub.answers.iter().filter(|((of, _), _)| of == name).map(|((_, word), count)| (*word, *count)).collect();
        let known = ["allow", "deny", "hold", "no-opinion", "evidence"];
        assert!(words.keys().all(|word| known.contains(word)), "{name}: {words:?}");
        assert!(words.values().filter(|count| **count >= 50).count() >= 2, "{name}: {words:?}");
    }
    // That a digest tells anything.
    let distinct: BTreeSet<&String> = ours.iter().collect();
    assert_eq!(distinct.len() as u64, BLOCKS);
    assert_ne!(hub.block(SEED + 1, 0), ours[0], "other requests");
}
