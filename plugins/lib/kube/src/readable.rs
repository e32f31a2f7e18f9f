//! What API servers keep as clients wrote it, made such that all of our clients can read it.
//!
//! An API server keeps the times that clients name in `metadata.managedFields`, in leases and in conditions: in JSON up to the end
//! of the year 9999 of any time zone, in protobuf of any year. jiff's end some hours before that of the year 9999. It also keeps
//! fields in `metadata.managedFields` as deep as clients nest them, and `serde_json` reads 127 levels. One object with either would
//! make a whole list unreadable: anybody who may create a managed cluster or a certificate request could keep every other one from
//! being looked at. Such times are read as another day, and fields that are nested too deep are left out.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use memchr::memchr2;

/// What is read instead of days before the year 0.
const FIRST: &[u8] = b"0001-01-01";
/// What is read instead of days that are not over in every time zone before jiff's times end.
const LAST: &[u8] = b"9999-12-28";
/// Digits of a year at most: API servers count seconds in 64 bits.
const DIGITS: usize = 12;
/// How a time goes on after its year; 0 is any digit.
const REST: &[u8] = b"-00-00T00:00:00";
/// How long the month and the day of it are.
const DAY: usize = 6;
/// How it begins to be told which fields of an object belong to whom.
const FIELDS: &[u8] = b"\"managedFields\":[";
/// How deep objects and lists are nested there at most, those around it included.
const DEEPEST: usize = 100;

