//! The verbs by which the processes of a cluster start each other.

use crate::error::Error;
use crate::{image, node, supervise};

/// The verbs by which the processes of a cluster start each other. They are no interface for people.
#[doc(hidden)]
pub fn internal(verb: &str, argument: &str) -> Option<Result<(), Error>> {
    match verb {
        "supervise" => Some(supervise::supervise(argument)),
        "node" => Some(node::node(argument)),
        "images" => Some(image::fill(argument)),
        _ => None,
    }
}
