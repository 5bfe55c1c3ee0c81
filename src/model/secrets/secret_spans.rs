//! The spans of a value's secrets in its JSON.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::Lock;

/// The places of the secrets in JSON that is being written. Use one for each value.
#[derive(Debug, Default)]
pub struct SecretSpans {
    written: AtomicUsize,
    found: Lock<Vec<Range<usize>>>,
}

impl SecretSpans {
    /// Counts bytes that were written.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns how many bytes were written.
    pub(crate) fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Adds a secret that starts at a place and ends with the last byte that was written. An empty one, `""`, is none.
    pub(crate) fn add(&self, from: usize) {
        let place = from..self.written();
        if place.len() > 2 {
            self.found.lock().push(place);
        }
    }

    /// Returns the places of the secrets as JSON texts, quotes included, in order.
    pub fn into_inner(self) -> Vec<Range<usize>> {
        std::mem::take(&mut *self.found.lock())
    }
}
