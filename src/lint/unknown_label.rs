//! `unknown-label`: a label that nobody looks for.

use super::{Findings, Level, Lint, World};
use crate::model::fault::{Aim, Path, nearest};
use crate::text::printable;

/// The lint.
pub static LINT: Lint = Lint {
    name: "unknown-label",
    default: Level::Allow,
    says: "a label key outside the list that the configuration file allows",
    why: "Labels are looked for by their keys, so a misspelt one is found by nobody. Without a list in the \
          configuration file, every key is fine.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata:
  name: shop
  labels: {taem: shop}
spec:
  hostports: ['shop.example.com:443']
",
    cure: "Write one of the allowed keys, or add the key to the list in the configuration file.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    let Some(allowed) = world.allowed_labels else { return };
    for (subject, label) in world.manifests.labels.iter().filter(|(_, label)| !allowed.contains(label)) {
        let near = nearest(label, allowed.iter().map(String::as_str));
        let hint = near.map(|near| format!(", perhaps `{near}` is meant")).unwrap_or_default();
        let message = format!("the label `{}` is not one of the allowed ones{hint}", printable(label));
        let path = Path::root().join("metadata").join("labels").join(label.as_str());
        let finding = findings.about(subject.clone(), path, message);
        (finding.in_document, finding.aim) = (true, Aim::Key);
    }
}
