//! kubectl's connection flags, once for the cluster of the command and once, with `hub-` in front, for the hub of a
//! command that touches two clusters.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use ocm_core::{Failure, Role};
use ocm_net::Vantage;
use secrecy::{ExposeSecret as _, SecretString};

/// How long one request may take unless the user says otherwise.
const REQUEST_TIMEOUT: &str = "60s";

/// kubectl's connection flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct ClientArgs {
    /// Path of the kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use (default: its current context)
    #[arg(long, value_name = "NAME", global = true)]
    pub context: Option<String>,
    /// Cluster of the kubeconfig to use instead of the context's
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub cluster: Option<String>,
    /// User of the kubeconfig to use instead of the context's
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub user: Option<String>,
    /// Address and port of the API server
    #[arg(short = 's', long, value_name = "URL", global = true, hide_short_help = true)]
    pub server: Option<String>,
    /// Name to check the server's certificate against, if not the host of its address
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub tls_server_name: Option<String>,
    /// File of CA certificates to verify the server with
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub certificate_authority: Option<PathBuf>,
    /// Do not verify the server's certificate: vulnerable to man-in-the-middle attacks
    #[arg(long, global = true, hide_short_help = true)]
    pub insecure_skip_tls_verify: bool,
    /// File of the client certificate
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub client_certificate: Option<PathBuf>,
    /// File of the client certificate's key
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub client_key: Option<PathBuf>,
    /// Bearer token for the API server
    #[arg(long, value_name = "TOKEN", global = true, hide_short_help = true)]
    pub token: Option<SecretString>,
    /// User name to act as
    #[arg(long = "as", value_name = "USER", global = true, hide_short_help = true)]
    pub act_as: Option<String>,
    /// Group to act as (repeatable)
    #[arg(long = "as-group", value_name = "GROUP", global = true, hide_short_help = true)]
    pub as_group: Vec<String>,
    /// UID to act as
    #[arg(long = "as-uid", value_name = "UID", global = true, hide_short_help = true)]
    pub as_uid: Option<String>,
    /// Extra attribute to act with, as KEY=VALUE (repeatable)
    #[arg(long = "as-user-extra", value_name = "KEY=VALUE", global = true, hide_short_help = true)]
    pub as_user_extra: Vec<String>,
    /// How long one request may take, e.g. 30s, 2m; 0 means no limit
    #[arg(long, value_name = "DURATION", default_value = REQUEST_TIMEOUT, global = true, hide_short_help = true)]
    pub request_timeout: String,
}

/// kubectl's connection flags for the hub, for commands whose plain flags speak of another cluster.
#[derive(Args, Clone, Debug, Default)]
#[command(
    next_help_heading = "Connection to the hub",
    group = ArgGroup::new("which_hub").args(["hub_kubeconfig", "hub_context"]).multiple(true)
)]
pub struct HubArgs {
    /// Path of the kubeconfig file that holds the hub (default: the one of --kubeconfig)
    #[arg(long, value_name = "FILE")]
    pub hub_kubeconfig: Option<PathBuf>,
    /// Context of the hub
    #[arg(long, value_name = "NAME")]
    pub hub_context: Option<String>,
    /// Name to check the hub's certificate against, if not the host of its address
    #[arg(long, requires = "which_hub", value_name = "NAME", hide_short_help = true)]
    pub hub_tls_server_name: Option<String>,
    /// User name to act as on the hub
    #[arg(long = "hub-as", requires = "which_hub", value_name = "USER", hide_short_help = true)]
    pub hub_as: Option<String>,
    /// Group to act as on the hub (repeatable)
    #[arg(long = "hub-as-group", requires = "hub_as", value_name = "GROUP", hide_short_help = true)]
    pub hub_as_group: Vec<String>,
}

/// The hubs besides the first one that an agent turns to, one after the other.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Further hubs")]
pub struct FallbackHubArgs {
    /// Context of a hub that the agent turns to when the one before it does not answer (repeatable, in order)
    #[arg(long, value_name = "NAME")]
    pub fallback_hub_context: Vec<String>,
    /// Path of the kubeconfig file that holds these hubs (default: the one of the hub)
    #[arg(long, value_name = "FILE", requires = "fallback_hub_context")]
    pub fallback_hub_kubeconfig: Option<PathBuf>,
}

