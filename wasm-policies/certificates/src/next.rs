//! What comes next, from what the hub holds.
//!
//! ```text
//! authority ─▶ bundle of every entry ─▶ (every API server knows it) ─▶ serving certificate
//! ```

use jiff::Timestamp;
use ocm_core::Failure;
use ocm_core::certificate::{Certificate, is_signed_by};
use ocm_core::policy_engine::{AUTHORITY_SECRET, Pair, SERVING_SECRET};

use crate::make::{Found, certificates_of, is_ours, is_usable, read, renew};

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The authority that signs from now on.
    Authority(Pair),
    /// What every entry is to have the API server trust, as PEM.
    Bundle(String),
    /// What the webhook serves with.
    Serving {
        /// Certificate and key.
        pair: Pair,
        /// Whether every API server has to know the bundle first: another authority than that of the present certificate,
        /// which still counts, has signed this one.
        waits: bool,
    },
}

/// The next write; none: everything is as it should be. Each is safe whenever the ones before it are done, and a hub on
/// which they are says so itself.
///
/// # Errors
/// When a certificate cannot be made.
pub fn next(found: &Found, now: Timestamp) -> Result<Option<Step>, Failure> {
    let wanted = renew(found, now)?;
    if found.authority.as_ref() != Some(&wanted.authority) {
        return Ok(Some(Step::Authority(wanted.authority)));
    }
    if found.bundles.iter().any(|bundle| bundle != wanted.bundle.as_bytes()) {
        return Ok(Some(Step::Bundle(wanted.bundle)));
    }
    if found.serving.as_ref() == Some(&wanted.serving) {
        return Ok(None);
    }
    let authority = certificates_of(&wanted.authority).into_iter().next().unwrap_or_default();
    let trusted = read(wanted.bundle.as_bytes());
    let waits = found
        .serving
        .as_ref()
        .filter(|pair| is_usable(pair, &trusted, now))
        .and_then(|pair| certificates_of(pair).into_iter().next())
        .is_some_and(|leaf| !is_signed_by(&leaf, &authority));
    Ok(Some(Step::Serving { pair: wanted.serving, waits }))
}

/// Which of what the hub holds somebody else has made, in words; none: nothing. Then nobody but them changes certificates
/// and bundles.
pub fn foreign(found: &Found) -> Option<String> {
    let first = |pair: &Option<Pair>| Certificate::read(certificates_of(pair.as_ref()?).first()?);
    if let Some(serving) = first(&found.serving).filter(|serving| !is_ours(&serving.issuer)) {
        return Some(format!("Secret {SERVING_SECRET} holds a certificate that {:?} has signed", serving.issuer));
    }
    let authority = first(&found.authority).filter(|authority| !is_ours(&authority.subject))?;
    Some(format!("Secret {AUTHORITY_SECRET} holds the certificate of {:?}", authority.subject))
}

