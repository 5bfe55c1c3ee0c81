//! What a target is told of.

use std::collections::BTreeSet;

use super::{events::EventType, transitions::EventContent};
use crate::{model::Kind, server::resources::change::ChangeFilter, store::revision::ChangeEvent};

/// Selects the events that a target receives. Empty sets select everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventFilter {
    pub(super) kinds: BTreeSet<Kind>,
    pub(super) sources: BTreeSet<String>,
    pub(super) events: BTreeSet<EventType>,
}

impl EventFilter {
    /// The changes of revisions that are selected, or none if revisions are not.
    pub(crate) fn changes(&self) -> Option<ChangeFilter> {
        let has = |event: EventType| self.events.contains(&event);
        let changes = [
            (EventType::Created, ChangeEvent::Created),
            (EventType::Updated, ChangeEvent::Updated),
            (EventType::Deleted, ChangeEvent::Deleted),
        ];
        let is_any = self.events.is_empty() || has(EventType::RevisionApplied);
        let selected = changes.into_iter().filter(|(event, _)| !is_any && has(*event));
        let events: BTreeSet<ChangeEvent> = selected.map(|(_, change)| change).collect();
        if events.is_empty() && !is_any {
            return None;
        }
        Some(ChangeFilter { kinds: self.kinds.clone(), sources: self.sources.clone(), events })
    }

    /// Whether an event of a source or certificate is selected. Sources have no kind.
    pub(super) fn selects(&self, event: &EventContent) -> bool {
        let EventContent { r#type, kind, source, .. } = event;
        (self.events.is_empty() || self.events.contains(r#type))
            && (self.sources.is_empty() || source.as_ref().is_some_and(|source| self.sources.contains(source)))
            && (self.kinds.is_empty() || kind.is_none_or(|kind| self.kinds.contains(&kind)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_filter_selects_changes_and_transitions_apart() {
        let transition = |r#type: EventType, kind: Option<Kind>| EventContent {
            r#type,
            source: Some("shop".into()),
            kind,
            text: String::new(),
            data: Value::Null,
        };
        let invalid = transition(EventType::SourceInvalid, None);
        let expiring = transition(EventType::CertificateExpiring, Some(Kind::TlsCertificate));
        let filter = |events: &[EventType], sources: &[&str], kinds: &[Kind]| {
            let sources = sources.iter().map(|source| (*source).to_owned()).collect();
            EventFilter { kinds: kinds.iter().copied().collect(), sources, events: events.iter().copied().collect() }
        };
        let all = EventFilter::default();
        assert!(all.selects(&invalid) && all.selects(&expiring) && all.changes().unwrap().events.is_empty());
        let only = filter(&[EventType::SourceInvalid], &[], &[]);
        assert!(only.selects(&invalid) && !only.selects(&expiring) && only.changes().is_none());
        let deleted = filter(&[EventType::Deleted], &[], &[]);
        assert!(!deleted.selects(&invalid));
        assert_eq!(deleted.changes().unwrap().events, [ChangeEvent::Deleted].into());
        let revisions = filter(&[EventType::RevisionApplied], &[], &[]);
        assert!(!revisions.selects(&invalid) && revisions.changes().unwrap().events.is_empty());
        assert!(!filter(&[], &["docs"], &[]).selects(&invalid));
        let edges = filter(&[], &[], &[Kind::HttpsEdge]);
        assert!(edges.selects(&invalid) && !edges.selects(&expiring));
    }
}
