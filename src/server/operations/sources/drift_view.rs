//! Drift in the status of a source: what others have changed, and when the source puts it back (D85).

use super::view::{SourceState, SourceView};
use crate::model::Severity;
use crate::plan::format::json::Spot;
use crate::reconcile::sources::recent_drift::KnownDrift;
use crate::reconcile::sync_loop::condition::{Reason, Status};
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::server::prelude::*;
use crate::syntax::text::shell_word;

/// Why a source does not apply the manifests that a rollback undid, and how it does.
pub(crate) fn held(source: &str) -> String {
    format!("held by a rollback: applied again when the manifests change. {}", undo_rollback(source, None))
}

/// How a source applies the manifests that a rollback undid. `before` is the revision before it, if it is known. Only the source is rolled
/// back, because what other sources have changed since stays, even if the rollback was of everything.
pub(crate) fn undo_rollback(source: &str, before: Option<u64>) -> String {
    let undo =
        format!("To apply them now, undo the rollback: `edgewright rollback --source {} --to", shell_word(source));
    match before {
        Some(revision) => format!("{undo} {revision}`"),
        None => format!("{undo}` the revision before it"),
    }
}

/// When a source puts back what others have changed.
#[derive(Debug, PartialEq)]
pub(crate) enum DriftRepair<'v> {
    /// At its next sync, which is due at this time; empty if it is in progress.
    NextSync(&'v str),
    /// At the next sync in which the manifests of the resource have no error.
    ValidPart,
    /// Not before the error at this place is fixed.
    Fixed(Option<&'v Spot>),
    /// Not while it is suspended, which ends at this time; empty if it has no end.
    Resumed(&'v str),
    /// Not before the manifests change: they are held by a rollback.
    ManifestsChanged,
    /// Not before this reason is gone.
    Unblocked(&'v str),
    /// Never: the policy only reports it.
    Reported,
    /// Never: the policy leaves it.
    Never,
}

/// The end of a sentence about what is put back.
impl fmt::Display for DriftRepair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriftRepair::NextSync("") => write!(f, "at the next sync"),
            DriftRepair::NextSync(at) => write!(f, "at the next sync, {at}"),
            DriftRepair::ValidPart => write!(f, "at the next sync, unless its manifest has an error"),
            DriftRepair::Fixed(Some(Spot { file: Some(file), line, .. })) => {
                let line = line.map(|line| format!(":{line}")).unwrap_or_default();
                write!(f, "once the source is valid again: fix {file}{line}")
            }
            DriftRepair::Fixed(_) => write!(f, "once the source is valid again"),
            DriftRepair::Resumed("") => write!(f, "when the source is resumed"),
            DriftRepair::Resumed(until) => write!(f, "when the suspension ends, {until}"),
            DriftRepair::ManifestsChanged => write!(f, "when the manifests change"),
            DriftRepair::Unblocked(message) => write!(f, "not for now: {message}"),
            DriftRepair::Reported | DriftRepair::Never => write!(f, "not by the source"),
        }
    }
}

impl DriftRepair<'_> {
    /// What becomes of the drift, as whole sentences.
    pub(crate) fn sentences(&self) -> String {
        match self {
            DriftRepair::Reported => {
                "It stays: the source only reports drift. Commit it, or undo it by hand.".to_owned()
            }
            DriftRepair::Never => "It stays until somebody changes it back, or the manifests.".to_owned(),
            DriftRepair::Unblocked(message) => format!("Not put back for now: {message}."),
            repair => format!("Put back {repair}."),
        }
    }
}

impl SourceView {
    /// Adds what others have changed, as of the current revision. A source that was in sync before is not any more, unless its
    /// policy only counts drift.
    pub(super) fn with_drift(mut self, known: KnownDrift, revision: u64) -> Self {
        let KnownDrift { count, resources, is_recent, since } = known;
        let is_counted_only = self.drift == DriftPolicy::Off.as_str();
        let is_new = is_recent && self.state == SourceState::Synced && !is_counted_only;
        if is_new {
            self.state = SourceState::Drifted;
            for condition in &mut self.conditions {
                condition.status = Status::OutOfSync.to_string();
                condition.reason = Reason::Drifted.to_string();
                condition.message = format!("{} changed by others since the last sync", number_of(count, "resource"));
                condition.observed_revision = revision;
            }
        }
        // It began with the first write, and not with the sync that found it.
        let writes = resources.iter().flat_map(|resource| &resource.fields).map(|field| &field.at);
        if self.state == SourceState::Drifted
            && let Some(first) = writes.filter(|at| !at.is_empty()).min()
            && (is_new || *first < self.since)
        {
            self.since.clone_from(first);
            for condition in &mut self.conditions {
                condition.last_transition_time.clone_from(first);
            }
        }
        (self.counts.drifted, self.drifted, self.drift_since) = (count, resources, since);
        self
    }

    /// Whether the manifests are held by a rollback.
    pub(crate) fn is_held(&self) -> bool {
        self.conditions.iter().any(|condition| condition.reason == Reason::RolledBack.to_string())
    }

