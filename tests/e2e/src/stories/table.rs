//! All stories, and how they are told one after the other.

use std::panic::catch_unwind;
use std::time::Instant;

use super::{
    balanced, beside, clusteradm, engine, fallback, fleet, grpc, grpc_faults, held, hub_alone, hubs, kills, modes,
    quiet, resting, rights,
};

/// A story: it panics where something is not as it should be.
#[derive(Clone, Copy, Debug)]
struct Story {
    /// The name of its function.
    name: &'static str,
    tell: fn(),
}

macro_rules! stories {
    ($($module:ident::$name:ident),+ $(,)?) => {
        &[$(Story { name: stringify!($name), tell: $module::$name }),+]
    };
}

/// All of them.
const ALL: &[Story] = stories![
    fallback::a_cluster_turns_to_its_second_hub_when_the_first_one_does_not_answer,
    fleet::a_fleet_stops_at_the_first_stage_that_does_not_get_there_and_goes_on_from_it,
    grpc::a_cluster_goes_over_from_grpc_to_the_api_server_and_comes_back,
    hubs::a_cluster_goes_from_one_hub_to_another_and_back,
    hubs::a_cluster_is_taken_from_one_hub_to_another_and_back_by_commands_that_are_killed_at_every_step,
    hubs::a_cluster_over_grpc_is_taken_to_another_hub_and_comes_back_by_the_api_server,
    hubs::a_hosted_cluster_is_taken_from_one_hub_to_another,
    modes::a_cluster_goes_from_two_agents_to_one_and_back,
    kills::a_join_and_an_unjoin_that_are_killed_at_every_step_are_gone_on_with,
    kills::a_join_over_grpc_that_is_killed_at_every_step_is_gone_on_with,
    kills::a_hosted_join_that_is_killed_at_every_step_is_gone_on_with,
    rights::rights_of_agents_that_come_back_while_a_cluster_leaves_go_with_the_operator,
    quiet::clusters_that_are_well_give_no_finding_in_any_mode,
    hub_alone::hub_alone_shows_what_is_wrong_on_either_side,
    grpc_faults::grpc_that_does_not_lead_to_the_hub_is_found,
    engine::a_hub_that_was_switched_off_starts_its_policy_engine_and_joins_go_on,
    engine::the_engines_program_is_replaced_and_taken_back_while_clusters_register,
    resting::a_webhook_that_ends_while_connections_are_old_or_closed_after_resting_costs_no_review,
    held::a_cluster_that_is_held_is_left_alone_by_the_hub_for_ten_minutes,
    kills::an_upgrade_that_is_killed_at_every_step_is_gone_on_with,
    beside::a_hub_and_the_agent_of_another_one_go_without_a_loss_for_each_other,
    clusteradm::what_clusteradm_has_begun_is_gone_on_with_and_the_other_way_round,
    balanced::a_hub_behind_a_load_balancer_manages_itself_over_grpc_without_a_person,
    kills::a_hub_that_is_installed_upgraded_and_uninstalled_and_killed_at_every_step_ends_as_it_should,
];

/// Tells the stories whose names are meant, one after the other, and says how each has ended. Whether all were well; none: no
/// name is meant.
pub fn tell(is_meant: impl Fn(&str) -> bool) -> Option<bool> {
    let meant: Vec<&Story> = ALL.iter().filter(|story| is_meant(story.name)).collect();
    (!meant.is_empty()).then(|| told(&meant) == 0)
}

/// Tells these stories. How many have failed.
#[expect(clippy::print_stdout, reason = "who waits for stories sees how far they are, and their results")]
fn told(stories: &[&Story]) -> usize {
    let mut failed = 0;
    for Story { name, tell } in stories {
        println!("{name} ...");
        let begun = Instant::now();
        let is_well = catch_unwind(*tell).is_ok();
        failed += usize::from(!is_well);
        let word = if is_well { "ok" } else { "FAILED" };
        println!("{name} ... {word} ({} s)", begun.elapsed().as_secs());
    }
    println!("{} of {} stories ended well", stories.len() - failed, stories.len());
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_well() {}

    fn fails() {
        panic!("as it has to");
    }

    #[test]
    fn a_story_that_panics_has_failed_and_the_next_one_is_told() {
        let of = |stories: &[Story]| told(&stories.iter().collect::<Vec<_>>());
        let (well, wrong) = (Story { name: "well", tell: ends_well }, Story { name: "wrong", tell: fails });
        assert_eq!(of(&[well, wrong, well]), 1);
        assert_eq!(of(&[well]), 0);
    }

    #[test]
    fn each_story_has_a_name_of_its_own_and_one_that_is_meant_by_nobody_is_none() {
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|story| story.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(tell(|_| false), None);
    }
}
