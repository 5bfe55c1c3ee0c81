//! A source that is loaded again and again gives what loading it from scratch gives: plans, diagnostics and their order.
//! Once its plan is applied there is nothing to do, and the same is said of the manifests.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::manifest::tree::{Disk, Recorder, Tree};
use crate::model::{Entry, HttpsEdge, Kind, Operation, Secrets, Snapshot};
use crate::reconcile::{Options, PlanResult, Prepared};
use crate::store::clock;

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
    for place in 0..=dice.roll(3) {
        let name = if dice.roll(40) == 0 { dice.roll(28) } else { number * 4 + place };
        let _ = match dice.roll(12) {
            0 if dice.roll(6) == 0 => module_set(&mut text, dice, name % 3),
            1 => writeln!(
                text,
                "---\napiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {{name: office-{name}}}\nspec: {{type: api, ip_policy_ids: [ipp_{}]}}",
                dice.roll(3)
            ),
            2 if dice.roll(12) == 0 => writeln!(text, "---\nkind: ["),
            4 => write!(text, "{}", hook(name)),
            3 => writeln!(
                text,
                "---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: extra-{name}}}\nspec: {{edge: {}, match_type: path_prefix, match: /x{}, backend: {{backend_id: bkd_1}}}}",
                match dice.roll(8) {
                    0 => format!("edge-{}", dice.roll(28)),
                    1 => "theirs".to_owned(),
                    _ => "edge-24".to_owned(),
                },
                dice.roll(3)
            ),
            _ => edge(&mut text, dice, name),
        };
    }
    text
}

fn module_set(text: &mut String, dice: &mut Dice, name: u64) -> std::fmt::Result {
    let value = dice.roll(4);
    writeln!(
        text,
        "---\napiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {{name: set-{name}}}\nspec: {{compression: {{}}, request_headers: {{add: {{X-A: '{value}'}}}}}}"
    )
}

/// A module set with a secret, and a route that uses it.
fn hook(name: u64) -> String {
    format!(
        "---\napiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {{name: hook-{name}}}\nspec: {{webhook_verification: {{provider: github, secret: {{from_file: secret-0}}}}}}\n---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: hook-{name}}}\nspec: {{edge: edge-24, match_type: path_prefix, match: /hook{name}, backend: {{backend_id: bkd_1}}, modules_from: [hook-{name}]}}\n"
    )
}

/// The module sets and the edge that others use.
pub(super) fn shared(dice: &mut Dice) -> String {
    let mut text = String::new();
    for name in 0..3 {
        let _ = module_set(&mut text, dice, name);
    }
    let _ = edge(&mut text, dice, 24);
    text + &hook(24)
}

fn edge(text: &mut String, dice: &mut Dice, name: u64) -> std::fmt::Result {
    writeln!(text, "---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: edge-{name}}}\nspec:")?;
    let mut hostports = format!("'e{}.example.com:443'", name + dice.roll(30) / 29);
    // A host that other edges serve too, or a wildcard over all of them; seldom on a port that they use.
    match dice.roll(12) {
        0 => write!(hostports, ", 's{}.example.com:{}'", dice.roll(2), 8000 + name)?,
        1 => write!(hostports, ", '*.example.com:{}'", 8000 + name)?,
        2 if dice.roll(3) == 0 => hostports.push_str(", '*.example.com:443'"),
        _ => {}
    }
    let delegates = if name % 5 == 3 { "" } else { "\n  delegates_to: [{source: theirs, path_prefix: /}]" };
    writeln!(text, "  description: Edge {}\n  hostports: [{hostports}]{delegates}\n  routes:", dice.roll(3))?;
    for route in 0..=dice.roll(3) {
        let field = if dice.roll(120) == 0 { "bakcend" } else { "backend" };
        let host = if dice.roll(20) == 0 { format!("e{}.example.com", dice.roll(28)) } else { String::new() };
        let guard = if dice.roll(3) == 0 { "ip_restriction: {ip_policy_ids: [ipp_1]}, " } else { "" };
        writeln!(
            text,
            "    - {{name: r{route}, match_type: path_prefix, match: {host}/p{route}{}, {field}: {{backend_id: bkd_{}}}, {guard}modules_from: [set-{}]}}",
            dice.roll(3),
            dice.roll(2),
            dice.roll(3)
        )?;
    }
    Ok(())
}