/// What a text is that begins so.
enum Begun {
    /// No time, or one that can be read.
    Readable,
    /// What follows tells.
    Unfinished,
    /// A time that cannot be read: the length of its date, and what is read instead.
    Beyond(usize, &'static [u8]),
}

fn begun(text: &[u8]) -> Begun {
    let sign = usize::from(text.first() == Some(&b'-'));
    let year = text[sign..].iter().take(DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &text[sign + year..];
    // More digits may follow what ends with one.
    let is_plain = sign == 0 && year == 4 && !rest.is_empty() && !text.starts_with(b"9999");
    let is_none = year > DIGITS || (year < 4 && !rest.is_empty());
    let fits = |(wanted, byte): (&u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { wanted == byte };
    if is_plain || is_none || !REST.iter().zip(rest).all(fits) {
        return Begun::Readable;
    }
    if rest.len() < REST.len() {
        return Begun::Unfinished;
    }
    let is_last = matches!(&rest[..DAY], b"-12-29" | b"-12-30" | b"-12-31");
    match (sign, year) {
        (1, _) => Begun::Beyond(sign + year + DAY, FIRST),
        (_, 4) if !is_last => Begun::Readable,
        _ => Begun::Beyond(year + DAY, LAST),
    }
}

/// A reader of JSON that comes in parts.
#[derive(Default)]
struct Reader {
    /// How many objects and lists are open.
    depth: usize,
    /// How many were where the managed fields began; none past their end.
    fields: Option<usize>,
    is_text: bool,
    /// Whether what comes next in a text is escaped.
    is_escaped: bool,
    /// Whether the value of a member comes next.
    is_value: bool,
    /// What has come, and is looked at when more has.
    held: Bytes,
}

impl Reader {
    /// Whether what is read is left out.
    fn is_too_deep(&self) -> bool {
        self.fields.is_some() && self.depth > DEEPEST
    }

    /// What can be handed on when more has come.
    fn pass(&mut self, data: Bytes) -> Bytes {
        let mut text = match self.held.is_empty() {
            true => data,
            false => [&self.held[..], &data[..]].concat().into(),
        };
        let mut is_same = !self.is_too_deep();
        let mut changed = Vec::new();
        // Before `done` everything is handed on or left out, and before `at` it was looked at.
        let (mut done, mut at, mut end) = (0, 0, text.len());
        if self.is_escaped && !text.is_empty() {
            (self.is_escaped, at) = (false, 1);
        }
        while at < text.len() {
            let left = &text[at..];
            if self.is_text {
                let Some(found) = memchr2(b'"', b'\\', left) else { break };
                self.is_text = left[found] == b'\\';
                self.is_escaped = self.is_text && found + 1 == left.len();
                at += found + 1 + usize::from(self.is_text);
                continue;
            }
            match left[0] {
                b'"' if self.is_value => {
                    match begun(&left[1..]) {
                        Begun::Unfinished => {
                            end = at;
                            break;
                        }
                        Begun::Beyond(length, instead) if !self.is_too_deep() => {
                            is_same = false;
                            changed.extend_from_slice(&text[done..at + 1]);
                            changed.extend_from_slice(instead);
                            done = at + 1 + length;
                        }
                        Begun::Readable | Begun::Beyond(..) => {}
                    }
                    self.is_text = true;
                }
                b'"' => {
                    if left.len() < FIELDS.len() && FIELDS.starts_with(left) {
                        end = at;
                        break;
                    }
                    if self.fields.is_none() && self.depth < DEEPEST && left.starts_with(FIELDS) {
                        self.fields = Some(self.depth);
                    }
                    self.is_text = true;
                }
                b'{' | b'[' => {
                    let was_too_deep = self.is_too_deep();
                    self.depth += 1;
                    if self.is_too_deep() && !was_too_deep {
                        is_same = false;
                        changed.extend_from_slice(&text[done..at + 1]);
                    }
                }
                b'}' | b']' => {
                    let was_too_deep = self.is_too_deep();
                    self.depth = self.depth.saturating_sub(1);
                    if was_too_deep && !self.is_too_deep() {
                        done = at;
                    }
                    self.fields = self.fields.filter(|depth| *depth < self.depth);
                }
                _ => {}
            }
            self.is_value = left[0] == b':' || (self.is_value && left[0].is_ascii_whitespace());
            at += 1;
        }
        self.held = text.split_off(end);
        if is_same {
            return text;
        }
        if !self.is_too_deep() {
            changed.extend_from_slice(&text[done..]);
        }
        changed.into()
    }
}

/// A JSON document that can be read.
pub fn readable(document: Vec<u8>) -> Vec<u8> {
    let mut reader = Reader::default();
    let mut readable = Vec::from(reader.pass(document.into()));
    readable.extend_from_slice(&reader.held);
    readable
}

/// The body of a JSON document, or of several as in a watch, that can be read.
pub(crate) struct Readable<B> {
    body: Pin<Box<B>>,
    /// What reads it, where it is JSON: anything else stays as it is.
    reader: Option<Reader>,
    has_ended: bool,
}

impl<B> Readable<B> {
    pub(crate) fn new(body: B, is_json: bool) -> Self {
        Self { body: Box::pin(body), reader: is_json.then(Reader::default), has_ended: false }
    }

    fn holds(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| !reader.held.is_empty())
    }
}

impl<B: Body<Data = Bytes>> Body for Readable<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let frame = ready!(self.body.as_mut().poll_frame(cx));
        let Some(reader) = &mut self.reader else { return Poll::Ready(frame) };
        match frame {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame.map_data(|data| reader.pass(data))))),
            None if !reader.held.is_empty() => {
                let held = std::mem::take(&mut reader.held);
                self.has_ended = true;
                Poll::Ready(Some(Ok(Frame::data(held))))
            }
            other => Poll::Ready(other),
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.holds() && (self.has_ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        // What is left out of JSON is not known before.
        if self.reader.is_some() { SizeHint::default() } else { self.body.size_hint() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::Waker;

    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::Value;

    use super::*;

    struct Parts(VecDeque<Bytes>);

    impl Body for Parts {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(part))))
        }
    }

    /// What comes of a text that comes in parts of this length.
    fn read(text: &str, length: usize, is_json: bool) -> String {
        let parts = text.as_bytes().chunks(length).map(Bytes::copy_from_slice).collect();
        let mut body = Readable::new(Parts(parts), is_json);
        let mut all = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) {
            all.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        assert!(body.is_end_stream() || !body.has_ended);
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn times_beyond_all_calendars_can_be_read_however_they_come() {
        let metadata = |time: &str| format!(r#"{{"managedFields":[{{"manager":"a","time":"{time}"}}],"name":"x"}}"#);
        for (time, instead) in [
            ("9999-12-31T23:59:59Z", "9999-12-28T23:59:59Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-28T23:59:59.999999Z"),
            ("9999-12-30T22:00:01Z", "9999-12-28T22:00:01Z"),
            ("9999-12-29T23:59:59-23:59", "9999-12-28T23:59:59-23:59"),
            // What an API server makes of 9999-12-31T23:59:59-12:00, and of 0000-01-01T00:00:00+12:00.
            ("10000-01-01T11:59:59Z", "9999-12-28T11:59:59Z"),
            ("-0001-12-31T12:00:00Z", "0001-01-01T12:00:00Z"),
            // Of what protobuf holds.
            ("292277026596-12-04T15:30:07Z", "9999-12-28T15:30:07Z"),
            ("-292277022657-01-27T08:29:52Z", "0001-01-01T08:29:52Z"),
        ] {
            let text = metadata(time);
            assert!(serde_json::from_str::<ObjectMeta>(&text).is_err(), "{time} needs none of this");
            for length in 1..text.len() + 1 {
                let read = read(&text, length, true);
                assert_eq!(read, metadata(instead), "{length}");
                let metadata: ObjectMeta = serde_json::from_str(&read).unwrap();
                assert_eq!(metadata.name.as_deref(), Some("x"));
            }
            let lease = format!(r#"{{"renewTime": "{time}"}}"#);
            assert!(serde_json::from_slice::<LeaseSpec>(&readable(lease.into_bytes())).is_ok(), "{time}");
        }
    }

    #[test]
    fn fields_that_are_nested_too_deep_are_left_out() {
        let nested = |depth: usize| format!("{}{}", r#"{"f:a\"}":"#.repeat(depth) + "{", "}".repeat(depth + 1));
        let object = |fields: &str| {
            format!(
                r#"{{"metadata":{{"managedFields":[{{"fieldsV1":{fields}}},{{"time":"9999-12-31T00:00:00Z"}}],"name":"x"}}}}"#
            )
        };
        let text = format!(r#"{{"items":[{},{}]}}"#, object(&nested(300)), object(&nested(10)));
        assert!(serde_json::from_str::<Value>(&text).is_err(), "it needs none of this");
        // Six objects and lists are around the fields.
        let expected = format!(r#"{{"items":[{},{}]}}"#, object(&nested(DEEPEST - 6)), object(&nested(10)));
        let expected = expected.replace("9999-12-31", "9999-12-28");
        for length in [1, 2, 3, 5, 8, 13, 100, 1000, text.len()] {
            let read = read(&text, length, true);
            assert_eq!(read, expected, "{length}");
            let list: Value = serde_json::from_str(&read).unwrap();
            assert_eq!(list["items"][0]["metadata"]["name"], "x");
        }
        // Elsewhere nobody may take what is not shown for nothing.
        let elsewhere = format!(r#"{{"settings":{}}}"#, nested(300));
        assert_eq!(read(&elsewhere, 7, true), elsewhere);
    }

    #[test]
    fn everything_else_comes_as_it_is() {
        let same = [
            r#"{"time":"9999-12-28T00:00:00Z","b":"9999-12-32T00:00:00Z","c":"9999-12-31","d":"9999-12-3"#,
            r#"{"text":"{\"time\":\"9999-12-31T23:59:59Z\"}","a":["9999-12-31T23:59:59Z"],"b":"9999-12-31T"}"#,
            r#"{"a":"2026-12-31T23:59:59Z","b":"12345678901234567890","c":"-","d":"","e":"0000-01-01T00:00:00Z","f":-1}"#,
            r#"{"managedFields":[{"a\\":"]"}],"managedFields":{},"a":":","b":"\\"}"#,
            r#"::":"":"9":"99":"9999-12-3"#,
            r#""a:""#,
            "}]\"\\",
            "",
        ];
        for text in same {
            for length in 1..text.len().max(1) + 1 {
                assert_eq!(read(text, length, true), text, "{length}");
            }
            assert_eq!(readable(text.as_bytes().to_vec()), text.as_bytes());
        }
        // The log of a pod is no document.
        let line = r#"{"time":"9999-12-31T23:59:59Z"}"#;
        assert_eq!(read(line, 7, false), line);
        assert_ne!(read(line, 7, true), line);
    }
}
