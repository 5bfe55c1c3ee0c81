//! What `edgewright replay` takes for a log of nginx and an estate of 100,000 routes, and how its memory grows with the log.
//!
//! `cargo bench --bench replay` runs it; `EDGEWRIGHT_REPLAY_LINES` is the number of lines (default: 5,000,000). The goal is at least
//! 500,000 lines a second on two cores (`taskset -c 0,1`), and the same memory for every log.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

const EDGES: usize = 1000;
const ROUTES: usize = 100;
/// Of 100 edges, one has a route less after the change.
const CHANGED: usize = 100;

/// Writes the manifests of the estate into a folder.
fn write_estate(folder: &Path, is_changed: bool) {
    fs::create_dir_all(folder).unwrap();
    for edge in 0..EDGES {
        let mut text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: e{edge}}}\nspec:\n  hostports: ['e{edge}.example.com:443']\n  routes:\n"
        );
        let first = usize::from(is_changed && edge % CHANGED == 0);
        for route in first..ROUTES {
            writeln!(
                text,
                "    - {{name: r{route}, match_type: path_prefix, match: /p{route}/, backend: {{backend_id: bkd_{route}}}}}"
            )
            .unwrap();
        }
        fs::write(folder.join(format!("{edge:04}.yaml")), text).unwrap();
    }
}

/// Writes a log in the combined format after the host: paths, agents and clients repeat, as in a real one.
fn write_log(path: &Path, lines: u64) {
    let mut log = BufWriter::new(fs::File::create(path).unwrap());
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..lines {
        let (edge, route, item) = (next(EDGES as u64), next(ROUTES as u64), next(2000));
        let (high, low, agent) = (next(250), next(250), next(40));
        writeln!(
            log,
            "e{edge}.example.com 10.7.{high}.{low} - - [10/Oct/2026:13:55:36 +0000] \"GET /p{route}/items/{item}?ref=home&page=2 HTTP/1.1\" 200 18234 \"https://e{edge}.example.com/\" \"Mozilla/5.0 (X11; Linux x86_64; rv:{agent}.0) Gecko/20100101 Firefox/{agent}.0\""
        )
        .unwrap();
    }
    log.flush().unwrap();
}

fn program(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgewright"));
    command.current_dir(folder).args(line.split(' ')).env("EDGEWRIGHT_CONFIG", "/dev/null").stdout(Stdio::null());
    command
}

/// Runs the program, and returns its time and its largest memory in MiB.
fn measured(folder: &Path, line: &str) -> (f64, u64) {
    let began = Instant::now();
    let mut child = program(folder, line).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut largest = 0;
    let code = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let resident = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = resident.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        largest = largest.max(kib.unwrap_or_default());
        if let Some(code) = child.try_wait().unwrap() {
            break code;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert!(code.success(), "{line}");
    (began.elapsed().as_secs_f64(), largest >> 10)
}

fn main() {
    let lines = env::var("EDGEWRIGHT_REPLAY_LINES").ok().and_then(|lines| lines.parse().ok()).unwrap_or(5_000_000_u64);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write_estate(&root.join("now"), false);
    write_estate(&root.join("next"), true);
    assert!(program(root, "reconcile now").status().unwrap().success());
    write_log(&root.join("short.log"), lines / 10);
    write_log(&root.join("long.log"), lines);
    let options = "--against next --max-deletes 100";
    // What a run takes without a log: to open the store, and to plan the change.
    write_log(&root.join("one.log"), 1);
    let (start, _) = measured(root, &format!("replay one.log {options}"));
    let (_, small) = measured(root, &format!("replay short.log {options}"));
    let (all, large) = measured(root, &format!("replay long.log {options}"));
    let rate = lines as f64 / (all - start).max(0.001);
    println!("{lines} lines in {all:.2} s, of which {start:.2} s before the first one: {rate:.0} lines a second");
    println!("memory: {small} MiB for a tenth of the lines, {large} MiB for all");
}
