//! Tokens with which clusters register: made, shown, listed, revoked.

use std::fmt;
use std::time::Duration;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams, Preconditions, TypeMeta};
use kube::core::Request as ApiRequest;
use kube::runtime::watcher;
use kube::{Api, Resource as _};
use ocm_api::Manifest;
use ocm_api::names::{bootstrap, identity, namespaces};
use ocm_api::parts::TokenRequest;
use ocm_core::join_command::JoinCommand;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::order::{self, Collect as _};
use ocm_core::pin::Pin;
use ocm_core::token::{self, BootstrapToken, Kept, SECRET_PREFIX};
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{Right, require};
use ocm_kube::apply::{self, FIELD_MANAGER};
use ocm_net::Endpoint;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

use crate::hub::{self, AddressOptions, FoundAddress};
use crate::observe::tls;
use crate::registry::{PAGE, pages};
use crate::watch::{Changed, changes_in};

/// What kind of token is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A token of the ServiceAccount that OCM made for this: cannot be listed, ends by itself.
    #[default]
    ServiceAccount,
    /// A bootstrap token: can be listed and revoked one by one.
    Bootstrap,
}

/// What kind of token, for how long, for which address.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kind.
    pub kind: Kind,
    /// For how long.
    pub ttl: Duration,
    /// What a bootstrap token is for, in its maker's words.
    pub description: String,
    /// Sets besides `default` that clusters may be registered into with a bootstrap token.
    pub cluster_sets: Vec<String>,
    /// The hub's address.
    pub address: AddressOptions,
}

/// A token and all that belongs to it.
#[derive(Clone, Debug)]
pub struct Minted {
    /// What a cluster joins with.
    pub join_command: JoinCommand,
    /// Until when the token is valid; none: it never expires.
    pub expires: Option<Timestamp>,
    /// The user that the hub takes its holder for.
    pub user: String,
    /// The identifier of a bootstrap token.
    pub id: Option<String>,
}

/// The shortest life that an API server gives to a service account's token.
const SHORTEST: Duration = Duration::from_secs(600);

/// Makes a token, and a line that suffices to join with it.
///
/// # Errors
/// When the hub refuses, or no address can be given to agents. Nothing was made then.
pub async fn create(hub: &Cluster, request: &Request, narrator: &dyn Narrator) -> Result<Minted, Failure> {
    check(hub, request).await?;
    let line = line(hub, &request.address, narrator).await?;
    let (token, expires, user, id) = match request.kind {
        Kind::ServiceAccount => {
            let (token, expires) = service_account_token(hub, request.ttl).await?;
            (token, Some(expires), identity::BOOTSTRAP_USER.to_owned(), None)
        }
        Kind::Bootstrap => {
            let done = |applied: &Applied| {
                if applied.outcome.is_change() {
                    narrator.tell(Event::done(format!("{} {}", applied.manifest.reference(), applied.outcome.word())));
                }
            };
            done(&apply::one(hub, &token::token_binding(), DryRun::No).await?);
            for object in request.cluster_sets.iter().flat_map(|set| token::cluster_set_rights(set)) {
                if grant(hub, &object).await? {
                    narrator.tell(Event::done(format!("{} created", object.reference())));
                }
            }
            let expires = token::to_the_second(Timestamp::now() + request.ttl);
            let token = draw()?;
            let secret = token.manifest(Some(expires), &request.description, &request.cluster_sets);
            done(&apply::one(hub, &secret, DryRun::No).await?);
            (token.reveal(), Some(expires), bootstrap::token_user(&token.id), Some(token.id))
        }
    };
    Ok(Minted { join_command: JoinCommand { token, ..line }, expires, user, id })
}

