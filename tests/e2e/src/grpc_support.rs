//! A client of the hub's gRPC server that publishes whatever it likes, under its own name or another.
//!
//! Agents speak CloudEvents over gRPC (`io.cloudevents.v1.CloudEventService`). One call without streams is one request of
//! HTTP/2, which curl sends; the message is small enough to be written field by field.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What is published.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A new ManagedCluster.
    CreateCluster,
    /// Other contents of a ManagedCluster.
    UpdateCluster,
    /// Another status of a ManagedCluster.
    UpdateClusterStatus,
    /// A new certificate request.
    CreateRequest,
}

impl Event {
    /// Its type: group, version, resource, subresource and action. Upstream: `CloudEventsType`.
    const fn name(self) -> &'static str {
        match self {
            Self::CreateCluster => "cluster.open-cluster-management.io.v1.managedclusters.spec.create_request",
            Self::UpdateCluster => "cluster.open-cluster-management.io.v1.managedclusters.spec.update_request",
            Self::UpdateClusterStatus => "cluster.open-cluster-management.io.v1.managedclusters.status.update_request",
            Self::CreateRequest => "certificates.k8s.io.v1.certificatesigningrequests.spec.create_request",
        }
    }
}

/// With what the client says who it is.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A token of the hub.
    Token(String),
    /// A certificate that the hub has issued, and its key.
    Certificate(PathBuf, PathBuf),
}

/// The hub's gRPC server, as agents reach it.
#[derive(Clone, Debug)]
pub struct GrpcServer {
    /// The name in its certificate, and the port.
    pub host: (String, u16),
    /// The address that the name stands for.
    pub address: String,
    /// Who signed its certificate.
    pub authority: PathBuf,
    /// Where messages are put before they are sent.
    pub folder: PathBuf,
}

impl GrpcServer {
    /// Publishes an event about a cluster, as the attribute of the event says; what the object says may differ.
    ///
    /// # Errors
    /// What the server said when it refused.
    ///
    /// # Panics
    /// When it cannot be reached.
    pub fn publish(&self, who: &Credential, cluster: &str, event: Event, object: &Value) -> Result<(), String> {
        let (host, port) = &self.host;
        let message = self.write("message", &framed(&request(cluster, event, object))).expect("it is written");
        let mut curl = Command::new("curl");
        curl.args(["--http2", "--silent", "--show-error", "--include", "--max-time", "20"]);
        // On a busy machine the server may miss a probe of its readiness, and is then without endpoints for a moment.
        curl.args(["--retry", "20", "--retry-delay", "1", "--retry-connrefused"]);
        curl.args(["--resolve", &format!("{host}:{port}:{}", self.address)]).arg("--cacert").arg(&self.authority);
        curl.args(["--header", "content-type: application/grpc", "--header", "te: trailers"]);
        match who {
            Credential::Token(token) => {
                let header = format!("authorization: Bearer {token}\n");
                let file = self.write("header", header.as_bytes()).expect("it is written");
                curl.args(["--header", &format!("@{}", file.display())]);
            }
            Credential::Certificate(certificate, key) => {
                curl.arg("--cert").arg(certificate).arg("--key").arg(key);
            }
        }
        curl.args(["--data-binary", &format!("@{}", message.display())]);
        curl.arg(format!("https://{host}:{port}/io.cloudevents.v1.CloudEventService/Publish"));
        let output = curl.stdin(Stdio::null()).output().expect("curl starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        // The trailers stand right behind the answer, which is an empty message.
        let line = |line: &str| line.trim_start_matches('\0').to_owned();
        let lines: Vec<String> = said.lines().map(line).collect();
        let field = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
        match field("grpc-status:") {
            Some("0") => Ok(()),
            Some(code) => Err(format!("{code}: {}", field("grpc-message:").unwrap_or_default())),
            None => panic!("no answer of gRPC: {said}"),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let file: &Path = &self.folder;
        let file = file.join(name);
        fs::write(&file, bytes).map(|()| file)
    }
}

/// A message as gRPC sends it: not compressed, its length, itself.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a small message").to_be_bytes();
    [&[0], &length[..], message].concat()
}

/// A `PublishRequest` with one `CloudEvent`; the numbers are those of the fields in upstream's `cloudevent.proto`.
fn request(cluster: &str, event: Event, object: &Value) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (number, text) in [(1, "1"), (2, "somebody"), (3, "1.0"), (4, event.name())] {
        encoded.extend(field(number, text.as_bytes()));
    }
    for (name, value) in [("contenttype", "application/json"), ("ce-clustername", cluster)] {
        // An entry of a map is a message of key and value; the value is a message too, of which 3 is a text.
        let value = field(3, value.as_bytes());
        encoded.extend(field(5, &[field(1, name.as_bytes()), field(2, &value)].concat()));
    }
    encoded.extend(field(6, object.to_string().as_bytes()));
    field(1, &encoded)
}

/// A field whose value is bytes: number and kind, length, value. Encoding of protocol buffers, "Length-delimited records".
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut encoded = vec![number << 3 | 2];
    let mut length = value.len();
    while length >= 0x80 {
        encoded.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    encoded.push(length as u8);
    encoded.extend(value);
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_in_groups_of_seven_bits() {
        assert_eq!(field(1, b"ab"), [0x0a, 2, b'a', b'b']);
        let long = field(6, &[7; 300]);
        assert_eq!((&long[..3], long.len()), (&[0x32, 0xac, 0x02][..], 303));
        assert_eq!(framed(b"abc"), [0, 0, 0, 0, 3, b'a', b'b', b'c']);
    }
}
