//! Errors of options, in the words of this command's flags.

use ocm_core::install::feature_gates::AUTO_APPROVAL;
use ocm_core::install::{Driver, DriverSetting, OptionsError};
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
        OptionsError::AutoApprovalIsOff => {
            Failure::usage(format!("--auto-approved-… has no effect without the feature gate {AUTO_APPROVAL}"))
                .hint(format!("add it: --feature-gates {AUTO_APPROVAL}=true"))
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
}
