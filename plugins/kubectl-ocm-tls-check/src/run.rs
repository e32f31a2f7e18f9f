//! From arguments to an inventory and its report, once or again and again.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use ocm_checks::tls::{Inventory, Report, Within, judge};
use ocm_cli::Ui;
use ocm_cli::findings::Contexts;
use ocm_core::{Exit, Failure, certificate, duration};
use ocm_flows::tls;
use ocm_kube::{Cluster, connect};

use crate::args::{FailOn, TlsCheckArgs};
use crate::view::{self, Shown};

/// Something that is looked at.
enum Target {
    /// A server.
    Address(String),
    /// A Secret: namespace and name.
    Secret(String, String),
    /// The content of a file or of stdin, with the name that messages give it and the folder that it is in.
    Content(String, Option<std::path::PathBuf>, Vec<u8>),
}

/// What is looked at, and how.
struct Plan {
    targets: Vec<Target>,
    authorities: Option<Vec<Vec<u8>>>,
    server_name: Option<String>,
    /// The cluster of the context, where it is needed.
    cluster: Option<Cluster>,
    hub: Option<Cluster>,
}

pub(crate) async fn run(arguments: TlsCheckArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let TlsCheckArgs { targets, ca_file, expires_in, profile, fail_on, suppress, watch, interval, output, client, hub } =
        arguments;
    let usage = |flag: &str, error: &dyn std::fmt::Display| Failure::usage(format!("{flag}: {error}"));
    let within: Option<Within> =
        expires_in.map(|text| text.parse()).transpose().map_err(|error| usage("--expires-in", &error))?;
    let interval = duration::parse(&interval).map_err(|error| usage("--interval", &error))?;
    if interval.is_zero() {
        return Err(Failure::usage("--interval is the time between two looks, and longer than none"));
    }
    if watch && !output.is_continuous() {
        return Err(Failure::usage("--watch has no such format").hint("table, wide, json, yaml, name or prometheus"));
    }
    let suppressions = suppress.read()?;
    let targets = targets.iter().map(|text| target(text)).collect::<Result<Vec<_>, _>>()?;
    let plain = client.connection()?;
    let needs_cluster = targets.is_empty() || targets.iter().any(|target| matches!(target, Target::Secret(..)));
    let plan = Plan {
        targets,
        authorities: ca_file.as_deref().map(authorities).transpose()?,
        server_name: client.tls_server_name.clone(),
        cluster: if needs_cluster { Some(connect(&plain, ui.clone()).await?) } else { None },
        hub: if hub.is_given() { Some(connect(&hub.connection(&plain), ui.clone()).await?) } else { None },
    };
    let context = |cluster: &Option<Cluster>| cluster.as_ref().and_then(|cluster| cluster.context.clone());
    if watch {
        ui.watches();
    }
    let mut last: Option<Report> = None;
    loop {
        let inventory = look(&plan).await?;
        let report = judge(&inventory, profile.into(), within, &suppressions);
        let contexts = Contexts {
            hub: context(&plan.hub).or_else(|| context(&plan.cluster).filter(|_| inventory.has_hub())),
            managed: context(&plan.cluster),
        };
        let exit = exit(&report, fail_on);
        let is_news = last.as_ref().is_none_or(|last| view::is_news(last, &report));
        if is_news || !view::is_for_people(output) {
            view::show(
                &ui,
                output,
                &Shown { inventory: &inventory, report: &report, contexts: &contexts, fail_on, exit },
            )?;
        }
        if !watch || ui.is_stdout_gone() {
            return Ok(exit);
        }
        last = Some(report);
        tokio::time::sleep(interval).await;
    }
}

/// Looks at everything once.
async fn look(plan: &Plan) -> Result<Inventory, Failure> {
    let Plan { targets, authorities, server_name, cluster, hub } = plan;
    let mut inventory = Inventory::new(Timestamp::now());
    for target in targets {
        inventory.add(match target {
            Target::Address(address) => tls::address(address, server_name.as_deref(), authorities.as_deref()).await?,
            Target::Content(name, folder, content) => {
                let (folder, server_name) = (folder.as_deref(), server_name.as_deref());
                tls::content(name, folder, content, server_name, authorities.as_deref()).await?
            }
            Target::Secret(namespace, name) => match cluster {
                Some(cluster) => tls::secret(cluster, namespace, name).await?,
                None => continue,
            },
        });
    }
    match (cluster, hub) {
        (Some(cluster), _) if targets.is_empty() => match hub {
            Some(hub) => {
                let (managed, hub) = tokio::join!(tls::both(cluster), tls::hub(hub));
                inventory.add(managed);
                inventory.add(hub);
            }
            None => inventory.add(tls::both(cluster).await),
        },
        (_, Some(hub)) => inventory.add(tls::hub(hub).await),
        (_, None) => {}
    }
    tls::reported(&mut inventory).await;
    Ok(inventory)
}

/// How the command ends.
fn exit(report: &Report, fail_on: FailOn) -> Exit {
    match () {
        () if fail_on == FailOn::Never => Exit::Ok,
        () if report.findings.iter().any(|finding| fail_on.counts(finding)) => Exit::Findings,
        () if !report.unseen.is_empty() => Exit::Inconclusive,
        () => Exit::Ok,
    }
}

/// What a word on the command line means.
fn target(text: &str) -> Result<Target, Failure> {
    if text == "-" {
        let mut content = Vec::new();
        let read = std::io::stdin().read_to_end(&mut content);
        read.map_err(|error| Failure::usage("stdin cannot be read").because(error))?;
        return Ok(Target::Content("stdin".to_owned(), None, content));
    }
    if let Some(rest) = text.strip_prefix("secret/") {
        return match rest.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Target::Secret(namespace.to_owned(), name.to_owned()))
            }
            _ => Err(Failure::usage(format!("{text:?} names no Secret")).hint("write secret/NAMESPACE/NAME")),
        };
    }
    let path = Path::new(text);
    // A pipe is as good as a file.
    if path.exists() && !path.is_dir() {
        let content = std::fs::read(path);
        let content = content.map_err(|error| Failure::usage(format!("cannot read {text}")).because(error))?;
        return Ok(Target::Content(text.to_owned(), path.parent().map(Path::to_owned), content));
    }
    let is_address = text.starts_with("https://")
        || text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if is_address {
        return Ok(Target::Address(text.to_owned()));
    }
    Err(Failure::usage(format!("{text:?} is neither a file that is there, nor HOST:PORT, nor secret/NAMESPACE/NAME"))
        .hint("name the cluster with --context, or a server with its port, such as hub.example:6443"))
}

/// The certificates of `--ca-file`.
fn authorities(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{}, the file of --ca-file, cannot be used", path.display())).because(error)
    };
    let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
    certificate::from_pem(&pem).map_err(|error| wrong(&error))
}
