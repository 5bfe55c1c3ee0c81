//! Cancellation of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cancellation flag. Clones share one state; a run checks it between steps and never inside a commit.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// The flag of a whole loop, of which this is one run.
    whole: Option<Arc<Cancel>>,
}

impl Cancel {
    /// A flag that is also set when this one is, and can be set without it.
    pub(crate) fn child(&self) -> Self {
        Self { flag: Arc::default(), whole: Some(Arc::new(self.clone())) }
    }

    /// Cancels the run.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Release);
    }

    /// Whether the run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Acquire) || self.whole.as_ref().is_some_and(|whole| whole.is_cancelled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_cancelled_alone_or_with_its_loop() {
        let whole = Cancel::default();
        let (one, other) = (whole.child(), whole.child());
        one.cancel();
        assert_eq!([&whole, &one, &other].map(Cancel::is_cancelled), [false, true, false]);
        whole.cancel();
        assert!(other.is_cancelled());
    }
}
