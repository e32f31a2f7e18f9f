//! The hub of the file: how it is reached, and how it is installed, if it is.

use std::collections::BTreeMap;

use super::fields::{
    authorities, bundle, check_access, digests, feature_gates, nodes, pull_credentials, registry_of, resources, values,
};
use super::file::{Access, DriverWord, EndpointWord, ExposureWord, HubEntry, InstallEntry};
use super::wrong::Place;
use super::{Files, Wrong};
use crate::install::feature_gates::{AUTO_APPROVAL, GATES};
use crate::install::gateway::Gateway;
use crate::install::hosted::Hosting;
use crate::install::{Driver, DriverSetting, GrpcEndpoint, GrpcExposure, Options, OptionsError};
use crate::order::Collect as _;
use crate::release::Component;
use crate::values::Kind;
use crate::{Failure, Remedy};

/// The hub of a fleet.
#[derive(Clone, Debug)]
pub struct Hub {
    /// How it is reached.
    pub access: Access,
    /// Where agents find it.
    pub address: Address,
    /// What is chosen about it; none: it is there, and stays as it is.
    pub install: Option<Options>,
}

/// Where agents find a hub.
#[derive(Clone, Debug, Default)]
pub struct Address {
    /// URL that agents dial; none: that of the kubeconfig.
    pub server: Option<String>,
    /// Whether agents dial the address that the hub publishes for its own network.
    pub internal: bool,
    /// Certificates (DER) of its CA; empty: those of the kubeconfig or of the hub.
    pub ca: Vec<Vec<u8>>,
    /// Whether a hub is believed that nobody verifies.
    pub unverified: bool,
}

/// Checks the hub of the file.
pub(super) fn read(entry: HubEntry, files: Files<'_>) -> Result<Hub, Wrong> {
    let HubEntry {
        kubeconfig,
        context,
        act_as,
        as_groups,
        api_server,
        internal_address,
        ca_file,
        insecure_skip_tls_verify,
        install,
    } = entry;
    let place = Place::of("hub", None);
    let access = Access { kubeconfig, context, act_as, as_groups };
    check_access(&access, "", &place)?;
    if insecure_skip_tls_verify && ca_file.is_some() {
        return Err(place.wrong("insecureSkipTlsVerify", "a hub with a CA is verified: leave one of both out"));
    }
    let ca = authorities("caFile", ca_file.as_deref(), &place, files)?;
    let address = Address { server: api_server, internal: internal_address, ca, unverified: insecure_skip_tls_verify };
    let install = match install {
        Some(install) => Some(options(install, &Place::of("hub.install", None), files)?),
        None => None,
    };
    Ok(Hub { access, address, install })
}

fn options(entry: InstallEntry, place: &Place, files: Files<'_>) -> Result<Options, Wrong> {
    let InstallEntry {
        bundle_version,
        registry,
        images,
        image_digests,
        values: spec,
        image_pull_credential_file,
        feature_gates: gates,
        enable_sync_labels,
        registration_drivers,
        use_bootstrap_token,
        auto_approved_csr_identities,
        auto_approved_arn_patterns,
        auto_approved_grpc_identities,
        grpc_endpoint_type,
        grpc_server,
        expose_grpc,
        grpc_gateway,
        hub_cluster_arn,
        aws_resource_tags,
        resources: amounts,
        node_selector,
        tolerations,
        replicas,
        create_namespace,
    } = entry;
    let images = images_of(images, place)?;
    let unnamed = Component::ALL.into_iter().filter(|component| !images.contains_key(component));
    Ok(Options {
        digests: digests(&image_digests, unnamed, place)?,
        bundle: bundle(bundle_version.as_deref(), place)?,
        registry: registry.map(|text| registry_of(&text, place)).transpose()?,
        images,
        values: values(spec.as_ref(), Kind::ClusterManager, place)?,
        pull_credentials: pull_credentials(image_pull_credential_file.as_deref(), place, files)?,
        feature_gates: feature_gates(&gates, GATES, place)?,
        registration_drivers: drivers(&registration_drivers),
        hub_cluster_arn,
        usual_hub_arn: None,
        aws_resource_tags,
        auto_approved_csr_identities,
        auto_approved_arn_patterns,
        auto_approved_grpc_identities,
        grpc_endpoint: grpc_endpoint_type.map(|word| match word {
            EndpointWord::Hostname => GrpcEndpoint::Hostname,
            EndpointWord::LoadBalancer => GrpcEndpoint::LoadBalancer,
        }),
        grpc_server,
        expose_grpc: expose_grpc.map(|word| match word {
            ExposureWord::NodePort => GrpcExposure::NodePort,
            ExposureWord::LoadBalancer => GrpcExposure::LoadBalancer,
            ExposureWord::Gateway => GrpcExposure::Gateway,
        }),
        grpc_gateway: grpc_gateway.map(|text| gateway(&text, place)).transpose()?,
        // The hub says it.
        route_version: None,
        resources: resources(amounts.as_ref(), place)?,
        scheduling: nodes(&node_selector, &tolerations, place)?,
        use_bootstrap_token,
        enable_sync_labels,
        create_namespace: create_namespace.unwrap_or(true),
        replicas,
        // A fleet's hub runs on itself, or is there and stays as it is.
        hosting: Hosting::default(),
    })
}

fn gateway(text: &str, place: &Place) -> Result<Gateway, Wrong> {
    Gateway::parse(text)
        .ok_or_else(|| place.wrong("grpcGateway", format!("{text:?} is not NAMESPACE/NAME or NAMESPACE/NAME/LISTENER")))
}

