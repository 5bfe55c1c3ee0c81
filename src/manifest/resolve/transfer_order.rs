//! The order of transfers: which source may apply a resource that moves between sources, or that another source owns
//! (D104).

use std::{cell::OnceCell, sync::Arc};

use super::resolver::Resolver;
use super::transfer::{self, TransferState};
use crate::manifest::load::declaration::Declaration;
use crate::model::{Claim, Diagnostic, Entry, Key};
use crate::tenancy::delegation;

impl<'a> Resolver<'a> {
    /// The transfer state of a resource. `entry` is its stored state.
    pub(super) fn transfer_state(
        &mut self,
        declaration: &Declaration,
        key: &Key,
        entry: Option<&'a Arc<Entry>>,
    ) -> TransferState<'a> {
        let (source, markers) = (self.known.source, &declaration.transfer);
        self.out.has_transfers |= !markers.is_empty();
        // Without a store, everything that is declared is checked.
        if self.known.offline {
            return TransferState::Applied;
        }
        // A resource that a rollback deleted is not created again inside one that it returned.
        let parent = key.parent_key().and_then(|parent| self.left.get(&parent).copied());
        if let (None, Some(TransferState::Returned(parent))) = (entry, parent)
            && (declaration.origin.is_entry() || !delegation::delegates(self.known.snapshot, key, source))
        {
            return TransferState::Returned(parent);
        }
        match entry {
            Some(entry) => markers.state(source, entry.claim.as_deref()),
            None => {
                let parent_waits = matches!(parent, Some(TransferState::Waiting(_)));
                let parent_waits = parent_waits && declaration.origin.is_entry();
                markers.state_of_missing(source, parent_waits)
            }
        }
    }

    /// Leaves a declared resource to another source. Its name can be referenced.
    pub(super) fn leave(
        &mut self,
        declaration: &'a Arc<Declaration>,
        key: &Key,
        state: TransferState<'a>,
        fault: Option<Diagnostic>,
    ) {
        self.out.diagnostics.extend(fault);
        if declaration.parent.is_none() {
            self.ids.insert((declaration.kind, &declaration.name), key.id.clone());
        }
        self.left.insert(key.clone(), state);
        self.out.transfer_was_undone |= matches!(state, TransferState::Returned(_));
        if self.warned.insert(declaration.origin.document_key()) {
            self.out.diagnostics.extend(state.warning(declaration, self.known.source));
        }
    }

    /// Warns about resources that are promised and not declared: they stay until their new source declares them.
    pub(super) fn warn_about_kept(&mut self) {
        let (snapshot, source) = (self.known.snapshot, self.known.source);
        let (desired, declared) = (&self.out.desired, self.known.loaded.declared());
        let contained = OnceCell::new();
        let is_declared = |entry: &Entry, claim: &Claim| {
            let (kind, name) = (entry.key.kind.info().name, claim.name.as_str());
            if desired.contains_key(&entry.key) {
                return true;
            }
            let parent = entry.key.parent_key().and_then(|key| snapshot.get(&key));
            // An event subscription has no claim that would tell its name.
            let Some((parent, held)) = parent.and_then(|parent| Some((parent, parent.claim.as_deref()?))) else {
                return declared.knows(kind, name);
            };
            // Another edge may have a route of the same name.
            let renamed = desired.get(&parent.key).map_or(held.name.as_str(), |desired| desired.claim.name.as_str());
            let contained = contained.get_or_init(|| declared.contained());
            let is_inside = |parent: &str| contained.contains(&(kind, parent, name));
            declared.may_know(kind, name)
                || is_inside(&held.name)
                || is_inside(renamed)
                || is_inside(parent.key.id.as_str())
        };
        let is_kept = |entry: &Entry| {
            let claim = entry.claim.as_deref().filter(|claim| claim.source == source && claim.is_promised());
            claim.is_some_and(|claim| !is_declared(entry, claim))
        };
        // A route that moves with its edge is reported with the edge.
        let is_reported_with_parent = |entry: &Entry| {
            let parent = entry.key.parent_key().and_then(|key| snapshot.get(&key));
            let promise = |entry: &Entry| entry.claim.as_deref().map(|it| (it.transfer_to.clone(), it.returned));
            parent.is_some_and(|parent| promise(parent) == promise(entry) && is_kept(parent))
        };
        let promised =
            snapshot.iter().map(|entry| &**entry).filter(|entry| is_kept(entry) && !is_reported_with_parent(entry));
        let promised: Vec<&Entry> = promised.collect();
        // Both sources may have created it, so that nothing is left to take over.
        let is_had = |entry: &Entry, claim: &Claim, by: &str| {
            let named = self.known.named(entry.key.kind, entry.key.parent.as_ref(), &claim.name);
            named.iter().any(|other| other.is_owned_by(by) && other.key != entry.key)
        };
        let is_returned = |entry: &&Entry| entry.claim.as_deref().and_then(Claim::returned_from).is_some();
        self.out.transfer_was_undone |= promised.iter().any(is_returned);
        let kept = transfer::kept_warnings(promised.into_iter(), is_had);
        self.out.has_transfers |= !kept.is_empty();
        self.out.diagnostics.extend(kept);
    }

    /// Reports a resource owned by another source, and a transfer between a source and itself.
    pub(super) fn check_owner(&mut self, declaration: &Declaration, key: &Key, claim: Option<&Claim>) {
        let (source, markers) = (self.known.source, &declaration.transfer);
        if !self.known.offline
            && let Some(fault) = markers.own_source(source)
            && self.warned.insert(declaration.origin.document_key())
        {
            self.out.diagnostics.push(declaration.origin.document().diagnostic(fault));
        }
        self.out.diagnostics.extend(markers.state(source, claim).conflict(declaration, key, source));
    }
}
