//! YAML as the types want it that are read from it: what is written without quotes is text where text is wanted, be it `1234`,
//! `1.20` or `on`, as for kubectl.
//!
//! A document is read into a tree, and types from that. The decoder of the library, made anew for each type, was a tenth of each
//! binary; that of a tree is a small one.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_saphyr::{NonFiniteFloatPolicy, Spanned};

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// In which line, counted from 1; none where it is not known.
    pub line: Option<u64>,
    /// What it is.
    pub kind: ErrorKind,
}

/// What may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A field that the type does not have.
    UnknownField {
        /// Its name.
        field: String,
        /// Those that it has.
        expected: &'static [&'static str],
    },
    /// A word that is none of those of a field.
    UnknownVariant {
        /// The word.
        variant: String,
        /// Those of the field.
        expected: &'static [&'static str],
    },
    /// Anything else, in words that quote nothing of the text but names of fields.
    Other(String),
}

impl Error {
    fn other(why: impl fmt::Display) -> Self {
        Self { line: None, kind: ErrorKind::Other(why.to_string()) }
    }

    /// In this line, if nobody has said a closer one.
    fn at(self, line: u64) -> Self {
        Self { line: self.line.or((line > 0).then_some(line)), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { field, .. } => write!(f, "there is no field {field:?} here"),
            Self::UnknownVariant { variant, .. } => write!(f, "{variant:?} is none of the words of this field"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::other(why)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self { line: None, kind: ErrorKind::UnknownField { field: field.to_owned(), expected } }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self { line: None, kind: ErrorKind::UnknownVariant { variant: variant.to_owned(), expected } }
    }

    /// What was found is not quoted: it may be a secret in the wrong place.
    fn invalid_type(found: Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        let found = match found {
            Unexpected::Bool(_) => "a boolean",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
            Unexpected::Char(_) | Unexpected::Str(_) => "a text",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a map",
            Unexpected::Unit | Unexpected::Option => "nothing",
            _ => "something else",
        };
        Self::other(format!("{found} where {wanted} is wanted"))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        Self::invalid_type(found, wanted)
    }
}

/// A value of a document, and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its line, counted from 1; 0 where it is not known.
    line: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// What has no quotes: its text, and what it means where nothing says that it is text.
    Plain(String, Meaning),
    /// What can only be text.
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Name, Node)>),
}

/// The name of a member, and where it stands.
#[derive(Clone, Debug)]
struct Name {
    line: u64,
    text: String,
}

/// What a text without quotes means (YAML 1.2, 10.3.2).
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Nothing,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

/// Reads one document.
///
/// # Errors
/// A text that is no YAML or has several documents, or what the type does not take.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    Node::read(text)?.to()
}

/// Reads all documents of a text; empty ones are none.
///
/// # Errors
/// As those of [`from_str`].
pub fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Error> {
    let all = serde_saphyr::from_multiple_with_options::<Spanned<Raw>>(text, options()).map_err(wrong)?;
    all.into_iter().map(|document| Node::of(document, text).to()).collect()
}

/// How every document that people write is read, for types that are read by the library itself: they need [`Spanned`].
pub fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        // kubectl reads YAML 1.1: `y` and `on` are booleans, and a number that begins with 0 is octal.
        legacy_octal_numbers: true,
        strict_booleans: false,
        // Names such as `.inf` and `1e999` are text, if that is wanted.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    }
}

/// What the library finds says where it is, and quotes the text in the lines below the first.
fn wrong(error: serde_saphyr::Error) -> Error {
    let why = error.without_snippet().to_string();
    Error::other(why.lines().next().unwrap_or_default())
}

impl Node {
    /// Reads one document.
    ///
    /// # Errors
    /// A text that is no YAML, or has several documents.
    pub fn read(text: &str) -> Result<Self, Error> {
        let document = serde_saphyr::from_str_with_options(text, options()).map_err(wrong)?;
        Ok(Self::of(document, text))
    }

