//! A dry run from what an earlier run left gives what a run from scratch gives: the plan, the diagnostics, their order
//! and the counts. What was left may be damaged or out of date.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    again::{self, Dice},
    parsed::{PADDING, damage},
};
use crate::{
    lint::{LINTS, Level},
    manifest::{
        ParsedFiles,
        tree::{Disk, Recorder, Tree},
    },
    model::{diagnostic::Diagnostic, digest_key::DigestKey, operation::Operation, snapshot::Snapshot},
    reconcile::{
        LintLevels, Options, Planned, Prepared,
        changed_part::is_settled_alone,
        plan_with,
        remembered::{RememberedRun, remember},
        settled::SettledRun,
    },
    store::{engine::OnDisk, ids_and_clock},
};

/// Lints that compare edges with each other, or with the whole source.
const OF_SEVERAL_EDGES: [&str; 5] =
    ["duplicate-hostport", "duplicate-match", "shadowed-route", "unserved-host", "unused-module-set"];

/// How a dry run came to its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Recalled,
    Part,
    Scratch,
}

/// The levels of lints: all are allowed, except those of some names. Generated manifests have findings of most others.
fn levels(shown: &[&str]) -> LintLevels {
    let level = |name: &str| if shown.contains(&name) { Level::Warn } else { Level::Allow };
    let levels = LINTS.iter().map(|lint| (lint.name.to_owned(), level(lint.name))).collect();
    LintLevels { levels, ..LintLevels::default() }
}

/// Everything that is shown of a run.
fn told(planned: &Planned) -> String {
    let plan = planned.plan.as_ref();
    let refusals: Vec<&String> = plan.into_iter().flat_map(|plan| &plan.refusals).map(|it| &it.message).collect();
    let text = plan.map(super::shown).unwrap_or_default();
    let (base, files) = (plan.map(|plan| plan.base), planned.files.len());
    format!("{}{text}{refusals:?} {base:?} {files}", again::shown(planned))
}

/// Warnings with their places.
fn placed(warnings: &[Diagnostic]) -> Vec<String> {
    warnings.iter().map(|it| format!("{:?} {}", it.position(), it.message)).collect()
}

/// Dry runs on a store, of which only the folder with what is remembered is real.
struct DryRuns {
    store: OnDisk,
    manifests: PathBuf,
    lints: LintLevels,
    snapshot: Snapshot,
    /// The number of changes of the store.
    changes: u64,
}

impl DryRuns {
    fn change(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        self.changes += 1;
        self.store.fingerprint = blake3::hash(&self.changes.to_le_bytes());
    }

    fn parsed(&self) -> ParsedFiles {
        ParsedFiles::within(&self.store.folder, "a program").unwrap()
    }

    fn options(&self, tree: Arc<dyn Tree>) -> Options {
        Options { tree, lints: self.lints.clone(), ..Options::default() }
    }

    fn scratch(&self) -> Planned {
        Prepared::load(self.options(Arc::new(Disk::new([self.manifests.as_path()])))).plan(&self.snapshot)
    }

    fn recorded(&self) -> (Arc<Recorder>, Options) {
        let recorder = Arc::new(Recorder::new(Arc::new(Disk::new([self.manifests.as_path()]))));
        let options = self.options(Arc::clone(&recorder) as Arc<dyn Tree>);
        (recorder, options)
    }

    fn remember(&self, recorder: &Recorder, options: &Options, planned: &Planned) {
        let revision = self.snapshot.revision;
        let parsed = self.parsed();
        let apart = is_settled_alone(&self.snapshot, options, planned, revision).then_some(&parsed);
        remember(&self.store, options, recorder, &SettledRun::judged_now(planned, revision, options), apart);
    }

    /// A dry run as the command line does it, which must not differ from one from scratch.
    fn dry_run(&self, scratch: &Planned, seed: u64) -> Way {
        let (recorder, options) = self.recorded();
        if let Some(run) = RememberedRun::find(&self.store, &options) {
            if let Some(recalled) = run.recalled(&recorder) {
                let plan = scratch.plan.as_ref().unwrap();
                assert!(plan.is_empty(), "seed {seed}");
                assert_eq!((recalled.unchanged, recalled.revision), (plan.unchanged, plan.base), "seed {seed}");
                assert_eq!(placed(&recalled.warnings), placed(&scratch.diagnostics), "seed {seed}");
                return Way::Recalled;
            }
            if let Some(planned) = run.changed(&options, &recorder, &[self.parsed()]) {
                assert_eq!(told(&planned), told(scratch), "seed {seed}");
                return Way::Part;
            }
        }
        let planned = plan_with(&options, &self.snapshot, Some(&self.parsed()));
        assert_eq!(told(&planned), told(scratch), "seed {seed}");
        self.remember(&recorder, &options, &planned);
        Way::Scratch
    }

