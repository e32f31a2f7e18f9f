//! Which requests on a hub are those of the agent that a join installed, and which are a stranger's.
//!
//! Everybody who holds a token that registers clusters can ask for a certificate in the name of any cluster. What
//! tells the agent's own request apart is the token that it was given, whose id the hub notes in the request. Over gRPC
//! the hub's server asks, and names only the user whose token it was: there, it is the agent's log that names its request. Once the
//! agent has been let in, its Secret also holds its name and its key.

use jiff::{SignedDuration, Timestamp};
use ocm_api::names::{bootstrap, identity};

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
    pub fn made(&self, credential: &Credential, request: &Request) -> Option<bool> {
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
                let noted = &request.requester.credential_ids;
                (!noted.is_empty()).then(|| noted.contains(id))
            }
            Credential::User(user) => Some(request.requester.user == *user),
            Credential::Grpc { user, strangers } => {
                let by_server = request.facts().requester.is_grpc_server() && request.asked_by() == user;
                let is_known = request.fingerprint().is_some_and(|key| strangers.contains(&key));
                Some(by_server && !is_known)
            }
            Credential::Unknown => None,
        }
    }

    /// The keys but `key` that were approved among these requests and that the agent itself had before, and has lost: it asked
    /// with the token that was made for it alone.
    pub fn former_keys(&self, key: &str, credential: &Credential, requests: &[Request]) -> Vec<String> {
        if !matches!(credential, Credential::Id { exclusive: true, .. }) {
            return Vec::new();
        }
        let is_granted = |request: &&Request| matches!(request.state, State::Approved | State::Issued);
        let own = requests.iter().filter(is_granted).filter(|request| self.made(credential, request) == Some(true));
        own.filter_map(Request::fingerprint).filter(|own| own != key).collect()
    }

    /// The key of the agent among everything that was asked for in the cluster's name. `logged` are the requests that its log
    /// says that it has made, which count over gRPC alone.
    pub fn own_key(&self, credential: &Credential, requests: &[Request], logged: &[LoggedRequest]) -> OwnKey {
        if let Some(key) = &self.key {
            return OwnKey::Known(key.clone());
        }
        let by_grpc = match credential {
            Credential::Unknown => return OwnKey::Unclear("its token does not say who it is of"),
            Credential::User(_) | Credential::Id { exclusive: false, .. } => {
                return OwnKey::Unclear("others may hold the token that it asks with");
            }
            Credential::Id { .. } => false,
            // An agent may log names, and lines in them would look like its own.
            Credential::Grpc { .. } if requests.iter().any(|request| request.name.contains(char::is_control)) => {
                return OwnKey::Unclear("the name of a request has several lines, which the log of its agent may hold");
            }
            Credential::Grpc { .. } => true,
        };
        let asks = |state| matches!(state, State::Pending | State::Approved | State::Issued);
        let (mut own, mut unclear) = (Vec::new(), false);
        let is_logged = |request: &Request| !by_grpc || logged.iter().any(|logged| logged.is(request));
        for request in requests.iter().filter(|request| asks(request.state) && is_logged(request)) {
            match (self.made(credential, request), request.fingerprint()) {
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
        // An agent that started again asks again, with a new key.
        OwnKey::Known(newest.clone())
    }
}

/// A certificate request that an agent says in its log that it has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Its name.
    pub name: String,
    /// When its node got the line.
    pub at: Timestamp,
}

/// How far the clocks of hub and node may differ.
const CLOCKS: SignedDuration = SignedDuration::from_mins(5);

impl LoggedRequest {
    /// The last one of a log whose lines begin with their time: an agent waits for one at a time. Nothing but lines of the agent's
    /// own begin so: values in them are quoted, and such of several lines are indented. Upstream: the event `CSRCreated` of
    /// `ceCSRControl.Create`, as `ContextualLoggingEventRecorder` writes it.
    pub fn last_of(log: &str) -> Option<Self> {
        let read = |line: &str| {
            let (at, line) = line.split_once(' ')?;
            let (head, message) = line.split_once("] ")?;
            let is_recorders = head.starts_with('I') && head.contains(" logging_recorder.go:");
            let rest = message.strip_prefix(r#""INFO: A csr \""#).filter(|_| is_recorders)?;
            let (name, rest) = rest.split_once(r#"\" is created" "#)?;
            let is_whole = !name.contains('"') && rest.contains(r#"reason="CSRCreated""#);
            Some(Self { name: name.to_owned(), at: at.parse().ok()? }).filter(|_| is_whole)
        };
        log.lines().rev().find_map(read)
    }

    /// Whether it is this one. A name is free again when its request is gone, and anybody may ask under it.
    fn is(&self, request: &Request) -> bool {
        let is_of_then = request.created.is_some_and(|created| created.duration_since(self.at).abs() < CLOCKS);
        self.name == request.name && is_of_then
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
    use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
    use ocm_rules::identity::CREDENTIAL_ID;
    use serde_json::json;

    use super::*;
    use crate::csr::Requester;

    /// A request of `agent` for cluster `c1`, made with the token of this id at this second.
    fn asked(name: &str, agent: &str, credential: Option<&str>, second: u32) -> Request {
        let pem = Fixture::agent("c1", agent).pem();
        let mut object: CertificateSigningRequest = serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
                "labels": {"open-cluster-management.io/cluster-name": "c1"}},
            "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "username": identity::BOOTSTRAP_USER},
        }))
        .unwrap();
        object.spec.request.0 = pem.into_bytes();
        object.spec.extra = credential.map(|id| [(CREDENTIAL_ID.to_owned(), vec![id.to_owned()])].into());
        Request::read(&object)
    }

