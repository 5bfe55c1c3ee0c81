//! What routes requests in a revision, as one program sends it to another.

use crate::model::kind::ip_restriction::Traffic;
use crate::model::{Claim, Entry, IpRestriction, JsonError};
use crate::server::prelude::*;

/// The edges and routes of a revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RoutingState {
    /// The revision.
    pub revision: u64,
    /// The edges and routes.
    pub resources: Vec<RoutingResource>,
    /// The enforced IP restrictions of all endpoints.
    #[serde(default)]
    pub ip_restrictions: Vec<RoutingResource>,
}

/// An edge, a route or an IP restriction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RoutingResource {
    /// The ID of the edge of a route; otherwise empty.
    pub edge_id: String,
    /// The ID.
    pub id: String,
    /// The source that owns the resource, or empty.
    pub source: String,
    /// The name in the manifests, or empty.
    pub name: String,
    /// The resource with its modules, as a manifest has it. Secrets are masked.
    pub spec: Value,
}

impl RoutingState {
    /// Describes a state.
    pub(crate) fn new(snapshot: &Snapshot) -> Result<Self, JsonError> {
        let is_routing = |entry: &&Arc<Entry>| matches!(entry.key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute);
        let resources = snapshot.iter().filter(is_routing).map(|entry| RoutingResource::new(entry));
        let restrictions = snapshot.newest_first(Kind::IpRestriction, None, u64::MAX);
        let enforced =
            restrictions.filter(|it| it.spec_as::<IpRestriction>().is_some_and(|it| it.restricts(Traffic::Endpoints)));
        Ok(Self {
            revision: snapshot.revision,
            resources: resources.collect::<Result<_, JsonError>>()?,
            ip_restrictions: enforced.map(|entry| RoutingResource::new(entry)).collect::<Result<_, JsonError>>()?,
        })
    }

    /// The state, without everything that routes no request.
    pub(crate) fn into_snapshot(self) -> Result<Snapshot, JsonError> {
        let edges = self.resources.into_iter().map(|it| (Kind::HttpsEdge, it));
        let all = edges.chain(self.ip_restrictions.into_iter().map(|it| (Kind::IpRestriction, it)));
        let entries = all.zip(0..).map(|((kind, resource), order)| resource.into_entry(kind, order));
        let entries = entries.collect::<Result<Vec<Entry>, JsonError>>()?;
        Ok(Snapshot::restore(self.revision, 0, [], entries))
    }
}

impl RoutingResource {
    fn new(entry: &Entry) -> Result<Self, JsonError> {
        let (source, name) = entry.claim.as_deref().map(|it| (it.source.clone(), it.name.clone())).unwrap_or_default();
        Ok(Self {
            edge_id: entry.key.parent.as_ref().map(ToString::to_string).unwrap_or_default(),
            id: entry.key.id.to_string(),
            source,
            name,
            spec: Value::Object(entry.spec().to_json(Secrets::Masked)?),
        })
    }

    /// The resource of a kind, or the route.
    fn into_entry(self, kind: Kind, order: u64) -> Result<Entry, JsonError> {
        let id = Id::new(&self.id);
        let key = match self.edge_id.as_str() {
            "" => Key::new(kind, id),
            edge => Key::child(Kind::HttpsEdgeRoute, Id::new(edge), id),
        };
        let spec = (key.kind.info().restore)(&self.spec.to_string()).map_err(JsonError::new)?;
        let claim = Claim::new(self.source, self.name);
        let claim = Some(claim).filter(|claim| !claim.name.is_empty()).map(Arc::new);
        Ok(Entry { claim, ..Entry::new(key, spec, Timestamp::UNIX_EPOCH, order) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_is_the_same_on_the_other_side() {
        let resource = |edge_id: &str, id: &str, name: &str, spec: Value| RoutingResource {
            edge_id: edge_id.to_owned(),
            id: id.to_owned(),
            source: "shop".to_owned(),
            name: name.to_owned(),
            spec,
        };
        let edge = json!({"hostports": ["shop.example.com:443"]});
        let oidc = json!({"enabled": true, "issuer": "https://id.example.com", "client_id": "shop", "client_secret": "s3cret"});
        let route = json!({"match_type": "path_prefix", "match": "/cart", "oidc": oidc});
        let resources = vec![resource("", "edghts_1", "shop", edge), resource("edghts_1", "edghtsrt_1", "cart", route)];
        let offices = json!({"type": "endpoints", "enforced": true, "ip_policy_ids": ["ipp_1"]});
        let ip_restrictions = vec![resource("", "ipx_1", "offices", offices)];
        let snapshot = RoutingState { revision: 3, resources, ip_restrictions }.into_snapshot().unwrap();
        let sent = RoutingState::new(&snapshot).unwrap();
        let text = serde_json::to_string(&sent).unwrap();
        assert!(!text.contains("s3cret") && text.contains("https://id.example.com"), "{text}");
        let received: RoutingState = serde_json::from_str(&text).unwrap();
        let again = received.into_snapshot().unwrap();
        assert_eq!(RoutingState::new(&again).unwrap(), sent);
        assert_eq!((again.revision, again.len()), (3, 3));
    }
}
