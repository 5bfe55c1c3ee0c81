//! The `circuit_breaker` module: rejects requests while the upstream fails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Module;
use crate::model::{
    base_urls::Site,
    diagnostics::{
        code::Code,
        fault::{Check, Fault, Faults},
    },
    key::Key,
    traffic::{Stage, Step, StepEffect, TracedRequest},
};

/// The maximum number of buckets (Limits).
const MOST_BUCKETS: u32 = 128;

/// Stops sending requests to an upstream that fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CircuitBreaker {
    /// Whether the module applies to traffic.
    pub enabled: bool,
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

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            enabled: true,
            tripped_duration: 0,
            rolling_window: 0,
            num_buckets: 0,
            volume_threshold: 0,
            error_threshold_percentage: 0.0,
        }
    }
}

impl Check for CircuitBreaker {
    fn check(&self, faults: &mut Faults) {
        if self.num_buckets > MOST_BUCKETS {
            faults.within("num_buckets", |faults| {
                faults.report(
                    Fault::new(
                        Code::OutOfRange,
                        format!("`num_buckets` must be at most {MOST_BUCKETS} (found {})", self.num_buckets),
                    )
                    .help(format!("set a number from 1 to {MOST_BUCKETS}, such as 12")),
                );
            });
        }
        if !(0.0..=1.0).contains(&self.error_threshold_percentage) {
            faults.within("error_threshold_percentage", |faults| {
                faults.report(
                    Fault::new(
                        Code::OutOfRange,
                        format!(
                            "`error_threshold_percentage` must be between 0 and 1.0 (found {})",
                            self.error_threshold_percentage
                        ),
                    )
                    .help("write 25% as 0.25"),
                );
            });
        }
    }
}

impl Module for CircuitBreaker {
    const SLOT: &'static str = "circuit_breaker";
    type View = Self;

    fn view(&self, _host: &Key, _site: &Site) -> Self {
        self.clone()
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        let note = format!("opens at an error rate of {}", self.error_threshold_percentage);
        vec![Step::new(Stage::Dispatch, StepEffect::Depends, note)]
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
