//! Objects of the hub as they are kept: as text, which takes less memory than a tree of the same.

use std::sync::Arc;

use serde_json::Value;

/// A value that is read again when it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed(Arc<str>);

impl Packed {
    /// Of a value.
    pub fn new(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    /// The value.
    pub fn read(&self) -> Value {
        // It is the text of a value.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Bytes of its text.
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_packed_is_read_as_it_was() {
        let value = json!({"b": [1, -2, 0.5, u64::MAX, "\u{0}\"\u{1F600}"], "a": {"": null}, "c": true});
        assert_eq!(Packed::new(&value).read(), value);
    }
}
