//! What name-pattern decides with the prefixes of the benchmark, behind typed records.
//!
//! The settings are constants: what the other contract does when it is configured is not measured.

#[cfg(target_arch = "wasm32")]
#[warn(unsafe_code, reason = "the allocator expects it")]
#[path = "../../../../../sdk/src/bump.rs"]
mod bump;

wit_bindgen::generate!({ path: "../typed.wit", world: "gate" });

use exports::ocm::typed::policy::{Decision, Guest, Operation, Reason, Request};

const PREFIXES: [&str; 2] = ["prod-", "team-0-"];

struct NamePattern;

impl Guest for NamePattern {
    fn decide(request: Request) -> Decision {
        let name = request.cluster.as_ref().map(|cluster| cluster.name.as_str()).filter(|name| !name.is_empty());
        let Some(name) = name else {
            if request.operation == Operation::Approve {
                return Decision::NoOpinion;
            }
            return deny("name-missing", "the cluster has no name yet".to_owned());
        };
        if name.len() > 63 {
            return deny("name-length", "the name must have 1 to 63 characters".to_owned());
        }
        if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            return deny("name-prefix", format!("the name must begin with one of: {}", PREFIXES.join(", ")));
        }
        Decision::Allow(Vec::new())
    }
}

fn deny(code: &str, message: String) -> Decision {
    Decision::Deny(vec![Reason { code: code.to_owned(), message, field: Some("metadata.name".to_owned()) }])
}

export!(NamePattern);
