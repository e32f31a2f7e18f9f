//! The first process of a cluster: it starts the daemons, says when the cluster can be used, and takes everything
//! along when it ends. For a whole node it is process 1 of namespaces of its own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::mount::MountFlags;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::error::{Error, Trying as _};
use crate::http::Client;
use crate::network::{PODS_BRIDGE, gateway};
use crate::order::{Message, Place, Request, Size, send};
use crate::pki::{self, Authority};
use crate::progress::{Progress, print};
use crate::run::tail;
use crate::{config, slots};

/// Something that the first process must react to.
enum Event {
    /// A child ended.
    Ended(Pid),
    /// The runner wants something.
    Asked(Request),
    /// The runner is gone.
    Alone,
}

/// The verb `node`.
pub(crate) fn node(place: &str) -> Result<(), Error> {
    let place: Place =
        serde_json::from_str(place).map_err(|e| Error::host(format!("reading the order failed: {e}")))?;
    let _held = slots::hold_node(place.slot)?;
    let (sender, events) = channel();
    let input = sender.clone();
    thread::spawn(move || read(&input));
    let mut node = Node { place, events, sender, running: BTreeMap::new() };
    let result = node.start();
    match &result {
        Ok(()) => {
            send(&Message::Ready);
            node.serve();
        }
        Err(error) => send(&Message::Failed(error.to_string())),
    }
    node.end();
    result
}

/// Reads requests until the other end of the pipe is closed.
fn read(events: &Sender<Event>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(request) => drop(events.send(Event::Asked(request))),
            Err(error) => send(&Message::Failed(format!("a request that cannot be read: {error}"))),
        }
    }
    drop(events.send(Event::Alone));
}

/// Collects children that ended. As process 1 we are given those of others as well.
fn reap(events: &Sender<Event>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, _))) => drop(events.send(Event::Ended(pid))),
            Ok(None) => {}
            Err(_) => sleep(Duration::from_millis(50)),
        }
    }
}

struct Node {
    place: Place,
    events: Receiver<Event>,
    sender: Sender<Event>,
    running: BTreeMap<String, Pid>,
}

impl Node {
    fn cluster(&self, why: String) -> Error {
        Error::Cluster { cluster: self.place.order.name.clone(), why }
    }

    fn start(&mut self) -> Result<(), Error> {
        let whole = self.place.order.size == Size::Node;
        for dir in ["pki", "etcd", "run", "cni", "kubelet"] {
            let dir = self.place.dir.join(dir);
            fs::create_dir(&dir).trying(|| format!("creating {}", dir.display()))?;
        }
        if self.place.user.is_some() {
            mounts(&mut self.place)?;
        }
        if whole {
            network(&self.place)?;
            if let Some(images) = self.place.order.images.clone() {
                adopt_images(&images, &self.place.dir.join("containerd"))?;
            }
        }
        let client = certificates(&self.place)?;
        config::write_all(&self.place)?;
        // From here on every child is collected by its own thread, so no other command may be run and waited for.
        let sender = self.sender.clone();
        thread::spawn(move || reap(&sender));

        self.launch("etcd")?;
        self.launch("kube-apiserver")?;
        if whole {
            self.launch("containerd")?;
        }
        self.until("kube-apiserver", 90, |_| client.get("/readyz").is_some())?;
        // The controller manager and the scheduler end for good when the API server is not ready yet.
        self.launch("kube-controller-manager")?;
        if !whole {
            return Ok(());
        }
        // The kubelet ends for good when containerd does not answer yet. This line is written when all plugins serve.
        self.until("containerd", 60, |place| {
            fs::read(place.log("containerd")).is_ok_and(|log| contains(&log, b"containerd successfully booted"))
        })?;
        self.launch("kubelet")?;
        if self.place.order.schedulable {
            self.launch("kube-scheduler")?;
        }
        self.launch("kube-proxy")?;
        let path = format!("/api/v1/nodes/{}", self.place.order.name);
        self.until("kubelet", 90, |_| client.get(&path).is_some_and(|node| is_ready(&node)))?;
        // A node is ready some seconds before pods can be created: those need the account.
        self.until("kube-controller-manager", 60, |_| {
            client.get("/api/v1/namespaces/default/serviceaccounts/default").is_some()
        })
    }

