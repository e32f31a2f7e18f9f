//! Which characters a terminal is shown. Standard library only, because the dispatcher compiles this file too.

/// Whether the standard library leaves the character as it is within a text: it can be seen, or belongs to the one before
/// it as accents do.
pub fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    String::from_iter(['a', c]).escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_or_hides_is_not_visible() {
        assert!("aZ0 ~ü東\u{301}".chars().all(is_visible));
        assert!(!"\n\t\u{1b}\u{7f}\u{9b}\u{200b}\u{202e}\u{2066}\u{feff}\u{e0041}".chars().any(is_visible));
    }
}
