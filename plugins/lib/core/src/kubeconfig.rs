//! The kubeconfig with which an agent registers, and whether two of them speak of the same hub.

use std::fmt;

use serde_json::Value;

use crate::certificate;

/// How an agent reaches and trusts a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubAddress {
    /// URL of the API server.
    pub server: String,
    /// Certificates (DER) that vouch for it; none: the system's.
    pub ca: Vec<Vec<u8>>,
    /// The proxy on the way.
    pub proxy: Option<String>,
    /// The UID of the hub's namespace `kube-system`, where it is known: no two clusters share it.
    pub uid: Option<String>,
}

/// How two addresses compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// The same hub, reached in the same way.
    Same,
    /// The same authority under another address: the same hub.
    OtherAddress,
    /// The same address under another authority: the hub's CA was replaced, or another server took its place.
    OtherCa,
    /// Neither is the same.
    OtherHub,
}

impl HubAddress {
    /// Compares with the address that is wanted.
    ///
    /// Where both know the hub's UID, it alone says whether they are the same hub. Otherwise one certificate in common
    /// suffices at the same address; at another address all have to be the same, because a file with the authorities
    /// of several hubs has some of each.
    pub fn likeness(&self, wanted: &Self) -> Likeness {
        let address = self.is_at(&wanted.server);
        let same_ca = match (self.ca.is_empty(), wanted.ca.is_empty()) {
            (true, true) => address,
            // One of them leaves the choice to the system: nothing contradicts.
            (true, false) | (false, true) => address,
            (false, false) if address => self.ca.iter().any(|certificate| wanted.ca.contains(certificate)),
            (false, false) => same(&self.ca, &wanted.ca),
        };
        let same_uid = self.uid.as_ref().zip(wanted.uid.as_ref()).map(|(own, other)| own == other);
        match (same_uid, address, same_ca) {
            (Some(false), ..) | (None, false, false) => Likeness::OtherHub,
            (_, true, true) => Likeness::Same,
            (Some(true), false, _) | (None, false, true) => Likeness::OtherAddress,
            (Some(true), true, false) => Likeness::Same,
            (None, true, false) => Likeness::OtherCa,
        }
    }

    /// Whether this is the hub's address.
    pub fn is_at(&self, server: &str) -> bool {
        normal(&self.server) == normal(server)
    }

    /// Whether an agent takes the same way by both: the same address, proxy and certificates. Where the way of its bootstrap
    /// kubeconfig is another one than that which it got its certificate by, it registers anew. Upstream:
    /// `IsHubKubeconfigValid`.
    pub fn is_same_way(&self, other: &Self) -> bool {
        self.is_at(&other.server) && self.proxy == other.proxy && same(&self.ca, &other.ca)
    }
}

/// Annotation of the Secret of an agent's bootstrap kubeconfig: [`HubAddress::uid`].
pub const HUB_UID: &str = "kubectl-ocm/hub-uid";

/// Whether two lists hold the same certificates.
fn same(one: &[Vec<u8>], other: &[Vec<u8>]) -> bool {
    let within = |some: &[Vec<u8>], all: &[Vec<u8>]| some.iter().all(|certificate| all.contains(certificate));
    within(one, other) && within(other, one)
}

/// An address without what makes no difference.
fn normal(server: &str) -> String {
    let server = server.trim().trim_end_matches('/').to_ascii_lowercase();
    match server.strip_prefix("https://") {
        Some(rest) if !rest.contains('/') => match rest.strip_suffix(":443") {
            Some(host) => format!("https://{host}"),
            None => server,
        },
        _ => server,
    }
}

/// A kubeconfig that holds one hub and one token.
#[derive(Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// The hub.
    pub hub: HubAddress,
    /// The token.
    pub token: String,
    /// Whether the token was made for one agent alone. The file does not say it, but an annotation of its Secret.
    pub exclusive: bool,
}

/// Annotation of the Secret of an agent's bootstrap kubeconfig: its token was made for this agent alone.
pub const EXCLUSIVE_TOKEN: &str = "kubectl-ocm/exclusive-token";

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrap").field("hub", &self.hub).finish_non_exhaustive()
    }
}

impl Bootstrap {
    /// The file. Its entries have the names that other tools give them.
    pub fn to_yaml(&self) -> String {
        // JSON strings are YAML strings.
        let quoted = |text: &str| Value::from(text).to_string();
        let mut cluster = format!("    server: {}\n", quoted(&self.hub.server));
        if !self.hub.ca.is_empty() {
            let pem = certificate::to_pem_base64(&self.hub.ca);
            cluster += &format!("    certificate-authority-data: {pem}\n");
        }
        if let Some(proxy) = &self.hub.proxy {
            cluster += &format!("    proxy-url: {}\n", quoted(proxy));
        }
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: hub\n  cluster:\n{cluster}users:\n- name: bootstrap\n  \
             user:\n    token: {}\ncontexts:\n- name: bootstrap\n  context:\n    cluster: hub\n    user: bootstrap\n    \
             namespace: default\ncurrent-context: bootstrap\n",
            quoted(&self.token)
        )
    }
}

