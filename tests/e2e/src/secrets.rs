//! What only Secrets hold.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::Cluster;
use ocm_core::certificate::from_pem;

use crate::objects::object;

/// Values that only the Secrets of a cluster hold: tokens, passwords and the lines of private keys.
///
/// # Panics
///
/// When they cannot be read.
pub fn canaries(cluster: &Cluster) -> Vec<String> {
    let secrets = object(cluster, &["secrets", "--all-namespaces"]);
    let mut found = Vec::new();
    for secret in secrets["items"].as_array().into_iter().flatten() {
        let values = || secret["data"].as_object().into_iter().flatten();
        let beside = values().filter_map(|(_, value)| from_pem(&STANDARD.decode(value.as_str()?).ok()?).ok());
        let certificates: Vec<Vec<u8>> = beside.flatten().collect();
        // Whole lines of a private key may hold nothing but the public one, which is in its certificate, too.
        let is_public = |line: &str| {
            let bytes = STANDARD.decode(line).unwrap_or_default();
            !bytes.is_empty()
                && certificates.iter().any(|der| der.windows(bytes.len()).any(|part| part == bytes.as_slice()))
        };
        for (key, value) in values() {
            let value = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
            let Ok(text) = String::from_utf8(value) else { continue };
            match key.as_str() {
                "token" | "token-secret" | ".dockerconfigjson" => found.push(text),
                "kubeconfig" => {
                    let token = text.lines().find_map(|line| line.trim().strip_prefix("token: "));
                    found.extend(token.map(|token| token.trim_matches('"').to_owned()));
                }
                key if key.ends_with(".key") => {
                    let lines = text.lines().filter(|line| !line.starts_with("---") && !is_public(line));
                    found.extend(lines.map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    found.retain(|word| word.len() >= 8);
    found
}
