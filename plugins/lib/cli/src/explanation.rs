//! Why a cluster is let in or kept out, as people and programs read it.

use ocm_core::explanation::{Asking, Counted, Doubt, Explanation, Finding, GivenApproval, InForce, Opinion, Unasked};
use serde_json::{Value, json};

use crate::remedy::words;
use crate::table::{Table, clean};

/// Headings; the first `NARROW` of them make the ordinary table.
const HEADINGS: &[&str] = &["POLICY", "MODE", "VERDICT", "REASONS", "NOTE", "DIGEST", "IN FORCE", "AUTO-APPROVE"];
const NARROW: usize = 5;
/// How many digits of a digest tell modules apart at a glance.
const DIGITS: usize = 12;
/// Stands in the place of the verdict of whoever was passed over.
pub const NOT_ASKED: &str = "not asked";
/// Shown where there is nothing to show.
const NONE: &str = "-";

/// The answer, in a sentence.
pub fn sentence(explanation: &Explanation) -> String {
    let name = &explanation.name;
    let by = |policies: &[String]| match policies {
        [one] => format!("policy {one}"),
        many => format!("policies {}", many.join(", ")),
    };
    let stands = match &explanation.standing {
        Some(standing) => format!("; it is {}", standing.phase),
        None => String::new(),
    };
    match &explanation.finding {
        Finding::LetIn { policies, at } => {
            let at = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            format!("{name} was let in by {}{at}{stands}", by(policies))
        }
        Finding::Accepted { is_certain: true } => {
            format!("{name} was accepted by a person or by Open Cluster Management, and by no policy{stands}")
        }
        Finding::Accepted { is_certain: false } => {
            format!("{name} was accepted; whether a policy let it in cannot be told{stands}")
        }
        Finding::RequestWaits { why } => format!("{name} is accepted, and its certificate request waits for {why}"),
        Finding::BeingLetIn { policies, since } => {
            format!("{name} is being let in by {} since {since}", by(policies))
        }
        Finding::Waits { why } => format!("{name} waits for {why}"),
        Finding::Denied { why } => format!("{name} is denied by {why}"),
        Finding::NotAccepted => match &explanation.standing {
            Some(standing) if !standing.message.is_empty() => {
                format!("{name} is not accepted any more, or was denied by a person: {}", standing.message)
            }
            _ => format!("{name} is not accepted any more, or was denied by a person"),
        },
        Finding::Expired { at, policies, reason } => {
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!(
                "{name} is not accepted any more: its acceptance ended at {at}, {} gave no more time{reason}",
                by(policies)
            )
        }
        Finding::Detaching => format!("{name} is being removed from the hub"),
        Finding::NoRequest => format!("{name} has not been asked about: its agent has not asked for a certificate"),
        Finding::NotDecided => format!("{name} asks to be let in, and its policies have not been evaluated yet"),
        Finding::NoPolicyEngine => {
            format!("{name} waits for a person: this hub has no policy engine, so nobody else decides")
        }
        Finding::Removed { at, until } => {
            let at = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            let until = until.as_ref().map(|until| {
                format!(
                    "; its certificates may be valid until {until}, and until then only a person gives its name away"
                )
            });
            format!("{name} was removed from the hub{at}{}", until.unwrap_or_default())
        }
        Finding::Unknown => format!("what became of {name} cannot be told: what would tell could not be read"),
    }
}

/// What each policy said, and who was not asked, as a table; none: no policy judged the cluster.
pub fn opinions(explanation: &Explanation, wide: bool) -> Option<String> {
    if explanation.opinions.is_empty() && explanation.unasked.is_empty() {
        return None;
    }
    let columns = if wide { HEADINGS.len() } else { NARROW };
    let mut table = Table::new(&HEADINGS[..columns]);
    for opinion in &explanation.opinions {
        table.row(&cells(opinion)[..columns]);
    }
    for policy in &explanation.unasked {
        table.row(&cells_of_unasked(policy)[..columns]);
    }
    Some(table.render())
}

