//! What a plan, and what became of it, look like: the same for every command that has one.

use std::cell::RefCell;
use std::sync::Arc;

use diffy::DiffOptions;
use ocm_api::Manifest;
use ocm_core::plan::{Applied, Mode, Outcome, Plan, without_bookkeeping};
use ocm_core::{Event, Exit, Failure, Narrator};
use serde_json::{Map, Value, json};

use crate::{Format, PlanArgs, Ui, document, object_list};

/// Prints a plan or what became of it.
pub struct PlanView {
    ui: Arc<Ui>,
    format: Format,
    mode: Mode,
    show_secrets: bool,
    namespaces: bool,
    objects: RefCell<Vec<Value>>,
    changed: RefCell<bool>,
}

impl PlanView {
    /// A view as the command line asks for it.
    ///
    /// # Errors
    /// A usage failure for a format that cannot be.
    pub fn new(ui: Arc<Ui>, args: &PlanArgs, format: Format) -> Result<Self, Failure> {
        Ok(Self { show_secrets: args.show_secrets, ..Self::of(ui, args.mode(format)?, format) })
    }

    /// A view of a plan that is only carried out, or tried.
    pub fn of(ui: Arc<Ui>, mode: Mode, format: Format) -> Self {
        let (objects, changed) = (RefCell::default(), RefCell::default());
        Self { ui, format, mode, show_secrets: false, namespaces: false, objects, changed }
    }

    /// The same, for objects that differ in their namespaces alone: these are told in every table.
    #[must_use]
    pub fn with_namespaces(mut self) -> Self {
        self.namespaces = true;
        self
    }

    /// What is done with the plan.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How it is printed.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether an object was changed for real.
    pub fn has_changed(&self) -> bool {
        self.mode.changes() && *self.changed.borrow()
    }

    /// A table, in the formats of people.
    pub fn table(&self, table: &str) {
        if self.format.is_human() {
            self.ui.out(table);
        }
    }

    /// One object, as soon as it is there or gone. Why one is left alone is said on stderr; what was not there to be
    /// deleted is told in the machine formats only.
    pub fn row(&self, applied: &Applied) {
        self.tell(applied, None);
    }

    /// The same of a command that changes several clusters: `cluster` says on which one it is.
    pub fn row_on(&self, cluster: &str, applied: &Applied) {
        self.tell(applied, Some(cluster));
    }

    fn tell(&self, applied: &Applied, cluster: Option<&str>) {
        let Applied { manifest, outcome, .. } = applied;
        let (reference, word) = (manifest.reference(), outcome.word());
        if let Outcome::Kept(reason) = outcome {
            self.ui.tell(Event::note(format!("{reference} stays as it is: {reason}")));
        }
        if outcome.is_change() {
            *self.changed.borrow_mut() = true;
        }
        let place = cluster.map(|cluster| format!(" ({cluster})")).unwrap_or_default();
        let remark = format!("{}{place}", self.mode.dry_run().remark());
        match self.format {
            _ if self.mode == Mode::Diff => {}
            Format::Name | Format::Table | Format::Wide if *outcome == Outcome::Absent => {}
            Format::Name => self.ui.line(&reference),
            Format::Table if !self.namespaces => self.ui.line(&format!("{reference} {word}{remark}")),
            Format::Table | Format::Wide => {
                let namespace = manifest.namespace().map(|name| format!(" -n {name}")).unwrap_or_default();
                self.ui.line(&format!("{reference}{namespace} {word}{remark}"));
            }
            Format::Json | Format::Yaml => {
                let mut object = applied_document(applied);
                if let Some(cluster) = cluster {
                    object["cluster"] = Value::from(cluster);
                }
                self.objects.borrow_mut().push(object);
            }
        }
    }

    /// The document of the machine formats: what the command has to say, and every object that was told. Nothing in the
    /// formats of people.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn document(&self, mut members: Map<String, Value>) -> Result<(), Failure> {
        if !matches!(self.format, Format::Json | Format::Yaml) {
            return Ok(());
        }
        members.retain(|_, value| !value.is_null());
        members.insert("dryRun".to_owned(), Value::from(self.mode.dry_run().word()));
        members.insert("changed".to_owned(), Value::from(*self.changed.borrow()));
        members.insert("objects".to_owned(), Value::Array(self.objects.take()));
        self.ui.out(&document(self.format, &Value::Object(members))?);
        Ok(())
    }

    /// The manifests of a plan: a stream of YAML documents, a List or their names.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn manifests(&self, plan: &Plan) -> Result<Exit, Failure> {
        let objects: Vec<Value> = plan.objects().map(|manifest| self.shown(manifest)).collect();
        match self.format {
            Format::Json => self.ui.out(&document(Format::Json, &object_list(objects))?),
            Format::Name => plan.objects().for_each(|manifest| self.ui.line(&manifest.reference())),
            Format::Table | Format::Wide | Format::Yaml => {
                for object in &objects {
                    self.ui.out(&format!("---\n{}", document(Format::Yaml, object)?));
                }
            }
        }
        if !self.show_secrets && self.format != Format::Name && plan.objects().any(holds_secrets) {
            self.ui.tell(Event::note("the contents of Secrets are left out; --show-secrets prints them"));
        }
        Ok(Exit::Ok)
    }

    fn shown(&self, manifest: &Manifest) -> Value {
        if self.show_secrets || !holds_secrets(manifest) { manifest.body().clone() } else { manifest.redacted() }
    }

    /// What would change, as unified diffs; [`Exit::Findings`] if anything would.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn diff(&self, all: &[Applied]) -> Result<Exit, Failure> {
        let mut exit = Exit::Ok;
        for applied in all {
            if let Some(text) = diff(applied)? {
                exit = Exit::Findings;
                self.ui.out(&text);
            }
        }
        Ok(exit)
    }
}

