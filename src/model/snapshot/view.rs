//! The response form of a resource in a snapshot.

use super::Snapshot;
use super::entry::Entry;
use crate::model::base_urls::BaseUrls;
use crate::model::json::JsonError;
use crate::model::resource::any_resource::{AnyResource, ViewContext};
use crate::model::secrets::Secrets;

/// Writes the response form of a resource, with the children that its kind includes.
pub(crate) fn view_json(
    snapshot: &Snapshot,
    entry: &Entry,
    base_urls: &BaseUrls,
    secrets: Secrets<'_>,
) -> Result<Vec<u8>, JsonError> {
    let mut children: Vec<(ViewContext<'_>, &dyn AnyResource)> = Vec::new();
    for child in snapshot.children(&entry.key) {
        let at = ViewContext { key: &child.key, created_at: child.created_at, base_urls, children: &[] };
        children.push((at, child.spec().as_ref()));
    }
    let at = ViewContext { key: &entry.key, created_at: entry.created_at, base_urls, children: &children };
    entry.spec().view_json(&at, secrets)
}