/// A file with other values and the same names.
pub(super) fn edited(text: &str, dice: &mut Dice) -> String {
    let (from, to) = [
        ("bkd_0", "bkd_1"),
        ("bkd_1", "bkd_0"),
        ("description: Edge 0", "description: Edge 1"),
        ("description: Edge 1", "# a line more\n  description: Edge 0"),
        ("X-A: '0'", "X-A: '1'"),
        ("X-A: '1'", "X-A: '2'"),
        ("modules_from: [set-0]", "modules_from: [set-1]"),
        ("modules_from: [set-1]", "modules_from: [set-2, set-0]"),
        ("secret: {from_file: secret-0}", "secret: hunter2"),
        ("secret: hunter2", "secret: {from_file: secret-0}"),
        ("match: /p0", "match: /q0"),
        (".example.com:443'", ".example.com:444'"),
        ("ip_restriction: {ip_policy_ids: [ipp_1]}, ", ""),
        ("ip_policy_ids: [ipp_2]", "ip_policy_ids: [ipp_0]"),
    ][usize::try_from(dice.roll(14)).unwrap()];
    text.replacen(from, to, usize::try_from(dice.roll(3)).unwrap() + 1)
}

/// The files of a folder.
pub(super) fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Makes a folder have these files.
pub(super) fn put(folder: &Path, good: &[(PathBuf, String)]) {
    files(folder).iter().for_each(|(path, _)| fs::remove_file(path).unwrap());
    good.iter().for_each(|(path, text)| fs::write(path, text).unwrap());
}

/// The manifests of another source: an edge, and once there is one of the first source, a route on it. Its lints allow
/// what those of the first source do not.
fn theirs(dice: &mut Dice, is_first: bool) -> String {
    let annotations =
        "annotations: {edgewright/lint.duplicate-hostport: allow, edgewright/lint.duplicate-match: allow}";
    // Nobody consents to a hostport that an edge of the first source has.
    let host = 40 + dice.roll(40);
    let delegates = if host.is_multiple_of(8) { "" } else { ", delegates_to: [{source: default, path_prefix: /}]" };
    let mut text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: theirs, {annotations}}}\nspec: {{hostports: ['e{host}.example.com:443']{delegates}}}\n"
    );
    if !is_first {
        let _ = writeln!(
            text,
            "---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: theirs, {annotations}}}\nspec: {{edge: edge-24, match_type: path_prefix, match: /x{}, backend: {{backend_id: bkd_1}}}}",
            dice.roll(3)
        );
    }
    text
}

/// The state after a run of another source, whose edge may then have a hostport of the first one, as a rollback leaves it.
fn with_theirs(dice: &mut Dice, snapshot: Snapshot) -> Snapshot {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("theirs.yaml"), theirs(dice, snapshot.is_empty())).unwrap();
    let options = Options { source: "theirs".into(), ..options(folder.path(), false) };
    let plan = Prepared::load(options).plan(&snapshot).plan.filter(|plan| plan.refusals.is_empty());
    let operations = plan.map(|plan| plan.operations()).unwrap_or_default();
    let snapshot = if operations.is_empty() { snapshot } else { snapshot.apply(&operations, clock::now()).unwrap().0 };
    let is_edge = |entry: &&Arc<Entry>| entry.key.kind == Kind::HttpsEdge && entry.is_owned_by("theirs");
    let (host, is_shared) = (dice.roll(28), dice.roll(2) == 0);
    let edge = snapshot.iter().find(is_edge).filter(|_| is_shared);
    let Some((key, edge)) = edge.and_then(|it| Some((it.key.clone(), it.spec_as::<HttpsEdge>()?))) else {
        return snapshot;
    };
    let spec = HttpsEdge { hostports: vec![format!("e{host}.example.com:443")], ..edge.clone() };
    let operation = Operation::Patch { key, spec: Arc::new(spec), fields: vec!["hostports".into()] };
    snapshot.apply(&[operation], clock::now()).unwrap().0
}

