//! Definitions and the versions that their objects may be stored in: an API server takes no definition that leaves such a
//! version out, so a release without it cannot be installed.

use serde_json::Value;

use crate::release::{self, Bundle};
use crate::{Failure, Remedy};

/// A definition and its versions.
///
/// Upstream: `manifests/cluster-manager/hub/crds` and `manifests/klusterlet/managed` of 1.2.0, and of
/// open-cluster-management-io/api 1.3.0.
pub type Row = (&'static str, &'static [&'static str]);

/// The first release that the rows speak of; the last is the default one.
const FIRST: &str = "v1.2.0";

/// The definitions of a hub.
pub const HUB_DEFINITIONS: &[Row] = &[
    ("clustermanagers.operator.open-cluster-management.io", &["v1"]),
    ("managedclusters.cluster.open-cluster-management.io", &["v1"]),
    ("managedclustersets.cluster.open-cluster-management.io", &["v1beta2"]),
    ("managedclustersetbindings.cluster.open-cluster-management.io", &["v1beta2"]),
    ("placements.cluster.open-cluster-management.io", &["v1beta1"]),
    ("placementdecisions.cluster.open-cluster-management.io", &["v1beta1"]),
    ("addonplacementscores.cluster.open-cluster-management.io", &["v1alpha1"]),
    ("manifestworks.work.open-cluster-management.io", &["v1"]),
    ("manifestworkreplicasets.work.open-cluster-management.io", &["v1alpha1"]),
    ("clustermanagementaddons.addon.open-cluster-management.io", &["v1alpha1", "v1beta1"]),
    ("managedclusteraddons.addon.open-cluster-management.io", &["v1alpha1", "v1beta1"]),
    ("addondeploymentconfigs.addon.open-cluster-management.io", &["v1alpha1", "v1beta1"]),
    ("addontemplates.addon.open-cluster-management.io", &["v1alpha1"]),
];

/// The definitions of a managed cluster.
pub const KLUSTERLET_DEFINITIONS: &[Row] = &[
    ("klusterlets.operator.open-cluster-management.io", &["v1"]),
    ("appliedmanifestworks.work.open-cluster-management.io", &["v1"]),
    ("clusterclaims.cluster.open-cluster-management.io", &["v1alpha1"]),
];

/// A definition that is there, and the versions in which its objects may be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Name of the definition.
    pub name: String,
    /// `status.storedVersions`.
    pub versions: Vec<String>,
}

/// What a live definition says of itself.
pub fn stored(name: &str, definition: &Value) -> Stored {
    let versions = definition.pointer("/status/storedVersions").and_then(Value::as_array);
    let words = versions.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Stored { name: name.to_owned(), versions: words.collect() }
}

/// Checks that the release has every version in which objects may be stored. Returns what could not be checked.
///
/// # Errors
/// A refusal that names the first definition which an API server would not take.
pub fn check(rows: &[Row], live: &[Stored], bundle: &Bundle) -> Result<Option<String>, Failure> {
    let (first, last) = (Bundle::parse(FIRST).unwrap_or_default(), Bundle::default());
    if !bundle.says_version() || bundle.is_before(&first) || last.is_minor_before(bundle) {
        return Ok(Some(format!(
            "which versions the definitions of {bundle} have is not known here, only those of {FIRST} to {}: the stored \
             versions are not checked",
            release::DEFAULT
        )));
    }
    for (name, versions) in rows {
        let Some(found) = live.iter().find(|found| found.name == *name) else { continue };
        let (keep, lost): (Vec<_>, Vec<_>) =
            found.versions.iter().cloned().partition(|version| versions.contains(&version.as_str()));
        if !lost.is_empty() {
            let keep = if keep.is_empty() { versions.iter().map(|known| (*known).to_owned()).collect() } else { keep };
            return Err(Failure::refused(format!(
                "objects of {name} may be stored as {}, which {bundle} does not have: nothing was changed",
                lost.join(", ")
            ))
            .hint(Remedy::RewriteStored { definition: (*name).to_owned(), keep }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Hint;

    const SETS: &str = "managedclustersets.cluster.open-cluster-management.io";
    const ADDONS: &str = "managedclusteraddons.addon.open-cluster-management.io";

    fn checked(name: &str, versions: &[&str], to: &str) -> Result<Option<String>, Failure> {
        let live = stored(name, &json!({"status": {"storedVersions": versions}}));
        check(HUB_DEFINITIONS, &[live], &Bundle::parse(to).unwrap())
    }

    #[test]
    fn versions_that_the_release_has_may_be_stored() {
        assert_eq!(checked(SETS, &["v1beta2"], "1.3.1"), Ok(None));
        assert_eq!(checked(ADDONS, &["v1alpha1", "v1beta1"], "1.2.0"), Ok(None));
        // Somebody else's, and one that is not there yet.
        assert_eq!(checked("things.example", &["v1"], "1.3.1"), Ok(None));
    }

    #[test]
    fn a_version_that_the_release_lacks_is_refused_with_what_to_do() {
        let refused = checked(SETS, &["v1beta1", "v1beta2"], "1.3.1").unwrap_err();
        assert!(refused.message.contains("may be stored as v1beta1, which v1.3.1 does not have"), "{refused}");
        let remedy = Remedy::RewriteStored { definition: SETS.to_owned(), keep: vec!["v1beta2".to_owned()] };
        assert_eq!(refused.hints, [Hint::Remedy(remedy)]);
        assert!(checked(ADDONS, &["v1alpha0"], "1.2.0").is_err());
    }

    #[test]
    fn releases_of_which_nothing_is_known_are_told() {
        for unknown in ["latest", "1.9.0", "1.1.3", "0.16.0"] {
            assert!(checked(SETS, &["v1beta1"], unknown).unwrap().is_some(), "{unknown}");
        }
        assert!(check(HUB_DEFINITIONS, &[], &Bundle::of_tag("mine").unwrap()).unwrap().is_some());
    }
}
