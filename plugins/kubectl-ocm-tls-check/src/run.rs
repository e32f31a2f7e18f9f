//! From arguments to inventories and their reports, once or again and again.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use ocm_checks::snapshot::Trouble;
use ocm_checks::suppress::Suppression;
use ocm_checks::tls::{Inventory, Profile, Report, Unseen, Within, judge, judge_beside};
use ocm_cli::findings::Contexts;
use ocm_cli::{Ui, files, of_contexts};
use ocm_core::{Exit, Failure, Narrator, certificate, duration};
use ocm_flows::tls::{self, By, Fleet, Inside, Member};
use ocm_kube::{Cluster, connect};

use crate::args::{FailOn, TlsCheckArgs};
use crate::shown::{Part, Shown};
use crate::view;

/// Something that is looked at.
enum Target {
    /// A server.
    Address(String),
    /// A Secret: namespace and name.
    Secret(String, String),
    /// A server inside of the cluster.
    Inside(Inside),
    /// A file, which is read in each round.
    File(PathBuf),
    /// What can be read once: the content of stdin or of a pipe, with the name that messages give it and the folder that it is in.
    Content(String, Option<PathBuf>, Vec<u8>),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(name) | Self::Content(name, ..) => f.write_str(name),
            Self::Secret(namespace, name) => write!(f, "Secret {namespace}/{name}"),
            Self::Inside(server) => write!(f, "{server}"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// What is looked at, and how.
struct Plan {
    targets: Vec<Target>,
    authorities: Option<Vec<Vec<u8>>>,
    server_name: Option<String>,
    /// The cluster of the context, where it is needed.
    cluster: Option<Cluster>,
    hub: Option<Cluster>,
    /// Whether the hub is of another kubeconfig than the clusters: a context of one name is another cluster there.
    is_hub_apart: bool,
    /// The clusters of `--contexts`; none: there is one alone.
    members: Vec<Member>,
    narrator: Arc<dyn Narrator>,
}

/// What is asked of what is found.
struct Question {
    profile: Profile,
    within: Option<Within>,
    suppressions: Vec<Suppression>,
}

impl Question {
    fn judge(&self, inventory: &Inventory) -> Report {
        judge(inventory, self.profile, self.within, &self.suppressions)
    }
}

pub(crate) async fn run(arguments: TlsCheckArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let TlsCheckArgs {
        targets,
        contexts,
        ca_file,
        expires_in,
        profile,
        fail_on,
        suppress,
        watch,
        interval,
        output,
        client,
        hub,
    } = arguments;
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
    let question = Question { profile: profile.into(), within, suppressions: suppress.read()? };
    let contexts = client.several(&contexts)?;
    let all = move || targets.iter().map(|text| target(text)).collect::<Result<Vec<_>, _>>();
    let targets = files::beside(all).await?;
    let plain = client.connection()?;
    let members: Vec<Member> = contexts.iter().map(|context| Member::new(context, &plain)).collect();
    members.iter().try_for_each(Member::check).map_err(of_contexts)?;
    let of_hub = hub.connection(&plain);
    let is_there = |target: &Target| matches!(target, Target::Secret(..) | Target::Inside(_));
    let needs_cluster = members.is_empty() && (targets.is_empty() || targets.iter().any(is_there));
    let mut plan = Plan {
        targets,
        authorities: ca_file.as_deref().map(authorities).transpose()?,
        server_name: client.tls_server_name.clone(),
        cluster: if needs_cluster { Some(connect(&plain, ui.clone()).await?) } else { None },
        is_hub_apart: of_hub.kubeconfig != plain.kubeconfig,
        hub: if hub.is_given() { Some(connect(&of_hub, ui.clone()).await?) } else { None },
        members,
        narrator: ui.clone(),
    };
    if watch {
        ui.watches();
    }
    let mut last: Option<Vec<Part>> = None;
    loop {
        let mut unread = None;
        // Of an authority that is renewed in a file, the new one counts. A pipe can be read once.
        if let (Some(_), Some(path)) = (&last, ca_file.as_deref().filter(|path| !is_pipe(path))) {
            match authorities(path) {
                Ok(new) => plan.authorities = Some(new),
                Err(failure) => unread = Some(unseen(path.display(), &failure)),
            }
        }
        let parts = if plan.members.is_empty() {
            let mut inventory = look(&plan, last.is_some()).await?;
            inventory.unseen.extend(unread);
            vec![alone(&plan, inventory, &question)]
        } else {
            together(&plan, &question).await
        };
        let exit = exit(&parts, fail_on);
        let is_news = last.as_ref().is_none_or(|last| view::is_news(last, &parts));
        if is_news || !view::is_for_people(output) {
            view::show(&ui, output, &Shown { parts: &parts, fail_on, exit })?;
        }
        if !watch || ui.is_stdout_gone() {
            return Ok(exit);
        }
        last = Some(parts);
        tokio::time::sleep(interval).await;
    }
}

/// The context of a cluster.
fn context(cluster: Option<&Cluster>) -> Option<String> {
    cluster.and_then(|cluster| cluster.context.clone())
}

/// What reports call a hub beside these clusters: its context, or its address where it has none, or where one of them has that
/// context in another kubeconfig.
fn name_of_hub(context: Option<&str>, server: &str, members: &[&str], is_apart: bool) -> String {
    let own = context.filter(|context| !(is_apart && members.contains(context)));
    own.unwrap_or(server).to_owned()
}

/// What one cluster, or what was named, comes to.
fn alone(plan: &Plan, inventory: Inventory, question: &Question) -> Part {
    let report = question.judge(&inventory);
    let (hub, managed) = (context(plan.hub.as_ref()), context(plan.cluster.as_ref()));
    let hub = hub.or_else(|| managed.clone().filter(|_| inventory.has_hub()));
    Part { context: None, inventory, report, contexts: Contexts { hub, managed } }
}

/// What many clusters come to, each in the light of the hub, if one was named, which comes first.
async fn together(plan: &Plan, question: &Question) -> Vec<Part> {
    let Fleet { hub, members } = tls::fleet(&plan.members, plan.hub.as_ref(), &plan.narrator).await;
    let names: Vec<&str> = plan.members.iter().map(|member| member.context.as_str()).collect();
    let of_hub = hub.zip(plan.hub.as_ref()).map(|(inventory, cluster)| Part {
        context: Some(name_of_hub(cluster.context.as_deref(), &cluster.server, &names, plan.is_hub_apart)),
        report: question.judge(&inventory),
        contexts: Contexts { hub: cluster.context.clone(), managed: None },
        inventory,
    });
    let of_members = plan.members.iter().zip(members).map(|(member, seen)| {
        let Question { profile, within, suppressions } = question;
        let report = match &of_hub {
            Some(hub) => judge_beside(&seen.whole, &seen.own, &hub.report, *profile, *within, suppressions),
            None => question.judge(&seen.whole),
        };
        let own = Some(member.context.clone());
        let hub = context(plan.hub.as_ref()).or_else(|| own.clone().filter(|_| seen.own.has_hub()));
        let contexts = Contexts { hub, managed: own.clone() };
        Part { context: own, inventory: seen.own, report, contexts }
    });
    let of_members: Vec<Part> = of_members.collect();
    of_hub.into_iter().chain(of_members).collect()
}

/// Looks at everything once. What cannot be used at first is a mistake of the caller's; `again`, it is what could not be seen.
async fn look(plan: &Plan, again: bool) -> Result<Inventory, Failure> {
    let Plan { targets, cluster, hub, .. } = plan;
    let mut inventory = Inventory::new(Timestamp::now());
    for target in targets {
        match look_at(plan, target).await {
            Ok(Some(found)) => inventory.add(found),
            Ok(None) => {}
            Err(failure) if again => inventory.unseen.push(unseen(target, &failure)),
            Err(failure) => return Err(failure),
        }
    }
    match (cluster, hub) {
        (Some(cluster), _) if targets.is_empty() => match hub {
            Some(hub) => {
                let (managed, hub) = tokio::join!(tls::both(cluster, Some(hub)), tls::hub(hub));
                inventory.add(managed);
                inventory.add(hub);
            }
            None => inventory.add(tls::both(cluster, None).await),
        },
        (_, Some(hub)) => inventory.add(tls::hub(hub).await),
        (_, None) => {}
    }
    tls::reported(&mut inventory).await;
    Ok(inventory)
}

async fn look_at(plan: &Plan, target: &Target) -> Result<Option<Inventory>, Failure> {
    let (server_name, authorities) = (plan.server_name.as_deref(), plan.authorities.as_deref());
    match target {
        Target::Address(address) => tls::address(address, server_name, authorities).await.map(Some),
        Target::File(path) => {
            let name = path.display().to_string();
            let content = content_of(path)?;
            tls::content(&name, path.parent(), &content, server_name, authorities).await.map(Some)
        }
        Target::Content(name, folder, content) => {
            tls::content(name, folder.as_deref(), content, server_name, authorities).await.map(Some)
        }
        Target::Inside(server) => match &plan.cluster {
            Some(cluster) => tls::inside(cluster, server, authorities).await.map(Some),
            None => Ok(None),
        },
        Target::Secret(namespace, name) => match &plan.cluster {
            Some(cluster) => tls::secret(cluster, namespace, name).await.map(Some),
            None => Ok(None),
        },
    }
}

fn unseen(what: impl std::fmt::Display, failure: &Failure) -> Unseen {
    Unseen { what: what.to_string(), cluster: None, trouble: Trouble::of(failure, None) }
}

fn content_of(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::usage(format!("cannot read {}", path.display())).because(error))
}

/// Whether it is there, and its content is not kept, as that of a file is.
fn is_pipe(path: &Path) -> bool {
    path.exists() && !path.is_file()
}

/// How the command ends.
fn exit(parts: &[Part], fail_on: FailOn) -> Exit {
    let mut findings = parts.iter().flat_map(|part| &part.report.findings);
    match () {
        () if fail_on == FailOn::Never => Exit::Ok,
        () if findings.any(|finding| fail_on.counts(finding)) => Exit::Findings,
        () if parts.iter().any(|part| !part.report.unseen.is_empty()) => Exit::Inconclusive,
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
    for (by, rest) in [(By::Pod, text.strip_prefix("pod/")), (By::Service, text.strip_prefix("service/"))] {
        if let Some(rest) = rest {
            return inside(by, rest).map(Target::Inside).ok_or_else(|| {
                Failure::usage(format!("{text:?} names no port of a server inside of the cluster"))
                    .hint("write pod/NAMESPACE/NAME:PORT or service/NAMESPACE/NAME:PORT")
            });
        }
    }
    let path = Path::new(text);
    if path.is_file() {
        return Ok(Target::File(path.to_owned()));
    }
    // A pipe is as good as a file.
    if is_pipe(path) && !path.is_dir() {
        return Ok(Target::Content(text.to_owned(), path.parent().map(Path::to_owned), content_of(path)?));
    }
    let is_address = text.starts_with("https://")
        || text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if is_address {
        return Ok(Target::Address(text.to_owned()));
    }
    Err(Failure::usage(format!("{text:?} is neither a file that is there, nor HOST:PORT, nor secret/NAMESPACE/NAME"))
        .hint("name the cluster with --context, or a server with its port, such as hub.example:6443"))
}

/// A server inside of a cluster, from `NAMESPACE/NAME:PORT`.
fn inside(by: By, text: &str) -> Option<Inside> {
    let (namespace, rest) = text.split_once('/')?;
    let (name, port) = rest.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let is_whole = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
    is_whole.then(|| Inside { by, namespace: namespace.to_owned(), name: name.to_owned(), port })
}

/// The certificates of `--ca-file`.
fn authorities(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{}, the file of --ca-file, cannot be used", path.display())).because(error)
    };
    let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
    certificate::from_pem(&pem).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_and_a_cluster_of_one_context_in_two_kubeconfigs_are_told_apart() {
        let name = |context, is_apart| name_of_hub(context, "https://hub:6443", &["admin", "c1"], is_apart);
        assert_eq!(name(Some("hub"), true), "hub");
        assert_eq!(name(Some("admin"), true), "https://hub:6443");
        assert_eq!(name(Some("admin"), false), "admin", "it is one of the clusters");
        assert_eq!(name(None, false), "https://hub:6443");
    }
}
