//! What can be chosen about a hub.

use std::collections::BTreeMap;

use ocm_api::operator::ResourceRequirement;

use super::gateway::Gateway;
use super::hosting::Hosting;
use crate::gates::Gate;
use crate::images::Digests;
use crate::operator::PullCredentials;
use crate::release::{Bundle, Component};
use crate::scheduling::Scheduling;
use crate::values::Values;

/// What was typed. Whatever is empty was not.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The release.
    pub bundle: Option<Bundle>,
    /// Where all images are.
    pub registry: Option<String>,
    /// Images of single components.
    pub images: BTreeMap<Component, String>,
    /// Digests of the images that were not typed one by one.
    pub digests: Digests,
    /// A part of the spec of the ClusterManager, below what was typed.
    pub values: Values,
    /// Registry credentials, a Docker configuration file.
    pub pull_credentials: Option<PullCredentials>,
    /// Feature gates.
    pub feature_gates: Vec<(&'static Gate, bool)>,
    /// Ways in which clusters may register.
    pub registration_drivers: Option<Vec<Driver>>,
    /// ARN of the hub's EKS cluster.
    pub hub_cluster_arn: Option<String>,
    /// The ARN that it has where nothing else says one.
    pub usual_hub_arn: Option<String>,
    /// Tags of IAM resources.
    pub aws_resource_tags: Vec<String>,
    /// Users whose CSRs the hub approves by itself.
    pub auto_approved_csr_identities: Vec<String>,
    /// Patterns of the ARNs of clusters that the hub approves by itself.
    pub auto_approved_arn_patterns: Vec<String>,
    /// Users whose requests over gRPC the hub approves by itself.
    pub auto_approved_grpc_identities: Vec<String>,
    /// How agents reach the gRPC server.
    pub grpc_endpoint: Option<GrpcEndpoint>,
    /// Address of the gRPC server: host, and the port at which agents find it.
    pub grpc_server: Option<String>,
    /// By what of ours agents reach the gRPC server.
    pub expose_grpc: Option<GrpcExposure>,
    /// The Gateway by which they reach it.
    pub grpc_gateway: Option<Gateway>,
    /// The API version in which the hub serves TLSRoutes, where it was asked.
    pub route_version: Option<String>,
    /// CPU and memory of the hub's pods.
    pub resources: Option<ResourceRequirement>,
    /// On which nodes the hub's pods and those of its operator run.
    pub scheduling: Scheduling,
    /// Whether bootstrap tokens may register clusters.
    pub use_bootstrap_token: bool,
    /// Whether the operator copies the ClusterManager's labels to what it creates.
    pub enable_sync_labels: Option<bool>,
    /// Whether the namespace is part of the plan.
    pub create_namespace: bool,
    /// Number of the operator's pods.
    pub replicas: Option<i32>,
    /// On which cluster the hub's pods run.
    pub hosting: Hosting,
}

/// A way in which clusters register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Client certificates.
    Csr,
    /// AWS IAM roles.
    AwsIrsa,
    /// Certificates over gRPC.
    Grpc,
}

impl Driver {
    /// The word in the ClusterManager, and the name of the member with its settings.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Csr => "csr",
            Self::AwsIrsa => "awsirsa",
            Self::Grpc => "grpc",
        }
    }
}

/// What makes the gRPC server reachable from outside of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcExposure {
    /// At a port of the hub's nodes.
    NodePort,
    /// By a load balancer.
    LoadBalancer,
    /// By a Gateway of Gateway API that is there.
    Gateway,
}

/// How the gRPC server is exposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrpcEndpoint {
    /// Under a host name that somebody routes to the Service.
    #[default]
    Hostname,
    /// By a Service of type LoadBalancer.
    LoadBalancer,
}
