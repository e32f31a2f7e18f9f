//! One address that leads to several webhooks, as a Service does, and a hub that asks there.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ocm_core::policy_engine::FailurePolicy;
use serde_json::json;

use crate::accept_support::{Hub, managed_cluster};
use crate::controller_support;
use crate::refusals::{Answer, CLUSTERS, Call, Sender};
use crate::webhook_support::{Webhook, policy};

/// A hub whose API server asks a Service about registrations, with a policy that approves and one webhook.
pub fn hub(name: &str) -> (Hub, Webhook, Service) {
    let hub = controller_support::hub(name, true);
    policy(&hub.cluster, "cluster-hygiene", json!({"module": {"builtin": "cluster-hygiene"}}));
    let webhook = Webhook::start(&hub.cluster, &["--drain", "5s"]);
    let service = Service::of(&webhook);
    webhook.configure_at(&hub.cluster, &service.address, FailurePolicy::Fail);
    webhook.is_asked(&hub.cluster);
    (hub, webhook, service)
}

/// Creates a right cluster and a wrong one, without storing them.
///
/// # Errors
/// What was answered otherwise than it should be.
pub async fn ask(sender: &Sender) -> Result<(), String> {
    let mut wrong = json!(managed_cluster("wrong"));
    wrong["spec"]["leaseDurationSeconds"] = json!(1);
    for (object, expected) in [(json!(managed_cluster("right")), None), (wrong, Some("LeaseDuration"))] {
        let answer = Answer::of("a cluster", sender.send(&Call::create(CLUSTERS, object), true).await);
        let is_right = expected.map_or(answer == Answer::Passed, |code| answer.webhook() == Some(code));
        is_right.then_some(()).ok_or_else(|| format!("{answer:?} in the place of {expected:?}"))?;
    }
    Ok(())
}

/// Passes connections on to webhooks in turn. Connections stay with their webhook when others take its place.
pub struct Service {
    /// What it is reached at.
    pub address: String,
    ends: Arc<Mutex<Vec<String>>>,
    opened: Arc<AtomicUsize>,
}

impl Service {
    /// Starts it at the address of this machine that a webhook listens at, and leads to that one.
    pub fn of(webhook: &Webhook) -> Self {
        let (own, _) = webhook.address.rsplit_once(':').unwrap();
        let listener = TcpListener::bind((own, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let ends = Arc::new(Mutex::new(vec![webhook.address.clone()]));
        let opened = Arc::new(AtomicUsize::new(0));
        let (all, count) = (ends.clone(), opened.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let ends: Vec<String> = all.lock().unwrap().clone();
                let end = ends.get(number % ends.len().max(1)).cloned();
                std::thread::spawn(move || pass(&client, end.as_deref()));
            }
        });
        Self { address, ends, opened }
    }

    /// Leads new connections to these webhooks.
    pub fn leads_to(&self, webhooks: &[&Webhook]) {
        *self.ends.lock().unwrap() = webhooks.iter().map(|webhook| webhook.address.clone()).collect();
    }

    /// How many connections were made so far.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

/// Passes on both ways until one side closes. Nobody answers where there is no end.
fn pass(client: &TcpStream, end: Option<&str>) {
    let Some(Ok(server)) = end.map(TcpStream::connect) else { return };
    // A piece of an answer that waits for the next one costs 40 milliseconds.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let one_way = |mut from: &TcpStream, mut to: &TcpStream| {
        let _ = io::copy(&mut from, &mut to);
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| one_way(client, &server));
        one_way(&server, client);
    });
}
