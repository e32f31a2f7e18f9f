//! When the modules of policies are looked after, and what came of it: neither client nor clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ocm_policy_server::store::{self, Objects};
use ocm_policy_server::{OfPolicy, Source};
use tokio::time::Instant;

/// After how long a module is fetched again that could not be had: what may pass by itself, and what somebody has to put
/// right. It takes twice as long each time, up to the last.
const SOON: Duration = Duration::from_secs(10);
const LATER: Duration = Duration::from_secs(30);
const LAST: Duration = Duration::from_secs(300);

/// Why a module cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// A stable word.
    pub(crate) word: &'static str,
    /// The sentence, with what to do.
    pub(crate) message: String,
    /// What it says in our own words: those of a server may be others each time.
    pub(crate) own: String,
    /// Whether it may pass by itself.
    pub(crate) may_pass: bool,
}

impl Trouble {
    /// One of which every word counts.
    pub(crate) fn new(word: &'static str, message: String, may_pass: bool) -> Self {
        Self { word, own: message.clone(), message, may_pass }
    }

    fn is_news(&self, before: Option<&Fetched>) -> bool {
        match before {
            Some(Fetched::Failed(before)) => (before.word, &before.own) != (self.word, &self.own),
            _ => true,
        }
    }
}

/// What became of the module of a policy.
struct Attempt {
    /// What was wanted then.
    source: Source,
    /// Whether it is being looked after.
    runs: bool,
    /// What came of it the last time; none: it was not looked after yet.
    outcome: Option<Fetched>,
    /// How often it could not be had, one after the other.
    failures: u32,
    at: Instant,
}

enum Fetched {
    /// It is kept in these objects.
    Kept(Objects),
    /// It cannot be had.
    Failed(Trouble),
}

/// What became of all of them.
#[derive(Default)]
pub(crate) struct Attempts(BTreeMap<OfPolicy, Attempt>);

impl Attempts {
    /// The next modules to look after, which are then being looked after: those first that were so the longest ago.
    pub(crate) fn due(
        &mut self,
        mut wanted: BTreeMap<OfPolicy, Source>,
        most: usize,
        now: Instant,
    ) -> Vec<(OfPolicy, Source)> {
        wanted.retain(|_, source| source.is_fetched());
        self.0.retain(|name, _| wanted.contains_key(name));
        let mut running: BTreeSet<String> =
            self.0.values().filter(|one| one.runs).filter_map(|one| place(&one.source)).collect();
        let before = |name: &OfPolicy, source: &Source| self.0.get(name).filter(|before| before.source == *source);
        let mut due: Vec<_> = wanted
            .into_iter()
            .filter(|(name, source)| before(name, source).is_none_or(|before| before.is_due(now)))
            .collect();
        due.sort_by_key(|(name, source)| before(name, source).map(|before| before.at));
        // Whoever wants the same waits for it.
        due.retain(|(_, source)| place(source).is_none_or(|place| running.insert(place)));
        due.truncate(most);
        for (name, source) in &due {
            // Until more is known, what was said of it stands.
            let before = self.0.remove(name).filter(|before| before.source == *source);
            let (outcome, failures) = before.map_or((None, 0), |before| (before.outcome, before.failures));
            self.0.insert(name.clone(), Attempt { source: source.clone(), runs: true, outcome, failures, at: now });
        }
        due
    }

    /// Notes what came of one. The trouble, if it is news.
    pub(crate) fn note(
        &mut self,
        name: &OfPolicy,
        source: &Source,
        made: Result<Objects, Trouble>,
        now: Instant,
    ) -> Option<Trouble> {
        // Of what was wanted before, nobody wants to know.
        let attempt = self.0.get_mut(name).filter(|attempt| attempt.source == *source)?;
        (attempt.runs, attempt.at) = (false, now);
        match made {
            Ok(objects) => {
                (attempt.outcome, attempt.failures) = (Some(Fetched::Kept(objects)), 0);
                None
            }
            Err(trouble) => {
                attempt.failures = attempt.failures.saturating_add(1);
                if !trouble.is_news(attempt.outcome.as_ref()) {
                    return None;
                }
                attempt.outcome = Some(Fetched::Failed(trouble.clone()));
                Some(trouble)
            }
        }
    }

    /// Those that were being looked after are so no more.
    pub(crate) fn interrupted(&mut self) {
        self.0.values_mut().for_each(|attempt| attempt.runs = false);
    }

