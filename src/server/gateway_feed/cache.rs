//! The configurations of the newest revisions: each is made once, from one snapshot.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::edges::EdgeResolver;
use super::view::{GatewayConfiguration, GatewayEdge};
use crate::model::{JsonError, json};
use crate::server::prelude::*;

/// How many configurations are kept, for gateways that are a few revisions behind. They share equal edges.
const MOST_KEPT: usize = 4;

/// An HTTPS edge as it is sent.
struct FeedEdge {
    version: String,
    json: Arc<RawValue>,
}

/// The configuration of one revision.
pub(super) struct Feed {
    /// The revision.
    pub(super) revision: u64,
    /// The strong ETag: the revision, and a digest of the content.
    pub(super) etag: Arc<str>,
    digest: String,
    edges: BTreeMap<String, FeedEdge>,
    tls_edges: Arc<RawValue>,
    ip_restrictions: Arc<RawValue>,
}

impl Feed {
    fn new(store: &Store, base_urls: &BaseUrls, snapshot: &Snapshot, former: Option<&Feed>) -> Result<Self, JsonError> {
        let resolver = EdgeResolver::new(store, base_urls, snapshot);
        let mut edges = BTreeMap::new();
        for mut edge in resolver.edges()? {
            let bytes = json::bytes(&edge, Secrets::Revealed)?;
            edge.version = format!("{:x}", Sha256::digest(&bytes));
            let known = former.and_then(|former| former.edges.get(&edge.id)).filter(|it| it.version == edge.version);
            let json = match known {
                Some(known) => Arc::clone(&known.json),
                None => raw(&edge)?,
            };
            let GatewayEdge { id, version, .. } = edge;
            edges.insert(id, FeedEdge { version, json });
        }
        let mut hasher = Sha256::new();
        for (id, edge) in &edges {
            hasher.update(format!("{id} {}\n", edge.version));
        }
        let digest = format!("{:x}", hasher.finalize());
        let (tls_edges, ip_restrictions) = (raw(&resolver.tls_edges()?)?, raw(&resolver.ip_restrictions())?);
        let mut content = Sha256::new();
        for part in [digest.as_str(), tls_edges.get(), ip_restrictions.get()] {
            content.update(part);
        }
        let content = format!("{:x}", content.finalize());
        let etag = Arc::from(format!("\"{}-{content:.32}\"", snapshot.revision));
        Ok(Self { revision: snapshot.revision, etag, digest, edges, tls_edges, ip_restrictions })
    }

    /// Returns the configuration: what differs from an earlier one, or else the whole.
    pub(super) fn configuration(&self, former: Option<&Feed>) -> GatewayConfiguration {
        let (mut edges, mut changed, mut removed) = (Vec::new(), BTreeMap::new(), Vec::new());
        match former {
            None => edges.extend(self.edges.values().map(|edge| Arc::clone(&edge.json))),
            Some(former) => {
                let is_known = |id: &str, version: &str| former.edges.get(id).is_some_and(|it| it.version == version);
                let new = self.edges.iter().filter(|(id, edge)| !is_known(id, &edge.version));
                changed.extend(new.map(|(id, edge)| (id.clone(), Arc::clone(&edge.json))));
                removed.extend(former.edges.keys().filter(|id| !self.edges.contains_key(*id)).cloned());
            }
        }
        GatewayConfiguration {
            revision: self.revision,
            full: former.is_none(),
            digest: self.digest.clone(),
            ip_restrictions: Arc::clone(&self.ip_restrictions),
            tls_edges: Arc::clone(&self.tls_edges),
            edges,
            changed,
            removed,
        }
    }
}

fn raw<T: Serialize>(value: &T) -> Result<Arc<RawValue>, JsonError> {
    let text = String::from_utf8(json::bytes(value, Secrets::Revealed)?);
    let text = text.map_err(|_| JsonError::new("a part of the gateway configuration is not UTF-8"))?;
    // The reason could quote a secret.
    let raw = RawValue::from_string(text);
    raw.map(Arc::from).map_err(|_| JsonError::new("a part of the gateway configuration is not JSON"))
}

/// The configurations of the newest revisions. Within a process, a revision has one content.
#[derive(Default)]
pub(crate) struct Feeds(Lock<VecDeque<Arc<Feed>>>);

impl Feeds {
    /// Returns the configuration of a revision. If several gateways ask for a new one, the first makes it and the others
    /// wait.
    pub(super) fn get(&self, store: &Store, base_urls: &BaseUrls, snapshot: &Snapshot) -> Result<Arc<Feed>, JsonError> {
        // Declared before the lock, and so dropped after it: freeing a configuration takes a while.
        let mut freed = Vec::new();
        let mut kept = self.0.lock();
        if let Some(feed) = kept.iter().find(|feed| feed.revision == snapshot.revision) {
            return Ok(Arc::clone(feed));
        }
        let feed = Arc::new(Feed::new(store, base_urls, snapshot, kept.back().map(|former| &**former))?);
        kept.push_back(Arc::clone(&feed));
        if kept.len() > MOST_KEPT {
            freed.extend(kept.pop_front());
        }
        Ok(feed)
    }

    /// Returns the configuration of an earlier revision, or none if its state is no longer known.
    pub(super) fn earlier(
        &self,
        store: &Store,
        base_urls: &BaseUrls,
        revision: u64,
    ) -> Result<Option<Arc<Feed>>, JsonError> {
        let known = self.0.lock().iter().find(|feed| feed.revision == revision).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let Ok(snapshot) = store.snapshot_at(revision) else { return Ok(None) };
        // Not kept: the gateway that asked for it has the current one next time.
        Feed::new(store, base_urls, &snapshot, None).map(|feed| Some(Arc::new(feed)))
    }
}
