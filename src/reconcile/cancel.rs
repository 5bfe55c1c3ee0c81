//! A run that nobody waits for any longer can be given up.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether a run should be given up. Clones share one state; a run asks between its steps and never inside a commit.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Gives the run up.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the run was given up.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
