//! Invariants that a plan removes, or after which they refuse less.
//!
//! Whoever weakens an invariant treats no request differently, so no comparison of requests shows it. A change is reported
//! unless the new fields, each by itself, are known to be at least as strict as the old ones: what only looks weaker is
//! reported, too. The level of the lint `invariant-weakened` decides what that does.

use std::collections::BTreeSet;

use crate::lint::Level;
use crate::model::host_pattern::covers_hosts;
use crate::model::key_scope::selects_name;
use crate::model::kind::invariant::{InvariantExemption, InvariantScope, UnprovenLevel};
use crate::model::{Invariant, Key, Kind, Snapshot};
use crate::plan::plan_effects::AccessWarning;
use crate::syntax::text::printable;

/// The lint whose level decides what a weakened invariant does.
pub(crate) const INVARIANT_WEAKENED: &str = "invariant-weakened";

/// Returns the invariants among changed resources that a later state does not have, or only weaker. One that is replaced by a
/// new one that is as strict is not weakened.
pub(super) fn weakened_invariants(changed: &BTreeSet<Key>, before: &Snapshot, after: &Snapshot) -> Vec<AccessWarning> {
    let changed = || changed.iter().filter(|key| key.kind == Kind::Invariant);
    let spec = |state: &Snapshot, key: &Key| state.get(key).and_then(|entry| entry.spec_as::<Invariant>().cloned());
    let new = changed().filter(|key| before.get(key).is_none()).filter_map(|key| spec(after, key));
    let new: Vec<Invariant> = new.collect();
    let weakened = changed().filter_map(|key| {
        let (entry, former) = (before.get(key)?, spec(before, key)?);
        let weaker = match spec(after, key) {
            Some(now) => Some(weaker_fields(&former, &now)).filter(|weaker| !weaker.is_empty()),
            None => (!new.iter().any(|new| weaker_fields(&former, new).is_empty())).then(Vec::new),
        };
        let (name, description) = (printable(&before.full_name(entry)), printable(&former.description));
        let (does, cure) = match weaker?.as_slice() {
            [] => (
                "is removed: nothing refuses any longer what breaks it".to_owned(),
                "restore it, or run without `--deny invariant-weakened` once its removal is agreed on",
            ),
            weaker => (
                format!("refuses less: {}", weaker.join(", ")),
                "undo this, or set the annotation `edgewright/lint.invariant-weakened: allow (REASON)`",
            ),
        };
        let message = format!("Invariant `{name}` {does} ({description})");
        let (key, lint, level) = (key.clone(), INVARIANT_WEAKENED, Level::Warn);
        Some(AccessWarning { key, lint, level, message, example: None, cure })
    });
    weakened.collect()
}

/// The fields that may refuse less than those of the former invariant.
fn weaker_fields(former: &Invariant, now: &Invariant) -> Vec<&'static str> {
    let is_narrower = |former: &[String], now: &[String]| is_bounded(former, now, |own, other| own == other);
    let denied_doubts = (former.unproven, now.unproven) == (UnprovenLevel::Deny, UnprovenLevel::Warn);
    let is_known = |exemption: &InvariantExemption| former.exemptions.iter().any(|it| is_exempt_within(exemption, it));
    let found = [
        (!is_scope_within(&former.scope, &now.scope), "`scope` has fewer requests"),
        (!is_narrower(&former.requires_any, &now.requires_any), "`requires_any` admits more"),
        (!is_narrower(&former.only_from, &now.only_from), "`only_from` admits more"),
        (!is_bounded(&former.backends, &now.backends, |own, other| selects_name(other, own)), "`backends` admits more"),
        (now.min_tls_version < former.min_tls_version, "`min_tls_version` is older"),
        (!former.keeps.iter().all(|name| now.keeps.contains(name)), "`keeps` has fewer modules"),
        (denied_doubts, "`unproven` no longer denies"),
        (!now.exemptions.iter().all(is_known), "an exemption is new, wider or longer"),
    ];
    found.into_iter().filter_map(|(is_weaker, words)| is_weaker.then_some(words)).collect()
}

/// Whether what a list admits, which is anything if it is empty, is within what another one admits.
fn is_bounded(bound: &[String], list: &[String], is_within: impl Fn(&str, &str) -> bool) -> bool {
    bound.is_empty() || (!list.is_empty() && list.iter().all(|own| bound.iter().any(|other| is_within(own, other))))
}

