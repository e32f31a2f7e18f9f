//! A list, once or for as long as somebody watches.

use std::pin::pin;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use ocm_core::{Changed, Event, Exit, Failure, Narrator};
use serde_json::Value;

use super::sort::sort_by;
use super::{ListArgs, ListFormat, NONE, Tree, View};
use crate::jsonpath::Column;
use crate::{Format, Table, Ui, document, object_list};

/// Shows a list once.
///
/// # Errors
/// A usage failure for an order that there is not; when a document cannot be written.
pub fn show<T: View>(ui: &Ui, list: &ListArgs, mut rows: Vec<T::Row>) -> Result<Exit, Failure> {
    if let Some(field) = &list.sort_by
        && !sort_by::<T>(&mut rows, field)?
        && !rows.is_empty()
    {
        ui.tell(Event::warning(format!("--sort-by {field}: nothing in the list has that, so its order is as it was")));
    }
    match &list.output.output {
        ListFormat::As(format @ (Format::Json | Format::Yaml)) => ui.out(&document(*format, &whole::<T>(list, &rows))?),
        ListFormat::As(Format::Name) => rows.iter().for_each(|row| ui.line(&T::reference(row))),
        ListFormat::JsonPath(template) => ui.out(&template.render(&whole::<T>(list, &rows))),
        ListFormat::Columns(columns) => {
            let headings: Vec<&str> = columns.iter().map(|column| column.heading.as_str()).collect();
            table(ui, list, &headings, rows.iter().map(|row| chosen::<T>(list, columns, row)));
        }
        ListFormat::As(Format::Table | Format::Wide) | ListFormat::Tree if rows.is_empty() => {
            ui.tell(Event::note(nothing::<T>(list)));
        }
        ListFormat::Tree => {
            let trees = T::trees(&rows, Timestamp::now());
            trees.iter().flat_map(Tree::lines).for_each(|line| ui.line(&line));
        }
        ListFormat::As(format) => {
            let now = Timestamp::now();
            table(ui, list, &headings::<T>(*format, list), rows.iter().map(|row| cells::<T>(*format, list, row, now)));
        }
    }
    Ok(Exit::Ok)
}

/// What is said of an empty list.
fn nothing<T: View>(list: &ListArgs) -> &'static str {
    if list.is_narrowed() { T::NO_MATCH } else { T::NOTHING }
}

/// One name asks for one object, as with kubectl; else it is a list, as it is [of several](ListArgs::of_several).
fn whole<T: View>(list: &ListArgs, rows: &[T::Row]) -> Value {
    let mut documents: Vec<_> = rows.iter().map(|row| shown::<T>(row, list.show_managed_fields)).collect();
    match (list.names.as_slice(), documents.len()) {
        ([_], 1) => documents.remove(0),
        _ => object_list(documents),
    }
}

fn table(ui: &Ui, list: &ListArgs, headings: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut table = Table::new(headings);
    rows.for_each(|cells| table.row(cells));
    let text = table.render();
    let skip = if list.no_headers { text.find('\n').map_or(0, |end| end + 1) } else { 0 };
    ui.out(&text[skip..]);
}

/// The cells of the user's columns.
fn chosen<T: View>(list: &ListArgs, columns: &[Column], row: &T::Row) -> Vec<String> {
    let document = shown::<T>(row, list.show_managed_fields);
    columns.iter().map(|column| column.cell(&document)).collect()
}

const LABELS: &str = "LABELS";

fn headings<T: View>(format: Format, list: &ListArgs) -> Vec<&'static str> {
    T::HEADINGS[..columns::<T>(format)].iter().copied().chain(list.show_labels.then_some(LABELS)).collect()
}

fn cells<T: View>(format: Format, list: &ListArgs, row: &T::Row, now: Timestamp) -> Vec<String> {
    let mut cells = T::cells(row, now);
    cells.truncate(columns::<T>(format));
    if list.show_labels {
        cells.push(labels(&T::object(row)));
    }
    cells
}

/// Labels as kubectl shows them.
fn labels(object: &Value) -> String {
    let labels = object["metadata"]["labels"].as_object().filter(|labels| !labels.is_empty());
    let Some(labels) = labels else { return NONE.to_owned() };
    let pair = |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or_default());
    labels.iter().map(pair).collect::<Vec<_>>().join(",")
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
    ui.watches();
    // Later rows cannot move the columns of earlier ones: these widths hold most names, and longer cells push.
    let aligned = |cells: &[String]| cells.iter().map(|cell| format!("{cell:<14}")).collect::<Vec<_>>().join("  ");
    let headings: Vec<&str> = match &list.output.output {
        ListFormat::As(format) if format.is_human() => headings::<T>(*format, list),
        ListFormat::Columns(columns) => columns.iter().map(|column| column.heading.as_str()).collect(),
        _ => Vec::new(),
    };
    if !headings.is_empty() && !list.no_headers {
        let headings: Vec<String> = headings.into_iter().map(str::to_owned).collect();
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
        let mark = if gone { "  (removed)" } else { "" };
        let line = |cells: &[String]| ui.line(&format!("{}{mark}", aligned(cells).trim_end()));
        match &list.output.output {
            ListFormat::As(format @ (Format::Json | Format::Yaml)) => {
                let text = document(*format, &shown::<T>(&row, list.show_managed_fields))?;
                ui.out(&if *format == Format::Yaml { format!("---\n{text}") } else { text });
            }
            ListFormat::As(Format::Name) => ui.line(&T::reference(&row)),
            ListFormat::As(format) => line(&cells::<T>(*format, list, &row, Timestamp::now())),
            ListFormat::Tree => {
                let mut trees = T::trees(std::slice::from_ref(&row), Timestamp::now());
                trees.iter_mut().for_each(|tree| tree.line += mark);
                trees.iter().flat_map(Tree::lines).for_each(|line| ui.line(&line));
            }
            ListFormat::JsonPath(template) => {
                ui.out(&template.render(&shown::<T>(&row, list.show_managed_fields)));
            }
            ListFormat::Columns(columns) => line(&chosen::<T>(list, columns, &row)),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::list::samples::Rows;
    use crate::list::{ListArgs, ListOutputArgs};

    #[test]
    fn that_nothing_matches_says_nothing_of_the_hub() {
        let all = || ListArgs {
            names: Vec::new(),
            selector: None,
            sort_by: None,
            watch: false,
            show_labels: false,
            no_headers: false,
            show_managed_fields: false,
            output: ListOutputArgs { output: ListFormat::As(Format::Table) },
            narrowed: false,
        };
        for list in [all(), all().of_several(), all().narrowed_if(false)] {
            assert_eq!(nothing::<Rows>(&list), Rows::NOTHING);
        }
        let named = || ListArgs { names: vec!["c1".to_owned()], ..all() };
        let selected = ListArgs { selector: Some("env=x".to_owned()), ..all() };
        for list in [named(), named().of_several(), selected, all().narrowed_if(true).narrowed_if(false)] {
            assert_eq!(nothing::<Rows>(&list), Rows::NO_MATCH);
        }
    }

    #[test]
    fn labels_stand_as_with_kubectl() {
        assert_eq!(labels(&json!({ "metadata": { "labels": { "b": "2", "a": "1" } } })), "a=1,b=2");
        for object in [json!({}), json!({ "metadata": { "labels": {} } }), json!({ "metadata": {} })] {
            assert_eq!(labels(&object), NONE);
        }
    }
}
