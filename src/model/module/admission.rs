//! Whom a module admits, as far as its configuration tells.

/// Whom an enabled module admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admittance {
    /// Nobody: no request gets further.
    Nobody,
    /// Some requests or all.
    Somebody,
    /// Everybody: it has no rule about who is admitted.
    Everybody,
    /// The configuration does not tell: it evaluates an expression, or admits either everyone or nobody.
    Unknown,
}

/// How a configuration of a module differs from a former one in whom it admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessChange {
    /// Admits and refuses the same.
    Same,
    /// Refuses more, and admits nobody who was refused.
    Narrower,
    /// Admits more, and refuses nobody who was admitted.
    Wider,
    /// May admit somebody who was refused.
    Unknown,
}

impl AccessChange {
    /// The change if each of two parts of a module restricts access by itself.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Same, change) | (change, Self::Same) => change,
            (one, other) if one == other => one,
            _ => Self::Unknown,
        }
    }

    /// Whether somebody who was refused may be admitted.
    pub fn may_open(self) -> bool {
        matches!(self, Self::Wider | Self::Unknown)
    }

    /// The change of something that lets requests pass if it is on.
    pub(super) fn of_switch(was: bool, is: bool) -> Self {
        match (was, is) {
            (false, true) => Self::Wider,
            (true, false) => Self::Narrower,
            _ => Self::Same,
        }
    }

    /// The change of something that decides by itself who is admitted.
    pub(super) fn of_value<T: PartialEq>(was: &T, is: &T) -> Self {
        if was == is { Self::Same } else { Self::Unknown }
    }

    /// The change of a list each of whose entries admits somebody. What an empty one does is unknown.
    pub(crate) fn of_list<T: PartialEq>(was: &[T], is: &[T]) -> Self {
        let is_within = |some: &[T], others: &[T]| some.iter().all(|entry| others.contains(entry));
        match (is_within(was, is), is_within(is, was)) {
            (true, true) => Self::Same,
            _ if was.is_empty() || is.is_empty() => Self::Unknown,
            (true, false) => Self::Wider,
            (false, true) => Self::Narrower,
            (false, false) => Self::Unknown,
        }
    }

    /// The change of lists each of whose entries admits somebody, and which admit everybody if all are empty. Whether somebody must
    /// be in each list that has entries or in one of them is unknown.
    pub(super) fn of_open_lists(was: &[&[String]], is: &[&[String]]) -> Self {
        let is_open = |lists: &[&[String]]| lists.iter().all(|list| list.is_empty());
        match (is_open(was), is_open(is)) {
            (true, true) => Self::Same,
            (true, false) => Self::Narrower,
            (false, true) => Self::Wider,
            (false, false) => {
                was.iter().zip(is).fold(Self::Same, |change, (&was, &is)| change.and(Self::of_list(was, is)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AccessChange::{Narrower, Same, Unknown, Wider};
    use super::*;

    #[test]
    fn a_list_that_grows_admits_more() {
        for (was, is, change) in [
            ("a b", "b a", Same),
            ("a", "a b", Wider),
            ("a b", "a", Narrower),
            ("a", "b", Unknown),
            ("a", "", Unknown),
            ("", "a", Unknown),
            ("", "", Same),
        ] {
            let [was, is] = [was, is].map(|text| text.split_whitespace().collect::<Vec<_>>());
            assert_eq!(AccessChange::of_list(&was, &is), change, "{was:?} {is:?}");
        }
    }

    #[test]
    fn lists_that_are_all_empty_admit_everybody() {
        for (was, is, change) in [
            (["a", ""], ["", ""], Wider),
            (["", ""], ["", "a"], Narrower),
            (["a", "b"], ["a", "b c"], Wider),
            (["a", "b c"], ["a", "b"], Narrower),
            (["a b", "c"], ["a", "c d"], Unknown),
            (["a", "b"], ["a", ""], Unknown),
            (["", ""], ["", ""], Same),
        ] {
            let lists = |texts: [&str; 2]| {
                texts.map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>())
            };
            let ([one, two], [three, four]) = (lists(was), lists(is));
            assert_eq!(
                AccessChange::of_open_lists(&[one.as_slice(), two.as_slice()], &[three.as_slice(), four.as_slice()]),
                change,
                "{was:?} {is:?}"
            );
        }
    }

    #[test]
    fn two_changes_in_opposite_directions_are_unknown() {
        assert_eq!((Same.and(Wider), Narrower.and(Same), Wider.and(Wider)), (Wider, Narrower, Wider));
        assert_eq!((Wider.and(Narrower), Unknown.and(Narrower), Unknown.and(Wider)), (Unknown, Unknown, Unknown));
        assert_eq!([Same, Narrower, Wider, Unknown].map(AccessChange::may_open), [false, false, true, true]);
        let switched = [(false, true), (true, false), (true, true)].map(|(was, is)| AccessChange::of_switch(was, is));
        assert_eq!(switched, [Wider, Narrower, Same]);
    }
}
