//! A run from what is remembered says what a run from scratch says: the counts, the warnings and their order.

use std::{fs, path::PathBuf, sync::Arc};

use super::incremental::{self, Dice};
use crate::manifest::tree::{Disk, Recorder, Tree};
use crate::model::{Diagnostic, DigestKey, Operation, Snapshot};
use crate::reconcile::run::plan_cache;
use crate::reconcile::{Options, PlanResult, Prepared};
use crate::store::{OnDisk, clock};

/// Warnings with their places.
fn placed(warnings: &[Diagnostic]) -> Vec<String> {
    let spans = |it: &Diagnostic| {
        let places = it.place.iter().chain(it.related.iter().map(|(place, _)| place));
        places.map(|place| (place.file.name.clone(), place.span.clone())).collect::<Vec<_>>()
    };
    warnings.iter().map(|it| format!("{:?} {:?} {}", it.position(), spans(it), it.message)).collect()
}

/// Runs on a store, of which only the folder with what is remembered is real.
struct Runs {
    store: OnDisk,
    manifests: PathBuf,
    snapshot: Snapshot,
    /// The number of changes of the store.
    changes: u64,
}

impl Runs {
    fn change(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        self.changes += 1;
        self.store.fingerprint = blake3::hash(&self.changes.to_le_bytes());
    }

    fn recorded(&self) -> (Arc<Recorder>, Options) {
        let recorder = Arc::new(Recorder::new(Arc::new(Disk::new([self.manifests.as_path()]))));
        let options = Options { tree: Arc::clone(&recorder) as Arc<dyn Tree>, ..Options::default() };
        (recorder, options)
    }

    fn remember(&self, recorder: &Recorder, options: &Options, planned: &PlanResult) {
        let until = options.lints.valid_until(&planned.desired);
        plan_cache::save(&self.store, options, recorder, planned, self.snapshot.revision, until);
    }

    /// Plans from scratch, and checks what is remembered against that.
    fn dry_run(&self, seed: u64) -> (PlanResult, bool) {
        let (recorder, options) = self.recorded();
        let recalled = plan_cache::load(&self.store, &options, &recorder);
        let planned = Prepared::load(options.clone()).plan(&self.snapshot);
        let is_recalled = recalled.is_some();
        if let Some(recalled) = recalled {
            let plan = planned.plan.as_ref().unwrap();
            assert!(plan.is_empty(), "seed {seed}");
            let answer = recalled.plan.as_ref().unwrap();
            assert!(answer.is_empty(), "seed {seed}");
            assert_eq!((answer.unchanged, answer.base), (plan.unchanged, plan.base), "seed {seed}");
            assert_eq!(placed(&recalled.diagnostics), placed(&planned.diagnostics), "seed {seed}");
        }
        self.remember(&recorder, &options, &planned);
        (planned, is_recalled)
    }

    /// Applies the plan, and remembers that.
    fn apply(&mut self) {
        let (recorder, options) = self.recorded();
        let planned = Prepared::load(options.clone()).plan(&self.snapshot);
        let operations: Vec<Operation> = planned.plan.as_ref().unwrap().operations();
        if !operations.is_empty() {
            self.change(self.snapshot.apply(&operations, clock::now()).unwrap().0);
        }
        self.remember(&recorder, &options, &planned);
    }
}

#[test]
fn after_any_edits_a_remembered_run_is_as_from_scratch() {
    let (mut recalled, mut with_warnings) = (0, 0);
    for seed in 60..64 {
        let mut dice = Dice(seed);
        let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut runs = Runs {
            store: OnDisk {
                digest_key: Some(DigestKey::new([7; 32])),
                ..OnDisk::new(store.path().to_owned(), blake3::hash(b"empty"))
            },
            manifests: folder.path().to_owned(),
            snapshot: Snapshot::default(),
            changes: 0,
        };
        for number in 0..3 {
            fs::write(folder.path().join(format!("secret-{number}")), "hunter").unwrap();
        }
        fs::write(folder.path().join("shared.yaml"), incremental::shared(&mut dice)).unwrap();
        let mut good: Option<Vec<(PathBuf, String)>> = None;
        let mut is_broken = false;
        for _ in 0..80 {
            if let (true, Some(good)) = (is_broken && dice.roll(3) > 0, &good) {
                incremental::put(folder.path(), good);
            }
            let number = dice.roll(7);
            let path = folder.path().join(format!("{number}.yaml"));
            match dice.roll(12) {
                0 => drop(fs::remove_file(&path)),
                1 => {
                    let meddled = incremental::meddled(&mut dice, runs.snapshot.clone());
                    runs.change(meddled);
                }
                2 => fs::write(folder.path().join(format!("secret-{}", dice.roll(3))), "hunter2").unwrap(),
                3 => fs::write(&path, incremental::file(&mut dice, number)).unwrap(),
                4 | 5 => {
                    let text = fs::read_to_string(&path).unwrap_or_else(|_| incremental::file(&mut dice, number));
                    fs::write(&path, incremental::edited(&text, &mut dice)).unwrap();
                }
                // Nothing changes.
                _ => {}
            }
            let (planned, is_recalled) = runs.dry_run(seed);
            recalled += u32::from(is_recalled);
            with_warnings += u32::from(is_recalled && !planned.diagnostics.is_empty());
            is_broken = !planned.settles();
            if !is_broken {
                good = Some(incremental::files(folder.path()));
                if dice.roll(2) == 0 {
                    runs.apply();
                }
            }
        }
    }
    assert!(recalled > 15 && with_warnings > 5, "{recalled} recalled, {with_warnings} of them with warnings");
}
