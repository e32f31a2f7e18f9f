//! Options of a hub that cannot be.

use super::Driver;

/// Why options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionsError {
    /// No pod of the operator would run.
    NoReplicas,
    /// A setting is of a driver that the hub does not have.
    DriverIsOff(Driver, DriverSetting),
    /// The driver awsirsa has no ARN of the hub.
    NoHubArn,
    /// The driver grpc has no address under which agents find it.
    NoGrpcAddress,
    /// The address of the gRPC server is none.
    NotAnAddress(String),
    /// Identities are to be approved by a hub that approves nothing by itself.
    AutoApprovalIsOff,
}

/// A setting that only one driver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverSetting {
    /// Whom the hub approves by itself.
    AutoApproved,
    /// The ARN of the hub.
    HubArn,
    /// Tags of the IAM resources.
    Tags,
    /// The address of the server, or how it is exposed.
    Address,
    /// The Service that exposes the server.
    Exposure,
}
