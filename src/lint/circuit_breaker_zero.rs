//! `circuit-breaker-zero`: a circuit breaker with a zero duration, window, bucket count or error threshold.

use super::{Findings, Level, Lint, World};
use crate::model::kind::https_edge_route::HttpsEdgeRoute;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "circuit-breaker-zero",
    default: Level::Deny,
    summary: "`tripped_duration`, `rolling_window`, `num_buckets` or `error_threshold_percentage` of a `circuit_breaker` is 0.",
    why: "A circuit breaker counts failures in the buckets of its window and stays open for a time. It cannot work \
          when one of these fields is 0, and an unset field is 0. With an error threshold of 0, it opens even if no \
          request fails.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: all
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_shop}
      circuit_breaker: {tripped_duration: 30, rolling_window: 60, error_threshold_percentage: 0.25}
",
    cure: "Set all four, for example `tripped_duration: 30`, `rolling_window: 60`, `num_buckets: 12` and \
           `error_threshold_percentage: 0.25`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(breaker) = &route.circuit_breaker else { continue };
        let fields = [
            ("tripped_duration", breaker.tripped_duration == 0, "a tripped circuit closes again immediately"),
            ("rolling_window", breaker.rolling_window == 0, "the window for counting requests is empty"),
            ("num_buckets", breaker.num_buckets == 0, "no request is counted"),
            // The fraction is never negative.
            (
                "error_threshold_percentage",
                breaker.error_threshold_percentage <= 0.0,
                "the circuit opens even if no request fails",
            ),
        ];
        for (field, is_zero, effect) in fields {
            if is_zero {
                findings.report(key, ["circuit_breaker", field], format!("`{field}` is 0, so {effect}"));
            }
        }
    }
}