    /// When the source puts back what others have changed.
    pub(crate) fn drift_repair(&self) -> DriftRepair<'_> {
        let condition = self.conditions.first();
        let message = condition.map_or("", |condition| condition.message.as_str());
        let is_because = |reason: Reason| condition.is_some_and(|it| it.reason == reason.to_string());
        let first_error =
            || self.diagnostics.iter().find(|item| item.severity == Severity::Error).map(|item| &item.spot);
        if self.drift == DriftPolicy::Warn.as_str() {
            return DriftRepair::Reported;
        }
        if self.drift != DriftPolicy::Enforce.as_str() {
            return DriftRepair::Never;
        }
        if let Some(suspension) = &self.suspension {
            return DriftRepair::Resumed(&suspension.until);
        }
        match self.state {
            SourceState::Invalid => DriftRepair::Fixed(first_error()),
            _ if self.is_held() => DriftRepair::ManifestsChanged,
            _ if is_because(Reason::PartlyApplied) => DriftRepair::ValidPart,
            // The last commit that was fetched is still enforced.
            _ if is_because(Reason::FetchFailed) => DriftRepair::NextSync(&self.next_sync_at),
            SourceState::Refused | SourceState::Failed => DriftRepair::Unblocked(message),
            _ if is_because(Reason::Fight) => DriftRepair::Unblocked(message),
            _ => DriftRepair::NextSync(&self.next_sync_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::view::{ConditionView, SuspensionView};
    use super::*;

    fn view(state: SourceState, reason: Reason) -> SourceView {
        let condition = ConditionView {
            kind: "Synced".to_owned(),
            status: reason.status().to_string(),
            reason: reason.to_string(),
            message: "why".to_owned(),
            last_transition_time: String::new(),
            observed_revision: 7,
        };
        let next_sync_at = "2027-01-31T18:00:00Z".to_owned();
        SourceView {
            state,
            drift: "enforce".to_owned(),
            conditions: vec![condition],
            next_sync_at,
            ..SourceView::default()
        }
    }

    fn known(count: usize) -> KnownDrift {
        KnownDrift { count, is_recent: true, ..KnownDrift::default() }
    }

    #[test]
    fn a_source_in_sync_has_drifted_once_others_write() {
        let drifted = view(SourceState::Synced, Reason::InSync).with_drift(known(2), 9);
        let condition =
            drifted.conditions.first().map(|it| (it.status.as_str(), it.reason.as_str(), it.observed_revision));
        assert_eq!((drifted.state, condition), (SourceState::Drifted, Some(("OutOfSync", "Drifted", 9))));
        let invalid = view(SourceState::Invalid, Reason::Invalid).with_drift(known(2), 9);
        assert_eq!((invalid.state, invalid.counts.drifted), (SourceState::Invalid, 2));
        let counted = SourceView { drift: "off".to_owned(), ..view(SourceState::Synced, Reason::InSync) };
        assert_eq!(counted.with_drift(known(2), 9).state, SourceState::Synced);
    }

    #[test]
    fn drift_begins_with_its_oldest_write() {
        let field = |at: &str| json!({"field": "/description", "state": "drift", "removed": false, "by": "usr_a", "revision": 8, "at": at});
        let resource = json!({
            "kind": "HttpsEdge", "name": "shop", "id": "edghts_1", "path": "/edges/https/edghts_1",
            "fields": [field("2027-01-01T00:00:09Z"), field("2027-01-01T00:00:03Z")],
        });
        let written =
            || KnownDrift { resources: serde_json::from_value(json!([resource])).unwrap_or_default(), ..known(1) };
        for (state, reason) in [(SourceState::Synced, Reason::InSync), (SourceState::Drifted, Reason::Drifted)] {
            let found_by_sync = SourceView { since: "2027-01-01T00:00:30Z".to_owned(), ..view(state, reason) };
            let drifted = found_by_sync.with_drift(written(), 9);
            let condition = drifted.conditions.first().map(|it| it.last_transition_time.as_str());
            assert_eq!((drifted.since.as_str(), condition), ("2027-01-01T00:00:03Z", Some("2027-01-01T00:00:03Z")));
        }
    }

    #[test]
    fn a_status_says_when_drift_is_put_back() {
        let due = "2027-01-31T18:00:00Z";
        for (state, reason, expected) in [
            (SourceState::Synced, Reason::InSync, DriftRepair::NextSync(due)),
            (SourceState::Failed, Reason::FetchFailed, DriftRepair::NextSync(due)),
            (SourceState::Failed, Reason::Failed, DriftRepair::Unblocked("why")),
            (SourceState::Invalid, Reason::Invalid, DriftRepair::Fixed(None)),
            (SourceState::OutOfSync, Reason::RolledBack, DriftRepair::ManifestsChanged),
            (SourceState::OutOfSync, Reason::PartlyApplied, DriftRepair::ValidPart),
            (SourceState::Drifted, Reason::Fight, DriftRepair::Unblocked("why")),
        ] {
            assert_eq!(view(state, reason).drift_repair(), expected);
        }
        let until = "2027-02-01T00:00:00Z".to_owned();
        let (reason, by, by_description, since) = Default::default();
        let suspension = SuspensionView { reason, by, by_description, since, until };
        let mut suspended = view(SourceState::Suspended, Reason::Suspended);
        suspended.suspension = Some(suspension);
        assert_eq!(suspended.drift_repair(), DriftRepair::Resumed("2027-02-01T00:00:00Z"));
        suspended.drift = "warn".to_owned();
        assert_eq!(suspended.drift_repair(), DriftRepair::Reported);
        suspended.drift = "off".to_owned();
        assert_eq!(suspended.drift_repair(), DriftRepair::Never);
    }
}
