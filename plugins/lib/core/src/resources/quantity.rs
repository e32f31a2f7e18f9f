//! Amounts of CPU and memory, as far as comparing them needs.

/// The amount that a Kubernetes quantity stands for; none for a text that is no quantity.
pub(super) fn parse(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match &text[end..] {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        exponent => return format!("{number}{exponent}").parse().ok().filter(|_| exponent.starts_with(['e', 'E'])),
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn units() {
        assert_eq!(parse("200m"), Some(0.2));
        assert_eq!(parse("1Gi"), Some(1_073_741_824.0));
        assert_eq!(parse("1e3"), Some(1000.0));
        assert_eq!(parse("16"), Some(16.0));
        for text in ["", "Mi", "1X", "one", "1ee"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
