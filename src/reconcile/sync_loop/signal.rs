//! What wakes a loop.

/// A request to the loop.
#[derive(Debug)]
pub(crate) enum Signal {
    Sync,
    Stop,
}
