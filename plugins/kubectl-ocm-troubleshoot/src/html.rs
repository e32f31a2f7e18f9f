//! A report as one HTML file: without script, without anything that is loaded from elsewhere.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use ocm_checks::chain::{Standing, Step, Way};
use ocm_checks::facts::Facts;
use ocm_checks::finding::{Finding, Next, Severity};
use ocm_checks::judge::Report;
use ocm_checks::registry::check;
use ocm_checks::snapshot::Snapshot;
use ocm_checks::timeline::{Moment, timeline};
use ocm_cli::clean;

use crate::words;

/// The chains of how many clusters are drawn.
const DRAWN: usize = 100;
/// How many findings are shown.
const FINDINGS: usize = 1000;
/// How many moments before and after the look are shown.
const MOMENTS: usize = 40;

/// Colours have names, so that the dark ones only replace them.
const STYLE: &str = "
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --faint: #5b6570; --line: #d5dae0; --box: #f5f7f9;
  --good: #1a7f37; --bad: #b42318; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --back: #14181d; --text: #e6eaee; --faint: #9aa5b1; --line: #353d47;
  --box: #1c2229; --good: #4ac26b; --bad: #ff8a80; --warn: #e3b341; } }
body { background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem;
  padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin: 0; }
code, pre { font: 0.9em/1.5 ui-monospace, monospace; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 4px; padding: 0.6rem 0.8rem; white-space: pre-wrap; }
.faint { color: var(--faint); }
ol.chain { display: flex; flex-wrap: wrap; gap: 0.3rem; list-style: none; margin: 0.5rem 0 1.2rem; padding: 0; }
ol.chain li { border: 1px solid var(--line); border-top: 4px solid var(--line); border-radius: 4px; flex: 1 1 5.5rem;
  font-size: 0.85rem; padding: 0.25rem 0.4rem; }
ol.chain li.done { border-top-color: var(--good); } ol.chain li.stopped { border-color: var(--bad); }
ol.chain li.open { color: var(--faint); border-top-style: dashed; }
article { border-left: 4px solid var(--warn); margin: 1.2rem 0; padding: 0.1rem 0 0.1rem 1rem; }
article.error { border-left-color: var(--bad); }
.error > h3 > .severity { color: var(--bad); } .warning > h3 > .severity { color: var(--warn); }
article ul { margin: 0.4rem 0; padding-left: 1.2rem; }
ol.time { border-left: 2px solid var(--line); list-style: none; margin: 0.5rem 0; padding: 0; }
ol.time li { padding: 0.1rem 0 0.1rem 1rem; } ol.time li.now { border-left: 4px solid var(--text); margin-left: -3px;
  font-weight: 600; } ol.time li.ended { color: var(--faint); }
time { font: 0.85em ui-monospace, monospace; margin-right: 0.6rem; }
";