/// kubectl's connection flags for the managed cluster, for commands whose plain flags speak of the hub, or of the cluster
/// where its agents run.
#[derive(Args, Clone, Debug, Default)]
#[command(
    next_help_heading = "Connection to the managed cluster",
    group = ArgGroup::new("which_managed").args(["managed_kubeconfig", "managed_context"]).multiple(true)
)]
pub struct ManagedArgs {
    /// Path of the kubeconfig file that holds the managed cluster (default: the one of --kubeconfig)
    #[arg(long, value_name = "FILE", alias = "managed-cluster-kubeconfig")]
    pub managed_kubeconfig: Option<PathBuf>,
    /// Context of the managed cluster
    #[arg(long, value_name = "NAME")]
    pub managed_context: Option<String>,
    /// User name to act as on the managed cluster
    #[arg(long = "managed-as", requires = "which_managed", value_name = "USER", hide_short_help = true)]
    pub managed_as: Option<String>,
    /// Group to act as on the managed cluster (repeatable)
    #[arg(long = "managed-as-group", requires = "managed_as", value_name = "GROUP", hide_short_help = true)]
    pub managed_as_group: Vec<String>,
}

/// What all flag sets come down to.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// `--kubeconfig`; none: `$KUBECONFIG`, then `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`; none: the current one.
    pub context: Option<String>,
    /// `--cluster`.
    pub cluster: Option<String>,
    /// `--user`.
    pub user: Option<String>,
    /// `--server`.
    pub server: Option<String>,
    /// `--tls-server-name`.
    pub tls_server_name: Option<String>,
    /// `--certificate-authority`.
    pub certificate_authority: Option<PathBuf>,
    /// `--insecure-skip-tls-verify`.
    pub insecure_skip_tls_verify: bool,
    /// Certificates (DER) that verify a server of which the kubeconfig says that nobody does; empty: nobody does.
    pub authorities: Vec<Vec<u8>>,
    /// `--client-certificate`.
    pub client_certificate: Option<PathBuf>,
    /// `--client-key`.
    pub client_key: Option<PathBuf>,
    /// `--token`.
    pub token: Option<SecretString>,
    /// `--as`.
    pub act_as: Option<String>,
    /// `--as-group`.
    pub as_groups: Vec<String>,
    /// `--as-uid`.
    pub as_uid: Option<String>,
    /// `--as-user-extra`, keys with their values.
    pub as_user_extra: Vec<(String, String)>,
    /// Whether each request is sent once, also where the server says that it is overloaded: who writes and has to know
    /// what became of it wants that.
    pub sends_once: bool,
    /// `--request-timeout`; none: for ever.
    pub request_timeout: Option<Duration>,
    /// Which cluster it is to the command, so that what would help is said of the right one.
    pub role: Role,
    /// From where it is dialled.
    pub from: Vantage,
}

impl ClientArgs {
    /// Whether a flag was given that says which server is meant, or who asks it. Groups and how long a request may take say
    /// neither.
    pub fn is_given(&self) -> bool {
        let Self {
            kubeconfig,
            context,
            cluster,
            user,
            server,
            tls_server_name,
            certificate_authority,
            insecure_skip_tls_verify,
            client_certificate,
            client_key,
            token,
            act_as,
            as_group: _,
            as_uid,
            as_user_extra,
            request_timeout: _,
        } = self;
        let words = [context, cluster, user, server, tls_server_name, act_as, as_uid];
        let files = [kubeconfig, certificate_authority, client_certificate, client_key];
        words.iter().any(|word| word.is_some())
            || files.iter().any(|file| file.is_some())
            || token.is_some()
            || *insecure_skip_tls_verify
            || !as_user_extra.is_empty()
    }

