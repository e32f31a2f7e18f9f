//! How it looks why clusters would be accepted, or what is in the way.

use jiff::Timestamp;
use ocm_cli::explanation::{details, opinions, sentence, whole};
use ocm_cli::{Format, Table, Ui, clean, document};
use ocm_core::accept::{Judged, Part};
use ocm_core::csr::{Request, State};
use ocm_core::explanation::Explanation;
use ocm_core::order;
use ocm_core::{DryRun, Failure, Hint, Remedy};
use ocm_flows::accept::{Explained, Obstacle, Outcome};
use serde_json::{Value, json};

use crate::help::Typed;
use crate::view;

/// Headings of the requests; the first `NARROW` of them make the ordinary table.
const HEADINGS: &[&str] = &["REQUEST", "STATE", "AGE", "REQUESTER", "KEY", "BREAKS", "PART", "SIGNER", "ALGORITHM"];
const NARROW: usize = 7;
/// So many requests of a cluster are shown to people: whoever may register clusters may create any number.
const MOST: usize = 20;
/// Shown where there is nothing to show.
const NONE: &str = "-";

/// Prints what became of each cluster.
pub(crate) fn show(ui: &Ui, format: Format, all: &[Explained]) -> Result<(), Failure> {
    match format {
        Format::Json | Format::Yaml => {
            let clusters: Vec<Value> = all.iter().map(object).collect();
            // It is what a dry run tells, and more.
            let dry_run = DryRun::Client.word();
            ui.out(&document(format, &json!({ "dryRun": dry_run, "clusters": clusters }))?);
        }
        Format::Name => {
            for one in all.iter().filter(|one| one.is_let_in()) {
                ui.line(&view::object_name(&one.row.name));
            }
        }
        Format::Table | Format::Wide => {
            let now = Timestamp::now();
            let texts: Vec<String> = all.iter().map(|one| text(one, format == Format::Wide, now)).collect();
            ui.out(&texts.join("\n"));
        }
    }
    Ok(())
}

/// One cluster, for people.
fn text(explained: &Explained, wide: bool, now: Timestamp) -> String {
    let mut text = clean(&headline(explained)) + "\n";
    for obstacle in explained.obstacles() {
        text += &format!("  in the way: {}\n", clean(&in_words(&obstacle)));
    }
    if let Some(why) = explained.refused_by_policies() {
        text += &format!("  in the way: {}\n", clean(&why));
    }
    for next in next(explained) {
        text += &format!("  next: {}\n", clean(&next));
    }
    if !explained.requests.is_empty() {
        text += &format!("\n{}", requests(explained, wide, now));
    }
    if let Some(policies) = &explained.policies {
        text += &format!("\nPolicies:  {}\n", clean(&sentence(policies)));
        text += &opinions(policies, wide).map(|table| format!("\n{table}")).unwrap_or_default();
        let details = details(policies, false);
        if !details.is_empty() {
            text += &format!("\n{details}");
        }
    }
    text
}

/// What would become of a cluster.
fn headline(explained: &Explained) -> String {
    let row = &explained.row;
    let would = match &row.outcome {
        Outcome::Accepted | Outcome::Approved if explained.refused_by_policies().is_some() => {
            "is refused by the last word of the hub's policies".to_owned()
        }
        Outcome::Accepted => format!("would be accepted: {}{}", row.detail, view::content(row)),
        Outcome::Approved => "is accepted, and its new request would be approved".to_owned(),
        Outcome::AlreadyAccepted => format!("is accepted: {}", row.detail),
        Outcome::NoRequest => "would not be accepted, NoRequest".to_owned(),
        outcome => format!("would be refused, {}", outcome.code()),
    };
    format!("managedcluster/{} {would}", row.name)
}

fn in_words(obstacle: &Obstacle) -> String {
    let Obstacle { outcome, rule, detail, help: _ } = obstacle;
    let rule = rule.map(|rule| format!(" ({rule})")).unwrap_or_default();
    format!("{}{rule}: {detail}", outcome.code())
}

