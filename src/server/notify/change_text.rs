//! A change of a revision on one line.

use crate::model::Key;
use crate::store::history::change_description::{ChangeOutline, OwnerOutline};
use crate::store::{ChangeEvent, OWNED_BY};

/// Describes a change: the event, the resource, and the fields that differ.
pub(super) fn describe(
    outline: &ChangeOutline,
    event: ChangeEvent,
    parent_name: &impl Fn(&Key) -> Option<String>,
) -> Option<String> {
    let ChangeOutline { kind, path, name, .. } = outline;
    let key = Key::at_path(*kind, path)?;
    let own = name.as_deref().unwrap_or(key.id.as_str());
    let parent = key.parent_key().and_then(|parent| parent_name(&parent));
    let name = parent.map_or_else(|| own.to_owned(), |parent| format!("{parent}/{own}"));
    let details = details(outline);
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    Some(format!("{} {kind} {name}{details}", event.as_str()))
}

/// The change of each field of a resource, in a few words.
pub(crate) fn details(outline: &ChangeOutline) -> Vec<String> {
    let mut details: Vec<String> = outline.fields.iter().map(|field| detail(outline, field)).collect();
    if outline.reverted_drift.iter().any(String::is_empty) {
        details.push("drift reverted".to_owned());
    }
    details
}

/// The change of a field.
fn detail(outline: &ChangeOutline, field: &str) -> String {
    let is_module = || outline.kind.info().slots.iter().any(|slot| slot.name == field);
    if field == OWNED_BY {
        ownership(outline.owner_before.as_ref(), outline.owner_after.as_ref())
    } else if outline.reverted_drift.iter().any(|pointer| pointer.split('/').nth(1) == Some(field)) {
        format!("drift of {field} reverted")
    } else if outline.unset.contains(field) && is_module() {
        format!("removed {field}")
    } else {
        field.to_owned()
    }
}

/// How the ownership changed.
fn ownership(before: Option<&OwnerOutline>, after: Option<&OwnerOutline>) -> String {
    let source = before.map(|before| before.source.as_str());
    match (source, after) {
        (Some(source), None) => format!("no longer owned by `{source}`"),
        (_, Some(after)) if source != Some(after.source.as_str()) => format!("now owned by `{}`", after.source),
        (_, Some(OwnerOutline { source: owner, transfer_to: Some(to) })) if to != owner => format!("offered to `{to}`"),
        _ => "ownership".to_owned(),
    }
}
