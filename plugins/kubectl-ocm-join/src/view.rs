//! What a join looks like.

use std::cell::RefCell;
use std::sync::Arc;

use ocm_cli::{Format, Ui, document};
use ocm_core::phase::Phase;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, Plan};
use ocm_flows::join::Joined;
use ocm_kube::apply::{Applied, Outcome};
use serde_json::{Value, json};

/// What the hub's object is called where objects are echoed.
const REFERENCE: &str = "managedcluster.cluster.open-cluster-management.io";

pub(crate) struct View {
    ui: Arc<Ui>,
    format: Format,
    dry_run: DryRun,
    name: String,
    rows: RefCell<Vec<Value>>,
}

impl View {
    pub(crate) fn new(ui: Arc<Ui>, format: Format, dry_run: DryRun, name: String) -> Self {
        Self { ui, format, dry_run, name, rows: RefCell::default() }
    }

    /// One object, as soon as it is there.
    pub(crate) fn row(&self, applied: &Applied) {
        let reference = applied.manifest.reference();
        let word = applied.outcome.word();
        match self.format {
            Format::Name => self.ui.line(&reference),
            Format::Table => self.ui.line(&format!("{reference} {word}{}", self.dry_run.remark())),
            Format::Wide => {
                let namespace = applied.manifest.namespace().map(|name| format!(" -n {name}")).unwrap_or_default();
                let why = match &applied.outcome {
                    Outcome::Kept(why) => format!(": {why}"),
                    _ => String::new(),
                };
                self.ui.line(&format!("{reference}{namespace} {word}{}{why}", self.dry_run.remark()));
            }
            Format::Json | Format::Yaml => self.rows.borrow_mut().push(json!({
                "object": reference,
                "namespace": applied.manifest.namespace(),
                "outcome": word,
                "reason": match &applied.outcome {
                    Outcome::Kept(why) => Some(why),
                    _ => None,
                },
            })),
        }
    }

    /// What it came to.
    pub(crate) fn finish(&self, joined: &Joined) -> Result<Exit, Failure> {
        let Joined { hub, before, applied, phase } = joined;
        let word = match (phase, before) {
            (Some(Phase::Pending), _) => "registered, pending acceptance",
            (Some(Phase::Accepted), _) => "accepted",
            (Some(Phase::Joined), _) => "joined",
            (Some(Phase::Available), _) => "available",
            (Some(_), _) => "registered",
            (None, true) => "joined before",
            (None, false) => "joining",
        };
        match self.format {
            Format::Json | Format::Yaml => {
                let value = json!({
                    "managedCluster": self.name,
                    "hub": hub.server,
                    "dryRun": self.dry_run != DryRun::No,
                    "changed": applied.iter().any(|applied| matches!(applied.outcome, Outcome::Created | Outcome::Configured)),
                    "phase": phase.map(|phase| phase.to_string()),
                    "state": word,
                    "objects": self.rows.take(),
                });
                self.ui.out(&document(self.format, &value)?);
            }
            Format::Name => self.ui.line(&format!("{REFERENCE}/{}", self.name)),
            Format::Table | Format::Wide if self.dry_run == DryRun::No => {
                self.ui.line(&format!("{REFERENCE}/{} {word}", self.name));
            }
            Format::Table | Format::Wide => {}
        }
        if self.dry_run == DryRun::No && !before && matches!(phase, None | Some(Phase::Pending)) {
            self.ui
                .tell(Event::note(format!("an administrator of the hub lets it in: kubectl ocm accept {}", self.name)));
        }
        Ok(Exit::Ok)
    }

    /// The objects as one YAML stream or JSON list. What Secrets hold is left out: it would travel on.
    pub(crate) fn render(&self, plan: &Plan) -> Result<Exit, Failure> {
        let objects: Vec<Value> = plan.objects().map(|manifest| manifest.redacted()).collect();
        match self.format {
            Format::Json => self.ui.out(&document(Format::Json, &ocm_cli::object_list(objects))?),
            Format::Name => plan.objects().for_each(|manifest| self.ui.line(&manifest.reference())),
            Format::Table | Format::Wide | Format::Yaml => {
                for object in &objects {
                    self.ui.out(&format!("---\n{}", document(Format::Yaml, object)?));
                }
            }
        }
        Ok(Exit::Ok)
    }
}
