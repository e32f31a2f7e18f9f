//! Times of the last two days that RFC 3339 can write.
//!
//! An API server keeps the times that clients name in `metadata.managedFields` and in conditions, up to the end of the year 9999.
//! jiff's end some hours before, so that one object with such a time would make a whole list unreadable: anybody who may create a
//! managed cluster or a certificate request could keep every other one from being looked at. They are read as two days earlier.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use memchr::memmem;

/// How the value of a member begins that is such a time. API servers write no space there.
const START: &[u8] = b":\"9999-12-3";
/// It, one of the digits 0 and 1, and `T`.
const LENGTH: usize = START.len() + 2;
/// What its last digits become: a day that every time zone has.
const DAY: &[u8] = b"29";

/// Whether a byte may stand at this place of the beginning of such a time.
fn is_at(place: usize, byte: u8) -> bool {
    match START.get(place) {
        Some(wanted) => *wanted == byte,
        None if place == START.len() => matches!(byte, b'0' | b'1'),
        None => byte == b'T',
    }
}

/// Whether a text is the beginning of such a time, or all of it.
fn begins(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(place, byte)| is_at(place, *byte))
}

/// How many bytes at the end of a text may be the beginning of such a time.
fn unfinished(text: &[u8]) -> usize {
    let may_be = |length: &usize| begins(&text[text.len() - length..]);
    (1..LENGTH.min(text.len() + 1)).rev().find(may_be).unwrap_or_default()
}

/// The body of a JSON document, or of several as in a watch, all of whose times can be read.
pub(crate) struct Readable<B> {
    body: Pin<Box<B>>,
    /// Whether it is JSON: anything else stays as it is.
    is_json: bool,
    /// What has come and may be the beginning of such a time.
    held: Bytes,
    has_ended: bool,
}

impl<B> Readable<B> {
    pub(crate) fn new(body: B, is_json: bool) -> Self {
        Self { body: Box::pin(body), is_json, held: Bytes::new(), has_ended: false }
    }

    /// What can be handed on when more has come.
    fn pass(&mut self, data: Bytes) -> Bytes {
        let text = match self.held.is_empty() {
            true => data,
            false => [&self.held[..], &data[..]].concat().into(),
        };
        let found = memmem::find_iter(&text, START);
        let found: Vec<usize> = found.filter(|at| text.get(*at..at + LENGTH).is_some_and(begins)).collect();
        let mut text = match found.is_empty() {
            true => text,
            false => {
                let mut changed = text.to_vec();
                for at in found {
                    changed[at + START.len() - 1..][..DAY.len()].copy_from_slice(DAY);
                }
                changed.into()
            }
        };
        self.held = text.split_off(text.len() - unfinished(&text));
        text
    }
}

impl<B: Body<Data = Bytes>> Body for Readable<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        match ready!(self.body.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) if self.is_json => {
                let passed = frame.map_data(|data| self.pass(data));
                Poll::Ready(Some(Ok(passed)))
            }
            None if !self.held.is_empty() => {
                self.has_ended = true;
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.held)))))
            }
            other => Poll::Ready(other),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && (self.has_ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        if self.held.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::Waker;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

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
    fn metadata_with_the_last_time_of_all_can_be_read_however_it_comes() {
        let metadata = |time: &str| format!(r#"{{"managedFields":[{{"manager":"a","time":"{time}"}}],"name":"x"}}"#);
        for time in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z", "9999-12-30T22:00:01Z"] {
            let text = metadata(time);
            assert!(serde_json::from_str::<ObjectMeta>(&text).is_err(), "{time} needs none of this");
            for length in 1..text.len() + 1 {
                let read = read(&text, length, true);
                assert_eq!(read, text.replace("9999-12-30", "9999-12-29").replace("9999-12-31", "9999-12-29"));
                let metadata: ObjectMeta = serde_json::from_str(&read).unwrap();
                assert_eq!(metadata.name.as_deref(), Some("x"));
            }
        }
    }

    #[test]
    fn everything_else_comes_as_it_is() {
        let same = [
            r#"{"time":"9999-12-29T00:00:00Z","b":"9999-12-32T","c":"9999-12-31","d":"9999-12-3"#,
            r#"{"text":"{\"time\":\"9999-12-31T23:59:59Z\"}","a":["9999-12-31T23:59:59Z"]}"#,
            r#"::":":"":"9":"99":"9999-12-3"#,
            "",
        ];
        for text in same {
            for length in 1..text.len().max(1) + 1 {
                assert_eq!(read(text, length, true), text, "{length}");
            }
        }
        // The log of a pod is no document.
        let line = r#"{"time":"9999-12-31T23:59:59Z"}"#;
        assert_eq!(read(line, 7, false), line);
        assert_ne!(read(line, 7, true), line);
    }
}
