//! The limit of requests that are handled at a time: overload sheds new ones early, and answers those it took (D98).

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::header;

use super::SHED;
use crate::{api::answer::ApiError, model::code::Code};

/// The default limit. A request that is handled costs little but its body, and those have limits of their own.
pub(crate) const DEFAULT_IN_FLIGHT: usize = 1024;
/// The Retry-After of a shed request, in seconds.
const RETRY_AFTER: &str = "1";
/// What must be answered under any load: an orchestrator would restart an overloaded server, and nobody would see why.
const ALWAYS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Counts the requests that are being handled.
#[derive(Debug)]
pub(in crate::api) struct InFlight {
    now: AtomicUsize,
    /// Those that are always answered. They are no reason to shed others.
    exempt: AtomicUsize,
    most: usize,
}

/// A request that is being handled, until it is dropped.
pub(in crate::api) struct InFlightPlace<'a>(&'a AtomicUsize);

impl InFlight {
    /// Creates a limit.
    pub(super) fn new(most: usize) -> Self {
        Self { now: AtomicUsize::new(0), exempt: AtomicUsize::new(0), most }
    }

    /// Takes a place for a request, or returns the error for a client that must retry.
    pub(in crate::api) fn enter(&self, path: &str) -> Result<InFlightPlace<'_>, ApiError> {
        let is_exempt = ALWAYS.contains(&path);
        let counter = if is_exempt { &self.exempt } else { &self.now };
        let before = counter.fetch_add(1, Ordering::Relaxed);
        let place = InFlightPlace(counter);
        if is_exempt || before < self.most {
            return Ok(place);
        }
        metrics::counter!(SHED).increment(1);
        let message = format!("the server handles {} requests already", self.most);
        Err(ApiError::of(Code::Unavailable, message).header(header::RETRY_AFTER, RETRY_AFTER))
    }

    /// The number of requests that are being handled.
    pub(in crate::api) fn count(&self) -> usize {
        self.now.load(Ordering::Relaxed) + self.exempt.load(Ordering::Relaxed)
    }
}

impl Drop for InFlightPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_over_the_limit_is_shed_and_a_probe_is_not() {
        let limit = InFlight::new(2);
        let held = (limit.enter("/api_keys"), limit.enter("/api_keys"));
        assert!(held.0.is_ok() && held.1.is_ok());
        let shed = limit.enter("/api_keys").err().map(|error| error.code());
        assert_eq!((shed, limit.count()), (Some(Code::Unavailable), 2));
        let probes: Vec<_> = ALWAYS.iter().map(|path| limit.enter(path)).collect();
        assert!(probes.iter().all(Result::is_ok));
        assert_eq!(limit.count(), 5);
        drop(held);
        // Probes that are on their way shed nothing.
        assert!(limit.enter("/api_keys").is_ok());
        drop(probes);
        assert!(limit.enter("/api_keys").is_ok());
        assert_eq!(limit.count(), 0);
    }
}
