//! `secret-in-manifest`: a secret that everybody with access to the repository can read.

use super::prelude::*;
use crate::model::Segment;

pub(crate) static LINT: Lint = Lint {
    name: "secret-in-manifest",
    default: Level::Warn,
    summary: "A secret is plain text instead of `from_env` or `from_file`.",
    why: "Many people can read a version-controlled manifest, and the history keeps every version. A secret that was \
          committed once must be replaced.",
    cure: "Rotate the secret at its issuer, and reference the new one with `{from_env: NAME}` or `{from_file: path}`.",
    check: LintCheck::Manifests(check),
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (subject, path) in &world.manifests.plain_secrets {
        let message = format!("`{}` is a secret in plain text", field(path));
        findings.about(subject.clone(), path.clone(), message);
    }
}

/// Returns the name of the field at a path.
fn field(path: &Path) -> &str {
    let name = path.0.iter().rev().find_map(|step| match step {
        Segment::Key(key) => Some(key.as_str()),
        Segment::Index(_) => None,
    });
    name.unwrap_or("spec")
}
