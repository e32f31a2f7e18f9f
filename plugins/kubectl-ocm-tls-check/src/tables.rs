//! Who verifies what by whom, and which authorities stand where.

use std::collections::{BTreeMap, BTreeSet};

use ocm_checks::tls::{Client, Inventory, Relation, Trust};
use ocm_cli::list::NONE;
use ocm_cli::{Table, Ui};
use ocm_core::certificate::Certificate;

/// So many names are shown of what is dialled by several.
const NAMES: usize = 3;
/// So many characters of a name are shown: whoever made the certificate chose it.
const LONGEST: usize = 200;

/// What is presented to whom, and whom that one trusts.
pub(crate) fn relations(ui: &Ui, inventory: &Inventory) {
    let mut table = Table::new(&["PRESENTED BY", "VERIFIED BY", "RUNS", "AS", "TRUSTS"]);
    let mut seen = BTreeSet::new();
    for relation in &inventory.relations {
        let Relation { presenter, verifier, client, names, trust, .. } = relation;
        let runs = match client {
            Some(Client::Go) => "Go",
            Some(Client::Rustls) => "rustls",
            Some(Client::OpenSsl) => "OpenSSL",
            None => NONE,
        };
        let dialled = match names.len() {
            0 => NONE.to_owned(),
            count if count > NAMES => format!("{} and {} more", names[..NAMES].join(","), count - NAMES),
            _ => names.join(","),
        };
        let trusts = match trust {
            Trust::Authorities(list) if list.len() == 1 => "1 authority".to_owned(),
            Trust::Authorities(list) => format!("{} authorities", list.len()),
            Trust::System { .. } => "those of the system".to_owned(),
            Trust::HubClients => "those of the hub's API server".to_owned(),
            Trust::GrpcClients => "those of the hub's gRPC server".to_owned(),
            Trust::Nobody => "anybody: it verifies nothing".to_owned(),
            Trust::Unknown => NONE.to_owned(),
        };
        let cells = [presenter.clone(), verifier.clone(), runs.to_owned(), dialled, trusts];
        if seen.insert(cells.clone()) {
            table.row(&cells);
        }
    }
    if !seen.is_empty() {
        ui.out("\n");
        ui.out(&table.render());
    }
}

/// Every copy of authorities with those in it by number: what is the same has the same numbers.
pub(crate) fn copies(ui: &Ui, inventory: &Inventory) {
    if inventory.copies.is_empty() {
        return;
    }
    let mut numbers: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut table = Table::new(&["AUTHORITIES OF", "CLUSTER", "WHERE", "SERVER", "HOLDS"]);
    let mut legend = Table::new(&["AUTHORITY", "SUBJECT", "UNTIL", "PIN"]);
    for copy in &inventory.copies {
        let mut held = BTreeSet::new();
        for der in &copy.authorities {
            let new = numbers.len() + 1;
            let number = *numbers.entry(&der.0).or_insert(new);
            held.insert(number);
            if number == new {
                let certificate = Certificate::read(&der.0);
                let of = |text: fn(&Certificate) -> String| certificate.as_ref().map_or_else(|| NONE.to_owned(), text);
                legend.row(&[
                    format!("#{number}"),
                    of(|certificate| certificate.subject.chars().take(LONGEST).collect()),
                    of(|certificate| certificate.not_after.to_string()),
                    of(|certificate| certificate.pin.to_string()),
                ]);
            }
        }
        let held: Vec<String> = held.into_iter().map(|number| format!("#{number}")).collect();
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| NONE.to_owned());
        table.row(&[
            copy.what.title().to_owned(),
            or_none(&copy.cluster),
            copy.place.to_string(),
            or_none(&copy.server),
            if held.is_empty() { NONE.to_owned() } else { held.join(",") },
        ]);
    }
    ui.out("\n");
    ui.out(&table.render());
    if !numbers.is_empty() {
        ui.out("\n");
        ui.out(&legend.render());
    }
}