    /// Starts a daemon. It dies with this thread, which lives as long as the process.
    fn launch(&mut self, daemon: &str) -> Result<(), Error> {
        if self.running.contains_key(daemon) {
            return Ok(());
        }
        let (program, arguments) =
            config::command(&self.place, daemon).ok_or_else(|| self.cluster(format!("there is no daemon {daemon}")))?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.place.log(daemon))
            .trying(|| format!("opening the log of {daemon}"))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(user) = self.place.user.filter(|_| config::needs_no_rights(daemon)) {
            command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".into()]);
        }
        let again = log.try_clone().trying(|| format!("opening the log of {daemon}"))?;
        let child = command
            .arg("--")
            .arg(program)
            .args(arguments)
            .current_dir("/")
            // Proxies and settings of the person who runs the tests must not reach the daemons.
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("GOGC", config::GARBAGE)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(again)
            .spawn()
            .trying(|| format!("starting {daemon}"))?;
        if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
            self.running.insert(daemon.to_owned(), pid);
        }
        Ok(())
    }

    /// Waits for something that a daemon brings about, but not for ever and not when a daemon has died.
    fn until(&mut self, daemon: &str, seconds: u64, mut done: impl FnMut(&Place) -> bool) -> Result<(), Error> {
        let begun = Instant::now();
        while !done(&self.place) {
            if begun.elapsed() > Duration::from_secs(seconds) {
                let log = tail(&self.place.log(daemon), 8);
                return Err(self.cluster(format!("waited {seconds} s for {daemon}, which said last:\n{log}")));
            }
            match self.events.recv_timeout(Duration::from_millis(25)) {
                Ok(Event::Ended(pid)) => {
                    if let Some(dead) = self.ended(pid) {
                        let log = tail(&self.place.log(&dead), 8);
                        return Err(self.cluster(format!("{dead} ended while starting; it said last:\n{log}")));
                    }
                }
                Ok(Event::Asked(_)) => send(&Message::Failed("the cluster is still starting".into())),
                Ok(Event::Alone) => return Err(self.cluster("nobody waits for it any more".into())),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        Ok(())
    }

    /// Forgets a process; returns its name when it was a daemon.
    fn ended(&mut self, pid: Pid) -> Option<String> {
        let name = self.running.iter().find(|(_, running)| **running == pid).map(|(name, _)| name.clone())?;
        self.running.remove(&name);
        Some(name)
    }

    /// Carries out requests until the runner is gone.
    fn serve(&mut self) {
        while let Ok(event) = self.events.recv() {
            match event {
                Event::Alone => return,
                Event::Ended(pid) => {
                    if let Some(name) = self.ended(pid) {
                        print(Progress::Said(&format!("{name} ended: {}", tail(&self.place.log(&name), 3))));
                    }
                }
                Event::Asked(request) => {
                    let done = self.carry_out(&request);
                    send(&done.map_or_else(|error| Message::Failed(error.to_string()), |()| Message::Done));
                }
            }
        }
    }

    fn carry_out(&mut self, request: &Request) -> Result<(), Error> {
        match request {
            Request::Start(daemon) => self.launch(daemon),
            Request::Stop(daemon) => {
                let Some(pid) = self.running.get(daemon).copied() else { return Ok(()) };
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                let begun = Instant::now();
                while self.running.contains_key(daemon) {
                    if begun.elapsed() > Duration::from_secs(10) {
                        return Err(self.cluster(format!("{daemon} does not end")));
                    }
                    match self.events.recv_timeout(Duration::from_millis(100)) {
                        Ok(Event::Ended(pid)) => drop(self.ended(pid)),
                        Ok(Event::Alone) => drop(self.sender.send(Event::Alone)),
                        _ => {}
                    }
                }
                Ok(())
            }
            Request::Hold(daemon) => self.signal_one(daemon, Signal::STOP),
            Request::Release(daemon) => self.signal_one(daemon, Signal::CONT),
            Request::Pause => {
                self.signal(Signal::STOP);
                Ok(())
            }
            Request::Resume => {
                self.signal(Signal::CONT);
                Ok(())
            }
            Request::Network(_) => {
                Err(self.cluster("has no network of its own; only clusters with a node have one".into()))
            }
            Request::Import(_) => Err(self.cluster("has no images; only clusters with a node have them".into())),
        }
    }

    /// Sends a signal to one daemon.
    fn signal_one(&self, daemon: &str, signal: Signal) -> Result<(), Error> {
        let pid = self.running.get(daemon).ok_or_else(|| self.cluster(format!("runs no {daemon}")))?;
        rustix::process::kill_process(*pid, signal).trying(|| format!("sending a signal to {daemon}"))
    }

    /// Sends a signal to everything of the cluster but this process.
    fn signal(&self, signal: Signal) {
        if std::process::id() == 1 {
            // In a process namespace, "group 1" is how the system call says "everybody else".
            let _ = rustix::process::kill_process_group(Pid::INIT, signal);
        } else {
            for pid in self.running.values() {
                let _ = rustix::process::kill_process(*pid, signal);
            }
        }
    }

    fn end(&mut self) {
        self.signal(Signal::KILL);
        let begun = Instant::now();
        while !self.running.is_empty() && begun.elapsed() < Duration::from_secs(2) {
            if let Ok(Event::Ended(pid)) = self.events.recv_timeout(Duration::from_millis(20)) {
                self.ended(pid);
            }
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Whether a node says that it is ready, and the controllers have seen it: until then a taint keeps pods away.
fn is_ready(node: &str) -> bool {
    let Ok(node) = serde_json::from_str::<serde_json::Value>(node) else { return false };
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    list(&node["status"]["conditions"]).iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
        && !list(&node["spec"]["taints"]).iter().any(|t| t["key"] == "node.kubernetes.io/not-ready")
}

/// What must look different inside: directories that every node of the world writes to, and our binaries, which a
/// cache in a private home would keep from the users of the daemons.
fn mounts(place: &mut Place) -> Result<(), Error> {
    let tmpfs = |at: &Path| {
        fs::create_dir_all(at)
            .and_then(|()| Ok(rustix::mount::mount("tmpfs", at, "tmpfs", MountFlags::empty(), Some(c"mode=0755"))?))
            .trying(|| format!("mounting {}", at.display()))
    };
    let bind = |from: &Path, to: &Path| {
        fs::write(to, "")
            .and_then(|()| Ok(rustix::mount::mount_bind(from, to)?))
            .trying(|| format!("mounting {}", from.display()))
    };
    let bin = place.dir.join("bin");
    tmpfs(&bin)?;
    for (name, file) in &mut place.order.binaries {
        if config::needs_no_rights(name) {
            let reachable = bin.join(name);
            bind(file, &reachable)?;
            *file = reachable;
        }
    }
    if place.order.size == Size::Api {
        return Ok(());
    }
    rustix::system::sethostname(place.order.name.as_bytes()).trying(|| "naming the node".into())?;
    for at in ["/run", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers"] {
        tmpfs(Path::new(at))?;
    }
    fs::create_dir_all("/run/netns").trying(|| "creating /run/netns".into())?;
    // The kubelet sets these for the whole machine when they read otherwise. So it reads what it wants to read.
    for (name, value) in [
        ("vm/overcommit_memory", "1"),
        ("vm/panic_on_oom", "0"),
        ("kernel/panic", "10"),
        ("kernel/panic_on_oops", "1"),
        ("kernel/keys/root_maxkeys", "1000000"),
        ("kernel/keys/root_maxbytes", "25000000"),
    ] {
        let real = Path::new("/proc/sys").join(name);
        if real.exists() {
            let shown = bin.join(name.replace('/', "-"));
            fs::write(&shown, format!("{value}\n")).trying(|| format!("writing {}", shown.display()))?;
            rustix::mount::mount_bind(&shown, &real).trying(|| format!("covering {}", real.display()))?;
        }
    }
    Ok(())
}

fn network(place: &Place) -> Result<(), Error> {
    let begun = Instant::now();
    while !Path::new("/proc/sys/net/ipv4/conf/eth0").exists() {
        if begun.elapsed() > Duration::from_secs(15) {
            return Err(Error::host("the network of the cluster was not tied to the host"));
        }
        sleep(Duration::from_millis(2));
    }
    let mut ip =
        Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().trying(|| "starting ip".into())?;
    // The pods' bridge gets an address of its own before the network plugin finds it there: without one it takes the
    // lowest of its pods', and each pod that comes or goes may cut the others off for half a minute.
    let lines = format!(
        "link set lo up\naddress add {}/24 dev eth0\nlink set eth0 up\nroute add default via {}\n\
         link add {PODS_BRIDGE} address 02:0a:c9:01:00:01 type bridge\n",
        place.address,
        gateway()
    );
    ip.stdin.take().map(|mut pipe| pipe.write_all(lines.as_bytes())).transpose().trying(|| "writing to ip".into())?;
    if !ip.wait().trying(|| "waiting for ip".into())?.success() {
        return Err(Error::host("setting up the network of the node failed; its log says more"));
    }
    for name in ["ip_forward", "conf/all/route_localnet"] {
        let file = Path::new("/proc/sys/net/ipv4").join(name);
        fs::write(&file, "1").trying(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// Makes all certificates and kubeconfigs, and a client for ourselves.
fn certificates(place: &Place) -> Result<Client, Error> {
    let (dir, name) = (place.dir.join("pki"), &place.order.name);
    let authority = Authority::create(name, &dir)?;
    pki::service_account_keys(&dir)?;
    let service = [10, 96, 0, 1].into();
    let names = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        name,
    ];
    authority
        .sign("kube-apiserver", &[], &names, &[place.address, service, [127, 0, 0, 1].into()])?
        .write(&dir, "apiserver")?;
    authority.sign("front-proxy-client", &[], &[], &[])?.write(&dir, "front-proxy")?;
    let masters = "system:masters";
    let admin = authority.sign("admin", &[masters], &[], &[])?;
    let mut users = vec![("admin", "admin", masters), ("kcm", "system:kube-controller-manager", masters)];
    if place.order.size == Size::Node {
        users.push(("scheduler", "system:kube-scheduler", masters));
        let pair = authority.sign(&format!("system:node:{name}"), &["system:nodes"], &[name], &[place.address])?;
        pair.write(&dir, "node")?;
        let text = pair.kubeconfig(name, "node", &place.server(), &authority.certificate);
        pki::write(&place.dir.join("node.kubeconfig"), &text, true)?;
    }
    let mut theirs: Vec<PathBuf> = Vec::new();
    for (file, user, group) in users {
        let signed;
        let pair = if file == "admin" {
            &admin
        } else {
            signed = authority.sign(user, &[group], &[], &[])?;
            &signed
        };
        let kubeconfig = place.dir.join(format!("{file}.kubeconfig"));
        let text = pair.kubeconfig(name, user, &place.server(), &authority.certificate);
        pki::write(&kubeconfig, &text, true)?;
        if file != "admin" {
            theirs.push(kubeconfig);
        }
    }
    admin.write(&dir, "admin")?;
    let etcd = place.dir.join("etcd");
    fs::set_permissions(&etcd, fs::Permissions::from_mode(0o700)).trying(|| "closing the data of etcd".into())?;
    if let Some(user) = place.user {
        let secrets = fs::read_dir(&dir).trying(|| "listing the certificates".into())?;
        theirs.extend(secrets.flatten().map(|entry| entry.path()));
        theirs.extend([etcd, place.dir.join("run")]);
        for file in theirs {
            chown(&file, Some(user), Some(user)).trying(|| format!("giving {} away", file.display()))?;
        }
    }
    Client::new(place.socket(), &authority.certificate, &admin)
}

/// Gives containerd the prepared images. What is large stays where it is and is shown here, because the store may be
/// on another file system; what containerd writes to is copied.
fn adopt_images(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(from).trying(|| format!("listing {}", from.display()))? {
        let entry = entry.trying(|| format!("listing {}", from.display()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let meta = entry.metadata().trying(|| format!("looking at {}", source.display()))?;
        let show = |source: &Path, target: &Path| -> Result<(), Error> {
            let flags = MountFlags::BIND | MountFlags::RDONLY;
            rustix::mount::mount_bind(source, target)
                .and_then(|()| rustix::mount::mount_remount(target, flags, ""))
                .trying(|| format!("showing {}", source.display()))
        };
        let make = |dir: &Path| fs::create_dir_all(dir).trying(|| format!("creating {}", dir.display()));
        if meta.is_dir() && source.parent().is_some_and(|parent| parent.ends_with("snapshots")) {
            make(&target)?;
            show(&source, &target)?;
        } else if meta.is_dir() {
            make(&target)?;
            fs::set_permissions(&target, meta.permissions()).trying(|| format!("closing {}", target.display()))?;
            adopt_images(&source, &target)?;
        } else if meta.is_file() && meta.len() > 4 << 20 {
            File::create(&target).trying(|| format!("creating {}", target.display()))?;
            show(&source, &target)?;
        } else if meta.is_file() {
            fs::copy(&source, &target).trying(|| format!("copying {}", source.display()))?;
        }
    }
    Ok(())
}
