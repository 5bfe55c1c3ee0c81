//! Notices changes of the configuration file (D91).
//!
//! The file is checked once a second. A volume of Kubernetes swaps a link above the file, an editor replaces it, and a
//! network file system sends no events: only its identity and its times tell of all of them.

use crate::cli::prelude::*;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use crate::reconcile::sync_loop::schedule::{LONGEST_DEBOUNCE, QUIET, TICK};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReloadCause {
    Asked,
    Changed,
}

#[derive(Debug, Clone, Copy)]
enum Wake {
    Reload,
    Stop,
}

/// Asks for a reload, and ends the watch.
#[derive(Debug, Clone)]
pub(crate) struct ReloadTrigger(Sender<Wake>);

impl ReloadTrigger {
    pub(crate) fn reload(&self) {
        let _ = self.0.send(Wake::Reload);
    }

    pub(crate) fn stop(&self) {
        let _ = self.0.send(Wake::Stop);
    }
}

#[derive(Debug)]
pub(crate) struct ConfigWatch {
    path: PathBuf,
    received: Receiver<Wake>,
    /// The file when it was last to be read.
    seen: Option<ConfigStamp>,
}

impl ConfigWatch {
    /// Starts to watch a file. What happens to it from now on is not missed.
    pub(crate) fn new(path: PathBuf) -> (Self, ReloadTrigger) {
        let (sender, received) = channel();
        let seen = ConfigStamp::read(&path);
        (Self { path, received, seen }, ReloadTrigger(sender))
    }

    /// Waits until the file is to be read. Returns `None` if the watch has ended.
    pub(super) fn wait(&mut self) -> Option<ReloadCause> {
        loop {
            if let ControlFlow::Break(cause) = self.receive(TICK) {
                return cause;
            }
            if ConfigStamp::read(&self.path) != self.seen {
                return self.debounce();
            }
        }
    }

    /// Waits until the file stays the same for a moment: an editor may still be writing it.
    fn debounce(&mut self) -> Option<ReloadCause> {
        let since = Instant::now();
        let mut last = ConfigStamp::read(&self.path);
        while since.elapsed() < LONGEST_DEBOUNCE {
            if let ControlFlow::Break(cause) = self.receive(QUIET) {
                return cause;
            }
            let now = ConfigStamp::read(&self.path);
            if now == last {
                break;
            }
            last = now;
        }
        self.seen = last;
        Some(ReloadCause::Changed)
    }

    /// Waits for a request. Breaks with one to read the file, or with none at the end of the watch.
    fn receive(&mut self, time: Duration) -> ControlFlow<Option<ReloadCause>> {
        match self.received.recv_timeout(time) {
            Ok(Wake::Reload) => {
                self.seen = ConfigStamp::read(&self.path);
                ControlFlow::Break(Some(ReloadCause::Asked))
            }
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => ControlFlow::Break(None),
            Err(RecvTimeoutError::Timeout) => ControlFlow::Continue(()),
        }
    }
}

/// The version of a file: a changed file has another one.
#[derive(Debug, PartialEq, Eq)]
struct ConfigStamp {
    /// The target of its links.
    target: PathBuf,
    /// The device, inode and size.
    identity: [u64; 3],
    /// The times of the last change of its text and of its metadata, in seconds and nanoseconds.
    times: [i64; 4],
}

impl ConfigStamp {
    /// The state of a file; none if it does not exist or cannot be reached.
    fn read(path: &Path) -> Option<Self> {
        let (target, facts) = (path.canonicalize().ok()?, fs::metadata(path).ok()?);
        let identity = [facts.dev(), facts.ino(), facts.size()];
        Some(Self { target, identity, times: [facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()] })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_change_a_swapped_link_and_a_removal_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (version, text) in [("v1", "a"), ("v2", "bc")] {
            fs::create_dir(at(version)).unwrap();
            fs::write(at(version).join("config.yaml"), text).unwrap();
        }
        symlink("v1", at("data")).unwrap();
        symlink("data/config.yaml", at("config.yaml")).unwrap();
        let (mut watch, trigger) = ConfigWatch::new(at("config.yaml"));
        symlink("v2", at("next")).unwrap();
        fs::rename(at("next"), at("data")).unwrap();
        assert_eq!(watch.wait(), Some(ReloadCause::Changed));
        fs::write(at("v2/config.yaml"), "longer").unwrap();
        assert_eq!(watch.wait(), Some(ReloadCause::Changed));
        fs::remove_file(at("config.yaml")).unwrap();
        assert_eq!(watch.wait(), Some(ReloadCause::Changed));
        fs::write(at("config.yaml"), "back").unwrap();
        trigger.reload();
        assert_eq!(watch.wait(), Some(ReloadCause::Asked));
        // What was there when somebody asked is no change afterwards.
        trigger.stop();
        assert_eq!(watch.wait(), None);
    }
}
