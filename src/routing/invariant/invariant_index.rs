//! An index of invariants, so that not each of them is asked about each class of requests.

use std::collections::BTreeMap;

use super::standing::StandingInvariant;
use crate::routing::behaviour::RequestClass;

/// The places of the invariants that have the host of the class that was last visited, by the beginnings of paths in their
/// scopes. Classes with the same host mostly follow each other.
#[derive(Debug, Default)]
pub(super) struct InvariantIndex<'s> {
    pattern: Option<String>,
    of_any_path: Vec<usize>,
    by_prefix: BTreeMap<&'s str, Vec<usize>>,
}

impl<'s> InvariantIndex<'s> {
    /// Returns the places of the invariants whose scopes have a class, in their order. They are always the same invariants.
    pub(super) fn about<'i>(
        &mut self,
        class: &RequestClass<'_>,
        invariants: impl Iterator<Item = &'i StandingInvariant<'s>>,
    ) -> Vec<usize>
    where
        's: 'i,
    {
        let Some(host) = class.hosts().next() else { return Vec::new() };
        if self.pattern.as_ref() != Some(&host.pattern) {
            *self = Self { pattern: Some(host.pattern.clone()), ..Self::default() };
            for (at, invariant) in invariants.enumerate().filter(|(_, invariant)| invariant.has_host(host)) {
                let prefixes: &'s [String] = &invariant.spec.scope.path_prefixes;
                if prefixes.is_empty() {
                    self.of_any_path.push(at);
                }
                for prefix in prefixes {
                    self.by_prefix.entry(prefix.as_str()).or_default().push(at);
                }
            }
        }
        let (mut found, path) = (self.of_any_path.clone(), class.path.path);
        if !self.by_prefix.is_empty() {
            let beginnings = (0..=path.len()).filter_map(|end| path.get(..end));
            found.extend(beginnings.filter_map(|beginning| self.by_prefix.get(beginning)).flatten());
            found.sort_unstable();
            found.dedup();
        }
        found
    }
}
