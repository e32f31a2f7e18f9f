//! Clusters, as tests see them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::binaries::{API, NODE, OCM, ensure, ocm_version};
use crate::error::{Error, Trying as _};
use crate::order::{Message, Order, Request, Size};
use crate::pki::{self, Authority};
use crate::progress::{Observer, print};
use crate::tool::tool;
use crate::{config, image, packages};

/// What cluster is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The name of the cluster, of its context and of its node. Two clusters of one name do not disturb each other.
    pub name: String,
    /// How much of a cluster is needed.
    pub size: Size,
    /// Whether the images of OCM are there; nodes only.
    pub ocm_images: bool,
    /// Whether a scheduler runs. Without one, pods stay pending: for tests of what is said then.
    pub schedulable: bool,
    /// Whether the API server notes every request, see [`Cluster::requests_of`].
    pub audited: bool,
}

impl Spec {
    /// An API server with what signs certificates; needs no root.
    pub fn api(name: impl Into<String>) -> Self {
        Self { name: name.into(), size: Size::Api, ocm_images: false, schedulable: true, audited: false }
    }

    /// A whole node with the images of OCM; needs root.
    pub fn node(name: impl Into<String>) -> Self {
        Self { name: name.into(), size: Size::Node, ocm_images: true, schedulable: true, audited: false }
    }

    /// Whether the images of OCM are there.
    pub fn ocm_images(mut self, wanted: bool) -> Self {
        self.ocm_images = wanted;
        self
    }

    /// Whether a scheduler runs.
    pub fn schedulable(mut self, wanted: bool) -> Self {
        self.schedulable = wanted;
        self
    }

    /// Whether the API server notes every request.
    pub fn audited(mut self, wanted: bool) -> Self {
        self.audited = wanted;
        self
    }

    /// A name ends up in certificates, file names, the host name of the node and on command lines.
    fn check(&self) -> Result<(), Error> {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let name = &self.name;
        if name.is_empty() || name.len() > 40 || !name.chars().all(good) || name.starts_with('-') || name.ends_with('-')
        {
            return Err(Error::host(format!(
                "{name:?} cannot be the name of a cluster; use up to 40 lower-case letters, digits and hyphens"
            )));
        }
        Ok(())
    }
}

/// One request that an audited API server has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What was to be done: `update`, `patch`, …
    pub verb: String,
    /// To what: the plural of the kind, and behind a slash its part: `certificatesigningrequests/approval`.
    pub resource: String,
    /// The name of the object; empty where the API server was to make it up.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u64,
}

/// Something that an audited API server found somebody to be allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allowed {
    /// What was to be done: `update`, `patch`, …
    pub verb: String,
    /// The API group; empty: the core one.
    pub group: String,
    /// The plural of the kind, and behind a slash its part.
    pub resource: String,
    /// The namespace; empty: none.
    pub namespace: String,
    /// The name of the object; empty: none was named.
    pub name: String,
}

/// One more API server of a cluster, which ends with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServer {
    /// The kubeconfig of an administrator who asks this one.
    pub kubeconfig: PathBuf,
    daemon: String,
}

/// A running cluster. Dropping it ends every process of it and removes its files.
#[derive(Debug)]
pub struct Cluster {
    name: String,
    server: String,
    ca: String,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    /// What only a cluster that we started has.
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    dir: PathBuf,
    link: Mutex<Link>,
}

/// The line to the supervisor of a cluster.
#[derive(Debug)]
struct Link {
    child: Child,
    requests: Option<ChildStdin>,
    messages: Receiver<Message>,
}

/// What the machine must have before a cluster can start.
struct Needed {
    cni: PathBuf,
    binaries: BTreeMap<String, PathBuf>,
    tool: PathBuf,
    images: Option<PathBuf>,
}

impl Needed {
    fn by_node(ocm_images: bool, observe: Observer<'_>) -> Result<Self, Error> {
        let cni = packages::ensure(observe)?;
        let mut names = NODE.to_vec();
        let mut version = None;
        if ocm_images {
            names.extend(OCM);
            version = Some(ocm_version()?);
        }
        let (binaries, tool) = (ensure(&names, observe)?, tool()?);
        let images = Some(image::store(&tool, &binaries, version.as_deref(), observe)?);
        Ok(Self { cni, binaries, tool, images })
    }
}

