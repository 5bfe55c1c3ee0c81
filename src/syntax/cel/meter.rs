//! The bounds of an evaluation.

use std::cell::Cell;

use super::error::{CelError, CelFailure};

/// The steps for one value, so that one large value with a nested loop over it cannot use up memory.
const STEPS_OF_ONE: u64 = 2_000_000;
/// The further steps for each byte of a value.
const STEPS_PER_BYTE: u64 = 4;
/// The steps between two questions whether to stop.
const INTERVAL: u64 = 1024;

/// Counts the steps of evaluations and stops them at a limit.
pub(crate) struct CelMeter<'a> {
    left: Cell<u64>,
    left_of_one: Cell<u64>,
    stop: &'a dyn Fn() -> bool,
}

/// The bytes of a value that take one step to write and read.
const BYTES_PER_STEP: usize = 32;

impl<'a> CelMeter<'a> {
    /// Allows `steps` in all, and stops when `stop` returns true.
    pub(crate) fn new(steps: u64, stop: &'a dyn Fn() -> bool) -> Self {
        Self { left: Cell::new(steps), left_of_one: Cell::new(STEPS_OF_ONE), stop }
    }

    /// Begins with the next value, which has so many bytes. A large value may take steps in proportion, so that loops over
    /// the routes of a large edge are possible, and nested ones are not.
    pub(crate) fn begin(&self, bytes: usize) -> Result<(), CelError> {
        self.left_of_one.set(STEPS_OF_ONE + STEPS_PER_BYTE * bytes as u64);
        self.take((bytes / BYTES_PER_STEP) as u64).map_err(|_| CelError::exhausted())
    }

    /// Takes steps.
    pub(super) fn take(&self, steps: u64) -> Result<(), CelFailure> {
        let before = self.left.get();
        let left = before.checked_sub(steps).ok_or(CelFailure::Exhausted)?;
        self.left.set(left);
        self.left_of_one.set(self.left_of_one.get().checked_sub(steps).ok_or(CelFailure::Exhausted)?);
        if before / INTERVAL != left / INTERVAL && (self.stop)() {
            return Err(CelFailure::Exhausted);
        }
        Ok(())
    }
}
