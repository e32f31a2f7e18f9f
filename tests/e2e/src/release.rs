//! The releases of OCM whose images the clusters hold.

use std::sync::LazyLock;

/// The release of OCM whose images the clusters hold, without the `v`.
///
/// # Panics
///
/// When nothing says which release the given binaries are.
pub fn bundle() -> &'static str {
    static BUNDLE: LazyLock<String> = LazyLock::new(|| {
        let version = control_plane::ocm_version().unwrap_or_else(|error| panic!("{error}"));
        version.trim_start_matches('v').to_owned()
    });
    &BUNDLE
}

/// The release before [`bundle`], without the `v`, under whose name the clusters hold the same images.
///
/// # Panics
///
/// When there is none, or nothing says which release the given binaries are.
pub fn earlier_bundle() -> &'static str {
    static EARLIER: LazyLock<String> = LazyLock::new(|| {
        let version = control_plane::earlier_ocm_version().unwrap_or_else(|error| panic!("{error}"));
        version.expect("there is an earlier release").trim_start_matches('v').to_owned()
    });
    &EARLIER
}
