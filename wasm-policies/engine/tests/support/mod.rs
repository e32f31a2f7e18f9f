//! Small guests written by hand, and questions for them.

#![allow(dead_code, unused_imports, reason = "each test program uses its own part")]

pub mod guest;

use std::path::PathBuf;
use std::sync::Arc;

use ocm_policy_abi::{Cluster, Operation, Request, Requester};
use ocm_policy_engine::{
    Ceiling, Compiler, Deadline, Engine, EngineSettings, Final, NoEvidence, Policy, PolicyError, Question, Registry,
    compile_here, evaluate,
};

pub use guest::{ANSWER, ANSWER_TEXTS, Guest};

/// The process that compiles. Cargo builds it together with the tests.
pub fn compiler() -> Compiler {
    let program = program("compiler");
    Compiler::Process { program, arguments: Vec::new(), cpu_seconds: 20, memory_bytes: 1 << 30 }
}

/// A program of this crate's examples. Cargo builds them together with the tests.
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    let folder: PathBuf = own.ancestors().nth(2).expect("tests lie in a folder of the build").into();
    let program = folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} was not built", program.display());
    program
}

/// An engine.
pub fn engine() -> Engine {
    Engine::new(&EngineSettings { instances: 64, ..EngineSettings::default() }).expect("there is an engine")
}

/// A policy of this module without settings.
pub fn policy(engine: &Engine, module: &[u8]) -> Result<Arc<Policy>, PolicyError> {
    let ceiling = Ceiling::default();
    Policy::load(engine, &compile_here(module, "{}", &ceiling)?, &ceiling, &[])
}

/// Somebody creates a cluster.
pub fn question(name: &str) -> Question {
    Question::new(request(name))
}

/// Asks all policies whether somebody may create a cluster.
pub fn ask(registry: &Registry, name: &str) -> Final {
    evaluate(registry, request(name), &NoEvidence, &Deadline::NONE)
}

/// The request of somebody who creates a cluster.
pub fn request(name: &str) -> Request<'static> {
    Request {
        id: "1".into(),
        now: 1_790_000_000_000,
        cluster: Some(Cluster { name: name.to_owned().into(), ..Cluster::default() }),
        object: Some(serde_json::json!({"metadata": {"name": name}})),
        ..Request::new(Operation::Create, Requester { username: "somebody".into(), ..Requester::default() })
    }
}
