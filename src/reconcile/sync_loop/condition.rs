//! The condition of a source: whether the store matches its manifests, and why (D33, D83).

use crate::reconcile::prelude::*;

/// Whether the store matches the manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// In sync.
    Synced,
    /// Out of sync.
    OutOfSync,
    /// No run has finished yet.
    Unknown,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The reason for the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The first sync has not finished.
    Starting,
    /// The last run changed the store.
    Applied,
    /// The last run had nothing to change.
    InSync,
    /// The manifests have errors; the valid part is applied.
    PartlyApplied,
    /// The manifests have errors.
    Invalid,
    /// The source is suspended, and the plan is not applied.
    Suspended,
    /// The source is no longer suspended, and the next run has not ended.
    Resumed,
    /// A safety limit refused the plan.
    Refused,
    /// A rollback left the state that the manifests declare (D78).
    RolledBack,
    /// Others have changed resources of the source, which are left as they are (D85).
    Drifted,
    /// Others keep changing what is reverted, so it is left as it is for a while (D85).
    Fight,
    /// The plan could not be applied.
    Failed,
    /// The repository could not be fetched; the last commit that was fetched stays in effect.
    FetchFailed,
    /// The run panicked.
    Panicked,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Reason {
    /// Whether the state is intended: a source that was suspended, rolled back or changed by hand must not take the
    /// server out of rotation.
    pub(super) fn is_intended(self) -> bool {
        matches!(self, Reason::Suspended | Reason::Resumed | Reason::RolledBack | Reason::Drifted | Reason::Fight)
    }

    /// The status that the reason is of.
    pub(crate) fn status(self) -> Status {
        match self {
            Reason::Starting => Status::Unknown,
            Reason::Applied | Reason::InSync => Status::Synced,
            _ => Status::OutOfSync,
        }
    }

    /// The reason that stands for all of the same state (D83).
    pub(crate) fn state(self) -> Self {
        match self {
            Reason::Applied => Reason::InSync,
            Reason::RolledBack | Reason::Resumed => Reason::PartlyApplied,
            Reason::Fight => Reason::Drifted,
            Reason::FetchFailed | Reason::Panicked => Reason::Failed,
            other => other,
        }
    }
}

/// The condition of the loop (D33).
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Whether the store matches the manifests.
    pub status: Status,
    /// The reason as one word.
    pub reason: Reason,
    /// The reason as one sentence.
    pub message: String,
    /// When the source got into the state of the reason.
    pub last_transition_time: Timestamp,
    /// The revision of the store after the last run.
    pub observed_revision: u64,
}
