//! The test cases of this policy, natively.

use std::sync::OnceLock;

use ocm_policy_sdk::{Policy, guest};
use policy_approvals::Approvals;

#[test]
fn the_test_cases_hold() {
    let manifest = Approvals::manifest().into();
    let failures = ocm_policy_testing::run(include_str!("../tests.yaml"), &manifest, |settings, request| {
        let state = OnceLock::new();
        guest::configure::<Approvals>(&state, settings)?;
        Ok(guest::decide(&state, request))
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
