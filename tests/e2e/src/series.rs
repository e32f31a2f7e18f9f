//! Series of cases, such as every write after which a program is cut off: `cargo verify` runs some of them, and
//! `cargo soak --parts series` all.

use std::env;

/// The variable of the environment with which all cases are run.
const WHOLE: &str = "SOAK_SERIES";

/// Whether all cases are meant.
#[must_use]
pub fn is_whole() -> bool {
    env::var_os(WHOLE).is_some()
}

/// The cases of a series that are meant: all, or those that stand for the others.
pub fn cases<T>(all: impl IntoIterator<Item = T>, stands_for_others: impl Fn(&T) -> bool) -> Vec<T> {
    let is_whole = is_whole();
    all.into_iter().filter(|case| is_whole || stands_for_others(case)).collect()
}
