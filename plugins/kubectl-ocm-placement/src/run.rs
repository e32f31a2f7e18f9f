//! From arguments to the flows.

use std::sync::Arc;

use ocm_api::names::taints;
use ocm_api::placement::Toleration;
use ocm_cli::{ApplyArgs, OutputArgs, PlanView, RemovalArgs, Ui, options};
use ocm_core::order;
use ocm_core::placement::{
    PlacementOptions, Prioritizer, PrioritizerError, SelectorError, label_selector, of_taint, parse_toleration, plan,
    requirements,
};
use ocm_core::plan::Mode;
use ocm_core::{Applied, DryRun, Event, Exit, Failure, Narrator};
use ocm_flows::placements::{self, CreateRequest};
use ocm_kube::{Cluster, Connection, connect};

use crate::args::{CreateArgs, DeleteArgs, PlacementArgs, Verb};
use crate::view;

pub(crate) async fn run(args: PlacementArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let PlacementArgs { verb, client } = args;
    let connection = client.connection()?;
    match verb {
        Verb::Create(args) => create(*args, &connection, ui).await,
        Verb::Delete(args) => delete(args, &connection, ui).await,
    }
}

async fn create(args: CreateArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let CreateArgs {
        name,
        namespace,
        cluster_sets,
        label_selectors,
        claim_selectors,
        prioritizers,
        count,
        tolerate_unreachable,
        tolerate_unavailable,
        tolerations,
        overwrite,
        apply: ApplyArgs { wait, plan: plan_args, output: OutputArgs { output } },
    } = args;
    let name = options::object_names(vec![name], "a placement")?.remove(0);
    let wait = wait.limit()?;
    let view = PlanView::new(ui.clone(), &plan_args, output)?.with_namespaces();
    let mut claims = Vec::new();
    for text in &claim_selectors {
        claims.extend(requirements(text).map_err(|error| no_selector("--claim-selector", text, &error))?);
    }
    let labels = label_selectors
        .iter()
        .map(|text| label_selector(text).map_err(|error| no_selector("--label-selector", text, &error)));
    let taints = [(tolerate_unreachable, taints::UNREACHABLE), (tolerate_unavailable, taints::UNAVAILABLE)].into_iter();
    let known = taints.filter(|(wanted, _)| *wanted).map(|(_, key)| Ok(of_taint(key)));
    let options = PlacementOptions {
        cluster_sets: sorted(options::set_names(cluster_sets)?),
        label_selectors: labels.collect::<Result<_, Failure>>()?,
        claims,
        prioritizers: scores(&prioritizers)?,
        count,
        tolerations: known.chain(tolerations.iter().map(|text| toleration(text))).collect::<Result<_, Failure>>()?,
    };
    let named = namespace.map(|namespace| space(Some(namespace), None)).transpose()?;
    // What is only printed needs no hub, unless the context has to tell the namespace.
    if let (Mode::Render, Some(namespace)) = (view.mode(), &named) {
        return view.manifests(&plan(namespace, &name, &options));
    }
    let hub = connect(connection, ui.clone()).await?;
    let namespace = space(named, Some(&hub))?;
    let request = CreateRequest {
        plan: plan(&namespace, &name, &options),
        namespace,
        name,
        cluster_sets: options.cluster_sets,
        overwrite,
        mode: view.mode(),
        wait,
    };
    if view.mode() == Mode::Render {
        return view.manifests(&request.plan);
    }
    let created = placements::create(&hub, &request, &*ui, &|applied| view.row(applied)).await?;
    view::created(&view, &ui, &request, created)
}

async fn delete(args: DeleteArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DeleteArgs { names, namespace, removal } = args;
    let RemovalArgs { yes, dry_run, output: OutputArgs { output } } = removal;
    let names = options::object_names(names, "a placement")?;
    let named = namespace.map(|namespace| space(Some(namespace), None)).transpose()?;
    let dry_run = DryRun::from(dry_run);
    let view = PlanView::of(ui.clone(), Mode::Apply(dry_run), output).with_namespaces();
    let hub = connect(connection, ui.clone()).await?;
    let namespace = space(named, Some(&hub))?;
    ui.tell(Event::now(format!("looking at placements ({})", hub.label())));
    let (all, unread) = placements::inspect(&hub, &namespace, &names).await?;
    if dry_run == DryRun::No {
        placements::check_rights_to_delete(&hub, &all).await?;
    }
    view::tell_uses(&ui, &hub, &all, &unread);
    let is_any = all.iter().any(placements::Removal::is_there);
    if is_any && dry_run == DryRun::No && !yes && !ui.confirm(&view::question(&hub, &all)).await? {
        return Err(Failure::refused("nothing was deleted"));
    }
    let each = |applied: &Applied| view.row(applied);
    placements::delete(&hub, &all, dry_run, &*ui, &each).await?;
    view::deleted(&view, &all)
}

/// The namespace that is meant: the one that is named, or that of the context.
fn space(named: Option<String>, hub: Option<&Cluster>) -> Result<String, Failure> {
    let namespace = named.or_else(|| hub.map(|hub| hub.namespace.clone())).unwrap_or_default();
    Ok(options::namespaces(vec![namespace])?.remove(0))
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    order::sort(&mut names);
    names
}

fn no_selector(flag: &str, text: &str, error: &SelectorError) -> Failure {
    Failure::usage(format!("{flag} {text:?} is no selector"))
        .because(error)
        .hint("such as env=prod,tier!=test,region in (eu,us),gpu,!draining")
}

fn toleration(text: &str) -> Result<Toleration, Failure> {
    parse_toleration(text).ok_or_else(|| {
        Failure::usage(format!("--tolerate {text:?} is not KEY[=VALUE][:EFFECT]"))
            .hint("effects of taints are NoSelect, PreferNoSelect and NoSelectIfNew")
    })
}

/// Each score once: the placement controller would take one of two weights.
fn scores(texts: &[String]) -> Result<Vec<Prioritizer>, Failure> {
    let mut all: Vec<Prioritizer> = Vec::new();
    for text in texts {
        let one = Prioritizer::parse(text).map_err(|error| no_prioritizer(text, error))?;
        if all.iter().any(|other| other.score == one.score) {
            return Err(Failure::usage(format!("--prioritizer {text:?}: that score has a weight already")));
        }
        all.push(one);
    }
    Ok(all)
}

fn no_prioritizer(text: &str, error: PrioritizerError) -> Failure {
    match error {
        PrioritizerError::Form => {
            Failure::usage(format!("--prioritizer {text:?} is neither BuiltIn:NAME:WEIGHT nor AddOn:NAME:SCORE:WEIGHT"))
                .hint("such as BuiltIn:Steady:3")
        }
        PrioritizerError::Weight(weight) => {
            Failure::usage(format!("--prioritizer {text:?}: the weight {weight:?} must be a number from -10 to 10"))
        }
        PrioritizerError::Unknown { name, near, known } => {
            Failure::usage(format!("--prioritizer {text:?}: no score {name:?} is built in")).hint(match near {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are: {}", known.join(", ")),
            })
        }
    }
}
