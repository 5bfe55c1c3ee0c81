//! A run with a cache of parsed files, whatever is in it, gives what it gives without: plans, diagnostics and their order.
//! No secret is in the cache.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    MARKER, Spec,
    again::{Dice, file, options, shown},
    any_spec, cases, revealed, tells_no_secret,
};
use crate::{
    manifest::{ParsedFiles, tree::Disk},
    model::{Kind, snapshot::Snapshot},
    reconcile::{LintLevels, Options, Prepared, plan_with, validate_with},
    store::ids_and_clock,
};

/// Makes a manifest long enough for an entry.
pub(super) const PADDING: &str = "# This comment makes the file long enough to be kept.\n";

/// The files of a cache, in order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().map(Result::unwrap);
    let files = walk.filter(|entry| entry.file_type().is_file() && entry.file_name() != "swept");
    files.map(walkdir::DirEntry::into_path).collect()
}

/// Damages some of the files of a cache.
pub(super) fn damage(dice: &mut Dice, folder: &Path) -> usize {
    let all = entries(folder);
    let mut damaged = 0;
    for path in &all {
        let Ok(mut bytes) = fs::read(path) else { continue };
        let at = usize::try_from(dice.roll(bytes.len().max(1) as u64)).unwrap();
        damaged += 1;
        match dice.roll(24) {
            0 => fs::write(path, &bytes[..at]).unwrap(),
            1 | 2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.roll(8);
                }
                fs::write(path, bytes).unwrap();
            }
            3 | 4 => {
                let other = &all[usize::try_from(dice.roll(all.len() as u64)).unwrap()];
                let aside = path.with_extension("aside");
                fs::rename(path, &aside).unwrap();
                let _ = fs::rename(other, path);
                fs::rename(&aside, other).unwrap();
            }
            5 => fs::remove_file(path).unwrap(),
            6 => {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            }
            7 => {
                fs::remove_file(path).unwrap();
                symlink(all.last().unwrap(), path).unwrap();
            }
            _ => damaged -= 1,
        }
    }
    damaged
}

#[test]
fn whatever_is_in_the_cache_a_run_gives_what_it_gives_without() {
    let (mut damaged, mut kept, mut applied) = (0, 0, 0);
    for seed in 20..24 {
        let mut dice = Dice(seed);
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut snapshot = Snapshot::default();
        for _ in 0..30 {
            let path = folder.path().join(format!("{}.yaml", dice.roll(7)));
            if dice.roll(4) == 0 {
                drop(fs::remove_file(&path));
            } else {
                let number = dice.roll(7);
                fs::write(&path, format!("{}{}", PADDING.repeat(50), file(&mut dice, number))).unwrap();
            }
            damaged += damage(&mut dice, cache.path());
            kept += entries(cache.path()).len();
            let options = options(folder.path(), seed % 2 == 1);
            let scratch = Prepared::load(options.clone()).plan(&snapshot);
            // The second run reads what the first has repaired.
            for _ in 0..2 {
                let parsed = ParsedFiles::within(cache.path(), "a program").unwrap();
                assert_eq!(shown(&plan_with(&options, &snapshot, Some(&parsed))), shown(&scratch), "seed {seed}");
            }
            let parsed = ParsedFiles::within(cache.path(), "a program").unwrap();
            let [validated, expected] = [Some(&parsed), None]
                .map(|parsed| validate_with(options.tree.as_ref(), &LintLevels::default(), "default", parsed));
            assert_eq!(shown(&validated), shown(&expected), "seed {seed}");
            let Some(plan) = scratch.plan.filter(|plan| plan.refusals.is_empty()) else { continue };
            let operations = plan.operations();
            if !operations.is_empty() {
                snapshot = snapshot.apply(&operations, ids_and_clock::now()).unwrap().0;
                applied += 1;
            }
        }
    }
    // There was something to use, and something to repair.
    assert!(damaged > 50 && kept > 200 && applied > 10, "{damaged} damaged, {kept} kept, {applied} applied");
}

