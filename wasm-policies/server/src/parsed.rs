//! How much memory a body takes once it is parsed.

/// Bytes of a map: the smallest one has the node of a larger one (`BTreeMap` of texts and values, 11 of each).
const MAP: usize = 640;
/// Bytes of a further member of a map or element of a list: nodes may be half empty, lists have room for twice what is in them,
/// and each key lies in memory of its own.
const PART: usize = 160;

/// Bytes of the largest values that are made of a body. A ManifestWork of the size that etcd takes, before and after, has fewer.
pub(crate) const MOST: usize = 96 << 20;

/// At most so many bytes the values of a JSON text take, with the text itself. Whoever writes `{"":0}` a million times sends
/// little and has a hundred times as much be made of it.
///
/// What stands in texts counts as well: to tell it apart costs more than most reviews take to be answered.
pub(crate) fn size(text: &[u8]) -> usize {
    let number = |wanted: u8| text.iter().filter(|byte| **byte == wanted).count();
    let parts = number(b',') + number(b'[');
    text.len().saturating_add(number(b'{').saturating_mul(MAP)).saturating_add(parts.saturating_mul(PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_no_less_than_what_the_values_take() {
        assert_eq!(size(br#"{"a":[1,2]}"#), 11 + MAP + 2 * PART);
        // 1 048 576 such maps were measured to take 690 MB.
        let maps = 1 << 20;
        let text = format!("[{}0]", r#"{"":0},"#.repeat(maps));
        assert!(size(text.as_bytes()) >= maps * 690_000_000 / (1 << 20));
        // An object of the size that etcd takes, with as many members as Kubernetes' own have, twice.
        let object =
            r#"{"name":"some-name","value":"a value of some length, as they have it"},"#.repeat((3 << 20) / 72);
        assert!(size(object.as_bytes()) < MOST);
    }
}
