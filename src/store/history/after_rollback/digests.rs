//! Digests of what a source has in a state, with the IDs of its resources and with their names alone.
//!
//! After a rollback, the same manifests can lead to other IDs: if it undid a rename and `renamed_from` was removed since, they
//! declare a new resource of the new name, and no longer the former one.

use super::transfers::TransferredPaths;
use crate::model::{Claim, Entry, JsonError, Snapshot};
use crate::store::error::StoreError;
use crate::store::open_store::Store;

/// Keyed digests of what a source has in a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SourceDigests {
    /// With the IDs of its resources.
    pub exact: String,
    /// With the names of its resources in place of their IDs.
    pub by_name: String,
}

impl Store {
    /// The digests of what a source has in a state, without some resources: what its manifests declare, once they are applied.
    pub(super) fn digests_of(
        &self,
        state: &Snapshot,
        source: &str,
        transferred: &TransferredPaths,
    ) -> Result<SourceDigests, StoreError> {
        let mut exact = blake3::Hasher::new_keyed(&self.digest_key);
        let mut named: Vec<[u8; blake3::OUT_LEN]> = Vec::new();
        for entry in state.iter().filter(|entry| entry.is_owned_by(source) && !transferred.contains(&entry.key)) {
            let Some(claim) = &entry.claim else { continue };
            let spec = entry.lazy_spec.digest().map_err(StoreError::internal)?;
            add(&mut exact, &[entry.key.path().as_bytes()], claim, &spec);
            let mut one = blake3::Hasher::new_keyed(&self.digest_key);
            let spec = spec_by_name(state, source, entry).map_err(StoreError::internal)?;
            let parent = parent_by_name(state, source, entry);
            add(&mut one, &[entry.key.kind.info().name.as_bytes(), parent.as_bytes()], claim, &spec);
            named.push(*one.finalize().as_bytes());
        }
        // The order of the resources is that of their IDs.
        named.sort_unstable();
        let mut by_name = blake3::Hasher::new_keyed(&self.digest_key);
        for one in &named {
            by_name.update(one);
        }
        let [exact, by_name] = [exact, by_name].map(|hasher| hasher.finalize().to_hex().to_string());
        Ok(SourceDigests { exact, by_name })
    }
}

/// Adds a resource to a digest.
fn add(hasher: &mut blake3::Hasher, place: &[&[u8]], claim: &Claim, spec: &blake3::Hash) {
    let protected: &[u8] = if claim.prevent_destroy { b"1" } else { b"0" };
    for part in place.iter().copied().chain([claim.name.as_bytes(), protected, spec.as_bytes().as_slice()]) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    // An offer is part of what a rollback undoes (D104). The digests of all other resources are as they always were.
    // What a rollback keeps beside that is no content of the state that it brings back.
    if let Some(to) = claim.transfer_to.as_ref().filter(|_| !claim.is_kept_by_rollback()) {
        hasher.update(b"transfer_to").update(&(to.len() as u64).to_le_bytes()).update(to.as_bytes());
    }
}

/// The name of the parent of a resource, or its path if it is of another source.
fn parent_by_name(state: &Snapshot, source: &str, entry: &Entry) -> String {
    let Some(key) = entry.key.parent_key() else { return String::new() };
    let own = state.get(&key).filter(|parent| parent.is_owned_by(source));
    own.and_then(|parent| parent.name()).map_or_else(|| key.path(), str::to_owned)
}

/// The digest of a Spec, with the names of the source's resources that it references in place of their IDs.
fn spec_by_name(state: &Snapshot, source: &str, entry: &Entry) -> Result<blake3::Hash, JsonError> {
    let own = entry.lazy_spec.references().iter().filter_map(|key| {
        let target = state.get(key).filter(|target| target.is_owned_by(source) && !key.id.as_str().is_empty())?;
        Some((key.id.as_str(), target.name()?))
    });
    let own: Vec<(&str, &str)> = own.collect();
    if own.is_empty() {
        return entry.lazy_spec.digest();
    }
    let (mut hasher, mut rest) = (blake3::Hasher::new(), entry.lazy_spec.stored()?);
    // The text has secrets, so there is no copy of it without the IDs.
    while let Some((before, after)) =
        own.iter().filter_map(|(id, _)| rest.split_once(*id)).min_by_key(|(before, _)| before.len())
    {
        hasher.update(before.as_bytes()).update(&[0]);
        rest = after;
    }
    hasher.update(rest.as_bytes());
    for (_, name) in &own {
        hasher.update(&[0]).update(name.as_bytes());
    }
    Ok(hasher.finalize())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::module::mutual_tls::MutualTls;
    use crate::model::secrets::Text;
    use crate::model::{
        AnyResource, CertificateAuthority, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, MatchType, Operation,
    };

    const CA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/staff-devices.pem"));

    /// The digests of an authority, an edge that uses it, and routes of the edge: all IDs end with `end`.
    fn digests(store: &Store, end: &str, routes: [(&str, &str); 2]) -> SourceDigests {
        let create = |key: &Key, spec: Arc<dyn AnyResource>, name: &str| {
            let claim = Some(Arc::new(Claim::new("shop", name)));
            Operation::Create { key: key.clone(), spec, claim, token: None }
        };
        let authority = Key::new(Kind::CertificateAuthority, Id::new(&format!("ca_{end}")));
        let edge = Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{end}")));
        let ca = CertificateAuthority { ca_pem: Text::new(CA), ..CertificateAuthority::default() };
        let certificate_authority_ids = vec![authority.id.to_string()];
        let mutual_tls = MutualTls { certificate_authority_ids, ..MutualTls::default() };
        let spec = HttpsEdge { mutual_tls: Some(Arc::new(mutual_tls)), ..HttpsEdge::default() };
        let mut operations = vec![create(&authority, Arc::new(ca), "staff"), create(&edge, Arc::new(spec), "shop")];
        operations.extend(routes.map(|(id, name)| {
            let key = Key::child(Kind::HttpsEdgeRoute, edge.id.clone(), Id::new(&format!("edghtsrt_{id}{end}")));
            let (match_type, r#match) = (Some(MatchType::ExactPath), format!("/{name}"));
            create(&key, Arc::new(HttpsEdgeRoute { match_type, r#match, ..HttpsEdgeRoute::default() }), name)
        }));
        let state = Snapshot::default().apply(&operations, Timestamp::UNIX_EPOCH).unwrap().0;
        store.digests_of(&state, "shop", &TransferredPaths::default()).unwrap()
    }

    #[test]
    fn a_digest_by_name_is_the_same_with_other_ids() {
        let store = Store::open("memory:").unwrap();
        let one = digests(&store, "1", [("a", "cart"), ("b", "help")]);
        assert_eq!(one, digests(&store, "1", [("a", "cart"), ("b", "help")]));
        // Their order is another one, too.
        let other = digests(&store, "2", [("a", "help"), ("b", "cart")]);
        assert!(one.exact != other.exact && one.by_name == other.by_name, "{one:?} {other:?}");
        let renamed = digests(&store, "1", [("a", "cart"), ("b", "about")]);
        assert!(one.exact != renamed.exact && one.by_name != renamed.by_name, "{one:?} {renamed:?}");
    }
}