/// Whether a scope has all requests of another one.
fn is_scope_within(inner: &InvariantScope, outer: &InvariantScope) -> bool {
    is_bounded(&outer.hosts, &inner.hosts, is_host_within)
        && is_bounded(&outer.path_prefixes, &inner.path_prefixes, is_path_within)
        && is_bounded(&outer.methods, &inner.methods, |own, other| own.eq_ignore_ascii_case(other))
        && is_bounded(&outer.sources, &inner.sources, |own, other| own == other)
}

/// Whether an exemption counts for no other requests than a former one, and no longer.
fn is_exempt_within(exemption: &InvariantExemption, former: &InvariantExemption) -> bool {
    is_bounded(&former.hosts, &exemption.hosts, is_host_within)
        && is_bounded(&former.path_prefixes, &exemption.path_prefixes, is_path_within)
        && exemption.end() <= former.end()
}

fn is_host_within(own: &str, other: &str) -> bool {
    covers_hosts(other, own)
}

fn is_path_within(own: &str, other: &str) -> bool {
    own.starts_with(other)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn weaker(former: Value, now: Value) -> Vec<&'static str> {
        let invariant = |mut more: Value| {
            if let Some(spec) = more.as_object_mut() {
                spec.insert("description".to_owned(), json!("It holds"));
            }
            serde_json::from_value::<Invariant>(more).unwrap_or_default()
        };
        let (former, now) = (invariant(former), invariant(now));
        assert!(weaker_fields(&former, &former).is_empty() && weaker_fields(&now, &now).is_empty());
        weaker_fields(&former, &now)
    }

    #[test]
    fn a_field_that_may_refuse_less_is_told() {
        let exempt = |host: &str, expires: &str| json!({"exemptions": [{"hosts": [host], "owner": "o", "reason": "r", "expires": expires}]});
        for (stricter, weaker_one, told) in [
            (json!({}), json!({"scope": {"hosts": ["*.example.com"]}}), "`scope` has fewer requests"),
            (
                json!({"scope": {"hosts": ["*.example.com"]}}),
                json!({"scope": {"hosts": ["a.example.com", "*.b.example.com"]}}),
                "`scope` has fewer requests",
            ),
            (
                json!({"scope": {"path_prefixes": ["/a"]}}),
                json!({"scope": {"path_prefixes": ["/a/b"]}}),
                "`scope` has fewer requests",
            ),
            (
                json!({"scope": {"methods": ["GET", "PUT"]}}),
                json!({"scope": {"methods": ["get"]}}),
                "`scope` has fewer requests",
            ),
            (json!({}), json!({"scope": {"sources": ["shop"]}}), "`scope` has fewer requests"),
            (
                json!({"requires_any": ["oidc"]}),
                json!({"requires_any": ["oidc", "saml"]}),
                "`requires_any` admits more",
            ),
            (json!({"only_from": ["ipp_a"]}), json!({}), "`only_from` admits more"),
            (json!({"backends": ["bkd_a"]}), json!({"backends": ["bkd_*"]}), "`backends` admits more"),
            (json!({"min_tls_version": "1.3"}), json!({"min_tls_version": "1.2"}), "`min_tls_version` is older"),
            (json!({"min_tls_version": "1.0"}), json!({}), "`min_tls_version` is older"),
            (json!({"keeps": ["oidc", "saml"]}), json!({"keeps": ["oidc"]}), "`keeps` has fewer modules"),
            (json!({"unproven": "deny"}), json!({}), "`unproven` no longer denies"),
            (json!({}), exempt("a.example.com", "2027-01-31"), "an exemption is new, wider or longer"),
            (
                exempt("a.example.com", "2027-01-31"),
                exempt("a.example.com", "2027-02-01"),
                "an exemption is new, wider or longer",
            ),
            (
                exempt("a.example.com", "2027-01-31"),
                exempt("*.example.com", "2027-01-31"),
                "an exemption is new, wider or longer",
            ),
        ] {
            assert_eq!(weaker(stricter.clone(), weaker_one.clone()), [told]);
            assert!(weaker(weaker_one.clone(), stricter.clone()).is_empty(), "{weaker_one} → {stricter}");
        }
        assert!(weaker(json!({"description": "d"}), json!({"metadata": "m"})).is_empty());
    }
}
