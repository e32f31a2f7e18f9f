//! Built-in functions about time, which is nanoseconds since 1970. There are no time zones but UTC: which others there
//! are differs from machine to machine.

use serde_json::{Value, json};

use super::term::Term;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// A moment in UTC.
struct Moment {
    /// Days since 1970.
    days: i64,
    /// Seconds since midnight.
    seconds: i64,
    nanoseconds: i64,
}

impl Moment {
    /// Reads a number, or an array of a number and a time zone.
    fn of(time: &Term) -> Result<Self, String> {
        let number = match time {
            Term::Array(parts) => match parts.as_slice() {
                [number, Term::Text(zone)] if matches!(zone.as_str(), "" | "UTC") => number,
                [_, Term::Text(zone)] => return Err(format!("the time zone {zone:?} is not there; UTC is")),
                _ => return Err(format!("{} must be a time", time.shown())),
            },
            number => number,
        };
        let total = number.integer()?;
        let seconds = total.div_euclid(SECOND);
        Ok(Self {
            days: seconds.div_euclid(DAY),
            seconds: seconds.rem_euclid(DAY),
            nanoseconds: total.rem_euclid(SECOND),
        })
    }

    fn total(&self) -> Result<Value, String> {
        let seconds = self.days.checked_mul(DAY).and_then(|days| days.checked_add(self.seconds));
        let total = seconds.and_then(|seconds| {
            i64::try_from(i128::from(seconds) * i128::from(SECOND) + i128::from(self.nanoseconds)).ok()
        });
        total.map(Value::from).ok_or_else(|| "the time is outside of the range of nanoseconds".to_owned())
    }

    fn clock(&self) -> [i64; 3] {
        [self.seconds / 3600, self.seconds / 60 % 60, self.seconds % 60]
    }
}

/// Days since 1970 of a date of the Gregorian calendar. Days may be any number; months are 1 to 12.
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    // Years that begin in March end with the day that leap years have more.
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era.checked_mul(146_097)?.checked_add(days - 719_468)?.checked_add(day - 1)
}

/// Year, month and day of a number of days since 1970.
fn date_of(days: i64) -> [i64; 3] {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    [year + era * 400 + i64::from(month <= 2), month, day]
}

/// `time.date`.
pub(super) fn date(time: &Term) -> Result<Value, String> {
    Moment::of(time).map(|moment| json!(date_of(moment.days)))
}

/// `time.clock`.
pub(super) fn clock(time: &Term) -> Result<Value, String> {
    Moment::of(time).map(|moment| json!(moment.clock()))
}

/// `time.weekday`.
pub(super) fn weekday(time: &Term) -> Result<Value, String> {
    // 1970 began on a Thursday.
    const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    let day = usize::try_from(Moment::of(time)?.days.rem_euclid(7)).unwrap_or(0);
    Ok(DAYS[day].into())
}

/// `time.add_date`: what a month has too many days for goes on in the next one.
pub(super) fn add_date(time: &Term, years: &Term, months: &Term, days: &Term) -> Result<Value, String> {
    let moment = Moment::of(time)?;
    let outside = || "the time is outside of the range of nanoseconds".to_owned();
    let [year, month, day] = date_of(moment.days);
    let months = (month - 1).checked_add(months.integer()?).ok_or_else(outside)?;
    let year = year.checked_add(years.integer()?).and_then(|year| year.checked_add(months.div_euclid(12)));
    let day = day.checked_add(days.integer()?).ok_or_else(outside)?;
    let days = year.and_then(|year| days_of(year, months.rem_euclid(12) + 1, day)).ok_or_else(outside)?;
    Moment { days, ..moment }.total()
}

/// `time.diff`: years, months, days, hours, minutes and seconds between two times, whichever comes first.
pub(super) fn diff(a: &Term, b: &Term) -> Result<Value, String> {
    let (a, b) = (Moment::of(a)?, Moment::of(b)?);
    let key = |moment: &Moment| (moment.days, moment.seconds, moment.nanoseconds);
    let (a, b) = if key(&a) > key(&b) { (b, a) } else { (a, b) };
    let [from, to] = [&a, &b].map(|moment| {
        let ([year, month, day], [hour, minute, second]) = (date_of(moment.days), moment.clock());
        [year, month, day, hour, minute, second]
    });
    let mut out: [i64; 6] = std::array::from_fn(|part| to[part] - from[part]);
    // What is missing is taken from the part before. A month has as many days as the one that it begins in.
    let month = days_of(from[0] + from[1] / 12, from[1] % 12 + 1, 1).zip(days_of(from[0], from[1], 1));
    let month = month.map_or(30, |(next, this)| next - this);
    for (part, whole) in [(5, 60), (4, 60), (3, 24), (2, month), (1, 12)] {
        if out[part] < 0 {
            out[part] += whole;
            out[part - 1] -= 1;
        }
    }
    Ok(json!(out))
}

/// `time.parse_rfc3339_ns`.
pub(super) fn parse_rfc3339(time: &Term) -> Result<Value, String> {
    rfc3339(time.text()?).ok_or_else(|| format!("{} must be a time as of RFC 3339", time.shown()))?.total()
}

fn rfc3339(text: &str) -> Option<Moment> {
    let number = |at: usize, digits: usize| {
        let part = text.get(at..at + digits)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<i64>().ok())?
    };
    let signs = [(4, '-'), (7, '-'), (10, 'T'), (13, ':'), (16, ':')];
    let [year, month, day] = [number(0, 4)?, number(5, 2)?, number(8, 2)?];
    let [hour, minute, second] = [number(11, 2)?, number(14, 2)?, number(17, 2)?];
    if signs.iter().any(|(at, sign)| text.get(*at..=*at).is_none_or(|found| !found.starts_with(*sign))) {
        return None;
    }
    if !(1..=12).contains(&month) || day < 1 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_of(year, month, day)?;
    if date_of(days) != [year, month, day] {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => fraction.split_at(fraction.find(|c: char| !c.is_ascii_digit())?),
        None => ("", rest),
    };
    if rest.starts_with(['.', ',']) && fraction.is_empty() {
        return None;
    }
    // What is finer than nanoseconds is cut off.
    let nanoseconds = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let east = match zone.as_bytes() {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let digit = |byte: &u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
            let (hours, minutes) = (digit(h1)? * 10 + digit(h2)?, digit(m1)? * 10 + digit(m2)?);
            if hours > 24 || minutes > 60 {
                return None;
            }
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let seconds = days.checked_mul(DAY)? + hour * 3600 + minute * 60 + second - east;
    Some(Moment { days: seconds.div_euclid(DAY), seconds: seconds.rem_euclid(DAY), nanoseconds })
}

/// `time.parse_duration_ns`: `1h30m`, `-5s`, `2d`, `1w`, `1y`.
pub(super) fn parse_duration(duration: &Term) -> Result<Value, String> {
    let text = duration.text()?;
    let total = nanoseconds(text).and_then(|total| i64::try_from(total).ok());
    total.map(Value::from).ok_or_else(|| format!("{} is no duration", duration.shown()))
}

fn nanoseconds(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        let unit_end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_end);
        let each: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "w" => 604_800_000_000_000,
            "y" => 31_536_000_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) || number.len() > 30 {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        // More than 18 places make no difference to nanoseconds.
        let fraction = fraction.get(..18).unwrap_or(fraction);
        let places = u32::try_from(fraction.len()).ok()?;
        let parts: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
        let piece = whole.checked_mul(each)?.checked_add(parts.checked_mul(each)? / 10_i128.pow(places))?;
        total = total.checked_add(piece)?;
        rest = behind;
    }
    Some(sign * total)
}
