//! `jwt-algorithm`: a signature algorithm that lets anybody forge tokens.

use super::{Findings, Level, Lint, Subject, World};
use crate::model::{fault::Path, kind::https_edge_route::HttpsEdgeRoute};
use crate::text::printable;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "jwt-algorithm",
    default: Level::Warn,
    summary: "`allowed_algorithms` includes `none`, or an HMAC algorithm together with public keys.",
    why: "A token with the algorithm `none` is unsigned. HMAC signs and verifies with the same key, so anybody can \
          sign tokens with a key from a public key set.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: api
      match_type: path_prefix
      match: /api
      backend: {backend_id: bkd_shop}
      jwt_validation:
        issuer: {allow_list: [{value: 'https://id.example.com'}]}
        jws:
          allowed_algorithms: [RS256, HS256]
          keys: {sources: {additional_jkus: ['https://id.example.com/jwks.json']}}
",
    cure: "Allow only algorithms with a public key, such as `RS256` or `ES256`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(jwt) = &route.jwt_validation else { continue };
        let jws = Path::root().join("jwt_validation").join("jws");
        let has_key_set = !jwt.jws.keys.sources.additional_jkus.is_empty();
        for (index, algorithm) in jwt.jws.allowed_algorithms.iter().enumerate() {
            let at = jws.join("allowed_algorithms").join(index);
            if algorithm.eq_ignore_ascii_case("none") {
                findings.report(key, at, format!("`{algorithm}` accepts unsigned tokens"));
            } else if has_key_set && is_hmac(algorithm) {
                let name = printable(algorithm);
                let message = format!("`{name}` requires a shared secret, but the keys are public");
                let finding = findings.report(key, at, message);
                let key_set = jws.join("keys").join("sources").join("additional_jkus");
                finding.related = Some((Subject::Resource(key.clone()), key_set, "the public keys"));
            }
        }
    }
}

/// Whether an algorithm is `HS256`, `HS384` or `HS512` (RFC 7518, section 3.2), or starts like them.
fn is_hmac(algorithm: &str) -> bool {
    algorithm.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("HS"))
}
