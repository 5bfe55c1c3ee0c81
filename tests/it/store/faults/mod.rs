//! Faults: a server under load is killed at a random moment or at a fail point of its store, or its disk fails, is full or
//! read-only, or its clock jumps. After each, a checker that knows what was acknowledged looks at what is on the disk.
//!
//! `EDGEWRIGHT_FAULTS` and `EDGEWRIGHT_POWER_LOSSES` set the number of rounds, and `EDGEWRIGHT_FAULTS_SEED` repeats a run:
//! the seed decides the faults and what the clients write; how far they get depends on the time, too.

mod check;
mod load;
mod replicas;

use std::{collections::BTreeMap, fs, time::Duration};

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::support::{
    disk::Disk,
    program::{Folder, Serve, number_in, rounds},
};
use check::check;
use load::Load;

/// After so many rounds, a new store is used.
const ROUNDS_OF_A_STORE: usize = 15;
/// The fail points of the store, in src/files and src/store. Logs of a few bytes make checkpoints frequent.
const POINTS: [&str; 19] = [
    "lock.clear",
    "lock.note",
    "file.create",
    "file.write",
    "file.sync",
    "file.rename",
    "file.remove",
    "folder.create",
    "folder.sync",
    "head.sync",
    "head.write",
    "index.read",
    "index.write",
    "log.cut",
    "log.sync",
    "log.write",
    "state.create",
    "state.sync",
    "state.write",
];
/// What can happen at them.
const ACTIONS: [&str; 8] = ["kill", "torn", "kill", "short", "full", "readonly", "io", "descriptors"];

/// What happens in a round.
#[derive(Debug)]
struct Fault {
    /// The value of `FAILPOINTS`.
    points: String,
    /// The fail point, or what happens without one.
    name: &'static str,
    /// How long the clients write.
    time: Duration,
    /// Whether the server is asked to stop at the end, and not killed.
    is_stopped: bool,
}

impl Fault {
    fn random(random: &mut StdRng) -> Self {
        let (name, set) = match random.random_range(0..10) {
            0..2 => ("kill -9", String::new()),
            2 => ("clock", format!("clock=50*off->return({})", random.random_range(-400_000..400_000))),
            _ => {
                let (point, action) = (*POINTS.choose(random).unwrap(), *ACTIONS.choose(random).unwrap());
                // The first hits are of the start, the others of the load. Some faults pass, others stay.
                let most = *[2, 10, 60].choose(random).unwrap();
                let before = random.random_range(0..most);
                let times = if random.random_bool(0.5) { "3*" } else { "" };
                (point, format!("{point}={before}*off->{times}return({action})"))
            }
        };
        let bytes = if random.random_bool(0.7) { "checkpoint.bytes=return(6000)" } else { "" };
        let points = [set.as_str(), bytes].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(";");
        let time = Duration::from_millis(random.random_range(20..300));
        Self { points, name, time, is_stopped: random.random_bool(0.2) }
    }
}

/// How the server is started.
const OPTIONS: &str = "--store store --manifests edges --max-deletes 100%";

/// The server on a folder that has a source.
fn serve(folder: &Folder, points: &str) -> Option<Serve> {
    serve_from(folder, "store", points)
}

fn serve_from(folder: &Folder, store: &str, points: &str) -> Option<Serve> {
    let options = OPTIONS.replace("--store store", &format!("--store {store}"));
    folder.try_serve(&options, &[("FAILPOINTS", points)]).ok()
}

/// A store that nothing has happened to.
fn new_folder(load: &mut Load) -> Folder {
    let folder = Folder::new();
    load.declare(&folder);
    let serve = serve(&folder, "").unwrap();
    load.create(&serve);
    folder
}

#[test]
fn nothing_that_was_acknowledged_is_lost_and_nothing_is_half_applied() {
    let rounds = number_in("EDGEWRIGHT_FAULTS", rounds(6, 120)) as usize;
    let seed = number_in("EDGEWRIGHT_FAULTS_SEED", 1);
    println!("EDGEWRIGHT_FAULTS_SEED={seed}");
    let (mut happened, mut acknowledged, mut starts) = (BTreeMap::<&str, usize>::new(), 0, 0);
    let mut random = StdRng::seed_from_u64(seed);
    let mut load = Load::default();
    let mut folder = new_folder(&mut load);
    for round in 0..rounds {
        if round > 0 && round % ROUNDS_OF_A_STORE == 0 {
            load = Load::default();
            folder = new_folder(&mut load);
        }
        let fault = Fault::random(&mut random);
        match serve(&folder, &fault.points) {
            // The fault was in its start.
            None => starts += 1,
            Some(mut server) => {
                let stop = if fault.is_stopped { "TERM" } else { "KILL" };
                let end = |server: &mut Serve| server.signal_if_running(stop);
                load.run(&mut server, &folder, fault.time, random.random(), end);
                server.ended();
            }
        }
        *happened.entry(fault.name).or_default() += 1;
        acknowledged += load.acknowledge();
        let found = check(&folder.path("store"), &load.written);
        assert!(found.is_ok(), "seed {seed}, round {round}, {fault:?}: {}\n{}", found.unwrap_err(), told(&folder));
    }
    println!("faults: {rounds} rounds ({starts} in a start), {acknowledged} acknowledged writes, 0 lost, seed {seed}");
    println!("{happened:?}");
    assert!(acknowledged > 0 && starts < rounds);
}

