//! Plans: what a command is going to apply or to delete, as a value that dry-run, diff, render, apply and removal consume.

use ocm_api::Manifest;
use serde_json::Value;

use crate::DryRun;

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

    /// Puts an object in the place of the one of its kind, namespace and name.
    pub fn replace(&mut self, manifest: Manifest) {
        let same = |object: &&mut Manifest| {
            (object.api_version(), object.kind(), object.namespace(), object.name())
                == (manifest.api_version(), manifest.kind(), manifest.namespace(), manifest.name())
        };
        if let Some(object) = self.stages.iter_mut().flat_map(|stage| &mut stage.objects).find(same) {
            *object = manifest;
        }
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

/// What is done with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Its manifests are printed; nothing but reads is sent.
    Render,
    /// What would change is printed, as the server defaults it; nothing is stored.
    Diff,
    /// It is applied, or tried.
    Apply(DryRun),
}

impl Mode {
    /// How much of it is only tried.
    pub const fn dry_run(self) -> DryRun {
        match self {
            Self::Render => DryRun::Client,
            Self::Diff => DryRun::Server,
            Self::Apply(dry_run) => dry_run,
        }
    }

    /// Whether anything is changed.
    pub fn changes(self) -> bool {
        self.dry_run() == DryRun::No
    }
}

/// An object of a plan, and what the cluster holds under its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The planned object.
    pub manifest: Manifest,
    /// The live one, if there is one.
    pub live: Option<Value>,
}

/// What became of one object of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The planned object, as it was sent.
    pub manifest: Manifest,
    /// What happened, or would happen.
    pub outcome: Outcome,
    /// The object before, if there was one.
    pub before: Option<Value>,
    /// The object after, as the server answered; the planned one where a dry run could not ask; null where it is gone.
    pub after: Value,
}

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was not there before.
    Created,
    /// It changed.
    Configured,
    /// It is as it was, [without what the server notes down for itself](without_bookkeeping).
    Unchanged,
    /// It was left alone, for this reason.
    Kept(String),
    /// It was there, and is no more.
    Deleted,
    /// It was to be deleted, and was not there.
    Absent,
}

impl Outcome {
    /// The word that stands behind the object's name, as kubectl has it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Kept(_) => "kept",
            Self::Deleted => "deleted",
            Self::Absent => "absent",
        }
    }

    /// Whether the object is, or would be, different afterwards.
    pub const fn is_change(&self) -> bool {
        matches!(self, Self::Created | Self::Configured | Self::Deleted)
    }
}

/// The object without what the server notes down for itself.
pub fn without_bookkeeping(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"] {
            metadata.remove(key);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::*;

    fn secret(namespace: &str, value: &str) -> Manifest {
        let mut secret = Secret::default();
        secret.metadata.name = Some("s".to_owned());
        secret.metadata.namespace = Some(namespace.to_owned());
        let mut manifest = Manifest::of(&secret);
        manifest.body_mut()["data"] = json!({ "token": value });
        manifest
    }

    #[test]
    fn an_object_takes_the_place_of_its_draft_and_of_no_other() {
        let mut plan = Plan::new([
            Stage::new("first", vec![secret("other", "kept"), secret("own", "draft")]),
            Stage::new("none", Vec::new()),
        ]);
        plan.replace(secret("own", "real"));
        let values: Vec<&Value> = plan.objects().map(|object| &object.body()["data"]["token"]).collect();
        assert_eq!(values, ["kept", "real"]);
        assert_eq!(plan.stages.len(), 1);
        assert!(!format!("{plan:?}").contains("real"));
    }

    #[test]
    fn only_applying_changes_anything() {
        let changing = [Mode::Render, Mode::Diff, Mode::Apply(DryRun::Client), Mode::Apply(DryRun::Server)];
        assert!(changing.iter().all(|mode| !mode.changes()));
        assert!(Mode::Apply(DryRun::No).changes());
    }
}