/// Checks whether [`create`] could make the token, without making one.
///
/// # Errors
/// A usage failure for a life that no token can have; [`Reason::Forbidden`]; [`Reason::NotFound`] on what is no hub.
pub async fn check(hub: &Cluster, request: &Request) -> Result<(), Failure> {
    match request.kind {
        Kind::ServiceAccount => {
            if request.ttl < SHORTEST {
                return Err(Failure::usage("a service account's token lives for ten minutes at least")
                    .hint(Remedy::BootstrapToken));
            }
            let right = Right::new("create", "", "serviceaccounts/token").within(namespaces::OPERATOR);
            require(hub, "make tokens", &[right.on(bootstrap::SERVICE_ACCOUNT)]).await?;
            if service_accounts(hub).get_opt(bootstrap::SERVICE_ACCOUNT).await.map_err(read_account(hub))?.is_none() {
                return Err(no_account(hub));
            }
        }
        Kind::Bootstrap => {
            if request.ttl.is_zero() {
                return Err(Failure::usage("a token that has expired already helps nobody"));
            }
            let rbac = |verb| Right::new(verb, "rbac.authorization.k8s.io", "clusterrolebindings");
            let bound = |verb| rbac(verb).on(bootstrap::TOKEN_BINDING);
            let secrets = |verb| Right::new(verb, "", "secrets").within(bootstrap::TOKEN_NAMESPACE);
            let rights =
                [secrets("get"), secrets("create"), secrets("patch"), rbac("create"), bound("get"), bound("patch")];
            let mut rights = rights.to_vec();
            let role = Right::new("get", "rbac.authorization.k8s.io", "clusterroles").on(bootstrap::CLUSTER_ROLE);
            rights.push(role);
            if !request.cluster_sets.is_empty() {
                rights.push(Right::new("create", "rbac.authorization.k8s.io", "clusterroles"));
            }
            for set in &request.cluster_sets {
                // Nobody can grant what they do not hold.
                rights.push(
                    Right::new("create", "cluster.open-cluster-management.io", "managedclustersets/join").on(set),
                );
            }
            require(hub, "make bootstrap tokens", &rights).await?;
            // What tokens are bound to; without it they would have no rights.
            let roles: Api<ClusterRole> = Api::all(hub.client.clone());
            let role = roles.get_metadata_opt(bootstrap::CLUSTER_ROLE).await;
            if role.map_err(|error| hub.explain("read the role of registering clusters", error))?.is_none() {
                return Err(no_hub(hub, format_args!("ClusterRole {}", bootstrap::CLUSTER_ROLE)));
            }
        }
    }
    Ok(())
}

