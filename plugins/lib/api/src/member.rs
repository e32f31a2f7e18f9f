//! How a type is read of JSON: as a [`Value`] first, then member by member.
//!
//! `#[derive(Member)]` stands where serde's `Deserialize` would, implements it, and knows the same attributes:
//!
//! ```text
//! #[derive(Serialize, Member)]
//! #[serde(rename_all = "camelCase")]
//! pub struct Lease {
//!     pub holder_identity: String,
//!     #[serde(default, skip_serializing_if = "Option::is_none")]
//!     pub lease_duration_seconds: Option<i32>,
//! }
//! ```
//!
//! serde's own readers are made anew for each source of data and take some kilobytes each, of which every binary that reads
//! objects has hundreds. Here a type has one small function. It differs from serde's in this:
//!
//! * An error says where it is, such as `spec.leaseDurationSeconds: invalid type: string "x", expected i32`.
//! * Arrays in place of objects are refused. Of a member that is there twice the last one counts; who decides by a text in which
//!   that must not be has to look at the text.
//! * A member of a type that only serde knows needs [`Member`] for it: [`by_serde`](crate::by_serde) implements it for types of a
//!   crate's own, and those of Kubernetes are here.
//!
//! * What nobody looks at is parsed, too: values deeper than 127 levels and numbers that no `f64` can hold are errors there.
//!
//! An enumeration that holds itself needs a variant that holds nothing, with which the reader goes on after an error.
//!
//! A [`Reader`] keeps the first error, and readers go on with something else in its place, so that none of them has a way out for
//! each member. Nobody sees that: [`from_value`] and [`deserialize`], the only ways in, return the error.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ResourceRequirements, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, MicroTime, ObjectMeta, Time,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
pub use ocm_derive::Member;
#[doc(hidden)]
pub use serde;
use serde::de::{self, DeserializeOwned, Deserializer, Error as _, Unexpected};
use serde_json::Map;
pub use serde_json::Value;

use crate::Condition;

/// What `kube_derive` is to take for serde, so that it derives [`Member`](derive@Member) for roots.
pub(crate) mod of_kube {
    pub(crate) use ocm_derive::Member as Deserialize;
    pub(crate) use serde::{Serialize, Serializer, ser};
}

/// What can be read of JSON. Derive it.
pub trait Member: Sized {
    /// Reads what is there, if something is. Where it must not be read as this, the reader is told, and what is returned does not
    /// matter.
    fn read(value: Option<Value>, reader: &mut Reader) -> Self;
}

/// Reads a whole value.
///
/// # Errors
///
/// Where it is what it must not be: the first place of those.
pub fn from_value<T: Member>(value: Value) -> Result<T, Error> {
    let mut reader = Reader { path: Vec::new(), error: None };
    let read = T::read(Some(value), &mut reader);
    reader.error.map_or(Ok(read), Err)
}

/// Reads a whole value of any source.
///
/// # Errors
///
/// As [`from_value`], and those of the source.
pub fn deserialize<'de, T: Member, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    from_value(de::Deserialize::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// What was read, and where.
#[derive(Debug)]
pub struct Error(Box<str>);

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// A step of the way to a value.
enum Step {
    Member(&'static str),
    Key(String),
    Entry(usize),
}

/// Where reading is, and the first error.
pub struct Reader {
    path: Vec<Step>,
    error: Option<Error>,
}

impl Reader {
    /// Tells what is wrong where the reader is.
    #[inline(never)]
    pub fn refuse(&mut self, what: &dyn Display) {
        let depth = self.path.len();
        self.refuse_at(depth, what);
    }

    #[inline(never)]
    fn refuse_at(&mut self, depth: usize, what: &dyn Display) {
        if self.error.is_some() {
            return;
        }
        let mut text = String::new();
        for step in &self.path[..depth] {
            let dot = if text.is_empty() { "" } else { "." };
            // Strings can always be written to.
            let _ = match step {
                Step::Member(name) => write!(text, "{dot}{name}"),
                Step::Key(name) if name.chars().all(|sign| sign.is_alphanumeric() || "-_./".contains(sign)) => {
                    write!(text, "{dot}{name}")
                }
                // Anybody may have written it.
                Step::Key(name) => write!(text, "[{name:?}]"),
                Step::Entry(index) => write!(text, "[{index}]"),
            };
        }
        let colon = if text.is_empty() { "" } else { ": " };
        let _ = write!(text, "{colon}{what}");
        self.error = Some(Error(text.into()));
    }

    /// Tells that a member is missing, where the reader is at it.
    #[inline(never)]
    pub fn missing(&mut self) {
        match self.path.last() {
            Some(&Step::Member(name)) => {
                let depth = self.path.len() - 1;
                self.refuse_at(depth, &format_args!("missing field `{name}`"));
            }
            _ => self.refuse(&"missing value"),
        }
    }