/// Whether an object has contents that must not be shown. A pull Secret with the `{}` that stands for no credentials
/// holds none, and without it the manifests are complete.
pub fn holds_secrets(manifest: &Manifest) -> bool {
    manifest.body()["data"][".dockerconfigjson"] != "e30=" && manifest.redacted() != *manifest.body()
}

/// What became of an object, as machines read it.
pub fn applied_document(applied: &Applied) -> Value {
    let Applied { manifest, outcome, .. } = applied;
    let mut object = json!({
        "apiVersion": manifest.api_version(),
        "kind": manifest.kind(),
        "name": manifest.name(),
        "outcome": outcome.word(),
    });
    if let Some(namespace) = manifest.namespace() {
        object["namespace"] = Value::from(namespace);
    }
    if let Outcome::Kept(reason) = outcome {
        object["reason"] = Value::from(reason.as_str());
    }
    object
}

/// What would change in an object, as a unified diff; none if nothing.
fn diff(applied: &Applied) -> Result<Option<String>, Failure> {
    let Applied { manifest, outcome, before, after } = applied;
    if !outcome.is_change() {
        return Ok(None);
    }
    let yaml = |object: &Value| match object {
        Value::Null => Ok(String::new()),
        object => document(Format::Yaml, object),
    };
    let before = before.as_ref().unwrap_or(&Value::Null);
    let (old, mut new) = (plain(before), plain(after));
    mark_secrets(before, after, &mut new);
    mark_changed(before, after, &mut new, "binaryData");
    let (old, new) = (yaml(&old)?, yaml(&new)?);
    let name = match manifest.namespace() {
        Some(namespace) => format!("{namespace}/{}", manifest.reference()),
        None => manifest.reference(),
    };
    if old == new {
        return Ok(None);
    }
    let mut options = DiffOptions::new();
    options.set_original_filename(format!("live/{name}")).set_modified_filename(format!("planned/{name}"));
    Ok(Some(options.create_patch(&old, &new).to_string()))
}

/// The object without book-keeping, status, secrets and bytes that nobody reads.
fn plain(object: &Value) -> Value {
    let mut object = ocm_api::redacted(&without_bookkeeping(object));
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
        let bytes = members.get_mut("binaryData").and_then(Value::as_object_mut);
        for value in bytes.into_iter().flat_map(Map::values_mut) {
            let length = value.as_str().map_or(0, str::len);
            *value = Value::from(format!("<{length} digits of base64>"));
        }
    }
    object
}

/// Says of each value of a Secret whether it differs, also of Secrets inside other objects such as a ManifestWork.
fn mark_secrets(before: &Value, after: &Value, shown: &mut Value) {
    match shown {
        Value::Object(members) if members.get("kind").is_some_and(|kind| kind == "Secret") => {
            mark_changed(before, after, shown, "data");
            mark_changed(before, after, shown, "stringData");
        }
        Value::Object(members) if members.get("kind").is_some_and(|kind| kind == "AddOnDeploymentConfig") => {
            if let Some(spec) = members.get_mut("spec") {
                mark_changed(&before["spec"], &after["spec"], spec, "proxyConfig");
            }
        }
        Value::Object(members) => {
            members.iter_mut().for_each(|(key, shown)| mark_secrets(&before[key], &after[key], shown));
        }
        Value::Array(items) => {
            let each = items.iter_mut().enumerate();
            each.for_each(|(index, shown)| mark_secrets(&before[index], &after[index], shown));
        }
        _ => {}
    }
}

