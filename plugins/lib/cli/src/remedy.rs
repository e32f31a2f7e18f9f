//! What would help, as flags and commands to type. Flags of the same meaning have the same name in every command.

use ocm_core::cluster_proxy::{AGENTS, SERVERS};
use ocm_core::shell::shell;
use ocm_core::{Failure, Hint, Remedy, Role};

use crate::clean;

/// A hint as people read it.
pub fn words(hint: &Hint) -> String {
    match hint {
        Hint::Text(text) => text.clone(),
        Hint::Remedy(remedy) => what_to_type(remedy),
    }
}

/// A failure as it is of use to whoever names several clusters by `--contexts`.
#[must_use]
pub fn of_contexts(failure: Failure) -> Failure {
    let in_the_list = |hint: Hint| match hint {
        Hint::Remedy(Remedy::SimilarContext(Role::Target, near)) => {
            Hint::Text(format!("did you mean {} in --contexts?", shell(&near)))
        }
        Hint::Remedy(Remedy::Context { role: Role::Target, known }) if !known.is_empty() => {
            Hint::Text(format!("name some that it has in --contexts: {}", known.join(", ")))
        }
        other => other,
    };
    Failure { hints: failure.hints.into_iter().map(in_the_list).collect(), ..failure }
}

/// A command with the context of the cluster that it is for.
pub(crate) fn within(line: &str, context: Option<&str>) -> String {
    match context {
        // One that cannot be shown as it is is left to whoever types the command.
        Some(context) if clean(context) != context => format!("{line} --context NAME"),
        Some(context) => format!("{line} --context {}", shell(context)),
        None => line.to_owned(),
    }
}

/// What stands in front of the names of a connection's flags.
const fn prefix(role: Role) -> &'static str {
    match role {
        Role::Target => "",
        Role::Hub => "hub-",
        Role::FormerHub => "former-hub-",
        Role::Managed => "managed-",
    }
}

