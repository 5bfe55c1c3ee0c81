//! A response's note for the security log. A handler may run on any thread, and only the router knows the client, so a
//! note travels with the response.

use std::{borrow::Borrow, sync::Arc};

use super::event::{SecurityEvent, SecurityRecord};
use crate::model::{Id, Operation, Owner};
use crate::store::revision::ChangeEvent;

/// The note of a response: the events of its request, without what only the router knows. The time of the log's line is
/// that of logging.
#[derive(Debug, Clone)]
pub(crate) struct SecurityNote(pub(in crate::server) Vec<SecurityRecord>);

impl SecurityNote {
    /// The note of a request that was refused, or of a read, by a key of an owner.
    pub(in crate::server) fn new(event: SecurityEvent, reason: &'static str, actor: Option<(&Id, &Id)>) -> Self {
        let (key, owner) = actor.map(|(key, owner)| (key.clone(), owner.clone())).unzip();
        Self(vec![SecurityRecord { key, owner, reason: reason.into(), ..SecurityRecord::new(event) }])
    }

    /// The note of a request that has made operations, if they change keys or owners.
    pub(in crate::server) fn for_operations<O: Borrow<Operation>>(
        (key, owner): (&Id, &Id),
        operations: &[O],
    ) -> Option<Self> {
        let mut changes = administrative_changes(operations);
        for change in &mut changes {
            (change.key, change.owner) = (Some(key.clone()), Some(owner.clone()));
        }
        (!changes.is_empty()).then_some(Self(changes))
    }

    /// Notes the template of the request's path.
    pub(in crate::server) fn set_path(&mut self, path: &Arc<str>) {
        self.0.iter_mut().for_each(|record| record.path = Some(Arc::clone(path)));
    }

    /// Whether the request had no valid token.
    pub(in crate::server) fn is_failed_authentication(&self) -> bool {
        let failed = [SecurityEvent::AuthenticationFailed, SecurityEvent::WebhookRefused];
        self.0.iter().any(|record| failed.contains(&record.event))
    }
}

/// The changes of keys, owners and roles among operations.
pub(in crate::server) fn administrative_changes<O: Borrow<Operation>>(operations: &[O]) -> Vec<SecurityRecord> {
    let changes = operations.iter().map(Borrow::<Operation>::borrow).filter_map(|operation| {
        let key = operation.key();
        let change = match operation {
            Operation::Create { .. } => ChangeEvent::Created,
            Operation::Delete { .. } => ChangeEvent::Deleted,
            _ => ChangeEvent::Updated,
        };
        let event = SecurityEvent::from_change(key.kind, change)?;
        let role = operation.spec_as::<Owner>().map(|owner| owner.role);
        Some(SecurityRecord { target: Some(key.id.clone()), role, ..SecurityRecord::new(event) })
    });
    changes.collect()
}
