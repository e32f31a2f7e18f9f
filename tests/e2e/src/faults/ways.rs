//! What an agent registers with that does not lead it to its hub.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::proxy::{Kind, Manner, Proxy};
use control_plane::Cluster;
use serde_json::json;

use super::pair::Pair;
use crate::trouble_support::kubectl;
use crate::webhook_support::own_address;

/// What of a kubeconfig is wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Nobody listens where its proxy is to be.
    NoProxy,
    /// Its proxy does so, and is shown these credentials.
    Proxy(Kind, Manner, &'static str),
    /// Its proxy opens TLS, with a certificate of its own.
    Intercepted,
    /// Its address leads to the hub, whose certificate is not valid for it.
    Unnamed,
    /// Its token was revoked: the account is gone.
    Revoked,
    /// Its token is another cluster's.
    Foreign,
    /// The owner of its token has no rights.
    Powerless,
}

/// A kubeconfig as it is made.
struct Kubeconfig {
    server: String,
    proxy: Option<String>,
    token: String,
}

impl Kubeconfig {
    fn text(&self, authority: &str) -> String {
        let mut cluster = json!({"server": self.server, "certificate-authority-data": STANDARD.encode(authority)});
        if let Some(proxy) = &self.proxy {
            cluster["proxy-url"] = json!(proxy);
        }
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": self.token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        })
        .to_string()
    }
}

impl Way {
    /// The kubeconfig in place of the one that the agent has, which is right.
    pub(super) fn instead(self, pair: &Pair<'_>, own: &str) -> String {
        let hub = pair.hub;
        let token = ocm_flows::hub::parse(own).unwrap().token;
        let right = Kubeconfig { server: hub.server().to_owned(), proxy: None, token };
        let here = own_address(hub);
        let wrong = match self {
            Self::NoProxy => Kubeconfig { proxy: Some(format!("http://{here}:1")), ..right },
            Self::Proxy(kind, manner, credentials) => {
                let proxy = Proxy::start_at(here.parse().unwrap(), kind, manner);
                Kubeconfig { proxy: Some(proxy.url(credentials)), ..right }
            }
            Self::Intercepted => {
                let proxy = leads(&here, pair.cluster, true);
                Kubeconfig { proxy: Some(format!("http://{proxy}")), ..right }
            }
            Self::Unnamed => Kubeconfig { server: format!("https://{}", leads(&here, hub, false)), ..right },
            Self::Revoked => {
                kubectl(hub, &["create", "serviceaccount", "revoked", "--namespace=default"]);
                let token = token_of(hub, "revoked");
                kubectl(hub, &["delete", "serviceaccount", "revoked", "--namespace=default"]);
                Kubeconfig { token, ..right }
            }
            Self::Foreign => Kubeconfig { token: token_of(pair.cluster, "default"), ..right },
            Self::Powerless => Kubeconfig { token: token_of(hub, "default"), ..right },
        };
        wrong.text(hub.ca_pem())
    }
}

fn token_of(cluster: &Cluster, account: &str) -> String {
    cluster.kubectl(&["create", "token", account, "--namespace=default"]).unwrap().trim().to_owned()
}

/// A port of this address that leads to a cluster, until the process ends; `is_proxy`: whoever comes says first, as to a proxy,
/// where it wants to go, and is led to that cluster all the same.
fn leads(address: &str, cluster: &Cluster, is_proxy: bool) -> String {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let here = listener.local_addr().unwrap().to_string();
    let server = cluster.server().trim_start_matches("https://").to_owned();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = server.clone();
            // Either side may end it at any time.
            thread::spawn(move || {
                let _ = joined(client, &server, is_proxy);
            });
        }
    });
    here
}

/// Leads one client to a server.
fn joined(mut client: TcpStream, server: &str, is_proxy: bool) -> io::Result<()> {
    if is_proxy {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte)?;
            head.extend(byte);
        }
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    }
    let server = TcpStream::connect(server)?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        // Either side may end it at any time.
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut to_server = server;
    let copied = io::copy(&mut client, &mut to_server).map(drop);
    to_server.shutdown(Shutdown::Both)?;
    copied
}
