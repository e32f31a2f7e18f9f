//! Secrets whose values somebody has taken out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Whether a Secret has all of its values: must-gathers and people who pass dumps on put other words in their place, which
/// would be read as a kubeconfig that is broken.
pub(crate) fn is_whole(secret: &Value) -> bool {
    let Some(data) = secret.get("data").and_then(Value::as_object) else { return false };
    !data.is_empty() && data.values().all(is_value)
}

fn is_value(value: &Value) -> bool {
    let Some(text) = value.as_str().filter(|text| !is_word(text)) else { return false };
    let Ok(bytes) = STANDARD.decode(text) else { return false };
    std::str::from_utf8(&bytes).map_or(true, |text| !is_word(text))
}

/// Whether it stands for a value that was taken out.
fn is_word(text: &str) -> bool {
    // What oc adm inspect writes of a value.
    let is_size = text.strip_suffix(" bytes long").is_some_and(|size| size.bytes().all(|byte| byte.is_ascii_digit()));
    let word = text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    is_size || word.is_empty() || ["redacted", "removed", "omitted", "hidden"].contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_were_replaced_are_told_from_values() {
        let of = |value: Value| is_whole(&json!({"data": {"tls.crt": STANDARD.encode("x"), "kubeconfig": value}}));
        assert!(of(json!(STANDARD.encode("apiVersion: v1\n"))) && of(json!(STANDARD.encode([0xff]))));
        for replaced in ["123 bytes long", "REDACTED", "<redacted>", "***", ""] {
            assert!(!of(json!(STANDARD.encode(replaced))), "{replaced:?}");
        }
        assert!(!of(json!("REDACTED")) && !of(json!("***")) && !of(json!(null)) && !of(json!({})));
        assert!(!is_whole(&json!({})) && !is_whole(&json!({"data": {}})) && !is_whole(&json!({"data": null})));
    }
}