/// Puts another token into a kubeconfig, for the user of its current context, and leaves everything else as it is. False, and
/// nothing is changed, where that user has no token there: it is named in a file, or made by a program.
pub fn replace_token(kubeconfig: &mut Value, token: &str) -> bool {
    let named = |list: &Value, name: &Value| list.as_array()?.iter().position(|entry| entry["name"] == *name);
    let context = named(&kubeconfig["contexts"], &kubeconfig["current-context"]);
    let user = context.map(|at| kubeconfig["contexts"][at]["context"]["user"].clone());
    let Some(at) = user.filter(Value::is_string).and_then(|user| named(&kubeconfig["users"], &user)) else {
        return false;
    };
    let Some(user) = kubeconfig["users"][at].get_mut("user").and_then(Value::as_object_mut) else { return false };
    let has_others = ["tokenFile", "exec", "auth-provider"].iter().any(|key| user.contains_key(*key));
    if has_others || !user.get("token").is_some_and(Value::is_string) {
        return false;
    }
    user.insert("token".to_owned(), Value::from(token));
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn address(server: &str, ca: &[&[u8]]) -> HubAddress {
        HubAddress { server: server.to_owned(), ca: ca.iter().map(|ca| ca.to_vec()).collect(), ..HubAddress::default() }
    }

    #[test]
    fn the_same_hub_is_recognised() {
        let hub = address("https://Hub.example:6443/", &[b"a", b"b"]);
        let cases = [
            (address("https://hub.example:6443", &[b"b"]), Likeness::Same),
            (address("https://hub.example:6443", &[]), Likeness::Same),
            (address("https://10.0.0.1:6443", &[b"b", b"a"]), Likeness::OtherAddress),
            // A file with the authorities of two hubs has one of each.
            (address("https://10.0.0.1:6443", &[b"a"]), Likeness::OtherHub),
            (address("https://10.0.0.1:6443", &[b"a", b"b", b"x"]), Likeness::OtherHub),
            (address("https://hub.example:6443", &[b"c"]), Likeness::OtherCa),
            (address("https://other:6443", &[b"c"]), Likeness::OtherHub),
            (address("https://other:6443", &[]), Likeness::OtherHub),
        ];
        for (wanted, likeness) in cases {
            assert_eq!(hub.likeness(&wanted), likeness, "{wanted:?}");
        }
        assert_eq!(address("https://h:443", &[]).likeness(&address("https://h", &[])), Likeness::Same);
        assert_eq!(address("https://h:443", &[]).likeness(&address("https://i", &[])), Likeness::OtherHub);
    }

    #[test]
    fn the_uid_decides_where_both_know_it() {
        let with = |hub: HubAddress, uid: &str| HubAddress { uid: Some(uid.to_owned()), ..hub };
        let hub = with(address("https://hub", &[b"a"]), "1");
        let likeness = |wanted: HubAddress| hub.likeness(&wanted);
        assert_eq!(likeness(with(address("https://hub", &[b"a"]), "2")), Likeness::OtherHub);
        assert_eq!(likeness(with(address("https://other", &[b"a"]), "2")), Likeness::OtherHub);
        assert_eq!(likeness(with(address("https://other", &[b"x"]), "1")), Likeness::OtherAddress);
        assert_eq!(likeness(with(address("https://hub", &[b"x"]), "1")), Likeness::Same);
        assert_eq!(likeness(address("https://hub", &[b"x"])), Likeness::OtherCa);
    }

    #[test]
    fn the_way_to_a_hub_is_address_proxy_and_certificates() {
        let hub = address("https://hub:6443", &[b"a", b"b"]);
        assert!(
            hub.is_same_way(&HubAddress { uid: Some("1".to_owned()), ..address("https://HUB:6443/", &[b"b", b"a"]) })
        );
        let proxied = HubAddress { proxy: Some("http://p:3128".to_owned()), ..hub.clone() };
        let others = [address("https://hub", &[b"a", b"b"]), address("https://hub:6443", &[b"a"]), proxied];
        assert!(others.iter().all(|other| !hub.is_same_way(other) && !other.is_same_way(&hub)));
    }

    #[test]
    fn the_file_holds_what_agents_look_for() {
        let hub = HubAddress { proxy: Some("http://p:3128".to_owned()), ..address("https://h:6443", &[b"ca"]) };
        let text = Bootstrap { hub, token: "abc.def".to_owned(), exclusive: false }.to_yaml();
        for line in [
            "    server: \"https://h:6443\"\n",
            "    certificate-authority-data: LS0t",
            "    proxy-url: \"http://p:3128\"\n",
            "    token: \"abc.def\"\n",
            "current-context: bootstrap\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let plain = Bootstrap { hub: address("https://h", &[]), token: "t".to_owned(), exclusive: false };
        assert!(!plain.to_yaml().contains("certificate-authority"));
        assert!(!format!("{plain:?}").contains("token"));
    }

    #[test]
    fn a_token_is_replaced_and_nothing_else() {
        let kubeconfig = json!({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "h", "user": "u"}}],
            "clusters": [{"name": "h", "cluster": {"server": "https://h", "tls-server-name": "kept"}}],
            "users": [{"name": "other", "user": {"token": "other"}}, {"name": "u", "user": {"token": "old"}}],
        });
        let mut replaced = kubeconfig.clone();
        assert!(replace_token(&mut replaced, "new"));
        let mut expected = kubeconfig.clone();
        expected["users"][1]["user"]["token"] = json!("new");
        assert_eq!(replaced, expected);
        for (pointer, value) in [
            ("/users/1/user", json!({"tokenFile": "/f", "token": "old"})),
            ("/users/1/user", json!({"exec": {}})),
            ("/users", json!([])),
            ("/current-context", json!("other")),
        ] {
            let mut strange = kubeconfig.clone();
            *strange.pointer_mut(pointer).unwrap() = value;
            let before = strange.clone();
            assert!(!replace_token(&mut strange, "new"), "{pointer}");
            assert_eq!(strange, before, "{pointer}");
        }
        assert!(!replace_token(&mut json!("text"), "new"));
    }
}
