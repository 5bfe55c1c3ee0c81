//! The claims that a rollback brings back (D78). If a resource changed hands since, the manifests of both sources are still
//! those from after the transfer: the source that gets it back must not delete it, nor the other one create it again.

use std::{collections::BTreeMap, sync::Arc};

use crate::model::{Claim, Entry, Id, Kind, Snapshot};

/// The kind, parent and owner of a resource, and its name there.
type OwnedName<'a> = (Kind, Option<&'a Id>, &'a str, &'a str);

/// The owners of the resources that a rollback restores.
pub(super) struct FormerOwners<'a> {
    current: &'a Snapshot,
    /// The claims on resources that replaced others when these changed hands, by what these were.
    replaced: BTreeMap<OwnedName<'a>, &'a Claim>,
}

impl<'a> FormerOwners<'a> {
    /// Compares the present state with the one that is brought back, of all sources or of one.
    pub(super) fn new(current: &'a Snapshot, target: &'a Snapshot, source: Option<&str>) -> Self {
        let mut replaced = BTreeMap::new();
        // A rollback of one source leaves the resources of others alone.
        let gone = current.iter().filter(|entry| source.is_none() && target.get(&entry.key).is_none());
        for entry in gone {
            let Some(claim) = &entry.claim else { continue };
            if let Some(from) = &claim.transferred_from {
                let name = claim.transferred_as.as_ref().unwrap_or(&claim.name);
                let key = (entry.key.kind, entry.key.parent.as_ref(), from.as_str(), name.as_str());
                replaced.insert(key, claim.as_ref());
            }
        }
        Self { current, replaced }
    }

    /// The claim on a resource that is brought back.
    pub(super) fn claim(&self, then: &Entry) -> Option<Arc<Claim>> {
        let claim = then.claim.clone()?;
        let now = match self.current.get(&then.key) {
            Some(now) => now.claim.as_deref(),
            None => {
                let key = (then.key.kind, then.key.parent.as_ref(), claim.source.as_str(), claim.name.as_str());
                self.replaced.get(&key).copied()
            }
        };
        let Some(now) = now else { return Some(claim) };
        let (from, known_as) = match &now.transferred_from {
            // The source had to hand it over; its manifests do not declare it any longer.
            _ if now.source != claim.source => (&now.source, (now.name != claim.name).then(|| now.name.clone())),
            // An earlier rollback returned it: its source has not declared it since.
            Some(from) if now.returned && !claim.returned && !claim.awaits_manifest() => {
                (from, now.transferred_as.clone())
            }
            _ => return Some(claim),
        };
        // An offer to the source that had it does not come back: that one would take it again at its next change.
        let to = claim.receiver().filter(|to| *to != from).unwrap_or(&claim.source).to_owned();
        Some(Arc::new(Claim {
            transfer_to: Some(to),
            transferred_from: Some(from.clone()),
            transferred_as: known_as,
            returned: true,
            ..Claim::clone(&claim)
        }))
    }
}
