//! The plan that moves resources from one source to another, without changing them (D104).
//!
//! # The problem
//!
//! Moving a manifest from one folder to another deletes the resource in one source and creates it in the other, with an
//! outage between them. Two repositories cannot be merged at one moment, so any order must be safe.
//!
//! # The idea
//!
//! Only the claim of a resource changes: who owns it, and what was promised. A claim that moves says where the resource
//! came from and under which name, so that a manifest of the old source is an error and creates nothing. It also says
//! that the new source has not declared the resource yet (`transfer_to` of its own name): until it has, its runs keep
//! the resource instead of pruning it. The same marks, set by `metadata.transfer_to` in a manifest, are the consent of
//! the old source to a transfer by manifests; `diff` reads them.
//!
//! For example, `edgewright transfer edge/shop --from default --to shop` changes the claims of the edge and its routes
//! in one commit. A run of `default` that still declares it fails; the first run of `shop` that declares it ends the
//! promise.
//!
//! A rollback of the whole store brings the former claims back, and both loops leave it so. What changed hands is left
//! out when manifests are compared with those that the rollback rejected, because a source that waits for a resource
//! leads to another state without declaring anything else.
//!
//! # What it never does
//!
//! It never changes an ID or content, and nothing that the receiver has already: a transfer can be repeated after a
//! lost response.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::change::{Change, Plan};
use super::diff::transfer_notes;
use super::effect::Effect;
use super::near_source::near_source;
use crate::model::required_secrets::required_secrets;
use crate::model::{Claim, Code, Diagnostic, Entry, Id, Key, Kind, Operation, Snapshot, nearest};
use crate::syntax::text::printable;

/// Resources that move to another source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The source that owns them.
    pub from: String,
    /// The source that owns them afterwards.
    pub to: String,
    /// The resources, as `KIND/NAME` or ID. Their children move with them. Empty for all resources of the source.
    pub resources: Vec<String>,
}

impl Transfer {
    /// Computes the plan. Resources that the receiver has already are unchanged, so that a transfer can be repeated.
    pub(crate) fn moves(&self, current: &Snapshot) -> Plan {
        let mut plan = Plan { base: current.revision, ..Plan::default() };
        let chosen = match self.chosen(current) {
            Ok(chosen) => chosen,
            Err(refusals) => return Plan { refusals, ..plan },
        };
        let is_moved = |entry: &Entry| {
            let claim = entry.claim.as_deref().filter(|claim| claim.source == self.to);
            claim.is_some_and(|claim| claim.transferred_from.as_ref() == Some(&self.from))
        };
        let mut moving: Vec<(&Entry, &Claim, String)> = Vec::new();
        for entry in chosen {
            match &entry.claim {
                Some(claim) if claim.source == self.from => moving.push((entry, claim, current.full_name(entry))),
                Some(_) if entry.is_owned_by(&self.to) => plan.unchanged += 1,
                _ => {}
            }
        }
        if self.resources.is_empty() && moving.is_empty() {
            plan.unchanged = current.iter().filter(|entry| is_moved(entry)).count();
            if plan.unchanged == 0 {
                let message = format!("source `{}` owns nothing", printable(&self.from));
                let help = near_source(&[current], &self.from, "check the name of the source");
                plan.refuse(Code::NotFound, message, help);
            }
        }
        moving.sort_by(|one, other| (one.0.key.kind, &one.2).cmp(&(other.0.key.kind, &other.2)));
        plan.refusals.extend(self.taken_names(current, &moving));
        let moving_edges: BTreeSet<&Key> =
            moving.iter().map(|(entry, ..)| &entry.key).filter(|key| key.kind == Kind::HttpsEdge).collect();
        for (entry, old, name) in moving {
            // On its own edge, a route needs no record.
            let left_edge = || {
                let edge = entry.key.parent_key().filter(|edge| !moving_edges.contains(edge))?;
                let edge = current.get(&edge).filter(|edge| edge.is_owned_by(&self.from))?;
                required_secrets(edge, entry.spec().as_ref())
            };
            let claim = Claim {
                required_secrets: old.required_secrets.clone().or_else(left_edge),
                source: self.to.clone(),
                // The manifests of the new source may not have the resource yet, and must not delete it.
                transfer_to: Some(self.to.clone()),
                transferred_from: Some(self.from.clone()),
                transferred_as: None,
                returned: false,
                ..old.clone()
            };
            let notes = transfer_notes(old, &claim);
            let key = entry.key.clone();
            let operations = vec![Operation::Claim { key: key.clone(), claim: Some(Arc::new(claim)) }];
            plan.changes.push(Change { notes, ..Change::new(key, name, Effect::Adopt, Some(entry), operations) });
        }
        plan
    }

