//! Measures whole runs of the program on a generated corpus, next to reference points of the same run, and prints a
//! table with ratios and targets. See `docs/explanation/performance.md`.
//!
//! `cargo bench --bench estate` runs it; compare figures of one run on one machine only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod corpus;
mod dashboard;
mod estate;
mod fixed;
mod http;
mod load;
mod measures;
mod options;
mod pem;
mod plain;
mod process;
mod reference;
mod render;
mod replicas;
mod requests;
mod routing;
mod table;

use std::{fs, path::Path, thread};

use clap::Parser as _;
use serde_json::json;

use crate::{corpus::Corpus, measures::Run, options::Options, table::time};

fn main() {
    let options = Options::parse();
    // `cargo test --benches` runs this program without any argument.
    let options = if options.small || std::env::args().len() == 1 { options.reduced() } else { options };
    if let Some(file) = &options.fixed {
        return fixed::serve(file);
    }
    if let Some(folder) = &options.corpus {
        assert_new(folder);
        let corpus = Corpus::write(folder, options.shape());
        println!("{} routes in {} files, {:.1} MB", corpus.routes, corpus.files.len(), corpus.bytes as f64 / 1e6);
        return;
    }
    match options.keep.clone() {
        Some(folder) => {
            assert_new(&folder);
            fs::create_dir_all(&folder).unwrap();
            measure(options, &folder.canonicalize().unwrap());
        }
        None => measure(options, tempfile::tempdir().unwrap().path()),
    }
}

fn assert_new(folder: &Path) {
    assert!(!folder.exists(), "{} already exists", folder.display());
}

fn measure(options: Options, scratch: &Path) {
    let run = Run::new(options, scratch);
    let Run { options, estate } = &run;
    let cores = thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{} routes in {} files ({:.1} MB, seed {}); {cores} cores{}\nread + blake3 on two threads: {}; typed parse with \
         serde_yaml on all threads: {}\n",
        estate.corpus.routes,
        estate.corpus.files.len(),
        estate.corpus.bytes as f64 / 1e6,
        options.seed,
        processor().map_or_else(String::new, |name| format!(", {name}")),
        time(estate.read),
        time(estate.parse),
    );
    let mut rows = Vec::new();
    for (name, measure) in options.measures() {
        eprintln!("measuring {name} …");
        rows.extend(measure(&run));
    }
    println!("{}", table::markdown(&rows));
    if options.small {
        println!("Every measurement works. A small run judges no time.");
    }
    if let Some(file) = &options.json {
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "time": jiff::Timestamp::now().to_string(),
            "processor": processor(),
            "cores": cores,
            "routes": estate.corpus.routes,
            "files": estate.corpus.files.len(),
            "bytes": estate.corpus.bytes,
            "seed": options.seed,
            "rounds": options.rounds,
            "small": options.small,
            "read_seconds": estate.read,
            "parse_seconds": estate.parse,
            "rows": rows.iter().map(table::json).collect::<Vec<_>>(),
        });
        fs::write(file, format!("{document:#}\n")).unwrap();
    }
}

/// Returns the name of the processor, where the system tells it.
fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
}