    /// What it holds, as this type.
    ///
    /// # Errors
    /// What the type does not take.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(self)
    }

    /// The lines of the entries of a list that is a member of this map.
    pub fn lines(&self, member: &str) -> Vec<u64> {
        let Content::Map(members) = &self.content else { return Vec::new() };
        match members.iter().find(|(name, _)| name.text == member) {
            Some((_, Self { content: Content::List(entries), .. })) => entries.iter().map(|entry| entry.line).collect(),
            _ => Vec::new(),
        }
    }

    /// That something else is wanted in its place.
    fn refused(&self, wanted: &str) -> Error {
        let found = match &self.content {
            Content::Plain(_, Meaning::Nothing) => Unexpected::Unit,
            Content::Plain(_, Meaning::Bool(value)) => Unexpected::Bool(*value),
            Content::Plain(_, Meaning::Signed(value)) => Unexpected::Signed(*value),
            Content::Plain(_, Meaning::Unsigned(value)) => Unexpected::Unsigned(*value),
            Content::Plain(_, Meaning::Float(value)) => Unexpected::Float(*value),
            Content::Text(text) => Unexpected::Str(text),
            Content::List(_) => Unexpected::Seq,
            Content::Map(_) => Unexpected::Map,
        };
        <Error as de::Error>::invalid_type(found, &wanted).at(self.line)
    }

    /// The whole number that it is. One that begins with 0 is octal to some and not to others.
    fn integer<N: TryFrom<i64> + TryFrom<u64>>(&self) -> Result<N, Error> {
        let number = match &self.content {
            Content::Plain(text, Meaning::Signed(_) | Meaning::Unsigned(_) | Meaning::Float(_)) if is_octal(text) => {
                return Err(Error::other("a number that begins with 0").at(self.line));
            }
            Content::Plain(_, Meaning::Signed(value)) => N::try_from(*value).ok(),
            Content::Plain(_, Meaning::Unsigned(value)) => N::try_from(*value).ok(),
            _ => return Err(self.refused("a whole number")),
        };
        number.ok_or_else(|| Error::other("a number that is too large").at(self.line))
    }

    fn of(raw: Spanned<Raw>, text: &str) -> Self {
        // Of an alias, what it stands for is written elsewhere.
        let span = raw.defined.span();
        let plain = |meaning: Meaning, usual: String| {
            let bytes = span.byte_offset().zip(span.byte_len());
            let bytes = bytes.and_then(|(at, length)| Some((usize::try_from(at).ok()?, usize::try_from(length).ok()?)));
            let written = bytes.and_then(|(at, length)| text.get(at..at.checked_add(length)?));
            // What a tag makes a number of may have quotes.
            let written = written.map(|word| word.trim().trim_matches(['"', '\'']));
            let written = written.filter(|word| !word.is_empty() && !word.contains(['\n', ' ']));
            Content::Plain(written.map_or(usual, str::to_owned), meaning)
        };
        let line = raw.referenced.line();
        let content = match raw.value {
            Raw::Nothing => match plain(Meaning::Nothing, String::new()) {
                Content::Plain(word, _) if word.eq_ignore_ascii_case("null") && !is_as_in_go(&word) => {
                    Content::Text(word)
                }
                _ => Content::Plain(String::new(), Meaning::Nothing),
            },
            Raw::Bool(value) => match plain(Meaning::Bool(value), value.to_string()) {
                Content::Plain(word, _) if !is_as_in_go(&word) => Content::Text(word),
                content => content,
            },
            Raw::Signed(value) => plain(Meaning::Signed(value), value.to_string()),
            Raw::Unsigned(value) => plain(Meaning::Unsigned(value), value.to_string()),
            Raw::Float(value) => plain(Meaning::Float(value), value.to_string()),
            Raw::Text(value) => Content::Text(value),
            Raw::List(entries) => Content::List(entries.into_iter().map(|entry| Self::of(entry, text)).collect()),
            Raw::Map(members) => {
                let name = |name: Spanned<String>| Name { line: name.referenced.line(), text: name.value };
                let member = |(key, value)| (name(key), Self::of(value, text));
                Content::Map(members.into_iter().map(member).collect())
            }
        };
        Self { line, content }
    }
}

