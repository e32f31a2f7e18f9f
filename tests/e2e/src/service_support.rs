//! One address that leads to several webhooks, as a Service does.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::webhook_support::Webhook;

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
