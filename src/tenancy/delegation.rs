//! The consent of edges to routes of other sources, and the modules that edges require of their routes (D103).
//!
//! # The problem
//!
//! A route of one team on the edge of another takes requests from it. Without consent, anyone who can merge into one
//! repository could take traffic from another team, or open a path that bypasses its login.
//!
//! # The idea
//!
//! Consent is a part of the edge's Spec, declared by the source that owns the edge, and so are the modules that each of
//! its routes must have. A source is therefore judged from the state of the store alone, by anyone and again at any
//! time. `delegated_prefix.rs` compares matches with prefixes.
//!
//! For example, `delegates_to: [{source: docs, path_prefix: /docs/}]` admits `/docs/api` of `docs`, and neither
//! `/docsecret` nor `/docs/../admin`.
//!
//! The modules that an edge requires are stored in its Spec as they are, and not as names of sets: other sources need
//! neither the set nor its secrets.
//!
//! # What it never does
//!
//! It is pure: no IO and no clock. It never compares a secret of a manifest, because a finding would reveal whether a guess is
//! right. It does not judge what is already in the store: withdrawing a consent must not stop everything else of another
//! source.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::certificates::unpresented;
use super::closed_hosts::hosts_closed_by;
use super::delegated_prefix::{
    ODD, WHOLE, admits, closer_delegation, consent_to_ask_for, consents, is_normal, precedes, prefixes_of,
    wanted_prefix,
};
use super::hostports::hostport_faults;
use crate::model::claim::{SURROUNDING_OWNER, source_in_words};
use crate::model::kind::https_edge::Delegation;
use crate::model::required_secrets::{alike, awaits_secrets};
use crate::model::{
    AnyResource, Code, Desired, Entry, Fault, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, Path, Snapshot,
};
use crate::routing::selector::Selector;
use crate::syntax::text::{first_of, printable};

/// The most routes that a warning lists.
pub(super) const MOST_LISTED: usize = 10;

/// An edge that routes are judged against.
pub(super) struct HostEdge<'a> {
    /// The name in the manifests, or the ID.
    name: &'a str,
    edge: &'a HttpsEdge,
    /// The other source that owns it, if any.
    pub(super) owner: Option<&'a str>,
}

impl<'a> HostEdge<'a> {
    /// The edge with an ID, unless any route can be on it.
    fn find(id: &Id, desired: &'a BTreeMap<Key, Desired>, snapshot: &'a Snapshot, source: &str) -> Option<Self> {
        let key = Key::new(Kind::HttpsEdge, id.clone());
        if let Some(own) = desired.get(&key) {
            let edge = own.spec_as::<HttpsEdge>()?;
            edge.required_modules.as_ref()?;
            return Some(Self { name: own.claim.name.as_str(), edge, owner: None });
        }
        Self::from_entry(snapshot.get(&key)?, source)
    }

    /// An edge in the store, as a source sees it.
    pub(super) fn from_entry(entry: &'a Entry, source: &str) -> Option<Self> {
        let claim = entry.claim.as_deref().filter(|claim| claim.source != source);
        let name = entry.claim.as_deref().map_or(entry.key.id.as_str(), |claim| claim.name.as_str());
        Some(Self { name, edge: entry.spec_as::<HttpsEdge>()?, owner: claim.map(|claim| claim.source.as_str()) })
    }

    /// The modules of a route that are not as the edge requires them.
    fn differing(&self, route: &HttpsEdgeRoute) -> impl Iterator<Item = Fault> {
        differing_modules(self.edge, route).into_iter().map(move |slot| {
            let message = format!(
                "`{slot}` differs from the module that HttpsEdge `{}` requires of every route",
                printable(self.name)
            );
            let fault = Fault::new(Code::RequiredModule, message).at(slot).of_key();
            fault.help("remove it from the route; edgewright adds the required module")
        })
    }

