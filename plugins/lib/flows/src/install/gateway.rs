//! The Gateway by which agents reach the hub's gRPC server: whether the hub serves such kinds, and what it has of that name.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use ocm_api::Manifest;
use ocm_api::names::namespaces;
use ocm_core::grpc::Address;
use ocm_core::install::gateway::{self as rules, Gateway, Unfit};
use ocm_core::install::{GrpcEndpoint, GrpcExposure, Live, Options, OptionsError};
use ocm_core::{Event, Failure, Narrator, Plan, Reason, reconcile};
use ocm_kube::{Cluster, apply};

use super::error::InstallError;

/// Finds out where agents find the server behind the Gateway that was named, and notes it in the options. Of a hub that is led to
/// by no Gateway any more it notes how the route is read that is left.
///
/// # Errors
/// A Gateway that is not there or does not lead to the server, and a hub that serves no such kinds; the failure of a request.
pub(super) async fn find(
    hub: &Cluster,
    options: &mut Options,
    live: &Live,
    narrator: &dyn Narrator,
) -> Result<(), InstallError> {
    let manager = live.cluster_manager.as_ref();
    let wanted = options.grpc_gateway.clone().or_else(|| Gateway::noted(manager?));
    // What is wrong with what was typed, the plan says.
    let typed = options.grpc_server.as_deref().map(Address::parse);
    let (Some(wanted), None | Some(Some(_))) = (wanted, &typed) else { return Ok(()) };
    // Another name has to lead there, too.
    let is_named = options.grpc_server.is_some() && options.grpc_endpoint != Some(GrpcEndpoint::LoadBalancer);
    if is_named && options.grpc_gateway.is_none() && options.expose_grpc.is_none() {
        options.expose_grpc = Some(GrpcExposure::Gateway);
    }
    if options.expose_grpc != Some(GrpcExposure::Gateway) {
        // Who may not look has no use for it.
        options.route_version = served(hub).await.ok().flatten().map(|(_, version)| version);
        return Ok(());
    }
    narrator.tell(Event::now(format!("looking at Gateway {wanted}")));
    let Some((kind, version)) = served(hub).await? else {
        let sentence =
            format!("{} serves no Gateways and TLSRoutes of {}; nothing was changed", hub.label(), rules::GROUP);
        return Err(Failure::refused(sentence)
            .hint("install the CustomResourceDefinitions of Gateway API there, with TLSRoute, and what implements them")
            .into());
    };
    let (space, name) = (&wanted.namespace, &wanted.name);
    let api: Api<DynamicObject> = Api::namespaced_with(hub.client.clone(), space, &kind);
    let spaces: Api<Namespace> = Api::all(hub.client.clone());
    let (found, own) = futures::join!(api.get_opt(name), spaces.get_metadata_opt(namespaces::HUB));
    let found = found.map_err(|error| hub.explain(format_args!("read Gateway {space}/{name}"), error))?;
    let own = own.map_err(|error| hub.explain(format_args!("read namespace {}", namespaces::HUB), error))?;
    let Some(found) = found else {
        return Err(Failure::refused(format!("{} has no Gateway {space}/{name}; nothing was changed", hub.label()))
            .hint(format!("see which it has: kubectl get gateways.{} -A", rules::GROUP))
            .into());
    };
    let mut labels = own.and_then(|own| own.metadata.labels).unwrap_or_default();
    // The API server gives it this one when it is made.
    labels.insert("kubernetes.io/metadata.name".to_owned(), namespaces::HUB.to_owned());
    match rules::address(&wanted, &found.data, &labels, typed.flatten(), manager) {
        Ok(address) => {
            let at = match rules::addresses(&found.data)[..] {
                [] => "which has no address yet".to_owned(),
                ref all => format!("at {}", all.join(", ")),
            };
            narrator.tell(Event::note(format!(
                "agents reach the gRPC server at {address}: that name has to lead to Gateway {wanted}, {at}"
            )));
            options.grpc_server = Some(address.to_string());
            options.route_version = Some(version);
            Ok(())
        }
        Err(Unfit::NoHost) => Err(OptionsError::NoGrpcAddress.into()),
        Err(Unfit::NoListener(why)) => Err(Failure::refused(format!(
            "Gateway {wanted} of {} does not lead agents to the gRPC server: {why}; nothing was changed",
            hub.label()
        ))
        .hint("change that listener, or name another Gateway")
        .into()),
    }
}

/// Gateways as a hub serves them, and the API version in which it serves TLSRoutes; none: it does not serve both.
async fn served(hub: &Cluster) -> Result<Option<(ApiResource, String)>, Failure> {
    let (mut gateway, mut route) = (None, None);
    // The most stable one first.
    for version in ["v1", "v1beta1", "v1alpha3", "v1alpha2"] {
        let api_version = format!("{}/{version}", rules::GROUP);
        let found = match hub.client.list_api_group_resources(&api_version).await {
            Ok(found) => found.resources,
            Err(error) => {
                let failure = hub.explain(format_args!("ask whether {api_version} is served"), error);
                match failure.reason {
                    Reason::NotFound | Reason::KindNotServed => continue,
                    _ => return Err(failure),
                }
            }
        };
        let has = |plural: &str| found.iter().any(|resource| resource.name == plural);
        if gateway.is_none() && has("gateways") {
            gateway = Some(ApiResource {
                group: rules::GROUP.to_owned(),
                version: version.to_owned(),
                api_version: api_version.clone(),
                kind: "Gateway".to_owned(),
                plural: "gateways".to_owned(),
            });
        }
        if route.is_none() && has(rules::ROUTES) {
            route = Some(api_version);
        }
    }
    Ok(gateway.zip(route))
}

/// Refuses the route of a plan where one of its name is somebody else's.
///
/// # Errors
/// The refusal; the failure of the request.
pub(super) async fn refuse_foreign(hub: &Cluster, plan: &Plan) -> Result<(), Failure> {
    let Some(route) = plan.objects().find(|one| is_route(one)) else { return Ok(()) };
    match apply::read(hub, route).await {
        Ok(Some(live)) if reconcile::owned_by_us(&live).is_null() => {
            let (space, name) = (route.namespace().unwrap_or_default(), route.name());
            Err(Failure::refused(format!(
                "{} has a TLSRoute {space}/{name} that is somebody else's; nothing was changed",
                hub.label()
            ))
            .hint(format!("make way for ours: kubectl delete tlsroute -n {space} {name}"))
            .hint("or keep it, and name the server alone, without a Gateway"))
        }
        // Who may not look may not make it either, and is told so with all else.
        Err(failure) if failure.reason != Reason::Forbidden => Err(failure),
        _ => Ok(()),
    }
}

/// Why the Gateway does not lead along the route of a plan yet; none: it does, or the plan has none.
///
/// # Errors
/// The failure of the request.
pub(super) async fn lacks(hub: &Cluster, plan: &Plan) -> Result<Option<String>, Failure> {
    let Some(route) = plan.objects().find(|one| is_route(one)) else { return Ok(None) };
    Ok(rules::lacks(route.body(), &apply::read(hub, route).await?.unwrap_or_default()))
}

fn is_route(manifest: &Manifest) -> bool {
    manifest.kind() == rules::ROUTE && manifest.group() == rules::GROUP
}
