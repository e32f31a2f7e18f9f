//! What name-pattern decides with the prefixes of the benchmark, behind JSON texts.
//!
//! The settings are constants: what happens when a policy is configured is not measured.

#[cfg(target_arch = "wasm32")]
#[warn(unsafe_code, reason = "the allocator expects it")]
#[path = "../../../../../sdk/src/bump.rs"]
mod bump;

wit_bindgen::generate!({ path: "../texts.wit", world: "gate" });

use exports::ocm::texts::policy::Guest;
use ocm_policy_abi::{Decision, Operation, Reason, Request, Verdict};

const PREFIXES: [&str; 2] = ["prod-", "team-0-"];

struct NamePattern;

impl Guest for NamePattern {
    fn decide(request: String) -> String {
        let decision = match serde_json::from_str(&request) {
            Ok(request) => judge(&request),
            Err(error) => deny("RequestUnreadable", error.to_string()),
        };
        serde_json::to_string(&decision).unwrap_or_default()
    }
}

fn judge(request: &Request<'_>) -> Decision {
    let name = request.cluster.as_ref().map(|cluster| &*cluster.name).filter(|name| !name.is_empty());
    let Some(name) = name else {
        if request.operation == Operation::Approve {
            return Decision::default();
        }
        return deny("name-missing", "the cluster has no name yet".to_owned());
    };
    if name.len() > 63 {
        return deny("name-length", "the name must have 1 to 63 characters".to_owned());
    }
    if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return deny("NamePrefix", format!("the name must begin with one of: {}", PREFIXES.join(", ")));
    }
    Decision { verdict: Verdict::Allow, ..Decision::default() }
}

fn deny(code: &str, message: String) -> Decision {
    let reason = Reason { code: code.to_owned(), message, field: Some("metadata.name".to_owned()) };
    Decision { verdict: Verdict::Deny, reasons: vec![reason], ..Decision::default() }
}

export!(NamePattern);