    /// The contexts of several clusters, each once, for a command whose flag `--contexts` names them in the place of one cluster.
    ///
    /// # Errors
    /// A usage failure for an empty name, or where a flag names one cluster.
    pub fn several(&self, contexts: &[String]) -> Result<Vec<String>, Failure> {
        if contexts.is_empty() {
            return Ok(Vec::new());
        }
        if self.context.is_some() || self.cluster.is_some() || self.server.is_some() {
            return Err(Failure::usage("--contexts names the clusters: leave out --context, --cluster and --server"));
        }
        let mut names: Vec<String> = Vec::new();
        for name in contexts.iter().map(|name| name.trim()) {
            if name.is_empty() {
                return Err(Failure::usage("--contexts has an empty name"));
            }
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The flags that were given, to be typed for another command that shall reach the same server as the same user; none
    /// where a bearer token is among them, which stands in no other command line.
    pub fn words(&self) -> Option<Vec<OsString>> {
        let Self {
            kubeconfig,
            context,
            cluster,
            user,
            server,
            tls_server_name,
            certificate_authority,
            insecure_skip_tls_verify,
            client_certificate,
            client_key,
            token,
            act_as,
            as_group,
            as_uid,
            as_user_extra,
            request_timeout,
        } = self;
        if token.is_some() {
            return None;
        }
        let files = [
            ("kubeconfig", kubeconfig),
            ("certificate-authority", certificate_authority),
            ("client-certificate", client_certificate),
            ("client-key", client_key),
        ];
        let names = [
            ("context", context),
            ("cluster", cluster),
            ("user", user),
            ("server", server),
            ("tls-server-name", tls_server_name),
            ("as", act_as),
            ("as-uid", as_uid),
        ];
        let mut words: Vec<OsString> =
            files.iter().filter_map(|(flag, file)| Some(word(flag, file.as_ref()?))).collect();
        words.extend(names.iter().filter_map(|(flag, name)| Some(word(flag, name.as_ref()?))));
        words.extend(as_group.iter().map(|group| word("as-group", group)));
        words.extend(as_user_extra.iter().map(|extra| word("as-user-extra", extra)));
        if *insecure_skip_tls_verify {
            words.push("--insecure-skip-tls-verify".into());
        }
        if request_timeout != REQUEST_TIMEOUT {
            words.push(word("request-timeout", request_timeout));
        }
        Some(words)
    }

    /// Checks what can be checked without a file or a server.
    ///
    /// # Errors
    /// A usage failure for a duration or an extra attribute that cannot be read, or flags that contradict each other.
    pub fn connection(&self) -> Result<Connection, Failure> {
        let Self {
            kubeconfig,
            context,
            cluster,
            user,
            server,
            tls_server_name,
            certificate_authority,
            insecure_skip_tls_verify,
            client_certificate,
            client_key,
            token,
            act_as,
            as_group,
            as_uid,
            as_user_extra,
            request_timeout,
        } = self.clone();
        if act_as.is_none() && !(as_group.is_empty() && as_uid.is_none() && as_user_extra.is_empty()) {
            return Err(Failure::usage("--as-group, --as-uid and --as-user-extra need --as"));
        }
        if insecure_skip_tls_verify && certificate_authority.is_some() {
            return Err(Failure::usage("--certificate-authority and --insecure-skip-tls-verify exclude each other"));
        }
        // A variable of a script that is not set must not make somebody else of the caller.
        if token.as_ref().is_some_and(|token| token.expose_secret().is_empty()) {
            return Err(Failure::usage("--token is empty"));
        }
        let as_user_extra = as_user_extra
            .into_iter()
            .map(|pair| match pair.split_once('=') {
                Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
                _ => Err(Failure::usage(format!("--as-user-extra {pair:?} is not KEY=VALUE"))),
            })
            .collect::<Result<_, _>>()?;
        Ok(Connection {
            kubeconfig,
            context,
            cluster,
            user,
            server,
            tls_server_name,
            certificate_authority,
            insecure_skip_tls_verify,
            authorities: Vec::new(),
            client_certificate,
            client_key,
            token,
            act_as,
            as_groups: as_group,
            as_uid,
            as_user_extra,
            sends_once: false,
            request_timeout: duration("--request-timeout", &request_timeout)?,
            role: Role::Target,
            from: Vantage::default(),
        })
    }
}

impl HubArgs {
    /// Whether any flag names the hub: then the command works with access to both clusters.
    pub fn is_given(&self) -> bool {
        self.hub_context.is_some() || self.hub_kubeconfig.is_some()
    }

    /// The flags that were given, to be typed for another command that shall reach the same hub as the same user.
    pub fn words(&self) -> Vec<OsString> {
        let Self { hub_kubeconfig, hub_context, hub_tls_server_name, hub_as, hub_as_group } = self;
        let names = [("hub-context", hub_context), ("hub-tls-server-name", hub_tls_server_name), ("hub-as", hub_as)];
        let file = hub_kubeconfig.iter().map(|file| word("hub-kubeconfig", file));
        let names = names.iter().filter_map(|(flag, name)| Some(word(flag, name.as_ref()?)));
        file.chain(names).chain(hub_as_group.iter().map(|group| word("hub-as-group", group))).collect()
    }

    /// The hub's connection. The kubeconfig and the request time-out of the plain flags serve here too.
    pub fn connection(&self, plain: &Connection) -> Connection {
        let Self { hub_kubeconfig, hub_context, hub_tls_server_name, hub_as, hub_as_group } = self.clone();
        Connection {
            kubeconfig: hub_kubeconfig.or_else(|| plain.kubeconfig.clone()),
            context: hub_context,
            tls_server_name: hub_tls_server_name,
            act_as: hub_as,
            as_groups: hub_as_group,
            request_timeout: plain.request_timeout,
            role: Role::Hub,
            ..Connection::default()
        }
    }
}

impl FallbackHubArgs {
    /// The connections to these hubs, in order. The kubeconfig and the request time-out of the other flags serve here too.
    pub fn connections(&self, hub: &HubArgs, plain: &Connection) -> Vec<Connection> {
        let Self { fallback_hub_context, fallback_hub_kubeconfig } = self;
        let kubeconfig = fallback_hub_kubeconfig.as_ref().or(hub.hub_kubeconfig.as_ref()).or(plain.kubeconfig.as_ref());
        let of = |context: &String| Connection {
            kubeconfig: kubeconfig.cloned(),
            context: Some(context.clone()),
            request_timeout: plain.request_timeout,
            role: Role::Hub,
            ..Connection::default()
        };
        fallback_hub_context.iter().map(of).collect()
    }
}

impl ManagedArgs {
    /// Whether any flag names the managed cluster.
    pub fn is_given(&self) -> bool {
        self.managed_context.is_some() || self.managed_kubeconfig.is_some()
    }

    /// The managed cluster's connection. The kubeconfig and the request time-out of the plain flags serve here too.
    pub fn connection(&self, plain: &Connection) -> Connection {
        let Self { managed_kubeconfig, managed_context, managed_as, managed_as_group } = self.clone();
        Connection {
            kubeconfig: managed_kubeconfig.or_else(|| plain.kubeconfig.clone()),
            context: managed_context,
            act_as: managed_as,
            as_groups: managed_as_group,
            request_timeout: plain.request_timeout,
            role: Role::Managed,
            ..Connection::default()
        }
    }
}

/// A flag with its value as one word.
fn word(flag: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(format!("--{flag}="));
    word.push(value);
    word
}

/// Reads a duration as kubectl writes them (`30s`, `2m30s`, `1h`, a bare number of seconds); zero means none.
fn duration(flag: &str, text: &str) -> Result<Option<Duration>, Failure> {
    let duration = ocm_core::duration::parse(text).map_err(|error| Failure::usage(format!("{flag}: {error}")))?;
    Ok((!duration.is_zero()).then_some(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(change: impl FnOnce(&mut ClientArgs)) -> ClientArgs {
        let mut args = ClientArgs { request_timeout: "60s".into(), ..ClientArgs::default() };
        change(&mut args);
        args
    }

    #[test]
    fn several_clusters_are_named_by_their_contexts_and_each_once() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let plain = args(|_| {});
        assert_eq!(plain.several(&names(&["b", " a", "b"])).unwrap(), ["b", "a"]);
        assert_eq!(plain.several(&[]).unwrap(), [""; 0]);
        assert!(plain.several(&names(&["a", ""])).is_err());
        let one = args(|args| args.context = Some("a".into()));
        assert!(one.several(&names(&["a"])).is_err() && one.several(&[]).is_ok());
    }

    #[test]
    fn another_command_gets_the_flags_that_were_given_but_no_token() {
        let given = args(|args| {
            args.kubeconfig = Some("a b".into());
            args.context = Some("c1".into());
            args.as_group = vec!["g".into(), "h".into()];
            args.insecure_skip_tls_verify = true;
        });
        let words = ["--kubeconfig=a b", "--context=c1", "--as-group=g", "--as-group=h", "--insecure-skip-tls-verify"];
        assert_eq!(given.words().unwrap(), words);
        assert_eq!(args(|args| args.request_timeout = "5s".into()).words().unwrap(), ["--request-timeout=5s"]);
        let secret = args(|args| args.token = Some("secret".into()));
        assert_eq!(secret.words(), None);
        assert!(!format!("{secret:?}").contains("\"secret"), "{secret:?}");
        let hub = HubArgs { hub_context: Some("hub".into()), hub_as: Some("me".into()), ..HubArgs::default() };
        assert_eq!(hub.words(), ["--hub-context=hub", "--hub-as=me"]);
    }

    #[test]
    fn zero_means_no_time_out() {
        let connection = args(|args| args.request_timeout = "0".into()).connection().unwrap();
        assert_eq!(connection.request_timeout, None);
    }

    #[test]
    fn an_empty_token_is_refused() {
        let failure = args(|args| args.token = Some(String::new().into())).connection().unwrap_err();
        assert!(failure.message.contains("--token is empty"), "{failure}");
    }

    #[test]
    fn groups_without_a_user_are_refused() {
        let failure = args(|args| args.as_group = vec!["g".into()]).connection().unwrap_err();
        assert!(failure.message.contains("need --as"), "{failure}");
    }

    #[test]
    fn the_hub_shares_the_kubeconfig_but_not_the_context() {
        let plain = args(|args| {
            args.kubeconfig = Some("both".into());
            args.context = Some("spoke".into());
        })
        .connection()
        .unwrap();
        let hub = HubArgs { hub_context: Some("hub".into()), ..HubArgs::default() }.connection(&plain);
        assert_eq!((hub.kubeconfig, hub.context), (plain.kubeconfig, Some("hub".into())));
    }
}
