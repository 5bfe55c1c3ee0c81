//! A cache of plans without changes, next to the store (D73).
//!
//! # The problem
//!
//! Most dry runs have nothing to do. They should cost as much as reading the files, and not as much as parsing them and
//! loading the state.
//!
//! # The idea
//!
//! A run after which there is nothing to do leaves a line in the file `remembered`: its question (the program, the
//! options and the folder), the fingerprint of the store, digests of everything that was read, and its warnings. The
//! next run with the same question reads the files, compares the digests, and has its answer.
//!
//! For example, `plan shop` after `reconcile shop` reads the files of `shop` and answers `No changes`. After any
//! change, it plans everything: it never plans a part of a source from what earlier runs have left.
//!
//! The digests have a key that derives from the master key (D96), so whoever has a copy of the folder cannot find short
//! secrets by hashing guesses. Lints that depend on the time set a time until which the answer holds, and it does not
//! hold before the time of the run, should the clock be set back.
//!
//! # What it never does
//!
//! - What is remembered is never trusted over the files: it counts only if everything that the run depended on has the
//!   same digest.
//! - A file that is damaged or missing only costs time. A line whose checksum does not match is ignored.
//! - Runs with errors, with changes, with surrounding manifests or with assumed values are not remembered.
//! - It finds no damage of the store. Every run that changes something reads the whole state.

use std::ops::Range;

use super::test_stage::{TestCounts, TestRun};
use super::{options::Options, plan_result::PlanResult};
use crate::manifest::ManifestFile;
use crate::manifest::tree::{ReadDigests, Recorder};
use crate::model::{DigestKey, Place, SourceFile, build};
use crate::plan::format::json::Item;
use crate::reconcile::prelude::*;
use crate::store::{OnDisk, SidecarFiles, ids};

/// The file, next to the files of the store.
const FILE: &str = "remembered";
/// The most runs in the file; sources and options have runs of their own.
const MOST_RUNS: usize = 16;
/// The largest file that is read or written.
const MOST_BYTES: usize = 8 << 20;

/// A run that had nothing to do.
#[derive(Serialize, Deserialize)]
struct CachedRun {
    /// The digest of the program and the options.
    question: String,
    /// The fingerprint of the store.
    state: String,
    /// The digests of the files and values that were read.
    reading: ReadDigests,
    /// The time of the run, before which lints may report something else.
    at: Timestamp,
    /// The time from which they may.
    until: Option<Timestamp>,
    revision: u64,
    unchanged: usize,
    warnings: Vec<CachedWarning>,
    /// The numbers of its route tests.
    #[serde(default)]
    tests: TestCounts,
}

/// A warning.
#[derive(Serialize, Deserialize)]
struct CachedWarning {
    item: Item,
    /// The bytes of its places: lines and columns leave out the end of a block.
    spans: Vec<Range<usize>>,
    /// The number of others that it stands for.
    omitted: u32,
}

/// Returns the answer to a run if it was remembered and nothing that it depends on has changed: a plan without changes, and
/// without the resources that are declared. Reads the files through `recorder`.
pub(crate) fn load(store: &OnDisk, options: &Options, recorder: &Recorder) -> Option<PlanResult> {
    let key = store.digest_key.as_ref()?;
    let (question, state) = (question(options)?, store.fingerprint.to_hex());
    let run = read(store, key).into_iter().find(|run| run.question == question && run.state == state.as_str())?;
    let now = clock::now();
    if now < run.at || run.until.is_some_and(|until| until <= now) {
        return None;
    }
    let files = recorder.reread_if_unchanged(key, &run.reading)?;
    let named = by_name(&files);
    let diagnostics = run.warnings.into_iter().map(|warning| warning.located(&named)).collect::<Option<_>>()?;
    let plan = Plan { base: run.revision, unchanged: run.unchanged, ..Plan::default() };
    let tests = TestRun::counted(run.tests);
    Some(PlanResult { diagnostics, plan: Some(plan), files, tests, ..PlanResult::default() })
}

/// Remembers a run after which the next one has nothing to do. None if it is not remembered. `store` must have the state of the
/// revision that the run left. From `until` on, lints may report something else.
pub(crate) fn save(
    store: &OnDisk,
    options: &Options,
    recorder: &Recorder,
    planned: &PlanResult,
    revision: u64,
    until: Option<Timestamp>,
) -> Option<()> {
    // Without a key, the digests would give away short secrets.
    let key = store.digest_key.as_ref()?;
    let plan = planned.plan.as_ref().filter(|_| planned.leaves_nothing(revision))?;
    let named = by_name(&planned.files);
    let run = CachedRun {
        question: question(options)?,
        state: store.fingerprint.to_hex().to_string(),
        reading: recorder.last_digests(key, ids::salt())?,
        at: clock::now(),
        until,
        revision,
        unchanged: if plan.is_empty() { plan.unchanged } else { planned.desired.len() },
        tests: planned.tests.counts,
        warnings: planned.diagnostics.iter().map(|it| CachedWarning::new(it, &named)).collect::<Option<_>>()?,
    };
    let mut runs = read(store, key);
    runs.retain(|other| other.question != run.question);
    runs.insert(0, run);
    runs.truncate(MOST_RUNS);
    // Without it, the next run takes longer.
    lines_of(&runs, key).ok().and_then(|text| store.write(FILE, &text).ok())
}

