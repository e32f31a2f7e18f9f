//! What the policy controller has noted of the keys of names.

use kube::api::ListParams;
use kube::{Api, Resource as _};
use ocm_api::registration::{RegisteredKeys, RegisteredKeysStatus};
use ocm_core::order::Collect as _;
use ocm_core::{Failure, Reason, accept};
use ocm_kube::{Cluster, explain};
use ocm_rules::claim;

use super::pages::{pages, some};

/// What the objects are called in messages.
const WHAT: &str = "registration of a cluster";

/// How many registrations one page holds: each carries a record of up to 64 KiB, and a page is in memory as a whole.
pub(crate) const RECORDS_PAGE: u32 = 100;

/// What is noted of the keys of names, and why it may not be read, in a sentence, where the hub has it.
pub(crate) type Noted = (Vec<RegisteredKeys>, Option<String>);

/// What the policy controller has noted of names, read one by one or, if they are many, out of a list. A hub without a policy
/// engine has nothing and is asked once; who may not read it goes by the other traces that names leave.
pub(crate) async fn noted_of(hub: &Cluster, names: &[String]) -> Result<Noted, Failure> {
    match read_noted(hub, names).await {
        Err(failure) if failure.reason == Reason::KindNotServed => Ok(Noted::default()),
        Err(failure) if failure.reason == Reason::Forbidden => {
            // The API server refuses before it looks whether there is such a kind.
            let unread = serves_registrations(hub).await.then(|| {
                format!(
                    "what the policy controller has noted of names that were used before does not count here: {failure}"
                )
            });
            Ok((Vec::new(), unread))
        }
        read => Ok((read?, None)),
    }
}

async fn read_noted(hub: &Cluster, names: &[String]) -> Result<Vec<RegisteredKeys>, Failure> {
    let (first, others) = names.split_at(names.len().min(1));
    let mut found: Vec<RegisteredKeys> = some(hub, first, WHAT).await?;
    if others.len() <= RECORDS_PAGE as usize {
        found.extend(some::<RegisteredKeys>(hub, others, WHAT).await?);
        return Ok(found);
    }
    let (api, others) = (Api::<RegisteredKeys>::all(hub.client.clone()), others.iter().collect_set());
    let wanted = |one: RegisteredKeys| {
        let is_wanted = one.metadata.name.as_ref().is_some_and(|name| others.contains(name));
        is_wanted.then_some(one)
    };
    found.extend(pages(hub, &api, ListParams::default(), || RECORDS_PAGE, "list registrations", wanted).await?);
    Ok(found)
}

/// Whether the hub knows Registrations. Where nobody can tell, it does.
pub(crate) async fn serves_registrations(hub: &Cluster) -> bool {
    let served = hub.client.list_api_group_resources(&RegisteredKeys::api_version(&())).await;
    let plural = RegisteredKeys::plural(&());
    match served {
        Ok(served) => served.resources.iter().any(|resource| resource.name == plural),
        Err(error) => !matches!(explain(&error).reason, Reason::KindNotServed | Reason::NotFound),
    }
}

/// What is written in a Registration, as a fact of the rules.
pub(crate) fn noted(status: &RegisteredKeysStatus) -> claim::Registration<'_> {
    accept::noted(status.cluster_uid.as_deref(), status.keys.iter().map(|key| key.until.as_str()))
}