fn what_to_type(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Kubeconfig(role) => format!("point --{}kubeconfig at the kubeconfig of the cluster", prefix(*role)),
        Remedy::Context { role, known } => {
            let known = match known.as_slice() {
                [] => "the kubeconfig holds no contexts".to_owned(),
                known => format!("it knows: {}", known.join(", ")),
            };
            format!("say which cluster: --{}context NAME ({known})", prefix(*role))
        }
        Remedy::SimilarContext(role, near) => {
            format!("did you mean --{}context {}?", prefix(*role), shell(near))
        }
        Remedy::User(Role::Target) => "name one that it has: --user NAME".to_owned(),
        Remedy::Cluster(Role::Target) => "name one that it has: --cluster NAME".to_owned(),
        // Of the other clusters no flag names these.
        Remedy::User(role) | Remedy::Cluster(role) => {
            format!("name one that it has in its context, or take another context: --{}context NAME", prefix(*role))
        }
        Remedy::NameHub => "name the hub with --context, or make this cluster one: kubectl ocm install hub".to_owned(),
        Remedy::InstallHub => "make it one: kubectl ocm install hub".to_owned(),
        Remedy::InstallHubApart => "leave hub.install out, and install it apart: kubectl ocm install hub".to_owned(),
        Remedy::ReinstallHub => "when it is gone, install the hub again: kubectl ocm install hub".to_owned(),
        Remedy::RestoreHubOperator => "bring it back: kubectl ocm install hub".to_owned(),
        Remedy::RestoreHubOperatorFirst => "put it back, then run this again: kubectl ocm install hub".to_owned(),
        Remedy::UninstallByOperator => {
            "have an operator take all of it away: kubectl ocm install hub, and then kubectl ocm uninstall hub".to_owned()
        }
        Remedy::KeepHub => {
            "or keep the hub, which lets clusters register again: kubectl ocm install hub".to_owned()
        }
        Remedy::UninstallFirst(what) => format!("take it away first: kubectl ocm uninstall {what}"),
        Remedy::UninstallOtherHub => "name that hub, or take it away first: kubectl ocm uninstall hub".to_owned(),
        Remedy::UninstallAtHosting => {
            "name the cluster that hosts it, or take it away there first: kubectl ocm uninstall hub".to_owned()
        }
        Remedy::NewerHub => "a newer one has it: kubectl ocm upgrade hub".to_owned(),
        Remedy::RestoreKlusterletOperator => "bring it back: kubectl ocm join".to_owned(),
        Remedy::RestoreRegistering => {
            "on the hub, kubectl ocm install hub restores what registering clusters may do".to_owned()
        }
        Remedy::AcceptDenied(name) => {
            format!("an administrator of the hub can change that: kubectl ocm accept {name}")
        }
        Remedy::NewToken => "make a new one on that hub: kubectl ocm token create".to_owned(),
        Remedy::ReplaceExpiredToken => "make a new one on the hub: kubectl ocm token create".to_owned(),
        Remedy::OtherToken => {
            "see what the hub has: kubectl ocm token list; make a new one: kubectl ocm token create".to_owned()
        }
        Remedy::CaAndPin => "take both from the same line: kubectl ocm token create".to_owned(),
        Remedy::ComparePin => "compare the pin with a new line of the hub: kubectl ocm token create".to_owned(),
        Remedy::ListTokens => "see which there are: kubectl ocm token list".to_owned(),
        Remedy::NameLeaving => "kubectl ocm unjoin CLUSTER".to_owned(),
        Remedy::ReinstallPolicyEngine => "install it again: kubectl ocm install policy-engine".to_owned(),
        Remedy::InstallPolicyEngine => {
            "name the hub with --context, or install it there: kubectl ocm install policy-engine".to_owned()
        }
        Remedy::PolicyController => {
            "see whether the policy controller runs: kubectl get pods --namespace ocm-policy-engine".to_owned()
        }
        Remedy::MendPolicy => {
            "put its module or its settings right, then: kubectl ocm policy apply -f FILE --wait".to_owned()
        }
        Remedy::PolicyOperations => {
            "take a module that judges these operations as well, or set spec.operations to what the policy is to be evaluated for, \
             then: kubectl ocm policy apply -f FILE --wait"
                .to_owned()
        }
        Remedy::PoliciesOutOfForce => {
            "take them out of force again: kubectl ocm policy emergency --reason TEXT".to_owned()
        }
        Remedy::PoliciesInForce => {
            "to put them back in force all the same, install it again: kubectl ocm install policy-engine".to_owned()
        }
        Remedy::DisablePolicyMeanwhile { policy, cluster } => format!(
            "to move it all the same, an administrator of the hub lets the policy refuse nothing meanwhile: kubectl ocm policy \
             disable {policy}, then this command again, and when {cluster} is available, kubectl ocm policy enable {policy}"
        ),
        Remedy::EnablePolicy(name) => format!("let it count again: kubectl ocm policy enable {name}"),
        Remedy::Registrations => "see what each waits for: kubectl ocm get registrations".to_owned(),
        Remedy::InstallBaseline => {
            "name the hub with --context, or install the baseline there: kubectl ocm install baseline".to_owned()
        }
        Remedy::HubStart => "see on the hub what it waits for: kubectl ocm install hub --wait".to_owned(),
        Remedy::HubCa => "give the CA of the hub's address: --ca-file FILE".to_owned(),
        Remedy::HubPin => "with the line of kubectl ocm token create comes a pin: --hub-ca-pin sha256:…".to_owned(),
        Remedy::SkipVerification(role) => format!("or accept that: --{}insecure-skip-tls-verify", prefix(*role)),
        Remedy::HubAddress => {
            "name the address at which other clusters reach the hub: --hub-apiserver https://HOST:PORT".to_owned()
        }
        Remedy::GrpcAddress => {
            "name the address at which agents reach the hub's gRPC server: --grpc-server HOST:PORT".to_owned()
        }
        Remedy::GrpcCa => "give the CA of the hub's gRPC server: --grpc-ca-file FILE".to_owned(),
        Remedy::OfferDriver(driver) => {
            let other = if driver == "csr" { "grpc" } else { driver.as_str() };
            format!(
                "have the hub list it beside the others: kubectl ocm install hub --registration-drivers csr,{other}"
            )
        }
        Remedy::PublishedAddress => {
            "or use the one that the hub publishes: --force-internal-endpoint-lookup".to_owned()
        }
        Remedy::TokenForAddress => {
            "make a new line on the hub: kubectl ocm token create --hub-apiserver ADDRESS".to_owned()
        }
        Remedy::BootstrapToken => "for a shorter life: --kind bootstrap".to_owned(),
        Remedy::NewBootstrapToken => "make a new one: kubectl ocm token create --kind bootstrap".to_owned(),
        Remedy::AdoptNamespace => "if that namespace is meant for this cluster, add --adopt-namespace".to_owned(),
        Remedy::AcceptKey(name) => {
            format!("compare with the agent's log, then on the hub: kubectl ocm accept {name} --fingerprint KEY")
        }
        Remedy::ReplaceKey(name, key) => format!(
            "if nobody else has the name, an administrator of the hub gives it to this key: kubectl ocm accept {name} --replace \
             --fingerprint {key}; and then this command again"
        ),
        Remedy::LeaveToPerson(name) => format!(
            "if this is the cluster {name}, leave out --accept: its agent asks, and then an administrator of the hub gives it the name: \
             kubectl ocm accept {name} --replace"
        ),
        Remedy::Accept(name) => {
            format!("a person may let it in, where no policy refuses that: kubectl ocm accept {name}")
        }
        Remedy::AcceptWithRole => {
            "write accept: false; when the IAM role of the agent is there, on the hub: kubectl ocm accept NAME".to_owned()
        }
        Remedy::ExplainAcceptance(name, key) => {
            let key = key.iter().map(|key| format!(" --fingerprint {key}")).collect::<String>();
            format!("look on the hub at what is wrong: kubectl ocm accept {name} --explain{key}")
        }
        Remedy::ApproveOnly(name) => {
            format!("approve it, so that your word is counted: kubectl ocm accept {name} --approve-only")
        }
        Remedy::BreakGlass(name) => {
            format!("in an emergency, with the right for it: kubectl ocm accept {name} --break-glass REASON")
        }
        Remedy::SeeRequests(name) => format!("look at what asks for the name: kubectl ocm get csr {name} -o wide"),
        Remedy::SeePolicy(name) => format!("look at the policy: kubectl ocm policy describe {name}"),
        Remedy::NameSides => "say which is which: --from hub=PATH --from managed=PATH".to_owned(),
        Remedy::NameFolders => "name the directory of each: --from hub=PATH --from managed=PATH".to_owned(),
        Remedy::NameSide(name) => {
            let name = shell(name);
            format!("say what it is: --from hub={name}, or --from managed={name}")
        }
        Remedy::ReadAsManaged(name) => format!("look at it as at a managed cluster: --from managed={}", shell(name)),
        Remedy::WriteBundle => "write a bundle with: kubectl ocm troubleshoot CLUSTER --bundle FILE".to_owned(),
        Remedy::DumpObjects => "or dump objects with: kubectl get KINDS --all-namespaces -o yaml".to_owned(),
        Remedy::FindCause => "see what is wrong: kubectl ocm troubleshoot".to_owned(),
        Remedy::NameCluster => "say which cluster it is: --context NAME".to_owned(),
        Remedy::NameItsHub => "name the hub that it belongs to: --hub-context NAME".to_owned(),
        Remedy::WithHub => "with access to the hub, it removes them first: --hub-context HUB".to_owned(),
        Remedy::WithoutHub => {
            "if it is no hub any more: the same without --hub-context and --hub-kubeconfig".to_owned()
        }
        Remedy::Purge => "if all of that may go: --purge".to_owned(),
        Remedy::Force => "if it is gone for good: --force takes these finalizers away".to_owned(),
        Remedy::KeepName(name) => format!("to keep that name: kubectl ocm join {name}"),
        Remedy::Unjoin(name) => {
            format!("to leave that hub for good: kubectl ocm unjoin {name} --context CLUSTER --hub-context HUB")
        }
        Remedy::ChangeHub(server) => format!(
            "to go from that hub to this one, the same with --former-hub {}; with access to that hub, too, what it has of the \
             cluster goes: --former-hub-context NAME",
            shell(server)
        ),
        Remedy::NameFormerHub => {
            "name the hub that it leaves: --former-hub URL, or --former-hub-context NAME".to_owned()
        }
        Remedy::UnjoinAlone(name) => format!(
            "to join it again, under another name if that one is another cluster's by now, take its agent away first: \
             kubectl ocm unjoin {name} --context CLUSTER"
        ),
        Remedy::Detach(name) => format!("on its hub: kubectl ocm detach {name} --context HUB"),
        Remedy::GoOnAtHub(name) => {
            format!("if an unjoin of {name} was interrupted, on its hub: kubectl ocm detach {name} --context HUB")
        }
        Remedy::NameKlusterlet => "say which one is meant: by the name of its cluster, or --klusterlet NAME".to_owned(),
        Remedy::AllowDowngrade => {
            "to go back all the same, which is not tested with binaries of older releases: --allow-downgrade".to_owned()
        }
        Remedy::DowngradeHub(release) => format!(
            "to go back all the same, which is not tested with binaries of older releases: kubectl ocm upgrade hub \
             --bundle-version {release} --allow-downgrade"
        ),
        Remedy::UpgradeHub(release) => {
            format!("upgrade the hub first: kubectl ocm upgrade hub --context HUB --bundle-version {release}")
        }
        Remedy::RewriteStored { definition, keep } => {
            let plural = definition.split('.').next().unwrap_or(definition);
            let versions = keep.iter().map(|version| format!("{version:?}")).collect::<Vec<_>>().join(",");
            format!(
                "store its objects again: kubectl get {definition} -A -o json | kubectl replace -f -; and when all {plural} \
                 are: kubectl patch crd {definition} --subresource=status --type=merge \
                 -p '{{\"status\":{{\"storedVersions\":[{versions}]}}}}'"
            )
        }
        Remedy::SayWorks => "or say what becomes of their objects: --works=delete or --works=keep".to_owned(),
        Remedy::CreateNamespace => "if it is to be made, too: --create-namespace".to_owned(),
        Remedy::BindSet { set, namespace, context } => {
            let line = format!("kubectl ocm clusterset bind {set} --namespace {namespace}");
            format!("let its placements use it: {}", within(&line, context.as_deref()))
        }
        Remedy::PutIntoSet { set, cluster } => {
            format!("see what it would cost, and do it: kubectl ocm clusterset set {set} {cluster}")
        }
        Remedy::PutIntoAnotherSet => "put them into another: kubectl ocm clusterset set NAME CLUSTER".to_owned(),
        Remedy::EmptySet(name) => format!(
            "kubectl ocm clusterset unset {name} and kubectl ocm clusterset unbind {name} take them away; --force does both first"
        ),
        Remedy::RunAgain => "the same command goes on where this one has stopped".to_owned(),
        Remedy::Overwrite => "if it may be replaced: --overwrite".to_owned(),
        Remedy::ExplainWork(name) => format!("see what became of each object: kubectl ocm work status {name}"),
        Remedy::ExplainPlacement { namespace, name } => {
            format!("see what it makes of each cluster: kubectl ocm get placements {name} -n {namespace} --explain")
        }
        Remedy::SeePlacements => "see which there are: kubectl get placements -A".to_owned(),
        Remedy::SeeAddOns => "see what each waits for: kubectl ocm get addons".to_owned(),
        Remedy::EnableGate(gate) => format!("turn it on: kubectl ocm install hub --feature-gates {gate}=true"),
        Remedy::WithoutDefinition => {
            "if whatever installs it needs no ClusterManagementAddOn: --without-definition".to_owned()
        }
        Remedy::EnableAddOn { name, cluster } => {
            format!("enable it there first: kubectl ocm addon enable {name} --clusters {cluster}")
        }
        Remedy::DisableAddOn { name, clusters } => {
            format!("disable it there first: kubectl ocm addon disable {name} --clusters {clusters}")
        }
        Remedy::WithClusters => "to take it away although clusters have it: --force".to_owned(),
        Remedy::UninstallHubAddOn(name) => {
            format!("it goes with the rest of its hub's side: kubectl ocm uninstall hub-addon {name}")
        }
        Remedy::IntoConfiguration(object) => {
            format!("put the proxies into that one, which keeps what else it holds: --config {object}")
        }
        Remedy::MakeConfiguration(kind) => {
            format!("make it first, or see which there are: kubectl get {kind} -A")
        }
        Remedy::UnsetConfigurations { name, kind } => {
            format!(
                "unset those that are to go first: kubectl ocm addon config unset {name} --config {kind}/NAMESPACE/NAME"
            )
        }
        Remedy::SetTemplate(name) => format!(
            "set another one in its place: kubectl ocm addon config set {name} --config \
             addontemplates.addon.open-cluster-management.io/NAME"
        ),
        Remedy::NameAccount => "name one that may do there what you want: --sa NAME".to_owned(),
        Remedy::SeeAccount { name, cluster } => {
            format!("see why: kubectl describe managedserviceaccount {name} -n {cluster}")
        }
        Remedy::SeeAccounts(cluster) => {
            format!("see which there are: kubectl get managedserviceaccounts -n {cluster}")
        }
        Remedy::SeeProxy => "see what keeps it from working: kubectl ocm proxy health".to_owned(),
        Remedy::SeeProxyServers => format!("on the hub: kubectl get pods -A -l {SERVERS}"),
        Remedy::SeeProxyAgents(Some(namespace)) => {
            format!("on the cluster: kubectl get pods -n {namespace} -l {AGENTS}")
        }
        Remedy::SeeProxyAgents(None) => format!("on the cluster: kubectl get pods -A -l {AGENTS}"),
        Remedy::SeeCluster(name) => format!("kubectl get managedcluster {name} -o yaml"),
        Remedy::SeeWebhooks => {
            "look at the webhook's Deployment: kubectl get deployments -n open-cluster-management-hub".to_owned()
        }
        Remedy::SeeObject { resource, name } => format!("look at it: kubectl get {resource} {name} -o yaml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_with_the_connection_to_a_cluster_names_the_flags_of_that_cluster() {
        let words = |remedy: Remedy| words(&Hint::from(remedy));
        assert_eq!(words(Remedy::User(Role::Target)), "name one that it has: --user NAME");
        let other = "name one that it has in its context, or take another context: --hub-context NAME";
        assert_eq!(words(Remedy::User(Role::Hub)), other, "there is no --hub-user");
        assert_eq!(words(Remedy::Cluster(Role::FormerHub)), other.replace("--hub", "--former-hub"));
        let near = Remedy::SimilarContext(Role::FormerHub, "hub".to_owned());
        assert_eq!(words(near), "did you mean --former-hub-context hub?");
        assert_eq!(words(Remedy::SkipVerification(Role::Target)), "or accept that: --insecure-skip-tls-verify");
    }

    #[test]
    fn who_names_several_contexts_is_told_what_stands_in_the_list() {
        let hints = |remedy: Remedy| of_contexts(Failure::usage("no").hint(remedy)).hints;
        let words = |remedy: Remedy| hints(remedy).iter().map(words).collect::<Vec<_>>();
        assert_eq!(words(Remedy::SimilarContext(Role::Target, "c1".to_owned())), ["did you mean c1 in --contexts?"]);
        let known = vec!["c1".to_owned(), "c2".to_owned()];
        let known = Remedy::Context { role: Role::Target, known };
        assert_eq!(words(known), ["name some that it has in --contexts: c1, c2"]);
        let hub = Remedy::SimilarContext(Role::Hub, "hub".to_owned());
        assert_eq!(words(hub), ["did you mean --hub-context hub?"], "the hub is named by a flag of its own");
    }

    #[test]
    fn agents_of_the_proxy_are_looked_for_where_they_are() {
        let words = |space: Option<&str>| words(&Hint::from(Remedy::SeeProxyAgents(space.map(str::to_owned))));
        assert_eq!(words(Some("ns")), format!("on the cluster: kubectl get pods -n ns -l {AGENTS}"));
        assert_eq!(words(None), format!("on the cluster: kubectl get pods -A -l {AGENTS}"));
    }

    #[test]
    fn whoever_takes_policies_out_of_force_says_why() {
        let words = words(&Hint::from(Remedy::PoliciesOutOfForce));
        assert!(words.ends_with("kubectl ocm policy emergency --reason TEXT"), "{words}");
    }

    #[test]
    fn to_look_writes_nothing_and_keeps_the_key_that_is_meant() {
        let look =
            |key: Option<&str>| words(&Hint::from(Remedy::ExplainAcceptance("c1".to_owned(), key.map(str::to_owned))));
        let line = "look on the hub at what is wrong: kubectl ocm accept c1 --explain";
        assert_eq!(look(None), line);
        assert_eq!(look(Some("ab")), format!("{line} --fingerprint ab"));
    }

    #[test]
    fn a_set_is_bound_on_the_hub_that_was_asked() {
        let bind = |context: Option<&str>| {
            let (set, namespace) = ("prod".to_owned(), "team-a".to_owned());
            words(&Hint::from(Remedy::BindSet { set, namespace, context: context.map(str::to_owned) }))
        };
        let line = "let its placements use it: kubectl ocm clusterset bind prod --namespace team-a";
        assert_eq!(bind(None), line);
        assert_eq!(bind(Some("hub")), format!("{line} --context hub"));
        assert_eq!(bind(Some("my hub")), format!("{line} --context 'my hub'"));
        assert_eq!(bind(Some("hub\u{1b}[31m")), format!("{line} --context NAME"));
    }
}