/// The state after a call of the API on any resource: mostly one that changes it, and now and then one that deletes it or
/// ends its claim.
pub(super) fn meddled(dice: &mut Dice, snapshot: Snapshot) -> Snapshot {
    let count = u64::try_from(snapshot.len()).unwrap();
    let Some(entry) = snapshot.iter().nth(usize::try_from(dice.roll(count.max(1))).unwrap()) else { return snapshot };
    let key = entry.key.clone();
    let module = entry.spec().modules().next().map(|(slot, _)| slot);
    let operation = match (dice.roll(8), module, entry.spec_as::<HttpsEdge>()) {
        (0, ..) => Operation::Delete { key, with_children: true },
        (1, ..) => Operation::Claim { key, claim: None },
        (_, Some(slot), _) => Operation::DeleteModule { host: key, slot },
        (_, _, Some(edge)) => {
            let spec = HttpsEdge { description: "by hand".into(), ..edge.clone() };
            Operation::Patch { key, spec: Arc::new(spec), fields: vec!["description".into()] }
        }
        _ => return snapshot,
    };
    let changed = snapshot.apply(&[operation], clock::now());
    changed.map_or(snapshot, |(changed, _)| changed)
}

/// The diagnostics of a run.
pub(super) fn said(planned: &PlanResult) -> String {
    let mut text = String::new();
    for it in &planned.diagnostics {
        let related: Vec<_> = it.related.iter().map(|(at, label)| (&at.file.name, at.line_column(), label)).collect();
        let _ = writeln!(text, "{:?} {} {:?} {:?} {related:?}", it.position(), it.code, it.message, it.help);
    }
    text
}

/// Everything that a run shows.
pub(super) fn shown(planned: &PlanResult) -> String {
    let mut text = said(planned);
    let changes = planned.plan.iter().flat_map(|plan| &plan.changes);
    for operation in changes.flat_map(|change| &change.operations) {
        let _ = writeln!(text, "{operation} {:?}", operation.body(Secrets::Revealed).ok());
    }
    let _ = writeln!(text, "{:?} {:?}", planned.plan.as_ref().map(|plan| plan.unchanged), planned.left_out_names());
    text
}

pub(super) fn options(folder: &Path, isolate: bool) -> Options {
    Options { isolate, ..Options::new(Disk::new([folder])) }
}

/// A source that is followed: each run takes over what the last one left.
pub(super) struct Followed {
    options: Options,
    pub last: Option<Prepared>,
    /// The state of the store.
    pub snapshot: Snapshot,
}

impl Followed {
    pub(super) fn new(options: Options) -> Self {
        Self { options, last: None, snapshot: Snapshot::default() }
    }

    /// Plans what is there now.
    pub(super) fn plan(&mut self) -> PlanResult {
        let again = Prepared::load_again(self.options.clone(), self.last.take());
        let planned = again.plan(&self.snapshot);
        self.last = Some(again);
        planned
    }

    /// Plans what is there now as from scratch, and applies the plan.
    pub(super) fn sync(&mut self, case: &str) -> PlanResult {
        let planned = self.plan();
        let scratch = Prepared::load(self.options.clone()).plan(&self.snapshot);
        assert_eq!(shown(&planned), shown(&scratch), "{case}");
        let operations = planned.plan.as_ref().map(|plan| plan.operations()).unwrap_or_default();
        self.snapshot = self.snapshot.apply(&operations, clock::now()).unwrap().0;
        planned
    }
}

