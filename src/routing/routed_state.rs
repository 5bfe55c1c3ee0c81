//! The edges and routes that take requests: those in a store, or those that it would have once a source is applied.

use std::collections::BTreeMap;

use super::table::KnownRoute;
use crate::model::{
    Claim, Desired, Entry, HttpsEdge, HttpsEdgeRoute, Id, IpRestriction, Key, Kind, Resource, Snapshot,
};

/// The edges and routes of a state.
#[derive(Clone, Copy)]
pub(crate) struct RoutedState<'s> {
    /// The resources in a store.
    pub(crate) snapshot: &'s Snapshot,
    /// The source that asks; empty for none.
    pub(crate) source: &'s str,
    /// The declared resources of the source, in place of those in the store, if they are not applied yet.
    pub(crate) desired: Option<&'s BTreeMap<Key, Desired>>,
}

impl<'s> RoutedState<'s> {
    /// The resources in a store.
    pub(crate) fn stored(snapshot: &'s Snapshot, source: &'s str) -> Self {
        Self { snapshot, source, desired: None }
    }

    /// Whether a stored resource counts.
    fn keeps(self, entry: &Entry) -> bool {
        self.desired.is_none_or(|desired| !entry.is_owned_by(self.source) && !desired.contains_key(&entry.key))
    }

    /// The declared resources beside `first`, from there on.
    fn declared(self, first: Key) -> impl Iterator<Item = &'s Desired> {
        self.desired.into_iter().flat_map(move |desired| {
            let (kind, parent) = (first.kind, first.parent.clone());
            let following = desired.range(first.clone()..).map(|(_, wanted)| wanted);
            following.take_while(move |wanted| wanted.key.kind == kind && wanted.key.parent == parent)
        })
    }

    /// The resources of a kind without a parent.
    fn all<R: Resource>(self, kind: Kind) -> impl Iterator<Item = (&'s Key, &'s R)> {
        let declared = self.declared(Key::new(kind, Id::new("")));
        let declared = declared.filter_map(|wanted| Some((&wanted.key, wanted.spec_as::<R>()?)));
        let stored = self.snapshot.newest_first(kind, None, u64::MAX).filter(move |entry| self.keeps(entry));
        declared.chain(stored.filter_map(|entry| Some((&entry.key, entry.spec_as::<R>()?))))
    }

    /// The edges.
    pub(super) fn edges(self) -> impl Iterator<Item = (&'s Key, &'s HttpsEdge)> {
        self.all(Kind::HttpsEdge)
    }

    /// The restrictions of traffic of one type.
    pub(super) fn ip_restrictions(self) -> impl Iterator<Item = (&'s Key, &'s IpRestriction)> {
        self.all(Kind::IpRestriction)
    }

    /// The routes of an edge, in the order of their keys.
    pub(crate) fn routes(self, edge: &Key) -> Vec<KnownRoute<'s>> {
        let declared = self.declared(Key::child(Kind::HttpsEdgeRoute, edge.id.clone(), Id::new("")));
        let typed = |wanted: &'s Desired| Some((&wanted.key, wanted.spec_as::<HttpsEdgeRoute>()?));
        let declared = declared.filter_map(typed);
        let stored = self.snapshot.children(edge).filter(|entry| self.keeps(entry));
        let stored = stored.filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdgeRoute>()?)));
        let mut routes: Vec<KnownRoute<'s>> = declared.chain(stored).collect();
        routes.sort_by(|one, other| one.0.cmp(other.0));
        routes
    }

    /// The source and the name of a resource.
    pub(crate) fn claim(self, key: &Key) -> Option<&'s Claim> {
        match self.desired.and_then(|desired| desired.get(key)) {
            Some(wanted) => Some(wanted.claim.as_ref()),
            None => self.snapshot.get(key)?.claim.as_deref(),
        }
    }

    /// The name of a resource in the manifests, or its ID.
    pub(crate) fn name(self, key: &'s Key) -> &'s str {
        self.claim(key).map_or_else(|| key.id.as_str(), |claim| claim.name.as_str())
    }
}
