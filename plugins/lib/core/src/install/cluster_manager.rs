//! The ClusterManager: our defaults, under what is there, under what was typed.

use std::collections::BTreeMap;

use ocm_api::ClusterManager;
use ocm_api::names::identity;
use ocm_api::operator::{
    AddOnManagerConfiguration, ClusterManagerDeployOption, ClusterManagerSpec, Endpoint, EndpointExposure,
    EndpointProtocol, EndpointType, FeatureGate, HostnameConfig, LoadBalancerConfig, RegistrationDriverHub,
    RegistrationHubConfiguration, ResourceQosClass, ResourceRequirement, WorkConfiguration, WorkDriver,
};
use serde_json::{Map, Value, json};

use super::feature_gates::{AUTO_APPROVAL, GATES};
use super::{Driver, DriverSetting, GrpcEndpoint, GrpcExposure, Options, OptionsError, expose, gateway};
use crate::gates::{Gate, Part};
use crate::grpc::{GATEWAY_ANNOTATION, PORT_ANNOTATION};
use crate::reconcile;
use crate::release::Component;

/// The member of the spec that holds the image of a component; the operator's is not there.
pub(crate) const fn image_member(component: Component) -> Option<&'static str> {
    match component {
        Component::Operator => None,
        Component::Registration => Some("registrationImagePullSpec"),
        Component::Work => Some("workImagePullSpec"),
        Component::Placement => Some("placementImagePullSpec"),
        Component::AddonManager => Some("addOnManagerImagePullSpec"),
    }
}

/// What a new hub gets when nothing was typed, but for its images.
fn defaults(name: &str) -> Value {
    let gates = |part: Part| {
        let on = GATES.iter().filter(|gate| gate.part == part && gate.default);
        on.map(|gate| FeatureGate::enabled(gate.name)).collect()
    };
    let spec = ClusterManagerSpec {
        deploy_option: Some(ClusterManagerDeployOption::default()),
        registration_configuration: Some(RegistrationHubConfiguration {
            feature_gates: gates(Part::Registration),
            registration_drivers: vec![RegistrationDriverHub::default()],
            ..RegistrationHubConfiguration::default()
        }),
        work_configuration: Some(WorkConfiguration {
            work_driver: Some(WorkDriver::Kube),
            ..WorkConfiguration::default()
        }),
        add_on_manager_configuration: Some(AddOnManagerConfiguration { feature_gates: gates(Part::AddOnManager) }),
        resource_requirement: Some(ResourceRequirement {
            type_: Some(ResourceQosClass::Default),
            ..ResourceRequirement::default()
        }),
        ..ClusterManagerSpec::default()
    };
    serde_json::to_value(ClusterManager::new(name, spec)).expect("an API object is plain JSON")
}

/// Checks what was typed.
///
/// # Errors
/// What contradicts itself, whatever is there.
pub(super) fn check(options: &Options) -> Result<(), OptionsError> {
    whole_identities(options)?;
    if options.grpc_gateway.is_some() && options.expose_grpc != Some(GrpcExposure::Gateway) {
        return Err(OptionsError::Gateway);
    }
    // A list that was typed is the whole list.
    if let Some(typed) = &options.registration_drivers
        && let Some((driver, setting)) = needed(options).find(|(driver, _)| !typed.contains(driver))
    {
        return Err(OptionsError::DriverIsOff(driver, setting));
    }
    typed_host(options).map(drop)
}

/// The drivers of which settings were typed.
fn needed(options: &Options) -> impl Iterator<Item = (Driver, DriverSetting)> {
    let all = [
        (!options.auto_approved_csr_identities.is_empty(), Driver::Csr, DriverSetting::AutoApproved),
        (!options.auto_approved_arn_patterns.is_empty(), Driver::AwsIrsa, DriverSetting::AutoApproved),
        (!options.auto_approved_grpc_identities.is_empty(), Driver::Grpc, DriverSetting::AutoApproved),
        (options.hub_cluster_arn.is_some(), Driver::AwsIrsa, DriverSetting::HubArn),
        (!options.aws_resource_tags.is_empty(), Driver::AwsIrsa, DriverSetting::Tags),
        (options.grpc_endpoint.is_some() || options.grpc_server.is_some(), Driver::Grpc, DriverSetting::Address),
        (options.expose_grpc.is_some(), Driver::Grpc, DriverSetting::Exposure),
    ];
    all.into_iter().filter_map(|(is_typed, driver, setting)| is_typed.then_some((driver, setting)))
}

