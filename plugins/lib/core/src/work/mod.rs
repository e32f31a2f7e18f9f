//! Works that people create: what stands in their files, the ManifestWorks that bring it to clusters, whose a work is that is
//! there, and what became of each object.
//!
//! ```text
//! documents ─▶ Content ─▶ spec ─▶ plan: one ManifestWork for each cluster ─▶ objects, with what keeps each from being there
//! ```

mod content;
mod objects;
mod owner;
mod placement;
mod spec;

pub use content::{Content, Document, LIMIT};
pub use objects::{ObjectStanding, objects};
pub use owner::{Owner, keeper, owner};
pub use placement::decided;
pub use spec::{
    Executor, WorkOptions, is_object_name, is_replica_set_name, plan, replica_set_plan, spec, unsure_resources,
    with_defaults_of,
};
