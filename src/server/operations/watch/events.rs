//! The events of a stream, as they are sent.

use crate::server::handler_prelude::*;
use crate::server::resources::change::{ChangeFilter, actor};
use crate::server::resources::render::render;
use crate::store::Revision;
use crate::store::revision::{ChangeEvent, ChangedResource};

/// The size from which on a portion of a revision is sent.
const PORTION: usize = 64 << 10;

/// The data of a change. The resource follows as the last field.
#[derive(Serialize)]
struct WatchedChange<'a> {
    revision: u64,
    time: Timestamp,
    actor: &'a Author,
    kind: Kind,
    id: &'a Id,
    parent: Option<&'a Id>,
    source: Option<&'a str>,
    name: Option<&'a str>,
    uri: String,
}

/// Some events of a revision.
pub(super) struct Portion {
    pub(super) text: Bytes,
    /// The change that the next portion starts with; none after the last one.
    pub(super) next: Option<usize>,
}

/// Returns the changes of a revision from `start` on, as far as they fit into a chunk. The last portion ends with the
/// event `revision`: only this event has an id, because a client that resumes after it has missed no change.
pub(super) fn portion(
    base_urls: &BaseUrls,
    visibility: &SecretVisibility,
    filter: &ChangeFilter,
    revision: &Revision,
    start: usize,
) -> Result<Portion, ApiError> {
    let mut text = Vec::new();
    let actor = actor(&revision.author);
    for (at, changed) in revision.changed.iter().enumerate().skip(start) {
        let source = changed.claim.as_deref().map(|claim| claim.source.as_str());
        if !filter.selects(changed.key.kind, source) {
            continue;
        }
        if text.len() >= PORTION {
            return Ok(Portion { text: text.into(), next: Some(at) });
        }
        write(&mut text, None, changed.event.as_str(), &data(base_urls, visibility, revision, &actor, changed)?);
    }
    let Revision { snapshot, at, .. } = revision;
    let end = json!({"revision": snapshot.revision, "time": at, "actor": actor});
    write(&mut text, Some(snapshot.revision), "revision", end.to_string().as_bytes());
    Ok(Portion { text: text.into(), next: None })
}

fn data(
    base_urls: &BaseUrls,
    visibility: &SecretVisibility,
    revision: &Revision,
    actor: &Author,
    changed: &ChangedResource,
) -> Result<Vec<u8>, ApiError> {
    let ChangedResource { key, event, claim } = changed;
    let Revision { snapshot, at, .. } = revision;
    let change = WatchedChange {
        revision: snapshot.revision,
        time: *at,
        actor,
        kind: key.kind,
        id: &key.id,
        parent: key.parent.as_ref(),
        source: claim.as_deref().map(|claim| claim.source.as_str()),
        name: claim.as_deref().map(|claim| claim.name.as_str()),
        uri: base_urls.uri(key),
    };
    let mut data = json::bytes(&change, Secrets::Masked)?;
    if *event == ChangeEvent::Deleted {
        return Ok(data);
    }
    let entry = snapshot.get(key).ok_or_else(|| JsonError::new("a changed resource is missing"))?;
    let resource = render(base_urls, visibility, snapshot, entry)?;
    data.pop();
    data.extend_from_slice(b",\"resource\":");
    data.extend_from_slice(&resource.body);
    data.push(b'}');
    Ok(data)
}

/// Writes an event. JSON on one line needs no escapes.
fn write(text: &mut Vec<u8>, id: Option<u64>, event: &str, data: &[u8]) {
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(format!("event: {event}\ndata: ").as_bytes());
    text.extend_from_slice(data);
    text.extend_from_slice(b"\n\n");
}

/// The start of a stream. It sets the id with which a client resumes even if it has seen no event yet.
pub(super) fn start(known: u64) -> Bytes {
    format!(": changes after revision {known}\nid: {known}\n\n").into()
}

/// A comment.
pub(super) fn heartbeat() -> Bytes {
    Bytes::from_static(b": heartbeat\n\n")
}

/// The event of the error that ends a stream.
pub(super) fn error(error: &ApiError) -> Bytes {
    let mut text = Vec::new();
    write(&mut text, None, "error", error.to_json_line().as_bytes());
    text.into()
}
