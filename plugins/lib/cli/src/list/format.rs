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
    /// Each with what belongs to it below, for people; of lists that have something to show there.
    Tree,
    /// kubectl's JSONPath template over the document that `-o json` prints.
    JsonPath(Template),
    /// Columns of the user's choice, a row for each object.
    Columns(Vec<Column>),
}

const TREE: &str = "tree";
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
        if text == TREE {
            return Ok(Self::Tree);
        }
        match text.strip_prefix(COLUMNS) {
            Some(columns) => Ok(Self::Columns(Column::all(columns)?)),
            None => Ok(Self::As(Format::from_str(text, false)?)),
        }
    }
}

/// Gives the argument for the format of a list a tree, too.
pub fn with_tree(arg: Arg) -> Arg {
    arg.value_parser(ListFormatParser { tree: true })
}

/// Reads formats of lists, and tells what there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListFormatParser {
    /// Whether one of them is a tree.
    tree: bool,
}

impl ListFormatParser {
    /// The formats of every list.
    pub(super) const PLAIN: Self = Self { tree: false };

    fn values(self) -> Vec<PossibleValue> {
        let plain = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let tree = self.tree.then(|| PossibleValue::new(TREE).help("Each with what belongs to it below"));
        let more = [
            PossibleValue::new("jsonpath=TEMPLATE").help("kubectl's templates, such as '{.items[*].metadata.name}'"),
            PossibleValue::new("custom-columns=COLUMNS")
                .help("Columns such as NAME:.metadata.name,PHASE:.standing.phase"),
        ];
        plain.chain(tree).chain(more).collect()
    }
}

impl TypedValueParser for ListFormatParser {
    type Value = ListFormat;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<ListFormat, clap::Error> {
        let is_known = |text: &str| [JSON_PATH, COLUMNS].iter().any(|prefix| text.starts_with(prefix));
        if !value.to_str().is_some_and(is_known) {
            // What is none of the words is told as for every other option.
            PossibleValuesParser::new(self.values()).parse_ref(command, arg, value)?;
        }
        StringValueParser::new().try_map(|text| text.parse::<ListFormat>()).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values().into_iter()))
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
        for value in (ListFormatParser { tree: true }).values() {
            let text = value.get_name().replace("TEMPLATE", "{.a}").replace("COLUMNS", "A:.a");
            assert!(text.parse::<ListFormat>().is_ok(), "{text}");
        }
    }

    #[test]
    fn a_tree_is_a_format_of_the_lists_that_have_one() {
        let command = Command::new("x").arg(Arg::new("output").short('o').value_parser(ListFormatParser::PLAIN));
        let words = ["x", "-o", "tree"];
        assert!(command.clone().try_get_matches_from(words).is_err());
        let matches = command.mut_arg("output", with_tree).try_get_matches_from(words).unwrap();
        assert_eq!(matches.get_one::<ListFormat>("output"), Some(&ListFormat::Tree));
    }
}
