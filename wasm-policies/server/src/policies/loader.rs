//! From a module to a policy that can be asked.

use std::sync::Arc;

use ocm_policy_abi::LimitsAsked;
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
        let ceiling = ceiling(&wanted.limits);
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
        Policy::load_as(&wanted.name, &self.engine, &artifact, &ceiling, &wanted.edits)
    }
}

/// The server's ceiling, or the administrator's where it is lower.
fn ceiling(limits: &LimitsAsked) -> Ceiling {
    let mut ceiling = Ceiling::default();
    if let Some(fuel) = limits.fuel {
        ceiling.most.fuel = ceiling.most.fuel.min(fuel);
    }
    if let Some(bytes) = limits.memory_bytes {
        ceiling.most.memory_bytes = ceiling.most.memory_bytes.min(bytes);
    }
    ceiling.usual.fuel = ceiling.usual.fuel.min(ceiling.most.fuel);
    ceiling.usual.memory_bytes = ceiling.usual.memory_bytes.min(ceiling.most.memory_bytes);
    ceiling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_administrator_lowers_the_ceiling_and_never_raises_it() {
        let usual = Ceiling::default();
        assert_eq!(ceiling(&LimitsAsked::default()), usual);
        assert_eq!(ceiling(&LimitsAsked { fuel: Some(u64::MAX), memory_bytes: Some(u64::MAX) }), usual);
        let low = ceiling(&LimitsAsked { fuel: Some(1000), memory_bytes: Some(1 << 16) });
        assert_eq!((low.most.fuel, low.usual.fuel), (1000, 1000));
        assert_eq!((low.most.memory_bytes, low.usual.memory_bytes), (1 << 16, 1 << 16));
    }
}
