//! The process outside a cluster: it takes a place, makes the namespaces, ties the network, and cleans up.
//!
//! Its standard input is a pipe from the runner, and the standard input of the cluster's first process is a pipe from
//! here. Whoever dies closes its pipe, in whatever way it dies; so the others notice, and everything ends.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::config;
use crate::error::{Error, Trying as _};
use crate::network::{BRIDGE, gateway, hardware_address, node_address, wire};
use crate::order::{Message, Order, Place, Request, Size, send};
use crate::run::{is_root, run, tail};
use crate::slots::{self, Slot};

/// What passes the firewall: traffic within the bridge.
const THROUGH: [&str; 6] = ["-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT"];

/// The verb `supervise`: everything of one cluster, from taking a place to leaving no trace.
pub(crate) fn supervise(order: &str) -> Result<(), Error> {
    let result = serde_json::from_str(order)
        .map_err(|error| Error::host(format!("reading the order of a cluster failed: {error}")))
        .and_then(|order| slots::take().map(|slot| (order, slot)))
        .and_then(|(order, slot)| {
            let result = live(order, &slot);
            let removed = slots::remove(&slot.dir);
            if is_root() {
                untie(slot.number);
            }
            result.and(removed)
        });
    if let Err(error) = &result {
        send(&Message::Failed(error.to_string()));
    }
    Ok(())
}

fn live(order: Order, slot: &Slot) -> Result<(), Error> {
    let isolated = is_root() && (order.size == Size::Node || may_unshare());
    let (address, port) = match order.size {
        Size::Api => (Ipv4Addr::LOCALHOST, free_port()?),
        Size::Node => (node_address(slot.number), 6443),
    };
    let place = Place {
        slot: slot.number,
        dir: slot.dir.clone(),
        address: IpAddr::V4(address),
        port,
        user: isolated.then(|| 20_000 + u32::from(slot.number)),
        order,
    };
    fs::create_dir(place.dir.join("log")).trying(|| "creating the log directory".into())?;
    let mut child = spawn(&place, isolated)?;
    send(&Message::Placed { dir: place.dir.clone(), server: place.server() });
    let stdin = Arc::new(Mutex::new(child.stdin.take()));
    let tied = if place.order.size == Size::Node { tie(&place, &child) } else { Ok(()) };
    if tied.is_ok() {
        let stdin = Arc::clone(&stdin);
        let outside = (place.order.size == Size::Node).then(|| Outside { wire: wire(place.slot), inside: child.id() });
        thread::spawn(move || relay(&stdin, outside.as_ref()));
    } else {
        drop(stdin.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
    let status = wait(&mut child, &stdin)?;
    tied?;
    // Whoever has been told to end, ends well; an end of its own accord is told with what it said last.
    if status {
        return Ok(());
    }
    Err(Error::Cluster {
        cluster: place.order.name.clone(),
        why: format!("its first process ended: {}", tail(&place.log("node"), 5)),
    })
}

/// Waits until the first process of the cluster has ended; when its input is closed it has to hurry.
fn wait(child: &mut Child, stdin: &Mutex<Option<ChildStdin>>) -> Result<bool, Error> {
    let mut closed = None;
    loop {
        if let Some(status) = child.try_wait().trying(|| "waiting for the cluster".into())? {
            return Ok(status.success());
        }
        if stdin.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            let since: &Instant = closed.get_or_insert_with(Instant::now);
            if since.elapsed() > Duration::from_secs(3) {
                // The first process of the namespaces dies with this one, and everything else with that.
                let _ = child.kill();
            }
        }
        sleep(Duration::from_millis(10));
    }
}

/// What is done to a node from outside: its first process waits for no commands.
struct Outside {
    /// The host's end of its wire.
    wire: String,
    /// A process in its mount namespace.
    inside: u32,
}

impl Outside {
    /// The command that carries a request out, if it is one for here.
    fn command(&self, request: &Request) -> Option<Command> {
        match request {
            Request::Network(up) => {
                let mut command = Command::new("ip");
                command.args(["link", "set", &self.wire, if *up { "up" } else { "down" }]);
                Some(command)
            }
            Request::Import(archive) => {
                let mut command = Command::new("nsenter");
                command.args([&format!("--target={}", self.inside), "--mount", "--", "ctr"]);
                command.args(["--address", config::CONTAINERD, "--namespace", "k8s.io", "images", "import"]);
                command.arg(archive);
                Some(command)
            }
            _ => None,
        }
    }
}

/// Passes requests on to the cluster until the runner is gone.
fn relay(stdin: &Mutex<Option<ChildStdin>>, outside: Option<&Outside>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let request = serde_json::from_str::<Request>(&line).ok();
        if let Some(mut command) = request.and_then(|request| outside?.command(&request)) {
            let done = run(&mut command);
            send(&done.map_or_else(|error| Message::Failed(error.to_string()), |_| Message::Done));
            continue;
        }
        let mut open = stdin.lock().unwrap_or_else(PoisonError::into_inner);
        match open.as_mut().map(|pipe| writeln!(pipe, "{line}")) {
            Some(Ok(())) => {}
            _ => break,
        }
    }
    drop(stdin.lock().unwrap_or_else(PoisonError::into_inner).take());
}

