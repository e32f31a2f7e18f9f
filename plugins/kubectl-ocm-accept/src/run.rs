//! From arguments to rows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ocm_api::approval::{LEAST_REASON, MAX_GROUPS, MAX_TEXT};
use ocm_cli::{Format, Troubleshoot, Ui, options};
use ocm_core::accept::{Chosen, Decision, Options, overriding};
use ocm_core::baseline::approvals::{MAX_BREAK_GLASS_HOURS, MAX_DAYS};
use ocm_core::csr::Settings;
use ocm_core::order::Collect as _;
use ocm_core::{DryRun, Event, Exit, Failure, Narrator, duration};
use ocm_flows::accept::{self, Approval, Candidate, Denial, Explained, Limits, Outcome, Row, Watch};
use ocm_flows::registry::Scope;
use ocm_kube::{Cluster, connect};

use crate::args::AcceptArgs;
use crate::explained;
use crate::view::View;

/// What is said where there is nobody to accept.
const NOBODY: &str = "no cluster waits for acceptance";

pub(crate) async fn run(args: AcceptArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let AcceptArgs {
        names,
        all_pending,
        selector,
        clusters,
        yes,
        fingerprint,
        replace,
        reuse_name,
        without_request,
        as_registered,
        cluster_sets,
        requesters,
        max_lifetime,
        deny,
        approve_only,
        break_glass,
        reason,
        expires,
        groups,
        wait,
        timeout,
        dry_run,
        explain,
        concurrency,
        output,
        client,
    } = args;
    let scope = scope(names, clusters, all_pending, selector)?;
    let named = matches!(scope, Scope::Names(_));
    if replace && !matches!(&scope, Scope::Names(names) if names.len() == 1) {
        return Err(Failure::usage("--replace goes with exactly one name"));
    }
    let options = Options {
        settings: Settings { requesters, max_lifetime_seconds: lifetime(&max_lifetime)?, ..Settings::default() },
        chosen: if named { Chosen::ByName } else { Chosen::InBulk },
        fingerprint: fingerprint.map(|text| fingerprint_of(&text, &scope)).transpose()?,
        replace,
        reuse_name,
        without_request,
        as_registered,
        cluster_sets,
        ..Options::default()
    };
    let approval = match break_glass {
        Some(reason) => Some(approval(groups, Some(reason), &expires.unwrap_or_else(|| "1h".to_owned()), true)?),
        None if approve_only => Some(approval(groups, reason, &expires.unwrap_or_else(|| "72h".to_owned()), false)?),
        None => None,
    };
    let timeout = options::timeout(&timeout)?;
    let connection = client.connection()?;
    if explain {
        let hub = connect(&connection, ui.clone()).await?;
        return explain_all(&hub, &scope, &options, &ui, output.output).await;
    }
    let dry_run = DryRun::from(dry_run);
    if !named && !yes && dry_run == DryRun::No && !ui.can_ask() {
        return Err(Failure::usage("--all-pending and --selector need --yes where stdin is not a terminal")
            .hint("see first what they mean: add --dry-run=client"));
    }
    let job = Job {
        hub: connect(&connection, ui.clone()).await?,
        view: View::new(ui.clone(), output.output, dry_run, approve_only, options.clone()),
        options,
        dry_run,
        deny,
        approval,
        ask: !yes && dry_run == DryRun::No && ui.can_ask(),
        at_once: concurrency.at_once(),
        deadline: wait.then(|| Instant::now() + timeout),
        named,
        troubleshoot: Troubleshoot::new(client.words()),
        ui,
    };
    job.run(scope).await
}

/// Tells of every cluster why it would be accepted, or what is in the way.
async fn explain_all(
    hub: &Cluster,
    scope: &Scope,
    options: &Options,
    ui: &Ui,
    format: Format,
) -> Result<Exit, Failure> {
    let all = accept::explained(hub, scope, options).await?;
    if let Some(unread) = all.iter().find_map(|one| one.unread.as_ref()) {
        ui.tell(Event::note(unread));
    }
    explained::show(ui, format, &all)?;
    if all.is_empty() {
        ui.tell(Event::note(NOBODY));
    }
    Ok(if all.iter().all(Explained::is_let_in) { Exit::Ok } else { Exit::Findings })
}