/// The host that was typed for the gRPC server, to which a Gateway can lead if it is to.
///
/// # Errors
/// What is no address, and what no Gateway leads to.
fn typed_host(options: &Options) -> Result<Option<String>, OptionsError> {
    let host = expose::typed(options)?.map(|(host, _)| host);
    if options.expose_grpc == Some(GrpcExposure::Gateway) {
        if options.grpc_endpoint == Some(GrpcEndpoint::LoadBalancer) {
            return Err(OptionsError::BalancedGateway);
        }
        if let Some(address) = host.as_ref().filter(|host| gateway::is_ip(host)) {
            return Err(OptionsError::NotAName(address.clone()));
        }
    }
    Ok(host)
}

/// The body of the ClusterManager, with the images of the components, and that of a gRPC server that has one of its own.
///
/// # Errors
/// Options that contradict each other or what is there.
pub(super) fn body(
    name: &str,
    live: Option<&Value>,
    (images, server): (&BTreeMap<Component, String>, Option<&str>),
    options: &Options,
    warnings: &mut Vec<String>,
) -> Result<Value, OptionsError> {
    let defaults = defaults(name);
    let mut body = match live {
        Some(live) => reconcile::over(&defaults, live),
        None => defaults,
    };
    let laid = options.values.over(live);
    // Names and book-keeping are not the live object's to give; an empty status says nothing.
    body["metadata"] = json!({ "name": name });
    let members = body.as_object_mut().expect("built above");
    members.retain(|_, value| !value.is_null());
    let spec = members.entry("spec").or_insert_with(|| json!({}));
    options.values.lay(spec);
    for (component, image) in images {
        if let Some(member) = image_member(*component) {
            spec[member] = Value::from(image.as_str());
        }
    }
    if let Some(server) = server {
        entry(spec, "serverConfiguration").insert("imagePullSpec".to_owned(), Value::from(server));
    }
    feature_gates(spec, &options.feature_gates);
    expose::gateway(options, (&body, live))?;
    let spec = &mut body["spec"];
    drivers(spec, listed(live), listed(laid.as_ref()), options, warnings)?;
    grpc(spec, laid.as_ref(), options)?;
    auto_approval(spec, options, warnings)?;
    if let Some(resources) = &options.resources {
        spec["resourceRequirement"] = json!(resources);
    }
    options.scheduling.tell_operator(spec);
    if let Some(port) = expose::port(options, live)? {
        body["metadata"]["annotations"] = json!({ PORT_ANNOTATION: port.to_string() });
    }
    if let Some(gateway) = expose::noted(options, (&body, live))? {
        body["metadata"]["annotations"][GATEWAY_ANNOTATION] = Value::from(gateway);
    }
    warnings.extend(options.values.remarks(&body["spec"]));
    warnings.extend(kept_users(options.values.spec(), live));
    Ok(body)
}

/// Says which users stay approved though a file of values names others: what is applied adds to their list.
fn kept_users(values: &Value, live: Option<&Value>) -> Option<String> {
    let users = |spec: &Value| spec.pointer("/registrationConfiguration/autoApproveUsers")?.as_array().cloned();
    let (named, there) = (users(values)?, users(&live?["spec"])?);
    let stay: Vec<&str> = there.iter().filter(|user| !named.contains(user)).filter_map(Value::as_str).collect();
    (!stay.is_empty()).then(|| {
        format!(
            "autoApproveUsers of the values takes nobody out: {} stay there until the ClusterManager is edited",
            stay.join(", ")
        )
    })
}