/// Installs, builds and prepares everything that a whole node with the images of OCM needs, so that starting one takes
/// seconds. Needs root.
///
/// # Errors
/// When something is missing and cannot be had.
pub fn prepare_nodes(observe: Observer<'_>) -> Result<(), Error> {
    Needed::by_node(true, observe).map(drop)
}

impl Cluster {
    /// Starts a cluster. Returns when its API server is ready; of a whole node, when it is ready and pods can be
    /// created.
    pub fn start(spec: &Spec) -> Result<Self, Error> {
        spec.check()?;
        let needed = match spec.size {
            Size::Api => Needed { cni: PathBuf::new(), binaries: ensure(&API, &print)?, tool: tool()?, images: None },
            Size::Node => Needed::by_node(spec.ocm_images, &print)?,
        };
        let Needed { cni, binaries, tool, images } = needed;
        let kubectl = binaries.get("kubectl").cloned().unwrap_or_default();
        let Spec { name, size, schedulable, audited, .. } = spec.clone();
        let order = Order { name, size, schedulable, audited, binaries, images, cni };
        let mut attempt = 1;
        let (link, dir, server) = loop {
            match Link::open(&tool, &order) {
                // A port that was free when it was chosen may be somebody else's a moment later.
                Err(error) if attempt < 3 && error.to_string().contains("address already in use") => attempt += 1,
                result => break result?,
            }
        };
        let ca = dir.join("pki/ca.crt");
        Ok(Self {
            name: order.name,
            server,
            ca: fs::read_to_string(&ca).trying(|| format!("reading {}", ca.display()))?,
            kubeconfig: dir.join("admin.kubeconfig"),
            kubectl,
            own: Some(Own { dir, link: Mutex::new(link) }),
        })
    }

    /// Starts several clusters at the same time.
    pub fn start_all(specs: &[Spec]) -> Result<Vec<Self>, Error> {
        thread::scope(|scope| {
            let starting: Vec<_> = specs.iter().map(|spec| scope.spawn(|| Self::start(spec))).collect();
            starting
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    /// The cluster of the kubeconfig that an environment variable names, or a new one when it is not set. The tests
    /// use `OCM_TEST_HUB_KUBECONFIG` and `OCM_TEST_MANAGED_KUBECONFIG`.
    pub fn from_env_or_start(variable: &str, spec: &Spec) -> Result<Self, Error> {
        match env::var_os(variable).filter(|value| !value.is_empty()) {
            Some(file) => Self::of_user(variable, PathBuf::from(file), spec),
            None => Self::start(spec),
        }
    }

    /// A cluster that somebody else runs.
    fn of_user(variable: &str, kubeconfig: PathBuf, spec: &Spec) -> Result<Self, Error> {
        if !kubeconfig.is_file() {
            return Err(Error::host(format!(
                "{variable} names {}, which is not a file; set it to a kubeconfig, or unset it to have a cluster started",
                kubeconfig.display()
            )));
        }
        let kubectl = ensure(&["kubectl"], &print)?.remove("kubectl").unwrap_or_default();
        let mut cluster =
            Self { name: spec.name.clone(), server: String::new(), ca: String::new(), kubeconfig, kubectl, own: None };
        let view = cluster.kubectl(&["config", "view", "--raw", "--minify", "--flatten", "--output", "json"])?;
        let view: serde_json::Value = serde_json::from_str(&view)
            .map_err(|error| Error::host(format!("reading the kubeconfig of {variable} failed: {error}")))?;
        let entry = &view["clusters"][0]["cluster"];
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        cluster.server = text(&entry["server"]);
        if let Some(context) = view["current-context"].as_str() {
            cluster.name = context.to_owned();
        }
        use base64::Engine as _;
        let ca = base64::engine::general_purpose::STANDARD.decode(text(&entry["certificate-authority-data"]));
        cluster.ca = ca.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        Ok(cluster)
    }

    /// The name of the cluster, and of the context in its kubeconfig.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kubeconfig of an administrator (`system:masters`).
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The URL of the API server; of a whole node it is reachable from this machine and from all other clusters.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The certificate of the authority of the cluster, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }

    /// Whether we started this cluster, so that it can be paused, cut off and asked for its logs.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// The directory of a cluster that we started; it vanishes with the cluster.
    pub fn dir(&self) -> Option<&Path> {
        self.own.as_ref().map(|own| own.dir.as_path())
    }

    /// The log of a daemon: `etcd`, `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`, `containerd`,
    /// `kubelet`, `kube-proxy`, or `node` for the first process.
    pub fn log(&self, daemon: &str) -> PathBuf {
        self.dir().unwrap_or(Path::new("/nonexistent")).join("log").join(format!("{daemon}.log"))
    }

    /// The requests that a user has sent to the API server of an audited cluster: verb, resource and name.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn requests_of(&self, user: &str) -> Result<Vec<String>, Error> {
        let (text, mut seen) = (self.audit_log()?, HashSet::new());
        // A watch is noted when it begins and when it ends.
        let of_user = events(&text).filter(|event| {
            event["user"]["username"] == user && seen.insert(event["auditID"].as_str().unwrap_or_default().to_owned())
        });
        let words = |event: serde_json::Value| {
            let object = &event["objectRef"];
            format!("{} {} {}", word(&event["verb"]), word(&object["resource"]), word(&object["name"]))
        };
        Ok(of_user.map(words).collect())
    }

    /// What the API server of an audited cluster has answered to a user, in the order of its log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn answers_to(&self, user: &str) -> Result<Vec<Answered>, Error> {
        let text = self.audit_log()?;
        let answers =
            events(&text).filter(|event| event["user"]["username"] == user && event["stage"] == "ResponseComplete");
        let answered = |event: serde_json::Value| {
            let object = &event["objectRef"];
            let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
            Answered { verb: word(&event["verb"]), resource: resource(object), name: word(&object["name"]), code }
        };
        Ok(answers.map(answered).collect())
    }