struct Job {
    hub: Cluster,
    options: Options,
    dry_run: DryRun,
    deny: Option<String>,
    /// What is said where somebody only approves, or approves with breakGlass before they accept.
    approval: Option<Approval>,
    ask: bool,
    at_once: usize,
    /// Until when clusters are waited for; none: they are not.
    deadline: Option<Instant>,
    named: bool,
    view: View,
    /// What looks for the cause where clusters do not ask in time.
    troubleshoot: Troubleshoot,
    ui: Arc<Ui>,
}

impl Job {
    async fn run(self, scope: Scope) -> Result<Exit, Failure> {
        let mut rows = Vec::new();
        let done = self.rows(scope, &mut rows).await;
        // What was done before something failed is told all the same.
        if done.is_ok() || !rows.is_empty() {
            self.view.finish(&rows)?;
        }
        self.view.hints(&rows);
        let timed_out = done?;
        if rows.is_empty() && !self.named {
            self.ui.tell(Event::note(NOBODY));
        }
        Ok(verdict(&rows, timed_out, self.named))
    }

    /// Acts on every cluster, and says whether some did not ask in time.
    async fn rows(&self, scope: Scope, rows: &mut Vec<Row>) -> Result<bool, Failure> {
        if let Some(reason) = &self.deny {
            return self.deny(&scope, reason, rows).await.map(|()| false);
        }
        let found = accept::inspect(&self.hub, &scope, &self.options, self.deadline, self.ui.as_ref()).await?;
        accept::tell_unread(&found, self.ui.as_ref());
        let waits = |candidate: &Candidate| self.deadline.is_some() && accept::still_waits(&candidate.decision);
        let (waiting, ready): (Vec<_>, Vec<_>) = found.into_iter().partition(waits);
        if !ready.is_empty() {
            self.act(ready, rows).await?;
        }
        let late = match self.deadline.filter(|_| !waiting.is_empty()) {
            Some(deadline) => self.wait(waiting, deadline, rows).await?,
            None => Vec::new(),
        };
        let timed_out = !late.is_empty();
        if timed_out {
            let names: Vec<String> = late.iter().map(|candidate| candidate.name.clone()).collect();
            // Their rows say what they lack.
            self.act(late, rows).await?;
            let found = self.troubleshoot.inspect(&names, self.ui.as_ref()).await;
            found.lines.into_iter().chain(found.next).for_each(|line| self.ui.tell(Event::note(line)));
        }
        Ok(timed_out)
    }

    /// Denies clusters. What the question names is known without their requests.
    async fn deny(&self, scope: &Scope, reason: &str, rows: &mut Vec<Row>) -> Result<(), Failure> {
        let mut denial = Denial::read(&self.hub, scope, &self.options, self.at_once).await?;
        if denial.is_empty() {
            return Ok(());
        }
        denial.check_rights(&self.hub).await?;
        if self.ask && !denial.names().is_empty() {
            self.view.tell_left(&denial);
            if !self.ui.confirm(&self.view.question_to_deny(&denial)).await? {
                return Err(Failure::refused("nothing was denied"));
            }
        }
        let each = |row: &Row| self.view.row(row);
        rows.extend(denial.carry_out(&self.hub, reason, self.dry_run, self.at_once, self.ui.as_ref(), each).await);
        Ok(())
    }

    /// Acts on clusters as soon as they ask, and returns those that did not ask in time.
    async fn wait(
        &self,
        waiting: Vec<Candidate>,
        deadline: Instant,
        rows: &mut Vec<Row>,
    ) -> Result<Vec<Candidate>, Failure> {
        let mut watch = Watch::begin(&self.hub, &self.options, waiting, self.ui.as_ref());
        loop {
            let ready = watch.next(deadline, self.ui.as_ref()).await?;
            if ready.is_empty() {
                return Ok(watch.into_waiting(self.ui.as_ref()));
            }
            self.act(ready, rows).await?;
        }
    }

