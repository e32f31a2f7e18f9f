//! What the hub answers to the credentials of agents, as seen from here.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::config::{AuthInfo, Cluster as ClusterEntry};
use ocm_api::names::secrets;
use ocm_checks::facts::is_registering;
use ocm_checks::snapshot::{Answer, Credential, ManagedSide, Probe, Trouble};
use ocm_core::kubeconfig::HubAddress;
use ocm_core::{Failure, Narrator, Reason, Role, certificate};
use ocm_kube::access::{Right, missing, myself};
use ocm_kube::{Cluster, Connection, connect_to};
use ocm_net::proxy::{Origin, Proxy};
use secrecy::SecretString;

use crate::hub;

/// How long the hub may take to answer.
const REQUEST: Duration = Duration::from_secs(8);

/// A question that is to be asked.
pub struct Question {
    klusterlet: String,
    address: HubAddress,
    token: SecretString,
}

/// The questions that tell something: those of agents that have to register, because they have no certificate that is
/// valid.
pub async fn questions(managed: &Cluster, side: &ManagedSide, now: Timestamp) -> Vec<Question> {
    let mut questions = Vec::new();
    for agent in side.agents.iter().filter(|agent| is_registering(agent, now)) {
        let api: Api<Secret> = Api::namespaced(managed.client.clone(), &agent.namespace);
        // What cannot be read has been told already.
        let Ok(Some(secret)) = api.get_opt(secrets::BOOTSTRAP_HUB_KUBECONFIG).await else { continue };
        let text = secret.data.as_ref().and_then(|data| data.get(secrets::KUBECONFIG_KEY));
        let text = text.and_then(|text| String::from_utf8(text.0.clone()).ok());
        let Some(bootstrap) = text.as_deref().and_then(hub::parse) else { continue };
        if !bootstrap.token.is_empty() {
            let (address, token) = (bootstrap.hub, SecretString::from(bootstrap.token));
            questions.push(Question { klusterlet: agent.klusterlet.clone(), address, token });
        }
    }
    questions
}

/// Asks the hub who it takes the agents for.
pub async fn probes(questions: Vec<Question>, narrator: Arc<dyn Narrator>) -> Vec<Probe> {
    futures::future::join_all(questions.into_iter().map(|question| probe(question, narrator.clone()))).await
}

async fn probe(question: Question, narrator: Arc<dyn Narrator>) -> Probe {
    let Question { klusterlet, address, token } = question;
    let entry = ClusterEntry {
        server: Some(address.server.clone()),
        certificate_authority_data: (!address.ca.is_empty()).then(|| certificate::to_pem_base64(&address.ca)),
        proxy_url: address.proxy.clone(),
        ..ClusterEntry::default()
    };
    let user = AuthInfo { token: Some(token), ..AuthInfo::default() };
    let connection =
        Connection { request_timeout: Some(REQUEST), sends_once: true, role: Role::Hub, ..Connection::default() };
    let asked = async {
        let hub = connect_to(entry, user, &connection, narrator).await?;
        myself(&hub).await?;
        // What an agent has to do first.
        let rights = [
            Right::new("create", "certificates.k8s.io", "certificatesigningrequests"),
            Right::new("create", "cluster.open-cluster-management.io", "managedclusters"),
        ];
        match missing(&hub, &rights).await?.as_slice() {
            [] => Ok(()),
            [right, ..] => Err(Failure::new(Reason::Forbidden, format!("the token may not {right}"))),
        }
    };
    let answer = match asked.await {
        Ok(()) => Answer::Known,
        Err(failure) => Answer::Refused(Trouble::of(&failure, None)),
    };
    let proxy = address.proxy.as_deref().and_then(|url| Proxy::parse(url, Origin::Kubeconfig).ok());
    Probe {
        klusterlet,
        credential: Credential::Bootstrap,
        server: address.server,
        proxy: proxy.map(|proxy| proxy.to_string()),
        answer,
    }
}