/// Says of each value that is shown by its length whether it differs: lengths alone may be equal.
fn mark_changed(before: &Value, after: &Value, shown: &mut Value, member: &str) {
    let Some(Value::Object(values)) = shown.get_mut(member) else { return };
    for (key, text) in values {
        if before[member][key] != after[member][key]
            && let Some(length) = text.as_str().filter(|text| text.starts_with('<'))
        {
            *text = Value::from(format!("{length}, changed"));
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;

    fn secret(value: &str) -> Manifest {
        let mut manifest = Manifest::of(&Secret::default());
        manifest.body_mut()["data"] = json!({ "token": value });
        manifest
    }

    fn applied(before: Option<&str>, after: &str) -> Applied {
        Applied {
            manifest: secret(after),
            outcome: if before.is_some() { Outcome::Configured } else { Outcome::Created },
            before: before.map(|value| secret(value).body().clone()),
            after: secret(after).body().clone(),
        }
    }

    #[test]
    fn a_diff_says_that_a_secret_changes_and_not_to_what() {
        let text = diff(&applied(Some("b2xk"), "bmV3")).unwrap().unwrap();
        assert!(text.contains("changed") && !text.contains("b2xk") && !text.contains("bmV3"), "{text}");
        let text = diff(&applied(None, "bmV3")).unwrap().unwrap();
        assert!(text.contains("+kind: Secret") && !text.contains("bmV3"), "{text}");
        // The password of a proxy, too.
        let config = |password: &str| {
            let url = format!("http://me:{password}@p:1");
            json!({"kind": "AddOnDeploymentConfig", "spec": {"proxyConfig": {"httpProxy": url, "noProxy": password}}})
        };
        let text = diff(&Applied { before: Some(config("old")), after: config("new"), ..applied(Some(""), "") });
        let text = text.unwrap().unwrap();
        assert!(text.contains("bytes>, changed") && !text.contains("me:"), "{text}");
        assert!(text.contains("-    noProxy: old\n") && text.contains("+    noProxy: new\n"), "{text}");
    }

    #[test]
    fn a_diff_says_that_a_secret_in_a_work_changes() {
        let work = |value: &str| {
            let inner = json!({"kind": "Secret", "apiVersion": "v1", "stringData": {"token": value, "same": "AAAA"}});
            let mut manifest = Manifest::of(&ConfigMap::default());
            manifest.body_mut()["spec"] = json!({"workload": {"manifests": [inner]}});
            manifest
        };
        let change = Applied {
            manifest: work("BBBB"),
            outcome: Outcome::Configured,
            before: Some(work("CCCC").body().clone()),
            after: work("BBBB").body().clone(),
        };
        let text = diff(&change).unwrap().unwrap();
        assert_eq!(text.matches("changed").count(), 1, "{text}");
        assert!(!text.contains("AAAA") && !text.contains("BBBB") && !text.contains("CCCC"), "{text}");
    }

    #[test]
    fn a_diff_says_that_a_module_changes_and_does_not_print_it() {
        let map = |module: &str| {
            let mut manifest = Manifest::of(&ConfigMap::default());
            manifest.body_mut()["binaryData"] = json!({ "module.wasm": module, "same.wasm": "AAAA" });
            manifest
        };
        let change = Applied {
            manifest: map("BBBB"),
            outcome: Outcome::Configured,
            before: Some(map("AAAA").body().clone()),
            after: map("BBBB").body().clone(),
        };
        let text = diff(&change).unwrap().unwrap();
        assert!(text.contains("-  module.wasm: <4 digits") && text.contains("4 digits of base64>, changed"), "{text}");
        assert!(!text.contains("AAAA") && !text.contains("BBBB"), "{text}");
    }

    #[test]
    fn an_object_that_stays_has_no_diff() {
        let kept = Applied { outcome: Outcome::Kept("a reason".to_owned()), ..applied(Some("b2xk"), "bmV3") };
        assert_eq!(diff(&kept).unwrap(), None);
        assert_eq!(applied_document(&kept)["reason"], "a reason");
    }

    #[test]
    fn of_several_clusters_it_is_told_which() {
        let ui = Arc::new(Ui::new(&crate::UiArgs::default()));
        let view = PlanView::of(ui, Mode::Apply(ocm_core::DryRun::No), Format::Json);
        view.row(&applied(None, "bmV3"));
        view.row_on("managed cluster", &applied(None, "bmV3"));
        let clusters: Vec<Value> = view.objects.borrow().iter().map(|object| object["cluster"].clone()).collect();
        assert_eq!(clusters, [Value::Null, Value::from("managed cluster")]);
        assert!(view.has_changed());
        let tried = PlanView::of(view.ui.clone(), Mode::Apply(ocm_core::DryRun::Client), Format::Json);
        tried.row(&applied(None, "bmV3"));
        assert!(!tried.has_changed(), "nothing is changed that is only tried");
    }

    #[test]
    fn a_pull_secret_without_credentials_is_no_secret() {
        let mut empty = secret("x");
        empty.body_mut()["data"] = json!({ ".dockerconfigjson": "e30=" });
        assert!(!holds_secrets(&empty) && holds_secrets(&secret("x")));
    }
}
