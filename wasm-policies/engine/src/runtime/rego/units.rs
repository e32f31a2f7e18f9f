//! Built-in functions that read quantities, exactly: numbers are decimal fractions until the end.

use serde_json::Value;

use super::term::Term;

const KI: i128 = 1 << 10;

/// `units.parse`: `10G`, `5Ki`, `100m`.
pub(super) fn parse(quantity: &Term) -> Result<Value, String> {
    let text = quantity.text()?.replace('"', "");
    let (number, unit) = split(&text, quantity)?;
    // Only the first letter tells m from M.
    let unit = match unit.chars().next() {
        Some(first) => format!("{first}{}", unit[first.len_utf8()..].to_lowercase()),
        None => String::new(),
    };
    let (times, thousandths) = match unit.as_str() {
        "m" => (1, true),
        "" => (1, false),
        "k" | "K" => (1000, false),
        "M" => (1000_i128.pow(2), false),
        "g" | "G" => (1000_i128.pow(3), false),
        "t" | "T" => (1000_i128.pow(4), false),
        "p" | "P" => (1000_i128.pow(5), false),
        "e" | "E" => (1000_i128.pow(6), false),
        "ki" | "Ki" => (KI, false),
        "mi" | "Mi" => (KI.pow(2), false),
        "gi" | "Gi" => (KI.pow(3), false),
        "ti" | "Ti" => (KI.pow(4), false),
        "pi" | "Pi" => (KI.pow(5), false),
        "ei" | "Ei" => (KI.pow(6), false),
        _ => return Err(format!("unit {unit:?} is not known")),
    };
    let Decimal { digits, places } = Decimal::read(number, quantity)?.times(times, quantity)?;
    let places = places + if thousandths { 3 } else { 0 };
    let whole = places <= 38 && digits % 10_i128.pow(places) == 0;
    match whole {
        true => number_of(digits / 10_i128.pow(places)),
        // Ten digits behind the point, as Rego writes them.
        false => format!("{digits}e-{places}")
            .parse::<f64>()
            .ok()
            .and_then(|number| format!("{number:.10}").parse::<f64>().ok())
            .map(Value::from)
            .ok_or_else(|| unreadable(quantity)),
    }
}

/// `units.parse_bytes`: `10GB`, `5KiB`; a fraction of a byte is cut off.
pub(super) fn parse_bytes(quantity: &Term) -> Result<Value, String> {
    let text = quantity.text()?.to_lowercase().replace('"', "");
    let (number, unit) = split(&text, quantity)?;
    let times = match unit {
        "" => 1,
        "kb" | "k" => 1000,
        "mb" | "m" => 1000_i128.pow(2),
        "gb" | "g" => 1000_i128.pow(3),
        "tb" | "t" => 1000_i128.pow(4),
        "pb" | "p" => 1000_i128.pow(5),
        "eb" | "e" => 1000_i128.pow(6),
        "kib" | "ki" => KI,
        "mib" | "mi" => KI.pow(2),
        "gib" | "gi" => KI.pow(3),
        "tib" | "ti" => KI.pow(4),
        "pib" | "pi" => KI.pow(5),
        "eib" | "ei" => KI.pow(6),
        _ => return Err(format!("unit {unit:?} is not known")),
    };
    let Decimal { digits, places } = Decimal::read(number, quantity)?.times(times, quantity)?;
    number_of(if places > 38 { 0 } else { digits / 10_i128.pow(places) })
}

fn unreadable(quantity: &Term) -> String {
    format!("{} is no quantity", quantity.shown())
}

fn number_of(number: i128) -> Result<Value, String> {
    let small = i64::try_from(number).map(Value::from);
    small.or_else(|_| u64::try_from(number).map(Value::from)).map_err(|_| format!("{number} is too large"))
}

/// The number of a quantity and its unit. An `e` belongs to the number where digits follow it.
fn split<'q>(text: &'q str, quantity: &Term) -> Result<(&'q str, &'q str), String> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'0'..=b'9' | b'.' => end += 1,
            b'+' | b'-' if end == 0 => end += 1,
            b'e' | b'E' if digit(end + 1) => end += 1,
            b'e' | b'E' if matches!(bytes.get(end + 1), Some(b'+' | b'-')) && digit(end + 2) => end += 2,
            _ => break,
        }
    }
    match text.split_at(end) {
        ("", _) => Err(unreadable(quantity)),
        parts => Ok(parts),
    }
}

/// A decimal fraction: so many digits, of which so many places stand behind the point.
struct Decimal {
    digits: i128,
    places: u32,
}

impl Decimal {
    fn read(text: &str, quantity: &Term) -> Result<Self, String> {
        let bad = || unreadable(quantity);
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| bad())?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if !digits.bytes().any(|byte| byte.is_ascii_digit()) || fraction.contains(['+', '-', '.']) {
            return Err(bad());
        }
        let digits: i128 = digits.parse().map_err(|_| bad())?;
        let places =
            i32::try_from(fraction.len()).ok().and_then(|places| places.checked_sub(exponent)).ok_or_else(bad)?;
        match u32::try_from(places) {
            Ok(places) if places <= 400 => Ok(Self { digits, places }),
            Ok(_) => Err(bad()),
            Err(_) => {
                let power = 10_i128.checked_pow(places.unsigned_abs()).ok_or_else(bad)?;
                Ok(Self { digits: digits.checked_mul(power).ok_or_else(bad)?, places: 0 })
            }
        }
    }

    fn times(self, factor: i128, quantity: &Term) -> Result<Self, String> {
        let digits = self.digits.checked_mul(factor).ok_or_else(|| unreadable(quantity))?;
        Ok(Self { digits, ..self })
    }
}
