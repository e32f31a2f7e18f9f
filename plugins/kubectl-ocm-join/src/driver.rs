//! The flags of how the agent registers.

use std::path::PathBuf;

use ocm_api::operator::{AddOnAuthType, AddOnRegistrationDriver, AwsIrsa, RegistrationAuthType, RegistrationDriver};
use ocm_core::join::aws::Roles;
use ocm_core::join::choices::{AddOnDriverError, addon_driver};
use ocm_core::values::Values;
use ocm_core::{Failure, certificate, grpc};
use ocm_flows::join::GrpcOptions;

use crate::args::{AddOnAuthArg, DriverArg};
use crate::files::read;

/// What was typed about how the agent registers.
pub(crate) struct Typed {
    pub(crate) driver: Option<DriverArg>,
    pub(crate) server: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) hub_arn: Option<String>,
    pub(crate) managed_arn: Option<String>,
}

/// How the agent is to register.
#[derive(Debug)]
pub(crate) struct Registration {
    /// By which driver; none: as it is.
    pub(crate) driver: Option<RegistrationDriver>,
    /// About the hub's gRPC server.
    pub(crate) grpc: GrpcOptions,
    /// The IAM roles of a registration by AWS.
    pub(crate) roles: Option<Roles>,
}

impl Typed {
    /// Checks what was typed.
    ///
    /// # Errors
    /// Flags of another driver; an address, a file or an ARN that cannot be used.
    pub(crate) fn check(self) -> Result<Registration, Failure> {
        let Self { driver, server, ca_file, hub_arn, managed_arn } = self;
        if driver != Some(DriverArg::Grpc) && (server.is_some() || ca_file.is_some()) {
            return Err(Failure::usage("--grpc-server and --grpc-ca-file go with --registration-auth grpc"));
        }
        if driver != Some(DriverArg::AwsIrsa) && (hub_arn.is_some() || managed_arn.is_some()) {
            return Err(Failure::usage(
                "--hub-cluster-arn and --managed-cluster-arn go with --registration-auth awsirsa",
            ));
        }
        let mut grpc = GrpcOptions::default();
        if let Some(text) = server {
            let address = grpc::Address::parse(&text).ok_or_else(|| {
                Failure::usage(format!("--grpc-server {text:?} is not HOST or HOST:PORT"))
                    .hint("write it as hub.example:443; without a port it is 443")
            })?;
            grpc.server = Some(address);
        }
        if let Some(path) = ca_file {
            let pem = read("--grpc-ca-file", &path)?;
            grpc.ca = certificate::from_pem(&pem)
                .map_err(|error| Failure::usage("--grpc-ca-file cannot be used").because(error))?;
        }
        let of = |auth_type| Some(RegistrationDriver { auth_type, aws_irsa: None });
        let (driver, roles) = match driver {
            None => (None, None),
            Some(DriverArg::Csr) => (of(RegistrationAuthType::Csr), None),
            Some(DriverArg::Grpc) => (of(RegistrationAuthType::Grpc), None),
            Some(DriverArg::AwsIrsa) => {
                let (clusters, roles) = aws(hub_arn, managed_arn)?;
                let driver = RegistrationDriver { auth_type: RegistrationAuthType::AwsIrsa, aws_irsa: Some(clusters) };
                (Some(driver), Some(roles))
            }
        };
        Ok(Registration { driver, grpc, roles })
    }
}

impl Registration {
    /// The same, with the driver of a file of values where none was typed.
    ///
    /// # Errors
    /// A driver of AWS without two clusters that are named by their ARNs.
    pub(crate) fn or(self, values: &Values) -> Result<Self, Failure> {
        let Some(driver) = values.driver().filter(|_| self.driver.is_none()) else { return Ok(self) };
        let roles = match driver.auth_type {
            RegistrationAuthType::AwsIrsa => {
                let clusters = driver.aws_irsa.clone().map(|aws| (aws.hub_cluster_arn, aws.managed_cluster_arn));
                let (hub, managed) = clusters.unzip();
                Some(
                    aws(hub, managed)
                        .map_err(|failure| failure.context("the registrationDriver of the values cannot be used"))?
                        .1,
                )
            }
            _ => None,
        };
        Ok(Self { driver: Some(driver), roles, ..self })
    }
}

/// How add-ons are to register.
///
/// # Errors
/// A life of tokens that cannot be, or without tokens.
pub(crate) fn addons(
    auth: Option<AddOnAuthArg>,
    seconds: Option<i64>,
) -> Result<Option<AddOnRegistrationDriver>, Failure> {
    let auth = auth.map(|auth| match auth {
        AddOnAuthArg::Csr => AddOnAuthType::Csr,
        AddOnAuthArg::Token => AddOnAuthType::Token,
    });
    addon_driver(auth, seconds).map_err(|error| match error {
        AddOnDriverError::NotByToken => {
            Failure::usage("--addon-token-expiration-seconds goes with --addon-kubeclient-registration-auth token")
        }
        AddOnDriverError::TooShort { shortest } => Failure::usage(format!(
            "--addon-token-expiration-seconds: a token lives for {shortest} seconds at least; 0 leaves it to the agent"
        )),
    })
}

