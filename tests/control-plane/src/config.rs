//! The daemons of a cluster: their command lines and their configuration.

use std::path::PathBuf;

use crate::error::Error;
use crate::network::PODS_BRIDGE;
use crate::order::{Place, Size};
use crate::pki::write;

/// The socket of a node's containerd, inside the node.
pub(crate) const CONTAINERD: &str = "/run/containerd.sock";

/// The image that holds the namespaces of a pod.
pub(crate) const PAUSE: &str = "ocm.local/pause:1";

/// How much garbage programs in Go keep, in percent of what they use: processors are scarcer than memory where tests run.
pub(crate) const GARBAGE: &str = "400";

/// Daemons that run as a user of their own. One cluster takes 19 of the 128 inotify instances that a user has, 11 of
/// them in these; all clusters as root would make the seventh one fail in ways that name no reason.
pub(crate) fn needs_no_rights(daemon: &str) -> bool {
    matches!(program(daemon), "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler")
}

/// The name of one more API server, which listens at this port.
pub(crate) fn api_server_at(port: u16) -> String {
    format!("kube-apiserver@{port}")
}

/// The name of the program of a daemon.
fn program(daemon: &str) -> &str {
    daemon.split_once('@').map_or(daemon, |(program, _)| program)
}

/// The port of a daemon that has one of its own.
fn own_port(daemon: &str) -> Option<u16> {
    daemon.split_once('@')?.1.parse().ok()
}

/// Program and arguments of a daemon.
pub(crate) fn command(place: &Place, daemon: &str) -> Option<(PathBuf, Vec<String>)> {
    let at = |name: &str| place.dir.join(name).display().to_string();
    let pki = |name: &str| at(&format!("pki/{name}"));
    let arguments = match program(daemon) {
        "etcd" => vec![
            format!("--data-dir={}", at("etcd")),
            // A socket in our own directory can neither collide with anybody nor be reached by anybody.
            format!("--listen-client-urls=unix://{}", at("run/etcd.sock")),
            // It must be given, must have a port, and is used by nobody.
            "--advertise-client-urls=http://127.0.0.1:1".into(),
            "--listen-peer-urls=http://127.0.0.1:0".into(),
            "--unsafe-no-fsync".into(),
        ],
        "kube-apiserver" => api_server(place, own_port(daemon).unwrap_or(place.port)),
        "kube-controller-manager" => {
            let mut arguments = client("kcm", place);
            arguments.extend([
                // Nobody asks for its metrics, and a port that is not opened cannot collide.
                "--secure-port=0".into(),
                "--leader-elect=false".into(),
                format!("--service-account-private-key-file={}", pki("sa.key")),
                format!("--root-ca-file={}", pki("ca.crt")),
                format!("--cluster-signing-cert-file={}", pki("ca.crt")),
                format!("--cluster-signing-key-file={}", pki("ca.key")),
                "--use-service-account-credentials".into(),
                // At the default of 20 requests a second, its start alone takes five seconds.
                "--kube-api-qps=500".into(),
                "--kube-api-burst=1000".into(),
                "--controllers=*,bootstrapsigner,tokencleaner".into(),
                "--allocate-node-cidrs=false".into(),
            ]);
            arguments
        }
        "kube-scheduler" => {
            let mut arguments = client("scheduler", place);
            arguments.extend(["--secure-port=0".into(), "--leader-elect=false".into()]);
            arguments
        }
        "containerd" => return Some(("containerd".into(), vec!["--config".into(), at("containerd.toml")])),
        "kubelet" => vec![
            format!("--config={}", at("kubelet.yaml")),
            format!("--kubeconfig={}", at("node.kubeconfig")),
            format!("--root-dir={}", at("kubelet")),
            format!("--cert-dir={}", at("kubelet/pki")),
            format!("--hostname-override={}", place.order.name),
            format!("--node-ip={}", place.address),
        ],
        "kube-proxy" => vec![format!("--config={}", at("kube-proxy.yaml"))],
        _ => return None,
    };
    Some((place.binary(program(daemon)).to_owned(), arguments))
}

fn client(name: &str, place: &Place) -> Vec<String> {
    let file = place.dir.join(format!("{name}.kubeconfig"));
    ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .map(|flag| format!("--{flag}={}", file.display()))
        .to_vec()
}