    /// Applies the plan, and remembers that.
    fn apply(&mut self) {
        let (recorder, options) = self.recorded();
        let planned = plan_with(&options, &self.snapshot, Some(&self.parsed()));
        let operations: Vec<Operation> = planned.plan.as_ref().unwrap().operations();
        if !operations.is_empty() {
            self.change(self.snapshot.apply(&operations, ids_and_clock::now()).unwrap().0);
        }
        self.remember(&recorder, &options, &planned);
    }
}

fn write(path: &Path, text: &str) {
    // A source with consent for others is planned as a whole.
    let text = text.replace("\n  delegates_to: [{source: theirs, path_prefix: /}]", "");
    let padding = if text.starts_with('#') { String::new() } else { PADDING.repeat(50) };
    fs::write(path, padding + &text).unwrap();
}

#[test]
fn after_any_edits_a_dry_run_from_what_was_left_is_as_from_scratch() {
    let (mut parts, mut changing, mut recalled) = (0, 0, 0);
    for seed in 60..67 {
        let mut dice = Dice(seed);
        let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut runs = DryRuns {
            store: OnDisk {
                digest_key: Some(DigestKey::new([7; 32])),
                ..OnDisk::new(store.path().to_owned(), blake3::hash(b"empty"))
            },
            manifests: folder.path().to_owned(),
            lints: match seed % 3 {
                0 => levels(&[]),
                1 => levels(&OF_SEVERAL_EDGES),
                _ => LintLevels::default(),
            },
            snapshot: Snapshot::default(),
            changes: 0,
        };
        for number in 0..3 {
            fs::write(folder.path().join(format!("secret-{number}")), "hunter").unwrap();
        }
        write(&folder.path().join("shared.yaml"), &again::shared(&mut dice));
        let mut good: Option<Vec<(PathBuf, String)>> = None;
        let mut is_broken = false;
        for _ in 0..80 {
            if let (true, Some(good)) = (is_broken && dice.roll(3) > 0, &good) {
                again::put(folder.path(), good);
            }
            let number = dice.roll(7);
            let path = folder.path().join(format!("{number}.yaml"));
            match dice.roll(24) {
                0 => drop(fs::remove_file(&path)),
                1 if seed == 65 => {
                    let theirs = again::with_theirs(&mut dice, runs.snapshot.clone());
                    runs.change(theirs);
                }
                2 => {
                    let meddled = again::meddled(&mut dice, runs.snapshot.clone());
                    runs.change(meddled);
                }
                3 => {
                    damage(&mut dice, store.path());
                }
                4 => fs::write(folder.path().join(format!("secret-{}", dice.roll(3))), "hunter2").unwrap(),
                5..8 => write(&path, &again::file(&mut dice, number)),
                _ => {
                    let path = if dice.roll(8) == 0 { folder.path().join("shared.yaml") } else { path };
                    let text = fs::read_to_string(&path).unwrap_or_else(|_| again::file(&mut dice, number));
                    write(&path, &again::edited(&text, &mut dice));
                }
            }
            let scratch = runs.scratch();
            let has_changes = scratch.plan.as_ref().is_some_and(|plan| !plan.is_empty());
            match runs.dry_run(&scratch, seed) {
                Way::Recalled => recalled += 1,
                Way::Part => {
                    parts += 1;
                    changing += u32::from(has_changes);
                }
                Way::Scratch => {}
            }
            is_broken = !scratch.settles();
            if !is_broken {
                good = Some(again::files(folder.path()));
                if dice.roll(3) == 0 {
                    runs.apply();
                }
            }
        }
    }
    let counts = format!("{parts} planned from a part, {changing} with changes, {recalled} recalled");
    assert!(parts > 8 && changing > 8 && recalled > 15, "{counts}");
}