/// The two clusters, and their roles.
fn aws(hub: Option<String>, managed: Option<String>) -> Result<(AwsIrsa, Roles), Failure> {
    let (Some(hub_cluster_arn), Some(managed_cluster_arn)) = (hub, managed) else {
        return Err(Failure::usage(
            "--registration-auth awsirsa needs --hub-cluster-arn ARN and --managed-cluster-arn ARN",
        )
        .hint("aws eks describe-cluster --name NAME --query cluster.arn prints it"));
    };
    for (flag, arn) in [("--hub-cluster-arn", &hub_cluster_arn), ("--managed-cluster-arn", &managed_cluster_arn)] {
        if ocm_core::join::aws::account(arn).is_none() {
            return Err(Failure::usage(format!("{flag} {arn:?} is no ARN of an EKS cluster"))
                .hint("write it as arn:aws:eks:REGION:ACCOUNT:cluster/NAME, with an account of 12 digits"));
        }
    }
    if hub_cluster_arn == managed_cluster_arn {
        return Err(Failure::usage("--hub-cluster-arn and --managed-cluster-arn name the same cluster"));
    }
    let clusters = AwsIrsa { hub_cluster_arn, managed_cluster_arn };
    let roles = Roles::of(&clusters).ok_or_else(|| Failure::usage("the ARNs name no EKS clusters"))?;
    Ok((clusters, roles))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(driver: Option<DriverArg>) -> Typed {
        Typed { driver, server: None, ca_file: None, hub_arn: None, managed_arn: None }
    }

    fn arn(name: &str) -> Option<String> {
        Some(format!("arn:aws:eks:us-west-2:123456789012:cluster/{name}"))
    }

    #[test]
    fn flags_go_with_their_driver() {
        let server = Some("hub.example".to_owned());
        for driver in [None, Some(DriverArg::Csr), Some(DriverArg::AwsIrsa)] {
            let wrong = Typed { server: server.clone(), ..typed(driver) }.check().unwrap_err();
            assert!(wrong.message.contains("--registration-auth grpc"), "{wrong}");
        }
        for driver in [None, Some(DriverArg::Csr), Some(DriverArg::Grpc)] {
            let wrong = Typed { hub_arn: arn("h"), ..typed(driver) }.check().unwrap_err();
            assert!(wrong.message.contains("--registration-auth awsirsa"), "{wrong}");
        }
        let none = typed(None).check().unwrap();
        assert!(none.driver.is_none() && none.grpc.server.is_none() && none.roles.is_none());
    }

    #[test]
    fn an_address_is_a_host_and_perhaps_a_port() {
        let grpc = |server: &str| Typed { server: Some(server.to_owned()), ..typed(Some(DriverArg::Grpc)) }.check();
        assert_eq!(grpc("h:8443").unwrap().grpc.server, Some(("h".to_owned(), Some(8443))));
        assert_eq!(grpc("h").unwrap().grpc.server, Some(("h".to_owned(), None)));
        assert!(grpc("http://h").unwrap_err().message.contains("--grpc-server"));
    }

    #[test]
    fn a_file_of_values_says_the_driver_where_no_flag_does() {
        let driver = r#"{"registrationConfiguration": {"registrationDriver": {"authType": "grpc"}}}"#;
        let values = serde_json::from_str(driver).unwrap();
        let values = Values::read(values, ocm_core::values::Kind::Klusterlet).unwrap();
        let or = |driver: Option<DriverArg>, values: &Values| typed(driver).check().unwrap().or(values);
        let of = |driver| or(driver, &values).unwrap().driver.unwrap().auth_type;
        assert_eq!(of(None), RegistrationAuthType::Grpc);
        assert_eq!(of(Some(DriverArg::Csr)), RegistrationAuthType::Csr);
        assert!(or(None, &Values::default()).unwrap().driver.is_none());
        let aws = r#"{"registrationConfiguration": {"registrationDriver": {"authType": "awsirsa"}}}"#;
        let aws = Values::read(serde_json::from_str(aws).unwrap(), ocm_core::values::Kind::Klusterlet).unwrap();
        let wrong = or(None, &aws).unwrap_err();
        assert!(wrong.to_string().contains("--hub-cluster-arn ARN"), "{wrong}");
    }

    #[test]
    fn how_addons_register_is_told_in_the_words_of_flags() {
        let wrong = |auth, seconds| addons(auth, Some(seconds)).unwrap_err().message;
        assert!(wrong(Some(AddOnAuthArg::Csr), 3600).contains("goes with --addon-kubeclient-registration-auth token"));
        assert!(wrong(Some(AddOnAuthArg::Token), 60).contains("600 seconds at least"));
        assert!(addons(Some(AddOnAuthArg::Token), None).unwrap().is_some());
    }

    #[test]
    fn arns_are_checked_and_roles_are_told() {
        let aws = |hub_arn, managed_arn| Typed { hub_arn, managed_arn, ..typed(Some(DriverArg::AwsIrsa)) }.check();
        let right = aws(arn("hub"), arn("c1")).unwrap();
        assert!(right.roles.unwrap().managed.starts_with("arn:aws:iam::123456789012:role/ocm-managed-cluster-"));
        assert_eq!(right.driver.unwrap().aws_irsa.unwrap().hub_cluster_arn, arn("hub").unwrap());
        assert!(aws(arn("hub"), None).unwrap_err().message.contains("needs --hub-cluster-arn"));
        assert!(aws(arn("hub"), arn("hub")).unwrap_err().message.contains("the same cluster"));
        let wrong = aws(Some("hub".to_owned()), arn("c1")).unwrap_err();
        assert!(wrong.message.contains("--hub-cluster-arn \"hub\""), "{wrong}");
    }
}
