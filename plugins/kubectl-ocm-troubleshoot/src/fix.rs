//! `--fix`: the plan, the question, the changes, and what another look says of them.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use ocm_checks::finding::Id;
use ocm_checks::fix::{ALLOWED, Fix, Fixes, Left, findings, of, plan};
use ocm_checks::judge::Report;
use ocm_checks::snapshot::Snapshot;
use ocm_cli::findings::Contexts;
use ocm_cli::{Format, PlanView, Ui, applied_document, clean, document};
use ocm_core::plan::Mode;
use ocm_core::{Applied, DryRun, Event, Exit, Failure, Narrator};
use ocm_flows::fix as flow;
use serde_json::{Value, json};

use crate::args::{FailOn, ReportFormat};
use crate::exit::{exit, waits_in_vain};
use crate::inspection::{Inspection, PAUSE};
use crate::{view, words};

/// How long it checks whether what was mended is gone, without --wait: operators take a lease that is free after 26 seconds.
const SETTLE: Duration = Duration::from_secs(60);

/// What is wanted.
pub(crate) struct Request {
    /// The checks whose findings are mended; empty: all of the allow-list.
    pub(crate) only: Vec<Id>,
    pub(crate) yes: bool,
    pub(crate) dry_run: DryRun,
    pub(crate) format: Format,
    /// The same, as reports have it.
    pub(crate) output: ReportFormat,
    pub(crate) fail_on: FailOn,
    /// Look until all is well, for so long.
    pub(crate) wait: Option<Duration>,
}

/// The checks that `--fix` names and the format of what it says.
pub(crate) fn wanted(ids: &[String], output: ReportFormat) -> Result<(Vec<Id>, Format), Failure> {
    let format = match output {
        ReportFormat::Table => Format::Table,
        ReportFormat::Wide => Format::Wide,
        ReportFormat::Json => Format::Json,
        ReportFormat::Yaml => Format::Yaml,
        _ => return Err(Failure::usage("--fix has no such format").hint("table, wide, json or yaml")),
    };
    let allowed = || ALLOWED.iter().map(|fixable| fixable.id.to_string()).collect::<Vec<_>>().join(", ");
    let one = |text: &String| -> Result<Id, Failure> {
        let id: Id = text.trim().parse().map_err(|error| Failure::usage(format!("--fix: {error}")))?;
        match of(id) {
            Some(_) => Ok(id),
            None => Err(Failure::usage(format!("--fix mends no findings of {id}"))
                .hint(format!("it mends those of {}", allowed()))),
        }
    };
    Ok((ids.iter().map(one).collect::<Result<_, _>>()?, format))
}

/// Says to people what `--fix` would mend.
pub(crate) fn advertise(ui: &Ui, output: ReportFormat, snapshot: &Snapshot, report: &Report) {
    let fixes = plan(snapshot, report, &[]).fixes;
    let mut names: Vec<&str> = fixes.iter().flat_map(|fix| &fix.mends).map(String::as_str).collect();
    names.dedup();
    if matches!(output, ReportFormat::Table | ReportFormat::Wide) && !names.is_empty() {
        ui.tell(Event::note(format!("the same command with --fix can mend {}", words::some_names(&names))));
    }
}

/// A change, and what became of it.
struct TriedFix {
    fix: Fix,
    objects: Vec<Value>,
    result: Result<(), Failure>,
}

pub(crate) async fn run(inspection: &Inspection, request: &Request, ui: &std::sync::Arc<Ui>) -> Result<Exit, Failure> {
    let Request { only, yes, dry_run, format, output, fail_on, wait } = request;
    let begun = Instant::now();
    let (snapshot, report) = inspection.inspect().await?;
    let Fixes { fixes, mut left } = plan(&snapshot, &report, only);
    let (fixes, denied) = flow::check(&inspection.sides, fixes, ui.as_ref()).await;
    left.extend(denied);
    let contexts = words::contexts(&snapshot);
    let text = plan_text(&fixes, &left, &contexts);
    let said = match format.is_human() {
        true => {
            view::report(ui, *output, *fail_on, &snapshot, &report)?;
            ui.out(&format!("\n{text}"));
            true
        }
        false => false,
    };
    if !fixes.is_empty() && *dry_run == DryRun::No && !yes {
        // The question is about the plan, which stdout does not show in the formats of machines.
        if !said && ui.can_ask() {
            ui.say_text(&text);
        }
        let count = words::count(fixes.len(), "change");
        if !ui.confirm(&format!("Make {} {count}?", if fixes.len() == 1 { "this" } else { "these" })).await? {
            return Err(Failure::refused("nothing was changed"));
        }
    }
    let rows = PlanView::of(ui.clone(), Mode::Apply(*dry_run), *format);
    let outcomes = carry_out(inspection, fixes, *dry_run, ui, &rows).await;
    let is_changed = outcomes.iter().any(|outcome| *dry_run == DryRun::No && outcome.is_change());
    let (snapshot, report, exit) = match is_changed || wait.is_some() {
        true => settle(inspection, &outcomes, begun, request, ui).await?,
        false => {
            let exit = exit(&report, *fail_on);
            (snapshot, report, exit)
        }
    };
    let names: Vec<String> = findings(&report).map(ocm_checks::finding::Finding::name).collect();
    // Of a dry run nothing is mended, and of a failed change nobody knows it.
    let of_changes = outcomes.iter().filter(|outcome| is_changed && outcome.result.is_ok());
    let mut mended: Vec<&str> = of_changes.flat_map(|outcome| &outcome.fix.mends).map(String::as_str).collect();
    mended.retain(|name| !names.iter().any(|found| found == name) && !is_unknown(&report, name));
    mended.dedup();
    match format.is_human() {
        false => {
            let mut whole = view::whole(&snapshot, &report, *fail_on);
            let planned: Vec<Value> = outcomes.iter().map(|outcome| outcome.document(&contexts)).collect();
            whole["fix"] = json!({
                "dryRun": dry_run.word(), "changed": is_changed, "changes": planned, "left": left, "mended": mended,
            });
            ui.out(&document(*format, &whole)?);
        }
        true if is_changed => {
            let lines: String = mended.iter().map(|name| format!("mended: {}\n", clean(name))).collect();
            ui.out(&format!("\n{lines}\n"));
            view::report(ui, *output, *fail_on, &snapshot, &report)?;
        }
        true => {}
    }
    // The failures last: what was done stands above.
    let mut failures = outcomes.into_iter().filter_map(|outcome| outcome.result.err());
    match failures.next() {
        None => Ok(exit),
        Some(first) => {
            failures.for_each(|other| ui.tell(Event::warning(other.to_string())));
            Err(first)
        }
    }
}

