//! `kubectl ocm version`: what is installed here, and what else on PATH has the same name.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use crate::output::{USAGE, fail, plain, show};
use crate::siblings::{self, Origin};
use crate::visible::is_visible;
use crate::{stamp, verbs};

/// One binary that answers to a verb.
struct Row {
    verb: String,
    version: String,
    path: String,
    note: &'static str,
}

pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let json = match words.as_slice() {
        [] => false,
        ["-o" | "--output", "json"] | ["-ojson" | "-o=json" | "--output=json"] => true,
        ["-h" | "--help"] => {
            return show("Show the version of every binary of kubectl ocm\n\nUsage: kubectl ocm version [-o json]\n");
        }
        _ => {
            return fail(USAGE, &format!("version does not take {}", words.join(" ")), "kubectl ocm version [-o json]");
        }
    };
    let rows = rows();
    show(&if json { as_json(&rows) } else { as_table(&rows) })
}

/// Reads the stamps of all binaries. Those beside this one that have none are asked, all at once; others are not started: they
/// are somebody else's, or would not be run, and may do anything.
fn rows() -> Vec<Row> {
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let mut rows = vec![Row {
        verb: "ocm".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        path: own.display().to_string(),
        note: "",
    }];
    let mut asked = Vec::new();
    for (verb, binaries) in siblings::all() {
        for (index, (path, origin)) in binaries.into_iter().enumerate() {
            let stamp = stamp::read(&path);
            let child = if stamp.is_none() && is_ours(&verb, origin) { ask(&path) } else { None };
            asked.push((verb.clone(), path.display().to_string(), origin, index > 0, stamp, child));
        }
    }
    for (verb, path, origin, shadowed, stamp, child) in asked {
        let version = stamp.or_else(|| child.and_then(answer)).unwrap_or_else(|| "unknown".to_owned());
        let note = match (shadowed, origin) {
            (true, _) => "not run: the one above comes first",
            (false, Origin::Path) => "from PATH",
            (false, Origin::Sibling) if version != env!("CARGO_PKG_VERSION") => "another version",
            (false, Origin::Sibling) => "",
        };
        rows.push(Row { verb, version, path, note });
    }
    rows
}

/// Whether a binary is one of this installation's.
fn is_ours(verb: &str, origin: Origin) -> bool {
    origin == Origin::Sibling && verbs::VERBS.iter().any(|(known, _)| *known == verb)
}

fn ask(binary: &Path) -> Option<Child> {
    Command::new(binary).arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

/// The last word of what `--version` prints.
fn answer(child: Child) -> Option<String> {
    let output = child.wait_with_output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.split_whitespace().last().map(str::to_owned)
}

fn as_table(rows: &[Row]) -> String {
    let width = |cell: fn(&Row) -> String, heading: &str| {
        rows.iter().map(|row| cell(row).len()).max().unwrap_or_default().max(heading.len())
    };
    let (verb, version) = (width(|row| row.verb.clone(), "VERB"), width(|row| plain(&row.version), "VERSION"));
    let mut text = format!("{:verb$}   {:version$}   BINARY\n", "VERB", "VERSION");
    for row in rows {
        let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
        text += &format!("{:verb$}   {:version$}   {}{note}\n", row.verb, plain(&row.version), plain(&row.path));
    }
    text
}

fn as_json(rows: &[Row]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let fields =
                [("verb", row.verb.as_str()), ("version", &row.version), ("binary", &row.path), ("note", row.note)];
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: {}", quoted(key), quoted(value))).collect();
            format!("    {{ {} }}", fields.join(", "))
        })
        .collect();
    format!("{{\n  \"binaries\": [\n{}\n  ]\n}}\n", rows.join(",\n"))
}

/// A JSON string (RFC 8259 section 7) in which every character can be seen.
fn quoted(text: &str) -> String {
    let escape = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    let inner: String = text
        .chars()
        .map(|c| match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            c if is_visible(c) => c.to_string(),
            c => escape(c),
        })
        .collect();
    format!("\"{inner}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_others_are_not_started() {
        assert!(is_ours("join", Origin::Sibling));
        assert!(!is_ours("join", Origin::Path) && !is_ours("third-party", Origin::Sibling));
    }

    #[test]
    fn a_terminal_is_sent_nothing_that_it_obeys_or_hides() {
        let path = "/a\u{9b}2J\u{202e}\u{e0041}ü".into();
        let row = Row { verb: "x".into(), version: "1\u{1b}]0;y\u{7}".into(), path, note: "" };
        let (table, json) = (as_table(std::slice::from_ref(&row)), as_json(&[row]));
        assert!(table.contains(r"1\u{1b}]0;y\u{7}   /a\u{9b}2J\u{202e}\u{e0041}ü"), "{table}");
        assert!(json.contains(r"1\u001b]0;y\u0007") && json.contains(r"/a\u009b2J\u202e\udb40\udc41ü"), "{json}");
        assert!((table + &json).chars().all(|c| is_visible(c) || c == '\n'));
    }
}
