//! `duplicate-header`: one header that a module is told to treat in two ways.

use crate::text::printable;
use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use super::{Findings, Level, Lint, Subject, World};
use crate::model::{
    fault::{Aim, Path},
    kind::https_edge_route::HttpsEdgeRoute,
    module::{Module, request_headers::RequestHeaders, response_headers::ResponseHeaders},
};

/// The lint.
pub static LINT: Lint = Lint {
    name: "duplicate-header",
    default: Level::Deny,
    says: "one header in `add` or `remove` twice, upper and lower case being alike, or in both",
    why: "The names of headers are compared without case, so the two entries are about one header. Which of them wins \
          is left to chance.",
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
      response_headers:
        add: {X-Frame-Options: DENY}
        remove: [x-frame-options]
",
    cure: "Keep one of the two entries.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        for (module, headers) in headers(route) {
            let mut seen: HashMap<String, (Path, Aim)> = HashMap::new();
            for (name, path, aim) in headers {
                match seen.entry(name.to_ascii_lowercase()) {
                    Entry::Vacant(entry) => {
                        entry.insert((path, aim));
                    }
                    Entry::Occupied(entry) => {
                        let (first, first_aim) = entry.get();
                        let how = match (first_aim, aim) {
                            (Aim::Key, Aim::Key) => "adds it twice",
                            (Aim::Value, Aim::Value) => "removes it twice",
                            _ => "both adds and removes it",
                        };
                        let message = format!("the header `{}` is in {module} twice, which {how}", printable(name));
                        let related = (Subject::Resource(key.clone()), first.clone(), "it stands here already");
                        let finding = findings.report(key, path, message);
                        finding.aim = aim;
                        finding.related = Some(related);
                    }
                }
            }
        }
    }
}

/// A header that is named: what is added is a key of a mapping, what is removed a value of a list.
type Named<'a> = (&'a str, Path, Aim);

/// The headers that each module of a route adds and then those that it removes, and where.
pub(super) fn headers(route: &HttpsEdgeRoute) -> impl Iterator<Item = (&'static str, Vec<Named<'_>>)> {
    let request = route.request_headers.as_ref().map(|it| (RequestHeaders::SLOT, &it.add, &it.remove));
    let response = route.response_headers.as_ref().map(|it| (ResponseHeaders::SLOT, &it.add, &it.remove));
    request.into_iter().chain(response).map(|(module, add, remove)| (module, named(module, add, remove)))
}

fn named<'a>(module: &str, add: &'a BTreeMap<String, String>, remove: &'a [String]) -> Vec<Named<'a>> {
    let at = Path::root().join(module);
    let (adds, removes) = (at.join("add"), at.join("remove"));
    let added = add.keys().map(|name| (name.as_str(), adds.join(name.as_str()), Aim::Key));
    let removed = remove.iter().enumerate().map(|(index, name)| (name.as_str(), removes.join(index), Aim::Value));
    added.chain(removed).collect()
}
