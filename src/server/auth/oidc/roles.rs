//! What people may do: the claims of the provider, mapped to roles and sources.
//!
//! All entries that a person's claims match count together: the highest role, with the sources of every entry that gives it.
//! A session has digests of the matching claims and not the rights themselves, so that a changed configuration takes effect for
//! whoever is signed in.

use super::claims::PersonClaims;
use crate::model::diagnostics::Check;
use crate::model::{Faults, KeyScope};
use crate::server::prelude::*;

/// The value that any text in a claim matches.
const ANY: &str = "*";
/// The pattern of a scope for all sources.
const ALL_SOURCES: &str = "*";
/// The context of the digests.
const PURPOSE: &str = "edgewright 2026 claims of people";
/// The digits of a digest.
const DIGITS: usize = 16;

/// The role that a value of a claim gives, in the configuration file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleMapping {
    /// The name of the claim. Dots lead into objects.
    claim: String,
    /// The text, or one of a list; `*` for any.
    value: String,
    /// The role.
    role: Role,
    /// The sources that the person may apply, or plan with the role `planner`; without a list, everything that the role
    /// allows. An empty list allows none.
    sources: Option<Vec<String>>,
}

/// The rights of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PersonRights {
    pub role: Role,
    /// The sources, if not everything that the role allows.
    pub scope: Option<Arc<KeyScope>>,
}

impl RoleMapping {
    /// The digest of a claim that an issuer has made.
    fn digest(&self, issuer: &str) -> String {
        let mut hasher = blake3::Hasher::new_derive_key(PURPOSE);
        for part in [issuer, &self.claim, &self.value] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.finalize().to_hex().chars().take(DIGITS).collect()
    }

    fn matches(&self, claims: &PersonClaims<'_>) -> bool {
        claims.texts(&self.claim).any(|text| self.value == ANY || text == self.value)
    }
}

/// The digests of the claims that give a person rights.
pub(super) fn grants(mappings: &[RoleMapping], issuer: &str, claims: &PersonClaims<'_>) -> BTreeSet<String> {
    mappings.iter().filter(|mapping| mapping.matches(claims)).map(|mapping| mapping.digest(issuer)).collect()
}

/// The rights of a person with some grants; none without a role.
pub(super) fn rights(mappings: &[RoleMapping], issuer: &str, grants: &BTreeSet<String>) -> Option<PersonRights> {
    let granted: Vec<&RoleMapping> = mappings.iter().filter(|it| grants.contains(&it.digest(issuer))).collect();
    let role = granted.iter().map(|mapping| mapping.role).max()?;
    let of = |role: Role| granted.iter().filter(move |mapping| mapping.role == role);
    // What the role allows is not limited if one entry does not limit it.
    if of(role).any(|mapping| mapping.sources.is_none()) {
        return Some(PersonRights { role, scope: None });
    }
    let sources = |role: Role| {
        let sources =
            of(role).flat_map(|mapping| mapping.sources.clone().unwrap_or_else(|| vec![ALL_SOURCES.to_owned()]));
        sources.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    let apply = if role == Role::Editor { sources(Role::Editor) } else { Vec::new() };
    let scope = KeyScope { plan: sources(Role::Planner), apply, ..KeyScope::default() };
    Some(PersonRights { role, scope: Some(Arc::new(scope)) })
}

impl Check for RoleMapping {
    fn check(&self, faults: &mut Faults) {
        for (name, text) in [("claim", &self.claim), ("value", &self.value)] {
            if text.is_empty() {
                faults.report(Fault::required(name));
            }
        }
        if self.role == Role::Gateway {
            let fault = Fault::new(Code::NotAllowed, "people cannot have the role `gateway`").at("role");
            faults.report(fault.help("use `viewer`, `planner`, `editor` or `admin`"));
        }
        if self.sources.is_some() && !matches!(self.role, Role::Editor | Role::Planner) {
            let message = format!("`sources` cannot limit the role `{}`", self.role.as_str());
            let fault = Fault::new(Code::NotAllowed, message).at("sources");
            faults.report(fault.help("remove `sources`, or use the role `editor` or `planner`"));
        }
        let scope = KeyScope { apply: self.sources.clone().unwrap_or_default(), ..KeyScope::default() };
        let found = scope.faults().into_iter().filter_map(|fault| {
            let path = fault.path.strip("apply")?;
            Some(fault.at(path))
        });
        faults.within("sources", |faults| faults.extend(found));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://id.example.com";

    fn rights_of(groups: &[&str]) -> Option<(Role, Option<[Vec<String>; 2]>)> {
        let mappings: Vec<RoleMapping> = serde_yaml::from_str(
            "[{claim: groups, value: platform, role: admin}, {claim: groups, value: staff, role: viewer},\n\
              {claim: groups, value: shop, role: editor, sources: [shop]}, {claim: groups, value: all, role: editor},\n\
              {claim: groups, value: docs, role: editor, sources: [docs, 'docs-*']},\n\
              {claim: groups, value: none, role: editor, sources: []},\n\
              {claim: groups, value: blind, role: planner, sources: []},\n\
              {claim: groups, value: plans, role: planner, sources: [web]}, {claim: groups, value: ci, role: planner}]",
        )
        .unwrap();
        let claims = json!({"groups": groups});
        let grants = grants(&mappings, ISSUER, &PersonClaims(claims.as_object().unwrap()));
        assert_eq!(rights(&mappings, "https://other.example.com", &grants), None, "grants are of one issuer");
        let rights = rights(&mappings, ISSUER, &grants)?;
        Some((rights.role, rights.scope.map(|scope| [scope.plan.clone(), scope.apply.clone()])))
    }

    #[test]
    fn the_highest_role_counts_with_the_sources_of_all_its_entries() {
        let lists = |plan: &[&str], apply: &[&str]| {
            Some([plan, apply].map(|list| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()))
        };
        for (groups, expected) in [
            (vec![], None),
            (vec!["other", "Platform", "*"], None),
            (vec!["staff"], Some((Role::Viewer, None))),
            (vec!["staff", "platform", "shop"], Some((Role::Admin, None))),
            (vec!["shop"], Some((Role::Editor, lists(&[], &["shop"])))),
            (vec!["staff", "docs", "shop"], Some((Role::Editor, lists(&[], &["docs", "docs-*", "shop"])))),
            (vec!["shop", "all"], Some((Role::Editor, None))),
            (vec!["shop", "plans"], Some((Role::Editor, lists(&["web"], &["shop"])))),
            (vec!["shop", "plans", "ci"], Some((Role::Editor, lists(&["*", "web"], &["shop"])))),
            (vec!["plans"], Some((Role::Planner, lists(&["web"], &[])))),
            (vec!["plans", "ci"], Some((Role::Planner, None))),
            (vec!["none"], Some((Role::Editor, lists(&[], &[])))),
            (vec!["none", "shop", "blind"], Some((Role::Editor, lists(&[], &["shop"])))),
            (vec!["none", "all"], Some((Role::Editor, None))),
            (vec!["blind"], Some((Role::Planner, lists(&[], &[])))),
        ] {
            assert_eq!(rights_of(&groups), expected, "{groups:?}");
        }
    }
}