    /// Acts on clusters and adds their rows to those of earlier ones.
    async fn act(&self, candidates: Vec<Candidate>, rows: &mut Vec<Row>) -> Result<(), Failure> {
        let acts = |candidate: &Candidate| matches!(candidate.decision, Decision::Act { .. });
        let candidates = self.ask_about(candidates).await?;
        if let Some(approval) = self.approval.as_ref().filter(|approval| !approval.break_glass) {
            return self.approve(candidates, approval, rows).await;
        }
        let mut giving = None;
        if candidates.iter().any(acts) {
            let check = async || accept::check_rights(&self.hub, &candidates).await;
            accept::patiently(accept::answered_by(self.deadline), self.ui.as_ref(), check).await?;
            if let Some(approval) = &self.approval {
                accept::check_rights_to_approve(&self.hub, &candidates, approval).await?;
                giving = Some(accept::prepare(&self.hub, approval, self.ui.as_ref()).await?);
            }
            if self.ask && !self.ui.confirm(&self.view.question(&candidates, giving.as_ref())).await? {
                return Err(Failure::refused(declined(rows)));
            }
        }
        if let Some(giving) = giving {
            let limits = Limits { at_once: self.at_once, deadline: None };
            let each = |row: &Row| self.view.row(row);
            rows.extend(giving.accept(&self.hub, candidates, self.dry_run, limits, self.ui.as_ref(), each).await);
            return Ok(());
        }
        let limits = Limits { at_once: self.at_once, deadline: self.deadline };
        let each = |row: &Row| self.view.row(row);
        let done = accept::carry_out(&self.hub, candidates, self.dry_run, limits, self.ui.as_ref(), each);
        rows.extend(done.await);
        Ok(())
    }

    /// Writes the approvals of clusters, and nothing else.
    async fn approve(
        &self,
        candidates: Vec<Candidate>,
        approval: &Approval,
        rows: &mut Vec<Row>,
    ) -> Result<(), Failure> {
        let each = |row: &Row| self.view.row(row);
        if !candidates.iter().any(|candidate| matches!(candidate.decision, Decision::Act { .. })) {
            rows.extend(accept::only_told(candidates, each));
            return Ok(());
        }
        accept::check_rights_to_approve(&self.hub, &candidates, approval).await?;
        let giving = accept::prepare(&self.hub, approval, self.ui.as_ref()).await?;
        if self.ask && !self.ui.confirm(&self.view.question(&candidates, Some(&giving))).await? {
            return Err(Failure::refused("nothing was approved"));
        }
        rows.extend(giving.give(&self.hub, candidates, self.dry_run, self.at_once, self.ui.as_ref(), each).await);
        Ok(())
    }

    /// Asks about named clusters that a person may let in all the same, and decides anew about those.
    async fn ask_about(&self, candidates: Vec<Candidate>) -> Result<Vec<Candidate>, Failure> {
        if !self.ask || !self.named {
            return Ok(candidates);
        }
        let mut decided = Vec::new();
        for mut candidate in candidates {
            // Each question is asked once, for each answer sets an option.
            while let Decision::Refused(refusal) = &candidate.decision
                && let Some(options) = overriding(refusal, &candidate.options)
            {
                if !self.ui.confirm(&self.view.question_about(&candidate.name, refusal)).await? {
                    break;
                }
                let scope = Scope::Names(vec![candidate.name.clone()]);
                let end = accept::answered_by(self.deadline);
                let again = accept::inspect(&self.hub, &scope, &options, end, self.ui.as_ref()).await?;
                candidate = again.into_iter().next().unwrap_or(candidate);
            }
            decided.push(candidate);
        }
        Ok(decided)
    }
}

fn scope(
    names: Vec<String>,
    clusters: Vec<String>,
    all_pending: bool,
    selector: Option<String>,
) -> Result<Scope, Failure> {
    let names = options::cluster_names(names.into_iter().chain(clusters).collect())?;
    match (names.is_empty(), all_pending, selector) {
        (false, false, None) => Ok(Scope::Names(names)),
        (true, true, None) => Ok(Scope::All),
        (true, false, Some(selector)) if !selector.trim().is_empty() => Ok(Scope::Selector(selector)),
        (true, false, Some(_)) => {
            Err(Failure::usage("the selector is empty").hint("--all-pending means every cluster that waits"))
        }
        (true, false, None) => Err(Failure::usage("say which clusters to accept")
            .hint("kubectl ocm accept NAME…, --all-pending, or -l SELECTOR")),
        _ => Err(Failure::usage("names, --all-pending and --selector exclude each other")),
    }
}