    /// Why this module cannot be had, where that is known.
    pub(crate) fn trouble(&self, name: &OfPolicy, source: Option<&Source>) -> Option<&Trouble> {
        // What came of another source tells nothing of this one.
        match self.0.get(name).filter(|attempt| source == Some(&attempt.source))?.outcome.as_ref()? {
            Fetched::Failed(trouble) => Some(trouble),
            Fetched::Kept(_) => None,
        }
    }

    /// Has looked after again what is not kept in objects as they were; these are there.
    pub(crate) fn compare(&mut self, there: &Objects) {
        let is_there = |(name, version): (&String, &String)| there.get(name) == Some(version);
        self.0.retain(|_, attempt| match &attempt.outcome {
            Some(Fetched::Kept(objects)) if !attempt.runs => objects.iter().all(is_there),
            _ => true,
        });
    }

    /// The names of all objects that modules of these sources are kept in; none: of some it is not known.
    pub(crate) fn kept(&self, sources: &BTreeMap<OfPolicy, Source>) -> Option<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for (name, source) in sources {
            match source {
                Source::Oci(_) | Source::Url(_) => {
                    let attempt = self.0.get(name).filter(|one| one.source == *source && !one.runs)?;
                    let Some(Fetched::Kept(objects)) = &attempt.outcome else { return None };
                    names.extend(objects.keys().cloned());
                }
                Source::Unknown => return None,
                _ => {}
            }
        }
        Some(names)
    }
}

impl Attempt {
    /// Whether something is to be done for it.
    fn is_due(&self, now: Instant) -> bool {
        match &self.outcome {
            _ if self.runs => false,
            Some(Fetched::Kept(_)) => false,
            Some(Fetched::Failed(trouble)) => now.duration_since(self.at) >= pause(trouble, self.failures),
            None => true,
        }
    }
}

/// How long to wait after so many failures, one after the other.
fn pause(trouble: &Trouble, failures: u32) -> Duration {
    let first = if trouble.may_pass { SOON } else { LATER };
    first.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1))).min(LAST)
}