/// Creates a role or a binding; one that is there must grant exactly the same. Whether it was created.
async fn grant(hub: &Cluster, object: &Manifest) -> Result<bool, Failure> {
    let what = format!("{} {}", object.kind(), object.name());
    let api = apply::api(hub, object);
    let mut new: DynamicObject = serde_json::from_value(object.body().clone())
        .map_err(|error| Failure::other(format!("{what} cannot be written")).because(error))?;
    new.types = Some(TypeMeta { api_version: object.api_version().to_owned(), kind: object.kind().to_owned() });
    let params = PostParams { dry_run: false, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let failure = match api.create(&params, &new).await {
        Ok(_) => return Ok(true),
        Err(error) => hub.explain(format_args!("create {what}"), error),
    };
    if failure.reason != Reason::Conflict {
        return Err(failure);
    }
    let live = api.get(object.name()).await.map_err(|error| hub.explain(format_args!("read {what}"), error))?;
    let same = |member: &str| object.body().get(member) == live.data.get(member);
    if ["rules", "roleRef", "subjects"].into_iter().all(same) {
        return Ok(false);
    }
    Err(Failure::refused(format!("{what} is there already and grants something else, so no token was made"))
        .hint(Remedy::SeeObject { resource: object.plural().to_owned(), name: object.name().to_owned() }))
}

/// A token of the ServiceAccount that registers clusters, and until when it is valid.
///
/// # Errors
/// [`Reason::NotFound`] when the hub has no such ServiceAccount; or the request's failure.
pub async fn service_account_token(hub: &Cluster, ttl: Duration) -> Result<(String, Timestamp), Failure> {
    let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
    let answer = request_token(hub, seconds).await.map_err(|error| {
        let failure = hub.explain("make a token", error);
        if failure.reason == Reason::NotFound { no_account(hub) } else { failure }
    })?;
    let status = answer.status.and_then(|status| Some((status.token, status.expiration_timestamp?.0)));
    status.ok_or_else(|| Failure::other("the hub answered without a token"))
}

/// What asks for a token that lasts for so many seconds.
fn token_request(seconds: i64) -> Value {
    // No audience: the API server's own.
    json!({
        "apiVersion": TokenRequest::api_version(&()), "kind": TokenRequest::kind(&()), "metadata": {},
        "spec": {"audiences": [], "expirationSeconds": seconds},
    })
}

async fn request_token(hub: &Cluster, seconds: i64) -> kube::Result<TokenRequest> {
    let body = token_request(seconds);
    let (account, params) = (bootstrap::SERVICE_ACCOUNT, PostParams::default());
    let request = ApiRequest::new(service_accounts(hub).resource_url());
    let request = request.create_subresource("token", account, &params, body.to_string().into_bytes());
    hub.client.request(request.map_err(kube::Error::BuildRequest)?).await
}

fn no_account(hub: &Cluster) -> Failure {
    no_hub(hub, format_args!("ServiceAccount {}/{}", namespaces::OPERATOR, bootstrap::SERVICE_ACCOUNT))
}

fn no_hub(hub: &Cluster, lacking: fmt::Arguments<'_>) -> Failure {
    Failure::new(Reason::NotFound, format!("{} has no {lacking}, so it is no hub yet", hub.label()))
        .hint(Remedy::InstallHub)
}

fn service_accounts(hub: &Cluster) -> Api<ServiceAccount> {
    Api::namespaced(hub.client.clone(), namespaces::OPERATOR)
}

fn secrets(hub: &Cluster) -> Api<Secret> {
    Api::namespaced(hub.client.clone(), bootstrap::TOKEN_NAMESPACE)
}

fn draw() -> Result<BootstrapToken, Failure> {
    let random = SystemRandom::new();
    let mut bytes = [0u8; 256];
    random.fill(&mut bytes).map_err(|_| Failure::other("the system gives no random numbers"))?;
    let mut rest = bytes.iter().copied();
    let mut dry = false;
    let token = BootstrapToken::draw(|| {
        rest.next().unwrap_or_else(|| {
            dry = true;
            0
        })
    });
    // A token needs 22 bytes of which one in 64 is thrown away: 256 run dry only if the source is broken.
    if dry { Err(Failure::other("the system gives no random numbers")) } else { Ok(token) }
}

/// Everything of a join_command but its token. The authority's certificate goes along only where a joiner who knows its key
/// could not learn it from the hub.
async fn line(hub: &Cluster, options: &AddressOptions, narrator: &dyn Narrator) -> Result<JoinCommand, Failure> {
    let FoundAddress { address: HubAddress { server, ca, .. }, is_checked } =
        hub::address(hub, options, narrator).await?;
    let endpoint = Endpoint::parse(&server, None)?;
    let pins: Vec<Pin> = ca.iter().filter_map(|certificate| Pin::of(certificate)).collect();
    let learned = pins.is_empty()
        || (is_checked
            && ocm_net::learn(&endpoint, &pins, hub::CLUSTER_INFO_PATH, hub::published, tls::HANDSHAKE).await.is_ok());
    Ok(JoinCommand { token: String::new(), server, pins, ca: if learned { Vec::new() } else { ca } })
}

/// Every bootstrap token with which clusters can register, or that was made for it, by identifier.
///
/// # Errors
/// When the hub cannot be read.
pub async fn list(hub: &Cluster) -> Result<Vec<Kept>, Failure> {
    let selected = ListParams::default().fields(&of_tokens());
    let now = Timestamp::now();
    let read = |secret: Secret| Kept::read(&secret, now);
    let mut kept = pages(hub, &secrets(hub), selected, || PAGE, "list bootstrap tokens", read).await?;
    order::sort_by(&mut kept, |a, b| a.id.cmp(&b.id));
    Ok(kept)
}

/// The same as they change, beginning with all that there are.
pub fn watch(hub: &Cluster) -> impl Stream<Item = Result<Changed<Kept>, Failure>> {
    let config = watcher::Config::default().fields(&of_tokens());
    let now = |secret: Secret| Kept::read(&secret, Timestamp::now());
    let gone = |secret: &Secret| Kept::read(secret, Timestamp::now());
    changes_in(hub, secrets(hub), config, now, gone).filter_map(|change| {
        std::future::ready(match change {
            Ok(Changed::Now(kept)) => kept.map(|kept| Ok(Changed::Now(kept))),
            Ok(Changed::Gone(kept)) => kept.map(|kept| Ok(Changed::Gone(kept))),
            Ok(Changed::Listed) => Some(Ok(Changed::Listed)),
            Ok(Changed::Lost(failure)) => Some(Ok(Changed::Lost(failure))),
            Ok(Changed::Back) => Some(Ok(Changed::Back)),
            Err(failure) => Some(Err(failure)),
        })
    })
}

/// A selector of the Secrets that bootstrap tokens are.
fn of_tokens() -> String {
    format!("type={}", token::SECRET_TYPE)
}

/// The line of an existing bootstrap token.
///
/// # Errors
/// [`Reason::NotFound`]; [`Reason::Refused`] for a token that registers no clusters.
pub async fn show(
    hub: &Cluster,
    id: &str,
    address: &AddressOptions,
    narrator: &dyn Narrator,
) -> Result<Minted, Failure> {
    let id = identifier(id)?;
    let found = find(hub, id).await?;
    let Some((secret, kept)) = found else {
        return Err(Failure::new(Reason::NotFound, format!("the hub has no bootstrap token {id:?} for clusters"))
            .hint(Remedy::ListTokens));
    };
    if let Some(why) = &kept.unusable {
        return Err(Failure::refused(format!("no cluster can register with bootstrap token {id:?}"))
            .because(why)
            .hint(Remedy::NewBootstrapToken));
    }
    let token =
        token::reveal(&secret).ok_or_else(|| Failure::other(format!("bootstrap token {id:?} is incomplete")))?;
    let join_command = JoinCommand { token, ..line(hub, address, narrator).await? };
    Ok(Minted { join_command, expires: kept.expires, user: bootstrap::token_user(id), id: Some(id.to_owned()) })
}

/// The identifier that was meant: people paste whole tokens and names of Secrets.
fn identifier(word: &str) -> Result<&str, Failure> {
    let word = word.strip_prefix(SECRET_PREFIX).unwrap_or(word);
    let id = word.split('.').next().unwrap_or_default();
    if token::is_id(id) {
        return Ok(id);
    }
    // The word itself may be a secret, so it is not repeated.
    Err(Failure::usage("that is no identifier of a bootstrap token: those are 6 lower-case letters and digits")
        .hint(Remedy::ListTokens))
}

/// The identifiers that were meant, each once. All of them are checked before any token is revoked.
///
/// # Errors
/// A usage failure for what can be no identifier.
pub fn identifiers(words: &[String]) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for word in words {
        let id = identifier(word)?;
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    Ok(ids)
}

async fn find(hub: &Cluster, id: &str) -> Result<Option<(Secret, Kept)>, Failure> {
    let name = format!("{SECRET_PREFIX}{id}");
    let secret = secrets(hub).get_opt(&name).await;
    let secret = secret.map_err(|error| hub.explain(format_args!("read bootstrap token {id:?}"), error))?;
    Ok(secret.and_then(|secret| Kept::read(&secret, Timestamp::now()).map(|kept| (secret, kept))))
}

/// What became of a token that was to be revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// It is gone, or would be.
    Now,
    /// It was not there.
    Absent,
}