fn cells(opinion: &Opinion) -> [String; 8] {
    let Opinion { policy, verdict, codes, module_sha256, decides: _, now, doubts } = opinion;
    row(policy, verdict.to_string(), list(codes.clone(), ","), module_sha256.as_ref(), now.as_ref(), doubts)
}

fn cells_of_unasked(policy: &Unasked) -> [String; 8] {
    let Unasked { policy, unmet, now, doubts } = policy;
    row(policy, NOT_ASKED.to_owned(), passed_over(unmet), None, now.as_ref(), doubts)
}

/// Why a policy that judges such requests was not asked about one, by the conditions of its match that are false.
pub fn passed_over(unmet: &[String]) -> String {
    match unmet {
        [] => "its match is about other signers, users or clusters".to_owned(),
        unmet => unmet.iter().map(|name| format!("{name} is false")).collect::<Vec<_>>().join("; "),
    }
}

fn list(items: Vec<String>, by: &str) -> String {
    if items.is_empty() { NONE.to_owned() } else { items.join(by) }
}

fn row(
    policy: &str,
    verdict: String,
    reasons: String,
    said: Option<&String>,
    now: Option<&InForce>,
    doubts: &[Doubt],
) -> [String; 8] {
    let short = |digest: Option<&String>| {
        digest.map_or_else(|| NONE.to_owned(), |digest| digest.chars().take(DIGITS).collect())
    };
    [
        policy.to_owned(),
        now.map_or_else(|| NONE.to_owned(), |now| now.mode.to_string()),
        verdict,
        reasons,
        list(doubts.iter().map(doubt).collect(), "; "),
        short(said),
        short(now.and_then(|now| now.sha256.as_ref())),
        now.map_or_else(|| NONE.to_owned(), |now| now.auto_approve.to_string()),
    ]
}

/// Why an opinion may be another one now.
fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Gone => "the policy is gone".to_owned(),
        Doubt::Unread => "whether it is in force cannot be told".to_owned(),
        Doubt::OtherModule => "another module is in force now".to_owned(),
        Doubt::Changed => "the policy was changed since".to_owned(),
        Doubt::Newer => "the policy is newer than this decision".to_owned(),
        Doubt::NotObserved => "the last change of the policy was not observed yet".to_owned(),
        Doubt::NotLoaded(why) => format!("the wanted version is not in force: {why}"),
    }
}

/// Everything else that is told, one line each; who asks with which requests only where that is wanted.
pub fn details(explanation: &Explanation, with_requests: bool) -> String {
    let mut text = String::new();
    for (name, detail) in named_details(explanation, with_requests) {
        let label = format!("{name}:");
        text += &format!("{label:<11}{}\n", clean(&detail));
    }
    text
}

fn named_details(explanation: &Explanation, with_requests: bool) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    if let Some(at) = &explanation.decided {
        details.push(("Decided", at.clone()));
    }
    for limit in &explanation.limits {
        let reason = limit.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        details.push(("Accepted", format!("until {}, because policy {} says so{reason}", limit.due, limit.policy)));
    }
    if let Some(asking) = explanation.asking.as_ref().filter(|_| with_requests) {
        let credential = asking.credential_id.as_ref().map(|id| format!(", with {id}")).unwrap_or_default();
        details.push(("Asked by", format!("{}{credential}", asking.requester)));
        details.push(("Request", request(asking)));
    }
    match explanation.others {
        _ if !with_requests => {}
        0 => {}
        1 => details.push(("Others", "1 other request waits for this name".to_owned())),
        others => details.push(("Others", format!("{others} other requests wait for this name"))),
    }
    let of = if explanation.keys.of_earlier { " (of an earlier cluster of this name)" } else { "" };
    for key in &explanation.keys.all {
        let digest = match key.spki_sha256.as_str() {
            "" => "unknown".to_owned(),
            digest => format!("sha256:{digest}"),
        };
        details.push(("Key", format!("{digest} until {}{of}", key.until)));
    }
    for given in &explanation.approvals {
        details.push(("Approval", approval(given)));
    }
    if explanation.has_record {
        let name = &explanation.name;
        let replay = "kubectl ocm policy replay - --policy FILE";
        details.push(("Replay", format!("kubectl ocm policy explain {name} --record | {replay}")));
    }
    for unread in &explanation.unread {
        details.push(("Not read", format!("{}: {}", unread.what, unread.failure)));
    }
    details
}

