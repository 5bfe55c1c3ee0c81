//! Keys that the followed sources create, change and delete: no request tells of them.

use std::{sync::mpsc::Receiver, thread};

use super::event::{SecurityEvent, SecurityRecord};
use super::writer::SecurityLog;
use crate::server::prelude::*;
use crate::store::Revision;

/// Logs what followed sources change of keys and owners in these revisions, until the store is closed.
pub(crate) fn log_sources(revisions: Receiver<Revision>, log: SecurityLog) -> std::io::Result<()> {
    let follow = move || revisions.into_iter().for_each(|revision| log_revision(&revision, &log));
    thread::Builder::new().name("security sources".into()).spawn(follow).map(drop)
}

fn log_revision(revision: &Revision, log: &SecurityLog) {
    // Requests are logged with their clients.
    let Author::Source { source, through: None, .. } = &revision.author else { return };
    for changed in revision.changed.iter() {
        let Some(event) = SecurityEvent::from_change(changed.key.kind, changed.event) else { continue };
        let role =
            (changed.key.kind == Kind::Owner).then(|| rules::role_of(&revision.snapshot, changed.key.id.as_str()));
        log.write(SecurityRecord {
            source: Some(source.clone()),
            target: Some(changed.key.id.clone()),
            role: role.flatten(),
            ..SecurityRecord::new(event)
        });
    }
}
