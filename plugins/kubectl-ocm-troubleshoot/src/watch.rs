//! Inspects again and again, and tells what has changed.

use std::time::Duration;

use ocm_checks::changes::History;
use ocm_cli::Ui;
use ocm_core::{Event, Exit, Failure, Narrator, duration};

use crate::args::{FailOn, ReportFormat};
use crate::exit::exit;
use crate::inspection::Inspection;
use crate::view;

/// The shortest time between two inspections: one reads lists of the whole hub.
const SHORTEST: Duration = Duration::from_secs(1);

/// The time between two inspections, of a watch that can be shown in this format.
pub(crate) fn interval(text: &str, output: ReportFormat) -> Result<Duration, Failure> {
    if !matches!(output, ReportFormat::Table | ReportFormat::Wide | ReportFormat::Jsonl) {
        return Err(Failure::usage("--watch tells what changes as table, wide or jsonl only"));
    }
    let interval = duration::parse(text).map_err(|error| Failure::usage(format!("--interval: {error}")))?;
    if interval < SHORTEST {
        return Err(Failure::usage("--interval is one second or longer"));
    }
    Ok(interval)
}

/// Inspects until nobody reads any more: the first report as it is, and then what is different.
pub(crate) async fn run(
    inspection: &Inspection,
    interval: Duration,
    output: ReportFormat,
    fail_on: FailOn,
    ui: &Ui,
) -> Result<Exit, Failure> {
    ui.watches();
    let (mut history, mut first, mut trouble) = (History::default(), true, None);
    loop {
        match inspection.inspect().await {
            // Whoever cannot look at all is told at once; later somebody may be working on it.
            Err(failure) if first => return Err(failure),
            Err(failure) => {
                let said = failure.to_string();
                if trouble.as_ref() != Some(&said) {
                    ui.tell(Event::warning(format!("cannot look, and goes on trying: {said}")));
                }
                trouble = Some(said);
            }
            Ok((snapshot, report)) => {
                trouble = None;
                let changes = history.observe(&snapshot, &report);
                match first {
                    true => view::report(ui, output, fail_on, &snapshot, &report)?,
                    false => view::changes(ui, output, &snapshot, &changes)?,
                }
                first = false;
                if ui.is_stdout_gone() {
                    return Ok(exit(&report, fail_on));
                }
            }
        }
        tokio::time::sleep(interval).await;
    }
}
