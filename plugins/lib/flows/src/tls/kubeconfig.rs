//! Servers of kubeconfigs, as whoever has the file dials them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::config::{AuthInfo, Cluster as ClusterEntry};
use ocm_api::names::secrets;
use ocm_checks::snapshot::Trouble;
use ocm_checks::tls::{Client, Copied, Copy, Inventory, Place, Purpose, Relation, Renewal, Token, Unseen, Use};
use ocm_core::redact::redact;
use ocm_core::{Failure, Reason, certificate, token};
use ocm_net::proxy::{Origin, Proxy};
use ocm_net::{Endpoint, Way};
use secrecy::ExposeSecret as _;

use super::clock::empty;
use super::handshake::{Dialled, dial};
use super::material::{chain, der, plain, text, value};

/// What the entry of a cluster says of the way to its server.
pub(super) struct Server {
    endpoint: Endpoint,
    name: String,
    way: Way,
    insecure: bool,
    /// The authorities in it; none: the system's.
    pub(super) authorities: Option<Vec<Vec<u8>>>,
    /// How many blocks among the authorities cannot be read.
    pub(super) unreadable: usize,
}

impl Server {
    /// Reads an entry. Files that it names are in `folder`, if they may be read at all.
    ///
    /// # Errors
    /// When there is no way to such a server, or its authorities cannot be had.
    pub(super) fn of(entry: &ClusterEntry, folder: Option<&Path>) -> Result<Self, Failure> {
        let name = entry.tls_server_name.as_deref().filter(|name| !name.is_empty());
        let endpoint = Endpoint::parse(entry.server.as_deref().unwrap_or_default(), name)?;
        let way = match proxy(entry) {
            Some(proxy) => Way::Through(proxy.map_err(|error| {
                Failure::new(Reason::Kubeconfig, "the proxy-url of the kubeconfig cannot be used").because(error)
            })?),
            None => Way::Environment,
        };
        let (authorities, unreadable) = match pem(entry, folder)?.map(|pem| certificate::readable(&pem)) {
            Some((authorities, unreadable)) => (Some(authorities), unreadable),
            None => (None, 0),
        };
        Ok(Self {
            name: name.map_or_else(|| endpoint.host.clone(), str::to_owned),
            endpoint,
            way,
            insecure: entry.insecure_skip_tls_verify.unwrap_or_default(),
            authorities,
            unreadable,
        })
    }

    /// The server, ready to be dialled.
    pub(super) fn dialled(&self) -> Dialled<'_> {
        Dialled {
            endpoint: &self.endpoint,
            name: self.name.clone(),
            way: &self.way,
            authorities: self.authorities.as_deref(),
            insecure: self.insecure,
        }
    }

    /// Its address, without what else a URL can have.
    pub(super) fn address(&self) -> String {
        self.endpoint.to_string()
    }
}

/// What makes a difference to a handshake: the address, who vouches for it, and the proxy.
pub(super) type Dialling = (String, Option<Vec<Vec<u8>>>, Option<String>);

/// Whoever comes to a server with what a Secret holds.
pub(super) struct Holder {
    /// What it comes with is for.
    pub(super) purpose: Purpose,
    /// The managed cluster that it belongs to.
    pub(super) cluster: Option<String>,
    /// Who it is.
    pub(super) name: String,
    /// To whom it comes.
    pub(super) server: String,
    /// Where its kubeconfig is.
    pub(super) place: Place,
    /// Who renews what it comes with, and when.
    pub(super) renewal: Renewal,
}

impl Holder {
    /// What a token tells of itself; none of one that tells nothing.
    pub(super) fn token(&self, token: &str) -> Option<Token> {
        let token = token.trim();
        let token::Content::Jwt { subject, expires, id: _ } = token::read(token) else { return None };
        Some(Token {
            purpose: self.purpose,
            cluster: self.cluster.clone(),
            presenter: self.name.clone(),
            verifier: self.server.clone(),
            place: self.place.clone(),
            subject,
            issued: token::issued(token).map(Time),
            expires: expires.map(Time),
            renewal: self.renewal,
        })
    }

