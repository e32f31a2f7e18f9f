//! Columns of the add-ons that a hub offers.

use jiff::Timestamp;
use ocm_cli::list::{NONE, View, age};
use ocm_core::addon::placements;
use ocm_core::hub_addon::{display_name, installed_by, strategy};
use ocm_core::leave::some;
use ocm_flows::hub_addons::HubAddOnRow;
use serde_json::{Value, json};

fn names(all: &[String]) -> String {
    if all.is_empty() { NONE.to_owned() } else { some(all) }
}

/// What can be enabled on clusters.
pub(crate) struct HubAddOns;

impl View for HubAddOns {
    type Row = HubAddOnRow;

    const HEADINGS: &'static [&'static str] =
        &["NAME", "DISPLAY NAME", "STRATEGY", "CLUSTERS", "AGE", "INSTALLED BY", "PLACEMENTS", "ENABLED ON"];
    const NARROW: usize = 6;
    const NOTHING: &'static str = "the hub offers no add-ons";
    const NO_MATCH: &'static str = "no add-on that the hub offers matches";
    const COLUMNS: &'static [&'static str] = &["name", "strategy", "age"];

    fn cells(row: &HubAddOnRow, now: Timestamp) -> Vec<String> {
        let object = Self::object(row);
        vec![
            row.name().to_owned(),
            display_name(&object).unwrap_or(NONE).to_owned(),
            strategy(&object).to_owned(),
            format!("{}/{}", row.available, row.enabled.len()),
            age(now, row.created()),
            installed_by(&object).unwrap_or_else(|| NONE.to_owned()),
            names(&placements(&object)),
            names(&row.enabled),
        ]
    }

    fn reference(row: &HubAddOnRow) -> String {
        format!("clustermanagementaddon.addon.open-cluster-management.io/{}", row.name())
    }

    fn document(row: &HubAddOnRow) -> Value {
        let mut object = Self::object(row);
        let mut standing = json!({
            "strategy": strategy(&object),
            "enabled": row.enabled,
            "available": row.available,
        });
        for (member, value) in
            [("displayName", display_name(&object).map(str::to_owned)), ("installedBy", installed_by(&object))]
        {
            if let Some(value) = value {
                standing[member] = value.into();
            }
        }
        if let Some(members) = object.as_object_mut() {
            members.insert("standing".to_owned(), standing);
        }
        object
    }

    fn object(row: &HubAddOnRow) -> Value {
        serde_json::to_value(&row.object).unwrap_or_default()
    }

    fn created(row: &HubAddOnRow) -> Option<Timestamp> {
        row.created()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_add_on_is_told_with_its_clusters_and_who_has_installed_it() {
        let object = json!({"metadata": {"name": "hello", "managedFields": [{"manager": "helm", "operation": "Update"}]},
            "spec": {"addOnMeta": {"displayName": "Hello"}, "installStrategy": {"type": "Placements", "placements": [
                {"namespace": "team", "name": "web"}]}}});
        let row = HubAddOnRow {
            object: serde_json::from_value(object).unwrap(),
            enabled: vec!["c1".to_owned(), "c2".to_owned()],
            available: 1,
        };
        assert_eq!(
            HubAddOns::cells(&row, Timestamp::UNIX_EPOCH),
            ["hello", "Hello", "Placements", "1/2", NONE, "helm", "team/web", "c1, c2"]
        );
        assert_eq!(
            HubAddOns::document(&row)["standing"],
            json!({"displayName": "Hello", "strategy": "Placements", "enabled": ["c1", "c2"], "available": 1,
                "installedBy": "helm"})
        );
    }
}
