//! Counts of what the store holds. Those of a revision are made from the last ones and what has changed since: to count
//! everything visits all resources.

use std::sync::Weak;

use imbl::OrdSet;

use crate::model::{CertificateAuthority, Entry, TlsCertificate};
use crate::server::prelude::*;

/// The most sources with series of their own: those with the most resources.
const MOST_SOURCES: usize = 100;
/// The most certificates with series of their own: those that expire first.
const MOST_CERTIFICATES: usize = 1000;

/// The resources of a revision.
#[derive(Default)]
pub(in crate::server) struct Inventory {
    /// The number of resources by kind.
    pub kinds: BTreeMap<Kind, usize>,
    /// The number of resources by source and kind, of the largest sources.
    pub owned: Vec<(String, BTreeMap<Kind, usize>)>,
    /// The number of resources by source.
    pub by_source: BTreeMap<String, usize>,
    /// The certificates that expire first.
    pub expiries: Vec<Expiry>,
}

/// The end of a certificate's validity, or of an invariant's exemption.
#[derive(Clone)]
pub(in crate::server) struct Expiry {
    /// The Unix time.
    pub second: i64,
    /// The ID of the certificate, authority or invariant.
    pub id: String,
    /// The name in the manifests; empty without a source.
    pub name: String,
}

/// The counts of a state, which can be changed by a resource.
#[derive(Default)]
struct ResourceCounts {
    kinds: BTreeMap<Kind, usize>,
    owned: BTreeMap<String, BTreeMap<Kind, usize>>,
    /// The ends of certificates, in Unix time.
    ends: OrdSet<(i64, Key)>,
}

impl ResourceCounts {
    fn add(&mut self, entry: &Entry) {
        let kind = entry.key.kind;
        *self.kinds.entry(kind).or_default() += 1;
        if let Some(source) = entry.source() {
            match self.owned.get_mut(source) {
                Some(kinds) => *kinds.entry(kind).or_default() += 1,
                None => drop(self.owned.insert(source.to_owned(), BTreeMap::from([(kind, 1)]))),
            }
        }
        if let Some(Expiry { second, .. }) = expiry(entry) {
            self.ends.insert((second, entry.key.clone()));
        }
    }

    /// Takes out what [`Self::add`] has added.
    fn remove(&mut self, entry: &Entry) {
        let kind = entry.key.kind;
        take_one(&mut self.kinds, kind);
        if let Some(source) = entry.source()
            && let Some(kinds) = self.owned.get_mut(source)
        {
            take_one(kinds, kind);
            kinds.retain(|_, count| *count > 0);
            if kinds.is_empty() {
                self.owned.remove(source);
            }
        }
        if let Some(Expiry { second, .. }) = expiry(entry) {
            self.ends.remove(&(second, entry.key.clone()));
        }
    }

    /// Makes these counts of a state those of another one.
    fn change(&mut self, before: &Snapshot, after: &Snapshot) {
        for key in after.changed_since(before) {
            if let Some(entry) = before.get(key) {
                self.remove(entry);
            }
            if let Some(entry) = after.get(key) {
                self.add(entry);
            }
        }
    }
}

fn take_one(kinds: &mut BTreeMap<Kind, usize>, kind: Kind) {
    if let Some(count) = kinds.get_mut(&kind) {
        *count = count.saturating_sub(1);
    }
}

impl Inventory {
    fn new(counts: &ResourceCounts, snapshot: &Snapshot) -> Self {
        let mut kinds: BTreeMap<Kind, usize> = Kind::all().map(|info| (info.kind, 0)).collect();
        kinds.extend(&counts.kinds);
        let all_of = |kinds: &BTreeMap<Kind, usize>| kinds.values().sum::<usize>();
        let by_source = counts.owned.iter().map(|(source, kinds)| (source.clone(), all_of(kinds))).collect();
        let mut owned: Vec<(&String, &BTreeMap<Kind, usize>)> = counts.owned.iter().collect();
        owned.sort_by_key(|(_, kinds)| std::cmp::Reverse(all_of(kinds)));
        owned.truncate(MOST_SOURCES);
        let owned = owned.into_iter().map(|(source, kinds)| (source.clone(), kinds.clone())).collect();
        let name = |key: &Key| snapshot.get(key).and_then(|entry| entry.name()).unwrap_or_default().to_owned();
        let expiry = |(second, key): &(i64, Key)| Expiry { second: *second, id: key.id.to_string(), name: name(key) };
        let expiries = counts.ends.iter().take(MOST_CERTIFICATES).map(expiry).collect();
        Self { kinds, owned, by_source, expiries }
    }
}

