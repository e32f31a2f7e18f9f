//! Connections that a container of a pod opens: a shell in it copies bytes between the connection and its own stdin and
//! stdout, which the API server passes on (the subresource `exec` of pods). TLS ends here and not in the pod.

use std::pin::Pin;
use std::task::{Context, Poll};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess};
use ocm_core::redact::redact;
use ocm_net::{ConnectError, Dial, Opening, Stream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::explain::explain;

/// Opens a connection to the first argument, at the port that is the second, and says so with one byte before anything else.
/// A command in the background has no stdin unless it is given one.
const SCRIPT: &str = r#"exec 3<>"/dev/tcp/$1/$2" || exit 1
exec 4<&0
printf +
cat <&4 >&3 &
cat <&3
kill $! 2>/dev/null"#;

/// What the script says once it is connected.
const CONNECTED: u8 = b'+';

/// How much is read of what the shell says when there is no connection: bytes.
const WORDS: u64 = 2 << 10;

/// A container with `bash` and `cat` that opens connections.
pub struct Relay {
    /// The pods of its namespace.
    pub pods: Api<Pod>,
    /// Its pod.
    pub pod: String,
    /// Its name.
    pub container: String,
}

impl Relay {
    async fn open(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, ConnectError> {
        let parameters = AttachParams::default().container(&self.container).stdin(true).stdout(true).stderr(true);
        let port = port.to_string();
        let command = ["bash", "-c", SCRIPT, "relay", host, &port];
        let started = self.pods.exec(&self.pod, command, &parameters).await;
        let mut process = started.map_err(|error| ConnectError::Failed(explain(&error).to_string()))?;
        let (Some(input), Some(mut output), Some(errors)) = (process.stdin(), process.stdout(), process.stderr())
        else {
            return Err(ConnectError::Failed("the pod passes nothing on".to_owned()));
        };
        match output.read_u8().await {
            Ok(CONNECTED) => Ok(Box::new(Relayed { input, output, _process: process })),
            _ => {
                let mut words = Vec::new();
                // What it said is a courtesy: without it there is no connection either.
                let _ = errors.take(WORDS).read_to_end(&mut words).await;
                let words = String::from_utf8_lossy(&words);
                let last = words.lines().map(str::trim).rfind(|line| !line.is_empty());
                Err(ConnectError::Failed(redact(last.unwrap_or("the shell in the pod ended"))))
            }
        }
    }
}

impl Dial for Relay {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> Opening<'a> {
        Box::pin(self.open(host, port))
    }
}

/// A connection through a container.
struct Relayed<In, Out> {
    input: In,
    output: Out,
    /// What passes the bytes on until it is dropped.
    _process: AttachedProcess,
}

impl<In: Unpin, Out: AsyncRead + Unpin> AsyncRead for Relayed<In, Out> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.output).poll_read(cx, buffer)
    }
}

impl<In: AsyncWrite + Unpin, Out: Unpin> AsyncWrite for Relayed<In, Out> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.input).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.input).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.input).poll_shutdown(cx)
    }
}
