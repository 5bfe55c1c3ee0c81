//! Suspended sources, which are planned and not applied (D84).
//!
//! # The problem
//!
//! An operator fixes an emergency over the API, and the next sync would revert it. The suspension cannot wait for a
//! sync that is stuck in a huge tree or a hanging file system: that may be the emergency.
//!
//! # The idea
//!
//! A suspension is an entry in a file beside the store, which commits consult last: [`SourceRecords`] is read inside each
//! commit of a followed source. So a change of it takes no lock that a run holds. Before the response, the entry is
//! durable, the current run is cancelled at its next step, and the status shows it. A commit that won the race is in
//! the history before the suspension.
//!
//! For example, a run has planned and is about to commit when `edgewright suspend shop` writes the entry. The commit
//! finds it and does nothing; the next sync plans again and reports what it would apply.
//!
//! The history gets a record of each begin and end, after the file: a record that cannot be written is logged and does
//! not prevent the suspension. The end of a suspension's time is noticed by the loop, and recorded under the name of
//! the source.
//!
//! # What it never does
//!
//! It never treats a file that it cannot parse as empty: a lost suspension would apply a source over somebody's fix, so
//! the server does not start.

use super::applied_commits::AppliedCommits;
use super::known_condition::{self, KnownCondition};
use super::sync_log::or_warn;
use crate::model::Path;
use crate::reconcile::prelude::*;
use crate::reconcile::sources::entries::SourceEntries;
use crate::store::Outcome;
use crate::syntax::text::has_token;

/// The file, next to the files of the store.
const FILE: &str = "suspensions";
/// The length of a reason in bytes.
const MOST_REASON_BYTES: usize = 1000;

/// The suspension of a source: its author, reason and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Suspension {
    /// The reason that the author gave.
    pub reason: String,
    /// The owner of an API key, the name of a person, or where else it came from.
    pub by: String,
    /// When it began.
    pub since: Timestamp,
    /// When it ends by itself, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Suspension {
    /// A suspension that begins now, by the clock of the process that has the store. The path of a fault is the field.
    pub(crate) fn new(reason: String, by: &str, since: Timestamp, until: Option<Timestamp>) -> Result<Self, Fault> {
        let at = |field: &str| Path::root().join(field);
        if reason.trim().is_empty() {
            let fault = Fault::new(Code::Required, "`reason` is required").at(at("reason"));
            return Err(fault.help("state why the source is suspended; its status shows the reason"));
        }
        if reason.len() > MOST_REASON_BYTES || reason.contains(char::is_control) {
            let message = format!("`reason` must have at most {MOST_REASON_BYTES} bytes without control characters");
            return Err(Fault::new(Code::InvalidFormat, message).at(at("reason")));
        }
        if has_token(&reason) {
            let fault = Fault::new(Code::NotAllowed, "`reason` contains an API token").at(at("reason"));
            return Err(fault.help("remove it, and revoke the key with `edgewright keys revoke`"));
        }
        if until.is_some_and(|until| until <= since) {
            return Err(Fault::new(Code::OutOfRange, "`until` must be in the future").at(at("until")));
        }
        Ok(Self { reason, by: by.to_owned(), since, until })
    }

    /// The suspension of a source by the configuration file.
    pub(crate) fn configured(since: Timestamp) -> Self {
        let reason = "`suspend` is set for the source; remove it there to resume".to_owned();
        Self { reason, by: "configuration file".to_owned(), since, until: None }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// The suspended sources of a store, the commits that its sources go on from, and their last conditions.
pub(crate) struct SourceRecords {
    store: Arc<Store>,
    /// The commits that the sources applied last.
    pub applied: AppliedCommits,
    /// The conditions that the sources had last.
    pub conditions: SourceEntries<KnownCondition>,
    /// A run reads it inside its commit. A change of it does not wait for that commit until it is in effect.
    by_source: SourceEntries<Suspension>,
    /// Held until a change is in the history, so that its order is that of the changes.
    changing: Lock<()>,
}

impl fmt::Debug for SourceRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceRecords")
    }
}

impl SourceRecords {
    /// Reads the files of a store. Suspensions that cannot be parsed are an error: without its suspension, a source
    /// would overwrite a manual fix.
    pub(crate) fn open(store: Arc<Store>) -> Result<Self, Diagnostic> {
        let by_source = SourceEntries::open(Arc::clone(&store), FILE);
        let help = "remove the file, then suspend the sources that must not be applied";
        let by_source = by_source.map_err(|damaged| damaged.help(help))?;
        let applied = AppliedCommits::open(Arc::clone(&store))?;
        let conditions = known_condition::open(Arc::clone(&store));
        Ok(Self { store, applied, conditions, by_source, changing: Lock::default() })
    }

    /// The suspension of a source, unless it has ended by now.
    pub(crate) fn suspension(&self, source: &str, now: Timestamp) -> Option<Suspension> {
        self.by_source.get(source).filter(|suspension| !suspension.is_over(now))
    }

