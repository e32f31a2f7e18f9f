//! Objects that leave: their rows, and their names.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::Manifest;
use serde_json::Value;

use crate::plan::{Applied, Outcome};

/// A row about an object: what became of it, or would.
pub fn row(manifest: Manifest, outcome: Outcome) -> Applied {
    Applied { manifest, outcome, before: None, after: Value::Null }
}

/// The metadata of an object that is known by its name alone.
pub(crate) fn meta(namespace: Option<&str>, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: namespace.map(str::to_owned), name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// Names for people: the first few, and how many there are besides.
pub fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len() {
        0..=SHOWN => names.join(", "),
        many => format!("{} and {} more", names[..SHOWN].join(", "), many - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_names_are_told_and_the_others_counted() {
        let names: Vec<String> = (1..=7).map(|number| format!("w{number}")).collect();
        assert_eq!(some(&names[..2]), "w1, w2");
        assert_eq!(some(&names), "w1, w2, w3, w4, w5 and 2 more");
    }
}
