//! The cipher suites of TLS 1.2 and older, as IANA numbers and names them.

/// Number and name of every cipher suite that servers without keys agreed beforehand are known to have, the common ones first. Those
/// of certificates with DSA, of Kerberos and of passwords are left out: no server of a cluster has them.
pub const SUITES: &[(u16, &str)] = &[
    (0xc02b, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    (0xc02f, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0xc02c, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    (0xc030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0xcca9, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xcca8, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0x009e, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0x009f, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0xccaa, "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xc009, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    (0xc013, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    (0xc00a, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    (0xc014, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
    (0xc023, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    (0xc027, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
    (0xc024, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"),
    (0xc028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"),
    (0x0067, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256"),
    (0x006b, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256"),
    (0x009c, "TLS_RSA_WITH_AES_128_GCM_SHA256"),
    (0x009d, "TLS_RSA_WITH_AES_256_GCM_SHA384"),
    (0x003c, "TLS_RSA_WITH_AES_128_CBC_SHA256"),
    (0x003d, "TLS_RSA_WITH_AES_256_CBC_SHA256"),
    (0x002f, "TLS_RSA_WITH_AES_128_CBC_SHA"),
    (0x0035, "TLS_RSA_WITH_AES_256_CBC_SHA"),
    (0x000a, "TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
    (0x0033, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA"),
    (0x0039, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA"),
    (0x0016, "TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA"),
    (0xc008, "TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA"),
    (0xc012, "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA"),
    (0xc0ac, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM"),
    (0xc0ad, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM"),
    (0xc0ae, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8"),
    (0xc0af, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8"),
    (0xc09e, "TLS_DHE_RSA_WITH_AES_128_CCM"),
    (0xc09f, "TLS_DHE_RSA_WITH_AES_256_CCM"),
    (0xc0a2, "TLS_DHE_RSA_WITH_AES_128_CCM_8"),
    (0xc0a3, "TLS_DHE_RSA_WITH_AES_256_CCM_8"),
    (0xc09c, "TLS_RSA_WITH_AES_128_CCM"),
    (0xc09d, "TLS_RSA_WITH_AES_256_CCM"),
    (0xc0a0, "TLS_RSA_WITH_AES_128_CCM_8"),
    (0xc0a1, "TLS_RSA_WITH_AES_256_CCM_8"),
    (0xc05c, "TLS_ECDHE_ECDSA_WITH_ARIA_128_GCM_SHA256"),
    (0xc05d, "TLS_ECDHE_ECDSA_WITH_ARIA_256_GCM_SHA384"),
    (0xc060, "TLS_ECDHE_RSA_WITH_ARIA_128_GCM_SHA256"),
    (0xc061, "TLS_ECDHE_RSA_WITH_ARIA_256_GCM_SHA384"),
    (0xc052, "TLS_DHE_RSA_WITH_ARIA_128_GCM_SHA256"),
    (0xc053, "TLS_DHE_RSA_WITH_ARIA_256_GCM_SHA384"),
    (0xc050, "TLS_RSA_WITH_ARIA_128_GCM_SHA256"),
    (0xc051, "TLS_RSA_WITH_ARIA_256_GCM_SHA384"),
    (0xc072, "TLS_ECDHE_ECDSA_WITH_CAMELLIA_128_CBC_SHA256"),
    (0xc073, "TLS_ECDHE_ECDSA_WITH_CAMELLIA_256_CBC_SHA384"),
    (0xc076, "TLS_ECDHE_RSA_WITH_CAMELLIA_128_CBC_SHA256"),
    (0xc077, "TLS_ECDHE_RSA_WITH_CAMELLIA_256_CBC_SHA384"),
    (0x00be, "TLS_DHE_RSA_WITH_CAMELLIA_128_CBC_SHA256"),
    (0x00c4, "TLS_DHE_RSA_WITH_CAMELLIA_256_CBC_SHA256"),
    (0x0045, "TLS_DHE_RSA_WITH_CAMELLIA_128_CBC_SHA"),
    (0x0088, "TLS_DHE_RSA_WITH_CAMELLIA_256_CBC_SHA"),
    (0x00ba, "TLS_RSA_WITH_CAMELLIA_128_CBC_SHA256"),
    (0x00c0, "TLS_RSA_WITH_CAMELLIA_256_CBC_SHA256"),
    (0x0041, "TLS_RSA_WITH_CAMELLIA_128_CBC_SHA"),
    (0x0084, "TLS_RSA_WITH_CAMELLIA_256_CBC_SHA"),
    (0x009a, "TLS_DHE_RSA_WITH_SEED_CBC_SHA"),
    (0x0096, "TLS_RSA_WITH_SEED_CBC_SHA"),
    (0x0007, "TLS_RSA_WITH_IDEA_CBC_SHA"),
    (0xc007, "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA"),
    (0xc011, "TLS_ECDHE_RSA_WITH_RC4_128_SHA"),
    (0x0005, "TLS_RSA_WITH_RC4_128_SHA"),
    (0x0004, "TLS_RSA_WITH_RC4_128_MD5"),
    (0x0015, "TLS_DHE_RSA_WITH_DES_CBC_SHA"),
    (0x0009, "TLS_RSA_WITH_DES_CBC_SHA"),
    (0xc006, "TLS_ECDHE_ECDSA_WITH_NULL_SHA"),
    (0xc010, "TLS_ECDHE_RSA_WITH_NULL_SHA"),
    (0x003b, "TLS_RSA_WITH_NULL_SHA256"),
    (0x0002, "TLS_RSA_WITH_NULL_SHA"),
    (0x0001, "TLS_RSA_WITH_NULL_MD5"),
    (0x0003, "TLS_RSA_EXPORT_WITH_RC4_40_MD5"),
    (0x0006, "TLS_RSA_EXPORT_WITH_RC2_CBC_40_MD5"),
    (0x0008, "TLS_RSA_EXPORT_WITH_DES40_CBC_SHA"),
    (0x0014, "TLS_DHE_RSA_EXPORT_WITH_DES40_CBC_SHA"),
    (0x00a6, "TLS_DH_anon_WITH_AES_128_GCM_SHA256"),
    (0x00a7, "TLS_DH_anon_WITH_AES_256_GCM_SHA384"),
    (0x006c, "TLS_DH_anon_WITH_AES_128_CBC_SHA256"),
    (0x006d, "TLS_DH_anon_WITH_AES_256_CBC_SHA256"),
    (0x0034, "TLS_DH_anon_WITH_AES_128_CBC_SHA"),
    (0x003a, "TLS_DH_anon_WITH_AES_256_CBC_SHA"),
    (0x001b, "TLS_DH_anon_WITH_3DES_EDE_CBC_SHA"),
    (0x0018, "TLS_DH_anon_WITH_RC4_128_MD5"),
    (0xc018, "TLS_ECDH_anon_WITH_AES_128_CBC_SHA"),
    (0xc019, "TLS_ECDH_anon_WITH_AES_256_CBC_SHA"),
    (0xc017, "TLS_ECDH_anon_WITH_3DES_EDE_CBC_SHA"),
    (0xc016, "TLS_ECDH_anon_WITH_RC4_128_SHA"),
    (0xc015, "TLS_ECDH_anon_WITH_NULL_SHA"),
];

/// The name of a cipher suite; none: it is not among [`SUITES`].
pub fn name(number: u16) -> Option<&'static str> {
    SUITES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_suite_stands_there_once() {
        let numbers: BTreeSet<u16> = SUITES.iter().map(|(number, _)| *number).collect();
        let names: BTreeSet<&str> = SUITES.iter().map(|(_, name)| *name).collect();
        assert_eq!((numbers.len(), names.len()), (SUITES.len(), SUITES.len()));
    }

    #[test]
    fn a_suite_is_named_by_its_number() {
        assert_eq!(name(0xc02f), Some("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"));
        assert_eq!(name(0x0000), None);
    }
}
