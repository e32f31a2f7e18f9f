//! What administrators write in a HubPolicy and what policies announce are the same words.

use ocm_api::policy::{EditGrant as Written, EditTarget, PolicyGrants};
use ocm_policy_abi::EditGrant;
use serde_json::json;

/// One of each kind of grant. A new kind does not compile before it is entered here.
fn all() -> Vec<EditGrant> {
    let key = || "example.com/*".to_owned();
    let first = EditGrant::Label { key: key() };
    let mut all = vec![first];
    while let Some(next) = match all.last() {
        Some(EditGrant::Label { .. }) => Some(EditGrant::Annotation { key: key() }),
        Some(EditGrant::Annotation { .. }) => Some(EditGrant::Taint { key: key() }),
        Some(EditGrant::Taint { .. }) => Some(EditGrant::ClusterSet),
        Some(EditGrant::ClusterSet) => Some(EditGrant::LeaseDuration),
        Some(EditGrant::LeaseDuration) | None => None,
    } {
        all.push(next);
    }
    all
}

#[test]
fn grants_are_the_same_in_json() {
    let announced = json!(all());
    let written: Vec<Written> = serde_json::from_value(announced.clone()).expect("grants are read");
    assert_eq!(json!(PolicyGrants { edits: written.clone() }), json!({ "edits": announced }));
    let words: Vec<_> = written.iter().map(|grant| grant.edit.as_str()).collect();
    assert_eq!(words, EditTarget::KNOWN);
    assert!(written.iter().all(|grant| !matches!(grant.edit, EditTarget::Other(_))));
}

#[test]
fn a_grant_needs_a_key_exactly_where_the_api_server_wants_one() {
    // The words in the rule of the definition.
    let with_key = ["label", "annotation", "taint"];
    for word in EditTarget::KNOWN {
        let read = serde_json::from_value::<EditGrant>(json!({ "edit": word }));
        assert_eq!(read.is_err(), with_key.contains(word), "{word}");
    }
}
