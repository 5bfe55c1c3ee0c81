//! A file next to the store with an entry for each source, for what must survive a restart and is not in the history.

use serde::de::DeserializeOwned;

use crate::reconcile::prelude::*;

/// The largest file that is read.
const MOST_BYTES: u64 = 16 << 20;

/// The entries of a file.
pub(crate) struct SourceEntries<T> {
    store: Arc<Store>,
    name: &'static str,
    by_source: Lock<BTreeMap<String, T>>,
}

impl<T: Clone + PartialEq + Serialize + DeserializeOwned> SourceEntries<T> {
    /// Creates the entries of a file that does not exist or does not count.
    pub(crate) fn new(store: Arc<Store>, name: &'static str) -> Self {
        Self { store, name, by_source: Lock::default() }
    }

    /// Reads a file, if it exists. The error of a damaged one has no help.
    pub(crate) fn open(store: Arc<Store>, name: &'static str) -> Result<Self, Diagnostic> {
        let by_source = Lock::new(read(&store, name)?);
        Ok(Self { store, name, by_source })
    }

    /// The entry of a source.
    pub(crate) fn get(&self, source: &str) -> Option<T> {
        self.by_source.lock().get(source).cloned()
    }

    /// Sets the entry of a source, durably.
    pub(crate) fn set(&self, source: &str, entry: T) -> Result<(), StoreError> {
        self.update(|entries| drop(entries.insert(source.to_owned(), entry)))
    }

    /// Changes the entries, durably. If they stay as they are, they are not written again.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut BTreeMap<String, T>) -> R) -> Result<R, StoreError> {
        // Before the lock: a commit that reads an entry must not wait for a caller that waits for the store.
        let files = self.store.sidecars();
        let mut by_source = self.by_source.lock();
        let mut next = by_source.clone();
        let result = change(&mut next);
        if next != *by_source {
            if let Some(files) = files {
                files.write(self.name, &serde_json::to_vec_pretty(&next).map_err(StoreError::internal)?)?;
            }
            *by_source = next;
        }
        Ok(result)
    }

    /// Changes the entry of a source, durably.
    pub(crate) fn change(&self, source: &str, change: impl FnOnce(Option<T>) -> T) -> Result<(), StoreError> {
        self.update(|entries| {
            let entry = change(entries.get(source).cloned());
            entries.insert(source.to_owned(), entry);
        })
    }
}

/// The entries of a file as it is now, if it exists. The error of a damaged one has no help.
pub(crate) fn read<T: DeserializeOwned>(store: &Store, name: &'static str) -> Result<BTreeMap<String, T>, Diagnostic> {
    let bytes = match store.sidecars() {
        Some(files) => files.read(name, MOST_BYTES).map_err(|error| Diagnostic::error(error.code, error.message))?,
        None => None,
    };
    let entries = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(|error| {
        Diagnostic::error(Code::StoreCorrupt, format!("cannot read the file `{name}` of the store: {error}"))
    })?;
    Ok(entries.unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_an_entry_at_the_same_time_are_all_kept() {
        let store = Arc::new(Store::open("memory:").unwrap());
        let counts: SourceEntries<u64> = SourceEntries::new(store, "counts");
        let count = || (0..100).for_each(|_| counts.change("shop", |it| it.unwrap_or_default() + 1).unwrap());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(count);
            }
        });
        assert_eq!(counts.get("shop"), Some(400));
    }
}
