//! A cluster whose hub does not answer any more turns to another one.

use std::time::{Duration, Instant};

use crate::fallback_support::Turning;
use crate::pause_after;
use crate::residue::{nothing_stays, sweep};

pub(super) fn a_cluster_turns_to_its_second_hub_when_the_first_one_does_not_answer() {
    let turning = Turning::start();
    let clusters = [&turning.first, &turning.second, &turning.cluster];
    let before = clusters.map(sweep);
    turning.joins();
    turning.first.stop_api_server().expect("it is stopped");
    turning.turns_to_second();
    // When the first one is there again, the agent stays where it is.
    turning.first.start_api_server().expect("it is ready");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(90) {
        let looked = Instant::now();
        assert_eq!(turning.hubs().get(1), Some(&turning.is_at_second(true)));
        pause_after(looked);
    }
    turning.leaves();
    for (cluster, before) in clusters.into_iter().zip(&before) {
        nothing_stays(cluster, before);
    }
}
