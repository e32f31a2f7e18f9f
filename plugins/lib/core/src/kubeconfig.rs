//! The kubeconfig with which an agent registers, and whether two of them speak of the same hub.

use std::fmt;

use serde_json::Value;

use crate::token::{self, Content};
use crate::{certificate, grpc};

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
    /// Name of the hub's entry in the kubeconfig; none: the usual one.
    pub entry: Option<String>,
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
            (false, false) => certificate::are_same(&self.ca, &wanted.ca),
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

    /// Name of the hub's entry in the kubeconfig.
    pub fn entry(&self) -> &str {
        self.entry.as_deref().unwrap_or(ENTRY)
    }

    /// Whether an agent takes the same way by both: the same address, proxy and certificates, in an entry of the same name.
    /// Where the way of its bootstrap kubeconfig is another one than that which it got its certificate by, it registers anew.
    /// Upstream: `IsHubKubeconfigValid`.
    pub fn is_same_way(&self, other: &Self) -> bool {
        let is_same_entry = self.entry() == other.entry();
        let is_same_ca = certificate::are_same(&self.ca, &other.ca);
        self.is_at(&other.server) && self.proxy == other.proxy && is_same_ca && is_same_entry
    }

    /// The same way in an entry of another name than that of `held`, by which the agent got its certificate: so it registers
    /// anew, though nothing else of the way is different.
    #[must_use]
    pub fn anew(self, held: Option<&Self>) -> Self {
        let entry = if held.map(Self::entry) == Some(ENTRY) { OTHER_ENTRY } else { ENTRY };
        Self { entry: Some(entry.to_owned()), ..self }
    }
}

/// The usual name of the hub's entry in a kubeconfig that agents register with, as with other tools.
const ENTRY: &str = "hub";

/// Its name where the one before it was the usual one.
const OTHER_ENTRY: &str = "hub-2";

/// Annotation of the Secret of an agent's bootstrap kubeconfig: [`HubAddress::uid`].
pub const HUB_UID: &str = "kubectl-ocm/hub-uid";

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

/// What an agent registers with: a kubeconfig that holds one hub and one token, and over gRPC the hub's server beside it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bootstrap {
    /// The hub.
    pub hub: HubAddress,
    /// The token.
    pub token: String,
    /// Whether the token was made for one agent alone. The file does not say it, but an annotation of its Secret.
    pub exclusive: bool,
    /// The hub's gRPC server, where the agent registers over gRPC with the same token.
    pub grpc: Option<grpc::Server>,
}

/// Annotation of the Secret of an agent's bootstrap kubeconfig: the id of the token that was made for this agent alone, or `false`.
/// Whoever puts another token into the Secret need not know of it.
pub const EXCLUSIVE_TOKEN: &str = "kubectl-ocm/exclusive-token";

/// What the annotation [`EXCLUSIVE_TOKEN`] says of a token.
pub fn exclusive_mark(token: &str, exclusive: bool) -> String {
    match token::read(token) {
        Content::Jwt { id: Some(id), .. } if exclusive => id,
        _ => NOT_EXCLUSIVE.to_owned(),
    }
}

/// Whether the annotation [`EXCLUSIVE_TOKEN`] says that just this token was made for the agent alone.
pub fn is_exclusive(mark: &str, token: &str) -> bool {
    mark != NOT_EXCLUSIVE && mark == exclusive_mark(token, true)
}

const NOT_EXCLUSIVE: &str = "false";

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrap").field("hub", &self.hub).finish_non_exhaustive()
    }
}

impl Bootstrap {
    /// The file `config.yaml` beside it; none where the agent does not register over gRPC.
    pub fn grpc_config(&self) -> Option<String> {
        self.grpc.as_ref().map(|server| server.config(&self.token))
    }