/// What is the same for sources of which one module is fetched.
fn place(source: &Source) -> Option<String> {
    match source {
        Source::Oci(image) => store::image_name(image),
        Source::Url(file) => Some(file.sha256.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::policy::{ModuleSignature, OciSource, UrlSource};

    use super::*;

    fn of(name: &str) -> OfPolicy {
        OfPolicy { name: name.to_owned(), candidate: false }
    }

    fn url(digit: char) -> Source {
        let sha256 = digit.to_string().repeat(64);
        Source::Url(UrlSource { url: format!("https://r.example/{digit}"), sha256, ca_certificates: None })
    }

    fn image(key: Option<&str>) -> Source {
        let signature = key.map(|key| ModuleSignature { public_key: key.to_owned() });
        let image = format!("r.example/p@sha256:{}", "1".repeat(64));
        Source::Oci(Box::new(OciSource { image, signature, ..OciSource::default() }))
    }

    fn wanted(sources: &[(&str, Source)]) -> BTreeMap<OfPolicy, Source> {
        sources.iter().map(|(name, source)| (of(name), source.clone())).collect()
    }

    fn names(due: &[(OfPolicy, Source)]) -> Vec<&str> {
        due.iter().map(|(of, _)| of.name.as_str()).collect()
    }

    fn failed(word: &'static str, said: &str) -> Result<Objects, Trouble> {
        let own = format!("{word} in our words");
        Err(Trouble { word, message: format!("{own}: {said}"), own, may_pass: true })
    }

    fn kept(objects: &[(&str, &str)]) -> Objects {
        objects.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
    }

    #[test]
    fn those_that_wait_the_longest_are_looked_after_first() {
        let all = wanted(&[("a", url('a')), ("b", url('b')), ("c", url('c')), ("d", Source::Builtin("x".to_owned()))]);
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        assert_eq!(names(&attempts.due(all.clone(), 2, start)), ["a", "b"]);
        // A registry that is away keeps nobody from another one.
        for name in ["b", "a"] {
            attempts.note(&of(name), &all[&of(name)], failed("SourceUnreachable", ""), start);
        }
        let later = start + SOON;
        assert_eq!(names(&attempts.due(all.clone(), 1, later)), ["c"]);
        attempts.note(&of("c"), &all[&of("c")], Ok(kept(&[("c", "1")])), later);
        attempts.due(all.clone(), 1, later);
        attempts.note(&of("a"), &all[&of("a")], failed("SourceUnreachable", ""), later);
        assert_eq!(names(&attempts.due(all.clone(), 9, start + LAST)), ["b", "a"]);
        assert!(attempts.due(wanted(&[]), 9, later).is_empty() && attempts.0.is_empty());
    }

    #[test]
    fn pauses_become_longer_until_it_is_there_or_another_one_is_wanted() {
        let (mut attempts, mut now) = (Attempts::default(), Instant::now());
        let all = wanted(&[("a", url('a'))]);
        for seconds in [10, 20, 40, 80, 160, 300, 300] {
            assert_eq!(attempts.due(all.clone(), 1, now).len(), 1);
            assert!(attempts.due(all.clone(), 1, now + LAST).is_empty(), "it is being looked after");
            attempts.note(&of("a"), &url('a'), failed("SourceUnreachable", ""), now);
            assert!(attempts.due(all.clone(), 1, now + Duration::from_secs(seconds - 1)).is_empty(), "{seconds}");
            now += Duration::from_secs(seconds);
        }
        let other = wanted(&[("a", url('b'))]);
        assert_eq!(attempts.due(other.clone(), 1, now).len(), 1, "at once");
        assert_eq!(attempts.note(&of("a"), &url('a'), failed("SourceUnreachable", ""), now), None);
        assert_eq!(attempts.trouble(&of("a"), Some(&url('b'))), None);
        attempts.note(&of("a"), &url('b'), failed("SourceUnreachable", ""), now);
        assert_eq!(attempts.due(other, 1, now + SOON).len(), 1, "another one begins anew");
        let trouble = Trouble::new("SignatureWrong", String::new(), false);
        assert_eq!([1, 2, u32::MAX].map(|failures| pause(&trouble, failures)), [LATER, LATER * 2, LAST]);
    }

    #[test]
    fn one_module_is_fetched_once_for_all_who_want_it() {
        let all = wanted(&[("a", image(None)), ("b", image(Some("k"))), ("c", url('c')), ("d", url('c'))]);
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        assert_eq!(names(&attempts.due(all.clone(), 9, now)), ["a", "c"]);
        assert!(attempts.due(all.clone(), 9, now).is_empty());
        attempts.note(&of("a"), &image(None), Ok(kept(&[("i", "1")])), now);
        assert_eq!(names(&attempts.due(all, 9, now)), ["b"]);
    }

    #[test]
    fn what_a_server_says_otherwise_each_time_is_no_news() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        let all = wanted(&[("a", url('a'))]);
        attempts.due(all, 1, now);
        let mut note = |word, said| attempts.note(&of("a"), &url('a'), failed(word, said), now).is_some();
        assert!(note("SourceRefused", "request 1") && !note("SourceRefused", "request 2"));
        assert!(note("SourceUnreachable", "request 2"));
        let told = attempts.trouble(&of("a"), Some(&url('a'))).unwrap();
        assert!(told.message.ends_with("request 2"), "{told:?}");
        attempts.note(&of("a"), &url('a'), failed("SourceUnreachable", "request 3"), now);
        assert!(attempts.trouble(&of("a"), Some(&url('a'))).unwrap().message.ends_with("request 2"));
    }

    #[test]
    fn what_somebody_has_changed_is_looked_after_again() {
        let all = wanted(&[("a", url('a')), ("b", url('b'))]);
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        attempts.due(all.clone(), 9, now);
        assert_eq!(attempts.kept(&all), None);
        attempts.note(&of("a"), &url('a'), Ok(kept(&[("x", "1"), ("y", "2")])), now);
        assert_eq!(attempts.kept(&all), None, "what belongs to the other one is not known");
        attempts.note(&of("b"), &url('b'), Ok(kept(&[("z", "3")])), now);
        assert_eq!(attempts.kept(&all), Some(["x", "y", "z"].map(str::to_owned).into()));
        attempts.compare(&kept(&[("x", "1"), ("y", "2"), ("z", "3"), ("other", "4")]));
        assert!(attempts.due(all.clone(), 9, now).is_empty());
        // One was written by somebody, and one is gone.
        attempts.compare(&kept(&[("x", "1"), ("y", "7"), ("z", "3")]));
        assert_eq!((names(&attempts.due(all.clone(), 9, now)), attempts.kept(&all)), (vec!["a"], None));
        attempts.compare(&kept(&[]));
        assert_eq!(names(&attempts.due(all.clone(), 9, now)), ["b"], "what is being looked after stays so");
        assert_eq!(attempts.kept(&wanted(&[("u", Source::Unknown)])), None);
    }
}
