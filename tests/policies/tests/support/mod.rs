//! What the programs of this folder share.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use ocm_policy_engine::{Artifact, Cache, Ceiling, Compiler, Engine, EngineSettings, PolicyError};
use ocm_policy_testing::Suite;

/// A policy of this workspace.
pub struct Ours {
    /// The name of its folder.
    pub name: String,
    /// Its core module.
    pub module: Vec<u8>,
    /// Its test cases.
    pub yaml: String,
}

impl Ours {
    /// Its test cases, read.
    pub fn suite(&self) -> Suite {
        Suite::read(&self.yaml).unwrap_or_else(|bad| panic!("{}: {bad}", self.name))
    }

    /// The first settings of its test cases that are not there to be refused.
    pub fn settings(&self) -> String {
        let suite = self.suite();
        let case = suite.cases.iter().find(|case| case.expect.refused.is_none()).expect("a case is asked");
        case.settings(&suite)
    }
}

fn folder() -> PathBuf {
    cli_tests::root().join("wasm-policies/policies")
}

/// The names of all policies, read from their folder so that none can be forgotten.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("there are policies");
    let folders = entries.filter_map(|entry| entry.ok().filter(|entry| entry.path().join("Cargo.toml").exists()));
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The policies of these names, built.
pub fn ours(names: &[&str]) -> Vec<Ours> {
    let modules = cli_tests::guests(&cli_tests::target(), names).unwrap_or_else(|error| panic!("{error}"));
    let read = |(name, module): (&&str, PathBuf)| Ours {
        name: (*name).to_owned(),
        module: fs::read(&module).unwrap_or_else(|error| panic!("{}: {error}", module.display())),
        yaml: fs::read_to_string(folder().join(name).join("tests.yaml")).expect("a policy has test cases"),
    };
    names.iter().zip(modules).map(read).collect()
}

/// A policy with settings, compiled. Without optimisation Cranelift takes seconds for each, so what was compiled is kept
/// for the next run and the other programs, in the cache that hubs use.
pub fn compiled(module: &[u8], settings: &str) -> Result<Artifact, PolicyError> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled");
    let cache = Cache::open(folder).expect("there is a folder for it");
    cache.artifact(&Compiler::Here, module, settings, &Ceiling::default())
}

/// An engine.
pub fn engine() -> Engine {
    Engine::new(&EngineSettings { instances: 256, ..EngineSettings::default() }).expect("there is an engine")
}

/// A number of the environment, or the usual one.
pub fn number(name: &str, usually: u64) -> u64 {
    env::var(name).map_or(usually, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Numbers that look random and are the same for the same seed (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The beginning of one of many series, none of which depends on the others.
    pub fn nth(seed: u64, number: u64) -> Self {
        let mut first = Self(seed ^ number.wrapping_mul(0xa076_1d64_78bd_642f));
        first.next();
        first
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another one that is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub fn one<'a, T>(&mut self, several: &'a [T]) -> &'a T {
        &several[self.below(several.len())]
    }
}
