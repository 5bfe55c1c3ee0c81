//! The memo of a run: what a server keeps of one run on a source for the next one (D74).
//!
//! # The problem
//!
//! Saving one file of a source with 10,000 edges and 100,000 routes should cost as much as that file, not as much as the
//! routes.
//!
//! # The idea
//!
//! As in a build system, each stage of a run is a function of the inputs that it names, and the memo keeps its outputs by
//! these inputs. A run from scratch is a run with an empty memo.
//!
//! | Stage | Function | Its output is taken over if |
//! | --- | --- | --- |
//! | read | text of a file, its values → declarations | both are equal (`manifest::load_again`) |
//! | resolve | declaration, its key, its module sets, the keys of what it references → desired resource | all names mean the same, and the file and the sets are those of the last run ([`LastResolution`]) |
//! | judge | resources of a part of the source, what its lints look at → findings | these are the same ([`JudgedParts`]) |
//! | diff | desired resource, stored resource → calls | all names mean the same, and both are as the last run left them |
//!
//! A Spec never changes, so that two are the same if they are one allocation. Each stage gives the next one the allocations of
//! the last run for what is equal: the comparison of a stage costs some milliseconds.
//!
//! # An example
//!
//! - `description: Shop` in one file: the file is parsed. Its resources are resolved, judged with the few edges of their
//!   part, and compared with the store.
//! - Another header in module set `base`: this file is parsed, and the same is done with the routes with
//!   `modules_from: [base]`.
//! - A new route, or a route that is renamed: its file is parsed. All resources are resolved and compared with the store,
//!   because the names differ; those that are as before are not judged again.
//! - Edge `shop` gets another hostport, which edge `campaign` also serves. The part with `shop` has a new Spec: it is judged.
//!   `shop` and `campaign` are a new group of edges with one host: it is judged. The part of `campaign` is judged without
//!   the lints that look at hosts, which another part does now.
//!
//! # Why there are two ways to compare
//!
//! The key of a declaration depends on the names of all declarations and of all resources in the store. So there is one
//! question for all of resolving: do all names mean the same? If they do not, everything is resolved. A lint looks at a part of
//! the source, so that each part has an answer of its own.
//!
//! Crates for incremental computation were tried on a model of 10,000 edges with 100,000 routes. salsa 0.28 is as fast while
//! all names stay, but resolves everything after a rename, never frees the inputs of deleted files, and cancels by
//! unwinding, which this program forbids itself. comemo 0.5 hashes the content of all inputs in each run, which takes
//! 100 ms where comparing addresses takes 3 ms, and keeps one global cache for each function. Both need more dependencies
//! than this needs lines. A way around the comparison of parts, which knew those that a change concerns, saved some
//! milliseconds, and each new lint and each new input had to meet its conditions.
//!
//! # What it never does
//!
//! - It never decides what a run finds, nor in which order: a property test compares a run on what others have left with one
//!   from scratch.
//! - It reports nothing. If there may be anything to report about names, the source is resolved from scratch: only that knows
//!   what to say.
//! - It keeps nothing that the last run did not use. Each run takes the old outputs and leaves new ones.
//! - It keeps no findings of lints that look at the whole source or at facts about manifests. These run each time.
//! - It is not written to the disk, and not shared between sources: the inputs do not name the source.

use crate::lint::JudgedParts;
use crate::manifest::resolve::LastResolution;

/// The outputs of the last run on a source, with their inputs.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// The source as it was resolved.
    pub resolved: Option<LastResolution>,
    /// The parts of the source as they were judged.
    pub judged: JudgedParts,
}

impl Memo {
    /// Keeps what a run has resolved. A run that found something to report does not replace one that did not: the next one
    /// may have the names of that again.
    pub(super) fn keep(&mut self, run: LastResolution) {
        if run.differing.is_some() || self.resolved.as_ref().is_none_or(|last| last.differing.is_none()) {
            self.resolved = Some(run);
        }
    }
}
