//! Rows for tests.

use std::collections::BTreeMap;

use ocm_flows::accept::{Outcome, Row};

/// How cluster `c1` came out, without anything besides.
pub(crate) fn row(outcome: Outcome) -> Row {
    Row {
        name: "c1".to_owned(),
        outcome,
        detail: String::new(),
        help: None,
        stray: Vec::new(),
        cluster_set: None,
        labels: BTreeMap::new(),
        fingerprint: None,
        requester: None,
        request: None,
        approval: None,
    }
}
