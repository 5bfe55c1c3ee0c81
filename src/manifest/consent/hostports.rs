//! Hostports of edges: an edge cannot add one that an edge of another source has (D103).

use foldhash::{HashMap, HashMapExt as _};

use super::{WHOLE, prefixes_of};
use crate::{
    background::give_way,
    lint::host_port,
    model::{
        Kind,
        code::Code,
        desired::Desired,
        fault::{Fault, Path},
        key::Key,
        kind::https_edge::HttpsEdge,
        operation::Claim,
        snapshot::Snapshot,
    },
    text::printable,
};

/// The hostports that edges of others have and do not share, with the claims of these edges.
type ServedHostports<'s> = HashMap<(String, u16), &'s Claim>;

/// The hostports of the edges of all sources but one. Nothing is shared with edges without a source.
fn served_by_others<'s>(snapshot: &'s Snapshot, source: Option<&str>) -> ServedHostports<'s> {
    let mut served: ServedHostports<'s> = HashMap::new();
    // Of several edges with one hostport, the oldest one comes last and counts.
    for entry in snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX) {
        give_way();
        let Some(claim) = entry.claim.as_deref().filter(|claim| Some(claim.source.as_str()) != source) else {
            continue;
        };
        let Some(edge) = entry.spec_as::<HttpsEdge>() else { continue };
        if source.is_none_or(|source| !prefixes_of(edge, source).contains(&WHOLE)) {
            served.extend(edge.hostports.iter().filter_map(|text| host_port(text)).map(|address| (address, claim)));
        }
    }
    served
}

/// The hostports that an edge does not have yet, with their places in the list.
fn added<'e>(edge: &'e HttpsEdge, former: Option<&HttpsEdge>) -> Vec<(usize, &'e str, (String, u16))> {
    let known: Vec<(String, u16)> =
        former.iter().flat_map(|former| &former.hostports).filter_map(|text| host_port(text)).collect();
    let all = edge.hostports.iter().enumerate();
    let all = all.filter_map(|(index, text)| Some((index, text.as_str(), host_port(text)?)));
    all.filter(|(_, _, address)| !known.contains(address)).collect()
}

fn fault(index: usize, text: &str, claim: &Claim, source: Option<&str>) -> Fault {
    let (owner, name) = (printable(&claim.source), printable(&claim.name));
    let message =
        format!("`{}` belongs to HttpsEdge `{name}` of source `{owner}`, which serves it already", printable(text));
    let help = match source {
        Some(source) => format!(
            "remove it, declare routes of `{name}` instead, or ask for `delegates_to: [{{source: {source}, \
             path_prefix: /}}]` in its manifest"
        ),
        None => format!("remove it, or ask the owner of `{name}` to remove it there first"),
    };
    Fault::new(Code::NotDelegated, message).at(Path::root().join("hostports").join(index)).help(help)
}

/// Whether an edge adds a hostport, so that it can have one of another source. This reads no other edges.
pub(in crate::manifest) fn add_hostports<'a>(
    mut edges: impl Iterator<Item = &'a Desired>,
    snapshot: &Snapshot,
) -> bool {
    edges.any(|wanted| {
        let Some(edge) = wanted.spec.as_any().downcast_ref::<HttpsEdge>() else { return false };
        let former = snapshot.get(&wanted.key).and_then(|former| former.spec_as::<HttpsEdge>());
        !added(edge, former).is_empty()
    })
}

/// Returns a fault for each hostport that an edge adds and an edge of another source has. What an edge had before is not
/// judged: nobody can tell from the store who had it first.
pub(in crate::manifest) fn hostport_faults<'a>(
    edges: impl Iterator<Item = &'a Desired>,
    snapshot: &Snapshot,
    source: &str,
) -> Vec<(Key, Fault)> {
    let mut found = Vec::new();
    let served = served_by_others(snapshot, Some(source));
    if served.is_empty() {
        return found;
    }
    for wanted in edges {
        give_way();
        let Some(edge) = wanted.spec.as_any().downcast_ref::<HttpsEdge>() else { continue };
        let former = snapshot.get(&wanted.key).and_then(|former| former.spec_as::<HttpsEdge>());
        for (index, text, address) in added(edge, former) {
            if let Some(claim) = served.get(&address) {
                found.push((wanted.key.clone(), fault(index, text, claim, Some(source))));
            }
        }
    }
    found
}

/// Returns a fault for each edge of a source that gets a hostport between two states that an edge of another source has
/// afterwards.
pub(crate) fn retaken_hostports<'k>(
    keys: impl Iterator<Item = &'k Key>,
    before: &Snapshot,
    after: &Snapshot,
    source: &str,
) -> Vec<(Key, Fault)> {
    let mut served = None;
    let mut found = Vec::new();
    for key in keys.filter(|key| key.kind == Kind::HttpsEdge) {
        let Some(edge) = after.get(key).and_then(|entry| entry.spec_as::<HttpsEdge>()) else { continue };
        let former = before.get(key).and_then(|former| former.spec_as::<HttpsEdge>());
        for (index, text, address) in added(edge, former) {
            let served = served.get_or_insert_with(|| served_by_others(after, Some(source)));
            if let Some(claim) = served.get(&address) {
                found.push((key.clone(), fault(index, text, claim, Some(source))));
            }
        }
    }
    found
}

/// Returns a fault for the first hostport that a request adds to an edge of a source, or of none, and that an edge of
/// another source has. Other edges are not read unless the request adds a hostport.
pub(super) fn taken(
    current: &Snapshot,
    source: Option<&str>,
    edge: &HttpsEdge,
    former: Option<&HttpsEdge>,
) -> Option<Fault> {
    let added = added(edge, former);
    if added.is_empty() {
        return None;
    }
    let served = served_by_others(current, source);
    added.into_iter().find_map(|(index, text, address)| Some(fault(index, text, served.get(&address)?, source)))
}
