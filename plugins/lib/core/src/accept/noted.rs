//! What the policy controller has noted of the keys of a name, as a fact of the rules.

use jiff::Timestamp;
use ocm_rules::claim::Registration;

/// When the last of some certificates ends, each end a text in RFC 3339; none: there are none. What cannot be read is taken
/// for the worse, [`Timestamp::MAX`].
pub fn last_end<'e>(ends: impl IntoIterator<Item = &'e str>) -> Option<Timestamp> {
    ends.into_iter().map(|end| end.parse().unwrap_or(Timestamp::MAX)).max()
}

/// What a Registration tells that has this UID of a cluster, and keys whose last certificates end then.
pub fn noted<'a, 'e>(cluster_uid: Option<&'a str>, ends: impl IntoIterator<Item = &'e str>) -> Registration<'a> {
    let millis = |end: Timestamp| if end == Timestamp::MAX { i64::MAX } else { end.as_millisecond() };
    Registration { cluster_uid, until: last_end(ends).map(millis) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_end_counts_and_one_that_cannot_be_read_never_comes() {
        let until = |ends: &[&str]| noted(Some("u"), ends.iter().copied()).until;
        assert_eq!(until(&[]), None);
        assert_eq!(until(&["1970-01-01T01:00:00Z", "1970-01-01T02:00:00Z", "1970-01-01T00:00:00Z"]), Some(7_200_000));
        // Whoever else has written it: an offset is a time as well.
        assert_eq!(until(&["1970-01-01T02:00:00+01:00"]), Some(3_600_000));
        assert_eq!(until(&["1970-01-01T01:00:00Z", "soon"]), Some(i64::MAX));
        assert_eq!(until(&[""]), Some(i64::MAX));
    }
}
