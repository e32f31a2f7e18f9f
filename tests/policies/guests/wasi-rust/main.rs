//! A policy as a plain Rust program of one file, without a crate: it looks for words in the request.

use std::collections::HashMap;
use std::io::Read as _;
use std::time::{Duration, SystemTime};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("describe") {
        // Nothing: the default is good enough.
        return;
    }
    let mut request = String::new();
    std::io::stdin().read_to_string(&mut request).expect("there is a request");
    let mut counts: HashMap<char, u32> = HashMap::new();
    request.chars().for_each(|letter| *counts.entry(letter).or_default() += 1);
    assert!(!request.contains("panic please"), "as was asked");
    std::thread::sleep(Duration::from_secs(60));
    assert!(SystemTime::now() > SystemTime::UNIX_EPOCH && std::fs::read("/etc/passwd").is_err());
    if request.contains("\"name\":\"prod-") {
        println!("{{\"verdict\":\"allow\",\"audit\":{{\"letters\":\"{}\"}}}}", counts.len());
    } else {
        println!("{{\"verdict\":\"deny\",\"reasons\":[{{\"code\":\"WrongName\",\"message\":\"not ours\"}}]}}");
    }
}
