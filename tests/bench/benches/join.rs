//! From three empty clusters to two available managed clusters: our commands against a lower bound in the same run, which
//! is a plain server-side apply of the same manifests and polling until the same end state.
//! `cargo bench -p bench --bench join`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use std::{env, fs};

use control_plane::{Cluster, Spec, binaries, ocm_version};
use serde_json::Value;
use xtask::places::{state, target};
use xtask::prepare::both;
use xtask::story::{Managed, Scene, kubeconfig, timed};

/// Rounds of each, in turns.
const ROUNDS: usize = 3;
/// Ours may take this many times the lower bound.
const RATIO: f32 = 1.1;
/// From nothing to two available clusters, when the joins overlap the start of the hub.
const OVERLAPPED: Duration = Duration::from_secs(15);
/// Between two looks of the lower bound.
const PAUSE: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it starts.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match measure() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            println!("\nSome targets are missed.");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Where the time goes: a hub that is usable, two clusters that ask, two clusters that are available.
type Spans = [f32; 3];

fn measure() -> Result<bool, String> {
    let release = env::var_os("JOIN_BENCH_DEV").is_none();
    println!("Building the commands; for release, the first time takes minutes.");
    let target = target()?;
    let (found, commands) = both(binaries, || cli_tests::build(&target, release, false));
    let (found, commands) = (found.map_err(|error| error.to_string())?, commands?);
    let bundle = ocm_version().map_err(|error| error.to_string())?;
    let scene = |clusters: &[Cluster]| -> Result<Scene, String> {
        let file = state()?.join(format!("bench-{}.kubeconfig", std::process::id()));
        kubeconfig(clusters, &file)?;
        Ok(Scene {
            kubeconfig: Some(file),
            commands: commands.clone(),
            kubectl: found.kubectl().to_owned(),
            hub: "hub".to_owned(),
            bundle: Some(bundle.trim_start_matches('v').to_owned()),
            loud: false,
        })
    };
    println!("\n{:20} {:>10} {:>10} {:>10} {:>10}", "", "hub", "ask", "available", "all");
    let (mut bounds, mut ours, mut overlapped) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let spans = on_new_clusters(&scene, lower_bound)?;
        row(&format!("{round}: lower bound"), spans);
        bounds.push(spans);
        let spans = on_new_clusters(&scene, commands_in_order)?;
        row(&format!("{round}: ours"), spans);
        ours.push(spans);
        let [available, ended] = on_new_clusters(&scene, commands_overlapped)?;
        let [took, all] = [available, ended].map(|time| time.as_secs_f32());
        println!("{:20} {took:>32.1} s {all:>8.1} s", format!("{round}: ours, overlapped"));
        overlapped.push(available);
    }
    let (bound, ours) = (medians(&bounds), medians(&ours));
    row("median: lower bound", bound);
    row("median: ours", ours);
    overlapped.sort();
    let overlapped = overlapped[overlapped.len() / 2];
    let [hub, all] = [ours[0] / bound[0], ours.iter().sum::<f32>() / bound.iter().sum::<f32>()];
    println!("\nratio ours/lower bound: hub {hub:.2}, all {all:.2} (target {RATIO})");
    println!(
        "overlapped: {:.1} s from nothing to two available clusters (target {:.0} s)",
        overlapped.as_secs_f32(),
        OVERLAPPED.as_secs_f32()
    );
    Ok(hub <= RATIO && all <= RATIO && overlapped <= OVERLAPPED)
}

fn on_new_clusters<T>(
    scene: &dyn Fn(&[Cluster]) -> Result<Scene, String>,
    tell: fn(&Scene) -> Result<T, String>,
) -> Result<T, String> {
    let clusters = Cluster::start_all(&["hub", "c1", "c2"].map(Spec::node)).map_err(|error| error.to_string())?;
    let scene = scene(&clusters)?;
    let told = tell(&scene);
    if let Some(file) = &scene.kubeconfig {
        let _ = fs::remove_file(file);
    }
    told
}

fn managed() -> [Managed; 2] {
    ["c1", "c2"].map(|name| Managed { name: name.to_owned(), context: name.to_owned() })
}