#[test]
fn whatever_is_in_the_cache_a_followed_source_is_what_it_is_without() {
    let (mut damaged, mut kept) = (0, 0);
    for seed in 30..34 {
        let mut dice = Dice(seed);
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let snapshot = Snapshot::default();
        for round in 0..20 {
            for _ in 0..2 {
                let number = dice.roll(7);
                let path = folder.path().join(format!("{}.yaml", dice.roll(7)));
                fs::write(&path, format!("{}{}", PADDING.repeat(50), file(&mut dice, number))).unwrap();
            }
            damaged += damage(&mut dice, cache.path());
            let options = options(folder.path(), seed % 2 == 1);
            let parsed = ParsedFiles::within(cache.path(), "a program").unwrap();
            let before = entries(cache.path());
            let first = Prepared::load_first(options.clone(), Some(&parsed));
            assert_eq!(entries(cache.path()), before, "the first reading only reads the cache");
            let scratch = Prepared::load(options.clone()).plan(&snapshot);
            assert_eq!(shown(&first.plan(&snapshot)), shown(&scratch), "seed {seed}");
            first.loaded().keep_parsed(&parsed, || round == 0);
            kept += entries(cache.path()).len();
            // A change of what was read from the cache is the same as one of what was parsed.
            let path = folder.path().join(format!("{}.yaml", dice.roll(7)));
            if let Ok(text) = fs::read_to_string(&path) {
                fs::write(&path, text.replace("bkd_1", "bkd_2")).unwrap();
            }
            let again = Prepared::load_again(options.clone(), Some(first));
            let scratch = Prepared::load(options).plan(&snapshot);
            assert_eq!(shown(&again.plan(&snapshot)), shown(&scratch), "seed {seed}");
        }
        assert!(!entries(cache.path()).is_empty());
    }
    assert!(damaged > 10 && kept > 40, "{damaged} damaged, {kept} kept");
}

/// A manifest of a resource, and one of a set with its modules.
fn manifests(spec: &Spec) -> [Value; 2] {
    let mut fields = revealed(spec);
    if spec.kind() == Kind::HttpsEdgeRoute {
        fields["edge"] = json!("shop");
    }
    let manifest = |kind: &str, spec: Value| json!({"apiVersion": "edgewright/v1", "kind": kind, "metadata": {"name": "one"}, "spec": spec});
    let modules = spec.modules().filter(|_| spec.kind() == Kind::HttpsEdgeRoute);
    let modules = modules.map(|(slot, _)| (slot.name.to_owned(), fields[slot.name].clone())).collect();
    let set = manifest("ModuleSet", Value::Object(modules));
    [manifest(spec.kind().info().name, fields), set]
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn a_cache_has_every_spec_but_no_secret(spec in any_spec()) {
        for manifest in manifests(&spec) {
            let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let text = manifest.to_string();
            fs::write(folder.path().join("a.json"), format!("{text}{}", " ".repeat(3000))).unwrap();
            let options = Options::new(Disk::new([folder.path()]));
            let runs = [0, 1].map(|_| {
                let parsed = ParsedFiles::within(cache.path(), "a program").unwrap();
                plan_with(&options, &Snapshot::default(), Some(&parsed))
            });
            let scratch = plan_with(&options, &Snapshot::default(), None);
            for run in &runs {
                prop_assert_eq!(shown(run), shown(&scratch));
                prop_assert_eq!(run.desired.len(), scratch.desired.len());
                for (key, desired) in scratch.desired.iter() {
                    let kept = &run.desired[key].spec;
                    prop_assert!(kept.same(desired.spec.as_ref()), "{kept:?} is not {:?}", desired.spec);
                }
            }
            let files = entries(cache.path());
            let is_secret = text.contains(MARKER) || text.contains("PRIVATE KEY");
            // An owner has no manifest, a key has a token file, and a source is declared inside its subscription.
            let is_whole = !matches!(spec.kind(), Kind::Owner | Kind::ApiKey | Kind::EventSource) || text.contains("ModuleSet");
            prop_assert_eq!(files.len(), usize::from(is_whole && !is_secret), "{}", text);
            for file in files {
                tells_no_secret(&String::from_utf8_lossy(&fs::read(file).unwrap()))?;
            }
        }
    }
}
