//! Plans: what a command is going to apply, as a value that dry-run, diff, render and apply all consume.

use ocm_api::Manifest;

/// Objects in the order in which they must exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Each stage is applied when the one before it is there.
    pub stages: Vec<Stage>,
}

/// Objects that do not depend on each other: they are applied at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What the stage is, for people: `custom resource definitions`.
    pub name: &'static str,
    /// Its objects, in the order in which they are printed.
    pub objects: Vec<Manifest>,
}

impl Plan {
    /// A plan of stages; empty stages are left out.
    pub fn new(stages: impl IntoIterator<Item = Stage>) -> Self {
        Self { stages: stages.into_iter().filter(|stage| !stage.objects.is_empty()).collect() }
    }

    /// All objects in the order of the plan.
    pub fn objects(&self) -> impl Iterator<Item = &Manifest> {
        self.stages.iter().flat_map(|stage| &stage.objects)
    }

    /// Whether the plan itself creates what `manifest` needs to exist on a server: its namespace or its kind.
    /// A server-side dry run cannot validate such an object, because the former does not exist yet.
    pub fn provides_for(&self, manifest: &Manifest) -> bool {
        self.objects().any(|object| match object.kind() {
            "Namespace" => manifest.namespace() == Some(object.name()),
            "CustomResourceDefinition" => object.name() == format!("{}.{}", manifest.plural(), manifest.group()),
            _ => false,
        })
    }
}

impl Stage {
    /// A stage with its objects.
    pub fn new(name: &'static str, objects: Vec<Manifest>) -> Self {
        Self { name, objects }
    }
}
