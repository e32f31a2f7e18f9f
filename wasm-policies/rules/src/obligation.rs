//! Obligations: which ones are carried out.

use ocm_policy_abi::Operation;
use serde_json::{Value, json};

/// The obligations that are carried out where they follow from the answer to such a question; any other makes an answer an
/// error. Hubs declare these to their policies, and so does whoever asks policies without a hub: what passes there is
/// no error here.
pub const fn carried_out(_: Operation) -> &'static [&'static str] {
    &[]
}

/// Declares them in a request of the contract that says nothing of obligations.
pub fn declare(request: &mut Value) {
    let operation = request.get("operation").and_then(Value::as_str).and_then(Operation::of);
    // A request without an operation is none: whoever reads it says so.
    let (Some(operation), Some(members)) = (operation, request.as_object_mut()) else { return };
    members.entry("obligations").or_insert_with(|| json!(carried_out(operation)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_itself_stays() {
        let mut own = json!({"operation": "accept", "obligations": ["other"]});
        declare(&mut own);
        assert_eq!(own["obligations"], json!(["other"]));
        for operation in Operation::ALL {
            let mut request = json!({"operation": operation.word()});
            declare(&mut request);
            assert_eq!(request["obligations"], json!(carried_out(operation)));
        }
        let mut none = json!({"operation": "later"});
        declare(&mut none);
        assert_eq!(none.get("obligations"), None);
    }
}
