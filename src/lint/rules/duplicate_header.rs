//! `duplicate-header`: a header that a module adds or removes twice, or both adds and removes.

use std::collections::HashMap;

use super::prelude::*;
use crate::model::Module;
use crate::model::module::headers::{RequestHeaders, ResponseHeaders};

pub(crate) static LINT: Lint = Lint {
    name: "duplicate-header",
    default: Level::Deny,
    summary: "A header is listed twice in `add` or `remove` of an enabled module, or in both, ignoring case.",
    why: "Header names are case-insensitive, so both entries name the same header, and it is undefined which of them \
          wins.",
    cure: "Keep one of the two entries.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        for (module, headers) in headers(route) {
            let headers: Vec<(&str, HeaderPlace<'_>)> = headers.collect();
            if are_clearly_distinct(&headers) {
                continue;
            }
            let mut seen: HashMap<String, HeaderPlace<'_>> = HashMap::new();
            for (name, place) in headers {
                let first = *seen.entry(name.to_ascii_lowercase()).or_insert(place);
                if first == place {
                    continue;
                }
                let how = match (first.target(), place.target()) {
                    (FaultTarget::Key, FaultTarget::Key) => "added twice",
                    (FaultTarget::Value, FaultTarget::Value) => "removed twice",
                    _ => "both added and removed",
                };
                let message = format!("header `{}` is {how} by `{module}`", printable(name));
                let finding = findings.report(key, place.path(module), message);
                finding.target = place.target();
                finding.relate(key, first.path(module), "first entry");
            }
        }
    }
}

/// Whether a few headers have different names, which is the usual case.
fn are_clearly_distinct(headers: &[(&str, HeaderPlace<'_>)]) -> bool {
    let differs = |at: usize, name: &str| headers.iter().take(at).all(|(other, _)| !other.eq_ignore_ascii_case(name));
    headers.len() <= 16 && headers.iter().enumerate().all(|(at, (name, _))| differs(at, name))
}

/// A header entry: a mapping key in `add`, a list value in `remove`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HeaderPlace<'a> {
    Add(&'a str),
    Remove(usize),
}

impl HeaderPlace<'_> {
    /// The path in the route.
    pub(super) fn path(self, module: &str) -> Path {
        let at = Path::from(module);
        match self {
            HeaderPlace::Add(name) => at.join("add").join(name),
            HeaderPlace::Remove(index) => at.join("remove").join(index),
        }
    }

    /// The part of the entry that names the header.
    pub(super) fn target(self) -> FaultTarget {
        match self {
            HeaderPlace::Add(_) => FaultTarget::Key,
            HeaderPlace::Remove(_) => FaultTarget::Value,
        }
    }
}

/// Returns the header entries of each enabled module of a route, `add` before `remove`.
pub(super) fn headers(
    route: &HttpsEdgeRoute,
) -> impl Iterator<Item = (&'static str, impl Iterator<Item = (&str, HeaderPlace<'_>)>)> {
    let request = route.request_headers.as_ref().filter(|it| it.enabled);
    let request = request.map(|it| (RequestHeaders::SLOT, &it.add, &it.remove));
    let response = route.response_headers.as_ref().filter(|it| it.enabled);
    let response = response.map(|it| (ResponseHeaders::SLOT, &it.add, &it.remove));
    request.into_iter().chain(response).map(|(module, add, remove)| {
        let added = add.keys().map(|name| (name.as_str(), HeaderPlace::Add(name)));
        let removed = remove.iter().enumerate().map(|(index, name)| (name.as_str(), HeaderPlace::Remove(index)));
        (module, added.chain(removed))
    })
}
