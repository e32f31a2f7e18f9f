//! The list of bootstrap tokens, for every command that shows it. Never their secrets.

use clap::Args;
use futures::Stream;
use jiff::Timestamp;
use ocm_core::duration::human;
use ocm_core::token::Kept;
use ocm_core::{Changed, Event, Exit, Failure, Narrator};
use serde_json::{Value, json};

use crate::list::{ListArgs, ListFormat, ListOutputArgs, View, follow};
use crate::{Format, OutputArgs, Table, Ui, document};

/// What every list of bootstrap tokens takes.
#[derive(Args, Clone, Debug)]
pub struct TokenListArgs {
    /// Go on and show what changes
    #[arg(short, long)]
    pub watch: bool,
    /// Leave the headings out
    #[arg(long)]
    pub no_headers: bool,
    /// Format of stdout.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Shows the bootstrap tokens of a hub.
///
/// # Errors
/// When a document cannot be written.
pub fn tokens(ui: &Ui, args: &TokenListArgs, tokens: &[Kept]) -> Result<Exit, Failure> {
    let TokenListArgs { watch: _, no_headers, output: OutputArgs { output: format } } = args;
    match format {
        Format::Json | Format::Yaml => {
            let items: Vec<Value> = tokens.iter().map(Tokens::document).collect();
            ui.out(&document(*format, &json!({ "tokens": items }))?);
        }
        Format::Name => tokens.iter().for_each(|token| ui.line(&Tokens::reference(token))),
        Format::Table | Format::Wide => {
            if tokens.is_empty() {
                ui.tell(Event::note(Tokens::NOTHING));
            } else {
                let text = table(tokens, *format == Format::Wide);
                let skip = if *no_headers { text.find('\n').map_or(0, |end| end + 1) } else { 0 };
                ui.out(&text[skip..]);
            }
            tell_of_others(ui);
        }
    }
    Ok(Exit::Ok)
}

/// Shows every change of them as it comes, as [`follow`] does.
///
/// # Errors
/// Why the hub refuses.
pub async fn follow_tokens(
    ui: &Ui,
    args: TokenListArgs,
    changes: impl Stream<Item = Result<Changed<Kept>, Failure>>,
) -> Result<Exit, Failure> {
    let TokenListArgs { watch, no_headers, output: OutputArgs { output } } = args;
    if output.is_human() {
        tell_of_others(ui);
    }
    let list = ListArgs::of_all(watch, no_headers, ListOutputArgs { output: ListFormat::As(output) });
    follow::<Tokens>(ui, &list, changes, |_| true).await
}

fn tell_of_others(ui: &Ui) {
    ui.tell(Event::note(
        "tokens of the service account cannot be listed: they end by themselves, or all at once with kubectl ocm token \
         revoke --service-account",
    ));
}

fn table(tokens: &[Kept], wide: bool) -> String {
    let columns = if wide { Tokens::HEADINGS.len() } else { Tokens::NARROW };
    let mut table = Table::new(&Tokens::HEADINGS[..columns]);
    let now = Timestamp::now();
    for token in tokens {
        table.row(&Tokens::cells(token, now)[..columns]);
    }
    table.render()
}

struct Tokens;

impl View for Tokens {
    type Row = Kept;

    const HEADINGS: &'static [&'static str] = &["ID", "EXPIRES", "STATE", "DESCRIPTION", "MADE BY", "GROUPS"];
    const NARROW: usize = 4;
    const NOTHING: &'static str = "there are no bootstrap tokens for clusters";
    const COLUMNS: &'static [&'static str] = &["id", "expires", "state", "description"];

    fn cells(token: &Kept, now: Timestamp) -> Vec<String> {
        vec![
            token.id.clone(),
            token.expires.map_or("never".to_owned(), |expires| expires.to_string()),
            match (&token.unusable, token.expires) {
                (Some(why), _) => why.clone(),
                (None, Some(expires)) => format!("valid for {}", left(now, expires)),
                (None, None) => "valid".to_owned(),
            },
            token.description.clone(),
            if token.ours { "kubectl ocm" } else { "others" }.to_owned(),
            token.groups.join(","),
        ]
    }

    fn reference(token: &Kept) -> String {
        format!("bootstrap-token/{}", token.id)
    }

    fn document(token: &Kept) -> Value {
        Self::object(token)
    }

    fn object(token: &Kept) -> Value {
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

    fn created(_: &Kept) -> Option<Timestamp> {
        None
    }
}

fn left(now: Timestamp, expires: Timestamp) -> String {
    human(expires.duration_since(now).try_into().unwrap_or_default())
}