/// Whether a word is one that stands for a boolean or for nothing: in small letters, in capitals, or with one capital in front. The
/// library takes any; kubectl takes others, such as `yEs`, for text (`go.yaml.in/yaml/v2`, `resolve.go`: `resolveMapList`).
fn is_as_in_go(word: &str) -> bool {
    let mut letters = word.bytes();
    let first = letters.next();
    let rest: Vec<u8> = letters.collect();
    let are_small = rest.iter().all(u8::is_ascii_lowercase);
    are_small || (first.is_some_and(|first| first.is_ascii_uppercase()) && rest.iter().all(u8::is_ascii_uppercase))
}

/// Whether a number without quotes has zeros before it.
fn is_octal(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A value as the library reads it.
enum Raw {
    Nothing,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Raw, E> {
                Ok(Raw::Nothing)
            }

            fn visit_none<E>(self) -> Result<Raw, E> {
                Ok(Raw::Nothing)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
                deserializer.deserialize_any(self)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::Signed(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
                Ok(Raw::Unsigned(value))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::Float(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
                Ok(Raw::Text(value.to_owned()))
            }

            fn visit_string<E>(self, value: String) -> Result<Raw, E> {
                Ok(Raw::Text(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = entries.next_element()? {
                    all.push(entry);
                }
                Ok(Raw::List(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Raw, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = members.next_entry()? {
                    all.push(member);
                }
                Ok(Raw::Map(all))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

type Entries<'de> = SeqDeserializer<std::slice::Iter<'de, Node>, Error>;
type Members<'de> = MapDeserializer<'de, std::vec::IntoIter<(&'de Name, &'de Node)>, Error>;

fn seq(entries: &[Node]) -> Entries<'_> {
    SeqDeserializer::new(entries.iter())
}

fn map(members: &[(Name, Node)]) -> Members<'_> {
    let members: Vec<(&Name, &Node)> = members.iter().map(|(name, value)| (name, value)).collect();
    MapDeserializer::new(members.into_iter())
}

/// What is wrong below a node is wrong there, or further below.
fn within<T>(node: &Node, result: Result<T, Error>) -> Result<T, Error> {
    result.map_err(|error| error.at(node.line))
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        within(
            self,
            match &self.content {
                Content::Plain(_, Meaning::Nothing) => visitor.visit_unit(),
                Content::Plain(_, Meaning::Bool(value)) => visitor.visit_bool(*value),
                Content::Plain(_, Meaning::Signed(value)) => visitor.visit_i64(*value),
                Content::Plain(_, Meaning::Unsigned(value)) => visitor.visit_u64(*value),
                Content::Plain(_, Meaning::Float(value)) if value.is_finite() => visitor.visit_f64(*value),
                Content::Plain(_, Meaning::Float(_)) => Err(Error::other("a number that is none")),
                Content::Text(text) => visitor.visit_borrowed_str(text),
                Content::List(entries) => visitor.visit_seq(seq(entries)),
                Content::Map(members) => visitor.visit_map(map(members)),
            },
        )
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.content {
            Content::Plain(_, Meaning::Nothing) | Content::List(_) | Content::Map(_) => self.deserialize_any(visitor),
            Content::Plain(text, _) | Content::Text(text) => within(self, visitor.visit_borrowed_str(text)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.content {
            Content::Plain(_, Meaning::Nothing) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// Words alone: nothing that is read has more.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.content {
            Content::Plain(_, Meaning::Nothing) | Content::List(_) | Content::Map(_) => Err(self.refused("a word")),
            Content::Plain(text, _) | Content::Text(text) => {
                within(self, visitor.visit_enum(StrDeserializer::new(text)))
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i32(self.integer()?)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i64(self.integer()?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.content {
            Content::Plain(_, Meaning::Nothing) => within(self, visitor.visit_seq(seq(&[]))),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.content {
            Content::Plain(_, Meaning::Nothing) => within(self, visitor.visit_map(map(&[]))),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.content {
            Content::Map(_) | Content::Plain(_, Meaning::Nothing) => self.deserialize_map(visitor),
            // Of a list, types would take their members in order.
            _ => Err(self.refused("a map")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

impl<'de> IntoDeserializer<'de, Error> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Name {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(&self.text).map_err(|error: Error| error.at(self.line))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for &'de Name {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    struct Sample {
        text: String,
        maybe: Option<String>,
        switch: bool,
        small: Option<i32>,
        large: i64,
        words: Vec<Word>,
        map: BTreeMap<String, String>,
        any: Option<Value>,
        inner: Option<Box<Sample>>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Word {
        OneWord,
        Off,
    }

    fn said(text: &str) -> String {
        from_str::<Sample>(text).unwrap_err().to_string()
    }

    /// What the decoder of the library reads, too.
    fn both(text: &str) -> Sample {
        let read: Sample = from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read, serde_saphyr::from_str(text).unwrap(), "{text}");
        read
    }

    #[test]
    fn what_has_no_quotes_is_text_where_text_is_wanted() {
        for word in
            ["1234", "007", "1.20", "1e3", "0x1F", "on", "n", "true", "-1", "+5", ".5", "2026-01-01", "1_000", ".inf"]
        {
            let read = both(&format!("text: {word}\nmaybe: {word} # a comment\nmap: {{key: {word}, {word}: x}}\n"));
            assert_eq!((read.text.as_str(), read.maybe.as_deref()), (word, Some(word)));
            assert_eq!(read.map["key"], word);
            assert_eq!(read.map[word], "x");
            for quote in ['"', '\''] {
                assert_eq!(both(&format!("text: {quote}{word}{quote}")).text, word);
            }
        }
        // An alias is written elsewhere, and in front of a text may stand what belongs to it.
        let read = both("map: {a: &one 1.20, b: *one}\ntext: !!str 1.20\nmaybe: &two 0x10\ninner: {text: *two}\n");
        assert_eq!((read.map["a"].as_str(), read.map["b"].as_str(), read.text.as_str()), ("1.20", "1.20", "1.20"));
        assert_eq!(read.inner.map(|inner| inner.text).as_deref(), Some("0x10"));
        // Characters of several bytes before it do not shift it.
        assert_eq!(both("map: {ключ: значение, 名: 1.20}\ntext: 1.20\n").text, "1.20");
        assert_eq!(both("{\"text\": 1.20, \"map\": {\"a\":1.20}}").map["a"], "1.20");
        // Ends of lines of Windows, tabs of JSON, tags, names that are no text, and what stands behind other documents.
        let windows = both("text: 1.20\r\nmap:\r\n  1: 007\r\n  true: 'x'\r\nmaybe: 0x10\r\n");
        assert_eq!((windows.text.as_str(), windows.maybe.as_deref()), ("1.20", Some("0x10")));
        assert_eq!((windows.map["1"].as_str(), windows.map["true"].as_str()), ("007", "x"));
        assert_eq!(both("{\n\t\"text\":\t1.20,\n\t\"maybe\": -0\n}").maybe.as_deref(), Some("-0"));
        assert_eq!(both("\u{feff}# é\ntext: 1.20\n").text, "1.20");
        let all: Vec<Sample> = documents("text: é\n---\ntext: 1.20\n...\n---\n# é\ntext: 007\n").unwrap();
        assert_eq!(all.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["é", "1.20", "007"]);
    }

    #[test]
    fn values_are_what_they_mean() {
        let read = both(
            "switch: yes\nsmall: -5\nlarge: 0x10\nwords: [oneWord, off]\nany: {a: 1, b: on, c: [1.5, null, x], d: '1'}",
        );
        assert_eq!((read.switch, read.small, read.large), (true, Some(-5), 16));
        assert_eq!(read.words, [Word::OneWord, Word::Off]);
        assert_eq!(read.any, Some(json!({"a": 1, "b": true, "c": [1.5, null, "x"], "d": "1"})));
        // Untyped, a number that begins with 0 is octal, as for kubectl.
        assert_eq!(from_str::<Value>("[0644, 08, -010]").unwrap(), json!([420, 8.0, -8]));
        let texts = both("text: |\n  two\n  lines\nmaybe: >-\n  one\n  line\n");
        assert_eq!((texts.text.as_str(), texts.maybe.as_deref()), ("two\nlines\n", Some("one line")));
        let merged = both("map: {<<: {a: 1, b: x}, b: y}\n");
        assert_eq!((merged.map["a"].as_str(), merged.map["b"].as_str()), ("1", "y"));
    }

    #[test]
    fn nothing_is_none_and_empty_but_no_text() {
        let read = both("maybe:\nwords: ~\nmap: null\nany: null\ninner: {}\n");
        assert_eq!(read, Sample { inner: Some(Box::default()), ..Sample::default() });
        assert_eq!(said("text: null"), "line 1: nothing where a string is wanted");
        assert_eq!(documents::<Value>("---\na: 1\n---\n---\nb: 2\n").unwrap(), [json!({"a": 1}), json!({"b": 2})]);
        assert_eq!(documents::<Value>("").unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_without_its_content() {
        let error = from_str::<Sample>("text: x\ninner:\n  wrods: [off]\n").unwrap_err();
        assert_eq!(error.line, Some(3));
        assert!(
            matches!(error.kind, ErrorKind::UnknownField { field, expected } if field == "wrods" && expected.contains(&"words"))
        );
        // The field, and not what it holds.
        assert_eq!(from_str::<Sample>("text: x\nmpa:\n  a: b\n").unwrap_err().line, Some(2));
        let error = from_str::<Sample>("text: x\nwords:\n- oneWord\n- of\n").unwrap_err();
        assert_eq!(error.line, Some(4));
        assert!(
            matches!(error.kind, ErrorKind::UnknownVariant { variant, expected } if variant == "of" && expected == ["oneWord", "off"])
        );
        for (text, sentence) in [
            ("text: x\nswitch: secret", "line 2: a text where a boolean is wanted"),
            ("text: [secret]", "line 1: a list where a string is wanted"),
            ("small: 3000000000", "line 1: a number that is too large"),
            ("large: 18446744073709551615", "line 1: a number that is too large"),
            ("large: 0600", "line 1: a number that begins with 0"),
            ("small: -08", "line 1: a number that begins with 0"),
            ("switch: \"true\"", "line 1: a text where a boolean is wanted"),
            ("large: '7'", "line 1: a text where a whole number is wanted"),
            ("words: [~]", "line 1: nothing where a word is wanted"),
            ("text: x\nwords:\n-\n- off", "line 3: nothing where a word is wanted"),
            ("inner: secret", "line 1: a text where a map is wanted"),
            ("- secret", "line 1: a list where a map is wanted"),
            ("any: [.inf]", "line 1: a number that is none"),
            ("large: 1.5", "line 1: a number where a whole number is wanted"),
            ("words: secret", "line 1: a text where a sequence is wanted"),
            ("words: [{a: b}]", "line 1: a map where a word is wanted"),
            ("map: {a: {b: secret}}", "line 1: a map where a string is wanted"),
        ] {
            assert_eq!(said(text), sentence, "{text}");
        }
        for text in [
            "text: \"secret",
            "text: secret: x",
            "text: x\ntext: secret",
            "secret: &secret [*secret]",
            "- secret",
            "text: x\n---\ntext: secret",
        ] {
            let error = from_str::<Sample>(text).map(|_| text).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_there_twice_or_too_deep_is_refused() {
        for twice in ["a: 1\na: 2\n", "{a: {b: 1, b: 2}}", "a: 1\n\"a\": 2\n"] {
            assert!(from_str::<Value>(twice).is_err(), "{twice}");
        }
        // Reading takes room of the thread for each depth: half a MiB in release binaries, without optimisation far more.
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let read = std::thread::Builder::new()
            .stack_size(4 << 20)
            .spawn(move || [60, 65, 100_000].map(|depth| from_str::<Value>(&nested(depth)).is_ok()));
        assert_eq!(read.unwrap().join().unwrap(), [true, false, false]);
        // Each level stands for twenty times as much.
        let aliases = |levels| {
            (1..levels).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
                let before = format!("*a{}", n - 1);
                text + &format!("a{n}: &a{n} [{}]\n", [before.as_str(); 20].join(", "))
            })
        };
        assert!(from_str::<Value>(&aliases(3)).is_ok());
        assert!(from_str::<Value>(&aliases(9)).is_err());
    }

    #[test]
    fn the_lines_of_a_list_are_those_of_its_entries() {
        let node = Node::read("a: 1\nlist:\n- x: 1\n  y: 2\n- z: 3\n\n- [1]\nlast: {list: [1]}\n").unwrap();
        assert_eq!(node.lines("list"), [3, 5, 7]);
        assert_eq!(node.lines("a"), Vec::<u64>::new());
        assert_eq!(node.lines("missing"), Vec::<u64>::new());
    }
}
