//! The records of a file: every decision has to be repeated byte for byte.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use ocm_cli::{Format, OutputArgs, Ui, clean, document};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_engine::digest;
use ocm_policy_rules::record::{Difference, Record};
use serde_json::{Value, json};

use super::candidates::{Candidate, candidates, unasked};
use crate::args::KindArgs;
use crate::evaluation::Policies;
use crate::files;
use crate::load::{Loader, refused};

pub(crate) fn run(
    records: &Path,
    policies: &[String],
    kind: KindArgs,
    output: &OutputArgs,
    ui: &Ui,
) -> Result<Exit, Failure> {
    let read = read(records)?;
    let loader = Loader::new(ui)?;
    let candidates = candidates(&loader, policies, kind, read.iter().map(|(_, record)| record))?;
    let mut loaded: HashMap<(usize, &str, &str), Policies> = HashMap::new();
    let mut differ = Vec::new();
    for (line, record) in &read {
        let place = format!("{}:{line}", records.display());
        let differences = if record.is_whole() {
            let which = which(&candidates, record).ok_or_else(|| {
                Failure::usage(format!("{place} is of the policy {}, and none of the modules is", record.policy.name))
                    .hint("name its module with --policy")
            })?;
            let own = (which, record.settings.as_str(), record.policy.name.as_str());
            let policies = match loaded.entry(own) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let Candidate { file, module, .. } = &candidates[which];
                    // In the place that it had.
                    let place = |_: &str| record.policy.name.clone();
                    let mut one = Policies::default();
                    loader
                        .policy(module, &record.settings, place)
                        .and_then(|policy| one.add(file, policy))
                        .map_err(|error| refused(file, &error))?;
                    entry.insert(one)
                }
            };
            record.replays_as(&again(policies, record, &place)?)
        } else {
            altered(record)
        };
        if !differences.is_empty() {
            differ.push((place, record, differences));
        }
    }
    match output.output {
        format @ (Format::Json | Format::Yaml) => {
            let list: Vec<Value> =
                differ.iter().map(|(place, record, differences)| whole(place, record, differences)).collect();
            ui.out(&document(format, &json!({"records": read.len(), "differ": list.len(), "differences": list}))?);
        }
        Format::Name => differ.iter().for_each(|(place, ..)| ui.line(place)),
        Format::Table | Format::Wide => {
            for (place, record, differences) in &differ {
                ui.out(&shown(place, record, differences));
            }
        }
    }
    let count = read.len();
    let noun = if count == 1 { "record" } else { "records" };
    ui.tell(Event::note(match differ.len() {
        0 => format!("{count} {noun} repeated byte for byte"),
        some => format!("{some} of {count} {noun} differ"),
    }));
    Ok(if differ.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// The records of a file with their lines.
fn read(file: &Path) -> Result<Vec<(usize, Record)>, Failure> {
    let text = files::text(file, "the records")?;
    let mut records = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let record = serde_json::from_str(line).map_err(|error| {
            Failure::usage(format!("{}:{} is no record", file.display(), index + 1))
                .because(error)
                .hint("kubectl ocm policy run … --record FILE writes records, one per line")
        })?;
        records.push((index + 1, record));
    }
    if records.is_empty() {
        return Err(Failure::usage(format!("{} holds no records", file.display())));
    }
    Ok(records)
}

/// The texts of a record that its digests are not of.
fn altered(record: &Record) -> Vec<Difference> {
    let told = |what: &str| Some(what.to_owned());
    let texts = [
        ("/settings", &record.settings, &record.settings_sha256),
        ("/request", &record.request, &record.request_sha256),
    ];
    texts
        .into_iter()
        .filter(|(_, text, of)| digest(text.as_bytes()) != **of)
        .map(|(at, ..)| Difference {
            at: at.to_owned(),
            ours: told("a digest of another text"),
            theirs: told("altered"),
        })
        .collect()
}

/// The very module, or else one of the same policy.
fn which(candidates: &[Candidate], record: &Record) -> Option<usize> {
    let same = candidates.iter().position(|candidate| candidate.digest == record.module_sha256);
    same.or_else(|| candidates.iter().position(|candidate| candidate.name == record.policy.name))
}

fn again(policies: &Policies, record: &Record, place: &str) -> Result<Record, Failure> {
    let answer = policies.again(&record.request).map_err(|error| unasked(place, &error))?;
    let made = answer.records().pop();
    let made = made.map(|made| if record.only_objects { made.without_allow() } else { made });
    made.ok_or_else(|| unasked(place, &format_args!("the policy does not judge {}", answer.request().operation.word())))
}

fn shown(place: &str, record: &Record, differences: &[Difference]) -> String {
    let mut lines = vec![format!("{place} ({} {})", record.policy.name, record.policy.version)];
    let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
    for difference in differences {
        lines.push(format!("  {}: {} → {}", difference.at, side(&difference.ours), side(&difference.theirs)));
    }
    lines.iter().map(|line| clean(line) + "\n").collect()
}

fn whole(place: &str, record: &Record, differences: &[Difference]) -> Value {
    let list: Vec<Value> = differences
        .iter()
        .map(|difference| json!({"at": difference.at, "recorded": difference.ours, "now": difference.theirs}))
        .collect();
    json!({"record": place, "policy": record.policy, "differences": list})
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ocm_policy_abi::Decision;
    use ocm_policy_rules::record::Circumstances;
    use ocm_policy_rules::{Outcome, PolicyId};

    use super::*;

    #[test]
    fn what_was_altered_of_a_record_is_named() {
        let outcome = Outcome { policy: Arc::new(PolicyId::default()), result: Ok(Decision::default()), fuel: 1 };
        let texts = Circumstances { settings: "{}".to_owned(), request: "{}".to_owned(), ..Circumstances::default() };
        let mut record = Record::new(&outcome, texts);
        assert_eq!(altered(&record), []);
        record.request.push(' ');
        let text = shown("r.jsonl:1", &record, &altered(&record));
        assert!(text.ends_with("\n  /request: a digest of another text → altered\n"), "{text}");
        record.settings.push(' ');
        let at: Vec<_> = altered(&record).into_iter().map(|difference| difference.at).collect();
        assert_eq!(at, ["/settings", "/request"]);
    }
}
