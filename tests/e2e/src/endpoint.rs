//! What addresses answer over plain HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take: of a process that was stopped none comes.
const ANSWER: Duration = Duration::from_secs(30);

/// What an address answers over plain HTTP, head and body; empty: nothing listens there.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut answer = String::new();
    let Ok(mut stream) = TcpStream::connect(address) else { return answer };
    let _ = stream.set_read_timeout(Some(ANSWER));
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    let _ = stream.read_to_string(&mut answer);
    answer
}