    /// The chosen resources with their children; only one of the two sources, or none, may own each.
    fn chosen<'s>(&self, current: &'s Snapshot) -> Result<Vec<&'s Entry>, Vec<Diagnostic>> {
        if self.resources.is_empty() {
            return Ok(current.iter().map(|entry| &**entry).filter(|entry| entry.is_owned_by(&self.from)).collect());
        }
        let mut found: BTreeMap<&Key, &Entry> = BTreeMap::new();
        let mut refusals = Vec::new();
        for wanted in &self.resources {
            let matches = |entry: &&Entry| is_called(current, entry, wanted);
            let all: Vec<&Entry> = current.iter().map(|entry| &**entry).filter(matches).collect();
            let concerned: Vec<&Entry> = all.iter().copied().filter(|entry| self.concerns(current, entry)).collect();
            if concerned.is_empty() {
                refusals.push(self.not_found(current, wanted, all.first().copied()));
            }
            for entry in concerned {
                found.insert(&entry.key, entry);
                found.extend(current.children(&entry.key).map(|child| (&child.key, &**child)));
            }
        }
        if refusals.is_empty() { Ok(found.into_values().collect()) } else { Err(refusals) }
    }

    /// Whether one of the two sources owns a resource, or what it contains: a resource without an owner can have children.
    fn concerns(&self, current: &Snapshot, entry: &Entry) -> bool {
        let is_ours = |entry: &Entry| entry.is_owned_by(&self.from) || entry.is_owned_by(&self.to);
        is_ours(entry) || (entry.claim.is_none() && current.children(&entry.key).any(|child| is_ours(child)))
    }

    fn not_found(&self, current: &Snapshot, wanted: &str, other: Option<&Entry>) -> Diagnostic {
        let (wanted, from) = (printable(wanted), printable(&self.from));
        if let Some(entry) = other {
            let owner = match &entry.claim {
                Some(claim) => format!("source `{}` owns it", printable(&claim.source)),
                None => "no source owns it".to_owned(),
            };
            let message = format!("source `{from}` does not own `{wanted}` ({}): {owner}", entry.key.id);
            return Diagnostic::error(Code::OwnerConflict, message)
                .help("correct the name of the source that it moves from");
        }
        let error = Diagnostic::error(Code::NotFound, format!("source `{from}` has no resource `{wanted}`"));
        let owned = current.iter().filter(|entry| entry.is_owned_by(&self.from));
        let names: Vec<String> =
            owned.map(|entry| format!("{}/{}", entry.key.kind, current.full_name(entry))).collect();
        error.help(match suggested(&wanted, &names) {
            Some(near) => format!("did you mean `{}`?", printable(near)),
            None => "name a resource as KIND/NAME, a route as HttpsEdgeRoute/EDGE/NAME, or by its ID".to_owned(),
        })
    }

    /// Refuses what would give two resources of the receiver the same name.
    fn taken_names(&self, current: &Snapshot, moving: &[(&Entry, &Claim, String)]) -> Vec<Diagnostic> {
        let mut taken = BTreeSet::new();
        for entry in current.iter().filter(|entry| entry.is_owned_by(&self.to)) {
            taken.insert((entry.key.kind, entry.key.parent.as_ref(), entry.name()));
        }
        let conflict = moving.iter().filter(|(entry, claim, _)| {
            taken.contains(&(entry.key.kind, entry.key.parent.as_ref(), Some(claim.name.as_str())))
        });
        let refusal = conflict.map(|(entry, _, name)| {
            let message =
                format!("source `{}` has another {} `{}`", printable(&self.to), entry.key.kind, printable(name));
            Diagnostic::error(Code::DuplicateName, message).help("rename one of the two resources first")
        });
        refusal.collect()
    }
}

/// The name of the same kind whose last part is most similar to that of a wanted one: the parent is forgotten more often than
/// the kind is confused. Otherwise the name that is most similar as a whole.
fn suggested<'n>(wanted: &str, names: &'n [String]) -> Option<&'n str> {
    let names: Vec<&'n str> = names.iter().map(String::as_str).collect();
    let kind_of = |name: &str| name.split_once('/').map(|(kind, _)| kind.to_lowercase());
    let (kind, part) = (kind_of(wanted), last_part(wanted));
    let of_kind: Vec<&'n str> = names.iter().copied().filter(|name| kind.is_some() && kind_of(name) == kind).collect();
    let near = match of_kind.iter().any(|name| last_part(name) == part) {
        true => Some(part),
        false => nearest(part, of_kind.iter().map(|name| last_part(name))),
    };
    let found = near.and_then(|near| of_kind.iter().copied().find(|name| last_part(name) == near));
    found.or_else(|| nearest(wanted, names))
}