/// Plans again on what the last run left. Also returns how many parts the lints judged, and how many they knew.
fn plan_again(again: &Prepared, snapshot: &Snapshot) -> (PlanResult, usize, usize) {
    let outputs = || again.memo().map(|memo| memo.judged.outputs()).unwrap_or_default();
    let before = outputs();
    let planned = again.plan(snapshot);
    let now = outputs();
    let known = now.iter().filter(|one| before.iter().any(|other| Arc::ptr_eq(one, other))).count();
    (planned, now.len() - known, known)
}

#[test]
fn after_any_edits_a_source_that_is_loaded_again_is_as_from_scratch() {
    let (mut invalid, mut applied, mut settled, mut kept, mut partly) = (0, 0, 0, 0, 0);
    let mut all_said = String::new();
    for seed in 0..6 {
        let (mut dice, mut looks) = (Dice(seed), Dice(seed + 100));
        let folder = tempfile::tempdir().unwrap();
        // One tree for all readings, as in a loop.
        let recorder = Arc::new(Recorder::new(Arc::new(Disk::new([folder.path()]))));
        for number in 0..3 {
            fs::write(folder.path().join(format!("secret-{number}")), "hunter").unwrap();
        }
        fs::write(folder.path().join("shared.yaml"), shared(&mut dice)).unwrap();
        let mut snapshot = with_theirs(&mut dice, Snapshot::default());
        let (mut last, mut is_broken) = (None, false);
        let mut good: Option<Vec<(PathBuf, String)>> = None;
        for _ in 0..100 {
            // Someone puts the last good files back before long.
            if let (true, Some(good)) = (is_broken && dice.roll(3) > 0, &good) {
                put(folder.path(), good);
            }
            let path = folder.path().join(format!("{}.yaml", dice.roll(7)));
            match dice.roll(32) {
                16.. => {
                    let name =
                        if dice.roll(4) == 0 { "shared.yaml".to_owned() } else { format!("{}.yaml", dice.roll(7)) };
                    let path = folder.path().join(name);
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    fs::write(&path, edited(&text, &mut dice)).unwrap();
                }
                13..=15 => snapshot = meddled(&mut dice, snapshot),
                10..=12 => snapshot = with_theirs(&mut dice, snapshot),
                0 | 1 => {
                    let value = folder.path().join(format!("secret-{}", dice.roll(3)));
                    match dice.roll(8) {
                        0 => drop(fs::remove_file(value)),
                        _ => fs::write(value, format!("hunter{}", dice.roll(3))).unwrap(),
                    }
                }
                2 => drop(fs::remove_file(&path)),
                4 => fs::write(folder.path().join("shared.yaml"), shared(&mut dice)).unwrap(),
                3 => drop(fs::rename(&path, folder.path().join(format!("{}.yaml", dice.roll(7))))),
                _ => {
                    let number = dice.roll(7);
                    fs::write(&path, file(&mut dice, number)).unwrap();
                }
            }
            let isolate = seed % 2 == 1;
            recorder.begin_sync();
            if looks.roll(2) == 0 {
                recorder.unchanged();
            }
            let tree = Arc::clone(&recorder) as Arc<dyn Tree>;
            let again = Prepared::load_again(Options { tree, ..options(folder.path(), isolate) }, last.take());
            kept += u32::from(again.keeps_all_names(&snapshot));
            let (planned, judged, known) = plan_again(&again, &snapshot);
            partly += u32::from(judged > 0 && known > 0);
            let scratch = Prepared::load(options(folder.path(), isolate)).plan(&snapshot);
            assert_eq!(shown(&planned), shown(&scratch), "seed {seed}");
            all_said += &said(&planned);
            last = Some(again);
            let settles = planned.settles();
            let (before, desired) = (said(&planned), planned.desired.len());
            let Some(plan) = planned.plan.filter(|plan| plan.refusals.is_empty()) else {
                invalid += 1;
                is_broken = true;
                continue;
            };
            let operations: Vec<Operation> = plan.operations();
            if !operations.is_empty() {
                snapshot = snapshot.apply(&operations, clock::now()).unwrap().0;
                applied += 1;
            }
            is_broken = !settles;
            if settles {
                good = Some(files(folder.path()));
                let next = Prepared::load(options(folder.path(), isolate)).plan(&snapshot);
                let rest = next.plan.as_ref().map(|plan| (plan.is_empty(), plan.unchanged));
                // What a plan closes is told with this plan alone.
                let is_lasting = |line: &&str| !line.contains("get no more ports");
                let before: String = before.split_inclusive('\n').filter(is_lasting).collect();
                assert_eq!((rest, said(&next)), (Some((true, desired)), before), "seed {seed}");
                settled += 1;
            }
        }
    }
    // All kinds of runs were tried, and all ways in which edges concern each other.
    for relation in [
        "another edge already serves",
        "of source `theirs` already serves",
        "of source `theirs` already matches",
        "of another edge",
        "but another edge does",
        "opens this backend without",
    ] {
        assert!(all_said.contains(relation), "nothing was said of `{relation}`");
    }
    let counts = format!(
        "{invalid} invalid, {applied} applied, {settled} settled, {kept} kept all names, {partly} judged in part"
    );
    assert!(invalid > 10 && applied > 20 && settled > 20 && kept > 40 && partly > 5, "{counts}");
}

