//! `circuit-breaker-zero`: a circuit breaker without time or memory.

use super::{Findings, Level, Lint, World};
use crate::model::kind::https_edge_route::HttpsEdgeRoute;

/// The lint.
pub static LINT: Lint = Lint {
    name: "circuit-breaker-zero",
    default: Level::Deny,
    says: "a circuit_breaker with a tripped_duration, rolling_window or num_buckets of 0",
    why: "A breaker counts failures in the buckets of its window and stays open for a while. With one of the three at \
          0, which is also what an unset field means, it cannot do that.",
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
    cure: "Set all three, such as `tripped_duration: 30`, `rolling_window: 60` and `num_buckets: 12`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(breaker) = &route.circuit_breaker else { continue };
        let fields = [
            ("tripped_duration", breaker.tripped_duration, "a tripped circuit closes again at once"),
            ("rolling_window", breaker.rolling_window, "no time is left to count requests in"),
            ("num_buckets", breaker.num_buckets, "nothing is counted"),
        ];
        for (field, value, effect) in fields {
            if value == 0 {
                findings.report(key, ["circuit_breaker", field], format!("`{field}` is 0, so {effect}"));
            }
        }
    }
}
