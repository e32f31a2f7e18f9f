//! From arguments to tokens.

use std::sync::Arc;
use std::time::Duration;

use ocm_cli::{Ui, follow_tokens};
use ocm_core::cluster_name::FORM;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, certificate, duration};
use ocm_flows::hub::AddressOptions;
use ocm_flows::token::{self, Kind, Request, Revoked};
use ocm_kube::{Cluster, Connection, connect};

use crate::args::{CreateArgs, KindArg, LineArgs, RevokeArgs, ShowArgs, TokenArgs, Verb};
use crate::view::{self, Shape, Target};

pub(crate) async fn run(args: TokenArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let TokenArgs { verb, client } = args;
    let connection = client.connection()?;
    match verb {
        Verb::Create(args) => create(args, connection, ui).await,
        Verb::Show(ShowArgs { id, line }) => {
            let shape = shape(line, connection.insecure_skip_tls_verify)?;
            let hub = connect(&verified(&shape, connection), ui.clone()).await?;
            let target = shape.file.clone().map(Target::at).transpose()?;
            let minted = token::show(&hub, &id, &shape.address, ui.as_ref()).await?;
            view::minted(&ui, &minted, &shape, target)
        }
        Verb::List(args) => {
            let hub = connect(&connection, ui.clone()).await?;
            match args.watch {
                true => follow_tokens(&ui, args, token::watch(&hub)).await,
                false => ocm_cli::tokens(&ui, &args, &token::list(&hub).await?),
            }
        }
        Verb::Revoke(args) => {
            // Before anything is done: no typo leaves a part of the tokens revoked.
            let ids = token::identifiers(&args.ids)?;
            revoke(RevokeArgs { ids, ..args }, connect(&connection, ui.clone()).await?, ui).await
        }
    }
}

/// Reads what the flags about the line refer to.
fn shape(args: LineArgs, unverified: bool) -> Result<Shape, Failure> {
    let LineArgs { hub_apiserver, force_internal_endpoint_lookup, ca_file, format, token_only, output_file, output } =
        args;
    let ca = match ca_file {
        // Nobody would verify the hub that is connected to, and so nothing would say that the CA is that of the hub.
        Some(_) if unverified => {
            return Err(Failure::usage("--ca-file and --insecure-skip-tls-verify exclude each other"));
        }
        Some(path) => {
            let unusable =
                |error: &dyn std::fmt::Display| Failure::usage(format!("--ca-file {}", path.display())).because(error);
            let pem = std::fs::read(&path).map_err(|error| unusable(&error))?;
            certificate::from_pem(&pem).map_err(|error| unusable(&error))?
        }
        None => Vec::new(),
    };
    let address = AddressOptions { server: hub_apiserver, internal: force_internal_endpoint_lookup, ca, unverified };
    Ok(Shape { address, format, token_only, file: output_file, output: output.output })
}

/// What is sent to a hub that nobody verifies, anybody may hear: the CA that was given verifies it.
fn verified(shape: &Shape, connection: Connection) -> Connection {
    Connection { authorities: shape.address.ca.clone(), ..connection }
}

async fn create(args: CreateArgs, connection: Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let CreateArgs { kind, ttl, description, cluster_sets, line, dry_run } = args;
    if kind == KindArg::ServiceAccount && !cluster_sets.is_empty() {
        return Err(Failure::usage(
            "--cluster-set needs --kind bootstrap: tokens of the service account share its rights",
        ));
    }
    if let Some(set) = cluster_sets.iter().find(|set| !ocm_core::token::can_name_set(set)) {
        return Err(Failure::usage(format!("--cluster-set {set:?} cannot be granted to a bootstrap token")).hint(FORM));
    }
    let shape = shape(line, connection.insecure_skip_tls_verify)?;
    let (kind, usual) = match kind {
        KindArg::ServiceAccount => (Kind::ServiceAccount, Duration::from_secs(3600)),
        KindArg::Bootstrap => (Kind::Bootstrap, Duration::from_secs(24 * 3600)),
    };
    let ttl = match ttl {
        Some(text) => duration::parse(&text).map_err(|error| Failure::usage(format!("--ttl: {error}")))?,
        None => usual,
    };
    let hub = connect(&verified(&shape, connection), ui.clone()).await?;
    let request = Request { kind, ttl, description, cluster_sets, address: shape.address.clone() };
    if DryRun::from(dry_run) != DryRun::No {
        token::check(&hub, &request).await?;
        ui.tell(Event::note(format!(
            "a token for {} would be made ({}); nothing was changed",
            duration::human(ttl),
            hub.label()
        )));
        return Ok(Exit::Ok);
    }
    let target = shape.file.clone().map(Target::at).transpose()?;
    let minted = token::create(&hub, &request, ui.as_ref()).await?;
    view::minted(&ui, &minted, &shape, target)
}

async fn revoke(args: RevokeArgs, hub: Cluster, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let RevokeArgs { mut ids, all, service_account, yes, dry_run, output } = args;
    let dry_run = DryRun::from(dry_run);
    if all {
        // Tokens of other tools are revoked by their identifiers only.
        ids = token::list(&hub).await?.into_iter().filter(|kept| kept.ours).map(|kept| kept.id).collect();
    }
    let many = all && !ids.is_empty();
    if (many || service_account) && !yes && dry_run == DryRun::No {
        let what = match (many, service_account) {
            (true, true) => format!("the bootstrap tokens {} and every token of the service account", ids.join(", ")),
            (true, false) => format!("the bootstrap tokens {}", ids.join(", ")),
            (false, _) => "every token of the service account".to_owned(),
        };
        let question = format!("End {what} ({})? Clusters that have joined stay joined.", hub.label());
        if !ui.confirm(&question).await? {
            return Err(Failure::refused("no token was revoked"));
        }
    }
    // What fails for one token keeps no other one alive.
    let mut rows = Vec::new();
    for id in &ids {
        let name = format!("bootstrap-token/{id}");
        let revoked = token::revoke(&hub, id, dry_run).await;
        match &revoked {
            Ok(Revoked::Now) => {
                if dry_run == DryRun::No {
                    ui.tell(Event::done(format!("{name} revoked")));
                }
                view::revoked(&ui, &name, dry_run, output.output);
            }
            Ok(Revoked::Absent) => ui.tell(view::absent(id)),
            Err(_) => {}
        }
        rows.push((name, revoked));
    }
    if service_account {
        let revoked = token::revoke_service_account(&hub, dry_run, ui.as_ref()).await;
        if revoked.is_ok() {
            view::account(&ui, dry_run, output.output);
        }
        rows.push((view::ACCOUNT.to_owned(), revoked.map(|()| Revoked::Now)));
    }
    if all && rows.is_empty() {
        ui.tell(Event::note("there are no bootstrap tokens that kubectl ocm created"));
    }
    view::finish_revoking(&ui, rows, dry_run, output.output)
}