#[test]
fn what_has_not_changed_is_not_made_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/storefront");
    let snapshot = Snapshot::default();
    let first = Prepared::load_again(options(&folder, false), None);
    let before = first.plan(&snapshot).desired;
    let next = Prepared::load_again(options(&folder, false), Some(first));
    let (planned, judged, known) = plan_again(&next, &snapshot);
    assert!(judged == 0 && known > 1, "{judged} parts were judged, and {known} were known");
    let again = planned.desired;
    let made_again = again.values().filter(|it| !Arc::ptr_eq(&it.spec, &before[&it.key].spec));
    assert_eq!(made_again.map(|it| it.key.to_string()).collect::<Vec<_>>(), Vec::<String>::new());
    assert!(again.values().any(|it| it.key.kind == Kind::HttpsEdgeRoute && it.spec.modules().count() > 1));
}

#[test]
fn a_secret_that_was_moved_to_a_file_is_no_longer_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = shared(&mut Dice(2)).replace("{from_file: secret-0}", "hunter2");
    fs::write(folder.path().join("a.yaml"), &text).unwrap();
    fs::write(folder.path().join("secret"), "hunter2").unwrap();
    let mut source = Followed::new(options(folder.path(), false));
    assert!(said(&source.sync("in the manifest")).contains("secret-in-manifest"));
    fs::write(folder.path().join("a.yaml"), text.replace("hunter2", "{from_file: secret}")).unwrap();
    let next = Prepared::load_again(options(folder.path(), false), source.last.take());
    assert!(next.keeps_all_names(&source.snapshot));
    assert!(!said(&next.plan(&source.snapshot)).contains("secret-in-manifest"));
}