fn spawn(place: &Place, isolated: bool) -> Result<Child, Error> {
    let own = std::env::current_exe().trying(|| "finding our own program".into())?;
    let text = serde_json::to_string(place).map_err(|e| Error::host(e.to_string()))?;
    let mut command = if isolated {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]);
        if place.order.size == Size::Node {
            command.arg("--net");
        }
        command.arg("--").arg(own);
        command
    } else {
        Command::new(own)
    };
    let log = fs::File::create(place.log("node")).trying(|| "creating the log of the node".into())?;
    command.arg("node").arg(text).stdin(Stdio::piped()).stdout(Stdio::inherit()).stderr(log);
    command.spawn().trying(|| "starting the first process of the cluster".into())
}

/// Whether we may make namespaces; root in a container may not.
fn may_unshare() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--mount", "--uts", "--ipc", "--fork", "--mount-proc", "--", "true"]);
    run(&mut command).is_ok()
}

/// A port that nobody listens on just now.
fn free_port() -> Result<u16, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .trying(|| "looking for a free port".into())
}

/// Held while the bridge is changed. The bridge belongs to the network of this machine, not to a directory.
fn host_lock() -> Result<slots::Name, Error> {
    slots::Name::wait("bridge")
}

/// Ties the node to the bridge, as soon as its network namespace exists.
fn tie(place: &Place, child: &Child) -> Result<(), Error> {
    let theirs = format!("/proc/{}/ns/net", child.id());
    let ours = fs::read_link("/proc/self/ns/net").trying(|| "looking at our network".into())?;
    let begun = Instant::now();
    // A process that has ended has no namespaces to look at.
    while fs::read_link(&theirs).trying(|| tail(&place.log("node"), 5))? == ours {
        if begun.elapsed() > Duration::from_secs(10) {
            return Err(Error::host("the network namespace of the cluster does not appear"));
        }
        sleep(Duration::from_millis(2));
    }
    let _lock = host_lock()?;
    let ip = |arguments: &[&str]| run(Command::new("ip").args(arguments));
    if !Path::new("/sys/class/net").join(BRIDGE).exists() {
        // A bridge without an address of its own takes the lowest of its wires', which changes as they come and go, and
        // everybody who remembers the former one sends into the void for half a minute.
        ip(&["link", "add", BRIDGE, "address", &hardware_address(0), "type", "bridge"])?;
        ip(&["address", "add", &format!("{}/24", gateway()), "dev", BRIDGE])?;
        ip(&["link", "set", BRIDGE, "up"])?;
    }
    // With Docker on the machine, traffic within a bridge passes the firewall of the host too.
    let filtered = fs::read_to_string("/proc/sys/net/bridge/bridge-nf-call-iptables").is_ok_and(|v| v.trim() == "1");
    if filtered && run(Command::new("iptables").args(["-w", "30", "-C", "FORWARD"]).args(THROUGH)).is_err() {
        run(Command::new("iptables").args(["-w", "30", "-I", "FORWARD"]).args(THROUGH))?;
    }
    let (wire, pid) = (wire(place.slot), child.id().to_string());
    // A later cluster in this slot has the same IP address: with the same hardware address nobody has to relearn it.
    let theirs = hardware_address(place.slot);
    ip(&["link", "add", &wire, "type", "veth", "peer", "name", "eth0", "address", &theirs, "netns", &pid])?;
    ip(&["link", "set", &wire, "master", BRIDGE, "up"])?;
    Ok(())
}

/// Removes the wire of a dead node, and the bridge when no node is tied to it any more.
fn untie(number: u8) {
    let Ok(_lock) = host_lock() else { return };
    let bridge = Path::new("/sys/class/net").join(BRIDGE);
    if !bridge.exists() {
        return;
    }
    // The kernel removes it together with the namespace at its other end, but at its leisure.
    let _ = run(Command::new("ip").args(["link", "delete", &wire(number)]));
    if fs::read_dir(bridge.join("brif")).is_ok_and(|mut wires| wires.next().is_none()) {
        let _ = run(Command::new("iptables").args(["-w", "30", "-D", "FORWARD"]).args(THROUGH));
        let _ = run(Command::new("ip").args(["link", "delete", BRIDGE]));
    }
}
