//! What a run costs, by its steps, for an estate of 1,000 edges with 10 routes each in 100 files.
//!
//! `cargo bench` runs it; compare figures of one run on one machine only.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{fmt::Write, fs, path::Path, sync::Arc, time::Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use edgewright::{
    Disk, LintLevels, Options, Recorder, Snapshot, Store, Tree, apply, load, plan,
    report::RedactedPlan,
    resources::{Author, Id, IpRestriction, Key, Kind, Operation, Traffic, now},
    validate,
};

const FILES: usize = 100;
const EDGES: usize = 10;
const ROUTES: usize = 10;

/// Writes the manifests of the estate into a folder.
fn write_estate(folder: &Path) {
    for file in 0..FILES {
        let mut text = String::new();
        for edge in 0..EDGES {
            let name = format!("e{file}-{edge}");
            writeln!(text, "---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:")
                .unwrap();
            writeln!(text, "  description: Edge {name}\n  hostports: [\"{name}.example.com:443\"]\n  routes:").unwrap();
            for route in 0..ROUTES {
                writeln!(
                    text,
                    "    - name: r{route}\n      match_type: path_prefix\n      match: /p{route}\n      backend: {{backend_id: \
                     bkd_{route}}}\n      compression: {{}}\n      response_headers: {{add: {{X-Frame-Options: DENY}}}}"
                )
                .unwrap();
            }
        }
        fs::write(folder.join(format!("{file:03}.yaml")), text).unwrap();
    }
}

fn steps(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    write_estate(folder.path());
    let tree: Arc<dyn Tree> = Arc::new(Disk::new([folder.path()]));
    let options = Options { tree: Arc::clone(&tree), ..Options::default() };
    let planned = plan(&options, &Snapshot::default());
    let first = planned.plan.as_ref().unwrap();
    let (applied, _) = Snapshot::default().apply(&first.operations(), now()).unwrap();
    let recorder = Recorder::new(Arc::clone(&tree));
    load(&recorder);

    let mut group = criterion.benchmark_group("10,000 routes");
    group.sample_size(10);
    group.bench_function("read the files", |bench| bench.iter(|| tree.manifests()));
    group.bench_function("look whether anything has changed", |bench| bench.iter(|| assert!(recorder.unchanged())));
    group.bench_function("validate", |bench| bench.iter(|| validate(tree.as_ref(), &LintLevels::default())));
    group.bench_function("plan everything", |bench| bench.iter(|| plan(&options, &Snapshot::default())));
    group.bench_function("plan nothing", |bench| bench.iter(|| plan(&options, &applied)));
    group.bench_function("tell the plan", |bench| bench.iter(|| RedactedPlan::from_plan(first)));
    group.bench_function("apply to a new store", |bench| {
        let stores = tempfile::tempdir().unwrap();
        let mut number = 0;
        let new_store = || {
            number += 1;
            Store::open(stores.path().join(number.to_string())).unwrap()
        };
        bench.iter_batched(
            new_store,
            |store| {
                apply(&store, &options, &planned).unwrap();
                store.snapshot()
            },
            BatchSize::PerIteration,
        );
    });
    let stored = tempfile::tempdir().unwrap();
    let path = stored.path().join("store");
    let store = Store::open(&path).unwrap();
    apply(&store, &options, &planned).unwrap();
    drop(store);
    group.bench_function("open the store", |bench| bench.iter(|| Store::open(&path).unwrap()));
    group.bench_function("open the store and plan nothing", |bench| {
        bench.iter(|| plan(&options, &Store::open(&path).unwrap().snapshot()));
    });
    group.finish();
}

/// Durable commits of one small change each, by so many writers at once: those that wait share a sync.
fn commits(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let key = |number: usize| Key::new(Kind::IpRestriction, Id::new(&format!("ipx_{number:027}")));
    let commit = |operations| drop(store.commit(Author::Local, operations).unwrap());
    let spec = Arc::new(IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() });
    let create = |number| Operation::Create { key: key(number), spec: spec.clone(), claim: None, token: None };
    commit((0..64).map(create).collect());
    let describe = |number: usize, round: u64| {
        let spec = IpRestriction { description: format!("round {round}"), ..IpRestriction::default() };
        Operation::Patch { key: key(number), spec: Arc::new(spec), fields: vec!["description".into()] }
    };
    let mut group = criterion.benchmark_group("durable commits");
    group.sample_size(10);
    for writers in [1, 8, 64] {
        group.throughput(Throughput::Elements(writers as u64));
        group.bench_function(format!("{writers} writers"), |bench| {
            bench.iter_custom(|rounds| {
                let began = Instant::now();
                std::thread::scope(|scope| {
                    for writer in 0..writers {
                        let (commit, describe) = (&commit, &describe);
                        scope.spawn(move || (0..rounds).for_each(|round| commit(vec![describe(writer, round)])));
                    }
                });
                began.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, steps, commits);
criterion_main!(benches);
