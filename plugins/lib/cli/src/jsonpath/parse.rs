//! From text to templates, columns and paths.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::template::{Column, Comparison, Operand, Part, Path, Step, Template};

/// Why a text is no template, no column or no path, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The character at which it was noticed; the first is 1.
    pub at: usize,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {}: {}", self.at, self.why)
    }
}

impl std::error::Error for TemplateError {}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut parser = Parser::new(text);
        parser.parts(None).map(Self)
    }
}

impl Template {
    /// Whether it shows anything of an object, not only text.
    pub fn has_paths(&self) -> bool {
        self.0.iter().any(|part| !matches!(part, Part::Text(_)))
    }
}

impl Column {
    /// Columns such as `NAME:.metadata.name,PHASE:{.standing.phase}`. As with kubectl, braces and the first dot of a path may
    /// be left out.
    ///
    /// # Errors
    /// Where the text is none, and why.
    pub fn all(text: &str) -> Result<Vec<Self>, TemplateError> {
        let mut parser = Parser::new(text);
        let mut columns = Vec::new();
        loop {
            let begin = parser.at;
            let heading = parser.take_while(|c| !matches!(c, ':' | ','));
            if heading.is_empty() || !parser.eat(':') {
                return Err(parser.wrong(begin, "a column is HEADING:PATH, such as NAME:.metadata.name"));
            }
            columns.push(Self { heading, path: parser.relaxed()? });
            if !parser.eat(',') {
                break;
            }
        }
        parser.end(columns)
    }
}

impl FromStr for Path {
    type Err = TemplateError;

    /// A path such as `.metadata.name`; braces and the first dot may be left out.
    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut parser = Parser::new(text);
        let path = parser.relaxed()?;
        parser.end(path)
    }
}

struct Parser {
    text: Vec<char>,
    at: usize,
    /// Whether a filter is read, in which comparisons end a name.
    in_filter: bool,
}

impl Parser {
    fn new(text: &str) -> Self {
        Self { text: text.chars().collect(), at: 0, in_filter: false }
    }

    fn wrong(&self, at: usize, why: impl Into<String>) -> TemplateError {
        TemplateError { at: at + 1, why: why.into() }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let letters: Vec<char> = word.chars().collect();
        let rest = &self.text[self.at..];
        let ends = rest.get(letters.len()).is_none_or(|c| !c.is_alphanumeric() && *c != '_');
        let found = rest.starts_with(&letters) && ends;
        if found {
            self.at += letters.len();
        }
        found
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let begin = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.text[begin..self.at].iter().collect()
    }

    fn blanks(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t'));
    }