fn images_of(images: BTreeMap<String, String>, place: &Place) -> Result<BTreeMap<Component, String>, Wrong> {
    let one = |(name, image): (String, String)| match Component::of(&name) {
        Some(component) if !image.is_empty() => Ok((component, image)),
        Some(_) => Err(place.wrong("images", format!("{name} has no image"))),
        None => {
            let names = Component::ALL.map(Component::image);
            Err(place.wrong("images", format!("there is no component {name:?}")).meant(&name, &names))
        }
    };
    images.into_iter().map(one).try_collect_map()
}

fn drivers(words: &[DriverWord]) -> Option<Vec<Driver>> {
    let mut list = Vec::new();
    for word in words {
        let driver = match word {
            DriverWord::Csr => Driver::Csr,
            DriverWord::AwsIrsa => Driver::AwsIrsa,
            DriverWord::Grpc => Driver::Grpc,
        };
        if !list.contains(&driver) {
            list.push(driver);
        }
    }
    (!list.is_empty()).then_some(list)
}

/// Why the installation of a fleet's hub cannot be as the file has it, in the words of its fields.
pub fn options_failure(error: OptionsError) -> Failure {
    let usage = |field: &str, why: String| Failure::usage(format!("hub.install.{field}: {why}"));
    match error {
        OptionsError::NoReplicas => {
            usage("replicas", "it must be at least 1: nothing else installs and repairs the hub".to_owned())
        }
        OptionsError::DriverIsOff(driver, setting) => {
            let word = driver.word();
            usage(field(driver, setting), format!("it needs the registration driver {word}"))
                .hint(format!("add it: registrationDrivers: [csr, {word}]"))
        }
        OptionsError::NoHubArn => usage("hubClusterArn", "the registration driver awsirsa needs it".to_owned()),
        OptionsError::NoGrpcAddress => {
            usage("grpcServer", "the registration driver grpc needs it, as HOST or HOST:PORT".to_owned())
                .hint("or let the cluster find an address: grpcEndpointType: loadBalancer")
        }
        OptionsError::NotAnAddress(text) => {
            usage("grpcServer", format!("{text:?} is not HOST or HOST:PORT")).hint("write it as hub.example:443")
        }
        OptionsError::Gateway => {
            usage("grpcGateway", "it goes together with exposeGrpc: gateway, as NAMESPACE/NAME".to_owned())
        }
        OptionsError::NotAName(host) => {
            usage("grpcServer", format!("{host} is an IP address, and a Gateway tells servers apart by their names"))
        }
        OptionsError::BalancedGateway => {
            usage("grpcEndpointType", "with exposeGrpc: gateway it is hostname".to_owned())
        }
        OptionsError::AutoApprovalIsOff => {
            usage("featureGates", format!("without {AUTO_APPROVAL} identities that are approved have no effect"))
                .hint(format!("add it: featureGates: {{{AUTO_APPROVAL}: true}}"))
        }
        OptionsError::CommaInIdentity(identity) => Failure::usage(format!(
            "hub.install: the hub cannot approve {identity:?} by itself: it takes what stands between commas for identities of \
             their own"
        ))
        .hint("write several as a list"),
        OptionsError::QuoteInIdentity(identity) => Failure::usage(format!(
            "hub.install: the hub cannot approve {identity:?} by itself: its operator cannot write quotation marks, backslashes \
             and control characters into the Deployment of the hub"
        ))
        .hint("in a pattern, [.] and [0-9] say the same without a backslash"),
        OptionsError::OtherMode(_)
        | OptionsError::NoHub
        | OptionsError::NotHosted
        | OptionsError::NoWebhookAddress
        | OptionsError::WebhookPortsDiffer(_)
        | OptionsError::WebhooksShareNodePort(_)
        | OptionsError::HostedGrpc => Failure::refused(
            "hub.install: the hub is hosted on another cluster, and a file does not install such a one",
        )
        .hint(Remedy::InstallHubApart),
    }
}

const fn field(driver: Driver, setting: DriverSetting) -> &'static str {
    match (setting, driver) {
        (DriverSetting::AutoApproved, Driver::Csr) => "autoApprovedCsrIdentities",
        (DriverSetting::AutoApproved, Driver::AwsIrsa) => "autoApprovedArnPatterns",
        (DriverSetting::AutoApproved, Driver::Grpc) => "autoApprovedGrpcIdentities",
        (DriverSetting::HubArn, _) => "hubClusterArn",
        (DriverSetting::Tags, _) => "awsResourceTags",
        (DriverSetting::Address, _) => "grpcServer",
        (DriverSetting::Exposure, _) => "exposeGrpc",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_option_needs_is_said_with_its_field() {
        let failure = options_failure(OptionsError::DriverIsOff(Driver::Grpc, DriverSetting::Exposure));
        assert_eq!(failure.message, "hub.install.exposeGrpc: it needs the registration driver grpc");
        assert_eq!(failure.hints, ["add it: registrationDrivers: [csr, grpc]"]);
        let failure = options_failure(OptionsError::Gateway);
        assert!(failure.message.starts_with("hub.install.grpcGateway: it goes together with exposeGrpc"), "{failure}");
        let failure = options_failure(OptionsError::AutoApprovalIsOff);
        assert_eq!(failure.hints, ["add it: featureGates: {ManagedClusterAutoApproval: true}"]);
    }
}