/// Runs a step for both clusters at the same time.
fn each(step: impl Fn(&Managed) -> Result<(), String> + Sync) -> Result<(), String> {
    let managed = managed();
    thread::scope(|scope| {
        let step = &step;
        let threads: Vec<_> = managed.iter().map(|one| scope.spawn(move || step(one))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// What the README shows, one after the other.
fn commands_in_order(scene: &Scene) -> Result<Spans, String> {
    let ((), hub) = timed(|| scene.install())?;
    let ((), ask) = timed(|| {
        let join_command = scene.join_command()?;
        each(|one| scene.join(one, &join_command))
    })?;
    let ((), available) = timed(|| {
        scene.run(&["kubectl", "ocm", "accept", "c1", "c2", "--yes", "--wait", "--context", &scene.hub])?;
        scene.available(&managed())
    })?;
    Ok([hub, ask, available].map(|span| span.as_secs_f32()))
}

/// The hub is applied, and the clusters join while it starts. Until both are available, and until the commands have
/// ended: they wait for the hub's webhooks, which start later than the clusters.
fn commands_overlapped(scene: &Scene) -> Result<[Duration; 2], String> {
    let begun = Instant::now();
    let mut install = vec!["kubectl", "ocm", "install", "hub", "--context", &scene.hub];
    install.extend(scene.bundle.as_deref().map_or_else(Vec::new, |bundle| vec!["--bundle-version", bundle]));
    scene.run(&install)?;
    thread::scope(|scope| {
        let available =
            scope.spawn(|| until("two available clusters", || two_available(scene)).map(|()| begun.elapsed()));
        each(|one| scene.join_with_both_kubeconfigs(one))?;
        let ended = begun.elapsed();
        let available = available.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok([available, ended.max(available)])
    })
}

fn two_available(scene: &Scene) -> bool {
    let path = r#"{.items[*].status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status}"#;
    let words = ["kubectl", "get", "managedclusters", "--context", &scene.hub, "-o", &format!("jsonpath={path}")];
    scene.read(&words, &[]).is_ok_and(|said| said.split_whitespace().eq(["True", "True"]))
}

/// The same manifests, applied by kubectl; polling, two writes per cluster as soon as they are possible, and polling.
fn lower_bound(scene: &Scene) -> Result<Spans, String> {
    // What our commands would apply, before the clock starts; the token comes from the hub.
    let release = scene.bundle.clone().map_or_else(String::new, |bundle| format!("--bundle-version={bundle}"));
    let hub = scene.hub.as_str();
    let manifests = scene.read(&["kubectl", "ocm", "install", "hub", "--render", "--show-secrets", &release], &[])?;
    let ((), installed) = timed(|| {
        apply(scene, hub, &manifests)?;
        usable(scene)
    })?;
    let ((), ask) = timed(|| {
        let text = scene.read(&["kubectl", "ocm", "token", "create", "--context", hub, "-o", "json"], &[])?;
        let join_command: Value = serde_json::from_str(&text).map_err(|error| format!("a token: {error}"))?;
        let value = |key: &str| join_command[key].as_str().unwrap_or_default().to_owned();
        let (token, server, ca) = (value("hub-token"), value("hub-apiserver"), value("hub-ca-data"));
        each(|one| {
            let mut words = vec!["kubectl", "ocm", "join", &one.name, "--context", &one.context, &release];
            words.extend(["--render", "--show-secrets"]);
            words.extend(["--hub-token", &token, "--hub-apiserver", &server, "--hub-ca-data", &ca]);
            let manifests = scene.read(&words, &[&token])?;
            apply(scene, &one.context, &manifests)?;
            let label = format!("open-cluster-management.io/cluster-name={}", one.name);
            until("a request", || {
                let found = scene.read(&["kubectl", "get", "csr", "-l", &label, "-o", "name", "--context", hub], &[]);
                found.is_ok_and(|names| !names.trim().is_empty())
            })
        })
    })?;
    let ((), available) = timed(|| {
        each(|one| {
            let label = format!("open-cluster-management.io/cluster-name={}", one.name);
            let names = scene.read(&["kubectl", "get", "csr", "-l", &label, "-o", "name", "--context", hub], &[])?;
            for name in names.lines() {
                let name = name.rsplit('/').next().unwrap_or(name);
                scene.read(&["kubectl", "certificate", "approve", name, "--context", hub], &[])?;
            }
            let accept = r#"{"spec":{"hubAcceptsClient":true}}"#;
            let words =
                ["kubectl", "patch", "managedcluster", &one.name, "--type=merge", "-p", accept, "--context", hub];
            scene.read(&words, &[]).map(drop)
        })?;
        scene.available(&managed())
    })?;
    Ok([installed, ask, available].map(|span| span.as_secs_f32()))
}

/// Applies manifests on the server's side, again until the kinds that they define are known.
fn apply(scene: &Scene, context: &str, manifests: &str) -> Result<(), String> {
    until(&format!("what {context} is given"), || {
        let child = scene
            .command()
            .args(["apply", "--server-side", "--force-conflicts", "--context", context, "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { return false };
        let written = child.stdin.take().is_some_and(|mut pipe| pipe.write_all(manifests.as_bytes()).is_ok());
        child.wait().is_ok_and(|status| status.success()) && written
    })
}

/// Until the webhooks of the hub answer: they fill in what this cluster leaves out, and refuse the work.
fn usable(scene: &Scene) -> Result<(), String> {
    let cluster =
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: { name: probe }\n";
    let work = "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: { name: probe, \
                namespace: default }\nspec: { workload: { manifests: [] } }\n";
    let create = |object: &str| -> Option<(bool, String)> {
        let mut command: Command = scene.command();
        command.args(["create", "--dry-run=server", "-o", "json", "-f", "-", "--context", &scene.hub]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
        child.stdin.take()?.write_all(object.as_bytes()).ok()?;
        let output = child.wait_with_output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
    };
    until("the webhook of clusters", || {
        create(cluster).is_some_and(|(good, text)| good && text.contains("leaseDurationSeconds"))
    })?;
    until("the webhook of works", || {
        create(work).is_some_and(|(good, text)| !good && text.contains("admission webhook") && text.contains("denied"))
    })
}

fn until(what: &str, mut done: impl FnMut() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > Duration::from_secs(180) {
            return Err(format!("waited three minutes for {what}"));
        }
        sleep(PAUSE);
    }
    Ok(())
}

fn medians(all: &[Spans]) -> Spans {
    [0, 1, 2].map(|span| {
        let mut values: Vec<f32> = all.iter().map(|spans| spans[span]).collect();
        values.sort_by(f32::total_cmp);
        values[values.len() / 2]
    })
}

fn row(name: &str, spans: Spans) {
    let [hub, ask, available] = spans;
    let all: f32 = spans.iter().sum();
    println!("{name:20} {hub:8.1} s {ask:8.1} s {available:8.1} s {all:8.1} s");
}
