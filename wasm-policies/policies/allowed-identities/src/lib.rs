//! Who may bring in which clusters.

use std::collections::BTreeMap;

use ocm_policy_sdk::{
    Answer, ManifestBuilder, Operation, Policy, Request, Requester, allow, deny, glob, hub, manifest, no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedIdentities {
    /// Any of them is enough.
    rules: Vec<Rule>,
}

/// Some identities, and what they may do.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// What this is about; nothing: all that the policy judges.
    #[serde(default)]
    operations: Vec<Operation>,
    /// User names, as patterns.
    #[serde(default)]
    users: Vec<String>,
    /// Groups, by their whole names.
    #[serde(default)]
    groups: Vec<String>,
    /// Service accounts, as `namespace/name`.
    #[serde(default)]
    service_accounts: Vec<String>,
    /// Of each of these keys of `extra`, one of the values.
    #[serde(default)]
    claims: BTreeMap<String, Vec<String>>,
    /// The names, as patterns, of the clusters that they may bring in; nothing: all.
    #[serde(default)]
    names: Vec<String>,
}

const JUDGED: [Operation; 5] =
    [Operation::Create, Operation::Join, Operation::Accept, Operation::Request, Operation::Approve];

impl Rule {
    fn wrong(&self) -> Option<String> {
        if self.users.is_empty() && self.groups.is_empty() && self.service_accounts.is_empty() && self.claims.is_empty()
        {
            return Some("a rule names nobody: give users, groups, serviceAccounts or claims".to_owned());
        }
        if let Some(other) = self.operations.iter().find(|operation| !JUDGED.contains(operation)) {
            return Some(format!("the policy is never asked about {}", other.word()));
        }
        if let Some(other) = self.service_accounts.iter().find(|account| !account.contains('/')) {
            return Some(format!("the service account {other:?} is not written as namespace/name"));
        }
        self.users.iter().chain(&self.names).find_map(|pattern| glob::check(pattern).err())
    }

    fn is_about(&self, operation: Operation) -> bool {
        self.operations.is_empty() || self.operations.contains(&operation)
    }

    /// Whether this is one of them. Behind the gRPC server only the name is known: no groups, no claims.
    fn knows(&self, user: &str, requester: Option<&Requester<'_>>) -> bool {
        let named = glob::any(&self.users, user)
            || hub::service_account(user).is_some_and(|(namespace, name)| {
                self.service_accounts.iter().any(|known| known.split_once('/') == Some((namespace, name)))
            })
            || requester.is_some_and(|requester| self.groups.iter().any(|group| hub::is_in(requester, group)));
        // Claims alone are enough, and together with names they narrow down.
        let only_claims = self.users.is_empty() && self.groups.is_empty() && self.service_accounts.is_empty();
        let claimed = self.claims.iter().all(|(key, values)| {
            let given = requester.and_then(|requester| requester.extra.get(key));
            given.is_some_and(|given| given.iter().any(|value| values.iter().any(|known| *value == known.as_str())))
        });
        (named || only_claims) && claimed
    }
}

impl Policy for AllowedIdentities {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        manifest("allowed-identities", env!("CARGO_PKG_VERSION"), "Lets known identities bring in their clusters")
            .judges(JUDGED)
            .gives("IdentityUnknown", "No rule knows whoever asks")
            .gives(
                "IdentityBorrowed",
                "Whoever asks has the name of a service account or token, but not what belongs to it",
            )
            .gives_codes(hub::CLUSTER_CODES)
            .gives("NameNotTheirs", "Whoever asks may bring in clusters, but none of this name")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let mut wrong: Vec<String> = settings.rules.iter().filter_map(Rule::wrong).collect();
        if settings.rules.is_empty() {
            wrong.push("there are no rules, so that nobody could bring in a cluster".to_owned());
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request)
    }
}

impl AllowedIdentities {
    fn judge(&self, request: &Request<'_>) -> Answer {
        let mut rules = self.rules.iter().filter(|rule| rule.is_about(request.operation())).peekable();
        // Agents ask for their own names again, and for their add-ons, without being on a list.
        let others = hub::is_denial(request) || hub::is_renewal(request) || hub::is_addons(request);
        if rules.peek().is_none() || others {
            return no_opinion();
        }
        let name = match hub::cluster_name(request) {
            Err(violation) => return hub::violated(violation),
            // It has nothing to do with clusters.
            Ok(None) if request.csr().is_some() => return no_opinion(),
            Ok(name) => name,
        };
        let asker = hub::asker(request);
        let behind = request.csr().is_some() && hub::is_grpc_server(asker);
        let user = hub::asking_user(request);
        let at = if request.csr().is_some() { "spec.username" } else { "userInfo.username" };
        if let Some(lack) = hub::lacks(asker) {
            return deny("IdentityBorrowed", format!("who asks {lack}")).at(at);
        }
        let mut known = false;
        for rule in rules.filter(|rule| rule.knows(user, (!behind).then_some(asker))) {
            known = true;
            if rule.names.is_empty() || name.is_some_and(|name| glob::any(&rule.names, name)) {
                return allow();
            }
        }
        match known {
            true => deny("NameNotTheirs", "this identity may not bring in a cluster of this name").at("metadata.name"),
            false => deny("IdentityUnknown", "this identity may not do this").at(at),
        }
    }
}

ocm_policy_sdk::export!(AllowedIdentities);
