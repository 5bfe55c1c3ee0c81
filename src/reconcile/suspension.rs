//! Suspended sources, which are looked at and not applied. They are kept beside the store (D84).

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    model::{
        code::Code,
        diagnostic::Diagnostic,
        fault::{Fault, Path},
    },
    store::{Store, StoreError, mint, read_beside, write_beside},
};

/// The file, beside the files of the store.
const FILE: &str = "suspensions";
/// The largest file that is read.
const MOST_BYTES: u64 = 16 << 20;
/// The length of a reason in bytes.
const MOST_REASON_BYTES: usize = 1000;

/// Who suspended a source, why, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Suspension {
    /// Why, in the words of who did it.
    pub reason: String,
    /// The owner of an API key, or where else it came from.
    pub by: String,
    /// When it began.
    pub since: Timestamp,
    /// When it ends by itself, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Suspension {
    /// A suspension that begins now. The path of a fault is the field.
    pub(crate) fn new(reason: String, by: &str, until: Option<Timestamp>) -> Result<Self, Fault> {
        let at = |field: &str| Path::root().join(field);
        if reason.trim().is_empty() {
            let fault = Fault::new(Code::Required, "`reason` is required").at(at("reason"));
            return Err(fault.help("state why the source is suspended: everyone who looks at its status sees it"));
        }
        if reason.len() > MOST_REASON_BYTES || reason.contains(char::is_control) {
            let message = format!("`reason` must have at most {MOST_REASON_BYTES} bytes without control characters");
            return Err(Fault::new(Code::InvalidFormat, message).at(at("reason")));
        }
        let since = mint::now();
        if until.is_some_and(|until| until <= since) {
            return Err(Fault::new(Code::OutOfRange, "`until` must be in the future").at(at("until")));
        }
        Ok(Self { reason, by: by.to_owned(), since, until })
    }

    /// The suspension of a source by the configuration file.
    pub(super) fn configured() -> Self {
        let reason = "`suspend` is set for the source".to_owned();
        Self { reason, by: "configuration file".to_owned(), since: mint::now(), until: None }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// The suspended sources of a store.
pub(crate) struct Suspensions {
    store: Arc<Store>,
    by_source: Mutex<BTreeMap<String, Suspension>>,
}

impl fmt::Debug for Suspensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by_source().fmt(f)
    }
}

impl Suspensions {
    /// Reads the suspensions of a store. A file that cannot be parsed is an error: without its suspension, a source would
    /// be applied over somebody's fix.
    pub(crate) fn open(store: Arc<Store>) -> Result<Self, Diagnostic> {
        let bytes = store.beside().and_then(|on_disk| read_beside(&on_disk, FILE, MOST_BYTES));
        let by_source = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(|error| {
            Diagnostic::error(Code::StoreCorrupt, format!("cannot read the file `{FILE}` of the store: {error}"))
                .help("remove the file, and suspend the sources again that must not be applied")
        })?;
        Ok(Self { store, by_source: Mutex::new(by_source.unwrap_or_default()) })
    }

    fn by_source(&self) -> MutexGuard<'_, BTreeMap<String, Suspension>> {
        self.by_source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The suspension of a source, unless it has ended by now.
    pub(super) fn current(&self, source: &str, now: Timestamp) -> Option<Suspension> {
        self.by_source().get(source).filter(|suspension| !suspension.is_over(now)).cloned()
    }

    /// Suspends a source, or resumes it, durably.
    pub(crate) fn set(&self, source: &str, suspension: Option<Suspension>) -> Result<(), StoreError> {
        let mut by_source = self.by_source();
        let (mut next, now) = (by_source.clone(), mint::now());
        next.retain(|_, suspension| !suspension.is_over(now));
        match suspension {
            Some(suspension) => next.insert(source.to_owned(), suspension),
            None => next.remove(source),
        };
        if let Some(on_disk) = self.store.beside() {
            let text =
                serde_json::to_vec_pretty(&next).map_err(|error| StoreError::new(Code::Internal, error.to_string()))?;
            write_beside(&on_disk, FILE, &text)?;
        }
        *by_source = next;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn suspension(reason: &str) -> Suspension {
        Suspension::new(reason.to_owned(), "usr_a", None).unwrap()
    }

    #[test]
    fn a_suspension_survives_a_restart_and_ends_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Suspensions::open(Arc::new(Store::open(folder.path()).unwrap())).unwrap();
        {
            let suspensions = open();
            suspensions.set("shop", Some(suspension("a fix"))).unwrap();
            let past = mint::now().checked_sub(Duration::from_secs(1)).unwrap();
            let over = Suspension { until: Some(past), ..suspension("over") };
            suspensions.set("docs", Some(over)).unwrap();
        }
        let suspensions = open();
        assert_eq!(suspensions.current("shop", mint::now()).unwrap().reason, "a fix");
        assert_eq!(suspensions.current("docs", mint::now()), None);
        suspensions.set("shop", None).unwrap();
        assert_eq!(suspensions.current("shop", mint::now()), None);
        assert_eq!(std::fs::read_to_string(folder.path().join(FILE)).unwrap(), "{}");
        drop(suspensions);
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let store = Arc::new(Store::open(folder.path()).unwrap());
        assert!(Suspensions::open(store).is_err(), "what is damaged is not ignored");
    }

    #[test]
    fn a_suspension_has_a_reason_and_ends_in_the_future() {
        let long = "x".repeat(MOST_REASON_BYTES + 1);
        for reason in ["", " ", "a\nb", long.as_str()] {
            assert!(Suspension::new(reason.to_owned(), "usr_a", None).is_err(), "{reason:?}");
        }
        assert!(Suspension::new("a fix".to_owned(), "usr_a", Some(mint::now())).is_err());
    }
}
