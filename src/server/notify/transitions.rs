//! Events of sources and certificates: the last one of each, and those that are due, in one file beside the store.
//!
//! A loop reports its state after each sync, and most reports say the same. An event is due only when the state
//! changes, or when the same state is about something new: another commit, error or resource. What is new is kept as
//! digests. Both parts are one file, which is written before the first delivery, so a restart neither forgets an event
//! nor repeats one. The file is bounded: events are rare, and a target that is down for long loses the oldest ones,
//! with a warning.

use std::collections::VecDeque;

use super::{events::EventType, state_files};
use crate::model::json;
use crate::server::prelude::*;
use crate::store::SidecarFiles;

/// The name of the file.
const FILE: &str = "transitions";
/// The most bytes of the file.
const MOST_BYTES: usize = 16 << 20;
/// The most events that are kept for targets that cannot be reached.
const MOST_TRANSITIONS: usize = 1000;

/// An event of a source or certificate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Transition {
    /// Counts the events of a store.
    pub(super) number: u64,
    pub(super) at: Timestamp,
    /// The revision of the store then.
    pub(super) revision: u64,
    #[serde(flatten)]
    pub(super) content: EventContent,
}

/// The content of an event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EventContent {
    pub(super) r#type: EventType,
    /// The source that the event is about, or that owns the certificate.
    pub(super) source: Option<String>,
    /// The kind of the certificate.
    pub(super) kind: Option<Kind>,
    /// One line for people.
    pub(super) text: String,
    pub(super) data: Value,
}

/// The last notified state of a source that is not in sync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReportedState {
    pub(super) r#type: EventType,
    /// The state in one word.
    pub(super) state: String,
    /// Digests of what was new.
    pub(super) digests: BTreeSet<String>,
}

/// A source as it is now.
pub(super) enum ObservedSource {
    /// Neither in sync nor out of it, for example before the first run.
    Unclear,
    /// In sync.
    Synced,
    /// Not in sync.
    Troubled(ReportedState),
}

/// A certificate that expires soon.
pub(super) struct ExpiringCertificate {
    pub(super) id: String,
    pub(super) not_after: i64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct TransitionState {
    /// The number of the last event.
    last: u64,
    /// The last notified states of the sources that are not in sync.
    sources: BTreeMap<String, ReportedState>,
    /// The Unix times at which the certificates expire that were told, by the ID of the resource.
    certificates: BTreeMap<String, i64>,
    /// The events that are due.
    due: VecDeque<Transition>,
}

/// The events of sources and certificates.
pub(super) struct TransitionLog {
    files: Option<Arc<dyn SidecarFiles>>,
    state: Lock<TransitionState>,
}

impl TransitionLog {
    /// Reads the file.
    pub(super) fn open(store: &Store) -> Result<Self, StoreError> {
        let files = store.sidecars();
        let follows = "targets are notified of all current states again";
        let state = state_files::read(files.as_deref(), FILE, MOST_BYTES as u64, follows)?;
        Ok(Self { files, state: Lock::new(state) })
    }

    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.state.lock().last
    }

    /// The first event after the one with a number.
    pub(super) fn after(&self, number: u64) -> Option<Transition> {
        let state = self.state.lock();
        let at = state.due.partition_point(|it| it.number <= number);
        state.due.get(at).cloned()
    }

    /// Forgets the events up to a number: all targets were told. The next event writes that.
    pub(super) fn forget(&self, upto: u64) {
        let mut state = self.state.lock();
        while state.due.front().is_some_and(|it| it.number <= upto) {
            state.due.pop_front();
        }
    }

