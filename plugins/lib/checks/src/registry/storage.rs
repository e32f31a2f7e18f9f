//! 1116 and 3111: whether clusters store what is written to them.

use jiff::SignedDuration;
use ocm_core::duration::human;

use super::{Category, Check, Input, Page, Rule};
use crate::facts::Facts;
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{HubSide, ManagedSide, Observed, Side, StorageFacts};

/// After how long without a renewal API servers are taken for unable to write. They renew their leases every ten seconds:
/// `IdentityLeaseRenewIntervalPeriod` of `k8s.io/kubernetes/pkg/controlplane`, KEP-1965.
const SILENT: SignedDuration = SignedDuration::from_secs(60);

/// How it comes to that, on either side.
const HAPPENS: &str = "etcd has used up its space and raised the alarm NOSPACE; or an admission webhook that is asked about \
    everything, and whose failure refuses, does not answer.";
/// What to do.
const MEND: &str = "On a node of the control plane `etcdctl alarm list` tells of NOSPACE: compact, defragment, make room or \
    raise `--quota-backend-bytes`, then `etcdctl alarm disarm`. `/readyz` stays ok meanwhile, for it only reads. \
    Otherwise the API server's log says which webhook is in the way of leases: bring it up, or delete its \
    configuration. Where somebody else runs the control plane, ask them.";
/// How to see that it is mended.
const MENDED: &str = "`kubectl get leases -n kube-system -l apiserver.kubernetes.io/identity=kube-apiserver -o yaml` shows a \
    renewTime of the last seconds.";

/// The check of the hub.
pub(super) const OF_HUB: &[Check] = &[Check {
    id: Id(1116),
    slug: "hub-stores",
    title: "the hub stores what is written",
    category: Category::Hub,
    severity: Severity::Error,
    inputs: &[Input::HubStorage],
    after: &[Id(1117)],
    rule: Rule::Hub(hub_stores),
    page: Page {
        means: "The hub's API server answers reads and stores nothing: not even its own lease, which it renews every ten seconds. \
                Agents cannot renew theirs, nobody can register or be accepted, and conditions and pods look as they did when it \
                stopped.",
        happens: HAPPENS,
        mend: MEND,
        mended: MENDED,
    },
}];

/// The check of a managed cluster.
pub(super) const OF_MANAGED: &[Check] = &[Check {
    id: Id(3111),
    slug: "managed-cluster-stores",
    title: "the managed cluster stores what is written",
    category: Category::Life,
    severity: Severity::Error,
    inputs: &[Input::ManagedStorage],
    after: &[],
    rule: Rule::Managed(managed_cluster_stores),
    page: Page {
        means: "The managed cluster's API server answers reads and stores nothing: not even its own lease, which it renews every ten \
                seconds. Agents lose their leader leases and end, works are not applied, and pods look as they did when it stopped.",
        happens: HAPPENS,
        mend: MEND,
        mended: MENDED,
    },
}];

fn hub_stores(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    stores(Side::Hub, "the hub", &hub.storage)
}

fn managed_cluster_stores(_: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    stores(Side::Managed, "the managed cluster", &managed.storage)
}

fn stores(side: Side, cluster: &str, storage: &Observed<StorageFacts>) -> Outcome {
    let Some(storage) = storage.read() else { return Outcome::Pass };
    let Some(lease) = storage.newest() else {
        return Outcome::skip("its API servers have no leases of their own, which Kubernetes has from 1.26 on");
    };
    let Some(silent) = storage.silent() else { return Outcome::skip("its API server does not tell what time it is") };
    if silent < SILENT {
        return Outcome::Pass;
    }
    let silence = human(silent.try_into().unwrap_or_default());
    let finding = Finding::error(format!("{cluster} has stored nothing for {silence}"))
        .on(side, "Lease", Some(&lease.namespace), &lease.name)
        .seen("its API server answers, and has not renewed this lease of its own, as it does every ten seconds")
        .seen(format!("no other lease of {} was renewed either", lease.namespace))
        .because("etcd has no space left (alarm NOSPACE), or an admission webhook that is asked about everything does not answer")
        .run(side, "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations", &[])
        .advise("on a node of its control plane: etcdctl alarm list, and what the API server's log says of leases");
    Outcome::Found(vec![finding])
}
