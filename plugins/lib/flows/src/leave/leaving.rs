//! How something leaves, and what is noted of it.

use std::time::Duration;

use ocm_core::{Applied, DryRun, Event, Narrator, Outcome};

/// How something leaves.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// Whether what an agent would have to clean up goes without it, where it is not there or takes too long.
    pub force: bool,
    /// Whether namespaces go with whatever else is in them, whoever made them.
    pub purge: bool,
    /// How much of it is only tried.
    pub dry_run: DryRun,
    /// How long each side is waited for.
    pub timeout: Duration,
}

impl Leaving {
    /// What is being done to something: `deleting`, or in a dry run `checking`.
    pub(crate) const fn verb(&self) -> &'static str {
        match self.dry_run {
            DryRun::No => "deleting",
            DryRun::Client | DryRun::Server => "checking",
        }
    }

    /// Tells that something goes from now on, unless it is only tried: whoever is interrupted then has changed something.
    pub(crate) fn goes(&self, what: impl std::fmt::Display, narrator: &dyn Narrator) {
        if self.dry_run == DryRun::No {
            narrator.tell(Event::done(format!("{what} deleted")));
        }
    }
}

/// Kinds that are noted as soon as they begin to go, since much goes with them: not once more when they are gone.
const NOTED_BEFORE: [&str; 3] = ["ManagedCluster", "Klusterlet", "ClusterManager"];

/// Hands over every object, and notes those that are gone for good; but for those of kinds that are noted when they begin to
/// go.
pub(crate) fn noted<'a>(
    leaving: Leaving,
    narrator: &'a dyn Narrator,
    each: &'a dyn Fn(&Applied),
) -> impl Fn(&Applied) + 'a {
    move |applied| {
        each(applied);
        if applied.outcome == Outcome::Deleted && !NOTED_BEFORE.contains(&applied.manifest.kind()) {
            leaving.goes(applied.manifest.reference(), narrator);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use k8s_openapi::api::core::v1::Namespace;
    use ocm_api::{ManagedCluster, Manifest};
    use ocm_core::leave::row;

    use super::*;
    use crate::heard::Heard;

    #[test]
    fn what_goes_is_noted_once() {
        let leaving = |dry_run| Leaving { force: false, purge: false, dry_run, timeout: Duration::from_secs(1) };
        let cluster = Manifest::of(&ManagedCluster::new("c1", Default::default()));
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some("c1".to_owned());
        let rows = [row(cluster.clone(), Outcome::Deleted), row(Manifest::of(&namespace), Outcome::Deleted)];
        let told = |dry_run| {
            let (heard, shown) = (Heard::default(), Cell::new(0));
            let leaving = leaving(dry_run);
            // It begins to go, is waited for, and is gone.
            leaving.goes(cluster.reference(), &heard);
            let each = |_: &Applied| shown.set(shown.get() + 1);
            let noted = noted(leaving, &heard, &each);
            rows.iter().for_each(noted);
            (shown.get(), heard.0.into_inner().unwrap())
        };
        let done = ["managedcluster.cluster.open-cluster-management.io/c1 deleted", "namespace/c1 deleted"];
        assert_eq!(told(DryRun::No), (2, done.map(Event::done).to_vec()));
        assert_eq!(told(DryRun::Client), (2, Vec::new()), "nothing goes that is only tried");
    }
}
