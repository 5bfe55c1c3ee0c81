//! Cancellation of a run.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A cancellation flag. Clones share one state; a run checks it between steps and never inside a commit.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the run.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
