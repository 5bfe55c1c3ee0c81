//! The `circuit_breaker` module: rejects requests while the upstream fails.

use super::prelude::*;

/// The maximum number of buckets (Limits).
const MOST_BUCKETS: u32 = 128;

module! {
    /// Stops sending requests to an upstream that fails.
    pub struct CircuitBreaker {
        /// Seconds to wait after tripping before evaluating the upstream's health again.
        pub tripped_duration: u32,
        /// Length of the statistical window, in seconds.
        pub rolling_window: u32,
        /// Number of buckets for metrics, at most 128.
        #[schemars(range(max = 128))]
        pub num_buckets: u32,
        /// Minimum number of requests in a rolling window to trip the circuit.
        pub volume_threshold: u32,
        /// Fraction of failed requests that trips the circuit, between 0 and 1.0.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub error_threshold_percentage: f64,
    }
}

impl Check for CircuitBreaker {
    fn check(&self, faults: &mut Faults) {
        if self.num_buckets > MOST_BUCKETS {
            let message = format!("`num_buckets` must be at most {MOST_BUCKETS} (found {})", self.num_buckets);
            let help = format!("set a number from 1 to {MOST_BUCKETS}, such as 12");
            faults.report(Fault::new(Code::OutOfRange, message).at("num_buckets").help(help));
        }
        let threshold = self.error_threshold_percentage;
        if !(0.0..=1.0).contains(&threshold) {
            let message = format!("`error_threshold_percentage` must be between 0 and 1.0 (found {threshold})");
            let fault = Fault::new(Code::OutOfRange, message).at("error_threshold_percentage");
            let percent = if (0.0..=100.0).contains(&threshold) { threshold } else { 25.0 };
            faults.report(fault.help(format!("write {percent}% as {}", percent / 100.0)));
        }
    }
}

impl Module for CircuitBreaker {
    const SLOT: &'static str = "circuit_breaker";
    type View = Self;

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        let note = format!("opens at an error rate of {}", self.error_threshold_percentage);
        vec![Step { outcome: StepOutcome::GoesOn, ..Step::new(Stage::Dispatch, StepEffect::Depends, note) }]
    }

    fn example() -> Value {
        json!({
            "tripped_duration": 30,
            "rolling_window": 60,
            "num_buckets": 12,
            "volume_threshold": 200,
            "error_threshold_percentage": 0.25,
        })
    }
}