    /// Why the edge does not consent to a route of a source, if it does not.
    pub(super) fn missing_consent(&self, owner: &str, source: &str, route: &HttpsEdgeRoute) -> Option<Fault> {
        if admits(self.edge, source, route) {
            return self.taken_requests(source, route);
        }
        let is_surrounding = owner == SURROUNDING_OWNER;
        let owner = if is_surrounding {
            "the source of the surrounding manifests".to_owned()
        } else {
            format!("source `{}`", printable(owner))
        };
        let name = printable(self.name);
        let prefixes = prefixes_of(self.edge, source);
        let (prefix, instead) = wanted_prefix(route);
        let is_odd = Selector::from_route(route).is_some_and(|selector| !is_normal(selector.path));
        // An odd path is below no other prefix.
        let wanted = consent_to_ask_for(self.edge, self.name, source, if is_odd { WHOLE } else { &prefix });
        let first = match instead {
            _ if is_odd => format!("write the path without {ODD}, or "),
            Some(matched) => {
                let matched = printable(matched);
                format!("match `{matched}/`, because `{matched}` also matches `{matched}-other`, and ")
            }
            None => String::new(),
        };
        if prefixes.is_empty() {
            let message = format!("{owner} does not delegate routes of HttpsEdge `{name}` to source `{source}`");
            let fault = Fault::new(Code::NotDelegated, message).at("edge");
            let other = if is_surrounding { ", or name your source with `--source`" } else { "" };
            return Some(fault.help(format!("{first}{wanted}{other}")));
        }
        let listed: Vec<String> = prefixes.iter().map(|prefix| format!("`{}`", printable(prefix))).collect();
        let message = format!(
            "{owner} delegates only paths below {} of HttpsEdge `{name}` to source `{source}`",
            listed.join(" and ")
        );
        let first = if first.is_empty() { "change the match, or " } else { &first };
        let help = format!("{first}{wanted}");
        Some(Fault::new(Code::NotDelegated, message).at("match").help(help))
    }

    /// The fault of a route without a source that a source would take over without consent to its present match.
    fn present_fault(&self, source: &str, present: &HttpsEdgeRoute) -> Fault {
        let is_odd = Selector::from_route(present).is_some_and(|selector| !is_normal(selector.path));
        let prefix = if is_odd { WHOLE.to_owned() } else { wanted_prefix(present).0 };
        let message = format!(
            "HttpsEdge `{}` does not delegate to source `{source}` the present match `{}` of this route, which no source owns",
            printable(self.name),
            printable(&present.r#match)
        );
        let consent = consent_to_ask_for(self.edge, self.name, source, &prefix);
        let help = format!("declare another route, without its ID, or {consent}");
        Fault::new(Code::NotDelegated, message).at("match").help(help)
    }

    /// The fault of a route that would take requests for a longer prefix, which the edge delegates to another source.
    fn taken_requests(&self, source: &str, route: &HttpsEdgeRoute) -> Option<Fault> {
        let Delegation { source: other, path_prefix } = closer_delegation(self.edge, source, route)?;
        let (name, prefix) = (printable(self.name), printable(path_prefix));
        let (why, instead) = match Selector::from_route(route).filter(|selector| precedes(selector, path_prefix)) {
            Some(selector) => (
                ", because a match with a host precedes all without one",
                format!("match `{}` without a host", printable(selector.path)),
            ),
            None => ("", format!("match paths outside `{prefix}`")),
        };
        let message = format!(
            "`{prefix}` of HttpsEdge `{name}` is delegated to source `{}`, whose requests this route would take{why}",
            printable(other)
        );
        let consent = consent_to_ask_for(self.edge, self.name, source, path_prefix);
        Some(Fault::new(Code::NotDelegated, message).at("match").help(format!("{instead}, or {consent}")))
    }
}

/// The slots of required modules that a route does not have as the edge requires them.
fn differing_modules(edge: &HttpsEdge, route: &dyn AnyResource) -> Vec<&'static str> {
    let Some(required) = &edge.required_modules else { return Vec::new() };
    let required: &dyn AnyResource = &**required;
    let differs =
        required.modules().filter(|(slot, module)| !route.module(slot).is_some_and(|own| alike(own, *module)));
    differs.map(|(slot, _)| slot.name).collect()
}

/// Checks the delegations of a manifest. The paths of faults are below the list.
pub(crate) fn check(delegations: &[Delegation]) -> Vec<Fault> {
    let mut found = Vec::new();
    for (index, Delegation { source, path_prefix }) in delegations.iter().enumerate() {
        let at = |field: &str| Path::root().join(index).join(field);
        if source.trim().is_empty() {
            found.push(
                Fault::new(Code::Required, "`source` is required").at(at("source")).help("name the other source"),
            );
        }
        let is_prefix = path_prefix.starts_with('/') && path_prefix.ends_with('/') && is_normal(path_prefix);
        if !is_prefix {
            let message = format!("`{}` is not a path prefix for a source", printable(path_prefix));
            let fault = Fault::new(Code::InvalidFormat, message).at(at("path_prefix"));
            // A prefix without it would admit `/docsecret` with `/docs`.
            found.push(fault.help("start and end it with `/`, such as `/docs/`; `/` delegates the whole edge"));
        }
    }
    found
}

