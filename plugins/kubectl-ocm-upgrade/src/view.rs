//! What it looks like.

use std::ffi::OsString;

use ocm_cli::{Format, PlanView, Table, Ui, document};
use ocm_core::plan::{Applied, Mode};
use ocm_core::release::Bundle;
use ocm_core::upgrade::Parts;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::upgrade::{HubUpgraded, KlusterletUpgraded, Outcome, Prepared, Row};
use ocm_kube::Cluster;
use serde_json::{Map, Value, json};

/// The command that was typed, as far as it says which cluster is meant: the way back begins so.
pub(crate) struct Way {
    verb: &'static str,
    /// The flags; none where a credential is among them.
    flags: Option<Vec<String>>,
    /// Whether images come from another registry.
    moved: bool,
}

impl Way {
    /// Of `upgrade hub`.
    pub(crate) fn hub(client: Option<Vec<OsString>>, moved: bool) -> Self {
        Self { verb: "upgrade hub", flags: client.map(|words| quoted(&words)), moved }
    }

    /// Of `upgrade klusterlet`.
    pub(crate) fn klusterlet(client: Option<Vec<OsString>>, hub: &[OsString], moved: bool) -> Self {
        let flags = client.map(|words| quoted(&[&words[..], hub].concat()));
        Self { verb: "upgrade klusterlet", flags, moved }
    }

    /// What leads back to the release before, if one says all that ran.
    fn back(&self, which: Option<&str>, before: &Parts, target: &Bundle) -> Option<String> {
        let (release, is_older) = before.way_back(target)?;
        let mut words = vec![format!("kubectl ocm {}", self.verb)];
        words.extend(which.map(str::to_owned));
        words.extend(self.flags.clone().unwrap_or_default());
        words.push(format!("--bundle-version={release}"));
        if self.moved {
            words.extend(quoted(&[OsString::from(format!("--registry={}", before.registry()?))]));
        }
        words.extend(is_older.then(|| "--allow-downgrade".to_owned()));
        words.push("--wait".to_owned());
        Some(words.join(" "))
    }
}

/// Words as a shell takes them.
fn quoted(words: &[OsString]) -> Vec<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:@,%+".contains(c);
    let quote = |word: &OsString| {
        let text = word.to_string_lossy().into_owned();
        if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
    };
    words.iter().map(quote).collect()
}

/// What became of a plan: the rows were printed, now the rest.
struct Done<'a> {
    view: &'a PlanView,
    ui: &'a Ui,
    /// How messages name what was upgraded.
    who: String,
    before: &'a Parts,
    release: &'a Bundle,
    applied: &'a [Applied],
    changed: bool,
}

impl Done<'_> {
    /// Says how it ended, and the way back.
    fn end(
        self,
        mut members: Map<String, Value>,
        rolled_out: Option<Result<(), Failure>>,
        back: Option<String>,
    ) -> Result<Exit, Failure> {
        let Self { view, ui, who, before, release, applied, changed } = self;
        if view.mode() == Mode::Diff {
            return view.diff(applied);
        }
        members.insert("before".to_owned(), json!(images(before)));
        members.insert("bundleVersion".to_owned(), json!(release.to_string()));
        members.insert("rolledOut".to_owned(), json!(rolled_out.as_ref().map(Result::is_ok)));
        members.insert("rollback".to_owned(), json!(back.clone().filter(|_| changed)));
        view.document(members)?;
        let was = before.release().as_ref() == Some(release);
        match (changed, view.mode().changes()) {
            // What it waited for was not reached: the error says it.
            (false, _) if matches!(rolled_out, Some(Err(_))) => {}
            (false, _) => ui.tell(Event::note(format!("{who} is up to date with {release}: nothing was changed"))),
            (true, false) => {}
            (true, true) if was => {
                ui.tell(Event::note(format!("{who} ran {release} before; what belongs to it was brought up to date")));
            }
            (true, true) => match back {
                Some(back) => ui.tell(Event::note(format!("the way back: {back}"))),
                None => ui.tell(Event::note(format!("before, {who} ran {}", told(before)))),
            },
        }
        let waited = rolled_out.transpose()?.is_some();
        if view.mode().changes() {
            ui.tell(Event::note(match (waited, changed) {
                (true, _) => format!("{who} runs {release}"),
                (false, true) => "it rolls out from now on; --wait would tell when it has".to_owned(),
                (false, false) => return Ok(Exit::Ok),
            }));
        }
        Ok(Exit::Ok)
    }
}

fn images(parts: &Parts) -> Value {
    let one = |part: &ocm_core::upgrade::Part| json!({"component": part.name, "image": part.image, "release": part.release().map(|release| release.to_string())});
    Value::Array(parts.0.iter().map(one).collect())
}

