//! The checks of resources next to their edges.

use super::{resolution::Resolution, resolver::Resolver};
use crate::manifest::load::declaration::Declaration;
use crate::manifest::prelude::*;
use crate::model::{Severity, rules};
use crate::tenancy::{SourceScope, delegation};

impl Resolution {
    /// Reports what a source may not declare (D112).
    pub(crate) fn check_scope(&mut self, scope: &SourceScope, snapshot: &Snapshot) {
        self.report(scope.faults(&self.desired, snapshot));
    }

    /// Judges the resources next to those of other sources again, after some were set aside: what is not applied gives no right to
    /// a host.
    pub(crate) fn judge_delegation(&mut self, snapshot: &Snapshot, source: &str) {
        self.faulty.clear();
        self.report(delegation::judge(&self.desired, snapshot, source).errors);
    }

    fn report(&mut self, found: Vec<(Key, Fault)>) {
        for (key, fault) in found {
            let subject = Subject::Resource(key.clone());
            if let Some(diagnostic) = self.diagnostic(&subject, fault) {
                self.diagnostics.push(diagnostic);
                self.faulty.insert(key);
            }
        }
    }
}

impl Resolver<'_> {
    /// Checks routes with edges that pass TLS through (D15), routes and hostports with the edges of other sources, and
    /// routes with what their edges require (D103).
    pub(super) fn check_edges(&mut self) {
        let (desired, snapshot, source) = (&self.out.desired, self.known.snapshot, self.known.source);
        let (mut unreadable, mut found) =
            rayon::join(|| unreadable(desired, snapshot), || delegation::judge(desired, snapshot, source));
        if self.known.offline {
            unreadable.retain(|(key, _)| !self.may_be_readable(key));
        }
        if self.known.beside.is_some() {
            // Of which source a surrounding route is, nobody knows (`guessed_identity`).
            let is_consent =
                |key: &Key, fault: &Fault| key.kind == Kind::HttpsEdgeRoute && fault.code == Code::NotDelegated;
            found.errors.retain(|(key, fault)| !is_consent(key, fault));
        }
        self.out.report(unreadable);
        self.out.report(found.errors);
        let is_sound = |(key, _): &(Key, Fault)| !self.out.faulty.contains(key);
        for (key, fault) in found.warnings.into_iter().filter(is_sound).collect::<Vec<_>>() {
            let diagnostic = self.out.diagnostic(&Subject::Resource(key), fault);
            let warning = diagnostic.map(|found| Diagnostic { severity: Severity::Warning, ..found });
            self.out.diagnostics.extend(warning);
        }
    }

    /// Whether a route may be on another edge than the one that it has in the state, one that terminates TLS (`guessed_identity`).
    fn may_be_readable(&self, route: &Key) -> bool {
        let is_own = || route.parent_key().is_some_and(|edge| self.out.desired.contains_key(&edge));
        let Some(named) = self.out.origins.get(route).and_then(|it| it.parent.as_deref()) else { return false };
        let reads = |it: &Arc<Declaration>| {
            it.spec.as_any().downcast_ref::<HttpsEdge>().is_some_and(|edge| !rules::passes_through(edge))
        };
        let may_be_meant = || {
            let (loaded, mut meant) =
                (self.known.loaded, self.known.loaded.edges_named(named, self.known.source).peekable());
            // An ID that no manifest states can be that of any surrounding edge.
            match named.contains('_') && meant.peek().is_none() {
                true => loaded.surrounding().resources.iter().any(reads),
                false => meant.any(reads),
            }
        };
        route.kind == Kind::HttpsEdgeRoute && !is_own() && may_be_meant()
    }
}

/// The modules that edges cannot apply because they pass TLS through: their own, and those of their routes, which may be in
/// other documents.
fn unreadable(desired: &BTreeMap<Key, Desired>, snapshot: &Snapshot) -> Vec<(Key, Fault)> {
    let mut found: Vec<(Key, Fault)> = Vec::new();
    // The routes of an edge are neighbours, so each parent is looked up once. Few edges pass TLS through, so most routes
    // are passed over by their keys alone.
    let mut parent: Option<(Key, Option<&HttpsEdge>)> = None;
    for (key, wanted) in desired {
        yield_to_requests();
        if key.kind == Kind::HttpsEdge
            && let Some(edge) = wanted.spec_as::<HttpsEdge>()
        {
            let faults = rules::unreadable_edge_modules(edge).into_iter().map(|(_, fault)| fault);
            found.extend(faults.map(|fault| (key.clone(), fault)));
        }
        if key.parent.is_none() {
            continue;
        }
        if parent.as_ref().is_none_or(|(last, _)| Some(&last.id) != key.parent.as_ref()) {
            parent = key.parent_key().map(|last| {
                let declared = desired.get(&last).map(|it| &it.spec);
                let spec = declared.or_else(|| snapshot.get(&last).map(|entry| entry.spec()));
                let edge = spec.and_then(|spec| spec.as_any().downcast_ref::<HttpsEdge>());
                (last, edge.filter(|edge| rules::passes_through(edge)))
            });
        }
        if let Some((_, Some(edge))) = &parent {
            let faults = rules::unreadable_modules(edge, wanted.spec.as_ref());
            found.extend(faults.into_iter().map(|fault| (key.clone(), fault)));
        }
    }
    found
}