/// What comes of clusters that somebody does not accept, after these.
fn declined(before: &[Row]) -> String {
    let accepted = before.iter().filter(|row| matches!(row.outcome, Outcome::Accepted | Outcome::Approved)).count();
    match accepted {
        0 => "nothing was accepted".to_owned(),
        1 => "nothing was accepted after the first cluster".to_owned(),
        accepted => format!("nothing was accepted after the first {accepted} clusters"),
    }
}

/// What is said with approvals, as far as no hub is needed to judge it.
fn approval(
    groups: Vec<String>,
    reason: Option<String>,
    expires: &str,
    break_glass: bool,
) -> Result<Approval, Failure> {
    let flag = if break_glass { "--break-glass" } else { "--reason" };
    let lasts = duration::parse(expires).map_err(|error| Failure::usage(format!("--expires: {error}")))?;
    // The API server counts in seconds, and what has ended when it is given is none.
    if lasts.as_secs() == 0 {
        return Err(Failure::usage("--expires: an approval has to count for a second at least"));
    }
    if lasts > Duration::from_hours(24 * u64::from(MAX_DAYS)) {
        return Err(Failure::usage(format!("--expires: an approval counts for {MAX_DAYS} days at most")));
    }
    if break_glass && lasts > Duration::from_hours(u64::from(MAX_BREAK_GLASS_HOURS)) {
        let sentence =
            format!("--expires: an approval with breakGlass counts for {MAX_BREAK_GLASS_HOURS} hours at most");
        return Err(Failure::usage(sentence));
    }
    if groups.len() > MAX_GROUPS {
        return Err(Failure::usage(format!("--group: an approval names at most {MAX_GROUPS} groups")));
    }
    match reason.as_deref().map(|reason| reason.trim().chars().count()) {
        Some(0) => return Err(Failure::usage(format!("{flag} is empty"))),
        Some(long) if long > MAX_TEXT => {
            return Err(Failure::usage(format!("{flag} has {long} characters, and {MAX_TEXT} are the most")));
        }
        Some(short) if break_glass && short < LEAST_REASON => {
            let sentence = format!("{flag} has {short} characters, and a reason takes {LEAST_REASON} at least");
            return Err(Failure::usage(sentence));
        }
        _ => {}
    }
    Ok(Approval { groups, reason: reason.map(|reason| reason.trim().to_owned()), lasts, break_glass })
}

fn lifetime(text: &str) -> Result<i64, Failure> {
    let wrong = |why: String| Failure::usage(format!("--max-lifetime: {why}"));
    let lifetime = duration::parse(text).map_err(|error| wrong(error.to_string()))?;
    i64::try_from(lifetime.as_secs()).map_err(|_| wrong(format!("{text} is too long")))
}

/// Reads a fingerprint as it is shown; only the whole of it names a key.
fn fingerprint_of(text: &str, scope: &Scope) -> Result<String, Failure> {
    if !matches!(scope, Scope::Names(names) if names.len() == 1) {
        return Err(Failure::usage("--fingerprint goes with exactly one name"));
    }
    let digits = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::usage(format!("--fingerprint {text:?} is not sha256: and 64 hex digits"))
            .hint("kubectl ocm get csr -o wide shows the fingerprints"));
    }
    Ok(format!("sha256:{digits}"))
}

/// The exit code of all rows together: what failed outweighs what timed out, and that outweighs what was refused. What failed has
/// the code of its reason, unless there are several of different codes.
fn verdict(rows: &[Row], timed_out: bool, named: bool) -> Exit {
    let any = |test: fn(&Outcome) -> bool| rows.iter().any(|row| test(&row.outcome));
    let failed: BTreeSet<Exit> = rows.iter().filter_map(|row| Some(row.failure()?.exit())).collect_set();
    if let Some(exit) = failed.first() {
        return if failed.len() == 1 { *exit } else { Exit::Failed };
    }
    if timed_out {
        return Exit::TimedOut;
    }
    let absent = any(|outcome| matches!(outcome, Outcome::NoRequest));
    if any(|outcome| matches!(outcome, Outcome::Refused(_))) || (absent && named) { Exit::Findings } else { Exit::Ok }
}