/// Deletes a bootstrap token. Clusters that have joined with it stay joined.
///
/// # Errors
/// When the hub refuses.
pub async fn revoke(hub: &Cluster, id: &str, dry_run: DryRun) -> Result<Revoked, Failure> {
    let id = identifier(id)?;
    let Some((secret, _)) = find(hub, id).await? else { return Ok(Revoked::Absent) };
    if dry_run == DryRun::Client {
        return Ok(Revoked::Now);
    }
    let params = DeleteParams {
        dry_run: dry_run == DryRun::Server,
        preconditions: Some(Preconditions { uid: secret.metadata.uid.clone(), resource_version: None }),
        ..DeleteParams::default()
    };
    match secrets(hub).delete(&format!("{SECRET_PREFIX}{id}"), &params).await {
        Ok(_) => Ok(Revoked::Now),
        Err(error) => {
            let failure = hub.explain(format_args!("revoke bootstrap token {id:?}"), error);
            if failure.reason == Reason::NotFound { Ok(Revoked::Absent) } else { Err(failure) }
        }
    }
}

/// Makes the ServiceAccount anew, which ends every token of the old one. Clusters that have joined stay joined.
///
/// # Errors
/// When the hub refuses. If it does so between the two steps, the same call makes the account.
pub async fn revoke_service_account(hub: &Cluster, dry_run: DryRun, narrator: &dyn Narrator) -> Result<(), Failure> {
    let accounts = service_accounts(hub);
    let rights = ["get", "delete", "create"].map(|verb| {
        let right = Right::new(verb, "", "serviceaccounts").within(namespaces::OPERATOR);
        if verb == "create" { right } else { right.on(bootstrap::SERVICE_ACCOUNT) }
    });
    require(hub, "replace the ServiceAccount", &rights).await?;
    let old = accounts.get_opt(bootstrap::SERVICE_ACCOUNT).await.map_err(read_account(hub))?;
    let mut new = ServiceAccount::default();
    if let Some(old) = &old {
        let keep = |key: &String| key != "kubectl.kubernetes.io/last-applied-configuration";
        new.metadata.labels = old.metadata.labels.clone();
        new.metadata.annotations =
            old.metadata.annotations.clone().map(|all| all.into_iter().filter(|(key, _)| keep(key)).collect_map());
        new.image_pull_secrets = old.image_pull_secrets.clone();
        new.automount_service_account_token = old.automount_service_account_token;
    }
    new.metadata.name = Some(bootstrap::SERVICE_ACCOUNT.to_owned());
    if dry_run == DryRun::Client {
        return Ok(());
    }
    if let Some(old) = old {
        let params = DeleteParams {
            dry_run: dry_run == DryRun::Server,
            preconditions: Some(Preconditions { uid: old.metadata.uid, resource_version: None }),
            ..DeleteParams::default()
        };
        if let Err(error) = accounts.delete(bootstrap::SERVICE_ACCOUNT, &params).await {
            let failure = hub.explain("delete the ServiceAccount", error);
            if failure.reason != Reason::NotFound {
                return Err(failure);
            }
        }
        if dry_run == DryRun::Server {
            return Ok(());
        }
        narrator.tell(Event::done("deleted the ServiceAccount"));
    }
    let params = PostParams { dry_run: dry_run == DryRun::Server, field_manager: Some(FIELD_MANAGER.to_owned()) };
    match accounts.create(&params, &new).await {
        Ok(_) => {
            if dry_run == DryRun::No {
                narrator.tell(Event::done("made the ServiceAccount again"));
            }
            Ok(())
        }
        Err(error) => {
            let failure = hub.explain("make the ServiceAccount again", error);
            // Somebody else, perhaps the hub's operator, was faster: it is new all the same.
            if failure.reason == Reason::Conflict { Ok(()) } else { Err(failure) }
        }
    }
}

