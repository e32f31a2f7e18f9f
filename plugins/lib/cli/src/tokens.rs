//! The list of bootstrap tokens, for every command that shows it. Never their secrets.

use jiff::Timestamp;
use ocm_core::duration::human;
use ocm_core::token::Kept;
use ocm_core::{Event, Exit, Failure, Narrator};
use serde_json::{Value, json};

use crate::{Format, Table, Ui, document};

/// Shows the bootstrap tokens of a hub.
///
/// # Errors
/// When a document cannot be written.
pub fn tokens(ui: &Ui, tokens: &[Kept], format: Format, no_headers: bool) -> Result<Exit, Failure> {
    match format {
        Format::Json | Format::Yaml => {
            let items: Vec<Value> = tokens.iter().map(row).collect();
            ui.out(&document(format, &json!({ "tokens": items }))?);
        }
        Format::Name => tokens.iter().for_each(|token| ui.line(&format!("bootstrap-token/{}", token.id))),
        Format::Table | Format::Wide => {
            if tokens.is_empty() {
                ui.tell(Event::note("there are no bootstrap tokens for clusters"));
            } else {
                let text = table(tokens, format == Format::Wide);
                let skip = if no_headers { text.find('\n').map_or(0, |end| end + 1) } else { 0 };
                ui.out(&text[skip..]);
            }
            ui.tell(Event::note("tokens of the service account cannot be listed: they end by themselves, or all at once with kubectl ocm token revoke --service-account"));
        }
    }
    Ok(Exit::Ok)
}

fn table(tokens: &[Kept], wide: bool) -> String {
    let headings = ["ID", "EXPIRES", "STATE", "DESCRIPTION", "MADE BY", "GROUPS"];
    let columns = if wide { headings.len() } else { 4 };
    let mut table = Table::new(&headings[..columns]);
    for token in tokens {
        let cells = [
            token.id.clone(),
            token.expires.map_or("never".to_owned(), |expires| expires.to_string()),
            match (&token.unusable, token.expires) {
                (Some(why), _) => why.clone(),
                (None, Some(expires)) => format!("good for {}", left(expires)),
                (None, None) => "good".to_owned(),
            },
            token.description.clone(),
            if token.ours { "kubectl ocm" } else { "others" }.to_owned(),
            token.groups.join(","),
        ];
        table.row(&cells[..columns]);
    }
    table.render()
}

fn left(expires: Timestamp) -> String {
    human(expires.duration_since(Timestamp::now()).try_into().unwrap_or_default())
}

fn row(token: &Kept) -> Value {
    json!({
        "id": token.id,
        "expires": token.expires.map(|time| time.to_string()),
        "description": token.description,
        "groups": token.groups,
        "ours": token.ours,
        "usable": token.unusable.is_none(),
        "reason": token.unusable,
    })
}
