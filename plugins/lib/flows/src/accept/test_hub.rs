//! Hubs for tests, on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use ocm_kube::Cluster;
use serde_json::Value;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The method, the path and the query.
    pub(crate) line: String,
    /// What was sent.
    pub(crate) body: String,
}

/// The hub at an address.
pub(crate) fn hub_at(server: &str) -> Cluster {
    let config = kube::Config::new(server.parse().unwrap());
    Cluster {
        client: kube::Client::try_from(config).unwrap(),
        context: None,
        server: server.to_owned(),
        namespace: "default".to_owned(),
        ca: None,
        insecure: false,
        tls_server_name: None,
        proxy: None,
        way: ocm_net::Way::Direct,
        role: ocm_core::Role::Hub,
    }
}

/// A hub that replies with a status and a document, and what it was asked.
pub(crate) fn hub(reply: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> (Cluster, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hub = hub_at(&format!("http://{}", listener.local_addr().unwrap()));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (reply, noted) = (Arc::new(reply), asked.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (reply, noted) = (reply.clone(), noted.clone());
            std::thread::spawn(move || answer(stream, reply.as_ref(), &noted));
        }
    });
    (hub, asked)
}

/// Answers one request.
fn answer(
    mut stream: TcpStream,
    reply: &(dyn Fn(&Asked) -> (u16, Value) + Send + Sync),
    noted: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line)?;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? <= "\r\n".len() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked = Asked {
        line: line.trim_end().trim_end_matches(" HTTP/1.1").to_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    noted.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    let (status, body) = reply(&asked);
    let (body, head) = (body.to_string(), "connection: close\r\ncontent-type: application/json");
    write!(stream, "HTTP/1.1 {status} Status\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
