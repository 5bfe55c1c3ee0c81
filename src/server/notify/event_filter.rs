//! What a target is told of.

use std::collections::BTreeSet;

use super::{events::EventType, transitions::EventContent};
use crate::{model::Kind, server::resources::change::ChangeFilter, store::revision::ChangeEvent};

/// Selects the events that a target receives. Empty sets select everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventFilter {
    pub(super) resources: ChangeFilter,
    pub(super) events: BTreeSet<EventType>,
}

impl EventFilter {
    /// Whether any change of a revision is selected.
    pub(super) fn selects_revisions(&self) -> bool {
        [ChangeEvent::Created, ChangeEvent::Updated, ChangeEvent::Deleted].into_iter().any(|change| self.has(change))
    }

    /// Whether a change of a revision is selected.
    pub(super) fn selects_change(&self, kind: Kind, source: Option<&str>, change: ChangeEvent) -> bool {
        self.has(change) && self.resources.selects(kind, source)
    }

    fn has(&self, change: ChangeEvent) -> bool {
        let event = match change {
            ChangeEvent::Created => EventType::Created,
            ChangeEvent::Updated => EventType::Updated,
            ChangeEvent::Deleted => EventType::Deleted,
        };
        self.events.is_empty() || self.events.contains(&event) || self.events.contains(&EventType::RevisionApplied)
    }

    /// Whether an event of a source or certificate is selected. Sources have no kind.
    pub(super) fn selects(&self, event: &EventContent) -> bool {
        let (EventContent { r#type, kind, source, .. }, ChangeFilter { kinds, sources }) = (event, &self.resources);
        (self.events.is_empty() || self.events.contains(r#type))
            && (sources.is_empty() || source.as_ref().is_some_and(|source| sources.contains(source)))
            && (kinds.is_empty() || kind.is_none_or(|kind| kinds.contains(&kind)))
    }
}

#[cfg(test)]
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
            let resources = ChangeFilter { kinds: kinds.iter().copied().collect(), sources };
            EventFilter { resources, events: events.iter().copied().collect() }
        };
        let told = |filter: &EventFilter| {
            [ChangeEvent::Created, ChangeEvent::Updated, ChangeEvent::Deleted]
                .map(|change| filter.selects_change(Kind::HttpsEdge, Some("shop"), change))
        };
        let all = EventFilter::default();
        assert!(all.selects(&invalid) && all.selects(&expiring));
        assert_eq!((told(&all), all.selects_revisions()), ([true; 3], true));
        let only = filter(&[EventType::SourceInvalid], &[], &[]);
        assert!(only.selects(&invalid) && !only.selects(&expiring));
        assert_eq!((told(&only), only.selects_revisions()), ([false; 3], false));
        let deleted = filter(&[EventType::Deleted], &[], &[]);
        assert!(!deleted.selects(&invalid));
        assert_eq!((told(&deleted), deleted.selects_revisions()), ([false, false, true], true));
        let revisions = filter(&[EventType::RevisionApplied], &[], &[]);
        assert!(!revisions.selects(&invalid) && told(&revisions) == [true; 3]);
        assert!(!filter(&[], &["docs"], &[]).selects(&invalid));
        let edges = filter(&[], &[], &[Kind::HttpsEdge]);
        assert!(edges.selects(&invalid) && !edges.selects(&expiring));
    }
}
