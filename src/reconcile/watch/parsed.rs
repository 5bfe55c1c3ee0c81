//! The cache of parsed files (D75) at the start of a loop: its first reading uses the cache, and is kept there later.

use std::{sync::Arc, thread};

use super::{
    super::{Options, Prepared, remembered::program},
    Loop,
};
use crate::{background::lower_priority, manifest::ParsedFiles};

impl<F> Loop<F> {
    /// Reads the manifests for the first time.
    pub(super) fn read_first(&mut self, options: Options) -> Prepared {
        let folder = self.store.beside().map(|beside| beside.folder);
        let parsed = folder.zip(program()).and_then(|(folder, program)| ParsedFiles::within(&folder, &program));
        let prepared = Prepared::load_first(options, parsed.as_ref());
        self.parsed = parsed;
        prepared
    }

    /// Writes what the first reading has parsed, in a thread of its own: neither the readiness of the server nor the next
    /// look waits for that.
    pub(super) fn keep_parsed(&mut self) {
        let Some((parsed, prepared)) = self.parsed.take().zip(self.prepared.as_ref()) else { return };
        let (loaded, following) = (prepared.loaded(), Arc::clone(&self.following));
        let keep = move || {
            lower_priority();
            loaded.keep_parsed(&parsed, || following.is_stopping());
        };
        // Without the entries, the next start takes longer.
        let _ = thread::Builder::new().name("parsed".into()).spawn(keep);
    }
}
