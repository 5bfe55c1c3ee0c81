//! How messages name resources: by kind, source and name, because an ID alone means nothing to a reader.

use super::Snapshot;
use super::entry::Entry;
use crate::model::claim::source_in_words;
use crate::model::key::Key;
use crate::syntax::text::{first_of, printable};

/// The most resources that a message names.
const NAMED: usize = 10;

impl Snapshot {
    /// Names a resource in a message: ``HttpsEdgeRoute shop/cart of source `shop` (edghtsrt_…)``, or by kind and ID if no
    /// source owns it.
    pub(crate) fn name_of(&self, key: &Key) -> String {
        let Some((entry, claim)) = self.get(key).and_then(|entry| Some((entry, entry.claim.as_deref()?))) else {
            return key.to_string();
        };
        let (name, source) = (printable(&self.full_name(entry)), source_in_words(&claim.source));
        format!("{} {name} of {source} ({})", key.kind, key.id)
    }

    /// Names the first resources of a list, and counts the others.
    pub(crate) fn names_of(&self, keys: &[Key]) -> String {
        first_of(keys.iter().map(|key| self.name_of(key)), NAMED)
    }

    /// Returns the name in the manifests or the ID, prefixed with that of the parent.
    pub(crate) fn full_name(&self, entry: &Entry) -> String {
        entry.key.full_name(own_name(entry), |parent| self.get(parent).map(|entry| own_name(entry)))
    }

    /// Returns the same for a key whose resource may be gone. Its own name was `own`; if that is empty, the ID counts.
    pub(crate) fn full_name_at(&self, key: &Key, own: &str) -> String {
        let gone = if own.is_empty() { key.id.as_str() } else { own };
        let own = self.get(key).map_or(gone, |entry| own_name(entry));
        key.full_name(own, |parent| self.get(parent).map(|entry| own_name(entry)))
    }
}

fn own_name(entry: &Entry) -> &str {
    entry.name().unwrap_or(entry.key.id.as_str())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::claim::Claim;
    use crate::model::id::Id;
    use crate::model::kind::Kind;
    use crate::model::kind::https_edge::HttpsEdge;
    use crate::model::kind::https_edge_route::{HttpsEdgeRoute, MatchType};
    use crate::model::operation::Operation;
    use crate::model::resource::any_resource::AnyResource;

    fn claim(source: &str, name: &str) -> Option<Arc<Claim>> {
        Some(Arc::new(Claim::new(source, name)))
    }

    #[test]
    fn a_resource_is_named_by_its_source_and_name_or_by_its_id() {
        let edge = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
        let route = |id: &str| Key::child(Kind::HttpsEdgeRoute, edge.id.clone(), Id::new(id));
        let create = |key: &Key, claim: Option<Arc<Claim>>| {
            let spec: Arc<dyn AnyResource> = match key.kind {
                Kind::HttpsEdge => Arc::new(HttpsEdge::default()),
                _ => {
                    let (match_type, r#match) = (Some(MatchType::ExactPath), "/".to_owned());
                    Arc::new(HttpsEdgeRoute { match_type, r#match, ..HttpsEdgeRoute::default() })
                }
            };
            Operation::Create { key: key.clone(), spec, claim, token: None }
        };
        let operations = [
            create(&edge, claim("shop", "store")),
            create(&route("edghtsrt_1"), claim("te\nam", "cart")),
            create(&route("edghtsrt_2"), None),
        ];
        let state = Snapshot::default().apply(&operations, Timestamp::UNIX_EPOCH).unwrap().0;
        assert_eq!(state.name_of(&edge), "HttpsEdge store of source `shop` (edghts_1)");
        let cart = "HttpsEdgeRoute store/cart of source `te\\nam` (edghtsrt_1)";
        assert_eq!(state.name_of(&route("edghtsrt_1")), cart);
        assert_eq!(state.name_of(&route("edghtsrt_2")), "HttpsEdgeRoute edghtsrt_2");
        let many: Vec<Key> = (0..12).map(|at| route(&format!("edghtsrt_x{at}"))).collect();
        assert!(state.names_of(&many).ends_with("HttpsEdgeRoute edghtsrt_x9 and 2 more"));
    }
}
