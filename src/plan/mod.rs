//! The Operations that turn a Snapshot into the desired state. Pure: the same input gives the same plan, anywhere.

mod diff;
pub mod format;
pub mod outline;
pub mod render;
pub mod report;
pub mod safety;
pub mod saved;

use std::{fmt, path::PathBuf, sync::Arc};

pub use diff::diff;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Kind, diagnostic::Diagnostic, id::Id, key::Key, operation::Operation, resource::AnyResource};

/// What would run, from which revision.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The revision that it was computed from.
    pub base: u64,
    /// The changes, by resource, in the order in which they run.
    pub changes: Vec<Change>,
    /// How many resources stay as they are.
    pub unchanged: usize,
    /// Why it must not run.
    pub refusals: Vec<Diagnostic>,
}

/// Everything that happens to one resource.
#[derive(Debug, Clone)]
pub struct Change {
    /// The resource.
    pub key: Key,
    /// Its name in the manifests, with its parent's in front.
    pub name: String,
    /// What it comes to.
    pub effect: Effect,
    /// What else a reviewer must know: another name, or another protection.
    pub notes: Vec<String>,
    /// What it was before.
    pub before: Option<Arc<dyn AnyResource>>,
    /// The operations, in order.
    pub operations: Vec<Operation>,
    /// Where a new API key's token is written.
    pub token_file: Option<PathBuf>,
}

/// What a change comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A new resource.
    Create,
    /// A new resource in the place of one that cannot be changed.
    Replace,
    /// Another content.
    Change,
    /// The same content, owned from now on.
    Adopt,
    /// The same content under another name.
    Rename,
    /// The same content, with another `prevent_destroy`.
    Protect,
    /// No longer there.
    Delete,
    /// No longer there, for another one has taken its place.
    Replaced,
}

/// How many resources each effect has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Summary {
    pub create: usize,
    pub change: usize,
    pub replace: usize,
    pub adopt: usize,
    pub delete: usize,
    pub unchanged: usize,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// All operations, in the order in which they run.
    pub fn operations(&self) -> Vec<Operation> {
        self.changes.iter().flat_map(|change| change.operations.iter().cloned()).collect()
    }

    /// The counts.
    pub fn summary(&self) -> Summary {
        Summary::of(self.changes.iter().map(|change| change.effect), self.unchanged)
    }
}

impl Change {
    /// What makes it the same to a person, whatever its identifier is.
    fn identity(&self) -> (Kind, Option<&Id>, &str) {
        (self.key.kind, self.key.parent.as_ref(), &self.name)
    }
}

impl Summary {
    fn of(effects: impl Iterator<Item = Effect>, unchanged: usize) -> Self {
        let mut summary = Self { unchanged, ..Self::default() };
        for effect in effects {
            match effect {
                Effect::Create => summary.create += 1,
                Effect::Change | Effect::Rename | Effect::Protect => summary.change += 1,
                Effect::Replace => summary.replace += 1,
                Effect::Adopt => summary.adopt += 1,
                Effect::Delete => summary.delete += 1,
                // The one that takes its place is counted.
                Effect::Replaced => {}
            }
        }
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to create, {} to change, {} to replace, ", self.create, self.change, self.replace)?;
        if self.adopt > 0 {
            write!(f, "{} to adopt, ", self.adopt)?;
        }
        write!(f, "{} to delete, {} unchanged", self.delete, self.unchanged)
    }
}
