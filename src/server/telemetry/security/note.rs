//! A response's note for the security log. A handler may run on any thread, and only the router knows the client, so a
//! note travels with the response.

use std::{borrow::Borrow, sync::Arc};

use super::event::SecurityEvent;
use crate::{
    model::{
        id::Id,
        kind::owner::{Owner, Role},
        operation::Operation,
    },
    store::revision::ChangeEvent,
};

/// The note of a response.
#[derive(Debug, Clone)]
pub(crate) struct SecurityNote {
    /// The caller's API key, if the store has it.
    pub(in crate::server) key: Option<Id>,
    /// The key's owner.
    pub(in crate::server) owner: Option<Id>,
    /// The changes.
    pub(in crate::server) changes: Vec<SecurityChange>,
    /// The template of the path, which the endpoint adds.
    pub(in crate::server) path: Option<Arc<str>>,
}

/// One event of a request.
#[derive(Debug, Clone)]
pub(crate) struct SecurityChange {
    pub(in crate::server) event: SecurityEvent,
    pub(in crate::server) reason: &'static str,
    /// The key or owner that was changed.
    pub(in crate::server) target: Option<Id>,
    /// The role that an owner was given.
    pub(in crate::server) role: Option<Role>,
}

impl SecurityNote {
    /// The note of a request that was refused, or of a read, by a key of an owner.
    pub(in crate::server) fn new(event: SecurityEvent, reason: &'static str, actor: Option<(&Id, &Id)>) -> Self {
        let change = SecurityChange { event, reason, target: None, role: None };
        let (key, owner) = actor.map(|(key, owner)| (key.clone(), owner.clone())).unzip();
        Self { key, owner, changes: vec![change], path: None }
    }

    /// The note of a request that has made operations, if they change keys or owners.
    pub(in crate::server) fn for_operations<O: Borrow<Operation>>(
        (key, owner): (&Id, &Id),
        operations: &[O],
    ) -> Option<Self> {
        let changes = administrative_changes(operations);
        (!changes.is_empty()).then(|| Self { key: Some(key.clone()), owner: Some(owner.clone()), changes, path: None })
    }

    /// Whether the request had no valid token.
    pub(in crate::server) fn is_failed_authentication(&self) -> bool {
        let failed = [SecurityEvent::AuthenticationFailed, SecurityEvent::WebhookRefused];
        self.changes.iter().any(|change| failed.contains(&change.event))
    }
}

/// The changes of keys, owners and roles among operations.
pub(in crate::server) fn administrative_changes<O: Borrow<Operation>>(operations: &[O]) -> Vec<SecurityChange> {
    let changes = operations.iter().map(Borrow::<Operation>::borrow).filter_map(|operation| {
        let key = operation.key();
        let change = match operation {
            Operation::Create { .. } => ChangeEvent::Created,
            Operation::Delete { .. } => ChangeEvent::Deleted,
            _ => ChangeEvent::Updated,
        };
        let event = SecurityEvent::from_change(key.kind, change)?;
        let role = match operation {
            Operation::Create { spec, .. } | Operation::Patch { spec, .. } => {
                spec.as_any().downcast_ref::<Owner>().map(|owner| owner.role)
            }
            _ => None,
        };
        Some(SecurityChange { event, reason: "", target: Some(key.id.clone()), role })
    });
    changes.collect()
}
