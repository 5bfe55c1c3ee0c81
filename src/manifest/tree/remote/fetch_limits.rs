//! The limits of a fetch: a hostile server can be silent, slow, or send without end (D88).

use std::time::Duration;

/// The limits of a fetch.
#[derive(Debug, Clone, Copy)]
pub(super) struct FetchLimits {
    /// The longest time without output of git.
    pub silence: Duration,
    /// The longest time of a fetch.
    pub time: Duration,
    /// The most bytes that it receives.
    pub bytes: u64,
}

/// The limits unless a test sets others.
pub(super) const LIMITS: FetchLimits =
    FetchLimits { silence: Duration::from_secs(60), time: Duration::from_secs(600), bytes: 1 << 30 };
