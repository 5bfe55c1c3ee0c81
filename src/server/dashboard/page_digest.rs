//! A digest of what pages show, which is made once for all streams to open pages.

use tokio::sync::watch;

use crate::server::prelude::*;

/// The last digest, while somebody waits for the next one.
#[derive(Default)]
pub(crate) struct PageDigest(Lock<Option<watch::Sender<u64>>>);

impl PageDigest {
    /// Returns a receiver of the digests after the last one. Whoever is the first begins with `first`, and `begin` starts what
    /// sends the others.
    pub(super) fn subscribe(&self, first: impl FnOnce() -> u64, begin: impl FnOnce()) -> watch::Receiver<u64> {
        let mut shared = self.0.lock();
        if let Some(sender) = &*shared {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(first());
        *shared = Some(sender);
        begin();
        receiver
    }

    /// Tells all receivers a digest, and returns whether it is another one than before. Returns none if nobody receives any
    /// more: whoever comes then is the first again.
    pub(super) fn send(&self, digest: u64) -> Option<bool> {
        let mut shared = self.0.lock();
        if let Some(sender) = &*shared
            && sender.receiver_count() > 0
        {
            return Some(sender.send_if_modified(|last| std::mem::replace(last, digest) != digest));
        }
        *shared = None;
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn one_look_serves_all_and_ends_with_the_last() {
        let (digest, begun) = (PageDigest::default(), Cell::new(0));
        let subscribe = |first: u64| digest.subscribe(|| first, || begun.set(begun.get() + 1));
        let (one, other) = (subscribe(1), subscribe(2));
        assert_eq!((begun.get(), digest.send(1), other.has_changed().unwrap()), (1, Some(false), false));
        assert_eq!(digest.send(3), Some(true));
        assert!(one.has_changed().unwrap() && other.has_changed().unwrap());
        drop(one);
        assert_eq!(digest.send(3), Some(false));
        drop(other);
        assert_eq!(digest.send(4), None);
        let again = subscribe(4);
        assert_eq!((begun.get(), digest.send(4), again.has_changed().unwrap()), (2, Some(false), false));
    }
}