#[test]
fn a_loss_of_power_loses_nothing_that_was_acknowledged() {
    let rounds = number_in("EDGEWRIGHT_POWER_LOSSES", rounds(2, 30));
    let seed = number_in("EDGEWRIGHT_FAULTS_SEED", 1);
    let mut random = StdRng::seed_from_u64(seed);
    let (mut load, mut acknowledged) = (Load::default(), 0);
    let mut disk = None;
    let mut folder = Folder::new();
    for round in 0..rounds {
        let is_new = round % ROUNDS_OF_A_STORE as u64 == 0;
        if is_new {
            // The disk is unmounted first.
            drop(disk.take());
            let Some(new) = Disk::new() else { return };
            (disk, load, folder) = (Some(new), Load::default(), Folder::new());
            load.declare(&folder);
        }
        let Some(disk) = &mut disk else { return };
        let store = disk.store().display().to_string();
        let mut server = serve_from(&folder, &store, "checkpoint.bytes=return(6000)").unwrap();
        if is_new {
            load.create(&server);
        }
        let time = Duration::from_millis(random.random_range(0..200));
        // A process that is stopped writes nothing while the disk is copied.
        load.run(&mut server, &folder, time, random.random(), |server| server.signal_if_running("STOP"));
        acknowledged += load.acknowledge();
        let found = disk.look_after_power_loss(|path| check(path, &load.written));
        assert!(found.is_ok(), "seed {seed}, round {round}: {}", found.unwrap_err());
    }
    println!("power losses: {rounds}, {acknowledged} acknowledged writes, 0 lost, seed {seed}");
}

/// The files of a folder, for a message.
fn told(folder: &Folder) -> String {
    let files = fs::read_dir(folder.path("store")).into_iter().flatten().flatten();
    files.map(|it| format!("{:?} {:?}\n", it.file_name(), it.metadata().map(|it| it.len()))).collect()
}

#[test]
fn a_birth_that_fails_leaves_nothing_or_a_store() {
    let actions = [(0, "kill"), (1, "kill"), (0, "io")];
    for (number, point) in POINTS.into_iter().enumerate() {
        // A usual run has one of them at each point, and another one at the next.
        for (before, action) in actions.into_iter().cycle().skip(number % 3).take(rounds(1, 3)) {
            let folder = Folder::new();
            Load::default().declare(&folder);
            let points = format!("{point}={before}*off->1*return({action})");
            drop(serve(&folder, &points));
            let served = folder.try_serve(OPTIONS, &[]);
            let served = served.unwrap_or_else(|run| panic!("after {points}: {}\n{}", told(&folder), run.all()));
            assert_eq!(served.get("/healthz").status, 200, "after {points}");
        }
    }
}

/// Each write, sync, rename and removal in the folder of a store has its fail point, and the harness knows all of them.
#[test]
fn every_operation_of_the_disk_has_a_fail_point() {
    let mut named = std::collections::BTreeSet::new();
    let folders = ["src/files", "src/store"];
    for file in folders.into_iter().flat_map(walkdir::WalkDir::new).map(Result::unwrap) {
        if !file.file_type().is_file() || file.path().ends_with("fault.rs") {
            continue;
        }
        let text = fs::read_to_string(file.path()).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let lines: Vec<&str> = code.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let near = lines[number.saturating_sub(3)..=number].concat();
            let is_left = line.contains("let _ = fs::remove_file");
            let acts = ["sync_all()", "sync_data()", "fs::rename(", "fs::remove_file(", ".set_len(", ".write_all_at("];
            if acts.iter().any(|act| line.contains(act)) && !is_left {
                let names = near.contains("fault::");
                assert!(names, "{}:{}: no fail point: {line}", file.path().display(), number + 1);
            }
        }
        for rest in
            code.split("fault::").skip(1).filter(|rest| rest.starts_with("point(") || rest.starts_with("write_"))
        {
            named.extend(rest.split('"').nth(1).map(str::to_owned));
        }
    }
    assert_eq!(named, POINTS.into_iter().map(str::to_owned).collect());
}
