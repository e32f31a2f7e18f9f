//! `cargo demo`: from nothing to three available clusters, the last of which the hub lets in by itself, told as it happens.

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use control_plane::{Cluster, Observer, Spec, binaries, ocm_version, prepare_nodes};
use launcher::{Progress, Step};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use crate::image::linked;
use crate::places::{state, target};
use crate::prepare;
use crate::story::{Managed, Scene, kubeconfig};

/// The program of the hub, and its image on the hub's node.
const WEBHOOK: &str = "ocm-policy-webhook";
const IMAGE: &str = "registry.example.com/ocm-policy-webhook:demo";

/// Arguments of `cargo demo`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Use this context as the hub, instead of clusters that the demo starts
    #[arg(long, value_name = "NAME", requires = "managed_context")]
    pub hub_context: Option<String>,
    /// Join the cluster of this context (repeatable)
    #[arg(long, value_name = "NAME", requires = "hub_context")]
    pub managed_context: Vec<String>,
    /// The kubeconfig that holds the contexts
    #[arg(long, value_name = "FILE", requires = "hub_context")]
    pub kubeconfig: Option<PathBuf>,
    /// The release of Open Cluster Management that is installed (default: the one whose images the demo's clusters
    /// hold; on clusters of your own the commands' own default)
    #[arg(long, value_name = "VERSION")]
    pub bundle_version: Option<String>,
    /// End at once when the clusters are available, instead of leaving them running
    #[arg(long, conflicts_with = "hub_context")]
    pub exit: bool,
    /// End the demo that is running
    #[arg(long, conflicts_with_all = ["hub_context", "exit"])]
    pub down: bool,
}

/// Runs the demo.
///
/// # Errors
/// When a step of it fails.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.down {
        return down();
    }
    match &arguments.hub_context {
        Some(hub) => with_own_clusters_of_the_user(arguments, hub),
        None => with_new_clusters(arguments),
    }
}

/// The commands that the demo shows: built already when the launcher started this. The policy engine takes minutes to
/// compile, and is built only where it is shown.
fn build(target: &Path, policy_engine: bool) -> Result<PathBuf, String> {
    if let Some(folder) = std::env::var_os(cli_tests::BINARIES) {
        return Ok(folder.into());
    }
    let mut names = cli_tests::binaries();
    if policy_engine {
        names.push(WEBHOOK.to_owned());
    } else {
        names.retain(|name| name != "kubectl-ocm-policy");
    }
    cli_tests::build_some(&names, target, false, false)
}

fn with_own_clusters_of_the_user(arguments: &Arguments, hub: &str) -> Result<(), String> {
    let begun = Instant::now();
    let commands = build(&target()?, false)?;
    // The user's kubectl knows the user's clusters; ours is for machines that have none.
    let own = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.is_file()));
    let kubectl = match own {
        Some(kubectl) => kubectl,
        None => binaries().map_err(|error| error.to_string())?.kubectl().to_owned(),
    };
    let scene = Scene {
        kubeconfig: arguments.kubeconfig.clone(),
        commands,
        kubectl,
        hub: hub.to_owned(),
        bundle: arguments.bundle_version.clone(),
        loud: true,
    };
    let managed: Vec<Managed> = arguments.managed_context.iter().map(|context| named_after(context)).collect();
    play(&scene, &managed)?;
    scene.clusters()?;
    println!("\nTook {:.0} s. To leave: kubectl delete managedcluster NAME on the hub.", begun.elapsed().as_secs_f32());
    Ok(())
}

/// A context may have any name, a managed cluster may not.
fn named_after(context: &str) -> Managed {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = context.chars().map(plain).take(40).collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "cluster" } else { name };
    Managed { name: name.to_owned(), context: context.to_owned() }
}

/// The first step, building the commands, is the launcher's.
const COMPILE: Step =
    Step { number: 2, of: 4, what: "building Kubernetes and Open Cluster Management", usual: Duration::from_secs(420) };
const IMAGES: Step = Step { number: 3, of: 4, what: "preparing the images", usual: Duration::from_secs(20) };
const START: Step =
    Step { number: 4, of: 4, what: "starting the clusters hub, c1, c2 and c3", usual: Duration::from_secs(15) };

