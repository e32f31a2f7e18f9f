//! What goes with the definition of an add-on, and what does not go.

use serde_json::Value;

use super::configuration::text;
use crate::hub_addon::maker;
use crate::work::{Owner, owner};
use crate::{Failure, Remedy};

/// An AddOnTemplate of an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whose it is, for people, if it is not ours: then it stays.
    pub kept: Option<String>,
}

/// The AddOnTemplates of an add-on, of all that a hub has. Upstream: `AddOnTemplateSpec.addonName`.
pub fn templates(name: &str, all: &[Value]) -> Vec<Template> {
    let of = |live: &Value| Template {
        name: text(&live["metadata"], "name").to_owned(),
        uid: text(&live["metadata"], "uid").to_owned(),
        kept: match maker(live) {
            Some(hub_addon) => Some(format!("belongs to hub add-on {hub_addon:?}")),
            None => owner(live, live).told(),
        },
    };
    all.iter().filter(|live| text(&live["spec"], "addonName") == name).map(of).collect()
}

/// Why the definition of an add-on is not deleted: something would make it anew, or belongs to it besides. None if it can be.
pub fn why_not_deleted(name: &str, definition: &Value) -> Option<Failure> {
    let belongs = |whose: String| {
        Failure::refused(format!("ClusterManagementAddOn {name:?} belongs to {whose}: nothing was deleted"))
    };
    if let Some(hub_addon) = maker(definition) {
        return Some(
            belongs(format!("hub add-on {hub_addon:?}")).hint(Remedy::UninstallHubAddOn(hub_addon.to_owned())),
        );
    }
    match owner(definition, definition) {
        Owner::Kept(keeper) => {
            Some(belongs(format!("{keeper}, which would recreate it")).hint("delete what it belongs to"))
        }
        Owner::Ours | Owner::Others(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hub_addon::LABEL;
    use crate::reconcile::FIELD_MANAGER;
    use crate::{Hint, Reason};

    fn template(name: &str, addon: &str, manager: &str) -> Value {
        json!({
            "metadata": {"name": name, "uid": format!("uid-{name}"), "managedFields": [{"manager": manager, "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:labels": {(format!("f:{LABEL}")): {}}},
                    "f:spec": {"f:addonName": {}, "f:agentSpec": {}}}}]},
            "spec": {"addonName": addon, "agentSpec": {}},
        })
    }

    #[test]
    fn only_templates_of_the_add_on_that_we_have_written_go() {
        let mut labelled = template("a-3", "a", FIELD_MANAGER);
        labelled["metadata"]["labels"] = json!({LABEL: "hub"});
        let mut owned = template("a-4", "a", FIELD_MANAGER);
        owned["metadata"]["ownerReferences"] = json!([{"kind": "App", "name": "x"}]);
        let all = [
            template("a-1", "a", FIELD_MANAGER),
            template("a-2", "a", "helm"),
            labelled,
            owned,
            template("b-1", "b", FIELD_MANAGER),
        ];
        let told: Vec<(String, String, Option<String>)> =
            templates("a", &all).into_iter().map(|one| (one.name, one.uid, one.kept)).collect();
        let of = |name: &str, kept: Option<&str>| (name.to_owned(), format!("uid-{name}"), kept.map(str::to_owned));
        assert_eq!(
            told,
            [
                of("a-1", None),
                of("a-2", Some("was written by helm")),
                of("a-3", Some("belongs to hub add-on \"hub\"")),
                of("a-4", Some("belongs to App \"x\"")),
            ]
        );
    }

    #[test]
    fn a_definition_that_something_would_make_anew_stays() {
        let plain = template("a", "a", "helm");
        assert_eq!(why_not_deleted("a", &plain), None);
        let mut owned = plain.clone();
        owned["metadata"]["ownerReferences"] = json!([{"kind": "App", "name": "x"}]);
        let failure = why_not_deleted("a", &owned).unwrap();
        assert_eq!(failure.reason, Reason::Refused);
        assert!(failure.message.contains("belongs to App \"x\", which would recreate it"), "{failure:?}");
        let mut of_hub = template("a", "a", FIELD_MANAGER);
        of_hub["metadata"]["labels"] = json!({LABEL: "hub"});
        let failure = why_not_deleted("a", &of_hub).unwrap();
        assert_eq!(failure.hints, [Hint::from(Remedy::UninstallHubAddOn("hub".to_owned()))]);
    }
}