/// Carries out every change, also where one before it has failed: none needs another.
async fn carry_out(
    inspection: &Inspection,
    fixes: Vec<Fix>,
    dry_run: DryRun,
    ui: &std::sync::Arc<Ui>,
    rows: &PlanView,
) -> Vec<TriedFix> {
    let mut outcomes = Vec::new();
    for fix in fixes {
        let objects = RefCell::new(Vec::new());
        let each = |applied: &Applied| {
            rows.row(applied);
            objects.borrow_mut().push(applied_document(applied));
        };
        let result = flow::carry_out(&inspection.sides, &fix.change, dry_run, ui.as_ref(), each).await;
        outcomes.push(TriedFix { fix, objects: objects.into_inner(), result });
    }
    outcomes
}

/// Inspects again until what was changed shows, or with --wait until all is well.
async fn settle(
    inspection: &Inspection,
    outcomes: &[TriedFix],
    begun: Instant,
    request: &Request,
    ui: &Ui,
) -> Result<(Snapshot, Report, Exit), Failure> {
    let until = match request.wait {
        Some(timeout) => begun.checked_add(timeout),
        None => Instant::now().checked_add(SETTLE),
    };
    let changed = outcomes.iter().filter(|outcome| outcome.is_change() && outcome.result.is_ok());
    let names: Vec<&String> = changed.flat_map(|outcome| &outcome.fix.mends).collect();
    inspection.forget();
    loop {
        let (snapshot, report) = inspection.inspect().await?;
        let exit = exit(&report, request.fail_on);
        // What cannot be checked again is not known to be gone.
        let is_left = names.iter().any(|name| is_unknown(&report, name))
            || findings(&report).any(|finding| names.iter().any(|name| **name == finding.name()));
        let is_done = match request.wait {
            Some(_) => exit == Exit::Ok || waits_in_vain(&report, exit),
            None => !is_left,
        };
        if is_done {
            return Ok((snapshot, report, exit));
        }
        if until.is_some_and(|until| until.saturating_duration_since(Instant::now()) < PAUSE) {
            let exit = if request.wait.is_some() { Exit::TimedOut } else { exit };
            return Ok((snapshot, report, exit));
        }
        if is_left {
            inspection.forget();
        }
        ui.tell(Event::blocked("waiting until the changes show", words::headline(&report)));
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether the check of a finding of this name could not be made.
fn is_unknown(report: &Report, name: &str) -> bool {
    let id = name.split_once(':').map_or(name, |(id, _)| id);
    report.unknown.iter().flat_map(|unknown| &unknown.ids).any(|unknown| unknown.to_string() == id)
}

impl TriedFix {
    /// Whether an object is, or would be, different.
    fn is_change(&self) -> bool {
        let changes = ["created", "configured", "deleted"];
        self.objects.iter().any(|object| changes.iter().any(|word| object["outcome"] == *word))
    }

    fn document(&self, contexts: &Contexts) -> Value {
        let Self { fix, objects, result } = self;
        let side = fix.change.side();
        let mut value = json!({
            "mends": fix.mends, "does": fix.change.sentence(), "side": side, "objects": objects,
        });
        if let Some(context) = contexts.of(side) {
            value["context"] = context.into();
        }
        if let Err(failure) = result {
            value["error"] = failure.to_string().into();
        }
        value
    }
}

/// What is planned, for people.
fn plan_text(fixes: &[Fix], left: &[Left], contexts: &Contexts) -> String {
    let mut text = match fixes.len() {
        0 => "Nothing that --fix can mend.\n".to_owned(),
        count => format!("{} can be made:\n", words::count(count, "change")),
    };
    for Fix { mends, change } in fixes {
        let names: Vec<&str> = mends.iter().map(String::as_str).collect();
        let place = contexts.of(change.side()).map(|context| format!(" (context {context:?})")).unwrap_or_default();
        text += &format!("  {}: {}{}\n", words::some_names(&names), clean(&change.sentence()), clean(&place));
    }
    for Left { finding, why } in left {
        text += &format!("  {}: left alone, for {}\n", clean(finding), clean(why));
    }
    text
}