    /// Tells that `value` is not what is `expected`, or is missing.
    #[inline(never)]
    pub fn unexpected(&mut self, value: Option<&Value>, expected: &str) {
        let found = match value {
            None => return self.missing(),
            Some(Value::Null) => Unexpected::Other("null"),
            Some(Value::Bool(value)) => Unexpected::Bool(*value),
            Some(Value::String(text)) => Unexpected::Str(text),
            Some(Value::Array(_)) => Unexpected::Seq,
            Some(Value::Object(_)) => Unexpected::Map,
            Some(Value::Number(number)) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Unexpected::Unsigned(number),
                (None, Some(number)) => Unexpected::Signed(number),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or_default()),
            },
        };
        self.refuse(&format_args!("invalid type: {found}, expected {expected}"));
    }

    /// The members of an object; none where it is not one.
    #[inline(never)]
    pub fn members(&mut self, value: Option<Value>, expected: &str) -> Members<'_> {
        Members { left: self.object(value, expected), reader: self }
    }

    #[inline(never)]
    fn object(&mut self, value: Option<Value>, expected: &str) -> Map<String, Value> {
        match value {
            Some(Value::Object(members)) => members,
            other => {
                self.unexpected(other.as_ref(), expected);
                Map::new()
            }
        }
    }

    #[inline(never)]
    fn array(&mut self, value: Option<Value>, expected: &str) -> Vec<Value> {
        match value {
            Some(Value::Array(entries)) => entries,
            other => {
                self.unexpected(other.as_ref(), expected);
                Vec::new()
            }
        }
    }

    #[inline(never)]
    fn enter(&mut self, step: Step) {
        self.path.push(step);
    }

    #[inline(never)]
    fn leave(&mut self) -> Option<Step> {
        self.path.pop()
    }

    /// The place of a word in a list; what lies behind the list where it is not in it.
    #[inline(never)]
    pub fn word(&mut self, value: Option<Value>, words: &'static [&'static str]) -> usize {
        let (place, value, is_object) = self.enter_variant(value, words);
        self.nothing(value);
        self.leave_variant(is_object);
        place
    }

    /// The place of a word in a list, and what lies behind it for any other word.
    #[inline(never)]
    pub fn word_or_other(&mut self, value: Option<Value>, words: &'static [&'static str]) -> usize {
        let (place, value, is_object) = self.variant(value, words, true);
        self.nothing(value);
        self.leave_variant(is_object);
        place
    }

    /// The place of a variant in a list, what it holds, and whether it can hold something; what lies behind the list where it is
    /// not in it.
    pub fn enter_variant(
        &mut self,
        value: Option<Value>,
        words: &'static [&'static str],
    ) -> (usize, Option<Value>, bool) {
        self.variant(value, words, false)
    }

    #[inline(never)]
    fn variant(
        &mut self,
        value: Option<Value>,
        words: &'static [&'static str],
        has_other: bool,
    ) -> (usize, Option<Value>, bool) {
        let (word, content) = match value {
            Some(Value::String(word)) => (word, None),
            Some(Value::Object(members)) if members.len() == 1 => match members.into_iter().next() {
                Some((word, content)) => (word, Some(content)),
                None => return (words.len(), None, false),
            },
            Some(Value::Object(_)) => {
                self.refuse(&"invalid value: map, expected map with a single key");
                return (words.len(), None, false);
            }
            other => {
                self.unexpected(other.as_ref(), "string or map");
                return (words.len(), None, false);
            }
        };
        let is_object = content.is_some();
        let place = words.iter().position(|known| *known == word).unwrap_or(words.len());
        if place == words.len() && !has_other {
            self.refuse(&de::value::Error::unknown_variant(&word, words));
            return (place, None, false);
        }
        if is_object {
            self.enter(Step::Key(word));
        }
        (place, content, is_object)
    }

    /// Ends what [`enter_variant`](Self::enter_variant) has begun.
    #[inline(never)]
    pub fn leave_variant(&mut self, is_object: bool) {
        if is_object {
            self.leave();
        }
    }

    /// A variant holds nothing.
    #[inline(never)]
    pub fn nothing(&mut self, content: Option<Value>) {
        if let Some(content) = content.filter(|content| !content.is_null()) {
            self.unexpected(Some(&content), "unit");
        }
    }

    /// A variant holds something.
    #[inline(never)]
    pub fn content(&mut self, content: Option<Value>) -> Option<Value> {
        if content.is_none() {
            self.refuse(&"invalid type: unit variant, expected a variant that holds something");
        }
        content
    }

    /// Reads as serde does; `instead` is what it goes on with after an error.
    pub fn by_serde<T: DeserializeOwned>(&mut self, value: Option<Value>, instead: fn() -> T) -> T {
        let Some(value) = value else {
            self.missing();
            return instead();
        };
        T::deserialize(value).unwrap_or_else(|error| {
            self.refuse(&error);
            instead()
        })
    }
}

/// Members of an object that were not read yet.
pub struct Members<'r> {
    left: Map<String, Value>,
    reader: &'r mut Reader,
}