    /// Adds what it comes with: a token, or a client certificate. Files that its kubeconfig names are keys of the same Secret.
    pub(super) fn credentials(&self, secret: &Secret, user: Option<&AuthInfo>, inventory: &mut Inventory) {
        let Some(user) = user else { return };
        let beside = |file: Option<&String>| {
            let name = Path::new(file?).file_name()?.to_str()?;
            value(secret, name).map(<[u8]>::to_vec)
        };
        let beside_token = || String::from_utf8(beside(user.token_file.as_ref())?).ok();
        // What is empty is as good as not there.
        let inline = user.token.as_ref().map(|token| token.expose_secret().to_owned());
        let token = inline.filter(|token| !token.is_empty()).or_else(beside_token);
        inventory.tokens.extend(token.and_then(|token| self.token(&token)));

        let decoded = |data: &str| STANDARD.decode(data.trim()).unwrap_or_default();
        let pem = user.client_certificate_data.as_deref().filter(|data| !data.is_empty()).map(decoded);
        let Some(pem) = pem.or_else(|| beside(user.client_certificate.as_ref())) else { return };
        let key = user.client_key_data.as_ref().map(|data| decoded(data.expose_secret()));
        let key = key.filter(|key| !key.is_empty()).or_else(|| beside(user.client_key.as_ref()));
        let chain = chain(&pem);
        let holds_key = key.zip(chain.first()).and_then(|(key, own)| ocm_net::key::belongs(&key, own));
        inventory.relations.push(Relation {
            purpose: self.purpose,
            cluster: self.cluster.clone(),
            presenter: self.name.clone(),
            verifier: self.server.clone(),
            client: Some(Client::Go),
            usage: Use::Client,
            holds_key,
            renewal: self.renewal,
            ..plain(chain, self.place.clone())
        });
    }
}

/// What a kubeconfig comes to that a Secret holds so that its holder works on another cluster: the authorities in it, what the
/// holder comes with, and the server as the holder dials it, unless somebody did so in the same way.
pub(super) async fn external(secret: &Secret, what: Copied, holder: &Holder, dialled: &mut Vec<Dialling>) -> Inventory {
    let mut inventory = empty();
    let read = text(secret, secrets::KUBECONFIG_KEY).and_then(|text| crate::hub::entries(&text));
    let read = read.ok_or_else(|| Failure::new(Reason::Kubeconfig, "it holds no kubeconfig of one cluster"));
    let (found, entry, user) = match read.and_then(|(entry, user)| Ok((Server::of(&entry, None)?, entry, user))) {
        Ok(found) => found,
        Err(failure) => {
            let what = format!("{}, which {} names", holder.server, holder.place);
            let trouble = Trouble::of(&failure, None);
            inventory.unseen.push(Unseen { what, cluster: holder.cluster.clone(), trouble });
            return inventory;
        }
    };
    holder.credentials(secret, user.as_ref(), &mut inventory);
    let proxy = proxy(&entry).and_then(Result::ok).map(|proxy| proxy.to_string());
    inventory.copies.push(Copy {
        what,
        cluster: holder.cluster.clone(),
        place: holder.place.clone(),
        authorities: der(found.authorities.clone().unwrap_or_default()),
        unreadable: found.unreadable,
        server: Some(redact(entry.server.as_deref().unwrap_or_default())),
        proxy: proxy.clone(),
        vouches: None,
    });
    let dialling = (found.address(), found.authorities.clone(), proxy);
    if dialled.contains(&dialling) {
        return inventory;
    }
    dialled.push(dialling);
    let presenter = format!("{} {}", holder.server, found.address());
    dial(found.dialled(), &mut inventory, |relation| Relation {
        purpose: what.purpose(),
        cluster: holder.cluster.clone(),
        presenter,
        verifier: holder.name.clone(),
        client: Some(Client::Go),
        ..relation
    })
    .await;
    inventory
}

/// The proxy of an entry; none: it names none.
pub(super) fn proxy(entry: &ClusterEntry) -> Option<Result<Proxy, ocm_net::proxy::UnusableProxy>> {
    let url = entry.proxy_url.as_deref().filter(|proxy| !proxy.is_empty())?;
    Some(Proxy::parse(url, Origin::Kubeconfig))
}

