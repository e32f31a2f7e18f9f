//! A server that answers as a test says: for what a real API server cannot be made to do at the right moment.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `GET /version`: the method, the path and the query.
    pub line: String,
    /// Names (in lower case) and values.
    pub headers: Vec<(String, String)>,
    /// What was sent.
    pub body: String,
}

impl Asked {
    /// The values of a header.
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A status and a JSON document.
    Json(u16, String),
    /// 401, with what the header `WWW-Authenticate` says.
    Challenge(&'static str),
    /// The head of an answer, these bytes of a longer body, and nothing more on an open connection.
    Stall(String),
    /// These lines, one chunk each, and the end of the answer.
    Lines(Vec<String>),
    /// The connection is closed without an answer.
    Drop,
}

/// A plain HTTP server on this machine. It serves until the process ends.
pub struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Starts a server that replies to each request, given with its number from 0, as `reply` says.
    ///
    /// # Panics
    /// When there is no free port.
    pub fn start(reply: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
        let address = listener.local_addr().expect("it has an address").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (reply, seen) = (Arc::new(reply), asked.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (reply, seen) = (reply.clone(), seen.clone());
                // A client that goes away in the middle is none of the server's business.
                thread::spawn(move || serve(stream, &seen, reply.as_ref()).ok());
            }
        });
        Self { address, asked }
    }

    /// Its address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far.
    ///
    /// # Panics
    /// When a reply has panicked.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("nobody panics").clone()
    }

    /// The lines of every request so far.
    pub fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<Asked>>,
    reply: &(dyn Fn(usize, &Asked) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = header.trim_end().split_once(": ") {
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }
    let mut asked = Asked { line, headers, body: String::new() };
    let length = asked.header("content-length").first().and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    asked.body = String::from_utf8_lossy(&body).into_owned();
    let number = {
        let mut seen = seen.lock().expect("nobody panics");
        seen.push(asked.clone());
        seen.len() - 1
    };
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n";
    match reply(number, &asked) {
        Reply::Json(status, body) => {
            let head = head.replacen("200 OK", &format!("{status} Status"), 1);
            write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())
        }
        Reply::Challenge(challenge) => {
            let head = head.replacen("200 OK", "401 Unauthorized", 1);
            write!(stream, "{head}WWW-Authenticate: {challenge}\r\nContent-Length: 2\r\n\r\n{{}}")
        }
        Reply::Stall(start) => {
            write!(stream, "{head}Content-Length: {}\r\n\r\n{start}", start.len() + 100)?;
            // Until the client goes away.
            stream.read(&mut [0; 1]).map(drop)
        }
        Reply::Lines(lines) => {
            write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n")?;
            for line in lines {
                write!(stream, "{:x}\r\n{line}\n\r\n", line.len() + 1)?;
            }
            write!(stream, "0\r\n\r\n")
        }
        Reply::Drop => Ok(()),
    }
}
