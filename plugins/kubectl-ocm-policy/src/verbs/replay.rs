//! Recorded requests are decided again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;

use ocm_cli::{Format, Ui, clean, document};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_engine::{componentize, digest};
use ocm_policy_rules::record::{Difference, Record};
use serde_json::{Value, json};

use crate::args::{KindArgs, ReplayArgs};
use crate::ask::Policies;
use crate::files;
use crate::load::{Loader, module, refused};

/// A module that records may be of.
struct Candidate {
    file: PathBuf,
    module: Vec<u8>,
    digest: String,
    name: String,
}

pub(crate) fn run(args: ReplayArgs, ui: &Ui) -> Result<Exit, Failure> {
    let ReplayArgs { records, policies, kind, output } = args;
    let read = read(&records)?;
    let loader = Loader::new(ui)?;
    let candidates = candidates(&loader, policies, kind, &read)?;
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
            let told = |what: &str| Some(what.to_owned());
            vec![Difference { at: String::new(), ours: told("digests of another text"), theirs: told("altered") }]
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
fn read(file: &std::path::Path) -> Result<Vec<(usize, Record)>, Failure> {
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

/// The modules with their names.
fn candidates(
    loader: &Loader,
    files: Vec<PathBuf>,
    kind: KindArgs,
    records: &[(usize, Record)],
) -> Result<Vec<Candidate>, Failure> {
    let mut candidates = Vec::new();
    for file in files {
        let module = as_recorded(module(&file, kind)?, records);
        let digest = digest(&module);
        let of_it = records.iter().find(|(_, record)| record.module_sha256 == digest);
        let name = match of_it {
            Some((_, record)) => record.policy.name.clone(),
            None => loader.describe(&module).map_err(|error| refused(&file, &error))?.name,
        };
        candidates.push(Candidate { file, module, digest, name });
    }
    Ok(candidates)
}

/// The module in the form that a record is of. A hub makes a component of a core module before it asks it.
fn as_recorded(module: Vec<u8>, records: &[(usize, Record)]) -> Vec<u8> {
    let is_recorded = |module: &[u8]| {
        let digest = digest(module);
        records.iter().any(|(_, record)| record.module_sha256 == digest)
    };
    if is_recorded(&module) {
        return module;
    }
    componentize(&module).ok().filter(|component| is_recorded(component)).unwrap_or(module)
}

/// The very module, or else one of the same policy.
fn which(candidates: &[Candidate], record: &Record) -> Option<usize> {
    let same = candidates.iter().position(|candidate| candidate.digest == record.module_sha256);
    same.or_else(|| candidates.iter().position(|candidate| candidate.name == record.policy.name))
}

fn again(policies: &Policies, record: &Record, place: &str) -> Result<Record, Failure> {
    let cannot = |why: &dyn std::fmt::Display| Failure::usage(format!("{place} cannot be asked again")).because(why);
    let answer = policies.again(&record.request).map_err(|error| cannot(&error))?;
    let made = answer.records().pop();
    made.ok_or_else(|| cannot(&format_args!("the policy does not judge {}", answer.request().operation.word())))
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
