//! Events of the sources that the server follows.

use serde_json::json;

use super::events::EventType;
use super::message::{commit_text, line};
use super::transitions::{EventContent, ObservedSource, ReportedState};
use crate::model::author::owner_of;
use crate::model::key::segment;
use crate::model::{DriftState, Name, Severity};
use crate::plan::format::json::Item;
use crate::reconcile::sync_loop::condition::{Condition, Reason};
use crate::reconcile::sync_loop::status::{SourceStatus, SyncRecord};
use crate::reconcile::sync_loop::suspension::Suspension;
use crate::server::operations::sources::view::{SourceState, SuspensionView};
use crate::server::prelude::*;

/// The most errors of an event.
const MOST_ERRORS: usize = 10;
/// The most drifted resources of an event.
const MOST_DRIFTED: usize = 20;
/// The most drifted resources that a text names.
const NAMED_DRIFTED: usize = 3;

/// A snapshot of a source's status.
pub(super) struct SourceSnapshot<'f> {
    handle: &'f SourceHandle,
    condition: Condition,
    status: SourceStatus,
    suspension: Option<Suspension>,
    /// The descriptions of API keys.
    state: Arc<Snapshot>,
}

impl<'f> SourceSnapshot<'f> {
    /// Reads the state of a source.
    pub(super) fn new(handle: &'f SourceHandle, state: Arc<Snapshot>) -> Self {
        let suspension = handle.suspension();
        // The loop writes the status first.
        let condition = handle.health.condition();
        Self { handle, condition, status: handle.status.current(), suspension, state }
    }

    /// The notification that is due.
    pub(super) fn observed(&self) -> ObservedSource {
        let r#type = match self.condition.reason {
            _ if self.suspension.is_some() => EventType::SourceSuspended,
            // Whoever rolled back knows; the revision is told anyway.
            Reason::Starting | Reason::Resumed | Reason::Suspended | Reason::RolledBack => {
                return ObservedSource::Unclear;
            }
            Reason::Applied | Reason::InSync => return ObservedSource::Synced,
            Reason::Invalid | Reason::PartlyApplied => EventType::SourceInvalid,
            Reason::Refused | Reason::Failed | Reason::FetchFailed | Reason::Panicked => EventType::SourceFailed,
            Reason::Drifted | Reason::Fight => EventType::SourceDrifted,
        };
        ObservedSource::Troubled(ReportedState {
            r#type,
            state: self.state().to_string(),
            digests: self.digests(r#type),
        })
    }

    fn state(&self) -> SourceState {
        SourceState::new(&self.condition, self.suspension.as_ref())
    }

    /// Digests of what makes this state another one than the same state before. Lines are left out: they move.
    fn digests(&self, r#type: EventType) -> BTreeSet<String> {
        let commit = self.attempt().and_then(|sync| sync.commit.as_deref()).map(|commit| format!("commit {commit}"));
        let new: Vec<String> = match (r#type, &self.suspension) {
            (EventType::SourceSuspended, Some(Suspension { by, reason, .. })) => vec![format!("{by}: {reason}")],
            (EventType::SourceDrifted, _) => {
                self.status.findings.drift.iter().map(|resource| resource.id.clone()).collect()
            }
            // Whether the repository can be fetched, too, is another matter.
            (EventType::SourceInvalid, _) => {
                let errors = self.errors().filter(|(name, _)| *name != Name::Code(Code::FetchFailed));
                let of = |(name, it): &(Name, Item)| format!("{name} {:?} {}", it.spot.file, it.message);
                commit.into_iter().chain(errors.map(of)).collect()
            }
            // These messages tell of addresses and times.
            _ => commit.into_iter().chain(self.errors().map(|(name, _)| name.to_string())).collect(),
        };
        new.iter().map(|it| blake3::hash(it.as_bytes()).to_hex().chars().take(16).collect()).collect()
    }

    fn errors(&self) -> impl Iterator<Item = &(Name, Item)> {
        self.status.findings.diagnostics.iter().filter(|(_, it)| it.severity == Severity::Error)
    }

    fn attempt(&self) -> Option<&SyncRecord> {
        self.status.attempt.as_ref()
    }

