//! Real Kubernetes clusters with real Open Cluster Management for tests and for the demo, on this machine, without
//! Docker.
//!
//! A cluster is one tree of processes:
//!
//! ```text
//! the runner (a test, the demo)
//!   └ control-plane supervise      outside: takes a place, makes the namespaces, cleans up at the end
//!       └ control-plane node       the first process; of a whole node it is process 1 of its own namespaces
//!           └ etcd, kube-apiserver, …, containerd and the pods
//! ```
//!
//! Each of the upper three holds a pipe to the one below. When one dies, in whatever way, the pipe closes and
//! everything below ends; when the first process of the namespaces dies, the kernel ends the rest.
//!
//! [`Size::Api`] is an API server with what signs certificates, without root. [`Size::Node`] runs pods, with the images
//! of OCM if it is asked to.

mod binaries;
mod cache;
mod cluster;
mod config;
mod error;
mod http;
mod image;
mod network;
mod node;
mod order;
mod packages;
mod pki;
mod progress;
mod python;
mod run;
mod slots;
mod supervise;
mod tool;
mod verbs;

pub use binaries::{
    Binaries, GO_FLAGS, binaries, binaries_observed, earlier_ocm_version, go_program, go_tool, ocm_version,
};
pub use cluster::{Allowed, Answered, ApiServer, Cluster, Spec, prepare_nodes, shared};
pub use error::Error;
pub use order::Size;
pub use packages::{emulator, packages, proxy_program};
pub use progress::{Observer, Progress, print};
pub use python::Package;
#[doc(hidden)]
pub use verbs::internal;