/// Why what the webhook serves cannot be relied upon for long, in words; none: it can. Whether the API server trusts it is told
/// of certificates of our make alone: others may have certificates between them and their authority.
pub fn unusable_soon(found: &Found, now: Timestamp) -> Option<String> {
    let Some(pair) = &found.serving else { return Some(format!("Secret {SERVING_SECRET} holds no certificate")) };
    let Some(leaf) = certificates_of(pair).first().and_then(|der| Certificate::read(der)) else {
        return Some(format!("Secret {SERVING_SECRET} holds no certificate that can be read"));
    };
    let life = leaf.not_after.duration_since(leaf.not_before);
    if !leaf.is_valid(now) || leaf.not_after.duration_since(now) < life / 5 {
        return Some(format!("the certificate in Secret {SERVING_SECRET} ends at {}", leaf.not_after));
    }
    let trusts = |bundle: &Vec<u8>| is_usable(pair, &read(bundle), now);
    if is_ours(&leaf.issuer) && !found.bundles.iter().all(trusts) {
        return Some(format!("the API server does not trust the certificate in Secret {SERVING_SECRET}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn start() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn what_is_somebody_elses_is_told_of_before_it_ends() {
        let made = renew(&Found::default(), start()).unwrap();
        let found = Found {
            authority: Some(made.authority.clone()),
            serving: Some(made.serving.clone()),
            bundles: vec![made.bundle.clone().into_bytes()],
        };
        let of = |found: &Found, day: i64| unusable_soon(found, start() + DAY * i32::try_from(day).unwrap());
        assert_eq!((of(&found, 0), of(&found, 71)), (None, None));
        for day in [73, 89, 91, -2] {
            assert!(of(&found, day).is_some_and(|why| why.contains("ends at 2026-04-01")), "{day}");
        }
        let other = renew(&Found::default(), start()).unwrap();
        let strange = Found { bundles: vec![other.bundle.into_bytes()], ..found.clone() };
        assert!(of(&strange, 0).is_some_and(|why| why.contains("does not trust")));
        assert!(of(&Found { serving: None, ..found }, 0).is_some_and(|why| why.contains("holds no certificate")));
    }

    /// A hub with two entries, its slowest API server, and its slowest pod.
    #[derive(Clone, Debug)]
    struct Hub {
        found: Found,
        /// What the slowest API server knows of the entries.
        known: Vec<Vec<u8>>,
        /// What the slowest pod serves.
        served: Pair,
        /// How often each kind of write was done.
        writes: [usize; 3],
    }

    impl Hub {
        fn new(now: Timestamp) -> Self {
            let made = renew(&Found::default(), now).unwrap();
            let bundles = vec![made.bundle.into_bytes(); 2];
            let found = Found {
                authority: Some(made.authority),
                serving: Some(made.serving.clone()),
                bundles: bundles.clone(),
            };
            Self { found, known: bundles, served: made.serving, writes: [0; 3] }
        }

        /// Whether every API server, quick or slow, trusts every pod, quick or slow, in every entry.
        fn is_trusted(&self, now: Timestamp) -> bool {
            let pods = [&self.served, self.found.serving.as_ref().unwrap()];
            let both = self.known.iter().chain(&self.found.bundles);
            both.map(|bundle| read(bundle)).all(|trusted| pods.iter().all(|pod| is_usable(pod, &trusted, now)))
        }

        /// Time passes: everybody knows what there is.
        fn settle(&mut self) {
            self.known.clone_from(&self.found.bundles);
            self.served = self.found.serving.clone().unwrap();
        }

        /// A run that is killed after so many writes. A step of the bundle is a write for each entry.
        fn run(&mut self, now: Timestamp, mut left: usize) {
            let mut waited = false;
            while let Some(step) = next(&self.found, now).unwrap() {
                match step {
                    Step::Serving { waits: true, .. } if !waited => {
                        self.known.clone_from(&self.found.bundles);
                        waited = true;
                        continue;
                    }
                    _ if left == 0 => return,
                    Step::Authority(pair) => {
                        self.found.authority = Some(pair);
                        self.writes[0] += 1;
                    }
                    Step::Bundle(pem) => {
                        let other = self.found.bundles.iter_mut().find(|bundle| **bundle != pem.as_bytes());
                        *other.unwrap() = pem.into_bytes();
                        self.writes[1] += 1;
                    }
                    Step::Serving { pair, .. } => {
                        self.found.serving = Some(pair);
                        self.writes[2] += 1;
                    }
                }
                left -= 1;
                assert!(self.is_trusted(now), "{now}");
            }
        }
    }

    #[test]
    fn for_years_every_api_server_trusts_every_pod_wherever_runs_are_killed() {
        // Every 28 days, authority and certificate are old at the same time.
        for days in [5, 14, 28] {
            let (mut now, mut hub) = (start(), Hub::new(start()));
            let mut kills = 0;
            while now < start() + DAY * 800 {
                // Each run is killed one write later than the one before, and comes again while nobody has learned of it.
                for again in 0..4 {
                    kills += 1;
                    hub.run(now + SignedDuration::from_secs(again * 10), kills % 4);
                }
                assert!(hub.is_trusted(now), "{days} {now}");
                hub.settle();
                now += DAY * days;
                assert!(hub.is_trusted(now), "{days} {now}: nothing has ended before it was replaced");
            }
            let [authorities, bundles, serving] = hub.writes;
            assert!(authorities >= 3 && bundles >= 2 * authorities && serving >= 9, "{days}: {:?}", hub.writes);
        }
    }

    #[test]
    fn a_run_that_nobody_kills_leaves_nothing_to_do() {
        let later = start() + DAY * 250;
        let mut hub = Hub::new(start());
        hub.found.serving = Some(renew(&hub.found, start() + DAY * 185).unwrap().serving);
        hub.settle();
        let Some(Step::Authority(_)) = next(&hub.found, later).unwrap() else { panic!("the authority is old") };
        hub.run(later, usize::MAX);
        assert_eq!((next(&hub.found, later), hub.writes), (Ok(None), [1, 2, 1]));
        // The former authority stays trusted as long as what it has signed may be served.
        assert_eq!(read(&hub.found.bundles[0]).len(), 2);
    }

    #[test]
    fn only_another_authority_is_waited_for_and_not_while_nothing_counts() {
        let mut hub = Hub::new(start());
        let Some(Step::Serving { waits, .. }) = next(&hub.found, start() + DAY * 61).unwrap() else {
            panic!("the serving certificate is old")
        };
        assert!(!waits, "the authority is the same");
        // Nothing has been served for a month: nobody waits any longer than necessary.
        let late = start() + DAY * 280;
        let Some(Step::Authority(pair)) = next(&hub.found, late).unwrap() else { panic!("the authority is old") };
        hub.found.authority = Some(pair);
        let Some(Step::Bundle(pem)) = next(&hub.found, late).unwrap() else { panic!("it is to be trusted") };
        hub.found.bundles = vec![pem.into_bytes(); 2];
        let Some(Step::Serving { waits, .. }) = next(&hub.found, late).unwrap() else { panic!("none counts") };
        assert!(!waits);
    }

    #[test]
    fn a_bundle_that_is_wrong_in_one_entry_or_in_all_is_put_right() {
        let hub = Hub::new(start());
        let (good, other) = (hub.found.bundles[0].clone(), Hub::new(start()).found.bundles[0].clone());
        let foreign = foreign_pair("CN=somebody else").certificate.into_bytes();
        for wrong in [Vec::new(), foreign, b"no PEM".to_vec()] {
            for bundles in [vec![wrong.clone(), good.clone()], vec![good.clone(), wrong.clone()], vec![wrong; 2]] {
                let found = Found { bundles, ..hub.found.clone() };
                let step = Step::Bundle(String::from_utf8(good.clone()).unwrap());
                assert_eq!(next(&found, start()), Ok(Some(step)));
            }
        }
        // One of our make may have signed what is served elsewhere.
        let found = Found { bundles: vec![other.clone(), good.clone()], ..hub.found.clone() };
        let Some(Step::Bundle(both)) = next(&found, start()).unwrap() else { panic!("it lacks the authority") };
        assert!(both.as_bytes().starts_with(&good) && both.as_bytes().ends_with(&other));
        // Even in the middle of a rotation: the former authority is kept where only we write.
        let mut found = Found { bundles: vec![good; 2], ..hub.found };
        let later = start() + DAY * 50;
        found.authority = Some(renew(&Found { authority: None, ..found.clone() }, later).unwrap().authority);
        let Some(Step::Bundle(both)) = next(&found, later).unwrap() else { panic!("the new one is not trusted yet") };
        found.bundles = vec![Vec::new(); 2];
        assert_eq!(next(&found, later), Ok(Some(Step::Bundle(both))));
    }

    #[test]
    fn what_others_have_made_is_named_and_what_is_missing_or_broken_is_nobodys() {
        let found = Hub::new(start()).found;
        assert_eq!(foreign(&found), None);
        assert_eq!(foreign(&Found::default()), None);
        let broken = Pair { certificate: "x".to_owned(), key: "y".to_owned() };
        assert_eq!(foreign(&Found { serving: Some(broken), ..found.clone() }), None);
        let theirs = || Some(foreign_pair("CN=their CA"));
        let said = foreign(&Found { serving: theirs(), ..found.clone() }).unwrap();
        assert_eq!(said, "Secret ocm-policy-webhook-tls holds a certificate that \"CN=their CA\" has signed");
        let said = foreign(&Found { authority: theirs(), ..found }).unwrap();
        assert_eq!(said, "Secret ocm-policy-webhook-ca holds the certificate of \"CN=their CA\"");
    }

    fn foreign_pair(subject: &str) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject.trim_start_matches("CN="));
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Pair { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }
}
