//! A lock that a panic does not poison; whoever holds one leaves it whole, or says why that does not matter.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex without poisoning.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
