//! `circuit-breaker-zero`: a circuit breaker with a zero duration, window or bucket count.

use super::{Findings, Level, Lint, World};
use crate::model::kind::https_edge_route::HttpsEdgeRoute;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "circuit-breaker-zero",
    needs_whole: false,
    default: Level::Deny,
    summary: "`tripped_duration`, `rolling_window` or `num_buckets` of a `circuit_breaker` is 0.",
    why: "A circuit breaker counts failures in the buckets of its window and stays open for a time. It cannot work \
          when one of the three is 0, and an unset field is 0.",
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
    cure: "Set all three, for example `tripped_duration: 30`, `rolling_window: 60` and `num_buckets: 12`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(breaker) = &route.circuit_breaker else { continue };
        let fields = [
            ("tripped_duration", breaker.tripped_duration, "a tripped circuit closes again immediately"),
            ("rolling_window", breaker.rolling_window, "the window for counting requests is empty"),
            ("num_buckets", breaker.num_buckets, "no request is counted"),
        ];
        for (field, value, effect) in fields {
            if value == 0 {
                findings.report(key, ["circuit_breaker", field], format!("`{field}` is 0, so {effect}"));
            }
        }
    }
}