    /// Adds an event of a source if its state is another one, or has something new. `describe` gets what was
    /// reported before. All of it is under one lock: of two threads that observe a source, the later one has the last word.
    pub(super) fn note_source(
        &self,
        source: &str,
        revision: u64,
        observed: impl FnOnce() -> ObservedSource,
        describe: impl FnOnce(EventType, Option<&ReportedState>) -> EventContent,
    ) {
        let mut state = self.state.lock();
        let reported = state.sources.get(source).cloned();
        let (r#type, now) = match (observed(), &reported) {
            (ObservedSource::Unclear, _) | (ObservedSource::Synced, None) => return,
            (ObservedSource::Synced, Some(_)) => (EventType::SourceRecovered, None),
            (ObservedSource::Troubled(now), Some(reported))
                if reported.r#type == now.r#type && reported.digests.is_superset(&now.digests) =>
            {
                // What is gone is new when it comes back.
                if reported.digests != now.digests {
                    state.sources.insert(source.to_owned(), now);
                    self.save(&mut state);
                }
                return;
            }
            (ObservedSource::Troubled(now), _) => (now.r#type, Some(now)),
        };
        match now {
            Some(now) => drop(state.sources.insert(source.to_owned(), now)),
            None => drop(state.sources.remove(source)),
        }
        state.add(describe(r#type, reported.as_ref()), revision);
        self.save(&mut state);
    }

    /// Adds an event for each certificate that was not told to expire then. `found` are all that expire soon.
    pub(super) fn note_certificates(&self, revision: u64, found: Vec<(ExpiringCertificate, EventContent)>) {
        let mut state = self.state.lock();
        let reported = std::mem::take(&mut state.certificates);
        let mut has_new = false;
        for (certificate, new) in found {
            if reported.get(&certificate.id) != Some(&certificate.not_after) {
                state.add(new, revision);
                has_new = true;
            }
            state.certificates.insert(certificate.id, certificate.not_after);
        }
        if has_new || state.certificates != reported {
            self.save(&mut state);
        }
    }

    /// Writes the file. If that fails, targets are told nevertheless, and again after a restart.
    fn save(&self, state: &mut TransitionState) {
        let Some(files) = &self.files else { return };
        let written = state.bytes().and_then(|bytes| files.write(FILE, &bytes));
        if let Err(error) = written {
            tracing::warn!("a restart repeats notifications: {}", escaped(&error.to_string()));
        }
    }
}

impl TransitionState {
    fn add(&mut self, content: EventContent, revision: u64) {
        self.last += 1;
        self.due.push_back(Transition { number: self.last, at: clock::now(), revision, content });
        if self.due.len() > MOST_TRANSITIONS {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.due.pop_front() {
            let (name, at) = (oldest.content.r#type, oldest.at);
            tracing::warn!("the notification of `{name}` at {at} was not delivered to all targets: too many are due");
        }
    }

    /// The content of the file, without the oldest events if they are too large.
    fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        loop {
            let bytes = json::bytes(&*self, Secrets::Masked).map_err(StoreError::internal)?;
            if bytes.len() <= MOST_BYTES || self.due.is_empty() {
                return Ok(bytes);
            }
            for _ in 0..=self.due.len() / 2 {
                self.drop_oldest();
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    fn troubled(r#type: EventType, digests: &[&str]) -> ObservedSource {
        let digests = digests.iter().map(|it| (*it).to_owned()).collect();
        ObservedSource::Troubled(ReportedState { r#type, state: "Invalid".into(), digests })
    }

    fn new(r#type: EventType) -> EventContent {
        EventContent { r#type, source: Some("shop".into()), kind: None, text: String::new(), data: Value::Null }
    }

    fn see(log: &TransitionLog, observed: ObservedSource) {
        log.note_source("shop", 3, || observed, |r#type, _| new(r#type));
    }

    fn told(log: &TransitionLog) -> Vec<String> {
        let types = std::iter::successors(log.after(0), |last| log.after(last.number));
        types.map(|it| it.content.r#type.to_string()).collect()
    }

    #[test]
    fn an_event_is_told_once_per_transition_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let open = || TransitionLog::open(&Store::open(&path).unwrap()).unwrap();
        let log = open();
        see(&log, ObservedSource::Synced);
        assert_eq!(log.last(), 0, "a source that was always in sync has not recovered");
        let (invalid, failed) = (EventType::SourceInvalid, EventType::SourceFailed);
        for _ in 0..3 {
            see(&log, troubled(invalid, &["commit a", "error a"]));
        }
        drop(log);
        let log = open();
        see(&log, ObservedSource::Unclear);
        see(&log, troubled(invalid, &["commit a", "error a"]));
        assert_eq!(told(&log), ["source.invalid"]);
        // An error that is fixed is not new, and one that comes back is.
        see(&log, troubled(invalid, &["commit a"]));
        assert_eq!(log.last(), 1);
        see(&log, troubled(invalid, &["commit a", "error a"]));
        see(&log, troubled(failed, &["commit a"]));
        see(&log, ObservedSource::Synced);
        see(&log, ObservedSource::Synced);
        assert_eq!(told(&log), ["source.invalid", "source.invalid", "source.failed", "source.recovered"]);
        log.forget(3);
        assert_eq!((told(&log), log.last()), (vec!["source.recovered".to_owned()], 4));
        drop(log);
        fs::write(path.join(FILE), "{").unwrap();
        assert_eq!(open().last(), 0, "a damaged file is moved aside");
        assert_eq!(fs::read_to_string(path.join("transitions.damaged")).unwrap(), "{");
    }

    #[test]
    fn a_certificate_is_told_once_for_each_end() {
        let log = TransitionLog::open(&Store::open("memory:").unwrap()).unwrap();
        let see = |certificates: &[(&str, i64)]| {
            let found = certificates.iter().map(|(id, not_after)| {
                let certificate = ExpiringCertificate { id: (*id).to_owned(), not_after: *not_after };
                (certificate, new(EventType::CertificateExpiring))
            });
            log.note_certificates(1, found.collect());
            log.last()
        };
        let counts =
            [see(&[("a", 1)]), see(&[("a", 1), ("b", 2)]), see(&[("a", 1), ("b", 3)]), see(&[]), see(&[("a", 1)])];
        assert_eq!(counts, [1, 2, 3, 3, 4]);
    }

    #[test]
    fn the_oldest_events_make_way() {
        let log = TransitionLog::open(&Store::open("memory:").unwrap()).unwrap();
        for commit in 0..=MOST_TRANSITIONS {
            see(&log, troubled(EventType::SourceInvalid, &[&commit.to_string()]));
        }
        assert_eq!((log.after(0).unwrap().number, told(&log).len()), (2, MOST_TRANSITIONS));
    }
}
