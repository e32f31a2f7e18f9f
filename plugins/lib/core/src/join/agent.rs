//! Which requests on a hub are those of the agent that a join installed, and which are a stranger's.
//!
//! Everybody who holds a token that registers clusters can ask for a certificate in the name of any cluster. What
//! tells the agent's own request apart is the token that it was given, whose id the hub notes in the request. Over gRPC
//! the hub's server asks, and names only the user whose token it was: there, requests that were waiting before are strangers',
//! and of several keys none is the agent's. Once the agent has been let in, its Secret also holds its name and its key.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::names::{bootstrap, identity};
use ocm_rules::identity::CREDENTIAL_ID;

use crate::csr::{Request, State};
use crate::token::{self, Content};

/// The agent that runs on a cluster, as far as its requests show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Name of its cluster.
    pub cluster: String,
    /// Its own name, which it draws when it first starts and writes down with its first certificate.
    pub name: Option<String>,
    /// The key of the certificate that it holds, if it holds one: `sha256:` and 64 hex digits.
    pub key: Option<String>,
}

/// The token that an agent registers with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A service account's, by the id that the API server notes.
    Id {
        /// `JTI=` and the token's id.
        id: String,
        /// Whether it was made for this agent alone.
        exclusive: bool,
    },
    /// A bootstrap token, by the user that it stands for.
    User(String),
    /// Any token, used over gRPC.
    Grpc {
        /// The user whose token it is.
        user: String,
        /// Keys that asked before the agent did.
        strangers: Vec<String>,
    },
    /// Of some other kind.
    Unknown,
}

impl Credential {
    /// What can be read off a token. `exclusive`: it was made for one agent alone.
    pub fn of(token: &str, exclusive: bool) -> Self {
        match token::read(token) {
            Content::Jwt { id: Some(id), .. } => Self::Id { id: format!("JTI={id}"), exclusive },
            Content::Bootstrap(id) => Self::User(bootstrap::token_user(&id)),
            _ => Self::Unknown,
        }
    }

    /// What can be read off a token that is used over gRPC, where these keys asked before the agent did.
    pub fn over_grpc(token: &str, strangers: Vec<String>) -> Self {
        match token::read(token) {
            Content::Jwt { subject: Some(user), .. } => Self::Grpc { user, strangers },
            Content::Bootstrap(id) => Self::Grpc { user: bootstrap::token_user(&id), strangers },
            _ => Self::Unknown,
        }
    }
}

/// What the requests of a cluster's name come to for its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnKey {
    /// The agent has not asked yet.
    NotYet,
    /// This is the agent's key.
    Known(String),
    /// Which key is the agent's cannot be told.
    Unclear(&'static str),
}

impl Agent {
    /// The same agent, started under this name: it asks under no other, and takes a certificate of another for nobody's.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        match &self.name {
            Some(own) if own != name => Self { name: Some(name.to_owned()), key: None, ..self.clone() },
            _ => self.clone(),
        }
    }

    /// Whether a request is this agent's; none where that cannot be told.
    pub fn made(&self, credential: &Credential, request: &Request, object: &CertificateSigningRequest) -> Option<bool> {
        if self.key.is_some() && request.fingerprint() == self.key {
            return Some(true);
        }
        let named = match &self.name {
            Some(name) => {
                let user = identity::agent_user(&self.cluster, name);
                request.content.as_ref().is_ok_and(|content| content.common_names == [user])
            }
            None => request.names_agent_of(&self.cluster),
        };
        if !named || request.is_addons() {
            return Some(false);
        }
        match credential {
            Credential::Id { id, .. } => {
                let noted = object.spec.extra.as_ref().and_then(|extra| extra.get(CREDENTIAL_ID));
                noted.map(|noted| noted.contains(id))
            }
            Credential::User(user) => Some(object.spec.username.as_deref() == Some(user)),
            Credential::Grpc { user, strangers } => {
                let by_server = request.facts().requester.is_grpc_server() && request.asked_by() == user;
                let is_known = request.fingerprint().is_some_and(|key| strangers.contains(&key));
                Some(by_server && !is_known)
            }
            Credential::Unknown => None,
        }
    }

    /// The key of the agent among everything that was asked for in the cluster's name.
    pub fn own_key(&self, credential: &Credential, requests: &[(Request, CertificateSigningRequest)]) -> OwnKey {
        if let Some(key) = &self.key {
            return OwnKey::Known(key.clone());
        }
        if *credential == Credential::Unknown {
            return OwnKey::Unclear("its token does not say who it is of");
        }
        let asks = |state| matches!(state, State::Pending | State::Approved | State::Issued);
        let (mut own, mut unclear) = (Vec::new(), false);
        for (request, object) in requests.iter().filter(|(request, _)| asks(request.state)) {
            match (self.made(credential, request, object), request.fingerprint()) {
                (Some(true), Some(key)) => own.push((request.created, key)),
                (None, _) => unclear = true,
                _ => {}
            }
        }
        let Some((_, newest)) = own.iter().max_by_key(|(created, _)| *created) else {
            return match unclear {
                true => OwnKey::Unclear("the hub does not note which token a request was made with"),
                false => OwnKey::NotYet,
            };
        };
        // An agent that started again asks again, with a new key; but others may hold a token that is not its alone.
        let exclusive = matches!(credential, Credential::Id { exclusive: true, .. });
        if !exclusive && own.iter().any(|(_, key)| key != newest) {
            return OwnKey::Unclear("several keys ask in its name with the same token");
        }
        OwnKey::Known(newest.clone())
    }
}

