//! Patterns of hosts in an order in which a wildcard is followed by all that it covers.

use std::collections::BTreeMap;

use crate::model::host_pattern::wider;

/// A pattern from its end, without the asterisk, and whether it has one.
type HostOrder = (String, bool);

/// Patterns of hosts in their normal form, with a value for each.
#[derive(Debug, Clone)]
pub(in crate::routing) struct HostTree<T>(BTreeMap<HostOrder, T>);

impl<T> Default for HostTree<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> HostTree<T> {
    /// The number of patterns.
    pub(in crate::routing) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of a pattern, which is added with the given one if it is missing.
    pub(in crate::routing) fn entry(&mut self, pattern: &str, value: T) -> &mut T {
        self.0.entry(order_of(pattern)).or_insert(value)
    }

    /// The value of a pattern.
    pub(super) fn get(&self, pattern: &str) -> Option<&T> {
        self.0.get(&order_of(pattern))
    }

    /// The narrower patterns that a pattern covers.
    pub(super) fn below(&self, pattern: &str) -> Vec<String> {
        let suffix = pattern.strip_prefix('*').map(reversed);
        let below = suffix.as_ref().map(|suffix| self.range(suffix).map(pattern_of).collect());
        below.unwrap_or_default()
    }

    /// Whether a pattern covers a narrower one of these.
    fn has_below(&self, pattern: &str) -> bool {
        pattern.strip_prefix('*').map(reversed).is_some_and(|suffix| self.range(&suffix).next().is_some())
    }

    /// Whether a pattern is one of these, covers one of them, or is covered by one.
    pub(in crate::routing) fn meets(&self, pattern: &str) -> bool {
        self.get(pattern).is_some() || self.has_below(pattern) || wider(pattern).any(|wider| self.get(&wider).is_some())
    }

    fn range<'t>(&'t self, suffix: &'t str) -> impl Iterator<Item = &'t HostOrder> {
        let from = self.0.range::<HostOrder, _>((suffix.to_owned(), false)..).map(|(order, _)| order);
        // A wildcard does not cover the host that is its suffix.
        from.take_while(move |(text, _)| text.starts_with(suffix)).filter(move |(text, _)| text.len() > suffix.len())
    }
}

/// A text from its end.
pub(super) fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

fn order_of(pattern: &str) -> HostOrder {
    match pattern.strip_prefix('*') {
        Some(suffix) => (reversed(suffix), true),
        None => (reversed(pattern), false),
    }
}

fn pattern_of((text, is_wildcard): &HostOrder) -> String {
    let text = reversed(text);
    if *is_wildcard { format!("*{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_covers_what_is_longer_than_its_suffix() {
        let mut tree = HostTree::default();
        for pattern in
            ["*.example.com", "example.com", "a.example.com", "*.eu.example.com", "b.eu.example.com", "a.org"]
        {
            tree.entry(pattern, ());
        }
        assert_eq!(tree.below("*.example.com"), ["a.example.com", "*.eu.example.com", "b.eu.example.com"]);
        assert_eq!(tree.below("*.eu.example.com"), ["b.eu.example.com"]);
        assert!(tree.below("a.example.com").is_empty() && !tree.has_below("*.b.eu.example.com"));
        assert!(tree.has_below("*eu.example.com") && tree.get("a.org").is_some());
        assert!(["a.org", "*.org", "c.b.eu.example.com"].into_iter().all(|pattern| tree.meets(pattern)));
        assert!(!["b.org", "*.a.org", "*.us.org"].into_iter().any(|pattern| tree.meets(pattern)));
    }
}
