//! The beginning of an ID as a number, which sorts most IDs without their texts: those are elsewhere in memory, and a map
//! of all resources compares a key with some twenty others.

use std::cmp::Ordering;

/// The bytes after the prefix that a head has.
const BYTES: usize = 7;
/// The length of the longest prefix.
const LONGEST: usize = 9;

/// The prefixes of all kinds, sorted. Each ends with its only `_`, so none is the beginning of another, and they sort like the
/// IDs that have them. IDs with another prefix are compared by their texts.
pub(in crate::model) const PREFIXES: [&str; 10] =
    ["ak_", "ca_", "cert_", "edghts_", "edghtsrt_", "edgtls_", "esb_", "inv_", "ipx_", "usr_"];

/// The number of the prefix in the highest byte, and the first bytes after it; 0 for an ID that has the prefix of no kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdHead(u64);

impl IdHead {
    /// Returns the head of an ID. Equal texts have equal heads.
    pub(super) fn new(text: &str) -> Self {
        let text = text.as_bytes();
        let Some(end) = text.iter().take(LONGEST).position(|byte| *byte == b'_') else { return Self(0) };
        let (prefix, after) = text.split_at_checked(end + 1).unwrap_or_default();
        // Most prefixes differ in length, so few are compared.
        let is_prefix = |known: &&str| known.len() == prefix.len() && known.as_bytes() == prefix;
        let Some(at) = PREFIXES.iter().position(is_prefix) else { return Self(0) };
        let mut bytes = [0; 8];
        match after.first_chunk::<BYTES>() {
            Some(beginning) => bytes[1..].copy_from_slice(beginning),
            None => bytes.iter_mut().skip(1).zip(after).for_each(|(to, from)| *to = *from),
        }
        let [number, ..] = &mut bytes;
        *number = u8::try_from(at + 1).unwrap_or_default();
        Self(u64::from_be_bytes(bytes))
    }

    /// The order of two IDs, unless only their texts tell.
    pub(super) fn order(self, other: Self) -> Option<Ordering> {
        (self != other && self.0 != 0 && other.0 != 0).then(|| self.0.cmp(&other.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prefixes_are_sorted_and_end_with_their_only_underscore() {
        assert_eq!(PREFIXES.iter().map(|prefix| prefix.len()).max(), Some(LONGEST));
        assert!(PREFIXES.is_sorted() && PREFIXES.len() < usize::from(u8::MAX));
        assert!(PREFIXES.iter().all(|prefix| prefix.find('_') == Some(prefix.len() - 1)), "{PREFIXES:?}");
    }

    fn texts() -> impl Strategy<Value = String> {
        let prefix = prop_oneof![
            proptest::sample::select(PREFIXES.to_vec()),
            proptest::sample::select(vec!["", "a", "edg", "zz_"])
        ];
        (prefix, prop_oneof!["[ab_\u{0}é]{0,9}", "[0-9A-Za-z]{7}[ab]{0,2}"])
            .prop_map(|(prefix, rest)| format!("{prefix}{rest}"))
    }

    proptest! {
        #[test]
        fn heads_sort_like_texts(one in texts(), other in texts()) {
            let (first, second) = (IdHead::new(&one), IdHead::new(&other));
            if let Some(order) = first.order(second) {
                prop_assert_eq!(order, one.cmp(&other));
            }
            prop_assert!(first == second || one != other);
        }
    }
}
