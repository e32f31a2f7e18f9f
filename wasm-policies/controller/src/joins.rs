//! What a look at a registration needs, and what looks know of each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ocm_policy_abi::EvidenceSource;
use ocm_policy_server::{Knowledge, Metrics, Policies};
use tokio::time::Instant;

use crate::auto_approval::AutoApproval;
use crate::clock::Clock;
use crate::effects::Effects;
use crate::emergency::Emergency;
use crate::hub::Hub;
use crate::log::Log;
use crate::registrations::Registrations;

/// How long the policies may take together.
pub(crate) const DECIDES: Duration = Duration::from_secs(5);
/// Whoever waits is looked at again after this time at the latest.
pub(crate) const LONGEST: Duration = Duration::from_mins(10);
/// How often it is looked whether what was written has arrived.
pub(crate) const LOOKS: Duration = Duration::from_millis(5);

/// Everything that a look needs, while this process leads.
pub(crate) struct Joins {
    pub(crate) hub: Hub,
    pub(crate) registrations: Registrations,
    pub(crate) effects: Effects,
    pub(crate) policies: Arc<Policies>,
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: Log,
    pub(crate) holder: String,
    pub(crate) auto_approval: Arc<AutoApproval>,
    pub(crate) emergency: Arc<Emergency>,
    /// Held by the join whose effects are to be seen before the next one is asked about.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// How often each name was answered with hold.
    pub(crate) attempts: Mutex<HashMap<String, Attempts>>,
    pub(crate) clock: Clock,
    /// Accepted clusters that no policy limits.
    pub(crate) unlimited: Mutex<Unlimited>,
    /// Clusters of which no key is known and none is noted yet.
    pub(crate) keyless: Mutex<Keyless>,
    /// What was written and had not arrived when nobody waited for it any more.
    pub(crate) unseen: Mutex<Vec<Written>>,
}

/// Of clusters by name, the UID and the generation of the policies that were asked.
pub(crate) type Unlimited = HashMap<String, (Option<String>, u64)>;

/// What policies are asked about: the UIDs of a cluster and of its certificate request.
pub(crate) type Question = (Option<String>, Option<String>);

/// How often one question was answered with hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    about: Question,
    number: u32,
}

impl Attempts {
    /// How often it was about these.
    pub(crate) fn about(&self, about: &Question) -> u32 {
        if self.about == *about { self.number } else { 0 }
    }

    /// The same after one more hold about these.
    pub(crate) fn held(&self, about: Question) -> Self {
        Self { number: self.about(&about).saturating_add(1), about }
    }
}

/// A cluster of which no key is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) uid: Option<String>,
    pub(crate) since: Instant,
}

/// Those of which an unknown key is not noted yet, by name.
pub(crate) type Keyless = HashMap<String, Seen>;

/// An object that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Of certificate requests, or of clusters.
    pub(crate) source: EvidenceSource,
    /// Its name.
    pub(crate) name: String,
    /// The resource version that it got.
    pub(crate) version: u64,
}

impl Written {
    /// A cluster.
    pub(crate) fn cluster(name: &str, version: u64) -> Self {
        Self { source: EvidenceSource::Clusters, name: name.to_owned(), version }
    }

    /// A certificate request.
    pub(crate) fn request(name: &str, version: u64) -> Self {
        Self { source: EvidenceSource::Csrs, name: name.to_owned(), version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_a_question_was_held_is_known_of_this_question_alone() {
        let about = |cluster: &str, request: &str| (Some(cluster.to_owned()), Some(request.to_owned()));
        let twice = Attempts::default().held(about("c", "r")).held(about("c", "r"));
        assert_eq!(twice.about(&about("c", "r")), 2);
        // Another request of the cluster, and another cluster of the name.
        assert_eq!((twice.about(&about("c", "s")), twice.about(&about("d", "r"))), (0, 0));
        assert_eq!(twice.held(about("c", "s")).about(&about("c", "s")), 1);
    }
}