/// Requests that wait, each with its key, for people: `r1 (sha256:…)`.
pub fn describe<'a>(requests: impl IntoIterator<Item = &'a Request>) -> String {
    let one = |request: &Request| {
        let key = request.fingerprint().unwrap_or_else(|| "no key that can be read".to_owned());
        format!("{} ({key})", request.name)
    };
    requests.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use csr_fixtures::Fixture;
    use serde_json::json;

    use super::*;

    type Pair = (Request, CertificateSigningRequest);

    /// A request of `agent` for cluster `c1`, made with the token of this id at this second.
    fn asked(name: &str, agent: &str, credential: Option<&str>, second: u32) -> Pair {
        let pem = Fixture::agent("c1", agent).pem();
        let mut object: CertificateSigningRequest = serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
                "labels": {"open-cluster-management.io/cluster-name": "c1"}},
            "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "username": identity::BOOTSTRAP_USER},
        }))
        .unwrap();
        object.spec.request.0 = pem.into_bytes();
        object.spec.extra = credential.map(|id| [(CREDENTIAL_ID.to_owned(), vec![id.to_owned()])].into());
        (Request::read(&object), object)
    }

    fn agent() -> Agent {
        Agent { cluster: "c1".to_owned(), name: None, key: None }
    }

    fn token(exclusive: bool) -> Credential {
        Credential::Id { id: "JTI=1".to_owned(), exclusive }
    }

    fn key(pair: &Pair) -> OwnKey {
        OwnKey::Known(pair.0.fingerprint().unwrap())
    }

    #[test]
    fn a_strangers_request_is_nobodys_key() {
        let stranger = asked("e", "a2", Some("JTI=2"), 1);
        assert_eq!(agent().own_key(&token(true), std::slice::from_ref(&stranger)), OwnKey::NotYet);
        let own = asked("own", "a1", Some("JTI=1"), 0);
        let all = [stranger, own.clone()];
        assert_eq!(agent().own_key(&token(true), &all), key(&own));
        assert_eq!(agent().own_key(&token(false), &all), key(&own));
        // An agent that has a name asks in that name.
        let named = Agent { name: Some("a3".to_owned()), ..agent() };
        assert_eq!(named.own_key(&token(true), &all), OwnKey::NotYet);
        // With the same token for another cluster: not for this one.
        let other = Agent { cluster: "c2".to_owned(), ..agent() };
        assert_eq!(other.own_key(&token(true), &all), OwnKey::NotYet);
    }

    #[test]
    fn two_keys_with_a_token_that_others_may_hold_are_unclear() {
        let (old, new) = (asked("r1", "a1", Some("JTI=1"), 1), asked("r2", "a1", Some("JTI=1"), 2));
        let both = [new.clone(), old];
        assert_eq!(agent().own_key(&token(true), &both), key(&new));
        assert!(matches!(agent().own_key(&token(false), &both), OwnKey::Unclear(_)));
    }

    #[test]
    fn a_hub_that_notes_no_token_leaves_it_unclear() {
        let silent = [asked("r", "a1", None, 1)];
        assert!(matches!(agent().own_key(&token(true), &silent), OwnKey::Unclear(_)));
        assert!(matches!(agent().own_key(&Credential::Unknown, &[]), OwnKey::Unclear(_)));
    }

    #[test]
    fn a_bootstrap_token_is_known_by_its_user() {
        let (request, mut object) = asked("r", "a1", None, 1);
        object.spec.username = Some("system:bootstrap:abcdef".to_owned());
        let pair = (request, object);
        let credential = Credential::of("abcdef.0123456789abcdef", true);
        assert_eq!(agent().own_key(&credential, std::slice::from_ref(&pair)), key(&pair));
        let other = Credential::of("fedcba.0123456789abcdef", true);
        assert_eq!(agent().own_key(&other, &[pair]), OwnKey::NotYet);
    }

    /// A request that the hub's gRPC server made for this user.
    fn over_grpc(name: &str, agent: &str, user: &str) -> Pair {
        let (_, mut object) = asked(name, agent, Some("JTI=of-the-server"), 1);
        object.metadata.annotations =
            Some([("open-cluster-management.io/csr-user".to_owned(), user.to_owned())].into());
        object.spec.signer_name = "open-cluster-management.io/grpc".to_owned();
        object.spec.username = Some(identity::GRPC_SERVER_USER.to_owned());
        object.spec.uid = Some("u".to_owned());
        object.spec.groups = Some(
            ["system:serviceaccounts", "system:serviceaccounts:open-cluster-management-hub", "system:authenticated"]
                .map(str::to_owned)
                .into(),
        );
        (Request::read(&object), object)
    }

    #[test]
    fn over_grpc_the_user_counts_and_what_asked_before_does_not() {
        let user = identity::BOOTSTRAP_USER;
        let credential = |strangers: &[&Pair]| Credential::Grpc {
            user: user.to_owned(),
            strangers: strangers.iter().filter_map(|(request, _)| request.fingerprint()).collect(),
        };
        let own = over_grpc("own", "a1", user);
        assert_eq!(agent().own_key(&credential(&[]), std::slice::from_ref(&own)), key(&own));
        let other = over_grpc("other", "a2", "system:bootstrap:abcdef");
        assert_eq!(agent().own_key(&credential(&[]), &[own.clone(), other.clone()]), key(&own));
        assert_eq!(agent().own_key(&credential(&[]), &[other]), OwnKey::NotYet);
        let early = over_grpc("early", "a3", user);
        let both = [early.clone(), own.clone()];
        assert_eq!(agent().own_key(&credential(&[&early]), &both), key(&own));
        assert!(matches!(agent().own_key(&credential(&[]), &both), OwnKey::Unclear(_)));
        // Whoever only says that the server asks.
        let (_, mut forged) = own;
        forged.spec.username = Some(user.to_owned());
        let forged = (Request::read(&forged), forged);
        assert_eq!(agent().own_key(&credential(&[]), &[forged]), OwnKey::NotYet);
    }

    #[test]
    fn the_user_of_a_token_is_read() {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let jwt = format!("e30.{}.c", URL_SAFE_NO_PAD.encode(r#"{"sub":"system:serviceaccount:a:b"}"#));
        let of = |token: &str| match Credential::over_grpc(token, Vec::new()) {
            Credential::Grpc { user, .. } => user,
            other => panic!("{other:?}"),
        };
        assert_eq!(of(&jwt), "system:serviceaccount:a:b");
        assert_eq!(of("abcdef.0123456789abcdef"), "system:bootstrap:abcdef");
        assert_eq!(Credential::over_grpc("opaque", Vec::new()), Credential::Unknown);
    }

    #[test]
    fn an_agent_with_a_certificate_is_known_by_its_key() {
        let holder = Agent { key: Some("sha256:k".to_owned()), ..agent() };
        let known = OwnKey::Known("sha256:k".to_owned());
        assert_eq!(holder.own_key(&Credential::Unknown, &[asked("e", "a2", None, 1)]), known);
    }

    #[test]
    fn an_agent_is_known_by_the_name_that_it_is_started_under_and_not_by_a_former_one() {
        let former = Agent { name: Some("a1".to_owned()), ..agent() };
        let own = asked("own", "u1", Some("JTI=1"), 2);
        // Who knows that name, too, has another token.
        let stranger = asked("stranger", "u1", Some("JTI=2"), 4);
        let all = [own.clone(), asked("left", "a1", Some("JTI=1"), 3), stranger.clone()];
        assert_eq!(former.own_key(&token(true), std::slice::from_ref(&own)), OwnKey::NotYet);
        assert_eq!(former.named("u1").own_key(&token(true), &all), key(&own));
        assert_eq!(former.named("u1").own_key(&token(true), &all[1..]), OwnKey::NotYet);
        let holder = Agent { key: Some("sha256:k".to_owned()), ..former };
        assert_eq!(holder.named("u1").own_key(&token(true), &all), key(&own), "its certificate is of the former name");
        assert_eq!(holder.named("a1"), holder);
        assert_eq!(agent().named("u1"), agent(), "it has written nothing down yet");
    }

    #[test]
    fn the_id_of_a_token_is_read() {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let jwt = format!("e30.{}.c", URL_SAFE_NO_PAD.encode(r#"{"jti":"1"}"#));
        assert_eq!(Credential::of(&jwt, true), token(true));
        assert_eq!(Credential::of("opaque", true), Credential::Unknown);
    }
}