/// Runs a step with its line of progress.
fn step<T>(step: Step, work: impl FnOnce(Observer<'_>) -> Result<T, String>) -> Result<T, String> {
    let line = Progress::begin(step);
    work(&|progress| match progress {
        control_plane::Progress::Compiled { done, total } => line.at(format!("{done} of {total} packages")),
        control_plane::Progress::Said(text) => line.at(text),
    })
}

/// The release that is installed: the clusters hold the images of one only.
fn bundle(asked: Option<&str>, held: &str) -> Result<String, String> {
    let (asked, held) = (asked.map(|version| version.trim_start_matches('v')), held.trim_start_matches('v'));
    match asked {
        Some(asked) if asked != held => Err(format!(
            "the demo's clusters hold the images of Open Cluster Management {held}, not of {asked}; leave out \
             --bundle-version, or set OCM_ASSETS and OCM_ASSETS_VERSION to a directory with the binaries of {asked}"
        )),
        _ => Ok(held.to_owned()),
    }
}

fn with_new_clusters(arguments: &Arguments) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("the demo starts nodes that run pods, which needs root on this machine; run it as root, or use \
                    clusters of your own: cargo demo --hub-context NAME --managed-context NAME"
            .to_owned());
    }
    let begun = Instant::now();
    let folder = state()?;
    let running = Running::begin(&folder)?;
    let bundle = bundle(arguments.bundle_version.as_deref(), &ocm_version().map_err(|error| error.to_string())?)?;
    let commands = build(&target()?, true)?;
    let found = step(COMPILE, prepare::everything)?;
    step(IMAGES, |observe| prepare_nodes(observe).map_err(|error| error.to_string()))?;
    let clusters = step(START, |_| {
        let clusters = Cluster::start_all(&["hub", "c1", "c2", "c3"].map(Spec::node));
        let clusters = clusters.map_err(|error| error.to_string())?;
        load_image(clusters.first().ok_or("no cluster was started")?, &commands, &folder)?;
        Ok(clusters)
    })?;
    let file = folder.join("kubeconfig");
    kubeconfig(&clusters, &file)?;
    let ready = begun.elapsed();
    println!(
        "The clusters hub, c1, c2 and c3 are ready after {:.0} s. From here on, everything is what you would type.",
        ready.as_secs_f32()
    );
    let scene = Scene {
        kubeconfig: Some(file.clone()),
        commands,
        kubectl: found.kubectl().to_owned(),
        hub: "hub".to_owned(),
        bundle: Some(bundle),
        loud: true,
    };
    let [c1, c2, c3] = ["c1", "c2", "c3"].map(|name| Managed { name: name.to_owned(), context: name.to_owned() });
    let told = play(&scene, &[c1, c2]).and_then(|()| decide(&scene, &c3, &folder)).and_then(|()| scene.clusters());
    let took = begun.elapsed();
    match &told {
        Ok(()) => println!(
            "\nTook {:.0} s, of which {:.0} s are the commands above.",
            took.as_secs_f32(),
            (took - ready).as_secs_f32()
        ),
        Err(why) => println!("\nStopped after {:.0} s: {why}", took.as_secs_f32()),
    }
    if arguments.exit {
        drop(clusters);
        running.end(&folder);
        return told;
    }
    println!("\nThe clusters run until you press Ctrl-C here, or run `cargo demo --down`. In another terminal:");
    println!("  export KUBECONFIG={}", file.display());
    println!("  export PATH={}:{}:$PATH", scene.commands.display(), parent(&scene.kubectl).display());
    println!("  kubectl ocm get clusters --context hub");
    println!("  kubectl get pods --all-namespaces --context c1");
    wait_for_the_end()?;
    println!("\nEnding the clusters.");
    drop(clusters);
    running.end(&folder);
    told
}

