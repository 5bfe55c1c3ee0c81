//! Counts of what the store holds, made once for each revision: counting visits all resources.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use jiff::Timestamp;
use quick_cache::sync::Cache;

use crate::model::{CertificateAuthority, Entry, Kind, Snapshot, TlsCertificate};

/// The most sources with series of their own: those with the most resources.
const MOST_SOURCES: usize = 100;
/// The most certificates with series of their own: those that expire first.
const MOST_CERTIFICATES: usize = 1000;

/// The resources of a revision.
pub(in crate::server) struct Inventory {
    /// The number of resources by kind.
    pub kinds: BTreeMap<Kind, usize>,
    /// The number of sources that own resources.
    pub sources: usize,
    /// The number of resources by source and kind, of the largest sources.
    pub owned: Vec<(String, BTreeMap<Kind, usize>)>,
    /// The number of resources by source.
    pub by_source: BTreeMap<String, usize>,
    /// The certificates that expire first.
    pub expiries: Vec<Expiry>,
}

/// The end of a certificate's validity.
#[derive(Clone)]
pub(in crate::server) struct Expiry {
    /// The Unix time.
    pub second: i64,
    /// The ID of the certificate or authority.
    pub id: String,
    /// The name in the manifests; empty without a source.
    pub name: String,
}

impl Inventory {
    fn count(snapshot: &Snapshot) -> Self {
        let mut kinds: BTreeMap<Kind, usize> = Kind::all().map(|info| (info.kind, 0)).collect();
        let mut owned: BTreeMap<&str, BTreeMap<Kind, usize>> = BTreeMap::new();
        let mut expiries: Vec<Expiry> = Vec::new();
        for entry in snapshot.iter() {
            let kind = entry.key.kind;
            *kinds.entry(kind).or_default() += 1;
            if let Some(claim) = &entry.claim {
                *owned.entry(claim.source.as_str()).or_default().entry(kind).or_default() += 1;
            }
            expiries.extend(expiry(entry));
        }
        let sources = owned.len();
        let all_of = |kinds: &BTreeMap<Kind, usize>| kinds.values().sum::<usize>();
        let by_source = owned.iter().map(|(source, kinds)| ((*source).to_owned(), all_of(kinds))).collect();
        let mut owned: Vec<(String, BTreeMap<Kind, usize>)> =
            owned.into_iter().map(|(source, kinds)| (source.to_owned(), kinds)).collect();
        owned.sort_by_key(|(_, kinds)| std::cmp::Reverse(kinds.values().sum::<usize>()));
        owned.truncate(MOST_SOURCES);
        expiries.sort_by(|a, b| (a.second, &a.id).cmp(&(b.second, &b.id)));
        expiries.truncate(MOST_CERTIFICATES);
        Self { kinds, sources, owned, by_source, expiries }
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

/// The inventories of the last revisions that were asked for. Within a process, a revision has one content.
pub(crate) struct Inventories(Cache<u64, Arc<Inventory>>);

impl Default for Inventories {
    fn default() -> Self {
        Self(Cache::new(2))
    }
}

impl Inventories {
    /// Returns the inventory of a snapshot.
    pub(in crate::server) fn count(&self, snapshot: &Snapshot) -> Arc<Inventory> {
        let count = || Ok::<_, Infallible>(Arc::new(Inventory::count(snapshot)));
        let Ok(inventory) = self.0.get_or_insert_with(&snapshot.revision, count);
        inventory
    }
}
