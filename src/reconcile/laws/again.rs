//! A source that is loaded again and again gives what loading it from scratch gives: plans, diagnostics and their order.

use std::{fmt::Write, fs, path::Path};

use crate::{
    manifest::tree::Disk,
    model::{operation::Operation, secret::Secrets, snapshot::Snapshot},
    reconcile::{Options, Planned, Prepared},
    store::mint,
};

/// A sequence of numbers that looks random and is the same in every run.
pub(super) struct Dice(pub u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A file of the estate, now and then with a mistake, a duplicate or another order.
pub(super) fn file(dice: &mut Dice, number: u64) -> String {
    let mut text = String::new();
    for _ in 0..=dice.roll(3) {
        let name = if dice.roll(20) == 0 { dice.roll(24) } else { number * 3 + dice.roll(3) };
        let _ = match dice.roll(12) {
            0 => writeln!(
                text,
                "---\napiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {{name: set-{}}}\nspec: {{compression: {{}}, request_headers: {{add: {{X-A: '{}'}}}}}}",
                dice.roll(3),
                dice.roll(4)
            ),
            1 => writeln!(
                text,
                "---\napiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {{name: office-{name}}}\nspec: {{type: api, ip_policy_ids: [ipp_{}]}}",
                dice.roll(3)
            ),
            2 if dice.roll(3) == 0 => writeln!(text, "---\nkind: ["),
            3 => writeln!(
                text,
                "---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: extra-{name}}}\nspec: {{edge: edge-{}, match_type: path_prefix, match: /x{}, backend: {{backend_id: bkd_1}}}}",
                dice.roll(24),
                dice.roll(3)
            ),
            _ => edge(&mut text, dice, name),
        };
    }
    text
}

fn edge(text: &mut String, dice: &mut Dice, name: u64) -> std::fmt::Result {
    writeln!(text, "---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: edge-{name}}}\nspec:")?;
    writeln!(
        text,
        "  description: Edge {}\n  hostports: ['e{}.example.com:443']\n  routes:",
        dice.roll(3),
        name + dice.roll(30) / 29
    )?;
    for route in 0..=dice.roll(3) {
        let field = if dice.roll(25) == 0 { "bakcend" } else { "backend" };
        writeln!(
            text,
            "    - {{name: r{route}, match_type: path_prefix, match: /p{}, {field}: {{backend_id: bkd_{}}}, modules_from: [set-{}]}}",
            dice.roll(3),
            dice.roll(2),
            dice.roll(3)
        )?;
    }
    Ok(())
}

pub(super) fn shown(planned: &Planned) -> String {
    let mut text = String::new();
    for it in &planned.diagnostics {
        let related: Vec<_> = it.related.iter().map(|(at, label)| (&at.file.name, at.line_column(), label)).collect();
        let _ = writeln!(text, "{:?} {} {:?} {:?} {related:?}", it.position(), it.code, it.message, it.help);
    }
    let changes = planned.plan.iter().flat_map(|plan| &plan.changes);
    for operation in changes.flat_map(|change| &change.operations) {
        let _ = writeln!(text, "{operation} {:?}", operation.body(Secrets::Masked).ok());
    }
    let _ = writeln!(text, "{:?} {:?}", planned.plan.as_ref().map(|plan| plan.unchanged), planned.left_out_names());
    text
}

pub(super) fn options(folder: &Path, isolate: bool) -> Options {
    Options { isolate, ..Options::new(Disk::new([folder])) }
}

#[test]
fn after_any_edits_a_source_that_is_loaded_again_is_as_from_scratch() {
    let (mut invalid, mut applied) = (0, 0);
    for seed in 0..6 {
        let mut dice = Dice(seed);
        let folder = tempfile::tempdir().unwrap();
        let mut snapshot = Snapshot::default();
        let mut last = None;
        for _ in 0..40 {
            let path = folder.path().join(format!("{}.yaml", dice.roll(7)));
            match dice.roll(8) {
                0 => drop(fs::remove_file(&path)),
                1 => drop(fs::rename(&path, folder.path().join(format!("{}.yaml", dice.roll(7))))),
                _ => {
                    let number = dice.roll(7);
                    fs::write(&path, file(&mut dice, number)).unwrap();
                }
            }
            let isolate = seed % 2 == 1;
            let again = Prepared::load_again(options(folder.path(), isolate), last.take());
            let planned = again.plan(&snapshot);
            let scratch = Prepared::load(options(folder.path(), isolate)).plan(&snapshot);
            assert_eq!(shown(&planned), shown(&scratch), "seed {seed}");
            last = Some(again);
            let Some(plan) = planned.plan.filter(|plan| plan.refusals.is_empty()) else {
                invalid += 1;
                continue;
            };
            let operations: Vec<Operation> = plan.operations();
            if !operations.is_empty() {
                snapshot = snapshot.apply(&operations, mint::now()).unwrap().0;
                applied += 1;
            }
        }
    }
    // Both kinds of runs were tried.
    assert!(invalid > 10 && applied > 20, "{invalid} invalid, {applied} applied");
}
