//! What policies of a hub have decided, from the logs of all pods.

use std::sync::Arc;

use clap::ValueEnum;
use ocm_cli::list::NONE;
use ocm_cli::{Ui, clean};
use ocm_core::hub_policy::{Logged, Said, Selection};
use ocm_core::{Event, Exit, Failure, Narrator, duration};
use ocm_flows::policies::{LogsRequest, follow_logged, logged};
use ocm_kube::connect;

use crate::args::hub::{LogFormat, LogsArgs, VerdictArg};

/// Columns with their widths; later lines cannot move those of earlier ones. The last one takes what it needs.
const COLUMNS: [(&str, usize); 5] =
    [("TIME", 20), ("OPERATION", 10), ("CLUSTER", 16), ("VERDICT", 10), ("REQUESTER", 40)];
const LAST: &str = "WHY";
/// As many characters of a time tell the second: `2026-01-02T03:04:05`.
const SECONDS: usize = 19;

pub(crate) async fn run(args: LogsArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let LogsArgs { policies, managed_clusters, verdicts, since, follow, output, client } = args;
    let since = since.as_deref().map(duration::parse).transpose();
    let since = since.map_err(|error| Failure::usage(format!("--since: {error}")))?;
    let verdicts = verdicts.into_iter().map(word).collect();
    let selection = Selection { policies, clusters: managed_clusters, verdicts };
    let request = LogsRequest { since, selection };
    let hub = connect(&client.connection()?, ui.clone()).await?;
    if follow {
        ui.watches();
        heading(&ui, output);
        follow_logged(&hub, &request, &*ui, |decision| {
            show(&ui, output, &decision);
            !ui.is_stdout_gone()
        })
        .await?;
        return Ok(Exit::Ok);
    }
    let decisions = logged(&hub, &request, &*ui).await?;
    match decisions.as_slice() {
        [] => ui.tell(Event::note("the logs hold no such decision")),
        some => {
            heading(&ui, output);
            some.iter().for_each(|decision| show(&ui, output, decision));
        }
    }
    Ok(Exit::Ok)
}

fn word(verdict: VerdictArg) -> String {
    verdict.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn heading(ui: &Ui, format: LogFormat) {
    if format == LogFormat::Table {
        ui.line(&line(COLUMNS.map(|(heading, _)| heading.to_owned()), LAST));
    }
}

fn show(ui: &Ui, format: LogFormat, decision: &Logged) {
    match format {
        LogFormat::Json => ui.line(&decision.line.to_string()),
        LogFormat::Table => {
            let text = |text: &Option<String>| text.clone().unwrap_or_else(|| NONE.to_owned());
            let time =
                decision.time.get(..SECONDS).map_or_else(|| decision.time.clone(), |seconds| format!("{seconds}Z"));
            let cells = [
                time,
                decision.operation.clone(),
                text(&decision.cluster),
                decision.verdict.clone().unwrap_or_else(|| "refused".to_owned()),
                text(&decision.requester),
            ];
            ui.line(&line(cells, &why(decision)));
        }
    }
}

fn line(cells: [String; COLUMNS.len()], last: &str) -> String {
    let mut line = String::new();
    for (cell, (_, width)) in cells.iter().zip(COLUMNS) {
        line += &format!("{:<width$}  ", clean(cell));
    }
    line + &clean(last)
}

/// What whoever asked was told, or what policies said that have an opinion.
fn why(decision: &Logged) -> String {
    if let Some(message) = &decision.message {
        return message.clone();
    }
    let has_opinion = |said: &&Said| said.verdict != "no-opinion";
    let opinions: Vec<String> = decision.said.iter().filter(has_opinion).map(opinion).collect();
    if opinions.is_empty() { NONE.to_owned() } else { opinions.join(", ") }
}

fn opinion(said: &Said) -> String {
    let codes = if said.codes.is_empty() { String::new() } else { format!(" ({})", said.codes.join(", ")) };
    format!("{}: {}{codes}", said.policy, said.verdict)
}
