//! The role `controller`: puts the controller together and runs it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ocm_cli::{Stop, Ui};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_kube::{ClientArgs, Connection};
use ocm_policy_controller::{Controller, Holder, LeaseName, Parts as Of};
use ocm_policy_server::serve_health;

use crate::args::ControllerArgs;
use crate::parts::{Log, Parts, bind};

/// Works until it is told to end.
pub(crate) async fn run(args: ControllerArgs, client: ClientArgs, ui: Arc<Ui>, stop: Stop) -> Result<Exit, Failure> {
    let ControllerArgs { namespace, lease_name, health_listen, modules } = args;
    let probes = bind(health_listen).await?;
    let parts = Parts::new(&client, modules, &ui).await?;
    let once = Connection { sends_once: true, ..client.connection()? };
    let effects = ocm_kube::connect(&once, ui.clone()).await?;
    let log = Log::start()?;
    let controller = Controller::new(Of {
        hub: parts.hub.clone(),
        effects: effects.client,
        policies: parts.policies.clone(),
        knowledge: parts.knowledge.clone(),
        metrics: parts.metrics.clone(),
        log: log.log.clone(),
        lease: LeaseName { namespace, name: lease_name },
        holder: Holder(holder()),
    });
    let following = parts.follow(&ui);
    let probing = tokio::spawn(serve_health(probes, parts.health.clone()));
    controller.run(stop, &*ui, &|| parts.health.answers()).await;
    for task in [following, probing] {
        task.abort();
        let _ = task.await;
    }
    log.end().await;
    ui.tell(Event::done("the lease was given back"));
    Ok(Exit::Ok)
}

/// A text that no other process has: the name of the pod, and when which process began.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}_{}_{begun:x}", host.trim(), std::process::id())
}
