//! Errors of options, in the words of this command's flags.

use ocm_core::install::feature_gates::AUTO_APPROVAL;
use ocm_core::install::{Driver, DriverSetting, HubMode, OptionsError};
use ocm_core::{Failure, policy_engine};
use ocm_flows::install::{EngineError, InstallError};

/// Why an installation failed, for people.
pub(crate) fn failure(error: InstallError) -> Failure {
    match error {
        InstallError::Failed(failure) => failure,
        InstallError::Options(error) => options(error),
    }
}

/// Why a policy engine could not be installed, for people.
pub(crate) fn engine_failure(error: EngineError) -> Failure {
    use policy_engine::OptionsError::{FormerImage, NoImage, NoIssuer, NoReplicas};
    match error {
        EngineError::Failed(failure) => failure,
        EngineError::Options(NoImage) => Failure::usage("no image is named, and the hub runs none yet")
            .hint("name it: --image REGISTRY/ocm-policy-webhook:VERSION")
            .hint("from a checkout of the sources, cargo xtask image builds it"),
        EngineError::Options(NoReplicas) => {
            Failure::usage("--replicas must be at least 1: without a pod nobody registers")
        }
        EngineError::Options(NoIssuer) => {
            Failure::usage("the webhook serves a certificate of cert-manager, and nothing tells who issues it")
                .hint("name the issuer: --certificate-issuer KIND/NAME; or, if it is known, get the right to read the Certificate")
        }
        EngineError::NeedsWait => Failure::usage(
            "--certificate-issuer replaces an authority that the API server trusts, and without --wait registrations would \
             be refused meanwhile",
        )
        .hint("add --wait"),
        EngineError::Options(FormerImage) => {
            Failure::usage("no image is named, and the one that runs is of a release that renews no certificates")
                .hint("name one of this release: --image REGISTRY/ocm-policy-webhook:VERSION")
        }
    }
}