    fn agent() -> Agent {
        Agent { cluster: "c1".to_owned(), name: None, key: None }
    }

    fn token(exclusive: bool) -> Credential {
        Credential::Id { id: "JTI=1".to_owned(), exclusive }
    }

    fn key(request: &Request) -> OwnKey {
        OwnKey::Known(request.fingerprint().unwrap())
    }

    #[test]
    fn a_strangers_request_is_nobodys_key() {
        let stranger = asked("e", "a2", Some("JTI=2"), 1);
        assert_eq!(agent().own_key(&token(true), std::slice::from_ref(&stranger), &[]), OwnKey::NotYet);
        let own = asked("own", "a1", Some("JTI=1"), 0);
        let all = [stranger, own.clone()];
        assert_eq!(agent().own_key(&token(true), &all, &[]), key(&own));
        assert!(matches!(agent().own_key(&token(false), &all, &[]), OwnKey::Unclear(_)));
        // An agent that has a name asks in that name.
        let named = Agent { name: Some("a3".to_owned()), ..agent() };
        assert_eq!(named.own_key(&token(true), &all, &[]), OwnKey::NotYet);
        // With the same token for another cluster: not for this one.
        let other = Agent { cluster: "c2".to_owned(), ..agent() };
        assert_eq!(other.own_key(&token(true), &all, &[]), OwnKey::NotYet);
    }

    #[test]
    fn a_key_that_was_approved_is_the_agents_former_one_only_with_its_own_token() {
        let approved = |name: &str, credential| {
            let mut request = asked(name, name, credential, 1);
            request.state = State::Approved;
            request
        };
        let new = asked("new", "a1", Some("JTI=1"), 2);
        let key = new.fingerprint().unwrap();
        let (own, strange, unnoted) =
            (approved("a2", Some("JTI=1")), approved("a3", Some("JTI=2")), approved("a4", None));
        let former = vec![own.fingerprint().unwrap()];
        let all = [new, own, strange, unnoted, asked("waits", "a5", Some("JTI=1"), 1)];
        assert_eq!(agent().former_keys(&key, &token(true), &all), former);
        assert!(agent().former_keys(&key, &token(false), &all).is_empty(), "others may hold the token");
        assert!(agent().former_keys(&former[0], &token(true), &all[..2]).is_empty());
    }

    #[test]
    fn of_two_keys_the_newer_is_its_own_and_with_a_token_that_others_may_hold_none_is() {
        let (old, new) = (asked("r1", "a1", Some("JTI=1"), 1), asked("r2", "a1", Some("JTI=1"), 2));
        let both = [new.clone(), old];
        assert_eq!(agent().own_key(&token(true), &both, &[]), key(&new));
        for requests in [&both[..], &both[..1], &[]] {
            assert!(matches!(agent().own_key(&token(false), requests, &[]), OwnKey::Unclear(_)));
        }
    }

    #[test]
    fn a_hub_that_notes_no_token_leaves_it_unclear() {
        let silent = [asked("r", "a1", None, 1)];
        assert!(matches!(agent().own_key(&token(true), &silent, &[]), OwnKey::Unclear(_)));
        assert!(matches!(agent().own_key(&Credential::Unknown, &[], &[]), OwnKey::Unclear(_)));
    }

    #[test]
    fn a_bootstrap_token_is_known_by_its_user_and_may_be_anybodys() {
        let mut request = asked("r", "a1", None, 1);
        request.requester.user = "system:bootstrap:abcdef".to_owned();
        let credential = Credential::of("abcdef.0123456789abcdef", true);
        assert_eq!(agent().made(&credential, &request), Some(true));
        assert!(matches!(agent().own_key(&credential, std::slice::from_ref(&request), &[]), OwnKey::Unclear(_)));
        let other = Credential::of("fedcba.0123456789abcdef", true);
        assert_eq!(agent().made(&other, &request), Some(false));
    }

    /// A request that the hub's gRPC server made for this user.
    fn over_grpc(name: &str, agent: &str, user: &str) -> Request {
        let groups =
            ["system:serviceaccounts", "system:serviceaccounts:open-cluster-management-hub", "system:authenticated"];
        Request {
            grpc_user: Some(user.to_owned()),
            signer: "open-cluster-management.io/grpc".to_owned(),
            requester: Requester {
                user: identity::GRPC_SERVER_USER.to_owned(),
                uid: Some("u".to_owned()),
                groups: groups.map(str::to_owned).into(),
                credential_ids: vec!["JTI=of-the-server".to_owned()],
            },
            ..asked(name, agent, None, 1)
        }
    }