/// The registration drivers of a ClusterManager.
fn listed(manager: Option<&Value>) -> &[Value] {
    let list = manager.and_then(|manager| manager.pointer("/spec/registrationConfiguration/registrationDrivers"));
    list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn feature_gates(spec: &mut Value, typed: &[(&'static Gate, bool)]) {
    for (gate, on) in typed {
        let part = entry(spec, gate.part.member());
        let gates = part.entry("featureGates").or_insert_with(|| json!([]));
        let typed = json!({ "feature": gate.name, "mode": if *on { "Enable" } else { "Disable" } });
        let Some(gates) = gates.as_array_mut() else { continue };
        match gates.iter_mut().find(|live| live["feature"] == gate.name) {
            Some(live) => *live = typed,
            // Off is said, too: a gate that the live object has on would stay otherwise.
            None => gates.push(typed),
        }
    }
}

fn is_on(spec: &Value, gate: &str) -> bool {
    let gates = spec.pointer("/registrationConfiguration/featureGates").and_then(Value::as_array);
    gates.into_iter().flatten().any(|live| live["feature"] == gate && live["mode"] == "Enable")
}

/// `live` are the drivers that the hub has, `laid` those with what a file of values says over them.
fn drivers(
    spec: &mut Value,
    live: &[Value],
    laid: &[Value],
    options: &Options,
    warnings: &mut Vec<String>,
) -> Result<(), OptionsError> {
    let find = |driver: Driver| laid.iter().find(|entry| entry["authType"] == driver.word()).cloned();
    let mut list: Vec<Value> = match (&options.registration_drivers, laid.is_empty()) {
        // What is not named in a typed list goes; what is named keeps its settings.
        (Some(typed), _) => {
            typed.iter().map(|driver| find(*driver).unwrap_or_else(|| json!({ "authType": driver.word() }))).collect()
        }
        (None, false) => laid.to_vec(),
        (None, true) => vec![json!({ "authType": Driver::Csr.word() })],
    };
    for gone in live.iter().filter(|live| !list.iter().any(|entry| entry["authType"] == live["authType"])) {
        let word = gone["authType"].as_str().unwrap_or_default();
        warnings.push(format!(
            "the registration driver {word} is not in the list that you gave: clusters that registered with it cannot renew \
             their credentials; a driver that another tool has set stays all the same"
        ));
    }
    let set = |list: &mut Vec<Value>, driver: Driver, setting: DriverSetting, member: &str, value: Value| {
        let Some(entry) = list.iter_mut().find(|entry| entry["authType"] == driver.word()) else {
            return Err(OptionsError::DriverIsOff(driver, setting));
        };
        entry[driver.word()][member] = value;
        Ok(())
    };
    let identities = [
        (Driver::Csr, &options.auto_approved_csr_identities),
        (Driver::AwsIrsa, &options.auto_approved_arn_patterns),
        (Driver::Grpc, &options.auto_approved_grpc_identities),
    ];
    for (driver, typed) in identities.into_iter().filter(|(_, typed)| !typed.is_empty()) {
        set(&mut list, driver, DriverSetting::AutoApproved, "autoApprovedIdentities", json!(typed))?;
    }
    if let Some(arn) = &options.hub_cluster_arn {
        set(&mut list, Driver::AwsIrsa, DriverSetting::HubArn, "hubClusterArn", json!(arn))?;
    }
    if !options.aws_resource_tags.is_empty() {
        set(&mut list, Driver::AwsIrsa, DriverSetting::Tags, "tags", json!(options.aws_resource_tags))?;
    }
    if let Some(aws) = list.iter_mut().find(|entry| entry["authType"] == Driver::AwsIrsa.word())
        && aws.pointer("/awsirsa/hubClusterArn").is_none()
    {
        let usual = options.usual_hub_arn.as_ref().ok_or(OptionsError::NoHubArn)?;
        aws[Driver::AwsIrsa.word()]["hubClusterArn"] = json!(usual);
    }
    entry(spec, "registrationConfiguration").insert("registrationDrivers".to_owned(), Value::Array(list));
    Ok(())
}

fn grpc(spec: &mut Value, live: Option<&Value>, options: &Options) -> Result<(), OptionsError> {
    let drivers = spec.pointer("/registrationConfiguration/registrationDrivers").and_then(Value::as_array);
    let is_on = drivers.into_iter().flatten().any(|entry| entry["authType"] == Driver::Grpc.word());
    let typed = options.grpc_endpoint.is_some() || options.grpc_server.is_some();
    if typed && !is_on {
        return Err(OptionsError::DriverIsOff(Driver::Grpc, DriverSetting::Address));
    }
    if options.expose_grpc.is_some() && !is_on {
        return Err(OptionsError::DriverIsOff(Driver::Grpc, DriverSetting::Exposure));
    }
    // The certificate is made for what stands there, so the port does not.
    let host = typed_host(options)?;
    let exposed = live.and_then(|live| live.pointer("/spec/serverConfiguration/endpointsExposure"));
    let is_exposed = exposed.and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !is_on || (is_exposed && !typed) {
        return Ok(());
    }
    let of_grpc = |entry: &&Value| entry["protocol"] == "grpc" && entry.get("usage").is_none();
    let there = exposed.and_then(Value::as_array).into_iter().flatten().find(of_grpc);
    let there: Option<Endpoint> = there.and_then(|entry| serde_json::from_value(entry["grpc"].clone()).ok());
    let usual = match (options.expose_grpc, &host, &there) {
        (Some(GrpcExposure::LoadBalancer), None, _) => GrpcEndpoint::LoadBalancer,
        // Another name is no other type.
        (None, _, Some(there)) if there.type_ == EndpointType::LoadBalancer => GrpcEndpoint::LoadBalancer,
        _ => GrpcEndpoint::default(),
    };
    let there = there.unwrap_or_default();
    // What somebody has chosen beside a name goes with the name.
    let endpoint = match (options.grpc_endpoint.unwrap_or(usual), host) {
        (GrpcEndpoint::Hostname, Some(host)) => Endpoint {
            type_: EndpointType::Hostname,
            hostname: Some(match there.hostname.filter(|there| there.host == host) {
                Some(there) => there,
                None => HostnameConfig { host, ca_bundle: None },
            }),
            ..Endpoint::default()
        },
        (GrpcEndpoint::Hostname, None) => {
            return Err(OptionsError::NoGrpcAddress);
        }
        (GrpcEndpoint::LoadBalancer, host) => Endpoint {
            type_: EndpointType::LoadBalancer,
            load_balancer: match (there.load_balancer, host) {
                (there, None) => there,
                (Some(there), Some(host)) if there.host.as_ref() == Some(&host) => Some(there),
                (_, Some(host)) => Some(LoadBalancerConfig { host: Some(host), ca_bundle: None }),
            },
            ..Endpoint::default()
        },
    };
    let exposure = EndpointExposure { protocol: EndpointProtocol::Grpc, grpc: Some(endpoint), ..Default::default() };
    let ours = serde_json::to_value(exposure).expect("an API object is plain JSON");
    // Endpoints of another protocol or for another use are somebody else's.
    let others = exposed.and_then(Value::as_array).into_iter().flatten();
    let others = others.filter(|entry| entry["protocol"] != "grpc" || entry.get("usage").is_some()).cloned();
    let list: Vec<Value> = std::iter::once(ours).chain(others).collect();
    entry(spec, "serverConfiguration").insert("endpointsExposure".to_owned(), Value::Array(list));
    Ok(())
}

/// Refuses identities that the hub would not take as they are: its operator hands a list to the registration controller as
/// one flag, with commas between identities, and that reads each part as one (upstream, v1.2.0: `strings.Join` in
/// `clustermanager_runtime_reconcile.go`, `StringSliceVar` in `pkg/registration/hub/manager.go`). It writes that flag between
/// the quotation marks of a text in YAML, unescaped (`manifests/cluster-manager/management/registration/deployment.yaml`).
fn whole_identities(options: &Options) -> Result<(), OptionsError> {
    let typed = [
        &options.auto_approved_csr_identities,
        &options.auto_approved_arn_patterns,
        &options.auto_approved_grpc_identities,
    ];
    let typed = typed.into_iter().flatten().map(String::as_str);
    let registration = &options.values.spec()["registrationConfiguration"];
    let drivers = registration["registrationDrivers"].as_array().into_iter().flatten();
    let of_drivers = drivers.filter_map(Value::as_object).flat_map(|driver| driver.values());
    let lists = of_drivers.map(|settings| &settings["autoApprovedIdentities"]);
    let lists = lists.chain([&registration["autoApproveUsers"]]).filter_map(Value::as_array);
    for identity in typed.chain(lists.flatten().filter_map(Value::as_str)) {
        if identity.contains(',') {
            return Err(OptionsError::CommaInIdentity(identity.to_owned()));
        }
        if identity.contains(|c: char| matches!(c, '"' | '\\') || c.is_control()) {
            return Err(OptionsError::QuoteInIdentity(identity.to_owned()));
        }
    }
    Ok(())
}

fn auto_approval(spec: &mut Value, options: &Options, warnings: &mut Vec<String>) -> Result<(), OptionsError> {
    let named = [
        &options.auto_approved_csr_identities,
        &options.auto_approved_arn_patterns,
        &options.auto_approved_grpc_identities,
    ];
    let typed = options.feature_gates.iter().any(|(gate, on)| gate.name == AUTO_APPROVAL && *on);
    if !is_on(spec, AUTO_APPROVAL) {
        return if named.iter().all(|list| list.is_empty()) { Ok(()) } else { Err(OptionsError::AutoApprovalIsOff) };
    }
    let values = options.values.spec();
    if !typed && !is_on(values, AUTO_APPROVAL) {
        return Ok(());
    }
    warnings.push(format!(
        "the feature gate {AUTO_APPROVAL} accepts every new ManagedCluster, whoever creates it; the lists of identities \
         only say whose certificate requests are approved"
    ));
    let registration = entry(spec, "registrationConfiguration");
    let names_users = values.pointer("/registrationConfiguration/autoApproveUsers").is_some();
    if typed && !names_users && named.iter().all(|list| list.is_empty()) {
        // Whoever turns the gate on and names nobody means the clusters that join with our tokens.
        let users = registration.entry("autoApproveUsers").or_insert_with(|| json!([]));
        if let Some(users) = users.as_array_mut()
            && !users.iter().any(|user| user == identity::BOOTSTRAP_USER)
        {
            users.push(Value::from(identity::BOOTSTRAP_USER));
        }
    }
    Ok(())
}

/// A member of the spec that is an object; made if it is not there.
fn entry<'a>(spec: &'a mut Value, member: &str) -> &'a mut Map<String, Value> {
    let slot = &mut spec[member];
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("made above")
}
