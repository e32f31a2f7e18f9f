//! The text form of what is DER.

use base64::Engine as _;

/// Wraps bytes as a PEM block.
pub fn pem(label: &str, der: &[u8]) -> String {
    let packed = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> = packed.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
