//! Times in sentences, without a library of calendars.

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// A time in milliseconds since 1970 as RFC 3339 writes it, in UTC and whole seconds.
pub(crate) fn text(millis: i64) -> String {
    let seconds = millis.rem_euclid(DAY) / 1000;
    // Eras of 400 years, which begin with March, so that the leap day is the last one of its year.
    let days = millis.div_euclid(DAY) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_api_server_writes_them() {
        for (millis, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_709_208_000_250, "2024-02-29T12:00:00Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59Z"),
            (1_767_225_600_000, "2026-01-01T00:00:00Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(text(millis), written);
        }
    }
}
