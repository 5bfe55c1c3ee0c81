//! `duplicate-header`: a header that a module adds or removes twice, or both adds and removes.

use crate::text::printable;
use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use super::{Findings, Level, Lint, Subject, World};
use crate::model::{
    fault::{Aim, Path},
    kind::https_edge_route::HttpsEdgeRoute,
    module::{
        Module,
        headers::{RequestHeaders, ResponseHeaders},
    },
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "duplicate-header",
    needs_whole: false,
    default: Level::Deny,
    summary: "A header is listed twice in `add` or `remove`, or in both, ignoring case.",
    why: "Header names are case-insensitive, so both entries name the same header, and it is undefined which of them \
          wins.",
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
                            (Aim::Key, Aim::Key) => "added twice",
                            (Aim::Value, Aim::Value) => "removed twice",
                            _ => "both added and removed",
                        };
                        let message = format!("header `{}` is {how} by `{module}`", printable(name));
                        let related = (Subject::Resource(key.clone()), first.clone(), "first entry");
                        let finding = findings.report(key, path, message);
                        finding.aim = aim;
                        finding.related = Some(related);
                    }
                }
            }
        }
    }
}

/// A header entry: a mapping key in `add`, a list value in `remove`.
type NamedHeader<'a> = (&'a str, Path, Aim);

/// Returns the header entries of each module of a route, `add` before `remove`.
pub(super) fn headers(route: &HttpsEdgeRoute) -> impl Iterator<Item = (&'static str, Vec<NamedHeader<'_>>)> {
    let request = route.request_headers.as_ref().map(|it| (RequestHeaders::SLOT, &it.add, &it.remove));
    let response = route.response_headers.as_ref().map(|it| (ResponseHeaders::SLOT, &it.add, &it.remove));
    request.into_iter().chain(response).map(|(module, add, remove)| (module, named(module, add, remove)))
}

fn named<'a>(module: &str, add: &'a BTreeMap<String, String>, remove: &'a [String]) -> Vec<NamedHeader<'a>> {
    let at = Path::root().join(module);
    let (adds, removes) = (at.join("add"), at.join("remove"));
    let added = add.keys().map(|name| (name.as_str(), adds.join(name.as_str()), Aim::Key));
    let removed = remove.iter().enumerate().map(|(index, name)| (name.as_str(), removes.join(index), Aim::Value));
    added.chain(removed).collect()
}
