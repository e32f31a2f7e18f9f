//! At certain times no clusters come in.

use ocm_policy_sdk::{
    Answer, ManifestBuilder, Operation, Policy, Request, deny, glob, hold, hub, manifest, no_opinion, time,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug)]
pub struct FreezeWindow {
    windows: Vec<Span>,
    denies: bool,
    except_users: Vec<String>,
    except_groups: Vec<String>,
}

/// Settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    windows: Vec<Window>,
    /// Whether requests are refused instead of held.
    #[serde(default)]
    deny: bool,
    /// Users, as patterns, whom this does not bind.
    #[serde(default)]
    except_users: Vec<String>,
    #[serde(default)]
    except_groups: Vec<String>,
}

/// Times of some days, or from one moment to another. UTC.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Window {
    /// Days on which it begins; nothing: all.
    days: Vec<Day>,
    from: Option<String>,
    to: Option<String>,
    start: Option<String>,
    end: Option<String>,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "they say what they are")]
pub enum Day {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

#[derive(Debug)]
enum Span {
    /// Days of the week from Monday, minute of the day, length in minutes.
    Weekly {
        days: [bool; 7],
        from: i64,
        minutes: i64,
    },
    Once {
        start: i64,
        end: i64,
    },
}

impl Window {
    fn read(&self) -> Result<Span, String> {
        let clock =
            |text: &str| time::clock(text).ok_or_else(|| format!("{text:?} must be a time of day such as 06:30"));
        let moment = |text: &str| {
            time::parse(text).ok_or_else(|| format!("{text:?} must be a time such as 2026-12-24T00:00:00Z"))
        };
        match (&self.from, &self.to, &self.start, &self.end) {
            (None, None, Some(start), Some(end)) if self.days.is_empty() => {
                let (start, end) = (moment(start)?, moment(end)?);
                if start < end {
                    Ok(Span::Once { start, end })
                } else {
                    Err("a window ends before it begins".to_owned())
                }
            }
            (from, to, None, None) if from.is_some() == to.is_some() && (from.is_some() || !self.days.is_empty()) => {
                // Without times it lasts from midnight to midnight.
                let from = from.as_deref().map_or(Ok(0), clock)?;
                let to = to.as_deref().map_or(Ok(0), clock)?;
                if from == 24 * 60 {
                    return Err("a window cannot begin at 24:00: write 00:00".to_owned());
                }
                let mut days = [self.days.is_empty(); 7];
                self.days.iter().for_each(|day| days[*day as usize] = true);
                // A window that does not end after it begins goes on into the next day.
                let minutes = if to > from { to - from } else { to - from + 24 * 60 };
                Ok(Span::Weekly { days, from, minutes })
            }
            _ => Err("a window has from and to, perhaps with days; or days; or start and end".to_owned()),
        }
    }
}

impl Span {
    /// When the window ends that this moment is in.
    fn end(&self, now: i64) -> Option<i64> {
        match self {
            Self::Once { start, end } => (*start..*end).contains(&now).then_some(*end),
            Self::Weekly { days, from, minutes } => {
                let today = now.div_euclid(time::DAY) * time::DAY;
                [today, today - time::DAY].into_iter().find_map(|day| {
                    let begins = day + from * time::MINUTE;
                    let ends = begins + minutes * time::MINUTE;
                    let on = usize::try_from(time::weekday(day)).is_ok_and(|day| days[day]);
                    (on && (begins..ends).contains(&now)).then_some(ends)
                })
            }
        }
    }
}

impl Policy for FreezeWindow {
    type Settings = Settings;

    fn manifest() -> ManifestBuilder {
        manifest("freeze-window", env!("CARGO_PKG_VERSION"), "Lets no clusters in at certain times")
            .judges([Operation::Create, Operation::Join, Operation::Accept, Operation::Request, Operation::Approve])
            .gives_codes(hub::CLUSTER_CODES)
            .gives("Frozen", "No clusters come in at this time")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Settings) -> Result<Self, Vec<String>> {
        let Settings { windows, deny, except_users, except_groups } = settings;
        let mut wrong: Vec<String> = except_users.iter().filter_map(|pattern| glob::check(pattern).err()).collect();
        let mut spans = Vec::new();
        for window in &windows {
            match window.read() {
                Ok(span) => spans.push(span),
                Err(error) => wrong.push(error),
            }
        }
        if wrong.is_empty() {
            Ok(Self { windows: spans, denies: deny, except_users, except_groups })
        } else {
            Err(wrong)
        }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request)
    }
}

impl FreezeWindow {
    fn judge(&self, request: &Request<'_>) -> Answer {
        // Who is in stays in: agents renew their certificates, and add-ons get theirs, at any time.
        if hub::is_denial(request) || hub::is_renewal(request) || hub::is_addons(request) {
            return no_opinion();
        }
        match hub::cluster_name(request) {
            Err(violation) => return hub::violated(violation),
            // It has nothing to do with clusters.
            Ok(None) if request.csr().is_some() => return no_opinion(),
            Ok(_) => {}
        }
        // One window may go over into the next.
        let mut end = None;
        while let Some(later) = self.windows.iter().filter_map(|window| window.end(end.unwrap_or(request.now()))).max()
        {
            end = Some(later);
            // Windows without a gap would never end.
            if later - request.now() > 14 * time::DAY {
                break;
            }
        }
        let Some(end) = end else { return no_opinion() };
        let asker = hub::asker(request);
        let excepted = glob::any(&self.except_users, hub::asking_user(request))
            || self.except_groups.iter().any(|group| hub::is_in(asker, group));
        if excepted && hub::lacks(asker).is_none() {
            return no_opinion();
        }
        let message = "no clusters come in at this time";
        if self.denies {
            return deny("Frozen", message);
        }
        let seconds = ((end - request.now() + 999) / 1000).max(1);
        hold("Frozen", message).again_in(u32::try_from(seconds).unwrap_or(u32::MAX))
    }
}

ocm_policy_sdk::export!(FreezeWindow);