/// The authorities of an entry as PEM; none: it names none.
fn pem(entry: &ClusterEntry, folder: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
    if let Some(data) = entry.certificate_authority_data.as_deref().filter(|data| !data.is_empty()) {
        let pem = STANDARD.decode(data.trim());
        return pem.map(Some).map_err(|_| {
            Failure::new(Reason::Kubeconfig, "the certificate-authority-data of the kubeconfig is not base64")
        });
    }
    let Some(file) = entry.certificate_authority.as_deref().filter(|file| !file.is_empty()) else { return Ok(None) };
    let wrong = || Failure::new(Reason::Kubeconfig, format!("cannot read {file}, the authority of the kubeconfig"));
    match folder {
        Some(folder) => std::fs::read(folder.join(file)).map(Some).map_err(|error| wrong().because(error)),
        None => Err(wrong().because("it is a file of another machine")),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn entry(yaml: &str) -> ClusterEntry {
        let text = format!("apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {yaml}\n");
        crate::hub::entries(&text).unwrap().0
    }

    #[test]
    fn who_vouches_is_told_apart_from_nobody_and_everybody() {
        let of = |yaml: &str| Server::of(&entry(yaml), None);
        let plain = of("{server: 'https://hub:6443'}").unwrap();
        assert_eq!((plain.authorities, plain.insecure), (None, false));
        let hello = of("{server: 'https://hub', certificate-authority-data: aGVsbG8=}").unwrap();
        assert_eq!(hello.authorities, Some(vec![]), "nobody, and not the system");
        assert!(of("{server: 'https://hub', insecure-skip-tls-verify: true}").unwrap().insecure);
        for wrong in [
            "{server: 'https://hub', certificate-authority-data: '%'}",
            "{server: 'https://hub', certificate-authority: /etc/passwd}",
            "{server: 'https://hub', proxy-url: 'gopher://p'}",
            "{server: 'http://hub'}",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let named = of("{server: 'https://10.0.0.1:6443', tls-server-name: hub}").unwrap();
        assert_eq!((named.name.as_str(), named.address().as_str()), ("hub", "https://10.0.0.1:6443"));
    }

    fn holder() -> Holder {
        Holder {
            purpose: Purpose::Hosted,
            cluster: Some("c1".to_owned()),
            name: "the hosted agent of c1".to_owned(),
            server: "the API server of c1".to_owned(),
            place: Place::Input("x".to_owned()),
            renewal: Renewal::Unknown,
        }
    }

    /// What a user with this, beside which a Secret holds the rest, comes with.
    fn credentials(user: &str, beside: &[(&str, &str)]) -> Inventory {
        let user: AuthInfo = ocm_core::yaml::from_str(user).unwrap();
        let data = beside.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        let secret = Secret { data: Some(data.collect()), ..Secret::default() };
        let mut inventory = empty();
        holder().credentials(&secret, Some(&user), &mut inventory);
        inventory
    }

    #[test]
    fn a_token_tells_of_its_end_and_goes_nowhere() {
        let token = "e30.eyJpYXQiOjEwLCJleHAiOjEwMDAsInN1YiI6ImEifQ.c2ln";
        for (user, beside) in [
            (format!("{{token: {token}}}"), vec![]),
            ("{tokenFile: /spoke/config/token}".to_owned(), vec![("token", token)]),
        ] {
            let inventory = credentials(&user, &beside);
            let [told] = inventory.tokens.as_slice() else { panic!("{inventory:?}") };
            let second = |time: &Option<Time>| time.as_ref().map(|time| time.0.as_second());
            assert_eq!((second(&told.issued), second(&told.expires)), (Some(10), Some(1000)));
            assert_eq!((told.subject.as_deref(), told.purpose), (Some("a"), Purpose::Hosted));
            assert!(!format!("{inventory:?}").contains("c2ln"));
        }
        // What tells nothing of itself, and a file that the Secret does not hold.
        for user in ["{token: opaque}", "{tokenFile: /etc/token}", "{}"] {
            assert_eq!(credentials(user, &[("kubeconfig", "x")]).tokens, [], "{user}");
        }
    }

    #[test]
    fn a_client_certificate_is_found_in_the_kubeconfig_or_beside_it() {
        let made = rcgen::generate_simple_self_signed(vec!["agent".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let inline = format!(
            "{{client-certificate-data: {}, client-key-data: {}}}",
            STANDARD.encode(&certificate),
            STANDARD.encode(&key)
        );
        let beside = [("tls.crt", certificate.as_str()), ("tls.key", key.as_str())];
        for user in [inline.as_str(), "{client-certificate: tls.crt, client-key: tls.key}"] {
            let inventory = credentials(user, &beside);
            let [relation] = inventory.relations.as_slice() else { panic!("{inventory:?}") };
            assert_eq!(relation.chain, [ByteString(made.cert.der().to_vec())], "{user}");
            assert_eq!((relation.holds_key, relation.usage), (Some(true), Use::Client), "{user}");
        }
        assert_eq!(credentials("{client-certificate: other.crt}", &beside).relations, []);
    }
}
