//! Options of a hub that cannot be.

use super::{Driver, HubMode};

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
    /// The gRPC server is to be reached by a Gateway, and none is named; or one is named, and it is to be reached in another way.
    Gateway,
    /// Agents are to ask a Gateway for this host, which is an IP address.
    NotAName(String),
    /// The gRPC server is to be reached by a Gateway, and its certificate is to be for a load balancer.
    BalancedGateway,
    /// Identities are to be approved by a hub that approves nothing by itself.
    AutoApprovalIsOff,
    /// This identity, or pattern of identities, is to be approved and has a comma: the hub would take each part for one.
    CommaInIdentity(String),
    /// This identity, or pattern of identities, is to be approved and has a quotation mark, a backslash or a control character,
    /// with which the operator would write no Deployment that can be read.
    QuoteInIdentity(String),
    /// The hub that is there is in this mode, and another one was typed.
    OtherMode(HubMode),
    /// The hub is hosted, and nothing says which cluster it is.
    NoHub,
    /// The hub's pods are to run on the hub itself, and something was typed that only a hosted hub has.
    NotHosted,
    /// Nothing says where the hub's API server finds the webhooks of a hosted hub.
    NoWebhookAddress,
    /// This release asks both webhooks of a hosted hub at one port, and two were given.
    WebhookPortsDiffer(String),
    /// Both webhooks of a hosted hub are to be reached at this port of the nodes.
    WebhooksShareNodePort(u16),
    /// A hosted hub has no gRPC server that agents could reach.
    HostedGrpc,
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