    /// The file. Its entries have the names that other tools give them, unless the agent has to register anew.
    pub fn to_yaml(&self) -> String {
        // JSON strings are YAML strings.
        let quoted = |text: &str| Value::from(text).to_string();
        let entry = match self.hub.entry() {
            own @ (ENTRY | OTHER_ENTRY) => own.to_owned(),
            other => quoted(other),
        };
        let mut cluster = format!("    server: {}\n", quoted(&self.hub.server));
        if !self.hub.ca.is_empty() {
            let pem = certificate::to_pem_base64(&self.hub.ca);
            cluster += &format!("    certificate-authority-data: {pem}\n");
        }
        if let Some(proxy) = &self.hub.proxy {
            cluster += &format!("    proxy-url: {}\n", quoted(proxy));
        }
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: {entry}\n  cluster:\n{cluster}users:\n- name: bootstrap\n  \
             user:\n    token: {}\ncontexts:\n- name: bootstrap\n  context:\n    cluster: {entry}\n    user: \
             bootstrap\n    namespace: default\ncurrent-context: bootstrap\n",
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
    fn a_token_is_an_agents_own_only_as_long_as_it_is_the_one_that_was_made_for_it() {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let token = |id: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(format!(r#"{{"jti":"{id}"}}"#)));
        let (own, other) = (token("1"), token("2"));
        let mark = exclusive_mark(&own, true);
        assert_eq!(mark, "1", "what it shows is no secret");
        assert!(is_exclusive(&mark, &own) && !is_exclusive(&mark, &other));
        for (token, exclusive) in
            [(&*own, false), ("abcdef.0123456789abcdef", true), ("made-when-joining", true), ("", true)]
        {
            let mark = exclusive_mark(token, exclusive);
            assert!(mark == "false" && !is_exclusive(&mark, token), "{token}");
        }
        assert!(!is_exclusive("true", &own) && !is_exclusive("", &own) && !is_exclusive("false", &token("false")));
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
        let renamed = HubAddress { entry: Some("hub-2".to_owned()), ..hub.clone() };
        assert!(hub.is_same_way(&HubAddress { entry: Some("hub".to_owned()), ..hub.clone() }), "the usual name");
        let others = [address("https://hub", &[b"a", b"b"]), address("https://hub:6443", &[b"a"]), proxied, renamed];
        assert!(others.iter().all(|other| !hub.is_same_way(other) && !other.is_same_way(&hub)));
    }

    #[test]
    fn the_file_holds_what_agents_look_for() {
        let hub = HubAddress { proxy: Some("http://p:3128".to_owned()), ..address("https://h:6443", &[b"ca"]) };
        let text = Bootstrap { hub, token: "abc.def".to_owned(), ..Bootstrap::default() }.to_yaml();
        for line in [
            "    server: \"https://h:6443\"\n",
            "    certificate-authority-data: LS0t",
            "    proxy-url: \"http://p:3128\"\n",
            "    token: \"abc.def\"\n",
            "current-context: bootstrap\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let plain = Bootstrap { hub: address("https://h", &[]), token: "t".to_owned(), ..Bootstrap::default() };
        assert!(!plain.to_yaml().contains("certificate-authority"));
        assert!(!format!("{plain:?}").contains("token"));
    }

    #[test]
    fn two_names_of_the_entry_take_turns() {
        let hub =
            |entry: Option<&str>| HubAddress { entry: entry.map(str::to_owned), ..address("https://hub", &[b"a"]) };
        for (held, entry) in [(None, "hub-2"), (Some("hub"), "hub-2"), (Some("hub-2"), "hub"), (Some("x"), "hub")] {
            let held = hub(held);
            let anew = held.clone().anew(Some(&held));
            assert_eq!(anew.entry(), entry, "{held:?}");
            assert!(!anew.is_same_way(&held) && anew.likeness(&held) == Likeness::Same, "nothing else is different");
        }
        assert_eq!(hub(Some("hub-2")).anew(None).entry(), "hub");
        let text = |entry: Option<&str>| Bootstrap { hub: hub(entry), ..Bootstrap::default() }.to_yaml();
        for (entry, name) in [(None, "hub"), (Some("hub-2"), "hub-2"), (Some("a: b"), "\"a: b\"")] {
            let text = text(entry);
            assert!(text.contains(&format!("- name: {name}\n  cluster:\n")), "{text}");
            assert!(text.contains(&format!("    cluster: {name}\n")), "{text}");
        }
        let plain = Bootstrap { token: "t".to_owned(), ..Bootstrap::default() };
        assert_eq!(plain.grpc_config(), None);
        let address = grpc::Address { host: "h".to_owned(), port: 443 };
        let server = grpc::Server { address, ca: Vec::new() };
        let both = Bootstrap { grpc: Some(server), ..plain };
        assert!(both.grpc_config().is_some_and(|text| text.contains("token: \"t\"")), "the same token");
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
