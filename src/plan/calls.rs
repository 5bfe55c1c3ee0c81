//! The API calls that change or delete one resource.

use std::sync::Arc;

use crate::model::{AnyResource, Entry, JsonError, Key, Operation, Secrets};

/// The calls that delete a resource. An implicit resource goes with its last module (D34).
pub(super) fn deletion(entry: &Entry) -> Vec<Operation> {
    let (key, info) = (&entry.key, entry.key.kind.info());
    if !info.implicit {
        return vec![Operation::Delete { key: key.clone(), with_children: false }];
    }
    let full = info.slots.iter().filter(|slot| entry.spec().module(slot).is_some());
    full.map(|slot| Operation::DeleteModule { host: key.clone(), slot }).collect()
}

/// The calls that turn one spec into another: one PATCH with the changed plain fields, a PUT for each new or changed
/// module, and a DELETE for each removed module, because PATCH cannot delete.
pub(super) fn changes(
    key: &Key,
    from: &dyn AnyResource,
    to: &Arc<dyn AnyResource>,
) -> Result<Vec<Operation>, JsonError> {
    if from.same(to.as_ref()) {
        return Ok(Vec::new());
    }
    let slots = key.kind.info().slots;
    let mut operations = Vec::new();
    let (old, new) = (from.to_json(Secrets::Revealed)?, to.to_json(Secrets::Revealed)?);
    let plain = |field: &&String| !slots.iter().any(|slot| slot.name == field.as_str());
    // A field that is not written when it is unset is in one of them only.
    let gone = old.keys().filter(|field| !new.contains_key(field.as_str()));
    let fields: Vec<String> =
        new.keys().chain(gone).filter(plain).filter(|field| old.get(*field) != new.get(*field)).cloned().collect();
    if !fields.is_empty() {
        operations.push(Operation::Patch { key: key.clone(), spec: Arc::clone(to), fields });
    }
    // PUTs come first: an implicit resource (D34) must not vanish in between.
    let mut deletions = Vec::new();
    for slot in slots {
        match (from.module(slot), to.module(slot)) {
            (Some(_), None) => deletions.push(Operation::DeleteModule { host: key.clone(), slot }),
            (old, Some(new)) if old.is_none_or(|old| !old.same(new)) => {
                let module = to.shared_module(slot);
                operations.extend(module.map(|module| Operation::PutModule { host: key.clone(), slot, module }));
            }
            _ => {}
        }
    }
    operations.append(&mut deletions);
    Ok(operations)
}