fn read_account(hub: &Cluster) -> impl Fn(kube::Error) -> Failure + '_ {
    |error| hub.explain("read the ServiceAccount of registering clusters", error)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::authentication::v1::{TokenRequest as WholeRequest, TokenRequestSpec};

    use super::*;

    #[test]
    fn a_token_is_asked_for_as_the_api_has_it() {
        let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
        assert_eq!(token_request(3600), json!(WholeRequest { spec, ..WholeRequest::default() }));
    }

    #[test]
    fn identifiers_are_found_in_what_people_paste() {
        for word in ["abc123", "abc123.0123456789abcdef", "bootstrap-token-abc123"] {
            assert_eq!(identifier(word).unwrap(), "abc123", "{word}");
        }
        let failure = identifier("secret-word").unwrap_err();
        assert!(!failure.to_string().contains("secret-word"));
    }

    #[test]
    fn one_word_that_is_no_identifier_spoils_all_and_each_token_is_meant_once() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let meant = identifiers(&words(&["abc123", "def456", "bootstrap-token-abc123"])).unwrap();
        assert_eq!(meant, ["abc123", "def456"]);
        let failure = identifiers(&words(&["abc123", "typo"])).unwrap_err();
        assert_eq!(failure.reason, Reason::Usage);
    }

    #[test]
    fn drawn_tokens_differ() {
        assert_ne!(draw().unwrap().reveal(), draw().unwrap().reveal());
    }
}