#[test]
fn hosts_of_others_that_a_plan_closes_are_told_until_it_is_applied() {
    let (theirs, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let edge = |name: &str, fields: &str| {
        format!("apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {{{fields}}}\n")
    };
    let docs = "hostports: ['docs.example.com:443'], delegates_to: [{source: default, path_prefix: /}]";
    fs::write(theirs.path().join("a.yaml"), edge("docs", docs)).unwrap();
    let mut others = Followed::new(Options { source: "theirs".into(), ..options(theirs.path(), false) });
    others.sync("theirs");
    let mut source = Followed { snapshot: others.snapshot, ..Followed::new(options(folder.path(), false)) };
    let said_of = |source: &mut Followed, name: &str, description: &str| {
        let fields = format!("hostports: ['*.example.com:443'], description: {description}");
        fs::write(folder.path().join("a.yaml"), edge(name, &fields)).unwrap();
        said(&source.plan())
    };
    let are_told = |source: &mut Followed, name: &str| {
        for description in ["one", "two"] {
            let found = said_of(source, name, description);
            assert!(found.contains("adds hosts of other edges, or a wildcard above them"), "{name}: {found}");
        }
        source.sync("applied");
        assert!(!said_of(source, name, "three").contains("wildcard"));
    };
    are_told(&mut source, "all");
    // An edge that is adopted closes hosts, too.
    let key = source.snapshot.iter().find(|entry| entry.is_owned_by("default")).unwrap().key.clone();
    let adopted = format!("all, id: {}", key.id);
    let (released, _) = source.snapshot.apply(&[Operation::Claim { key, claim: None }], clock::now()).unwrap();
    source.snapshot = released;
    are_told(&mut source, &adopted);
}

#[test]
fn a_change_of_what_an_edge_requires_reaches_its_routes() {
    let folder = tempfile::tempdir().unwrap();
    let text = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: base}\nspec: {request_headers: {add: {X-A: '0'}}}\n---\n\
                apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  hostports: ['shop.example.com:443']\n  \
                required_modules: [base]\n  routes: [{name: r, match_type: path_prefix, match: /, backend: {backend_id: bkd_1}}]\n";
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let mut source = Followed::new(options(folder.path(), false));
    let planned = source.sync("0");
    assert_eq!(planned.plan.as_ref().map(|plan| plan.operations().len()), Some(2), "{}", said(&planned));
    fs::write(folder.path().join("a.yaml"), text.replace("X-A: '0'", "X-A: '1'")).unwrap();
    let changes = source.sync("1").plan.map(|plan| plan.changes).unwrap_or_default();
    let kinds: Vec<Kind> = changes.iter().map(|change| change.key.kind).collect();
    assert_eq!(kinds, [Kind::HttpsEdge, Kind::HttpsEdgeRoute]);
}

#[test]
fn a_certificate_of_another_source_that_is_no_longer_presented_is_told() {
    let (theirs, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data");
    for name in ["wildcard.pem", "wildcard.key.pem"] {
        fs::copy(data.join(name), theirs.path().join(name)).unwrap();
    }
    let certificate = "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {name: all}\n\
                       spec: {certificate_pem: {from_file: wildcard.pem}, private_key_pem: {from_file: wildcard.key.pem}}\n";
    fs::write(theirs.path().join("a.yaml"), certificate).unwrap();
    let of_theirs = Options { source: "theirs".into(), ..options(theirs.path(), false) };
    let planned = Prepared::load(of_theirs).plan(&Snapshot::default());
    let operations = planned.plan.as_ref().map(|plan| plan.operations()).unwrap_or_default();
    let snapshot = Snapshot::default().apply(&operations, clock::now()).unwrap().0;
    let edge = |fields: &str| {
        format!("apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec: {{{fields}}}\n")
    };
    let other_host = "hostports: ['shop.example.org:443']";
    for (before, after) in [
        ("hostports: ['shop.example.com:443'], certificates_from: [theirs]", "hostports: ['shop.example.com:443']"),
        (other_host, "hostports: ['shop.example.com:443']"),
    ] {
        let mut source = Followed { snapshot: snapshot.clone(), ..Followed::new(options(folder.path(), false)) };
        let mut said_of = |fields: &str| {
            fs::write(folder.path().join("a.yaml"), edge(fields)).unwrap();
            said(&source.plan())
        };
        assert!(!said_of(before).contains("no certificate"), "{before}");
        let found = said_of(after);
        assert!(found.contains("no certificate of this source covers"), "{before}: {found}");
    }
}
