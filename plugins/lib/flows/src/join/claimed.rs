//! Whether a policy of the hub keeps the name of a cluster that has joined for the key that its agent has, and so refuses the one
//! that an agent of another name comes with. Nothing is changed here.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use ocm_api::HubPolicy;
use ocm_core::hub_policy::{Asking, Configuration, Objection, another_key};
use ocm_core::managed;
use ocm_core::policy_engine::WEBHOOK;
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use serde_json::json;

use super::moving::Moving;
use super::session::HubSession;
use crate::registry;

/// Looks at the policies of the hub for an agent that registers anew under another name. Who comes with a token may not see
/// them, and what cannot be read is not judged: then the hub says it when the agent asks.
///
/// # Errors
/// A refusal where a policy refuses it for certain; the failure to read the cluster. Where it may, that is a warning.
pub(super) async fn check(
    hub: &HubSession,
    name: &str,
    moving: &Moving,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let (Some(admin), Some(_)) = (hub.admin(), &moving.agent) else { return Ok(()) };
    let policies: Api<HubPolicy> = Api::all(admin.client.clone());
    let kind = ApiResource::erase::<ValidatingWebhookConfiguration>(&());
    let configurations: Api<DynamicObject> = Api::all_with(admin.client.clone(), &kind);
    let (found, configuration, cluster) = futures::join!(
        registry::all(admin, &policies, ListParams::default(), "list policies of the hub"),
        configurations.get_opt(WEBHOOK),
        hub.cluster(name),
    );
    let cluster = cluster?;
    let found = match found {
        Ok(found) => found,
        // Where policies are no kind of the hub, or nobody's business here, there is nothing to say.
        Err(failure) if matches!(failure.reason, Reason::Forbidden | Reason::KindNotServed) => return Ok(()),
        Err(failure) => {
            narrator.tell(Event::warning(format!("whether a policy of the hub refuses this is not known: {failure}")));
            return Ok(());
        }
    };
    let configuration = configuration.map(|found| found.map(|found| json!(found)));
    let configuration = match &configuration {
        Ok(Some(live)) => Configuration::Live(live),
        Ok(None) => Configuration::Missing,
        Err(_) => Configuration::Unread,
    };
    let has_joined = cluster.as_ref().is_some_and(managed::has_joined);
    let agent = Asking { has_joined, has_begun: moving.from.is_none() };
    match another_key(&found, configuration, agent) {
        Some(objection) => tell(name, &objection, narrator),
        None => Ok(()),
    }
}

/// Refuses what a policy refuses for certain, and warns of what one may refuse.
fn tell(name: &str, objection: &Objection, narrator: &dyn Narrator) -> Result<(), Failure> {
    let Objection { policy, doubt } = objection;
    let Some(why) = doubt else {
        return Err(Failure::refused(format!(
            "policy {policy:?} of the hub refuses the new certificate that the one agent of {name} would ask for, whoever \
             approves it: it keeps the name for the key that joined with it; nothing was changed"
        ))
        .hint(Remedy::DisablePolicyMeanwhile { policy: policy.clone(), cluster: name.to_owned() }));
    };
    narrator.tell(Event::warning(format!(
        "policy {policy:?} of the hub may refuse the new certificate that the one agent of {name} asks for ({why}): then the hub \
         does not hear of {name} until it goes back to mode Default"
    )));
    Ok(())
}

#[cfg(test)]
mod tests {
    use ocm_core::Exit;

    use super::*;
    use crate::heard::Heard;

    fn told(doubt: Option<&'static str>) -> (Result<(), Failure>, Vec<Event>) {
        let heard = Heard::default();
        let result = tell("c1", &Objection { policy: "names".to_owned(), doubt }, &heard);
        (result, heard.0.into_inner().unwrap())
    }

    #[test]
    fn what_a_policy_refuses_for_certain_is_a_finding_with_what_to_type() {
        let (result, events) = told(None);
        let failure = result.unwrap_err();
        assert_eq!((failure.exit(), events), (Exit::Findings, Vec::new()));
        assert!(failure.message.starts_with("policy \"names\" of the hub refuses"), "{failure}");
        assert!(failure.message.ends_with("nothing was changed"), "{failure}");
        let disable = Remedy::DisablePolicyMeanwhile { policy: "names".to_owned(), cluster: "c1".to_owned() };
        assert_eq!(failure.hints, [ocm_core::Hint::from(disable)]);
    }

    #[test]
    fn what_a_policy_may_refuse_is_a_warning_that_says_why_and_stops_nothing() {
        let (result, events) = told(Some("nobody knows"));
        assert_eq!(result, Ok(()));
        let [Event::Warning(said)] = events.as_slice() else { panic!("{events:?}") };
        assert!(
            said.starts_with("policy \"names\" of the hub may refuse") && said.contains("(nobody knows)"),
            "{said}"
        );
    }
}