/// Routes and hostports without the consent of an edge, or without its required modules.
#[derive(Debug, Default)]
pub(crate) struct ConsentFaults {
    pub(crate) errors: Vec<(Key, Fault)>,
    /// Faults of resources that are in the store and stay.
    pub(crate) warnings: Vec<(Key, Fault)>,
}

/// Judges the resources of a source next to the edges of others, and on edges that require modules.
pub(crate) fn judge(desired: &BTreeMap<Key, Desired>, snapshot: &Snapshot, source: &str) -> ConsentFaults {
    let errors =
        hostport_faults(Desired::of_kind(desired, Kind::HttpsEdge), snapshot, source, &|key| desired.contains_key(key));
    // What is refused closes nothing.
    let refused: BTreeSet<&Key> = errors.iter().map(|(key, _)| key).collect();
    let closed = hosts_closed_by(desired, snapshot, source, &refused);
    let mut found = ConsentFaults { errors, warnings: warnings(desired, snapshot, source) };
    found.warnings.extend(unpresented(desired, snapshot, source));
    found.warnings.extend(closed);
    // The routes of an edge are neighbours, so each edge is looked up once.
    let mut last: Option<(&Id, Option<HostEdge<'_>>)> = None;
    for wanted in Desired::of_kind(desired, Kind::HttpsEdgeRoute) {
        let Some(id) = &wanted.key.parent else { continue };
        if last.as_ref().is_none_or(|(known, _)| *known != id) {
            last = Some((id, HostEdge::find(id, desired, snapshot, source)));
        }
        let Some((_, Some(edge))) = &last else { continue };
        let Some(route) = wanted.spec_as::<HttpsEdgeRoute>() else { continue };
        if let Some(fault) = edge.owner.and_then(|owner| edge.missing_consent(owner, source, route)) {
            match is_stored(snapshot, &wanted.key, route, source) {
                true => found.warnings.push((wanted.key.clone(), tolerated(fault))),
                false => found.errors.push((wanted.key.clone(), fault)),
            }
        } else if edge.owner.is_some() {
            let taken_over = snapshot.get(&wanted.key).filter(|entry| entry.claim.is_none());
            let refused = taken_over.filter(|present| !consents_to_present(edge.edge, source, present));
            let present = refused.and_then(|entry| entry.spec_as::<HttpsEdgeRoute>());
            found.errors.extend(present.map(|present| (wanted.key.clone(), edge.present_fault(source, present))));
        }
        found.errors.extend(edge.differing(route).map(|fault| (wanted.key.clone(), fault)));
    }
    found
}

/// Returns why routes on edges of others than a source cannot be as they are, as far as they are among the keys: the edges do not
/// consent to the source of the route, or require other modules.
pub(crate) fn not_admitted<'k>(
    keys: impl Iterator<Item = &'k Key>,
    state: &Snapshot,
    source: &str,
) -> Vec<(Key, Fault)> {
    let declared = BTreeMap::new();
    let mut found = Vec::new();
    for key in keys.filter(|key| key.kind == Kind::HttpsEdgeRoute) {
        let Some(parent) = &key.parent else { continue };
        let Some(edge) = HostEdge::find(parent, &declared, state, source) else { continue };
        let Some(entry) = state.get(key) else { continue };
        let Some((owner, route)) = edge.owner.zip(entry.spec_as::<HttpsEdgeRoute>()) else { continue };
        let missing = entry.source().and_then(|of_route| edge.missing_consent(owner, of_route, route));
        let faults = missing.into_iter().chain(edge.differing(route));
        found.extend(faults.map(|fault| (key.clone(), fault)));
    }
    found
}