/// The whole file.
pub(crate) fn report(snapshot: &Snapshot, report: &Report) -> String {
    let words = |next: &Next| words::words(snapshot, next);
    let facts = Facts::of(snapshot);
    let title = clean(&words::headline(report));
    let unwell: Vec<&Standing> = report.clusters.iter().filter(|standing| !standing.way.is_well()).collect();
    let drawn: Vec<&Standing> = if report.clusters.len() <= 5 { report.clusters.iter().collect() } else { unwell };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "kubectl ocm troubleshoot" }
                @match &snapshot.clock {
                    Some(clock) => { p.faint { "As of " (clean(clock)) } }
                    None => { p.faint { "Observed at " (snapshot.observed.0.to_string()) } }
                }
                @for line in words::headlines(report) { p { strong { (clean(&line)) } } }
                @if !drawn.is_empty() {
                    h2 { "Where the clusters stand" }
                    @for standing in drawn.iter().take(DRAWN) { (chain(standing)) }
                    @if drawn.len() > DRAWN { p.faint { (drawn.len() - DRAWN) " more are not drawn" } }
                }
                h2 { "Findings" }
                @if report.findings.is_empty() { p { "None." } }
                @for finding in report.findings.iter().take(FINDINGS) { (article(finding, words)) }
                @if report.findings.len() > FINDINGS { p.faint { (report.findings.len() - FINDINGS) " more are not shown" } }
                (times(&facts))
                h2 { "What was checked" }
                p { (clean(&words::totals(report))) }
                @if !report.unknown.is_empty() {
                    ul { @for line in words::why_all_unknown(report) { li { (clean(&line)) } } }
                }
                @if !report.suppressed.is_empty() {
                    h2 { "Suppressed" }
                    ul {
                        @for one in &report.suppressed {
                            li { (one.finding.name()) ", " (clean(&one.why())) ": " (clean(&one.finding.summary)) }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

/// The nine steps of a cluster.
fn chain(standing: &Standing) -> Markup {
    let class = |step: Step| match standing.way {
        Way::Done => "done",
        Way::StoppedAt(at) if step < at => "done",
        Way::StoppedAt(at) if step == at => "stopped",
        Way::SeenUpTo(to) if step <= to => "done",
        _ => "open",
    };
    html! {
        section aria-label=(clean(&standing.name)) {
            h3 { (clean(&standing.name)) }
            p.faint { (clean(&standing.headline)) }
            ol.chain {
                @for step in Step::ALL {
                    li class=(class(step)) aria-current=[(class(step) == "stopped").then_some("step")] {
                        (step.number()) " " (step.name())
                        @match class(step) {
                            "done" => span.faint { " done" },
                            "stopped" => strong { " stopped" },
                            _ => {}
                        }
                    }
                }
            }
        }
    }
}

fn article(finding: &Finding, words: impl Fn(&Next) -> String + Copy) -> Markup {
    let severity = if finding.severity == Severity::Error { "error" } else { "warning" };
    let commands: Vec<String> =
        finding.next.iter().filter(|next| matches!(next, Next::Command { .. })).map(words).collect();
    let texts = finding.next.iter().filter(|next| matches!(next, Next::Text(_))).map(words);
    html! {
        article class=(severity) {
            h3 {
                (finding.id.to_string()) " " span.severity { (severity) } ": " (clean(&finding.summary))
                @if let Some(cluster) = &finding.cluster { span.faint { " (" (clean(cluster)) ")" } }
            }
            @if let Some(check) = check(finding.id) { p.faint { "When all is well, " (check.title) "." } }
            @if !finding.evidence.is_empty() {
                ul { @for line in &finding.evidence { li { code { (clean(line)) } } } }
            }
            @if !finding.cause.is_empty() { p { "Because " (clean(&finding.cause)) "." } }
            // As they are typed: nothing in them is replaced.
            @for command in &commands { pre { (clean(command)) } }
            @for text in texts { p { (clean(&text)) } }
            @if !finding.consequences.is_empty() {
                p.faint { "From it follows:" }
                ul.faint { @for one in &finding.consequences { li { (one.id.to_string()) " " (clean(&one.summary)) } } }
            }
        }
    }
}

/// What was, the moment of the look, and what will end.
fn times(facts: &Facts<'_>) -> Markup {
    let (past, coming): (Vec<Moment>, Vec<Moment>) =
        timeline(facts).into_iter().partition(|moment| moment.at <= facts.now);
    let line = |moment: &Moment, class: &str| {
        html! {
            li class=(class) {
                time datetime=(moment.at.to_string()) { (moment.at.to_string()) }
                @if let Some(cluster) = &moment.cluster { (clean(cluster)) ": " }
                (clean(&moment.what))
            }
        }
    };
    let earlier = past.len().saturating_sub(MOMENTS);
    html! {
        h2 { "Times" }
        ol.time {
            @if earlier > 0 { li.ended { (earlier) " earlier ones" } }
            @for moment in &past[earlier..] { (line(moment, "ended")) }
            li.now { time datetime=(facts.now.to_string()) { (facts.now.to_string()) } "observed" }
            @for moment in coming.iter().take(MOMENTS) { (line(moment, "")) }
            @if coming.len() > MOMENTS { li.ended { (coming.len() - MOMENTS) " later ones" } }
        }
    }
}
