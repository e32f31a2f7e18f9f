//! Small guests written by hand, and questions for them.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::path::PathBuf;
use std::sync::Arc;

use ocm_policy_abi::{Cluster, Operation, Request, Requester};
use ocm_policy_engine::{Ceiling, Compiler, Engine, EngineSettings, Fault, Policy, Question, compile_here};

/// A guest of our contract: what its functions do, as WebAssembly text.
pub struct Guest {
    /// Fields at the top level of the module.
    pub fields: String,
    /// What happens in `describe` before it answers.
    pub describe: String,
    /// What happens in `configure` before it answers.
    pub configure: String,
    /// What happens in `decide` before it answers.
    pub decide: String,
    /// Pages of memory.
    pub pages: u32,
    /// The answer.
    pub answer: String,
    /// More members of the manifest, with a comma before each.
    pub manifest: Option<String>,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            fields: String::new(),
            describe: String::new(),
            configure: String::new(),
            decide: String::new(),
            pages: 1,
            answer: r#"{"verdict":"allow"}"#.to_owned(),
            manifest: None,
        }
    }
}

const MANIFEST: &str = r#"{"contract":"ocm:policy@0.1.0","name":"guest","version":"1.0.0","operations":["create"]"#;

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:02x}")).collect()
}

impl Guest {
    /// One that does this in `decide`.
    pub fn deciding(decide: &str) -> Self {
        Self { decide: decide.to_owned(), ..Self::default() }
    }

    /// One that answers this.
    pub fn answering(answer: &str) -> Self {
        Self { answer: answer.to_owned(), ..Self::default() }
    }

    /// The module.
    pub fn module(&self) -> Vec<u8> {
        let Self { fields, describe, configure, decide, pages, answer, manifest } = self;
        let manifest = format!("{MANIFEST}{}}}", manifest.as_deref().unwrap_or_default());
        let text = format!(
            r#"(module
              (memory (export "memory") {pages})
              (global $next (mut i32) (i32.const 16384))
              (data (i32.const 1024) "{manifest}")
              (data (i32.const 8192) "{bytes}")
              {fields}
              (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (global.get $next)
                (global.set $next (i32.add (global.get $next) (i32.add (local.get 3) (i32.const 8)))))
              (func (export "ocm:policy/policy@0.1.0#describe") (result i32)
                {describe}
                (i32.store (i32.const 16) (i32.const 1024))
                (i32.store (i32.const 20) (i32.const {manifest_length}))
                (i32.const 16))
              (func (export "ocm:policy/policy@0.1.0#configure") (param i32 i32) (result i32)
                (i32.store8 (i32.const 32) (i32.const 0))
                {configure}
                (i32.const 32))
              (func (export "ocm:policy/policy@0.1.0#decide") (param i32 i32) (result i32)
                (i32.store (i32.const 64) (i32.const 8192))
                (i32.store (i32.const 68) (i32.const {answer_length}))
                {decide}
                (i32.const 64)))"#,
            manifest = escaped(&manifest),
            bytes = escaped(answer),
            manifest_length = manifest.len(),
            answer_length = answer.len(),
        );
        wat::parse_str(text).expect("the guest is WebAssembly text")
    }
}

/// The process that compiles. Cargo builds it together with the tests.
pub fn compiler() -> Compiler {
    let own = std::env::current_exe().expect("a test has a path");
    let folder: PathBuf = own.ancestors().nth(2).expect("tests lie in a folder of the build").into();
    let program = folder.join("examples").join(format!("compiler{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} was not built", program.display());
    Compiler::Process { program, arguments: Vec::new(), cpu_seconds: 20, memory_bytes: 1 << 30 }
}

/// An engine in which time passes.
pub fn engine() -> Engine {
    let engine =
        Engine::new(&EngineSettings { instances: 64, ..EngineSettings::default() }).expect("there is an engine");
    let ticking = engine.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(std::time::Duration::from_millis(1));
            ticking.tick();
        }
    });
    engine
}

/// A policy of this module without settings.
pub fn policy(engine: &Engine, module: &[u8]) -> Result<Arc<Policy>, Fault> {
    let ceiling = Ceiling::default();
    Policy::load(engine, &compile_here(module, "{}", &ceiling)?, &ceiling, &[])
}

/// Somebody creates a cluster.
pub fn question(name: &str) -> Question {
    let request = Request {
        id: "1".into(),
        operation: Operation::Create,
        now: 1_790_000_000_000,
        dry_run: false,
        attempt: 0,
        requester: Requester { username: "somebody".into(), ..Requester::default() },
        resource: None,
        cluster: Some(Cluster { name: name.to_owned().into(), ..Cluster::default() }),
        previous: None,
        csr: None,
        object: None,
        previous_object: None,
        evidence: ocm_policy_abi::Map::default(),
    };
    Question::new(request).expect("a request can be written")
}
