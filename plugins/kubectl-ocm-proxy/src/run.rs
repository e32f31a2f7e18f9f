//! From arguments to the flows.

use std::sync::Arc;

use ocm_cli::{OutputArgs, Stop, Ui, options};
use ocm_core::{Event, Failure, Narrator};
use ocm_flows::cluster_proxy::{Session, health, session};
use ocm_kube::{Connection, connect};

use crate::args::{HealthArgs, KubectlArgs, ProxyArgs, Verb};
use crate::{kubectl, view};

/// The exit code: one of ours, or that of kubectl. kubectl may end by itself when it is interrupted.
pub(crate) async fn run(args: ProxyArgs, ui: Arc<Ui>, mut stop: Stop) -> Result<u8, Failure> {
    let ProxyArgs { verb, client } = args;
    let connection = client.connection()?;
    match verb {
        Verb::Health(args) => tokio::select! {
            code = look(args, &connection, ui) => code,
            () = &mut stop => Err(kubectl::interrupted()),
        },
        Verb::Kubectl(args) => act(args, &connection, ui, &mut stop).await,
    }
}

async fn look(args: HealthArgs, connection: &Connection, ui: Arc<Ui>) -> Result<u8, Failure> {
    let HealthArgs { clusters, no_probe, output: OutputArgs { output } } = args;
    let clusters = options::cluster_names(clusters)?;
    let hub = connect(connection, ui.clone()).await?;
    let health = health(&hub, &clusters, !no_probe, &*ui).await?;
    view::show(&ui, output, &health).map(u8::from)
}

async fn act(args: KubectlArgs, connection: &Connection, ui: Arc<Ui>, stop: &mut Stop) -> Result<u8, Failure> {
    let KubectlArgs { cluster, sa, arguments } = args;
    let cluster = options::cluster_names(vec![cluster])?.remove(0);
    let session = tokio::select! {
        session = prepare(&cluster, sa.as_deref(), connection, &ui) => session?,
        () = &mut *stop => return Err(kubectl::interrupted()),
    };
    if sa.is_none() {
        ui.tell(Event::note(format!("on cluster {cluster:?} as ManagedServiceAccount {:?}", session.account)));
    }
    ui.quiet_down();
    tokio::select! {
        code = kubectl::run(&session.kubeconfig, &arguments, stop) => code,
        ended = session.serve(ui.clone()) => ended.map(|never| match never {}),
    }
}

async fn prepare(cluster: &str, sa: Option<&str>, connection: &Connection, ui: &Arc<Ui>) -> Result<Session, Failure> {
    let hub = connect(connection, ui.clone()).await?;
    session(&hub, cluster, sa, &**ui).await
}
