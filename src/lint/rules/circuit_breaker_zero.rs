//! `circuit-breaker-zero`: a circuit breaker with a zero duration, window or bucket count.

use super::prelude::*;
use crate::model::module::circuit_breaker::CircuitBreaker;

pub(crate) static LINT: Lint = Lint {
    name: "circuit-breaker-zero",
    default: Level::Deny,
    summary: "`tripped_duration`, `rolling_window` or `num_buckets` of a `circuit_breaker` is 0.",
    why: "A circuit breaker counts failures in the buckets of its window, and stays open for a time. It cannot work if \
          one of the three is 0, and an unset field is 0.",
    cure: "Set the fields, such as `tripped_duration: 30`, `rolling_window: 60`, `num_buckets: 12` and \
           `error_threshold_percentage: 0.25`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, breaker) in view.route_modules(|route| route.circuit_breaker.as_deref()).filter(|(_, it)| it.enabled) {
        let fields = [
            ("tripped_duration", breaker.tripped_duration, "a tripped circuit closes again immediately"),
            ("rolling_window", breaker.rolling_window, "the window for counting requests is empty"),
            ("num_buckets", breaker.num_buckets, "no request is counted"),
        ];
        let zeros: Vec<(&str, &str)> =
            fields.into_iter().filter(|(_, value, _)| *value == 0).map(|(field, _, effect)| (field, effect)).collect();
        match zeros.as_slice() {
            [] => {}
            [(field, effect)] => {
                findings.report(key, ["circuit_breaker", *field], format!("`{field}` is 0, so {effect}"));
            }
            several => {
                let mut names: Vec<String> = several.iter().map(|(field, _)| format!("`{field}`")).collect();
                if breaker.error_threshold_percentage <= 0.0 {
                    names.push("`error_threshold_percentage`".to_owned());
                }
                let last = names.pop().unwrap_or_default();
                let message = format!("{} and {last} are 0, so the circuit breaker cannot work", names.join(", "));
                findings.report(key, ["circuit_breaker"], message).target = FaultTarget::Key;
            }
        }
    }
}

/// Whether so much is missing that a finding about the module names all fields that are 0.
pub(super) fn is_unset(breaker: &CircuitBreaker) -> bool {
    let values = [breaker.tripped_duration, breaker.rolling_window, breaker.num_buckets];
    values.into_iter().filter(|value| *value == 0).count() > 1
}
