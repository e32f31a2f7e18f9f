//! Formats of lists: those of every command, and kubectl's templates and columns.

use std::error::Error;
use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command, ValueEnum};

use crate::Format;
use crate::jsonpath::{Column, Template};

/// How a list is printed.
#[derive(Clone, Debug, PartialEq)]
pub enum ListFormat {
    /// As other commands print, too.
    As(Format),
    /// kubectl's JSONPath template over the document that `-o json` prints.
    JsonPath(Template),
    /// Columns of the user's choice, a row for each object.
    Columns(Vec<Column>),
}

const JSON_PATH: &str = "jsonpath=";
const COLUMNS: &str = "custom-columns=";

impl FromStr for ListFormat {
    type Err = Box<dyn Error + Send + Sync>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(template) = text.strip_prefix(JSON_PATH) {
            let template: Template = template.parse()?;
            if !template.has_paths() {
                return Err("the template has no path in braces, such as {.metadata.name}".into());
            }
            return Ok(Self::JsonPath(template));
        }
        match text.strip_prefix(COLUMNS) {
            Some(columns) => Ok(Self::Columns(Column::all(columns)?)),
            None => Ok(Self::As(Format::from_str(text, false)?)),
        }
    }
}

/// Reads formats of lists, and tells what there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListFormatParser;

impl ListFormatParser {
    fn values() -> Vec<PossibleValue> {
        let plain = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let more = [
            PossibleValue::new("jsonpath=TEMPLATE").help("kubectl's templates, such as '{.items[*].metadata.name}'"),
            PossibleValue::new("custom-columns=COLUMNS")
                .help("Columns such as NAME:.metadata.name,PHASE:.standing.phase"),
        ];
        plain.chain(more).collect()
    }
}

impl TypedValueParser for ListFormatParser {
    type Value = ListFormat;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<ListFormat, clap::Error> {
        let is_known = |text: &str| [JSON_PATH, COLUMNS].iter().any(|prefix| text.starts_with(prefix));
        if !value.to_str().is_some_and(is_known) {
            // What is none of the words is told as for every other option.
            PossibleValuesParser::new(Self::values()).parse_ref(command, arg, value)?;
        }
        StringValueParser::new().try_map(|text| text.parse::<ListFormat>()).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::values().into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_templates_and_columns_are_formats() {
        assert_eq!("wide".parse::<ListFormat>().unwrap(), ListFormat::As(Format::Wide));
        assert!(matches!("jsonpath={.a}".parse::<ListFormat>(), Ok(ListFormat::JsonPath(_))));
        assert!(
            matches!("custom-columns=A:.a,B:.b".parse::<ListFormat>(), Ok(ListFormat::Columns(columns)) if columns.len() == 2)
        );
    }

    #[test]
    fn what_is_no_format_says_why() {
        for (text, why) in [
            ("jsonpath={.a", "character 4: } is missing"),
            ("jsonpath=.metadata.name", "no path in braces"),
            ("custom-columns=NAME", "character 1: a column is HEADING:PATH"),
        ] {
            let error = text.parse::<ListFormat>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!("xml".parse::<ListFormat>().is_err());
    }

    #[test]
    fn every_value_of_the_help_is_read() {
        for value in ListFormatParser::values() {
            let text = value.get_name().replace("TEMPLATE", "{.a}").replace("COLUMNS", "A:.a");
            assert!(text.parse::<ListFormat>().is_ok(), "{text}");
        }
    }
}
