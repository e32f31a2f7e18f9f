//! From a module to a policy that can be asked.

use std::sync::Arc;

use ocm_policy_engine::{Cache, Ceiling, Compiler, Engine, Kind, Policy, PolicyError, componentize, inspect};

use super::Wanted;

/// What makes policies of modules.
pub(super) struct Loader {
    pub(super) engine: Engine,
    pub(super) compiler: Compiler,
    pub(super) cache: Option<Cache>,
}

impl Loader {
    /// Compiles a module, or takes it from the cache, and loads it for its place.
    pub(super) fn load(&self, module: &[u8], wanted: &Wanted) -> Result<Arc<Policy>, PolicyError> {
        let ceiling = Ceiling::default().lowered(&wanted.limits);
        let made;
        let module = match inspect(module)?.kind {
            Kind::Core => {
                made = componentize(module)?;
                &made
            }
            _ => module,
        };
        let artifact = match &self.cache {
            Some(cache) => cache.artifact(&self.compiler, module, &wanted.settings, &ceiling)?,
            None => self.compiler.compile(module, &wanted.settings, &ceiling)?,
        };
        if artifact.header().manifest.operations.is_empty() {
            return Err(PolicyError::Load("it judges no operation at all, so it would never be asked".to_owned()));
        }
        Policy::load_as(&wanted.name, &self.engine, &artifact, &ceiling, &wanted.edits, wanted.scope.clone())
    }
}
