//! The Registrations of the hub, which this controller writes and nobody else.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use ocm_api::Registration;
use ocm_api::registration::{
    RegistrationKeptOutBy, RegistrationNotAsked, RegistrationSeen, RegistrationSpec, RegistrationStatus,
};
use ocm_policy_server::{Packed, Packer};

use crate::effects::Effects;
use crate::failed::Failed;
use crate::status::is_same;

/// Why an acceptance that has to end does not begin.
const OLDER: &str = "its definition of registrations is older than this controller and cannot hold obligations: \
                     kubectl ocm install policy-engine puts it right";
/// Objects of a page.
const PAGE: u32 = 200;

/// What was read when this controller began to lead, and what it has written since. It is packed: there are as many as clusters,
/// few are looked at at the same time, and most of each is the record of a decision, which is text.
#[derive(Default)]
pub(crate) struct Registrations {
    known: Mutex<HashMap<String, Packed>>,
    packer: Packer,
}

impl Registrations {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Packed>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all of them.
    pub(crate) async fn read(effects: &Effects) -> Result<Self, Failed> {
        let api: Api<Registration> = Api::all(effects.client().clone());
        let mut params = ListParams::default().limit(PAGE);
        let (mut known, packer) = (HashMap::new(), Packer::default());
        loop {
            let page = effects.send(api.list(&params)).await?;
            let named =
                page.items.into_iter().filter_map(|item| Some((item.metadata.name.clone()?, packed(&packer, item))));
            known.extend(named);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(Self { known: Mutex::new(known), packer }),
            }
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.known().keys().cloned().collect()
    }

    fn object(&self, name: &str) -> Option<Registration> {
        // Others need not wait until it is read.
        let kept = self.known().get(name)?.clone();
        kept.read_as()
    }

    /// What is written of a cluster.
    pub(crate) fn get(&self, name: &str) -> Option<RegistrationStatus> {
        Some(self.object(name)?.status.unwrap_or_default())
    }

    /// Writes what is to be said of a cluster, unless it says so already. Whoever else has written it wins: it is read
    /// again then, and nothing is done that the intent was to announce.
    pub(crate) async fn write(&self, effects: &Effects, name: &str, status: RegistrationStatus) -> Result<(), Failed> {
        let api: Api<Registration> = Api::all(effects.client().clone());
        let known = self.object(name);
        if known.as_ref().and_then(|known| known.status.as_ref()).is_some_and(|before| is_same(before, &status)) {
            return Ok(());
        }
        let obligations = status.obligations.len();
        let sent = Newer::of(&status);
        let written = async {
            let mut object = match known {
                Some(known) => known,
                None => {
                    let new = Registration::new(name, RegistrationSpec {});
                    effects.send(api.create(&PostParams::default(), &new)).await?
                }
            };
            object.status = Some(status);
            effects.send(api.replace_subresource("status", name, &PostParams::default(), &object)).await
        };
        let answer = written.await;
        match answer {
            Ok(now) => {
                let kept = now.status.as_ref().map_or(0, |status| status.obligations.len());
                let now = packed(&self.packer, sent.put_back(now));
                self.known().insert(name.to_owned(), now);
                // What a definition does not know, the API server leaves out without a word.
                if kept < obligations { Err(Failed::Refused(OLDER.to_owned())) } else { Ok(()) }
            }
            Err(failed) => {
                // Nobody knows what is there now.
                let there =
                    effects.send(api.get_opt(name)).await.map(|there| there.map(|there| packed(&self.packer, there)));
                let mut known = self.known();
                match there {
                    Ok(Some(there)) => drop(known.insert(name.to_owned(), there)),
                    Ok(None) => drop(known.remove(name)),
                    Err(_) => {}
                }
                drop(known);
                Err(failed)
            }
        }
    }

