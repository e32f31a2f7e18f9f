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
    /// Identities are to be approved by a hub that approves nothing by itself.
    AutoApprovalIsOff,
    /// Amounts are given for a class of resources that has none.
    ClassWithoutAmounts,
    /// The class of resources needs amounts.
    NoAmounts,
    /// An amount of CPU, memory or the like cannot be read.
    NotAnAmount {
        /// In which list it stands.
        list: AmountList,
        /// Of which resource.
        name: String,
        /// What was given.
        text: String,
    },
    /// More is asked for than allowed.
    AboveLimit {
        /// Of which resource.
        name: String,
        /// What is asked for.
        request: String,
        /// What is allowed.
        limit: String,
    },
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
}

/// A list of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountList {
    /// What a container may use.
    Limits,
    /// What a container asks for.
    Requests,
}
