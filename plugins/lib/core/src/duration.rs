//! Durations as Kubernetes people type them: `30s`, `2m30s`, `1h`, `500ms`, or a bare number of seconds.

use std::time::Duration;

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration such as 30s, 2m30s or 1h")]
pub struct NotADuration {
    text: String,
}

/// Reads a duration. Units: `ms`, `s`, `m`, `h`, `d`; several may follow each other; no unit means seconds.
///
/// # Errors
/// [`NotADuration`] when the text has another form or the sum does not fit.
pub fn parse(text: &str) -> Result<Duration, NotADuration> {
    let wrong = || NotADuration { text: text.to_owned() };
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let milliseconds = match &rest[..letters] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let part = number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = &rest[letters..];
    }
    Ok(total)
}

/// Writes an age or a remaining time the way kubectl's AGE column does: the two largest units, `5m12s`, `3h`, `2d4h`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds / 60, "m", seconds % 60, "s"),
        600..10_800 => format!("{}m", seconds / 60),
        10_800..28_800 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        28_800..172_800 => format!("{}h", seconds / 3_600),
        172_800..691_200 => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_type() {
        for (text, seconds) in [("0", 0), ("45", 45), ("30s", 30), ("2m30s", 150), ("1h", 3600), ("2d", 172_800)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("1s500ms"), Ok(Duration::from_millis(1500)));
    }

    #[test]
    fn refuses_everything_else() {
        for text in ["", "s", "5 m", "-1s", "1y", "1h-", "99999999999999999999s", "18446744073709551615h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_two_units_at_most() {
        for (seconds, text) in
            [(0, "0s"), (119, "119s"), (312, "5m12s"), (600, "10m"), (11_000, "3h3m"), (187_200, "2d4h")]
        {
            assert_eq!(human(Duration::from_secs(seconds)), text);
        }
    }
}