fn api_server(place: &Place, port: u16) -> Vec<String> {
    let pki = |name: &str| place.dir.join("pki").join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=unix://{}", place.dir.join("run/etcd.sock").display()),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--service-account-key-file={}", pki("sa.pub")),
        format!("--service-account-signing-key-file={}", pki("sa.key")),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-bootstrap-token-auth".into(),
        "--allow-privileged".into(),
        format!("--requestheader-client-ca-file={}", pki("ca.crt")),
        "--requestheader-allowed-names=front-proxy-client".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        format!("--proxy-client-cert-file={}", pki("front-proxy.crt")),
        format!("--proxy-client-key-file={}", pki("front-proxy.key")),
    ];
    if place.order.audited {
        // Into its log, where tests find it.
        arguments.extend([
            "--audit-log-path=-".into(),
            format!("--audit-policy-file={}", place.dir.join("audit.yaml").display()),
        ]);
    }
    match place.order.size {
        Size::Api => arguments.extend([
            "--bind-address=127.0.0.1".into(),
            // An address for documentation: there are no pods that would look for the server, but without one the
            // server looks for a default route, and ends when the machine has none.
            "--advertise-address=192.0.2.1".into(),
            "--endpoint-reconciler-type=none".into(),
        ]),
        Size::Node => arguments.extend([
            "--bind-address=0.0.0.0".into(),
            format!("--advertise-address={}", place.address),
            format!("--kubelet-client-certificate={}", pki("admin.crt")),
            format!("--kubelet-client-key={}", pki("admin.key")),
            // Otherwise logs and exec look the name of the node up, which no name server knows.
            "--kubelet-preferred-address-types=InternalIP".into(),
            "--enable-aggregator-routing".into(),
        ]),
    }
    arguments
}

/// Where the containerd of a node finds what pods need.
pub(crate) struct OfNode {
    /// The programs of network plugins.
    plugins: String,
    /// What these are told.
    networks: String,
    /// How registries are spoken to: a folder for each that is not spoken to as usual.
    registries: String,
}

/// The name of [`OfNode::registries`] in the directory of a cluster.
pub(crate) const REGISTRIES: &str = "registries";

/// The configuration of containerd.
pub(crate) fn containerd(root: &str, state: &str, socket: &str, node: Option<&OfNode>) -> String {
    let base = format!("version = 2\nroot = \"{root}\"\nstate = \"{state}\"\n[grpc]\n  address = \"{socket}\"\n");
    match node {
        None => {
            format!("disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n{base}")
        }
        Some(OfNode { plugins, networks, registries }) => format!(
            r#"disabled_plugins = ["io.containerd.internal.v1.opt"]
{base}[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{networks}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{registries}"
"#,
            pause = PAUSE
        ),
    }
}

/// Writes the configuration files of the daemons.
pub(crate) fn write_all(place: &Place) -> Result<(), Error> {
    // What a webhook asks about somebody's rights stands in the question, and in nothing else.
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                  - level: RequestResponse\n  resources: [{group: authorization.k8s.io, resources: [subjectaccessreviews]}]\n\
                  - level: Metadata\n";
    if place.order.audited {
        write(&place.dir.join("audit.yaml"), policy, false)?;
    }
    if place.order.size == Size::Api {
        return Ok(());
    }
    let at = |name: &str| place.dir.join(name).display().to_string();
    let put = |name: &str, text: &str| write(&place.dir.join(name), text, false);
    put(
        "containerd.toml",
        &containerd(
            &at("containerd"),
            "/run/containerd",
            CONTAINERD,
            Some(&OfNode {
                plugins: place.order.cni.display().to_string(),
                networks: at("cni"),
                registries: at(REGISTRIES),
            }),
        ),
    )?;
    let bridge = serde_json::json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge", "bridge": PODS_BRIDGE, "isGateway": true, "ipMasq": true, "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": at("cni/ipam"),
                    "ranges": [[{"subnet": format!("10.244.{}.0/24", place.slot)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    });
    put("cni/10-pods.conflist", &bridge.to_string())?;
    // Cluster DNS is not part of a cluster; whoever needs names puts a server behind this address.
    put("resolv.conf", "nameserver 10.96.0.10\n")?;
    put(
        "kubelet.yaml",
        &format!(
            r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# The host may still use control groups of version 1.
failCgroupV1: false
cgroupDriver: cgroupfs
# Several kubelets on one host would remove each other's groups.
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
containerRuntimeEndpoint: unix://{CONTAINERD}
authentication:
  x509: {{clientCAFile: {ca}}}
  webhook: {{enabled: true}}
  anonymous: {{enabled: false}}
authorization: {{mode: Webhook}}
tlsCertFile: {certificate}
tlsPrivateKeyFile: {key}
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
resolvConf: {resolv}
# A full disk of the host is no reason to evict what a test waits for.
evictionHard: {{}}
imageGCHighThresholdPercent: 100
podLogsDir: {pods}
"#,
            ca = at("pki/ca.crt"),
            certificate = at("pki/node.crt"),
            key = at("pki/node.key"),
            resolv = at("resolv.conf"),
            pods = at("pods"),
        ),
    )?;
    put(
        "kube-proxy.yaml",
        &format!(
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n\
             bindAddress: {address}\nclientConnection: {{kubeconfig: {admin}}}\nhostnameOverride: {name}\n\
             # These belong to the whole machine.\n\
             conntrack: {{maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}\n\
             # Answers between pods of one bridge come back only so when bridges do not pass the firewall.\n\
             iptables: {{masqueradeAll: true}}\n",
            address = place.address,
            admin = at("admin.kubeconfig"),
            name = place.order.name,
        ),
    )
}