fn request(asking: &Asking) -> String {
    let key = asking.spki_sha256.as_ref().map(|digest| format!(", key sha256:{digest}")).unwrap_or_default();
    match (&asking.request, asking.state) {
        (Some(request), Some(state)) => format!("{request}, {state}{key}"),
        (Some(request), None) => format!("{request}{key}"),
        (None, _) => "none is known".to_owned(),
    }
}

fn approval(given: &GivenApproval) -> String {
    let groups = match given.groups.as_slice() {
        [] => String::new(),
        groups => format!(" of {}", groups.join(", ")),
    };
    let counted = match given.counted {
        Counted::Yes => "",
        Counted::BreakGlass => "; for an emergency, not counted among the others",
        Counted::Ended => "; it has ended",
        Counted::OtherRequester => "; not counted: for somebody else who asks",
        Counted::OwnRequest => "; not counted: whoever asks cannot approve",
        Counted::Withdrawn => "; it is being withdrawn",
    };
    let reason = given.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("{}{groups} until {}{reason}{counted}", given.approver, given.expires_at)
}

/// All of it, for programs.
pub fn whole(explanation: &Explanation) -> Value {
    let opinions: Vec<Value> = explanation.opinions.iter().map(opinion).collect();
    let approvals: Vec<Value> = explanation
        .approvals
        .iter()
        .map(|given| {
            json!({
                "approver": given.approver, "groups": given.groups, "reason": given.reason,
                "expiresAt": given.expires_at, "counted": given.counted.word(),
            })
        })
        .collect();
    let unread: Vec<Value> = explanation
        .unread
        .iter()
        .map(|unread| {
            let failure = &unread.failure;
            json!({"what": unread.what, "reason": failure.reason.to_string(), "message": failure.to_string()})
        })
        .collect();
    json!({
        "cluster": explanation.name,
        "finding": explanation.finding.word(),
        "sentence": sentence(explanation),
        "next": explanation.next.iter().map(words).collect::<Vec<_>>(),
        "phase": explanation.standing.as_ref().map(|standing| standing.phase.to_string()),
        "decided": explanation.decided,
        "verdict": explanation.verdict,
        "opinions": opinions,
        "notAsked": explanation.unasked.iter().map(unasked).collect::<Vec<_>>(),
        "asking": explanation.asking.as_ref().map(|asking| json!({
            "requester": asking.requester, "credentialId": asking.credential_id, "request": asking.request,
            "state": asking.state.map(|state| state.to_string()), "spkiSha256": asking.spki_sha256,
        })),
        "otherRequests": explanation.others,
        "keys": explanation.keys.all,
        "keysOfEarlierCluster": explanation.keys.of_earlier,
        "approvals": approvals,
        "obligations": explanation.limits,
        "hasRecord": explanation.has_record,
        "unread": unread,
    })
}

fn unasked(policy: &Unasked) -> Value {
    let Unasked { policy, unmet, now: _, doubts } = policy;
    let doubts: Vec<_> = doubts.iter().map(Doubt::word).collect();
    json!({"policy": policy, "unmetConditions": unmet, "doubts": doubts})
}

fn opinion(opinion: &Opinion) -> Value {
    let now = opinion.now.as_ref();
    json!({
        "policy": opinion.policy,
        "verdict": opinion.verdict,
        "codes": opinion.codes,
        "decides": opinion.decides,
        "moduleSha256": opinion.module_sha256,
        "mode": now.map(|now| now.mode.to_string()),
        "autoApprove": now.map(|now| now.auto_approve),
        "breakGlass": now.map(|now| now.break_glass),
        "inForceSha256": now.and_then(|now| now.sha256.clone()),
        "doubts": opinion.doubts.iter().map(Doubt::word).collect::<Vec<_>>(),
    })
}
