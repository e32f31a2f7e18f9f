//! Times without a library of calendars: milliseconds since 1970, UTC.

/// Milliseconds of a minute.
pub const MINUTE: i64 = 60_000;
/// Milliseconds of an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Milliseconds of a day.
pub const DAY: i64 = 24 * HOUR;

/// Reads a time such as `2026-01-31T23:59:59Z`, with or without a fraction, `Z` or an offset (RFC 3339). No leap
/// seconds.
pub fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| bytes.get(*at) != Some(mark)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=12).contains(&month) || !(1..=longest).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut at = 19;
    let mut millis = 0;
    if bytes.get(at) == Some(&b'.') {
        let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        for place in 0..3 {
            millis = millis * 10 + if place < digits { i64::from(bytes[at + 1 + place] - b'0') } else { 0 };
        }
        at += 1 + digits;
    }
    let offset = match (bytes.get(at)?, bytes.len() - at) {
        (b'Z', 1) => 0,
        (sign @ (b'+' | b'-'), 6) if bytes[at + 3] == b':' => {
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            let offset = hours * HOUR + minutes * MINUTE;
            if hours > 23 || minutes > 59 {
                return None;
            }
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    let time = hour * HOUR + minute * MINUTE + second * 1000 + millis;
    Some(days(year, month, day) * DAY + time - offset)
}

/// Days since 1970 of a date in the Gregorian calendar, by eras of 400 years that begin with March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The day of the week of a time: 0 is Monday.
pub fn weekday(millis: i64) -> i64 {
    // The first of January 1970 was a Thursday.
    (millis.div_euclid(DAY) + 3).rem_euclid(7)
}

/// Minutes of the day of a text such as `06:30`; `24:00` is the end of the day.
pub fn clock(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |text: &str| {
        (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse::<i64>().ok())
    };
    let (hours, minutes) = (two(hours)??, two(minutes)??);
    (minutes < 60 && hours * 60 + minutes <= 24 * 60).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse("2026-01-01T00:00:00Z"), Some(1_767_225_600_000));
        assert_eq!(parse("2024-02-29T12:00:00.25Z"), Some(1_709_208_000_250));
        assert_eq!(parse("2026-01-01T01:00:00+01:00"), Some(1_767_225_600_000));
        assert_eq!(parse("2025-12-31T23:30:00.123456-00:30"), Some(1_767_225_600_123));
        for bad in [
            "",
            "2026-01-01",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00Zx",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00+01:00x",
            "2026-01-01 00:00:00Z",
            "20é6-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn days_of_the_week_and_clocks() {
        assert_eq!((weekday(0), weekday(1_767_225_600_000), weekday(-1)), (3, 3, 2));
        assert_eq!((clock("06:30"), clock("24:00")), (Some(390), Some(1440)));
        assert_eq!((clock("24:01"), clock("6:30"), clock("06:60"), clock("0630")), (None, None, None, None));
    }
}
