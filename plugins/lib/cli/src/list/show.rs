//! A list, once or for as long as somebody watches.

use std::pin::pin;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use ocm_core::{Changed, Event, Exit, Failure, Narrator};
use serde_json::Value;

use super::sort::sort_by;
use super::{ListArgs, View};
use crate::{Format, Table, Ui, document, object_list};

/// Shows a list once.
///
/// # Errors
/// A usage failure for an order that there is not; when a document cannot be written.
pub fn show<T: View>(ui: &Ui, list: &ListArgs, mut rows: Vec<T::Row>) -> Result<Exit, Failure> {
    if let Some(field) = &list.sort_by {
        sort_by::<T>(&mut rows, field)?;
    }
    let format = list.output.output;
    match format {
        Format::Json | Format::Yaml => {
            // One name asks for one object, as with kubectl.
            let mut documents: Vec<_> = rows.iter().map(|row| shown::<T>(row, list.show_managed_fields)).collect();
            let value = match (list.names.as_slice(), documents.len()) {
                ([_], 1) => documents.remove(0),
                _ => object_list(documents),
            };
            ui.out(&document(format, &value)?);
        }
        Format::Name => rows.iter().for_each(|row| ui.line(&T::reference(row))),
        Format::Table | Format::Wide if rows.is_empty() => ui.tell(Event::note(T::NOTHING)),
        Format::Table | Format::Wide => {
            let now = Timestamp::now();
            let columns = columns::<T>(format);
            let mut table = Table::new(&T::HEADINGS[..columns]);
            for row in &rows {
                table.row(&T::cells(row, now)[..columns]);
            }
            let text = table.render();
            let skip = if list.no_headers { text.find('\n').map_or(0, |end| end + 1) } else { 0 };
            ui.out(&text[skip..]);
        }
    }
    Ok(Exit::Ok)
}

/// Shows every change as it comes. Ends when nobody reads, when the hub refuses, or with Ctrl-C.
///
/// # Errors
/// Why the hub refuses.
pub async fn follow<T: View>(
    ui: &Ui,
    list: &ListArgs,
    changes: impl Stream<Item = Result<Changed<T::Row>, Failure>>,
    wanted: impl Fn(&T::Row) -> bool,
) -> Result<Exit, Failure> {
    let format = list.output.output;
    let columns = columns::<T>(format);
    // Later rows cannot move the columns of earlier ones: these widths hold most names, and longer cells push.
    let aligned = |cells: &[String]| cells.iter().map(|cell| format!("{cell:<14}")).collect::<Vec<_>>().join("  ");
    if format.is_human() && !list.no_headers {
        let headings: Vec<String> = T::HEADINGS[..columns].iter().map(|heading| (*heading).to_owned()).collect();
        ui.line(aligned(&headings).trim_end());
    }
    let mut changes = pin!(changes);
    while let Some(change) = changes.next().await {
        let (row, gone) = match change? {
            Changed::Now(row) => (row, false),
            Changed::Gone(row) => (row, true),
            Changed::Listed => continue,
            Changed::Lost(failure) => {
                ui.tell(Event::warning(format!("{failure}; trying again")));
                continue;
            }
            Changed::Back => {
                ui.tell(Event::note("the watch goes on"));
                continue;
            }
        };
        if !wanted(&row) {
            continue;
        }
        match format {
            Format::Json | Format::Yaml => {
                let text = document(format, &shown::<T>(&row, list.show_managed_fields))?;
                ui.out(&if format == Format::Yaml { format!("---\n{text}") } else { text });
            }
            Format::Name => ui.line(&T::reference(&row)),
            Format::Table | Format::Wide => {
                let cells = T::cells(&row, Timestamp::now());
                let gone = if gone { "  (removed)" } else { "" };
                ui.line(&format!("{}{gone}", aligned(&cells[..columns]).trim_end()));
            }
        }
        if ui.is_stdout_gone() {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// The document of a row, as kubectl shows objects: without the server's notes about who owns which field.
fn shown<T: View>(row: &T::Row, with_managed_fields: bool) -> Value {
    let mut document = T::document(row);
    if !with_managed_fields && let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    document
}

fn columns<T: View>(format: Format) -> usize {
    if format == Format::Wide { T::HEADINGS.len() } else { T::NARROW }
}