#[cfg(test)]
mod tests {
    use ocm_core::Reason;

    use super::*;
    use crate::samples::row;

    #[test]
    fn a_scope_is_exactly_one_thing() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(scope(names(&["a", "b", "a"]), vec![], false, None).unwrap(), Scope::Names(names(&["a", "b"])));
        assert_eq!(scope(vec![], names(&["a"]), false, None).unwrap(), Scope::Names(names(&["a"])));
        assert_eq!(scope(vec![], vec![], true, None).unwrap(), Scope::All);
        assert!(scope(vec![], vec![], false, None).is_err());
        assert!(scope(vec![], vec![], false, Some(" ".into())).is_err());
        assert!(scope(names(&["A_b"]), vec![], false, None).is_err());
    }

    #[test]
    fn what_failed_has_the_exit_code_of_its_reason_and_several_of_different_codes_have_one() {
        let exit = |reasons: &[Reason]| {
            let failed = reasons.iter().map(|reason| row(Outcome::Failed(Failure::new(*reason, "no"))));
            let rows: Vec<Row> = [row(Outcome::Accepted), row(Outcome::NoRequest)].into_iter().chain(failed).collect();
            verdict(&rows, true, true)
        };
        assert_eq!(exit(&[Reason::Forbidden]), Exit::Failed);
        assert_eq!(exit(&[Reason::TimedOut, Reason::TimedOut]), Exit::TimedOut);
        assert_eq!(exit(&[Reason::Refused]), Exit::Findings);
        assert_eq!(exit(&[Reason::Kubeconfig]), Exit::Usage);
        assert_eq!(exit(&[Reason::TimedOut, Reason::Refused]), Exit::Failed);
        assert_eq!(verdict(&[row(Outcome::NoRequest)], true, true), Exit::TimedOut);
        assert_eq!(verdict(&[row(Outcome::NoRequest)], false, true), Exit::Findings);
    }

    #[test]
    fn who_declines_is_told_what_was_accepted_before() {
        assert_eq!(declined(&[]), "nothing was accepted");
        assert_eq!(declined(&[row(Outcome::NoRequest), row(Outcome::AlreadyAccepted)]), "nothing was accepted");
        let two = [row(Outcome::Accepted), row(Outcome::Approved)];
        assert_eq!(declined(&two[..1]), "nothing was accepted after the first cluster");
        assert_eq!(declined(&two), "nothing was accepted after the first 2 clusters");
    }

    #[test]
    fn an_approval_lasts_for_a_second_to_thirty_days_and_an_empty_reason_is_none() {
        let of = |expires: &str, reason: &str| approval(vec![], Some(reason.to_owned()), expires, false);
        assert_eq!(of("72h", " ticket 4711 ").unwrap().reason.as_deref(), Some("ticket 4711"));
        assert_eq!(of("30d", "r").unwrap().lasts, Duration::from_hours(720));
        for (expires, reason) in [("0s", "r"), ("999ms", "r"), ("30d1s", "r"), ("soon", "r"), ("1h", " ")] {
            assert!(of(expires, reason).is_err(), "{expires} {reason}");
        }
        assert!(of("1h", &"é".repeat(MAX_TEXT)).is_ok() && of("1h", &"é".repeat(MAX_TEXT + 1)).is_err());
        let groups = |count: usize| approval(vec!["g".to_owned(); count], None, "1h", false);
        assert!(groups(MAX_GROUPS).is_ok() && groups(MAX_GROUPS + 1).is_err());
    }

    #[test]
    fn only_a_whole_fingerprint_names_a_key() {
        let one = Scope::Names(vec!["a".into()]);
        let digits = "AB".repeat(32);
        assert_eq!(fingerprint_of(&digits, &one).unwrap(), format!("sha256:{}", "ab".repeat(32)));
        assert!(fingerprint_of("sha256:ab", &one).is_err());
        assert!(fingerprint_of(&digits, &Scope::All).is_err());
    }
}
