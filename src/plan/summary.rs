//! The counts of a plan's changes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::effect::Effect;
use crate::model::drift::only_others_changed;
use crate::model::{Drift, DriftState};

/// The number of resources by effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Summary {
    pub create: usize,
    pub change: usize,
    pub replace: usize,
    pub adopt: usize,
    pub delete: usize,
    pub unchanged: usize,
    /// Changes that revert what others have changed; absent if there are none. They are counted by their effects, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drift: usize,
    /// Changes among `drift` that also apply what has changed in the manifests.
    #[serde(skip)]
    pub drift_and_pending: usize,
    /// Changes of what both the manifests and others have changed; absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conflict: usize,
}

/// Whether a count is left out.
pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Summary {
    pub(super) fn count<'d>(changes: impl Iterator<Item = (Effect, Option<&'d Drift>)>, unchanged: usize) -> Self {
        let mut summary = Self { unchanged, ..Self::default() };
        for (effect, drift) in changes {
            match drift.map(|drift| drift.state) {
                Some(DriftState::Drift) => {
                    summary.drift += 1;
                    summary.drift_and_pending += usize::from(drift.is_some_and(|it| !only_others_changed(&it.fields)));
                }
                Some(DriftState::Conflict) => summary.conflict += 1,
                Some(DriftState::Pending) | None => {}
            }
            match effect {
                Effect::Create => summary.create += 1,
                Effect::Change | Effect::Rename | Effect::Protect => summary.change += 1,
                Effect::Replace => summary.replace += 1,
                Effect::Adopt => summary.adopt += 1,
                Effect::Delete => summary.delete += 1,
                // Only the replacement is counted.
                Effect::Replaced => {}
            }
        }
        summary
    }

    /// Describes what changes, for a sentence: without the counts that are zero, and what is unchanged.
    pub(crate) fn changes(&self) -> String {
        let changes = counted([
            (self.create, "to create"),
            (self.change, "to change"),
            (self.replace, "to replace"),
            (self.adopt, "to adopt"),
            (self.delete, "to delete"),
        ]);
        if changes.is_empty() { "no changes".to_owned() } else { changes + &self.causes() }
    }

    /// The causes of changes in brackets, if others have caused any.
    fn causes(&self) -> String {
        if self.drift + self.conflict == 0 {
            return String::new();
        }
        let all = self.create + self.change + self.replace + self.adopt + self.delete;
        let pending = all.saturating_sub(self.drift + self.conflict);
        let both = self.drift_and_pending;
        let drift = self.drift.saturating_sub(both);
        let conflict = self.conflict;
        let causes = [(drift, "drift"), (both, "drift and pending"), (conflict, "conflict"), (pending, "pending")];
        format!(" ({})", counted(causes))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to create, {} to change, {} to replace, ", self.create, self.change, self.replace)?;
        if self.adopt > 0 {
            write!(f, "{} to adopt, ", self.adopt)?;
        }
        write!(f, "{} to delete, {} unchanged{}", self.delete, self.unchanged, self.causes())
    }
}

/// The counts that are not zero, with their words.
fn counted<const N: usize>(counts: [(usize, &str); N]) -> String {
    let counts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    counts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_only_what_changes() {
        let summary = Summary { change: 1, unchanged: 7, ..Summary::default() };
        assert_eq!(summary.changes(), "1 to change");
        let drifted = Summary { create: 2, drift: 1, ..summary };
        assert_eq!(drifted.changes(), "2 to create, 1 to change (1 drift, 2 pending)");
        let both = Summary { drift: 2, drift_and_pending: 1, ..drifted };
        assert_eq!(both.changes(), "2 to create, 1 to change (1 drift, 1 drift and pending, 1 pending)");
        assert_eq!(Summary { unchanged: 7, ..Summary::default() }.changes(), "no changes");
        assert_eq!(summary.to_string(), "0 to create, 1 to change, 0 to replace, 0 to delete, 7 unchanged");
    }
}