    fn expect(&mut self, wanted: char) -> Result<(), TemplateError> {
        if self.eat(wanted) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(found) => self.wrong(self.at, format!("{wanted} is expected, not {found}")),
            None => self.wrong(self.at, format!("{wanted} is missing")),
        })
    }

    fn end<T>(&self, value: T) -> Result<T, TemplateError> {
        match self.peek() {
            None => Ok(value),
            Some(found) => Err(self.wrong(self.at, format!("{found} is not expected"))),
        }
    }

    /// What stands up to the end of the text, or to the `{end}` of the range that began at `range`.
    fn parts(&mut self, range: Option<usize>) -> Result<Vec<Part>, TemplateError> {
        let mut parts = Vec::new();
        loop {
            let text = self.take_while(|c| c != '{');
            if !text.is_empty() {
                parts.push(Part::Text(text));
            }
            let begin = self.at;
            if !self.eat('{') {
                return match range {
                    Some(begin) => Err(self.wrong(begin, "{range} has no {end}")),
                    None => Ok(parts),
                };
            }
            self.blanks();
            if self.eat_word("end") {
                self.close()?;
                return match range {
                    Some(_) => Ok(parts),
                    None => Err(self.wrong(begin, "{end} has no {range}")),
                };
            }
            parts.push(if self.eat_word("range") {
                self.blanks();
                let path = self.path()?;
                self.close()?;
                Part::Range(path, self.parts(Some(begin))?)
            } else if matches!(self.peek(), Some('"' | '\'')) {
                let text = self.quoted()?;
                self.close()?;
                Part::Text(text)
            } else {
                let path = self.path()?;
                self.close()?;
                Part::Values(path)
            });
        }
    }

    fn close(&mut self) -> Result<(), TemplateError> {
        self.blanks();
        self.expect('}')
    }

    /// A path that begins with a dot, a bracket, `@` or `$`.
    fn path(&mut self) -> Result<Path, TemplateError> {
        if !matches!(self.peek(), Some('.' | '[' | '@' | '$')) {
            return Err(self.wrong(self.at, "a path such as .metadata.name is expected"));
        }
        if !self.eat('@') {
            self.eat('$');
        }
        let mut steps = Vec::new();
        self.steps(&mut steps)?;
        Ok(Path(steps))
    }

    /// A path as custom columns have it.
    fn relaxed(&mut self) -> Result<Path, TemplateError> {
        let braces = self.eat('{');
        self.blanks();
        let path = if self.peek().is_some_and(|c| !self.ends_name(c)) {
            let mut steps = vec![self.member()?];
            self.steps(&mut steps)?;
            Path(steps)
        } else {
            self.path()?
        };
        if braces {
            self.close()?;
        }
        Ok(path)
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Result<(), TemplateError> {
        loop {
            if self.eat('.') {
                if self.eat('.') {
                    steps.push(Step::Recursive);
                }
                // A dot alone is the element itself, and one before a bracket does nothing.
                if self.peek().is_some_and(|c| !self.ends_name(c)) {
                    steps.push(self.member()?);
                }
            } else if self.peek() == Some('[') {
                steps.push(self.bracket()?);
            } else {
                return Ok(());
            }
        }
    }

    fn ends_name(&self, c: char) -> bool {
        c.is_whitespace()
            || matches!(c, '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
            || (self.in_filter && matches!(c, '=' | '!' | '<' | '>' | ')'))
    }

    /// A name of a member, in which `\` takes away what the next character means, or a star.
    fn member(&mut self) -> Result<Step, TemplateError> {
        let begin = self.at;
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| !self.ends_name(*c)) {
            self.at += 1;
            if c != '\\' {
                name.push(c);
                continue;
            }
            let Some(escaped) = self.peek() else { return Err(self.wrong(begin, "the name ends with a backslash")) };
            self.at += 1;
            name.push(escaped);
        }
        Ok(if name == "*" { Step::Wildcard } else { Step::Field(name) })
    }

    fn bracket(&mut self) -> Result<Step, TemplateError> {
        let begin = self.at;
        self.expect('[')?;
        self.blanks();
        if self.eat('?') {
            return self.filter(begin);
        }
        let mut all = vec![self.selector()?];
        loop {
            self.blanks();
            if self.eat(',') {
                self.blanks();
                all.push(self.selector()?);
            } else if self.eat(']') {
                break;
            } else {
                return Err(self.wrong(begin, "[ has no ]"));
            }
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Step::Union(all) })
    }

    fn selector(&mut self) -> Result<Step, TemplateError> {
        let begin = self.at;
        if self.eat('*') {
            return Ok(Step::Wildcard);
        }
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.key();
        }
        let first = self.number()?;
        if !self.eat(':') {
            let index = first.ok_or_else(|| self.wrong(begin, "a number, a quoted key, * or ?( is expected"))?;
            return Ok(Step::Index(index));
        }
        let last = self.number()?;
        let step = if self.eat(':') { self.number()?.unwrap_or(1) } else { 1 };
        match usize::try_from(step) {
            Ok(step @ 1..) => Ok(Step::Slice(first, last, step)),
            _ => Err(self.wrong(begin, "the step of a slice must be 1 or more")),
        }
    }

    /// A key in quotes: to kubectl its dots lead to members of members, unless `\` stands before them.
    fn key(&mut self) -> Result<Step, TemplateError> {
        let begin = self.at;
        let quote = self.peek();
        self.at += 1;
        let raw = self.take_while(|c| Some(c) != quote);
        if self.peek().is_none() {
            return Err(self.wrong(begin, "the quoted key does not end"));
        }
        self.at += 1;
        let mut inner = Self::new(&format!(".{raw}"));
        let mut steps = Vec::new();
        // What is no path is a key by the letter.
        let path = inner.steps(&mut steps).and_then(|()| inner.end(Path(steps)));
        let literal = raw.replace('\\', "");
        Ok(match path {
            Ok(path) => Step::Key(literal, path),
            Err(_) => Step::Field(literal),
        })
    }

    fn number(&mut self) -> Result<Option<i64>, TemplateError> {
        let begin = self.at;
        self.blanks();
        let sign = if self.eat('-') { "-" } else { "" };
        let digits = self.take_while(|c| c.is_ascii_digit());
        self.blanks();
        if digits.is_empty() {
            return if sign.is_empty() { Ok(None) } else { Err(self.wrong(begin, "a number is expected")) };
        }
        let number = format!("{sign}{digits}").parse();
        number.map(Some).map_err(|_| self.wrong(begin, "the number is too large"))
    }

    fn filter(&mut self, begin: usize) -> Result<Step, TemplateError> {
        let outside = std::mem::replace(&mut self.in_filter, true);
        self.expect('(')?;
        let left = self.operand()?;
        self.blanks();
        let test = match self.comparison()? {
            Some(comparison) => Some((comparison, self.operand()?)),
            None => None,
        };
        self.blanks();
        if !self.eat(')') {
            return Err(self.wrong(begin, "a filter is [?(@.field == \"value\")] or [?(@.field)]"));
        }
        self.in_filter = outside;
        self.blanks();
        self.expect(']')?;
        Ok(Step::Filter(left, test))
    }

    fn comparison(&mut self) -> Result<Option<Comparison>, TemplateError> {
        let begin = self.at;
        let word = self.take_while(|c| matches!(c, '=' | '!' | '<' | '>'));
        Ok(Some(match word.as_str() {
            "" => return Ok(None),
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::AtMost,
            ">" => Comparison::Greater,
            ">=" => Comparison::AtLeast,
            other => return Err(self.wrong(begin, format!("{other} is not one of ==, !=, <, <=, > and >="))),
        }))
    }

    fn operand(&mut self) -> Result<Operand, TemplateError> {
        self.blanks();
        if matches!(self.peek(), Some('"' | '\'')) {
            return Ok(Operand::Literal(Value::String(self.quoted()?)));
        }
        for (word, value) in [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)] {
            if self.eat_word(word) {
                return Ok(Operand::Literal(value));
            }
        }
        let begin = self.at;
        let number = self.take_while(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | 'e' | 'E' | '.'));
        if number.contains(|c: char| c.is_ascii_digit()) && !number.starts_with('.') {
            let value = serde_json::from_str(&number).map_err(|_| self.wrong(begin, "this is not a number"))?;
            return Ok(Operand::Literal(value));
        }
        self.at = begin;
        self.path().map(Operand::Path)
    }

    /// A text in quotes, with the escapes of Go that people use.
    fn quoted(&mut self) -> Result<String, TemplateError> {
        let begin = self.at;
        let quote = self.peek();
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if Some(c) == quote {
                return Ok(text);
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            match self.peek() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some('0') => text.push('\0'),
                Some(other @ ('\\' | '"' | '\'' | '/')) => text.push(other),
                _ => return Err(self.wrong(self.at - 1, "escapes are \\n, \\t, \\r, \\0, \\\\, \\\" and \\'")),
            }
            self.at += 1;
        }
        Err(self.wrong(begin, "the quoted text does not end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_template_says_where() {
        for (text, at, why) in [
            ("{.a", 4, "} is missing"),
            ("x{a}", 3, "a path such as .metadata.name is expected"),
            ("{}", 2, "a path such as"),
            ("{range .items[*]}{.a}", 1, "{range} has no {end}"),
            ("{.a}{end}", 5, "{end} has no {range}"),
            ("{.a[}", 5, "a number, a quoted key"),
            ("{.a[0}", 4, "[ has no ]"),
            ("{.a[0:2:0]}", 5, "the step of a slice"),
            ("{.a['b]}", 5, "does not end"),
            ("{\"\\x\"}", 3, "escapes are"),
            ("{\"abc}", 2, "does not end"),
            ("{.a[?(@.b=1)]}", 10, "= is not one of"),
            ("{.a[?(@.b==1 && @.c==2)]}", 4, "a filter is"),
            ("{.a b}", 5, "} is expected, not b"),
            ("{.a[99999999999999999999]}", 5, "too large"),
        ] {
            let error = Template::from_str(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.why.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn what_are_no_columns_says_where() {
        for (text, at) in
            [("", 1), ("NAME", 1), (":.a", 1), ("A:.a,", 6), ("A:.a,B", 6), ("A:", 3), ("A:{.a", 6), ("A:.a}", 5)]
        {
            let error = Column::all(text).unwrap_err();
            assert_eq!(error.at, at, "{text:?}: {error}");
        }
    }

    #[test]
    fn paths_of_columns_may_leave_out_what_is_plain() {
        let path = |text: &str| text.parse::<Path>().unwrap();
        for same in ["metadata.name", "{metadata.name}", "{.metadata.name}", "$.metadata.name"] {
            assert_eq!(path(same), path(".metadata.name"), "{same}");
        }
        let columns = Column::all("A:.a['b,c'],B:d[0,1]").unwrap();
        assert_eq!(columns.iter().map(|column| column.heading.as_str()).collect::<Vec<_>>(), ["A", "B"]);
    }

    #[test]
    fn text_alone_has_no_paths() {
        assert!(!Template::from_str(".metadata.name{'x'}").unwrap().has_paths());
        assert!(Template::from_str("{.metadata.name}").unwrap().has_paths());
    }
}
