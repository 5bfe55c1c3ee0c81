//! `delegation-to-itself`: an edge that delegates routes to the source that owns it.

use super::{Findings, Level, Lint, Scope, World, parts::of_kind};
use crate::{
    model::{Kind, fault::Path, kind::https_edge::HttpsEdge},
    text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "delegation-to-itself",
    needs_whole: false,
    scope: Scope::Edge,
    default: Level::Warn,
    summary: "An edge's `delegates_to` names the source of the edge itself.",
    why: "The source that owns an edge needs no consent for its own routes. Probably another source is meant, whose \
          routes are refused.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  delegates_to: [{source: default, path_prefix: /docs/}]
",
    cure: "Name the other source, or remove the entry. If another source owns the edge, set `--source`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for desired in of_kind(world.judged, Kind::HttpsEdge) {
        let Some(edge) = desired.spec.as_any().downcast_ref::<HttpsEdge>() else { continue };
        let source = desired.claim.source.as_str();
        for (index, _) in edge.delegates_to.iter().enumerate().filter(|(_, entry)| entry.source == source) {
            let path = Path::root().join("delegates_to").join(index).join("source");
            findings.report(&desired.key, path, format!("source `{}` owns this edge itself", printable(source)));
        }
    }
}
