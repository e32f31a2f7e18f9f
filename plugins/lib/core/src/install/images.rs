//! Which image every part of a hub gets: what a file of values names or what runs stays, but for the part that was typed.

use serde_json::Value;

use super::{Live, Options, cluster_manager};
use crate::operator;
use crate::release::{self, Bundle, Component, Image, REGISTRY};
use crate::upgrade::{Part, Parts};

/// Where a spec says the image of the gRPC server, if that has one of its own: without it the server runs the image of
/// registration. Upstream: `clustermanager_runtime_reconcile.go`.
const SERVER_IMAGE: &str = "/serverConfiguration/imagePullSpec";

/// What people call the gRPC server as a part with an image.
pub(crate) const SERVER: &str = "the gRPC server";

/// Which image every component gets.
pub(crate) struct Images<'a> {
    options: &'a Options,
    live: &'a Live,
    /// The release that runs now; of several, that of the operator, which brings all others to one.
    installed: Option<Bundle>,
}

impl<'a> Images<'a> {
    pub(crate) fn of(options: &'a Options, live: &'a Live) -> Self {
        let images = Self { options, live, installed: None };
        let installed = images.parts().known().next().map(|(_, release)| release);
        Self { installed, ..images }
    }

    /// The image that a component has now.
    pub(crate) fn running(&self, component: Component) -> Option<&'a str> {
        let image = match cluster_manager::image_member(component) {
            Some(member) => self.live.cluster_manager.as_ref()?.get("spec")?.get(member)?,
            None => operator::container(self.live.operator.as_ref()?)?.get("image")?,
        };
        image.as_str().filter(|image| !image.is_empty())
    }

    /// What runs, the operator first.
    pub(crate) fn parts(&self) -> Parts {
        let order = [Component::Operator, Component::Registration, Component::Work, Component::Placement];
        let components = order.into_iter().chain([Component::AddonManager]);
        let running = components.filter_map(|component| Some((component.image(), self.running(component)?)));
        let all = running.chain(self.running_server().map(|image| (SERVER, image)));
        Parts(all.map(|(name, image)| Part { name, image: image.to_owned() }).collect())
    }

    /// What runs and gets the tag of another release, but for images that were typed one by one.
    pub(super) fn moved(&self) -> Parts {
        let is_typed = |part: &Part| {
            Component::of(part.name).is_some_and(|component| self.options.images.contains_key(&component))
        };
        let planned = |part: &Part| match Component::of(part.name) {
            Some(component) => Some(self.image(component)),
            None => self.server(),
        };
        let mut parts = self.parts();
        parts.0.retain(|part| {
            !is_typed(part)
                && planned(part).is_some_and(|image| Image::parse(&image).tag != Image::parse(&part.image).tag)
        });
        parts
    }

    /// The release that the operator has after this run, and what is missing gets, if it is known.
    pub(super) fn after(&self) -> Option<Bundle> {
        let is_hub = self.live.cluster_manager.is_some() || self.live.operator.is_some();
        let planned = self.options.bundle.clone().or_else(|| self.installed.clone());
        planned.or_else(|| (!is_hub).then(Bundle::default))
    }

    pub(crate) fn image(&self, component: Component) -> String {
        let Options { images, digests, values, .. } = self.options;
        if let Some(typed) = images.get(&component) {
            return typed.clone();
        }
        let named = cluster_manager::image_member(component).and_then(|member| values.spec()[member].as_str());
        let named = named.filter(|image| !image.is_empty()).or_else(|| self.running(component));
        digests.pin(component, self.follow(component, named)).to_string()
    }

    /// The image of its own that the gRPC server has now.
    pub(crate) fn running_server(&self) -> Option<&'a str> {
        server_in(self.live.cluster_manager.as_ref()?.get("spec")?)
    }

    /// The image of its own that the gRPC server gets. One that is not named as those of the releases is of another program:
    /// it keeps its registry, and no digest that was given is its own.
    pub(crate) fn server(&self) -> Option<String> {
        let Options { bundle, digests, values, .. } = self.options;
        let named = server_in(values.spec()).or_else(|| self.running_server())?;
        let image = Image::parse(named);
        Some(match (Component::of(image.name()), bundle) {
            (Some(component), _) => digests.pin(component, self.follow(component, Some(named))).to_string(),
            (None, Some(bundle)) => image.of_release(bundle).to_string(),
            (None, None) => named.to_owned(),
        })
    }

    /// What becomes of an image that runs: it stays, but for the part that was typed.
    fn follow(&self, component: Component, running: Option<&str>) -> Image {
        let Options { bundle, registry, .. } = self.options;
        let Some(running) = running else {
            let tag = self.after().unwrap_or_default();
            // A part that is missing on a hub comes from where the others come from.
            let registry = registry.clone().or_else(|| self.registry()).unwrap_or_else(|| REGISTRY.to_owned());
            return Image::parse(&format!("{registry}/{}:{tag}", component.image()));
        };
        let mut image = Image::parse(running);
        if let Some(registry) = registry {
            image.repository = format!("{registry}/{}", component.image());
        }
        match bundle {
            Some(bundle) => image.of_release(bundle),
            None => image,
        }
    }

    /// The registry of the images that run, where they are laid out as ours.
    fn registry(&self) -> Option<String> {
        let image = |component: Component| self.running(component).map(|text| (component, Image::parse(text)));
        let usual = |(component, image): &(Component, Image)| image.name() == component.image();
        let found = Component::ALL.into_iter().filter_map(image).find(usual)?;
        Some(found.1.registry().to_owned()).filter(|registry| !registry.is_empty())
    }

    /// The image of the agents that the hub imports clusters with: the operator's, unless somebody chose another.
    pub(super) fn agent_image(&self) -> String {
        let running = self.live.operator.as_ref().and_then(operator::container).and_then(|container| {
            let variables = container["env"].as_array()?;
            variables.iter().find(|variable| variable["name"] == operator::AGENT_IMAGE)?["value"].as_str()
        });
        match running {
            Some(running) if Some(running) != self.running(Component::Operator) => {
                let image = self.follow(Component::Operator, Some(running));
                match image.name() == Component::Operator.image() {
                    true => self.options.digests.pin(Component::Operator, image).to_string(),
                    // A digest of ours is not one of another program.
                    false => image.to_string(),
                }
            }
            _ => self.image(Component::Operator),
        }
    }

    /// That an installed release stays, when nobody asked for another.
    pub(super) fn kept_note(&self) -> Option<String> {
        if self.options.bundle.is_some() {
            return None;
        }
        let running = self.parts();
        if running.is_mixed() {
            return Some(format!(
                "the parts of the hub are of several releases, as an upgrade leaves them that was killed, and keep them: {}; to \
                 bring them to one: kubectl ocm upgrade hub",
                running.told()
            ));
        }
        let installed = self.installed.as_ref().filter(|installed| **installed != Bundle::default())?;
        let default = release::DEFAULT;
        Some(format!("the hub runs {installed} and keeps it; to change to the default release, name {default}"))
    }
}

fn server_in(spec: &Value) -> Option<&str> {
    spec.pointer(SERVER_IMAGE)?.as_str().filter(|image| !image.is_empty())
}