fn parent(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

/// The first cluster joins with a token, as somebody without access to the hub would; the others with both kubeconfigs.
fn play(scene: &Scene, managed: &[Managed]) -> Result<(), String> {
    println!("\n# A hub");
    scene.install()?;
    if let Some((first, others)) = managed.split_first() {
        println!("\n# A cluster joins with a token, and the hub's administrator lets it in");
        let join_command = scene.join_command()?;
        scene.join(first, &join_command)?;
        scene.accept(first)?;
        for other in others {
            println!("\n# Whoever has access to both does all of it at once");
            scene.join_with_both_kubeconfigs(other)?;
        }
        println!("\n# Where they stand");
        scene.available(managed)?;
    }
    Ok(())
}

/// The hub decides by itself: a cluster that a policy names joins without a person, and whoever holds the same token and is
/// not named does not.
fn decide(scene: &Scene, managed: &Managed, folder: &Path) -> Result<(), String> {
    println!("\n# From here on the hub decides by itself");
    scene.install_policy_engine(IMAGE)?;
    scene.apply_policy(folder)?;
    println!("\n# A cluster joins without a person");
    let join_command = scene.join_command()?;
    scene.join(managed, &join_command)?;
    scene.available(std::slice::from_ref(managed))?;
    println!("\n# A stranger holds the same token");
    scene.attack(&join_command, folder)?;
    scene.run(&["kubectl", "ocm", "policy", "explain", &managed.name, "--context", &scene.hub])
}

/// Puts the policy engine on the hub's node.
fn load_image(hub: &Cluster, commands: &Path, folder: &Path) -> Result<(), String> {
    let file = folder.join("image.tar");
    let archive = linked(WEBHOOK, IMAGE, &commands.join(WEBHOOK))?;
    fs::write(&file, archive).map_err(|error| format!("{}: {error}", file.display()))?;
    let taken = hub.import_image(&file).map_err(|error| error.to_string());
    let _ = fs::remove_file(&file);
    taken
}

/// Until Ctrl-C or SIGTERM.
fn wait_for_the_end() -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error: std::io::Error| format!("waiting for a signal: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut hang_up = signal(SignalKind::hangup()).map_err(failed)?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result.map_err(failed),
            _ = terminate.recv() => Ok(()),
            _ = hang_up.recv() => Ok(()),
        }
    })
}

/// The mark of a running demo: a locked file with the number of its process. The kernel takes the lock away with the
/// process, however that ends.
struct Running {
    _held: File,
}

fn mark(folder: &Path) -> Result<File, String> {
    let file = folder.join("running");
    let open = File::options().create(true).truncate(false).read(true).write(true).open(&file);
    open.map_err(|error| format!("{}: {error}", file.display()))
}

impl Running {
    fn begin(folder: &Path) -> Result<Self, String> {
        let mut file = mark(folder)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err("a demo is running already; end it with `cargo demo --down`".to_owned());
        }
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            write!(file, "{}", std::process::id())
        };
        write(&mut file).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { _held: file })
    }

    fn end(self, folder: &Path) {
        // The clusters are gone; a kubeconfig of them would only mislead.
        let _ = fs::remove_file(folder.join("kubeconfig"));
    }
}

fn down() -> Result<(), String> {
    let folder = state()?;
    let file = mark(&folder)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        println!("No demo is running.");
        return Ok(());
    }
    let text = fs::read_to_string(folder.join("running")).unwrap_or_default();
    let process = text.trim().parse().ok().and_then(Pid::from_raw).ok_or("the running demo does not say who it is")?;
    kill_process(process, Signal::TERM).map_err(|error| format!("ending the demo: {error}"))?;
    let begun = Instant::now();
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if begun.elapsed() > Duration::from_secs(60) {
            return Err(format!("the demo (process {}) does not end", process.as_raw_nonzero()));
        }
        sleep(Duration::from_millis(50));
    }
    let _ = fs::remove_file(folder.join("kubeconfig"));
    println!("The demo has ended.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_that_of_the_images() {
        assert_eq!(bundle(None, "v1.3.1").as_deref(), Ok("1.3.1"));
        assert_eq!(bundle(Some("v1.3.1"), "v1.3.1").as_deref(), Ok("1.3.1"));
        assert!(
            bundle(Some("1.2.0"), "v1.3.1").is_err_and(|why| why.contains("images of Open Cluster Management 1.3.1"))
        );
    }

    #[test]
    fn contexts_become_names_of_clusters() {
        assert_eq!(named_after("kind-C1").name, "kind-c1");
        assert_eq!(named_after("arn:aws:eks:x/prod_").name, "arn-aws-eks-x-prod");
        assert_eq!(named_after("::").name, "cluster");
    }
}