    /// What the API server of an audited cluster found a user to be allowed: of the user's own requests, and where a webhook of the
    /// cluster asked for it. What is asked within the API server, such as for the right to approve for a signer, is in no log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn allowed_to(&self, user: &str) -> Result<BTreeSet<Allowed>, Error> {
        let (text, quoted) = (self.audit_log()?, format!("\"{user}\""));
        // Most lines of a large log are about others.
        let about_user = text.lines().filter(|line| line.contains(&quoted));
        let lines: String = about_user.map(|line| format!("{line}\n")).collect();
        let allowed = |event: serde_json::Value| {
            let about = |verb: &serde_json::Value, group: &serde_json::Value, object: &serde_json::Value| Allowed {
                verb: word(verb),
                group: word(group),
                resource: resource(object),
                namespace: word(&object["namespace"]),
                name: word(&object["name"]),
            };
            let (object, asked) = (&event["objectRef"], &event["responseObject"]);
            if event["user"]["username"] == user && object.is_object() {
                let is_allowed = event["annotations"]["authorization.k8s.io/decision"] == "allow";
                is_allowed.then(|| about(&event["verb"], &object["apiGroup"], object))
            } else if asked["spec"]["user"] == user && asked["status"]["allowed"] == true {
                let object = &asked["spec"]["resourceAttributes"];
                Some(about(&object["verb"], &object["group"], object))
            } else {
                None
            }
        };
        Ok(events(&lines).filter_map(allowed).collect())
    }

    /// What the audit log of an audited cluster notes beside its answers about an object, such as what admission webhooks have
    /// to say: the annotations of each event, in the order of the log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn audit_annotations(&self, resource: &str, name: &str) -> Result<Vec<BTreeMap<String, String>>, Error> {
        let text = self.audit_log()?;
        let about = events(&text)
            .filter(|event| event["objectRef"]["resource"] == resource && event["objectRef"]["name"] == name);
        let noted = |event: serde_json::Value| {
            let annotations = event["annotations"].as_object().into_iter().flatten();
            annotations.map(|(key, value)| (key.clone(), word(value))).collect()
        };
        Ok(about.map(noted).collect())
    }

    fn audit_log(&self) -> Result<String, Error> {
        let log = self.log("kube-apiserver");
        fs::read_to_string(&log).trying(|| format!("reading {}", log.display()))
    }

    /// Where the node keeps the logs of pods.
    pub fn pod_logs(&self) -> PathBuf {
        self.dir().unwrap_or(Path::new("/nonexistent")).join("pods")
    }

    /// A kubeconfig of a new user: a client certificate signed by the authority of the cluster. A certificate carries
    /// at most two groups.
    pub fn user_kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf, Error> {
        let own = self.own()?;
        let pair = Authority::open(&self.name, &own.dir.join("pki"))?.sign(user, groups, &[], &[])?;
        let file = tempfile::Builder::new()
            .prefix("user-")
            .suffix(".kubeconfig")
            .tempfile_in(&own.dir)
            .and_then(|file| Ok(file.keep()?.1))
            .trying(|| format!("making a kubeconfig of {user}"))?;
        pki::write(&file, &pair.kubeconfig(&self.name, user, &self.server, &self.ca), true)?;
        Ok(file)
    }

    /// A client certificate of a user, signed by the authority of the cluster, and its private key, as PEM; it begins and ends so
    /// many days from now. A certificate carries at most two groups.
    pub fn user_certificate(&self, user: &str, groups: &[&str], days: &Range<i64>) -> Result<(String, String), Error> {
        let authority = Authority::open(&self.name, &self.own()?.dir.join("pki"))?;
        let pair = authority.sign_for(days, user, groups)?;
        Ok((pair.certificate, pair.key))
    }

    /// Stops every process of the cluster where it is, as a machine that hangs.
    pub fn pause(&self) -> Result<(), Error> {
        self.ask(&Request::Pause)
    }

    /// Lets the processes of a paused cluster go on.
    pub fn resume(&self) -> Result<(), Error> {
        self.ask(&Request::Resume)
    }

    /// Starts one more API server of a cluster without a node, beside the first one and with the same etcd, and waits until it is
    /// ready.
    pub fn add_api_server(&self) -> Result<ApiServer, Error> {
        if !self.server.starts_with("https://127.0.0.1:") {
            let why = "has a node, where one API server runs; ask for one without".into();
            return Err(Error::Cluster { cluster: self.name.clone(), why });
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let port = listener.trying(|| "looking for a free port".into())?.port();
        let admin = fs::read_to_string(&self.kubeconfig).trying(|| format!("reading {}", self.kubeconfig.display()))?;
        let kubeconfig = self.own()?.dir.join(format!("admin-{port}.kubeconfig"));
        pki::write(&kubeconfig, &admin.replace(&self.server, &format!("https://127.0.0.1:{port}")), true)?;
        let daemon = config::api_server_at(port);
        self.start_again(&daemon)?;
        let begun = Instant::now();
        let path = kubeconfig.display().to_string();
        loop {
            match self.kubectl(&["get", "--raw", "/readyz", "--kubeconfig", &path]) {
                Ok(_) => return Ok(ApiServer { kubeconfig, daemon }),
                Err(error) if begun.elapsed() > Duration::from_secs(90) => return Err(error),
                Err(_) => sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Stops one of several API servers where it is, so that it falls behind.
    pub fn hold(&self, server: &ApiServer) -> Result<(), Error> {
        self.ask(&Request::Hold(server.daemon.clone()))
    }

    /// Lets it go on.
    pub fn release(&self, server: &ApiServer) -> Result<(), Error> {
        self.ask(&Request::Release(server.daemon.clone()))
    }

    /// Kills the API server.
    pub fn stop_api_server(&self) -> Result<(), Error> {
        self.stop("kube-apiserver")
    }

    /// Starts the API server again, and waits until it is ready.
    pub fn start_api_server(&self) -> Result<(), Error> {
        self.start_again("kube-apiserver")?;
        let begun = Instant::now();
        loop {
            match self.kubectl(&["get", "--raw", "/readyz"]) {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() > Duration::from_secs(60) => return Err(error),
                Err(_) => sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Kills a daemon, named as its log is.
    pub fn stop(&self, daemon: &str) -> Result<(), Error> {
        self.ask(&Request::Stop(daemon.to_owned()))
    }

    /// Starts a daemon that is not running, for example the scheduler of a cluster without one.
    pub fn start_again(&self, daemon: &str) -> Result<(), Error> {
        self.ask(&Request::Start(daemon.to_owned()))
    }

    /// Has etcd refuse whatever is written as it does once its space is used up, by its alarm NOSPACE; or take it again.
    pub fn set_storage_full(&self, is_full: bool) -> Result<(), Error> {
        let action = if is_full { "ACTIVATE" } else { "DEACTIVATE" };
        let body = serde_json::json!({"action": action, "memberID": 0, "alarm": "NOSPACE"}).to_string();
        let failed = || format!("asking etcd of {} to {action} its alarm", self.name);
        let socket = self.dir().unwrap_or(Path::new("/nonexistent")).join("run/etcd.sock");
        let mut etcd = UnixStream::connect(socket).trying(failed)?;
        let head = format!("Host: etcd\r\nContent-Length: {}\r\nConnection: close", body.len());
        write!(etcd, "POST /v3/maintenance/alarm HTTP/1.1\r\n{head}\r\n\r\n{body}").trying(failed)?;
        let mut answer = String::new();
        etcd.read_to_string(&mut answer).trying(failed)?;
        match answer.starts_with("HTTP/1.1 200 ") {
            true => Ok(()),
            false => Err(Error::Cluster { cluster: self.name.clone(), why: format!("{}: {answer}", failed()) }),
        }
    }

    /// Cuts a node off the network, or ties it to it again.
    pub fn set_network(&self, up: bool) -> Result<(), Error> {
        self.ask(&Request::Network(up))
    }

    /// Takes the images of an archive, an OCI image layout, into the store of a node.
    pub fn import_image(&self, archive: &Path) -> Result<(), Error> {
        let archive = fs::canonicalize(archive).trying(|| format!("finding {}", archive.display()))?;
        self.ask(&Request::Import(archive))
    }

    /// Has a node speak HTTP without TLS to a registry, which is its host and port.
    pub fn speak_http_to(&self, registry: &str) -> Result<(), Error> {
        let dir = self.dir().ok_or_else(|| Error::host("this cluster is not ours: its nodes are not told anything"))?;
        let folder = dir.join(config::REGISTRIES).join(registry);
        fs::create_dir_all(&folder).trying(|| format!("creating {}", folder.display()))?;
        let file = folder.join("hosts.toml");
        // The server alone is enough for newer releases of containerd; all of them read a file that names a host.
        let text = format!("server = \"http://{registry}\"\n\n[host.\"http://{registry}\"]\n");
        fs::write(&file, text).trying(|| format!("writing {}", file.display()))
    }

    /// Runs the real kubectl as an administrator of the cluster.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        let done = self.kubectl_command().args(arguments).output().trying(|| "starting kubectl".into())?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(Error::Kubectl {
            cluster: self.name.clone(),
            arguments: arguments.join(" "),
            stderr: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        })
    }

    /// The command that `kubectl` runs, for tests that give it input or look at its output while it runs.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).stdin(Stdio::null());
        // It ends before collecting garbage is worth anything, and tests start it thousands of times.
        command.env("GOGC", "off");
        command
    }

    fn own(&self) -> Result<&Own, Error> {
        self.own.as_ref().ok_or_else(|| Error::Cluster {
            cluster: self.name.clone(),
            why: "is not a cluster of this run, so it can only be used, not paused, cut off or looked into".into(),
        })
    }

    fn ask(&self, request: &Request) -> Result<(), Error> {
        let failed = |why: String| Error::Cluster { cluster: self.name.clone(), why };
        let mut link = lock(&self.own()?.link);
        let line = serde_json::to_string(request).map_err(|error| failed(error.to_string()))?;
        // An answer that came too late for its question must not answer this one.
        while link.messages.try_recv().is_ok() {}
        let sent = link.requests.as_mut().is_some_and(|pipe| writeln!(pipe, "{line}").is_ok());
        let answer = link.messages.recv_timeout(Duration::from_secs(30)).ok().filter(|_| sent);
        match answer {
            Some(Message::Done) => Ok(()),
            Some(Message::Failed(why)) => Err(failed(why)),
            _ => Err(failed(format!("does not answer to {request:?}; it may have died"))),
        }
    }
}

impl Link {
    /// Starts a supervisor and waits for its cluster.
    fn open(tool: &Path, order: &Order) -> Result<(Self, PathBuf, String), Error> {
        let failed = |why: String| Error::Cluster { cluster: order.name.clone(), why };
        let text = serde_json::to_string(order).map_err(|error| failed(error.to_string()))?;
        let mut child = Command::new(tool)
            .args(["supervise", &text])
            .env("PATH", packages::path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The interrupt key is meant for the runner; its end is what ends the cluster, in good order.
            .process_group(0)
            .spawn()
            .trying(|| format!("starting {}", tool.display()))?;
        let (sender, messages) = channel();
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    let message = serde_json::from_str(&line)
                        .unwrap_or_else(|error| Message::Failed(format!("said {line:?}: {error}")));
                    if sender.send(message).is_err() {
                        return;
                    }
                }
            });
        }
        let mut link = Self { requests: child.stdin.take(), child, messages };
        let mut placed = None;
        loop {
            match link.messages.recv_timeout(Duration::from_secs(300)) {
                Ok(Message::Placed { dir, server }) => placed = Some((dir, server)),
                Ok(Message::Ready) => {
                    return match placed {
                        Some((dir, server)) => Ok((link, dir, server)),
                        None => Err(failed("is ready without a place".into())),
                    };
                }
                Ok(Message::Failed(why)) => {
                    link.close();
                    let own = format!("cluster {}: ", order.name);
                    return Err(failed(why.strip_prefix(&own).unwrap_or(&why).to_owned()));
                }
                Ok(Message::Done) => {}
                Err(_) => {
                    link.close();
                    return Err(failed("its supervisor died or does not answer".into()));
                }
            }
        }
    }

    /// Ends the cluster and waits until everything of it is gone.
    fn close(&mut self) {
        drop(self.requests.take());
        let begun = Instant::now();
        while !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            if begun.elapsed() > Duration::from_secs(20) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            lock(&own.link).close();
        }
    }
}

