//! The response form of a resource in a snapshot.

use super::{
    any_resource::{ViewChild, ViewContext},
    base_urls::BaseUrls,
    json::JsonError,
    secrets::Secrets,
    snapshot::{Entry, Snapshot},
};

/// Writes the response form of a resource, with the children that its kind includes.
pub(crate) fn view_json(
    snapshot: &Snapshot,
    entry: &Entry,
    base_urls: &BaseUrls,
    secrets: Secrets<'_>,
) -> Result<Vec<u8>, JsonError> {
    let key = &entry.key;
    let children = snapshot.children(key).map(|child| {
        let spec = child.spec().as_ref();
        ViewChild { key: &child.key, created_at: child.created_at, spec }
    });
    let children: Vec<ViewChild<'_>> = children.collect();
    let at = ViewContext { key, created_at: entry.created_at, base_urls, children: &children };
    entry.spec().view_json(&at, secrets)
}
