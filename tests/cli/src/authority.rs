//! The certificate of an authority.

use std::sync::OnceLock;

/// The certificate of an authority that is valid from 2025 to 2035, in PEM: one in each program.
///
/// # Panics
/// When it cannot be made.
pub fn authority() -> &'static str {
    static PEM: OnceLock<String> = OnceLock::new();
    PEM.get_or_init(|| {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2025, 1, 1), rcgen::date_time_ymd(2035, 1, 1));
        params.self_signed(&key).expect("a certificate").pem()
    })
}