/// What an API server has noted of requests, among what else is in its log.
fn events(log: &str) -> impl Iterator<Item = serde_json::Value> {
    let lines = log.lines().filter(|line| line.starts_with("{\"kind\":\"Event\""));
    lines.filter_map(|line| serde_json::from_str(line).ok())
}

/// The resource of a reference or a question, and behind a slash its part.
fn resource(object: &serde_json::Value) -> String {
    match object["subresource"].as_str().filter(|part| !part.is_empty()) {
        Some(part) => format!("{}/{part}", word(&object["resource"])),
        None => word(&object["resource"]),
    }
}

fn word(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cluster of this name that all tests of this process share; it starts on first use and ends with the process.
///
/// # Panics
///
/// When the cluster does not start, or when it was started with another specification.
pub fn shared(spec: &Spec) -> &'static Cluster {
    type Entry = (Spec, OnceLock<Result<Cluster, String>>);
    static SHARED: Mutex<Option<HashMap<String, &'static Entry>>> = Mutex::new(None);
    let (first, cell) = {
        let mut shared = lock(&SHARED);
        let entries = shared.get_or_insert_with(HashMap::new);
        *entries.entry(spec.name.clone()).or_insert_with(|| Box::leak(Box::new((spec.clone(), OnceLock::new()))))
    };
    assert!(first == spec, "the shared cluster {} was asked for as {first:?} before, and now as {spec:?}", spec.name);
    match cell.get_or_init(|| Cluster::start(spec).map_err(|error| error.to_string())) {
        Ok(cluster) => cluster,
        Err(why) => panic!("{why}"),
    }
}
