//! The role `certificates`: one run, which ends by itself.

use std::sync::Arc;

use ocm_cli::{Stop, Ui};
use ocm_core::{Exit, Failure};
use ocm_kube::ClientArgs;

/// Renews what is old. Whoever ends it earlier leaves the rest to the next run.
pub(crate) async fn run(client: ClientArgs, ui: Arc<Ui>, stop: Stop) -> Result<Exit, Failure> {
    let hub = ocm_kube::connect(&client.connection()?, ui.clone()).await?;
    tokio::select! {
        ended = ocm_policy_certificates::run(&hub, &*ui) => ended.map(|()| Exit::Ok),
        () = stop => Ok(Exit::Interrupted),
    }
}
