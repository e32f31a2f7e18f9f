//! From a module to a policy that can be asked.

use std::sync::Arc;

use ocm_policy_engine::{
    Artifact, Asked, Cache, Ceiling, Compiler, Engine, Kind, Policy, PolicyError, componentize, inspect, pass_cases,
};
use ocm_policy_rules::CONDITIONS;

use super::{Wanted, With};

/// What makes policies of modules.
pub(super) struct Loader {
    pub(super) engine: Engine,
    pub(super) compiler: Compiler,
    pub(super) cache: Option<Cache>,
}

/// Why a version is not put in force, and what that lies with.
pub(super) struct NotLoaded {
    pub(super) error: PolicyError,
    pub(super) with: With,
}

impl From<PolicyError> for NotLoaded {
    fn from(error: PolicyError) -> Self {
        Self { error: error.bounded(), with: With::Policy }
    }
}

impl Loader {
    /// As [`Self::load`], if it passes its test cases.
    pub(super) fn tested(&self, module: &[u8], wanted: &Wanted) -> Result<Arc<Policy>, NotLoaded> {
        let policy = self.load(module, wanted)?;
        if let Some(cases) = &wanted.tests {
            let with = |settings: &str| {
                if settings == wanted.settings {
                    return Ok(policy.clone());
                }
                self.load(module, &Wanted { settings: settings.to_owned(), ..wanted.clone() })
            };
            pass_cases(cases, &wanted.settings, with)
                .map_err(|why| NotLoaded { error: PolicyError::Load(why).bounded(), with: With::Tests })?;
        }
        Ok(policy)
    }

    /// Compiles a module, or takes it from the cache, and loads it for its place.
    pub(super) fn load(&self, module: &[u8], wanted: &Wanted) -> Result<Arc<Policy>, PolicyError> {
        let ceiling = Ceiling::default().lowered(&wanted.limits);
        let artifact = self.artifact(module, &wanted.settings, &ceiling)?;
        if artifact.header().manifest.operations.is_empty() {
            return Err(PolicyError::Load("it judges no operation at all, so it would never be asked".to_owned()));
        }
        let asked = Asked::of(wanted.scope.clone(), &self.engine, |settings, ceiling| {
            let conditions = ocm_policy_builtin::find(CONDITIONS).map_or(&[][..], |found| found.module);
            self.artifact(conditions, settings, ceiling)
        })?;
        Policy::load_as(&wanted.name, &self.engine, &artifact, &ceiling, &wanted.edits, asked)
    }

    fn artifact(&self, module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Artifact, PolicyError> {
        let made;
        let module = match inspect(module)?.kind {
            Kind::Core => {
                made = componentize(module)?;
                &made
            }
            _ => module,
        };
        match &self.cache {
            Some(cache) => cache.artifact(&self.compiler, module, settings, ceiling),
            None => self.compiler.compile(module, settings, ceiling),
        }
    }
}
