//! All at once, hostile ones among them, while things break.

use std::time::Duration;

use control_plane::Spec;
use e2e_tests::controller_support::{APPROVES, Controller, approving};
use e2e_tests::roles::user_with;
use e2e_tests::storm_support::{self, LetIn, approving_otherwise};
use e2e_tests::until_within;
use e2e_tests::webhook_support::policy;
use fleet_sim::{Hostile, Plan};

use crate::table::Table;
use crate::{AT_ONCE, leading, patience};

/// The memory that each program may have, and what each cluster adds.
const MEMORY: [u64; 2] = [64 << 20, 16 << 10];
/// Of so many clusters one is hostile.
const HOSTILE: usize = 20;
/// How many writes may be missing from the log: two for each registration that was on its way when the leader was killed,
/// and when the API server was.
const UNHEARD: usize = 2 * 2 * 16;

/// The most memory that the programs had, in bytes.
pub(crate) struct Peaks {
    webhook: u64,
    controller: u64,
}

/// Does it, and looks at what the hub holds in the end.
pub(crate) fn run(count: usize, seed: u64, table: &mut Table) -> Peaks {
    let (hub, webhook) = storm_support::hub(&Spec::api("soak-storm").audited(true));
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let mut first = leading(&user);
    let second = Controller::start_as(&user);
    let base = [webhook.memory()[1], second.memory()[1]];
    let fleet = hub.fleet(AT_ONCE);
    // Each way comes once at least.
    let hostile = (count / HOSTILE).max(Hostile::ALL.len());
    let plan = Plan { prefix: "c".to_owned(), clusters: count - hostile, hostile, reports: true, seed };
    let storm = fleet.storm(&plan);
    let reach = |percent: usize, then: &str| {
        let wanted = plan.clusters * percent / 100;
        let said = || format!("{} of {wanted}\n{}", storm.accepted(), second.says.lock().unwrap());
        until_within(patience(count), "so many are in", said, || storm.accepted() >= wanted);
        println!("{} of {} are in: {then}", storm.accepted(), plan.clusters);
    };
    reach(15, "the policy that approves is replaced");
    policy(&hub.cluster, APPROVES, approving_otherwise());
    reach(30, "the leader is killed");
    first.kill();
    reach(55, "the API server is killed");
    hub.cluster.stop_api_server().unwrap();
    hub.cluster.start_api_server().unwrap();
    reach(75, "the certificate is rotated, and the policy is what it was");
    webhook.rotate();
    policy(&hub.cluster, APPROVES, approving(true));
    let report = storm.end(patience(count));
    println!("{report}");
    // Whoever came last is in, so everything that came before has been looked at.
    let last = hub.join("c-last");
    let patient = Duration::from_secs(60);
    until_within(patient, "the last one is in", || second.says.lock().unwrap().clone(), || hub.accepts("c-last"));

    let expected = LetIn::by(&report).and("c-last", last);
    let is_right = report.is_right() && LetIn::on(&hub) == expected;
    let (right, inside) = (report.clusters, report.let_in().len());
    let figure = format!("{} of {right} right, {inside} of {} hostile", report.accepted, report.hostile.len());
    let row = |what: &str| format!("{count} while things break, {what}");
    table.judge(&row("let in"), figure, "all right, none hostile", is_right);
    let (tried, ways) = (report.hostile.len(), report.tried().len());
    let figure = format!("{tried} of {hostile} hostile, in {ways} of {} ways", Hostile::ALL.len());
    table.judge(&row("tried"), figure, "all, in every way", tried == hostile && ways == Hostile::ALL.len());
    let written = expected.written(&hub);
    let figure = format!("{} wrong, {} not in the audit log", written.wrong.len(), written.missing.len());
    let once = written.wrong.is_empty() && written.missing.len() <= UNHEARD;
    table.judge(&row("writes"), figure, format!("0 wrong, <= {UNHEARD} missing"), once);
    written.wrong.iter().for_each(|wrong| println!("written wrongly: {wrong}"));
    table.add(&row("all accepted after"), format!("{:.1} s", report.took.as_secs_f64()));
    table.add(&row("request to accepted"), &report.to_accepted);
    let most = MEMORY[0] + MEMORY[1] * count as u64;
    let [webhook, controller] = [webhook.memory(), second.memory()];
    for (what, base, [now, peak]) in [("webhook", base[0], webhook), ("controller", base[1], controller)] {
        let figure = format!("{:.1} MiB at most, {:.1} after, {:.1} before", mib(peak), mib(now), mib(base));
        table.judge(&row(&format!("memory of the {what}")), figure, format!("<= {:.1} MiB", mib(most)), peak <= most);
    }
    let [webhook, controller] = [webhook[1], controller[1]];
    Peaks { webhook, controller }
}

/// What each cluster adds to the memory, from what few and many of them took.
pub(crate) fn growth((few, before): (usize, &Peaks), (many, after): (usize, &Peaks), table: &mut Table) {
    let programs = [("webhook", before.webhook, after.webhook), ("controller", before.controller, after.controller)];
    for (what, before, after) in programs {
        let each = (after as f64 - before as f64) / (many - few) as f64 / 1024.0;
        let figure = format!("{each:.1} KiB for each cluster");
        let target = format!("<= {} KiB", MEMORY[1] >> 10);
        let met = each <= (MEMORY[1] >> 10) as f64;
        table.judge(&format!("{few} to {many}, memory of the {what}"), figure, target, met);
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
