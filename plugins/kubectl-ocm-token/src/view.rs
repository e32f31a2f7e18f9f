//! What tokens look like.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ocm_cli::{Format, Ui, document, without_nulls};
use ocm_core::duration::human;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, certificate};
use ocm_flows::hub::AddressOptions;
use ocm_flows::token::{Minted, Revoked};
use serde_json::{Map, Value, json};

use crate::args::LineFormat;

/// How the line is made and where it goes.
pub(crate) struct Shape {
    pub(crate) address: AddressOptions,
    pub(crate) format: LineFormat,
    pub(crate) token_only: bool,
    pub(crate) file: Option<PathBuf>,
    pub(crate) output: Format,
}

/// The line, or the document, or the token alone: on stdout or in a file of the user's.
///
/// # Errors
/// That the file cannot be written: which token is there then.
pub(crate) fn minted(ui: &Ui, minted: &Minted, shape: &Shape, target: Option<Target>) -> Result<Exit, Failure> {
    let join_command = &minted.join_command;
    let text = match shape.output {
        _ if shape.token_only => join_command.token.clone() + "\n",
        Format::Json | Format::Yaml => document(shape.output, &whole(minted))?,
        Format::Name => match &minted.id {
            Some(id) => format!("bootstrap-token/{id}\n"),
            None => format!("{ACCOUNT}\n"),
        },
        Format::Table | Format::Wide => match shape.format {
            LineFormat::Ocm => join_command.join_line() + "\n",
            LineFormat::Clusteradm => join_command.clusteradm_line() + "\n",
        },
    };
    match target {
        Some(mut target) => {
            target.write(&text).map_err(|failure| match &minted.id {
                Some(id) => {
                    failure.hint(format!("the token is made all the same; to end it: kubectl ocm token revoke {id}"))
                }
                None => failure,
            })?;
            ui.tell(Event::note(format!("written to {}, readable by you alone", target.path.display())));
        }
        None => ui.out(&text),
    }
    let until = match minted.expires {
        Some(expires) => format!("until {expires}, for {}", left(expires)),
        None => "until it is revoked".to_owned(),
    };
    ui.tell(Event::note(format!("whoever holds the token can register clusters as {} {until}", minted.user)));
    if let Some(id) = &minted.id {
        ui.tell(Event::note(format!("to end it earlier: kubectl ocm token revoke {id}")));
    }
    Ok(Exit::Ok)
}

fn left(expires: Timestamp) -> String {
    human(expires.duration_since(Timestamp::now()).try_into().unwrap_or_default())
}

/// The keys `hub-token` and `hub-apiserver` are the ones that scripts know.
fn whole(minted: &Minted) -> Value {
    let join_command = &minted.join_command;
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            members.insert(key.to_owned(), value);
        }
    };
    let join = |words: Vec<String>| if words.is_empty() { Value::Null } else { Value::from(words.join(",")) };
    put("hub-token", json!(join_command.token));
    put("hub-apiserver", json!(join_command.server));
    put("hub-ca-pin", join(join_command.pins.iter().map(ToString::to_string).collect()));
    put("hub-ca-data", join(join_command.ca.iter().map(|certificate| certificate::to_base64(certificate)).collect()));
    put("expires", json!(minted.expires.map(|time| time.to_string())));
    put("token-id", json!(minted.id));
    put("user", json!(minted.user));
    put("join-command", json!(join_command.join_line()));
    Value::Object(members)
}

/// A file that only its owner can read, written whole or not at all. It is made before there is what is to be written, so that
/// no token is lost for want of a place.
pub(crate) struct Target {
    path: PathBuf,
    temporary: PathBuf,
    file: std::fs::File,
}

impl Target {
    /// # Errors
    /// That the file cannot be made there.
    pub(crate) fn at(path: PathBuf) -> Result<Self, Failure> {
        let name = path.file_name().ok_or_else(|| Failure::usage(format!("{} is no file", path.display())))?;
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(temporary);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&temporary) {
            Ok(file) => Ok(Self { path, temporary, file }),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all());
        written.and_then(|()| std::fs::rename(&self.temporary, &self.path)).map_err(|error| failed(&self.path, error))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Half a token is of no use to anybody. A whole one has the name that was wanted by now.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn failed(path: &Path, error: std::io::Error) -> Failure {
    Failure::other(format!("cannot write {}", path.display())).because(error)
}

/// What stands for every token of the service account.
pub(crate) const ACCOUNT: &str = "serviceaccount/agent-registration-bootstrap";

/// One line per bootstrap token that is gone.
pub(crate) fn revoked(ui: &Ui, reference: &str, dry_run: DryRun, format: Format) {
    ended(ui, reference, "revoked", dry_run, format);
}

/// That this bootstrap token is not there; several may have been named.
pub(crate) fn absent(id: &str) -> Event {
    Event::warning(format!("the hub has no bootstrap token {id} for clusters: it was revoked before, or mistyped"))
}

/// The line for the service account.
pub(crate) fn account(ui: &Ui, dry_run: DryRun, format: Format) {
    ended(ui, ACCOUNT, "recreated", dry_run, format);
}

fn ended(ui: &Ui, reference: &str, word: &str, dry_run: DryRun, format: Format) {
    match format {
        Format::Name => ui.line(reference),
        Format::Table | Format::Wide => ui.line(&format!("{reference} {word}{}", dry_run.remark())),
        Format::Json | Format::Yaml => {}
    }
}

/// The whole result for programs, and how the command ends.
///
/// # Errors
/// What could not be revoked.
pub(crate) fn finish_revoking(
    ui: &Ui,
    rows: Vec<(String, Result<Revoked, Failure>)>,
    dry_run: DryRun,
    format: Format,
) -> Result<Exit, Failure> {
    if matches!(format, Format::Json | Format::Yaml) {
        let of = |(name, revoked): &(String, Result<Revoked, Failure>)| {
            without_nulls(json!({
                "name": name,
                "revoked": matches!(revoked, Ok(Revoked::Now)),
                "error": revoked.as_ref().err().map(ToString::to_string),
            }))
        };
        let tokens: Vec<Value> = rows.iter().map(of).collect();
        ui.out(&document(format, &json!({ "dryRun": dry_run != DryRun::No, "tokens": tokens }))?);
    }
    let total = rows.len();
    let absent = rows.iter().any(|(_, revoked)| matches!(revoked, Ok(Revoked::Absent)));
    let failed = rows.into_iter().filter_map(|(name, revoked)| Some((name, revoked.err()?))).collect();
    let sentence = |failed: usize| format!("{failed} of {total} could not be revoked");
    match Failure::of_several(total, failed, sentence) {
        Some(failure) => Err(failure),
        None => Ok(if absent { Exit::Failed } else { Exit::Ok }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_tokens_the_one_that_is_not_there_is_named() {
        let Event::Warning(told) = absent("def456") else { panic!("a warning") };
        assert!(told.starts_with("the hub has no bootstrap token def456 for clusters: "), "{told}");
    }
}
