//! `secret-in-manifest`: a secret that whoever reads the repository can read.

use super::{Findings, Level, Lint, World};
use crate::model::fault::{Path, Segment};

/// The lint.
pub static LINT: Lint = Lint {
    name: "secret-in-manifest",
    default: Level::Warn,
    says: "a secret written as plain text instead of from_env or from_file",
    why: "Manifests are kept in version control, where many can read them and nothing is ever forgotten. A secret that \
          was committed once has to be replaced.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: hooks
      match_type: exact_path
      match: /hooks/github
      backend: {backend_id: bkd_shop}
      webhook_verification: {provider: github, secret: correct-horse}
",
    cure: "Replace the secret at its issuer, and write the new one as `{from_env: NAME}` or `{from_file: path}`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (subject, path) in &world.manifests.plain_secrets {
        let message = format!("`{}` is written as plain text", field(path));
        findings.about(subject.clone(), path.clone(), message);
    }
}

/// The name of the field that a path leads to.
fn field(path: &Path) -> &str {
    let name = path.0.iter().rev().find_map(|step| match step {
        Segment::Key(key) => Some(key.as_str()),
        Segment::Index(_) => None,
    });
    name.unwrap_or("spec")
}