/// Every image, for who has to bring them back one by one.
fn told(parts: &Parts) -> String {
    let one = |part: &ocm_core::upgrade::Part| format!("{} as {}", part.name, part.image);
    parts.0.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What the upgrade of a hub came to.
pub(crate) fn finish_hub(
    view: &PlanView,
    ui: &Ui,
    cluster: &Cluster,
    release: &Bundle,
    way: &Way,
    upgraded: HubUpgraded,
) -> Result<Exit, Failure> {
    let HubUpgraded { upgrade, applied, changed, rolled_out } = upgraded;
    if view.mode() == Mode::Render {
        return view.manifests(&upgrade.plan());
    }
    let back = way.back(None, &upgrade.before, release);
    let mut members = Map::new();
    members.insert("clusterManager".to_owned(), json!(upgrade.name));
    let who = format!("the hub ({})", cluster.label());
    let done = Done { view, ui, who, before: &upgrade.before, release, applied: &applied, changed };
    done.end(members, rolled_out, back)
}

/// What the upgrade of a managed cluster came to.
pub(crate) fn finish_klusterlet(
    view: &PlanView,
    ui: &Ui,
    managed: &Cluster,
    way: &Way,
    prepared: &Prepared,
    upgraded: KlusterletUpgraded,
) -> Result<Exit, Failure> {
    let KlusterletUpgraded { applied, changed, rolled_out } = upgraded;
    let Prepared { upgrade, bundle, cluster, .. } = prepared;
    if view.mode() == Mode::Render {
        return view.manifests(&upgrade.plan());
    }
    let which = match cluster {
        Some(cluster) => cluster.clone(),
        None => format!("--klusterlet={}", upgrade.name),
    };
    let back = way.back(Some(&which), &upgrade.before, bundle);
    let mut members = Map::new();
    members.insert("klusterlet".to_owned(), json!(upgrade.name));
    members.insert("cluster".to_owned(), json!(cluster));
    let who = format!("Klusterlet {:?} ({})", upgrade.name, managed.label());
    let done = Done { view, ui, who, before: &upgrade.before, release: bundle, applied: &applied, changed };
    done.end(members, rolled_out, back)
}

/// How the clusters of a fleet are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// By their contexts.
    ByContext,
    /// By a fleet file, as their hub knows them.
    InFile,
}

const HEADINGS: [&str; 7] = ["CONTEXT", "CLUSTER", "STAGE", "BEFORE", "RELEASE", "OUTCOME", "BECAUSE"];

/// What the upgrade of a fleet came to.
pub(crate) fn finish_fleet(ui: &Ui, format: Format, mode: Mode, named: Named, rows: &[Row]) -> Result<Exit, Failure> {
    let for_real = mode.changes();
    let word = |outcome: &Outcome| match outcome {
        Outcome::Upgraded if for_real => "Upgraded",
        Outcome::Upgraded => "WouldUpgrade",
        Outcome::UpToDate => "UpToDate",
        Outcome::Failed(_) => "Failed",
        Outcome::NotTried => "NotTried",
    };
    let because = |outcome: &Outcome| match outcome {
        Outcome::Failed(failure) => Some(failure.to_string()),
        _ => None,
    };
    match format {
        Format::Json | Format::Yaml => {
            let row = |row: &Row| {
                let context = (named == Named::ByContext).then_some(&row.name);
                json!({
                    "context": context, "cluster": row.cluster, "klusterlet": row.klusterlet, "stage": row.stage,
                    "before": row.before, "bundleVersion": row.release, "outcome": word(&row.outcome),
                    "because": because(&row.outcome),
                })
            };
            let dry_run = mode.dry_run().word();
            let clusters: Vec<Value> = rows.iter().map(row).collect();
            ui.out(&document(format, &json!({"dryRun": dry_run, "clusters": clusters}))?);
        }
        Format::Name => rows.iter().for_each(|row| ui.line(&row.name)),
        Format::Table | Format::Wide => {
            // A fleet file gives no cluster a second name.
            let first = usize::from(named == Named::InFile);
            let mut table = Table::new(&HEADINGS[first..]);
            for row in rows {
                let stage = row.stage.to_string();
                let cluster = row.cluster.as_deref().unwrap_or("<unknown>");
                let because = because(&row.outcome).unwrap_or_default();
                let cells: [&str; 7] =
                    [&row.name, cluster, &stage, &row.before, &row.release, word(&row.outcome), &because];
                table.row(&cells[first..]);
            }
            ui.out(&table.render());
        }
    }
    let failures: Vec<(&str, &Failure)> = rows
        .iter()
        .filter_map(|row| match &row.outcome {
            Outcome::Failed(failure) => Some((row.name.as_str(), failure)),
            _ => None,
        })
        .collect();
    let Some((first, failure)) = failures.first() else { return Ok(Exit::Ok) };
    let untouched = rows.iter().filter(|row| row.outcome == Outcome::NotTried).count();
    let sentence = match untouched {
        0 => format!("{first} does not run the release"),
        1 => format!("{first} does not run the release, so one cluster of a later stage was not touched"),
        many => format!("{first} does not run the release, so {many} clusters of later stages were not touched"),
    };
    Err((*failure).clone().context(sentence))
}
