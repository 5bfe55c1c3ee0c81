//! Consent of edges to what single requests write (D103).

use super::{delegation::HostEdge, hostports};
use crate::model::{AnyResource, Entry, Fault, HttpsEdge, HttpsEdgeRoute, Kind, Operation, Snapshot};

/// The field of a route that decides where it is.
const MATCH: &str = "match";

/// Returns why an edge of another source does not consent to a request: it adds a hostport of that edge, or moves a route
/// of a source out of what the edge delegates. Requests that change neither are not judged, whatever the state is.
pub(crate) fn refused_write(current: &Snapshot, operation: &Operation) -> Option<Fault> {
    match operation {
        Operation::Create { spec, claim, .. } => {
            let source = claim.as_deref().map(|claim| claim.source.as_str());
            hostports::added_hostport_fault(current, source, spec.as_any().downcast_ref::<HttpsEdge>()?, None)
        }
        Operation::Patch { key, spec, fields }
            if key.kind == Kind::HttpsEdge && fields.iter().any(|field| field == "hostports") =>
        {
            let entry = current.get(key)?;
            let edge = spec.as_any().downcast_ref::<HttpsEdge>()?;
            hostports::added_hostport_fault(current, entry.source(), edge, entry.spec_as::<HttpsEdge>())
        }
        Operation::Patch { key, spec, fields } if key.kind == Kind::HttpsEdgeRoute => {
            let entry = current.get(key)?;
            let source = entry.source()?;
            let route = moved_route(entry, spec.as_ref(), fields)?;
            let edge = HostEdge::from_entry(current.get(&key.parent_key()?)?, source)?;
            let fault = edge.missing_consent(edge.owner?, source, &route)?;
            Some(fault.at(MATCH))
        }
        _ => None,
    }
}

/// The new match of a route, if a request changes it. All other fields are empty.
fn moved_route(entry: &Entry, spec: &dyn AnyResource, fields: &[String]) -> Option<HttpsEdgeRoute> {
    let (former, patch) = (entry.spec_as::<HttpsEdgeRoute>()?, spec.as_any().downcast_ref::<HttpsEdgeRoute>()?);
    let has = |name: &str| fields.iter().any(|field| field == name);
    let match_type = if has("match_type") { patch.match_type } else { former.match_type };
    let text = if has(MATCH) { &patch.r#match } else { &former.r#match };
    let is_moved = match_type != former.match_type || *text != former.r#match;
    is_moved.then(|| HttpsEdgeRoute { match_type, r#match: text.clone(), ..HttpsEdgeRoute::default() })
}