    /// Suspends a source, or resumes it, durably. The history records it, and who did it. Returns the suspension that
    /// was in effect before. A commit that reads the suspensions is in the history before the suspension, or does
    /// not happen.
    pub(crate) fn set_suspension(
        &self,
        source: &str,
        suspension: Option<Suspension>,
        author: Author,
    ) -> Result<Option<Suspension>, StoreError> {
        let mut before = None;
        self.change(clock::now(), |next| match suspension {
            Some(suspension) => {
                let end = suspension.until.map(|until| format!(" (until {until})")).unwrap_or_default();
                let reason = format!("{}{end}", suspension.reason);
                before = next.insert(source.to_owned(), suspension);
                Some((source.to_owned(), author, Outcome::Suspended, reason))
            }
            None => {
                before = Some(next.remove(source)?);
                Some((source.to_owned(), author, Outcome::Resumed, String::new()))
            }
        })?;
        Ok(before)
    }

    /// Removes the suspensions whose time is over, if that of a source is one of them. The history records their end.
    pub(crate) fn end_suspension(&self, source: &str, now: Timestamp) -> Result<(), StoreError> {
        if !self.by_source.get(source).is_some_and(|suspension| suspension.is_over(now)) {
            return Ok(());
        }
        self.change(now, |_| None)
    }

    /// Changes the suspensions durably, without those whose time is over.
    fn change(
        &self,
        now: Timestamp,
        change: impl FnOnce(&mut BTreeMap<String, Suspension>) -> Option<SuspensionNote>,
    ) -> Result<(), StoreError> {
        let _changing = self.changing.lock();
        // In effect before the history has it: the record then comes after every commit that did not see it.
        let (ended, changed) = self.by_source.update(|suspensions| {
            let mut ended = Vec::new();
            suspensions.retain(|source, suspension| {
                let end = suspension.until.filter(|until| *until <= now);
                ended.extend(end.map(|end| (source.clone(), end)));
                end.is_none()
            });
            (ended, change(suspensions))
        })?;
        for (source, end) in ended {
            let (author, message) = (Author::source(&source, None), format!("the suspension ended at {end}"));
            // A loop logs only the end of what it has seen begin.
            tracing::info!(source = source.as_str(), "{message}");
            self.note((source, author, Outcome::Resumed, message));
        }
        changed.into_iter().for_each(|note| self.note(note));
        Ok(())
    }

    /// Records a change in the history.
    fn note(&self, (source, author, outcome, message): SuspensionNote) {
        let attempt = Attempt { source: Some(source.clone()), ..Attempt::new(author) };
        let noted = self.store.note(attempt, outcome, message);
        or_warn(&source, "cannot record the suspension in the history", noted);
    }
}

/// A record for the history: the source, the author, the outcome and the reason.
type SuspensionNote = (String, Author, Outcome, String);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::id::Id;
    use crate::store::commit::header::Record;
    use crate::store::engine::Query;

    fn suspension(reason: &str) -> Suspension {
        Suspension::new(reason.to_owned(), "usr_a", clock::now(), None).unwrap()
    }

    #[test]
    fn a_suspension_survives_a_restart_and_ends_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let open = || SourceRecords::open(Arc::new(Store::open(folder.path().join("store")).unwrap())).unwrap();
        {
            let records = open();
            records.set_suspension("shop", Some(suspension("a fix")), Author::Local).unwrap();
            let past = clock::now().checked_sub(Duration::from_secs(1)).unwrap();
            let over = Suspension { until: Some(past), ..suspension("over") };
            records.set_suspension("docs", Some(over), Author::Local).unwrap();
        }
        let records = open();
        assert_eq!(records.suspension("shop", clock::now()).unwrap().reason, "a fix");
        assert_eq!(records.suspension("docs", clock::now()), None);
        let author = Author::Api { key: Id::new("ak_1"), owner: Id::new("usr_a") };
        for source in ["shop", "docs"] {
            records.end_suspension(source, clock::now()).unwrap();
        }
        // The second time, there is nothing to resume.
        for _ in 0..2 {
            records.set_suspension("shop", None, author.clone()).unwrap();
        }
        assert_eq!(records.suspension("shop", clock::now()), None);
        let history = records.store.history(&Query::All, u64::MAX, 9).unwrap();
        let of = |it: &Record| (it.source.clone().unwrap_or_default(), it.outcome, it.author.clone());
        let told: Vec<_> = history.iter().rev().map(of).collect();
        let by = |source: &str, outcome: Outcome, author: Author| (source.to_owned(), outcome, author);
        let expected = [
            by("shop", Outcome::Suspended, Author::Local),
            by("docs", Outcome::Suspended, Author::Local),
            by("docs", Outcome::Resumed, Author::source("docs", None)),
            by("shop", Outcome::Resumed, author),
        ];
        assert_eq!(told, expected);
        assert_eq!(history.last().unwrap().message, "a fix");
        assert_eq!(std::fs::read_to_string(folder.path().join("store").join(FILE)).unwrap(), "{}");
        drop(records);
        std::fs::write(folder.path().join("store").join(FILE), "{").unwrap();
        let store = Arc::new(Store::open(folder.path().join("store")).unwrap());
        assert!(SourceRecords::open(store).is_err(), "what is damaged is not ignored");
    }

    #[test]
    fn a_suspension_has_a_reason_and_ends_in_the_future() {
        let long = "x".repeat(MOST_REASON_BYTES + 1);
        for reason in ["", " ", "a\nb", long.as_str()] {
            assert!(Suspension::new(reason.to_owned(), "usr_a", clock::now(), None).is_err(), "{reason:?}");
        }
        let now = clock::now();
        assert!(Suspension::new("a fix".to_owned(), "usr_a", now, Some(now)).is_err());
    }
}