fn last_part(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

/// Whether a resource is meant by `KIND/NAME`, where the kind is spelt in any case, or by an ID.
fn is_called(current: &Snapshot, entry: &Entry, wanted: &str) -> bool {
    let Some((kind, name)) = wanted.split_once('/') else { return entry.key.id.as_str() == wanted };
    entry.key.kind.info().name.eq_ignore_ascii_case(kind)
        && (entry.key.id.as_str() == name || current.full_name(entry) == name || is_subscription(entry, name))
}

/// Whether an entry is the event subscription that manifests call so. No source owns it, so its ID is all there is of the
/// name (D11).
fn is_subscription(entry: &Entry, name: &str) -> bool {
    let info = entry.key.kind.info();
    let id = || Id::derived(info.prefix, [info.name, "", name].map(str::as_bytes));
    entry.key.kind == Kind::EventSubscription && entry.key.id == id()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::plan::tests::{after, codes, create_edge, create_route, edge, protected, state};

    /// Edges of two sources; the first has a route of each.
    fn world() -> Snapshot {
        state(&[
            create_edge("shop", protected("old", "shop")),
            create_edge("docs", protected("old", "docs")),
            create_edge("team", protected("new", "team")),
            create_route("shop", "cart", protected("old", "cart")),
            create_route("shop", "guest", protected("third", "guest")),
        ])
    }

    fn transfer(resources: &[&str]) -> Transfer {
        let resources = resources.iter().map(|it| (*it).to_owned()).collect();
        Transfer { from: "old".into(), to: "new".into(), resources }
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.changes.iter().map(|change| change.name.as_str()).collect()
    }

    #[test]
    fn an_edge_moves_with_the_routes_of_its_source() {
        let world = world();
        let plan = transfer(&["httpsedge/shop"]).moves(&world);
        assert_eq!((names(&plan), plan.refusals.len()), (vec!["shop", "shop/cart"], 0));
        assert!(plan.changes.iter().all(|change| change.notes == ["transferred from source `old`"]));
        let moved = after(&world, &plan.operations());
        let claim = moved.get(&edge("shop")).unwrap().claim.clone().unwrap();
        assert_eq!((claim.source.as_str(), claim.transferred_from.as_deref()), ("new", Some("old")));
        assert!(claim.prevent_destroy, "protection stays");
        assert!(claim.is_promised() && claim.receiver().is_none());
        let guests = moved.iter().filter(|entry| entry.is_owned_by("third"));
        assert_eq!((guests.count(), moved.len()), (1, world.len()));
        // Once more, as after a lost response.
        let again = transfer(&["HttpsEdge/shop"]).moves(&moved);
        assert_eq!((again.changes.len(), again.refusals.len(), again.unchanged), (0, 0, 2));
        let rest = transfer(&[]).moves(&moved);
        assert_eq!(names(&rest), ["docs"]);
        let all = after(&moved, &rest.operations());
        let again = transfer(&[]).moves(&all);
        assert_eq!((again.changes.len(), again.refusals.len(), again.unchanged), (0, 0, 3));
    }

    #[test]
    fn one_route_moves_by_its_name_or_id() {
        for wanted in ["HttpsEdgeRoute/shop/cart", "edghtsrt_cart"] {
            assert_eq!(names(&transfer(&[wanted]).moves(&world())), ["shop/cart"], "{wanted}");
        }
    }

    #[test]
    fn what_cannot_move_is_named() {
        let world = world();
        let unknown = transfer(&["HttpsEdge/shpo"]).moves(&world);
        assert_eq!(codes(&unknown), ["ERR_EDGEWRIGHT_NOT_FOUND"]);
        assert_eq!(unknown.refusals.first().unwrap().help.as_deref(), Some("did you mean `HttpsEdge/shop`?"));
        for (wanted, near) in [
            ("HttpsEdgeRoute/cart", "HttpsEdgeRoute/shop/cart"),
            ("HttpsEdgeRoute/docs/crat", "HttpsEdgeRoute/shop/cart"),
            ("HttpsEdge/doc", "HttpsEdge/docs"),
        ] {
            let plan = transfer(&[wanted]).moves(&world);
            let help = plan.refusals.first().and_then(|refusal| refusal.help.clone());
            assert_eq!(help, Some(format!("did you mean `{near}`?")), "{wanted}");
        }
        let foreign = transfer(&["HttpsEdgeRoute/shop/guest"]).moves(&world);
        assert_eq!(codes(&foreign), ["ERR_EDGEWRIGHT_OWNER_CONFLICT"]);
        let nobody = Transfer { from: "none".into(), ..transfer(&[]) }.moves(&world);
        assert_eq!(codes(&nobody), ["ERR_EDGEWRIGHT_NOT_FOUND"]);
        let twice = Operation::Claim { key: edge("team"), claim: protected("new", "shop") };
        let conflict = transfer(&["HttpsEdge/shop"]).moves(&after(&world, &[twice]));
        assert_eq!(codes(&conflict), ["ERR_EDGEWRIGHT_DUPLICATE_NAME"]);
    }
}
