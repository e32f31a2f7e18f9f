//! Taking the policy engine away: what goes, and in which order.

use k8s_openapi::api::core::v1::Secret;
use ocm_api::Manifest;
use ocm_api::cert_manager::Issuer;
use serde_json::json;

use super::names::{MARK, PULL_SECRET, within};
use super::{FailurePolicy, Options, Trust, certificate, issued_secret, outline};
use crate::plan::{Plan, Stage};

/// What is deleted, in this order.
#[derive(Clone, Debug)]
pub struct Removal {
    /// What renews certificates, and writes to the configurations.
    pub certificates: Plan,
    /// What has the API server ask the webhook. When it is gone, nothing waits for the webhook.
    pub configurations: Plan,
    /// What runs it.
    pub engine: Plan,
}

/// What [`super::plan`] has made. HubPolicies, Registrations, their definitions and the namespace, with all that is in it,
/// only where `purge` says so: people have written policies, too. `certified`: cert-manager is asked for a certificate.
pub fn removal(purge: bool, certified: bool) -> Removal {
    let configurations = super::configurations(&Trust::Injected, FailurePolicy::Ignore);
    let asks = |object: &&Manifest| configurations.objects().any(|other| other.reference() == object.reference());
    let outline = outline(&Options { without_policies: true, ..Options::default() });
    let pull_secret = Manifest::with::<Secret>(&within(PULL_SECRET), json!(null));
    let kept = ["Namespace", "CustomResourceDefinition"];
    let (mut last, mut first, mut renews) = (Vec::new(), Vec::new(), Vec::new());
    // Back to front: nobody loses what he still works with.
    for object in outline.objects().filter(|object| !asks(object)).chain([&pull_secret]).map(marked) {
        match object.kind() {
            kind if kept.contains(&kind) => last.push(object),
            "CronJob" => renews.push(object),
            _ => first.insert(0, object),
        }
    }
    // As long as it is there, cert-manager makes the Secret again.
    if certified {
        renews.push(marked(&certificate(&Issuer::default())));
        first.push(marked(&issued_secret()));
    }
    // The definition takes the policies along, and the namespace all that is in it.
    last.reverse();
    Removal {
        certificates: Plan::new([Stage::new("what renews certificates", renews)]),
        configurations: Plan::new([Stage::new("configurations", configurations.objects().map(marked).collect())]),
        engine: Plan::new([
            Stage::new("the webhook", first),
            Stage::new("policies and the namespace", if purge { last } else { Vec::new() }),
        ]),
    }
}

/// The object with nothing but our mark: what else it says may have changed since.
fn marked(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    let (key, value) = MARK;
    manifest.body_mut()["metadata"]["labels"] = json!({ key: value });
    manifest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Certificates, Pair, plan};
    use super::*;

    #[test]
    fn what_is_made_is_deleted_and_the_api_server_stops_asking_first() {
        let pair = || Pair { certificate: "c".to_owned(), key: "k".to_owned() };
        let certificates = Certificates { authority: pair(), serving: pair(), bundle: "b".to_owned() };
        let credentials = crate::operator::PullCredentials::parse(br#"{"auths":{}}"#.to_vec()).unwrap();
        let options =
            Options { image: Some("i".to_owned()), pull_credentials: Some(credentials), ..Options::default() };
        let names = |plans: &[&Plan]| -> BTreeSet<String> {
            plans.iter().flat_map(|plan| plan.objects()).map(Manifest::reference).collect()
        };
        let made = plan(&options, &super::super::Running::default(), &certificates).unwrap().whole(FailurePolicy::Fail);
        let mut made = names(&[&made]);
        let purged = removal(true, false);
        made.retain(|name| !name.starts_with("hubpolicy."));
        assert_eq!(made, names(&[&purged.certificates, &purged.configurations, &purged.engine]));
        let kinds = |plan: &Plan| plan.objects().map(|object| object.kind().to_owned()).collect::<Vec<_>>();
        let configurations = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
        assert_eq!(kinds(&purged.configurations), configurations);
        assert_eq!(kinds(&purged.engine).last().map(String::as_str), Some("Namespace"));
        assert_eq!(kinds(&purged.certificates), ["CronJob"]);
        let kept = removal(false, false);
        made.retain(|name| !name.starts_with("namespace/") && !name.starts_with("customresourcedefinition."));
        assert_eq!(made, names(&[&kept.certificates, &kept.configurations, &kept.engine]));
        assert_eq!(kinds(&removal(false, true).certificates), ["CronJob", "Certificate"]);
        for object in
            purged.engine.objects().chain(purged.configurations.objects()).chain(purged.certificates.objects())
        {
            assert_eq!(object.body()["metadata"]["labels"], json!({MARK.0: MARK.1}), "{}", object.reference());
        }
    }
}