/// Whether a source has a route with the same match in the store. The route was admitted when it got there, and an error
/// would stop the whole source because somebody else's edge has changed.
fn is_stored(snapshot: &Snapshot, key: &Key, route: &HttpsEdgeRoute, source: &str) -> bool {
    let stored = snapshot.get(key).filter(|entry| entry.is_owned_by(source));
    let stored = stored.and_then(|entry| entry.spec_as::<HttpsEdgeRoute>());
    stored.is_some_and(|stored| stored.match_type == route.match_type && stored.r#match == route.r#match)
}

/// The fault of a route that stays.
fn tolerated(fault: Fault) -> Fault {
    let cure = fault.help.clone().unwrap_or_default();
    fault.help(format!("the route stays as long as its match does not change; {cure}"))
}

/// Whether an edge consents to the present match of a route in the store, which has no source and which a source takes over:
/// requests for that match lose the route.
pub(super) fn consents_to_present(edge: &HttpsEdge, source: &str, route: &Entry) -> bool {
    route.spec_as::<HttpsEdgeRoute>().is_some_and(|present| consents(edge, source, present))
}

/// Whether an edge consents to a route, if it is of the right source, which is another one than `source`.
pub(crate) fn consents_to_another(edge: &HttpsEdge, source: &str, route: &HttpsEdgeRoute) -> bool {
    edge.delegates_to.iter().any(|it| it.source != source && consents(edge, &it.source, route))
}

/// Whether the edge of a route delegates anything to a source.
pub(crate) fn delegates(snapshot: &Snapshot, route: &Key, source: &str) -> bool {
    let edge = route.parent_key().and_then(|parent| snapshot.get(&parent)).and_then(|edge| edge.spec_as::<HttpsEdge>());
    edge.is_some_and(|edge| !prefixes_of(edge, source).is_empty())
}

/// Whether a source has routes on edges that it does not declare.
pub(crate) fn has_routes_elsewhere(desired: &BTreeMap<Key, Desired>) -> bool {
    let mut last: Option<&Id> = None;
    Desired::of_kind(desired, Kind::HttpsEdgeRoute).any(|wanted| {
        let Some(id) = wanted.key.parent.as_ref().filter(|id| last != Some(*id)) else { return false };
        last = Some(id);
        !desired.contains_key(&Key::new(Kind::HttpsEdge, id.clone()))
    })
}

/// Returns a warning for each edge whose routes in the store are not as its manifest says: other sources have no consent
/// any longer, or routes lack modules that the edge has required since.
fn warnings(desired: &BTreeMap<Key, Desired>, snapshot: &Snapshot, source: &str) -> Vec<(Key, Fault)> {
    let mut foreign_routes: BTreeMap<&Id, Vec<&Arc<Entry>>> = BTreeMap::new();
    // A route that the source takes over is its own.
    let is_foreign_route = |entry: &&Arc<Entry>| {
        entry.key.kind == Kind::HttpsEdgeRoute && !entry.is_owned_by(source) && !desired.contains_key(&entry.key)
    };
    // All cores wait for the memory of the claims, and most stores have no such routes.
    let entries: Vec<&Arc<Entry>> = snapshot.iter().collect();
    let found: Vec<&Arc<Entry>> = entries.into_par_iter().with_min_len(1024).filter(is_foreign_route).collect();
    for entry in found {
        if let Some(id) = &entry.key.parent {
            foreign_routes.entry(id).or_default().push(entry);
        }
    }
    let mut found = Vec::new();
    for (id, routes) in foreign_routes {
        let Some(wanted) = desired.get(&Key::new(Kind::HttpsEdge, id.clone())) else { continue };
        let Some(edge) = wanted.spec_as::<HttpsEdge>() else { continue };
        let stored = snapshot.get(&wanted.key).map(AsRef::as_ref);
        let (mut unwanted, mut open) = (Vec::new(), Vec::new());
        for entry in routes {
            let Some(route) = entry.spec_as::<HttpsEdgeRoute>() else { continue };
            let named = match &entry.claim {
                Some(claim) => format!("`{}` of {}", printable(&claim.name), source_in_words(&claim.source)),
                None => format!("{} without a source", entry.key.id),
            };
            // Of which source surrounding manifests are, they do not tell.
            let owner = entry.source().filter(|owner| *owner != SURROUNDING_OWNER);
            if owner.is_some_and(|owner| !consents(edge, owner, route)) {
                unwanted.push(named.clone());
            }
            if !differing_modules(edge, route).is_empty() || awaits_secrets(edge, stored, source, entry) {
                open.push(named);
            }
        }
        let name = printable(&wanted.claim.name);
        if !unwanted.is_empty() {
            let unwanted = first_of(unwanted.iter().map(String::as_str), MOST_LISTED);
            let message = format!("`delegates_to` does not allow existing routes of HttpsEdge `{name}`: {unwanted}");
            let fault = Fault::new(Code::NotDelegated, message).at("delegates_to");
            let help = "these routes stay, but their match cannot change; delete them, or delegate their paths";
            found.push((wanted.key.clone(), fault.help(help)));
        }
        if !open.is_empty() {
            let open = first_of(open.iter().map(String::as_str), MOST_LISTED);
            let message = format!("routes of HttpsEdge `{name}` do not have its required modules yet: {open}");
            let fault = Fault::new(Code::RequiredModule, message).at("required_modules");
            let help = "sync their sources to add the modules, and see `edgewright status` for one that does not; for \
                        routes without a source, set them over the API";
            found.push((wanted.key.clone(), fault.help(help)));
        }
    }
    found
}
