//! Kinds that a cluster may not serve: of such a kind there is nothing, and that is no error.

use ocm_core::{Failure, Reason};

/// What a list came to; nothing, where the kind is not served.
///
/// # Errors
/// Every other failure of the request.
pub(crate) fn or_nothing<T>(listed: Result<Vec<T>, Failure>) -> Result<Vec<T>, Failure> {
    match listed {
        Err(failure) if matches!(failure.reason, Reason::NotFound | Reason::KindNotServed) => Ok(Vec::new()),
        listed => listed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_served_is_nothing() {
        let listed = |reason| or_nothing::<u8>(Err(Failure::new(reason, "x"))).map_err(|failure| failure.reason);
        assert_eq!(or_nothing(Ok(vec![1])), Ok(vec![1]));
        assert_eq!([Reason::KindNotServed, Reason::NotFound].map(listed), [Ok(Vec::new()), Ok(Vec::new())]);
        // Who may not list, or is not answered, does not know that there is nothing.
        for reason in [Reason::Forbidden, Reason::Busy, Reason::Unreachable] {
            assert_eq!(listed(reason), Err(reason));
        }
    }
}
