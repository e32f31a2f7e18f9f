//! How long a cluster waits that comes alone.

use std::time::Duration;

use control_plane::Spec;
use e2e_tests::roles::user_with;
use e2e_tests::storm_support;
use kube::Api;
use ocm_api::Registration;

use crate::rate::Loop;
use crate::table::Table;
use crate::{joining, leading};

/// How long somebody who comes alone may wait, at the median.
const TARGET: Duration = Duration::from_millis(100);
/// How many come alone.
const ALONE: usize = 100;

/// Measures it, and finds out what works well for the lower bound on this machine.
pub(crate) fn measure(table: &mut Table) -> Loop {
    let (hub, _webhook) = storm_support::hub(&Spec::api("soak"));
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let fleet = hub.fleet(1);
    let mut controller = leading(&user);
    let mut waited: Vec<Duration> = (0..ALONE)
        .map(|number| {
            let report = fleet.storm(&joining(&format!("alone{number}-"), 1)).end(Duration::from_secs(30));
            assert!(report.is_right(), "{report}");
            report.to_accepted.part(0.5).unwrap()
        })
        .collect();
    waited.sort_unstable();
    let (median, late) = (waited[ALONE / 2], waited[ALONE * 99 / 100]);
    let figure = format!("p50 {} ms, p99 {} ms", median.as_millis(), late.as_millis());
    let target = format!("p50 <= {} ms", TARGET.as_millis());
    table.judge(&format!("{ALONE} one after the other, request to accepted"), figure, target, median <= TARGET);
    // What the lower bound writes of each cluster is what the controller has written of one.
    let registrations: Api<Registration> = Api::all(hub.admin.clone());
    let template = hub.wait(registrations.get("alone0-0")).unwrap().status.unwrap();
    assert_eq!(controller.terminate(), Some(0));
    Loop::choose(&hub, template)
}