/// What to type next.
fn next(explained: &Explained) -> Vec<String> {
    let name = &explained.row.name;
    let typed = Typed { options: &explained.typed, approve_only: false };
    let obstacles = explained.obstacles();
    let helps = obstacles.iter().filter_map(|obstacle| obstacle.help.as_ref());
    // Of a cluster that is accepted: what is left alone may be meant.
    let settled = explained.row.help.as_ref().filter(|_| obstacles.is_empty());
    let mut next: Vec<String> = helps.chain(settled).map(|help| typed.words(name, help)).collect();
    let command = Typed { options: &explained.options, approve_only: false }.command(name);
    let acts = acts(explained);
    match (&explained.policies, explained.refused_by_policies()) {
        (Some(policies), Some(_)) => {
            next.extend(past_policies(policies));
            if acts {
                next.push(format!("to have the hub ask its policies about you: {command} --dry-run=server"));
            }
        }
        _ if acts => next.push(format!("to let it in: {command}")),
        _ => {}
    }
    next
}

/// Whether something would be done, with the options that override what is in the way.
fn acts(explained: &Explained) -> bool {
    matches!(explained.last.outcome, Outcome::Accepted | Outcome::Approved)
}

/// What helps where policies refuse. That a person may accept where none refuses is known by then.
fn past_policies(policies: &Explanation) -> impl Iterator<Item = String> {
    policies.next.iter().filter(|hint| !matches!(hint, Hint::Remedy(Remedy::Accept(_)))).map(ocm_cli::words)
}

/// The requests of a cluster, the newest first, and below them every rule that one breaks.
fn requests(explained: &Explained, wide: bool, now: Timestamp) -> String {
    let mut all: Vec<&(Request, Judged)> = explained.requests.iter().collect();
    // What something follows from is always among those that are shown.
    order::sort_by_key(&mut all, |(request, judged)| {
        let follows = matches!(judged.part, Part::Approve | Part::StandsOn);
        std::cmp::Reverse((follows, request.created))
    });
    let shown = &all[..all.len().min(MOST)];
    let columns = if wide { HEADINGS.len() } else { NARROW };
    let mut table = Table::new(&HEADINGS[..columns]);
    let mut broken = Table::new(&["REQUEST", "RULE", "CODE", "FIELD", "WHY"]);
    let mut is_any_broken = false;
    for (request, judged) in shown {
        table.row(&cells(request, judged, &explained.last.outcome, now)[..columns]);
        for violation in &judged.violations {
            is_any_broken = true;
            let code = violation.code;
            broken.row([request.name.as_str(), code.rule(), code.word(), violation.field, violation.detail.as_str()]);
        }
    }
    let mut text = table.render();
    if all.len() > shown.len() {
        text += &format!("and {} more, which -o json lists\n", all.len() - shown.len());
    }
    if is_any_broken {
        text += &format!("\n{}", broken.render());
    }
    text
}

fn cells(request: &Request, judged: &Judged, outcome: &Outcome, now: Timestamp) -> [String; 9] {
    let codes: Vec<&str> = judged.violations.iter().map(|violation| violation.code.word()).collect();
    let algorithm = request.content.as_ref().map(|content| content.key.to_string());
    let part = match judged.part {
        Part::Approve => "to be approved",
        Part::StandsOn => "approved before",
        Part::Others => "others decide",
        Part::Asks if *outcome == Outcome::AlreadyAccepted && request.state == State::Pending => "left alone",
        Part::Asks => NONE,
    };
    [
        request.name.clone(),
        request.state.to_string(),
        request.created.map_or_else(|| NONE.to_owned(), |created| view::age(now, created)),
        request.asked_by().to_owned(),
        request.fingerprint().unwrap_or_else(|| "unreadable".to_owned()),
        if codes.is_empty() { NONE.to_owned() } else { codes.join(",") },
        part.to_owned(),
        request.signer.clone(),
        algorithm.unwrap_or_else(|_| "unreadable".to_owned()),
    ]
}

/// One cluster, for programs: the members that a dry run has, and those that explain it.
fn object(explained: &Explained) -> Value {
    let name = &explained.row.name;
    let typed = Typed { options: &explained.typed, approve_only: false };
    let mut object = view::object(&explained.row, &typed);
    if acts(explained) {
        // The command that is offered is about this request.
        let last = view::object(&explained.last, &typed);
        for member in ["fingerprint", "requester", "request"] {
            object[member] = last[member].clone();
        }
    }
    object["accepted"] = json!(explained.is_let_in());
    object["inTheWay"] = explained
        .obstacles()
        .iter()
        .map(|obstacle| {
            let Obstacle { outcome, rule, detail, help } = obstacle;
            let hint = help.as_ref().map(|help| typed.words(name, help));
            json!({ "code": outcome.code(), "rule": rule, "detail": detail, "hint": hint })
        })
        .collect();
    object["refusedByPolicies"] = json!(explained.refused_by_policies());
    object["next"] = json!(next(explained));
    object["requests"] = explained.requests.iter().map(request).collect();
    object["policies"] = json!(explained.policies.as_ref().map(whole));
    object
}