impl CachedWarning {
    /// None if one of its places is in no file of the run: it could not be located again.
    fn new(warning: &Diagnostic, files: &HashMap<&str, Arc<SourceFile>>) -> Option<Self> {
        let places = warning.place.iter().chain(warning.related.iter().map(|(place, _)| place));
        let span = |place: &Place| {
            let file = files.get(place.file.name.as_str())?;
            Arc::ptr_eq(file, &place.file).then(|| place.span.clone())
        };
        let spans = places.map(span).collect::<Option<_>>()?;
        Some(Self { item: Item::from_diagnostic(warning), spans, omitted: warning.omitted })
    }

    /// Finds the places in the files that were read again. None if one of them is in no file.
    fn located(self, files: &HashMap<&str, Arc<SourceFile>>) -> Option<Diagnostic> {
        let mut warning = Diagnostic { omitted: self.omitted, ..self.item.diagnostic(files) };
        let places = warning.place.iter_mut().chain(warning.related.iter_mut().map(|(place, _)| place));
        let mut spans = self.spans.into_iter();
        places.zip(&mut spans).for_each(|(place, span)| place.span = span);
        spans.next().is_none().then_some(warning)
    }
}

fn by_name(files: &[Arc<ManifestFile>]) -> HashMap<&str, Arc<SourceFile>> {
    files.iter().map(|file| (file.source.name.as_str(), Arc::clone(&file.source))).collect()
}

/// The digest of the program and of the options that a plan depends on.
fn question(options: &Options) -> Option<String> {
    let program = program()?;
    // The tree is known by what is read from it.
    let Options {
        tree: _,
        source,
        prune,
        isolate,
        recreate_ids,
        budget,
        lints,
        key_owner,
        scope,
        behaviour,
        cancel: _,
    } = options;
    let folder = std::env::current_dir().ok()?;
    let asked = format!(
        "{program} {folder:?} {source:?} {prune} {isolate} {recreate_ids} {budget:?} {lints:?} {key_owner:?} {scope:?} \
         {behaviour}"
    );
    Some(blake3::hash(asked.as_bytes()).to_hex().to_string())
}

/// Returns the identity of this build, because other builds may read the same files differently. Packages give all
/// their builds the same time, so the commit counts, too.
fn program() -> Option<String> {
    let program = std::env::current_exe().and_then(fs::metadata).ok()?;
    let modified = program.modified().ok()?;
    Some(format!("{} {} {modified:?}", build::VERSION, program.len()))
}

/// Reads the runs: one a line, each behind its checksum. A line that is damaged, or was written with another key, is
/// skipped.
fn read(store: &OnDisk, key: &DigestKey) -> Vec<CachedRun> {
    let text = store.read(FILE, MOST_BYTES as u64).ok().flatten().unwrap_or_default();
    let runs = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let (sum, run) = line.split_at_checked(64)?;
        (checksum(key, run).to_hex().as_bytes() == sum).then(|| serde_json::from_slice(run).ok()).flatten()
    });
    runs.collect()
}

fn checksum(key: &DigestKey, run: &[u8]) -> blake3::Hash {
    key.digest("remembered run", &[run])
}

fn lines_of(runs: &[CachedRun], key: &DigestKey) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::new();
    for run in runs {
        let line = serde_json::to_vec(run)?;
        if text.len() + line.len() > MOST_BYTES - 65 * MOST_RUNS {
            break;
        }
        text.extend_from_slice(checksum(key, &line).to_hex().as_bytes());
        text.extend_from_slice(&line);
        text.push(b'\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_about_a_file_that_is_not_of_the_run_is_not_remembered() {
        let file = |name: &str| {
            Arc::new(ManifestFile::new(name.to_owned(), "a: b\n".to_owned(), PathBuf::new(), PathBuf::new()))
        };
        let (of_run, other, replaced) = (file("a.yaml"), file("b.yaml"), file("a.yaml"));
        let files = [Arc::clone(&of_run)];
        let named = by_name(&files);
        let warning = |file: &ManifestFile| Diagnostic::warning(Code::ApiVersion, "a warning").at(file.place(0..1));
        let related = Diagnostic { related: Box::new([(other.place(0..1), "there".to_owned())]), ..warning(&of_run) };
        assert!(CachedWarning::new(&warning(&of_run), &named).is_some());
        for refused in [warning(&other), warning(&replaced), related] {
            assert!(CachedWarning::new(&refused, &named).is_none(), "{refused:?}");
        }
    }
}