    /// Describes an event. `reported` is what was reported before.
    pub(super) fn describe(&self, r#type: EventType, reported: Option<&ReportedState>, base_url: &str) -> EventContent {
        let (source, findings) = (self.handle.source.as_str(), &self.status.findings);
        let attempt = self.attempt();
        let has_drifted = r#type == EventType::SourceDrifted;
        let drift = if has_drifted { findings.drift.as_slice() } else { &[] };
        let drifted = drift.get(..MOST_DRIFTED).unwrap_or(drift);
        let error = |(_, Item { code, message, help, spot, .. }): &(Name, Item)| {
            let (file, line, column) = (&spot.file, spot.line, spot.column);
            json!({"code": code, "message": message, "help": help, "file": file, "line": line, "column": column})
        };
        let errors: Vec<Value> = match r#type {
            EventType::SourceInvalid | EventType::SourceFailed => self.errors().take(MOST_ERRORS).map(error).collect(),
            _ => Vec::new(),
        };
        let errors_omitted = if errors.is_empty() { 0 } else { findings.errors.saturating_sub(errors.len()) };
        let data = json!({
            "source": source,
            "uri": format!("{base_url}/sources/{}", segment(source)),
            "state": self.state(),
            "previous_state": reported.map(|it| it.state.as_str()),
            "reason": self.condition.reason.to_string(),
            "message": self.condition.message,
            "revision": self.condition.observed_revision,
            "commit": attempt.and_then(|sync| sync.commit.as_deref()),
            "tag": attempt.and_then(|sync| sync.tag.as_deref()),
            "commit_author": attempt.and_then(|sync| sync.commit_author.as_ref()),
            "applied_commit": self.status.applied.as_ref().and_then(|sync| sync.commit.as_deref()),
            "errors": errors,
            "errors_omitted": errors_omitted,
            "drifted": drifted,
            "drifted_omitted": if has_drifted { findings.drifted.saturating_sub(drifted.len()) } else { 0 },
            "suspension": self.suspension.clone().map(|it| SuspensionView::new(it, &self.state)),
        });
        let text = line(&format!("Source `{source}` {}", self.text(r#type, reported)));
        EventContent { r#type, source: Some(source.to_owned()), kind: None, text, data }
    }

    /// Describes the event.
    fn text(&self, r#type: EventType, reported: Option<&ReportedState>) -> String {
        let commit = self.attempt().and_then(commit_of);
        let subject = commit.clone().unwrap_or_else(|| "its manifests".to_owned());
        let verb = if commit.is_some() { "is" } else { "are" };
        let applied =
            |state: &str, how: &str| format!("{state}: {subject} {verb} {how} applied: {}", self.first_error());
        match (r#type, self.condition.reason) {
            (EventType::SourceInvalid, Reason::PartlyApplied) => applied("is invalid", "only partly"),
            (EventType::SourceInvalid, _) => applied("is invalid", "not"),
            // The commit that was fetched last is in effect.
            (EventType::SourceFailed, Reason::FetchFailed) => format!("has failed: {}", self.first_error()),
            (EventType::SourceFailed, Reason::Refused) => applied("is refused", "not"),
            (EventType::SourceFailed, _) => applied("has failed", "not"),
            (EventType::SourceDrifted, _) => format!("has drifted: {}", self.drift()),
            (EventType::SourceSuspended, _) => match &self.suspension {
                Some(Suspension { reason, by, until, .. }) => {
                    let by = owner_of(by, rules::owner_description(&self.state, by));
                    let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
                    format!("is suspended by {by}{until}: {reason}")
                }
                None => "is suspended".to_owned(),
            },
            _ => {
                let before = reported.map(|it| format!(" (it was {})", in_words(&it.state))).unwrap_or_default();
                format!("has recovered: {subject} {verb} applied{before}")
            }
        }
    }

    /// The first error and its place, and how many others there are.
    fn first_error(&self) -> String {
        let Some((_, Item { code, message, spot, .. })) = self.errors().next() else {
            return self.condition.message.clone();
        };
        let place = match (&spot.file, spot.line, spot.column) {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            (Some(file), ..) => format!("{file}: "),
            (None, ..) => String::new(),
        };
        let more = match self.status.findings.errors.saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and {})", number_of(more, "more error")),
        };
        format!("{place}{message} [{code}]{more}")
    }

    /// The first drifted resources, with who changed them.
    fn drift(&self) -> String {
        let named = self.status.findings.drift.iter().take(NAMED_DRIFTED).map(|resource| {
            let changed = resource.fields.iter().find(|field| field.state == DriftState::Drift);
            let by = changed.map(|field| format!(" by {}", field.by)).unwrap_or_default();
            format!("{} {}{by}", resource.kind, resource.name)
        });
        let named: Vec<String> = named.collect();
        match named.is_empty() {
            true => self.condition.message.clone(),
            false => format!("{}: {}", self.condition.message, named.join(", ")),
        }
    }
}

/// A state inside a sentence.
fn in_words(state: &str) -> String {
    if state == SourceState::OutOfSync.to_string() { "out of sync".to_owned() } else { state.to_lowercase() }
}

/// The commit of a sync and its author, for a text.
fn commit_of(sync: &SyncRecord) -> Option<String> {
    Some(commit_text(sync.commit.as_deref()?, sync.commit_author.as_ref()))
}
