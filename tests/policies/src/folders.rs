//! Where guests and caches are.

use std::path::{Path, PathBuf};

/// The guests of these tests.
pub fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests")
}

/// The cache of this project, outside the clone.
pub fn user_cache() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    base.expect("the user has a cache").join("kubectl-ocm")
}
