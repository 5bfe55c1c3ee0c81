//! What people may do: the claims of the provider, mapped to roles, sources and hosts.
//!
//! All entries that a person's claims match count together: the highest role, with the sources and hosts of every entry that
//! gives it.
//!
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
    /// The hosts that the person may take for edges, such as `*.docs.example.com`; without a list, any.
    hosts: Option<Vec<String>>,
}

/// The rights of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PersonRights {
    pub role: Role,
    /// The sources and hosts, if not everything that the role allows.
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

    /// The fault of a list of hosts that would have no effect, or not the expected one.
    fn hosts_fault(&self, hosts: &[String]) -> Option<Fault> {
        if self.role != Role::Editor {
            let message = format!("`hosts` cannot limit the role `{}`", self.role.as_str());
            return Some(Fault::new(Code::NotAllowed, message).help("remove `hosts`, or use the role `editor`"));
        }
        if self.sources.is_none() {
            let fault = Fault::new(Code::NotAllowed, "`hosts` requires `sources`");
            return Some(fault.help("add `sources`, such as `[docs]`, or `[\"*\"]` for all"));
        }
        // In the scope of a key, an empty list allows any host; in `sources`, it allows no source.
        let fault =
            || Fault::new(Code::Required, "`hosts` is empty").help("list a host, or remove `hosts` for any host");
        hosts.is_empty().then(fault)
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
    let hosts = allowed_hosts(of(Role::Editor).copied());
    let scope = KeyScope { plan: sources(Role::Planner), apply, hosts, ..KeyScope::default() };
    Some(PersonRights { role, scope: Some(Arc::new(scope)) })
}

/// The hosts that a person with these entries of the role `editor` may take; empty for any, as in the scope of a key.
fn allowed_hosts<'m>(entries: impl Iterator<Item = &'m RoleMapping>) -> Vec<String> {
    // An entry with no source lets nobody create an edge, so it does not lift the limit of another one.
    let entries = entries.filter(|mapping| mapping.sources.as_ref().is_some_and(|sources| !sources.is_empty()));
    // Hosts are not limited if one entry does not limit them.
    let lists: Option<Vec<&Vec<String>>> = entries.map(|mapping| mapping.hosts.as_ref()).collect();
    lists.into_iter().flatten().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect()
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
        faults.extend(self.hosts.as_deref().and_then(|hosts| self.hosts_fault(hosts)).map(|fault| fault.at("hosts")));
        let [apply, hosts] = [&self.sources, &self.hosts].map(|list| list.clone().unwrap_or_default());
        let found = KeyScope { apply, hosts, ..KeyScope::default() }.faults();
        for (field, name) in [("apply", "sources"), ("hosts", "hosts")] {
            let below = |fault: &Fault| Some(fault.clone().at(fault.path.strip(field)?));
            faults.within(name, |faults| faults.extend(found.iter().filter_map(below)));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://id.example.com";

    fn mapped(mappings: &[RoleMapping], groups: &[&str]) -> Option<PersonRights> {
        let claims = json!({"groups": groups});
        let grants = grants(mappings, ISSUER, &PersonClaims(claims.as_object().unwrap()));
        assert_eq!(rights(mappings, "https://other.example.com", &grants), None, "grants are of one issuer");
        rights(mappings, ISSUER, &grants)
    }

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
        let rights = mapped(&mappings, groups)?;
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

    #[test]
    fn hosts_are_limited_if_every_entry_that_gives_a_source_limits_them() {
        let mappings: Vec<RoleMapping> = serde_yaml::from_str(
            "[{claim: groups, value: docs, role: editor, sources: [docs],\n\
              hosts: [docs.example.com, '*.docs.example.com']},\n\
              {claim: groups, value: blog, role: editor, sources: [blog], hosts: [blog.example.com, docs.example.com]},\n\
              {claim: groups, value: shop, role: editor, sources: [shop]}, {claim: groups, value: all, role: editor},\n\
              {claim: groups, value: none, role: editor, sources: []},\n\
              {claim: groups, value: plans, role: planner, sources: [web]}]",
        )
        .unwrap();
        let (below, docs, blog) = ("*.docs.example.com", "docs.example.com", "blog.example.com");
        for (groups, expected) in [
            (vec!["docs"], Some(vec![below, docs])),
            (vec!["docs", "blog"], Some(vec![below, blog, docs])),
            (vec!["docs", "none", "plans"], Some(vec![below, docs])),
            (vec!["docs", "shop"], Some(Vec::new())),
            (vec!["none", "plans"], Some(Vec::new())),
            (vec!["docs", "all"], None),
        ] {
            let found = mapped(&mappings, &groups).unwrap().scope.map(|scope| scope.hosts.clone());
            let expected = expected.map(|hosts| hosts.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(found, expected, "{groups:?}");
        }
    }
}