/// The expiry of a certificate: of the leaf of a chain, as `not_after` of the resource.
pub(in crate::server) fn expiry(entry: &Entry) -> Option<Expiry> {
    let not_after = match entry.key.kind {
        Kind::TlsCertificate => &entry.spec_as::<TlsCertificate>()?.certificate_pem.read().facts().ok()?.not_after,
        Kind::CertificateAuthority => &entry.spec_as::<CertificateAuthority>()?.ca_pem.read().facts()?.not_after,
        _ => return None,
    };
    let second = not_after.parse::<Timestamp>().ok()?.as_second();
    let name = entry.name().unwrap_or_default().to_owned();
    Some(Expiry { second, id: entry.key.id.to_string(), name })
}

/// The inventory of the last revision that was asked for.
#[derive(Default)]
pub(crate) struct Inventories(Lock<LastInventory>);

#[derive(Default)]
struct LastInventory {
    /// The state that was counted, if it is still in memory.
    state: Weak<Snapshot>,
    counts: ResourceCounts,
    inventory: Arc<Inventory>,
}

impl Inventories {
    /// Returns the inventory of a snapshot. Within a process, a revision has one content.
    pub(in crate::server) fn count(&self, snapshot: &Arc<Snapshot>) -> Arc<Inventory> {
        let mut last = self.0.lock();
        let state = last.state.upgrade();
        if state.as_ref().is_some_and(|state| state.revision == snapshot.revision) {
            return Arc::clone(&last.inventory);
        }
        let mut counts = std::mem::take(&mut *last).counts;
        match state {
            Some(state) => counts.change(&state, snapshot),
            None => {
                counts = ResourceCounts::default();
                snapshot.iter().for_each(|entry| counts.add(entry));
            }
        }
        let inventory = Arc::new(Inventory::new(&counts, snapshot));
        *last = LastInventory { state: Arc::downgrade(snapshot), counts, inventory: Arc::clone(&inventory) };
        inventory
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{Claim, HttpsEdge, Id, Operation};
    use crate::store::clock;

    fn create(id: &str, source: &str) -> Operation {
        let key = Key::new(Kind::HttpsEdge, Id::new(id));
        let claim = Some(Arc::new(Claim::new(source, id)));
        Operation::Create { key, spec: Arc::new(HttpsEdge::default()), claim, token: None }
    }

    #[test]
    fn counts_from_the_last_ones_are_those_of_all_resources() {
        let inventories = Inventories::default();
        let delete = |id: &str| Operation::Delete { key: Key::new(Kind::HttpsEdge, Id::new(id)), with_children: true };
        let steps = [
            vec![create("edghts_1", "shop"), create("edghts_2", "docs")],
            vec![create("edghts_3", "shop")],
            vec![delete("edghts_2"), delete("edghts_1")],
        ];
        let mut state = Arc::new(Snapshot::default());
        for operations in steps {
            let (next, _) = state.apply(&operations, clock::now()).unwrap();
            let next = Arc::new(next);
            let (counted, anew) = (inventories.count(&next), Inventories::default().count(&next));
            assert_eq!((&counted.kinds, &counted.owned), (&anew.kinds, &anew.owned));
            assert_eq!(counted.by_source, anew.by_source);
            state = next;
        }
        assert_eq!(inventories.count(&state).by_source, BTreeMap::from([("shop".to_owned(), 1)]));
    }
}