    #[test]
    fn over_grpc_the_log_of_the_agent_counts_with_the_user_and_what_asked_before_does_not() {
        let user = identity::BOOTSTRAP_USER;
        let credential = |strangers: &[&Request]| Credential::Grpc {
            user: user.to_owned(),
            strangers: strangers.iter().filter_map(|request| request.fingerprint()).collect(),
        };
        let own = over_grpc("own", "a1", user);
        let at = |name: &str, second: i64| LoggedRequest {
            name: name.to_owned(),
            at: own.created.unwrap() + SignedDuration::from_secs(second),
        };
        let logged = [at("own", 2)];
        let of = |strangers: &[&Request], requests: &[Request], logged: &[LoggedRequest]| {
            agent().own_key(&credential(strangers), requests, logged)
        };
        let (other, early) = (over_grpc("other", "a2", "system:bootstrap:abcdef"), over_grpc("early", "a3", user));
        let all = [own.clone(), other.clone(), early.clone()];
        assert_eq!(of(&[], &all, &logged), key(&own), "its log names it");
        assert_eq!(of(&[], &all, &[]), OwnKey::NotYet, "it has not asked, though others have");
        assert_eq!(of(&[], &all[1..], &logged), OwnKey::NotYet);
        assert_eq!(of(&[], &all, &[at("other", 0)]), OwnKey::NotYet, "with another token");
        let mut lines = early.clone();
        lines.name = "early\nI1127 23:18:25.253781       1 logging_recorder.go:40] ".to_owned();
        assert!(matches!(of(&[], &[own.clone(), lines], &logged), OwnKey::Unclear(_)));
        for another in [-301, 301] {
            assert_eq!(of(&[], &all, &[at("own", another)]), OwnKey::NotYet, "somebody else's under its name");
        }
        assert_eq!(of(&[&own], &all, &logged), OwnKey::NotYet, "it was there before");
        // Whoever only says that the server asks.
        let mut forged = own;
        forged.requester.user = user.to_owned();
        assert_eq!(of(&[], &[forged], &logged), OwnKey::NotYet);
    }

    #[test]
    fn the_request_that_a_log_names_last_is_read_and_no_text_in_it_forges_one() {
        let made = r#"2026-11-27T23:18:25.25Z I1127 23:18:25.253781       1 logging_recorder.go:40] "INFO: A csr \"g1-fw4kv\" is created" component="BootstrapController@cluster:g1" reason="CSRCreated""#;
        let sync = r#"2026-11-27T23:18:25.68Z I1127 23:18:25.682670       1 csr.go:117] "Sync csr" name="g1-other""#;
        let log = [made, sync, &made.replace("fw4kv", "again"), sync].join("\n");
        let last = LoggedRequest::last_of(&log).unwrap();
        assert_eq!((&*last.name, last.at.to_string()), ("g1-again", "2026-11-27T23:18:25.25Z".to_owned()));
        let (time, line) = made.split_once(' ').unwrap();
        let as_value = format!("{time} I1127 23:18:25.253781       1 csr.go:117] \"Sync csr\" name={line:?}");
        let indented =
            format!("{time} E1127 23:18:25.253781       1 x.go:1] \"Failed\" err=<\n{time} \t{line}\n{time}  >");
        let quoted = made.replace("logging_recorder.go:40] ", "x.go:1] \"said\" text=");
        let others = made.replace("CSRCreated", "SecretSave");
        let denied = made.replace(" is created", " is denied");
        for text in [&*as_value, &indented, &quoted, &others, &denied, line, &made[..80], ""] {
            assert_eq!(LoggedRequest::last_of(text), None, "{text}");
        }
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
        assert_eq!(holder.own_key(&Credential::Unknown, &[asked("e", "a2", None, 1)], &[]), known);
    }

    #[test]
    fn an_agent_is_known_by_the_name_that_it_is_started_under_and_not_by_a_former_one() {
        let former = Agent { name: Some("a1".to_owned()), ..agent() };
        let own = asked("own", "u1", Some("JTI=1"), 2);
        // Who knows that name, too, has another token.
        let stranger = asked("stranger", "u1", Some("JTI=2"), 4);
        let all = [own.clone(), asked("left", "a1", Some("JTI=1"), 3), stranger.clone()];
        assert_eq!(former.own_key(&token(true), std::slice::from_ref(&own), &[]), OwnKey::NotYet);
        assert_eq!(former.named("u1").own_key(&token(true), &all, &[]), key(&own));
        assert_eq!(former.named("u1").own_key(&token(true), &all[1..], &[]), OwnKey::NotYet);
        let holder = Agent { key: Some("sha256:k".to_owned()), ..former };
        assert_eq!(
            holder.named("u1").own_key(&token(true), &all, &[]),
            key(&own),
            "its certificate is of the former name"
        );
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
