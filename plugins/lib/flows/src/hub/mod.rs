//! Where agents find their hub, and what kubeconfigs say of it.

mod address;
mod kubeconfig;

pub use address::{
    AddressOptions, CLUSTER_INFO_PATH, FoundAddress, address, cluster_info, published, root_ca, uid, vouching,
};
pub(crate) use address::{ROOT_CA, known_uid, readable_root_ca, servers, vouching_by_either};
pub use kubeconfig::{entries, parse, way};