/// Why options cannot be used, for people.
pub(crate) fn options(error: OptionsError) -> Failure {
    match error {
        OptionsError::NoReplicas => {
            Failure::usage("--replicas must be at least 1: nothing else installs and repairs the hub")
        }
        OptionsError::DriverIsOff(driver, setting) => {
            let (word, flags) = (driver.word(), flags(driver, setting));
            Failure::usage(format!("{flags} needs the registration driver {word}"))
                .hint(format!("add it: --registration-drivers csr,{word}"))
        }
        OptionsError::NoHubArn => Failure::usage("the registration driver awsirsa needs --hub-cluster-arn"),
        OptionsError::NoGrpcAddress => Failure::usage("the registration driver grpc needs --grpc-server HOST[:PORT]")
            .hint("or let the cluster find an address: --grpc-endpoint-type loadBalancer"),
        OptionsError::NotAnAddress(text) => Failure::usage(format!("--grpc-server {text:?} is not HOST or HOST:PORT"))
            .hint("write it as hub.example:443"),
        OptionsError::Gateway => {
            Failure::usage("--expose-grpc gateway and --grpc-gateway NAMESPACE/NAME[/LISTENER] go together")
                .hint("see which Gateways there are: kubectl get gateways.gateway.networking.k8s.io --all-namespaces")
        }
        OptionsError::NotAName(host) => Failure::usage(format!(
            "--grpc-server {host} is an IP address, and a Gateway that passes TLS through tells servers apart by their names"
        ))
        .hint("name a host that leads to the Gateway: --grpc-server HOST"),
        OptionsError::BalancedGateway => {
            Failure::usage("with --expose-grpc gateway the gRPC server has no load balancer of its own")
                .hint("leave --grpc-endpoint-type out")
        }
        OptionsError::AutoApprovalIsOff => {
            Failure::usage(format!("--auto-approved-… has no effect without the feature gate {AUTO_APPROVAL}"))
                .hint(format!("add it: --feature-gates {AUTO_APPROVAL}=true"))
        }
        OptionsError::CommaInIdentity(identity) => Failure::usage(format!(
            "the hub cannot approve {identity:?} by itself: it takes what stands between commas for identities of their own"
        ))
        .hint("to name several, type the flag for each of them"),
        OptionsError::QuoteInIdentity(identity) => Failure::usage(format!(
            "the hub cannot approve {identity:?} by itself: its operator cannot write quotation marks, backslashes and control \
             characters into the Deployment of the hub"
        ))
        .hint("in a pattern, [.] and [0-9] say the same without a backslash"),
        OptionsError::OtherMode(there) => {
            let (word, where_) = match there {
                HubMode::Default => ("Default", "its pods run on the hub itself"),
                HubMode::Hosted => ("Hosted", "its hub is another cluster"),
            };
            Failure::refused(format!(
                "there is a hub already, in mode {word}: {where_}, and it is not moved; nothing was changed"
            ))
            .hint(format!("to keep it as it is: --mode {}, or without --mode", word.to_ascii_lowercase()))
            .hint("to have it in the other mode, take it away first: kubectl ocm uninstall hub")
        }
        OptionsError::NoHub => {
            Failure::usage("the hub is hosted, and nothing says which cluster it is").hint(
                "name it: --hub-context NAME or --hub-kubeconfig FILE; --context is that of the cluster where its pods run",
            )
        }
        OptionsError::NotHosted => Failure::usage(
            "--hub-context, --hub-kubeconfig, --registration-webhook, --work-webhook and --expose-webhooks are for a hub whose \
             pods run on another cluster",
        )
        .hint("to have them there: --mode hosted")
        .hint("with the pods on the hub itself, that cluster is named by --context and --kubeconfig"),
        OptionsError::NoWebhookAddress => {
            Failure::usage("a hosted hub needs --registration-webhook HOST[:PORT] and --work-webhook HOST[:PORT]")
                .hint("name the addresses at which the hub's API server reaches the webhooks on the hosting cluster")
        }
        OptionsError::WebhookPortsDiffer(release) => Failure::usage(format!(
            "{release} asks both webhooks of a hosted hub at one port, and --registration-webhook and --work-webhook name two"
        ))
        .hint("give each an address of its own with the same port, or take v1.3.0 or newer"),
        OptionsError::WebhooksShareNodePort(port) => Failure::usage(format!(
            "with --expose-webhooks nodePort each webhook has a port of the nodes of its own, and both addresses name {port}"
        ))
        .hint("leave the ports out, or name two")
        .hint("before v1.3.0 both have one port, so there it is --expose-webhooks loadBalancer"),
        OptionsError::HostedGrpc => {
            Failure::usage("a hosted hub cannot let clusters register over gRPC: the Service of its server leads to no pod")
                .hint("leave grpc out of --registration-drivers and of the values, and the flags of its server")
        }
    }
}

const fn flags(driver: Driver, setting: DriverSetting) -> &'static str {
    match (setting, driver) {
        (DriverSetting::AutoApproved, Driver::Csr) => "--auto-approved-csr-identities",
        (DriverSetting::AutoApproved, Driver::AwsIrsa) => "--auto-approved-arn-patterns",
        (DriverSetting::AutoApproved, Driver::Grpc) => "--auto-approved-grpc-identities",
        (DriverSetting::HubArn, _) => "--hub-cluster-arn",
        (DriverSetting::Tags, _) => "--aws-resource-tags",
        (DriverSetting::Address, _) => "--grpc-server or --grpc-endpoint-type",
        (DriverSetting::Exposure, _) => "--expose-grpc",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_setting_needs_is_said_with_the_flag_that_was_typed() {
        let failure = options(OptionsError::DriverIsOff(Driver::Grpc, DriverSetting::AutoApproved));
        assert_eq!(failure.message, "--auto-approved-grpc-identities needs the registration driver grpc");
        assert_eq!(failure.hints, ["add it: --registration-drivers csr,grpc"]);
    }

    #[test]
    fn a_hub_in_another_mode_is_refused_and_not_a_matter_of_the_command_line() {
        let failure = options(OptionsError::OtherMode(HubMode::Default));
        assert_eq!(failure.reason, ocm_core::Reason::Refused);
        assert!(failure.message.contains("in mode Default: its pods run on the hub itself"), "{failure}");
        assert!(options(OptionsError::NotHosted).hints.iter().any(|hint| *hint == "to have them there: --mode hosted"));
    }
}
