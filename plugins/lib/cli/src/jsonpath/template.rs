//! Templates, columns and paths, as they were parsed.

use serde_json::Value;

/// A template: text, with the values of paths in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(pub(super) Vec<Part>);

/// One column of `-o custom-columns`.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its heading.
    pub heading: String,
    pub(super) path: Path,
}

/// The way from an element to others.
#[derive(Clone, Debug, PartialEq)]
pub struct Path(pub(super) Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// Text outside of braces, or quoted inside of them.
    Text(String),
    /// What a path finds.
    Values(Path),
    /// What stands up to `{end}`, for each element that a path finds.
    Range(Path, Vec<Part>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A member of an object.
    Field(String),
    /// A quoted key: a member of this name, or else what the path finds that it is to kubectl.
    Key(String, Path),
    /// Everything in an object or a list.
    Wildcard,
    /// The element and everything below it that holds others.
    Recursive,
    /// One element of a list, from its end where it is negative.
    Index(i64),
    /// Elements of a list from the first up to the second, not included, each so many behind the other.
    Slice(Option<i64>, Option<i64>, usize),
    /// What each of these finds, one after the other.
    Union(Vec<Step>),
    /// Those elements of a list for which this holds.
    Filter(Operand, Option<(Comparison, Operand)>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Literal(Value),
    Path(Path),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}