fn request((request, judged): &(Request, Judged)) -> Value {
    let violations: Vec<Value> = judged
        .violations
        .iter()
        .map(|violation| {
            let code = violation.code;
            json!({ "code": code.word(), "rule": code.rule(), "field": violation.field, "detail": violation.detail })
        })
        .collect();
    let part = match judged.part {
        Part::Approve => "Approve",
        Part::StandsOn => "StandsOn",
        Part::Asks => "Asks",
        Part::Others => "Others",
    };
    json!({
        "name": request.name,
        "state": request.state.to_string(),
        "created": request.created.map(|created| created.to_string()),
        "requester": request.asked_by(),
        "groups": request.requester.groups,
        "credentialIds": request.requester.credential_ids,
        "fingerprint": request.fingerprint(),
        "algorithm": request.content.as_ref().ok().map(|content| content.key.to_string()),
        "signer": request.signer,
        "usages": request.usages,
        "lifetimeSeconds": request.lifetime_seconds,
        "part": part,
        "violations": violations,
    })
}

#[cfg(test)]
mod tests {
    use ocm_core::accept::{Help, Options, Refusal};
    use ocm_core::csr::{Code, Names, Requester, Unreadable, Violation};
    use ocm_flows::accept::Row;

    use super::*;
    use crate::samples;

    fn row(outcome: Outcome, detail: &str, help: Option<Help>) -> Row {
        Row { detail: detail.to_owned(), help, ..samples::row(outcome) }
    }

    fn explained(first: Row, last: Row) -> Explained {
        Explained {
            row: first,
            overridden: Vec::new(),
            typed: Options::default(),
            options: Options::default(),
            last,
            requests: Vec::new(),
            policies: None,
            unread: None,
        }
    }

    fn request(name: &str, second: i64, part: Part, codes: &[Code]) -> (Request, Judged) {
        let request = Request {
            name: name.to_owned(),
            uid: None,
            cluster_label: None,
            addon_label: None,
            signer: "s".to_owned(),
            usages: Vec::new(),
            lifetime_seconds: None,
            requester: Requester { user: "eve\u{1b}[31m".to_owned(), ..Requester::default() },
            grpc_user: None,
            created: Timestamp::from_second(second).ok(),
            state: State::Pending,
            decided: None,
            content: Err(Unreadable::Pem(Names::default())),
        };
        let violations = codes.iter().map(|code| Violation::new(*code, "spec", "w\u{1b}[31mrong")).collect();
        (request, Judged { part, violations })
    }

    fn shown(explained: &Explained) -> String {
        text(explained, false, Timestamp::from_second(100).expect("a time"))
    }

    #[test]
    fn what_would_be_accepted_names_the_command_that_does_it() {
        let accepted = || row(Outcome::Accepted, "its request is approved", None);
        let one = explained(accepted(), accepted());
        let expected = "managedcluster/c1 would be accepted: its request is approved\n  next: to let it in: kubectl ocm accept c1\n";
        assert_eq!(shown(&one), expected);
        assert_eq!((&object(&one)["accepted"], &object(&one)["inTheWay"]), (&json!(true), &json!([])));
    }

    fn refusal(code: Code, detail: &str, help: Help) -> Refusal {
        Refusal { code, detail: detail.to_owned(), help: Some(help), is_decided: false }
    }

