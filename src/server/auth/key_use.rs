//! When each API key was used last, as far as this process knows: who revokes a key wants to know whether anybody needs it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicI64, Ordering};

use quick_cache::sync::Cache;

use crate::server::prelude::*;

/// The most keys that are remembered: those that are used most.
const MOST_KEYS: usize = 32 << 10;

/// The last uses of keys since the process started.
pub(crate) struct KeyUse {
    /// Unix times by key.
    seconds: Cache<Id, Arc<AtomicI64>>,
    /// Since when uses are noted.
    pub(in crate::server) since: Timestamp,
}

impl Default for KeyUse {
    fn default() -> Self {
        Self { seconds: Cache::new(MOST_KEYS), since: clock::now() }
    }
}

impl KeyUse {
    /// Notes that a key is used now.
    pub(super) fn note(&self, key: &Id) {
        let Ok(second) = self.seconds.get_or_insert_with(key, || Ok::<_, Infallible>(Arc::default()));
        second.store(clock::now().as_second(), Ordering::Relaxed);
    }

    /// When a key was used last, if it was.
    pub(in crate::server) fn last(&self, key: &Id) -> Option<Timestamp> {
        Timestamp::from_second(self.seconds.get(key)?.load(Ordering::Relaxed)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_last_use() {
        let (uses, before) = (KeyUse::default(), clock::now());
        uses.note(&Id::new("ak_1"));
        assert!(uses.last(&Id::new("ak_1")).is_some_and(|at| at.as_second() >= before.as_second()));
        assert_eq!(uses.last(&Id::new("ak_2")), None);
    }
}
