//! `unknown-label`: a label key that the configuration file does not allow.

use super::{Findings, Level, Lint, Scope, World};
use crate::model::fault::{Aim, Path};
use crate::text::printable;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "unknown-label",
    needs_whole: false,
    scope: Scope::Estate,
    default: Level::Allow,
    summary: "A label key is not in the configuration file's list of allowed keys.",
    why: "Labels are searched by key, so nobody finds a misspelt one. Without a list in the configuration file, every \
          key is allowed.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata:
  name: shop
  labels: {taem: shop}
spec:
  hostports: ['shop.example.com:443']
",
    cure: "Use an allowed key, or add the key to the list in the configuration file.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    let Some(allowed) = world.allowed_labels else { return };
    for (subject, label) in world.manifests.labels.iter().filter(|(_, label)| !allowed.contains(label)) {
        let near = findings.suggestions.nearest(label, allowed.iter().map(String::as_str));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("label `{}` is not allowed{hint}", printable(label));
        let path = Path::root().join("metadata").join("labels").join(label.as_str());
        let finding = findings.about(subject.clone(), path, message);
        (finding.in_document, finding.aim) = (true, Aim::Key);
    }
}