    #[test]
    fn everything_in_the_way_is_told_and_one_command_is_past_all_of_it() {
        let used = refusal(Code::NameUsedBefore, "used", Help::ReuseName(None));
        let labels = refusal(Code::Labels, "labels", Help::AsRegistered);
        let first = row(Outcome::Refused(Code::NameUsedBefore), "used", Some(Help::ReuseName(None)));
        let options = Options { reuse_name: true, as_registered: true, ..Options::default() };
        let last = row(Outcome::Accepted, "its request is approved", None);
        let one = Explained { overridden: vec![used, labels], options, ..explained(first, last) };
        let text = shown(&one);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "managedcluster/c1 would be refused, NameUsedBefore",
                "  in the way: NameUsedBefore (R8): used",
                "  in the way: Labels (M2): labels",
            ]
        );
        // Who agrees to one of them does not agree to all.
        assert!(lines[4].ends_with(": kubectl ocm accept c1 --as-registered"), "{lines:?}");
        assert_eq!(lines[5], "  next: to let it in: kubectl ocm accept c1 --reuse-name --as-registered");
        assert!(!one.is_let_in());
        assert_eq!(object(&one)["inTheWay"][1]["code"], json!("Labels"));
    }

    #[test]
    fn what_only_the_cluster_changes_has_no_command() {
        let none = || row(Outcome::NoRequest, "it has not asked", None);
        let text = shown(&explained(none(), none()));
        let expected =
            "managedcluster/c1 would not be accepted, NoRequest\n  in the way: NoRequest: it has not asked\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn each_broken_rule_is_told_and_what_strangers_wrote_steers_no_terminal() {
        let wrong = || row(Outcome::Refused(Code::Usages), "request w: usages", None);
        let requests = vec![
            request("w", 10, Part::Asks, &[Code::Usages, Code::Requester]),
            request("addon", 40, Part::Others, &[]),
        ];
        let one = Explained { requests, ..explained(wrong(), wrong()) };
        let text = shown(&one);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let who = "eve\\u{1b}[31m";
        for line in [
            &["w", "Pending", "90s", who, "unreadable", "Usages,Requester", "-"][..],
            &["addon", "Pending", "60s", who, "unreadable", "-", "others", "decide"],
            &["w", "R3", "Usages", "spec", "w\\u{1b}[31mrong"],
            &["w", "R6", "Requester", "spec", "w\\u{1b}[31mrong"],
        ] {
            assert!(words.iter().any(|words| words == line), "{line:?}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        let object = object(&one);
        assert_eq!(object["requests"][0]["violations"][0]["rule"], json!("R3"));
        assert_eq!(object["requests"][1]["part"], json!("Others"));
    }

    #[test]
    fn of_very_many_requests_some_are_shown_and_the_one_that_counts_is_among_them() {
        let accepted = || row(Outcome::Accepted, "its request is approved", None);
        let mut requests: Vec<_> = (10..60).map(|at| request(&format!("r{at}"), at, Part::Asks, &[])).collect();
        requests.push(request("mine", 1, Part::Approve, &[]));
        let one = Explained { requests, ..explained(accepted(), accepted()) };
        let text = shown(&one);
        assert!(text.contains("\nmine ") && text.contains("\nand 31 more"), "{text}");
        assert!(text.contains("\nr59 ") && !text.contains("\nr10 "), "{text}");
        assert_eq!(object(&one)["requests"].as_array().map(Vec::len), Some(51));
    }

    #[test]
    fn where_a_command_is_offered_its_request_is_told_and_not_the_newest() {
        let stranger = Row { requester: Some("eve".to_owned()), ..row(Outcome::Refused(Code::Labels), "labels", None) };
        let last = Row {
            fingerprint: Some("sha256:ab".to_owned()),
            requester: Some("mine".to_owned()),
            request: Some("c1-x".to_owned()),
            ..row(Outcome::Accepted, "its request is approved", None)
        };
        let told = object(&explained(stranger.clone(), last));
        assert_eq!((&told["fingerprint"], &told["requester"]), (&json!("sha256:ab"), &json!("mine")));
        assert_eq!((&told["request"], &told["code"]), (&json!("c1-x"), &json!("Labels")));
        // Of what nothing is done about it is as in a dry run.
        assert_eq!(object(&explained(stranger.clone(), stranger))["requester"], json!("eve"));
    }

    #[test]
    fn a_command_repeats_every_option() {
        let mut options = Options { replace: true, fingerprint: Some("sha256:ab".to_owned()), ..Options::default() };
        options.cluster_sets.push("prod".to_owned());
        options.settings.requesters.push("o'hara".to_owned());
        options.settings.max_lifetime_seconds = 60;
        assert_eq!(
            Typed { options: &options, approve_only: false }.command("c1"),
            r"kubectl ocm accept c1 --replace --fingerprint sha256:ab --cluster-set prod --requester 'o'\''hara' --max-lifetime 60s"
        );
    }
}