impl Members<'_> {
    /// Refuses all but these.
    #[inline(never)]
    pub fn refuse_others(&mut self, known: &'static [&'static str]) {
        if let Some(other) = self.left.keys().find(|name| !known.contains(&name.as_str())) {
            self.reader.refuse(&de::value::Error::unknown_field(other, known));
        }
    }

    /// A member that is there, and may be missing only where its type says so.
    #[inline(never)]
    pub fn member<T: Member>(&mut self, name: &'static str) -> T {
        let value = self.take(name);
        self.read(name, value)
    }

    /// A member that has a default.
    #[inline(never)]
    pub fn or_default<T: Member + Default>(&mut self, name: &'static str) -> T {
        match self.take(name) {
            None => T::default(),
            value => self.read(name, value),
        }
    }

    /// A member with this default.
    pub fn or<T: Member>(&mut self, name: &'static str, default: T) -> T {
        match self.take(name) {
            None => default,
            value => self.read(name, value),
        }
    }

    /// A member with the default that a function returns.
    pub fn or_else<T: Member>(&mut self, name: &'static str, default: fn() -> T) -> T {
        match self.take(name) {
            None => default(),
            value => self.read(name, value),
        }
    }

    /// A member that a function reads, and that has a default.
    pub fn read_with<T: Default>(&mut self, name: &'static str, read: fn(Value) -> Result<T, serde_json::Error>) -> T {
        let Some(value) = self.take(name) else { return T::default() };
        self.reader.enter(Step::Member(name));
        let read = read(value).unwrap_or_else(|error| {
            self.reader.refuse(&error);
            T::default()
        });
        self.reader.leave();
        read
    }

    #[inline(never)]
    fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    fn read<T: Member>(&mut self, name: &'static str, value: Option<Value>) -> T {
        self.reader.enter(Step::Member(name));
        let read = T::read(value, self.reader);
        self.reader.leave();
        read
    }
}

impl Member for String {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        match value {
            Some(Value::String(text)) => text,
            other => {
                reader.unexpected(other.as_ref(), "a string");
                Self::new()
            }
        }
    }
}

impl Member for bool {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        match value {
            Some(Value::Bool(value)) => value,
            other => {
                reader.unexpected(other.as_ref(), "a boolean");
                false
            }
        }
    }
}

impl Member for Value {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        value.unwrap_or_else(|| {
            reader.missing();
            Self::Null
        })
    }
}

impl Member for Map<String, Value> {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        reader.object(value, "a map")
    }
}

impl<T: Member> Member for Option<T> {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        match value {
            None | Some(Value::Null) => None,
            value => Some(T::read(value, reader)),
        }
    }
}

impl<T: Member> Member for Box<T> {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        Self::new(T::read(value, reader))
    }
}

impl<T: Member> Member for Vec<T> {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        let entries = reader.array(value, "a sequence");
        let mut all = Self::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            reader.enter(Step::Entry(index));
            all.push(T::read(Some(entry), reader));
            reader.leave();
        }
        all
    }
}

impl<K: Member + Ord, T: Member> Member for BTreeMap<K, T> {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        let mut all = Self::new();
        for (key, value) in reader.object(value, "a map") {
            reader.enter(Step::Key(key));
            let value = T::read(Some(value), reader);
            if let Some(Step::Key(key)) = reader.leave() {
                all.insert(K::read(Some(Value::String(key)), reader), value);
            }
        }
        all
    }
}

impl<A: Member, B: Member> Member for (A, B) {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        let entries = reader.array(value, "a tuple of size 2");
        if entries.len() != 2 {
            reader.refuse(&format_args!("invalid length {}, expected a tuple of size 2", entries.len()));
        }
        let mut entries = entries.into_iter();
        (A::read(entries.next(), reader), B::read(entries.next(), reader))
    }
}

impl<T: Member, E: Member> Member for Result<T, E> {
    fn read(value: Option<Value>, reader: &mut Reader) -> Self {
        let (place, value, is_object) = reader.enter_variant(value, &["Ok", "Err"]);
        let value = reader.content(value);
        let read = match place {
            0 => Ok(T::read(value, reader)),
            _ => Err(E::read(value, reader)),
        };
        reader.leave_variant(is_object);
        read
    }
}

/// Implements [`Member`](crate::member::Member) for types that serde reads; for one without a `Default`, a function says with what
/// the reader goes on after an error.
#[macro_export]
macro_rules! by_serde {
    ($($type:ty $(= $instead:expr)?),+ $(,)?) => {
        $(impl $crate::member::Member for $type {
            fn read(value: Option<$crate::member::Value>, reader: &mut $crate::member::Reader) -> Self {
                reader.by_serde(value, $crate::by_serde!(@ $($instead)?))
            }
        })+
    };
    (@) => { Default::default };
    (@ $instead:expr) => { $instead };
}

by_serde! {
    i32, i64, u8, u16, u32, u64, usize, f64,
    ByteString, CertificateSigningRequest, IntOrString, LabelSelector, LabelSelectorRequirement, ObjectMeta, Quantity,
    ResourceRequirements, Toleration,
    Condition = no_condition, MicroTime = || MicroTime(Timestamp::UNIX_EPOCH), Timestamp, Time = || Time(Timestamp::UNIX_EPOCH),
}

fn no_condition() -> Condition {
    Condition {
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        message: String::new(),
        observed_generation: None,
        reason: String::new(),
        status: String::new(),
        type_: String::new(),
    }
}

#[cfg(test)]
mod tests;