    /// Forgets a name that may be used again.
    pub(crate) async fn delete(&self, effects: &Effects, name: &str) -> Result<(), Failed> {
        let Some(uid) = self.object(name).and_then(|known| known.metadata.uid) else { return Ok(()) };
        let api: Api<Registration> = Api::all(effects.client().clone());
        let preconditions = Some(Preconditions { uid: Some(uid), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        match effects.send(api.delete(name, &params)).await {
            Ok(_) | Err(Failed::Changed) => {
                self.known().remove(name);
                Ok(())
            }
            Err(failed) => Err(failed),
        }
    }
}

/// A Registration as it is kept: without what is larger than all the rest, which the API server keeps where whoever writes says
/// nothing about it.
fn packed(packer: &Packer, mut registration: Registration) -> Packed {
    registration.metadata.managed_fields = None;
    packer.pack(&registration)
}

/// What of a status a definition that is older than this controller leaves out. That is no news, or it would be written again
/// at every look.
struct Newer {
    not_asked: Vec<RegistrationNotAsked>,
    kept_out_by: Option<RegistrationKeptOutBy>,
    accepted_before: Option<RegistrationSeen>,
    denied_before: Option<RegistrationSeen>,
}

impl Newer {
    fn of(status: &RegistrationStatus) -> Self {
        let not_asked = status.decision.as_ref().map(|decision| decision.not_asked.clone()).unwrap_or_default();
        Self {
            not_asked,
            kept_out_by: status.kept_out_by.clone(),
            accepted_before: status.accepted_before.clone(),
            denied_before: status.denied_before.clone(),
        }
    }

    /// The Registration as it was sent.
    fn put_back(self, mut registration: Registration) -> Registration {
        if let Some(status) = &mut registration.status {
            status.kept_out_by = self.kept_out_by;
            status.accepted_before = self.accepted_before;
            status.denied_before = self.denied_before;
            if let Some(decision) = &mut status.decision {
                decision.not_asked = self.not_asked;
            }
        }
        registration
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
    use ocm_api::registration::RegistrationDecision;

    use super::*;

    #[test]
    fn what_is_kept_is_what_was_written_and_little() {
        let packer = Packer::default();
        let registration = |number: usize| {
            let cluster = |at: usize| format!(r#"{{"name":"prod-{number}","labels":{{"env":"prod","at":"{at}"}}}}"#);
            let record: String = (0..100).map(cluster).collect();
            let decision = RegistrationDecision { record: Some(record), ..RegistrationDecision::default() };
            let status = RegistrationStatus { decision: Some(decision), ..RegistrationStatus::default() };
            let mut registration = Registration::new(&format!("c{number}"), RegistrationSpec {});
            (registration.metadata.uid, registration.status) = (Some(format!("u{number}")), Some(status));
            registration
        };
        let mut with_fields = registration(1);
        with_fields.metadata.managed_fields = Some(vec![ManagedFieldsEntry::default()]);
        assert_eq!(packed(&packer, with_fields).read_as::<Registration>(), Some(registration(1)));
        let kept = packed(&packer, registration(2));
        assert_eq!(kept.read_as::<Registration>(), Some(registration(2)));
        assert!(kept.kept() * 6 < kept.size(), "{} of {}", kept.kept(), kept.size());
    }

    #[test]
    fn what_an_older_definition_leaves_out_is_no_news() {
        let not_asked = vec![RegistrationNotAsked { policy: "p".to_owned(), ..RegistrationNotAsked::default() }];
        let status = |not_asked: &[RegistrationNotAsked], kept_out_by: Option<RegistrationKeptOutBy>| {
            let decision = RegistrationDecision { not_asked: not_asked.to_vec(), ..RegistrationDecision::default() };
            RegistrationStatus { decision: Some(decision), kept_out_by, ..RegistrationStatus::default() }
        };
        let answer = |status: RegistrationStatus| {
            let mut answer = Registration::new("c1", RegistrationSpec {});
            answer.status = Some(status);
            answer
        };
        let seen = RegistrationStatus {
            accepted_before: Some(RegistrationSeen::default()),
            denied_before: Some(RegistrationSeen::default()),
            ..status(&[], None)
        };
        for sent in [status(&not_asked, None), status(&[], Some(RegistrationKeptOutBy::default())), seen] {
            let answer = answer(status(&[], None));
            assert!(!is_same(&sent, answer.status.as_ref().unwrap()));
            assert!(is_same(&sent, Newer::of(&sent).put_back(answer).status.as_ref().unwrap()));
        }
        let settled = answer(RegistrationStatus::default());
        assert_eq!(Newer::of(&RegistrationStatus::default()).put_back(settled.clone()), settled);
    }
}
