//! `kubectl ocm addon config`: from arguments to the flow.

use std::sync::Arc;

use ocm_api::addon::AddOnConfig;
use ocm_cli::{ApplyArgs, OutputArgs, PlanView, Ui, options};
use ocm_core::addon::{Place, Unwanted, parse_config, takes_one};
use ocm_core::plan::Mode;
use ocm_core::{Exit, Failure};
use ocm_flows::addons::{self, Change, ConfigRequest, Referrer};
use ocm_kube::{Connection, connect};

use crate::args::{ConfigVerb, PlaceArgs, SetConfigArgs, UnsetConfigArgs};
use crate::view;

pub(crate) async fn run(verb: ConfigVerb, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let (name, place, change, apply) = match verb {
        ConfigVerb::Set(args) => {
            let SetConfigArgs { name, place, configs, apply } = *args;
            (name, place, Change::Set(parsed_configs(&configs)?), apply)
        }
        ConfigVerb::Unset(args) => {
            let UnsetConfigArgs { name, place, configs, apply } = *args;
            (name, place, Change::Unset(unwanted(&configs)?), apply)
        }
    };
    let ApplyArgs { wait, plan, output: OutputArgs { output } } = apply;
    let referrer = referrer(place)?;
    if let (Change::Set(configs), Referrer::Definition(Place::Default)) = (&change, &referrer) {
        one_of_a_kind(configs)?;
    }
    let wait = wait.limit()?;
    let view = PlanView::new(ui.clone(), &plan, output)?.with_namespaces();
    let request = ConfigRequest {
        name: options::object_names(vec![name], "an add-on")?.remove(0),
        referrer,
        change,
        mode: view.mode(),
        wait,
    };
    let hub = connect(connection, ui.clone()).await?;
    let planned = addons::plan_configure(&hub, &request, &*ui).await?;
    if view.mode() == Mode::Render {
        return view.manifests(&planned.plan);
    }
    let applied = addons::configure(&hub, &request, &planned, &*ui, &|applied| view.row(applied)).await?;
    view::configured(&view, &ui, (std::slice::from_ref(&request.name), request.wait), &applied)
}

fn referrer(args: PlaceArgs) -> Result<Referrer, Failure> {
    // One of the three is given.
    let PlaceArgs { clusters, placement, default: _ } = args;
    if !clusters.is_empty() {
        return options::cluster_names(clusters).map(Referrer::Clusters);
    }
    let placement = placement.map(|text| options::namespaced("--placement", &text)).transpose()?;
    let place = placement.map_or(Place::Default, |(namespace, name)| Place::Placement(namespace, name));
    Ok(Referrer::Definition(place))
}

/// At most one of a kind of which an add-on could take only one.
pub(crate) fn parsed_configs(texts: &[String]) -> Result<Vec<AddOnConfig>, Failure> {
    let mut configs: Vec<AddOnConfig> = Vec::new();
    for text in texts {
        let config = parse_config(text).ok_or_else(|| {
            Failure::usage(format!("--config {text:?} is not RESOURCE.GROUP/NAMESPACE/NAME"))
                .hint("such as addondeploymentconfigs.addon.open-cluster-management.io/default/proxied")
        })?;
        if configs.contains(&config) {
            return Err(Failure::usage(format!("--config names {text:?} twice")));
        }
        if takes_one(&config) && configs.iter().any(|other| is_same_kind(other, &config)) {
            return Err(twice(&config, "an add-on takes one of the kind"));
        }
        configs.push(config);
    }
    Ok(configs)
}

/// There is one default of a kind.
fn one_of_a_kind(configs: &[AddOnConfig]) -> Result<(), Failure> {
    let mut all = configs.iter().enumerate();
    let found = all.find(|(index, config)| configs.iter().take(*index).any(|other| is_same_kind(other, config)));
    found.map_or(Ok(()), |(_, config)| Err(twice(config, "there is one default of a kind")))
}

fn is_same_kind(one: &AddOnConfig, other: &AddOnConfig) -> bool {
    (&one.group, &one.resource) == (&other.group, &other.resource)
}

fn twice(config: &AddOnConfig, why: &str) -> Failure {
    Failure::usage(format!("--config names {} twice: {why}", config.resource))
}

fn unwanted(texts: &[String]) -> Result<Vec<Unwanted>, Failure> {
    let one = |text: &String| {
        Unwanted::parse(text).ok_or_else(|| {
            Failure::usage(format!("--config {text:?} is not RESOURCE.GROUP[/NAMESPACE/NAME]"))
                .hint("such as addondeploymentconfigs.addon.open-cluster-management.io")
        })
    };
    texts.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn one_of_a_kind_can_be_set_where_an_add_on_takes_one() {
        assert_eq!(parsed_configs(&texts(&["x.g/n/a", "y/a"])).unwrap().len(), 2);
        let said = |all: &[&str]| parsed_configs(&texts(all)).unwrap_err().message;
        let of_one = |name: &str| format!("addontemplates.addon.open-cluster-management.io/{name}");
        assert_eq!(
            said(&[&of_one("a"), &of_one("b")]),
            "--config names addontemplates twice: an add-on takes one of the kind"
        );
        assert_eq!(said(&["x.g/n/a", "x.g/n/a"]), "--config names \"x.g/n/a\" twice");
        // Of other kinds it takes several, but not as the default.
        let several = parsed_configs(&texts(&["x.g/n/a", "x.g/n/b"])).unwrap();
        assert_eq!(
            one_of_a_kind(&several).unwrap_err().message,
            "--config names x twice: there is one default of a kind"
        );
        assert_eq!(one_of_a_kind(&several[..1]), Ok(()));
        assert_eq!(said(&["x.g"]), "--config \"x.g\" is not RESOURCE.GROUP/NAMESPACE/NAME");
    }

    #[test]
    fn a_kind_or_an_object_can_be_unset() {
        assert_eq!(unwanted(&texts(&["x.g", "x.g/n/a"])).unwrap().len(), 2);
        let said = unwanted(&texts(&["x.g/"])).unwrap_err().message;
        assert_eq!(said, "--config \"x.g/\" is not RESOURCE.GROUP[/NAMESPACE/NAME]");
    }

    #[test]
    fn it_is_said_in_one_of_three_places() {
        let of = |clusters: &[&str], placement: Option<&str>| {
            let placement = placement.map(str::to_owned);
            referrer(PlaceArgs { clusters: texts(clusters), placement, default: false })
        };
        assert!(matches!(of(&["c1"], None), Ok(Referrer::Clusters(names)) if names == ["c1"]));
        let placed = Place::Placement("team".to_owned(), "web".to_owned());
        assert!(matches!(of(&[], Some("team/web")), Ok(Referrer::Definition(place)) if place == placed));
        assert!(matches!(of(&[], None), Ok(Referrer::Definition(Place::Default))));
        assert!(of(&[], Some("web")).unwrap_err().message.contains("--placement \"web\""));
    }
}
