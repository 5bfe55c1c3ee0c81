//! `circuit-breaker-threshold`: a circuit breaker that opens even if no request fails.

use super::{circuit_breaker_zero::is_unset, prelude::*};

pub(crate) static LINT: Lint = Lint {
    name: "circuit-breaker-threshold",
    default: Level::Warn,
    summary: "`error_threshold_percentage` of a `circuit_breaker` is 0.",
    why: "The circuit opens at this error rate. At 0, which is also the value of an unset field, it opens even if no \
          request fails.",
    cure: "Set a rate above 0, such as `error_threshold_percentage: 0.25`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, breaker) in view.route_modules(|route| route.circuit_breaker.as_deref()) {
        // The fraction is never negative. `circuit-breaker-zero` names it with the other fields that are 0.
        if breaker.error_threshold_percentage <= 0.0 && !is_unset(breaker) {
            let message = "`error_threshold_percentage` is 0, so the circuit opens even if no request fails";
            findings.report(key, ["circuit_breaker", "error_threshold_percentage"], message);
        }
    }
}
