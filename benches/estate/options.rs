//! The options of a measurement.

use std::{path::PathBuf, time::Duration};

use crate::{
    corpus::{FEWEST, GROUP, Shape},
    dashboard,
    measures::{self, Run},
    replicas, requests, routing,
    table::Row,
};

/// A measurement, which makes one or several lines of the table.
pub(crate) type Measure = fn(&Run) -> Vec<Row>;

/// All measurements by name, in the order of the table.
pub(crate) static MEASURES: [(&str, Measure); 12] = [
    ("dry-run", measures::dry_run),
    ("no-cache", measures::no_cache),
    ("validate", measures::validate),
    ("routing", routing::routing),
    ("first-apply", measures::first_apply),
    ("serve-manifests", measures::serve_manifests),
    ("saved", measures::saved),
    ("serve", measures::serve),
    ("get", requests::get),
    ("list", requests::list),
    ("patch", requests::patch),
    ("dashboard", dashboard::dashboard),
];
/// The measurements that are made only on request: one takes ten times as long as all others, one needs a database.
static ON_REQUEST: [(&str, Measure); 2] = [("tenfold", measures::tenfold), ("replicas", replicas::replicas)];

/// Measure whole runs of the program against reference points of the same run.
#[derive(Debug, Clone, clap::Parser)]
pub(crate) struct Options {
    /// Number of routes: a multiple of 100, at least 1000.
    #[arg(long, default_value_t = 100_000, value_parser = routes)]
    pub routes: usize,
    /// Seed of the corpus.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of measurements of each figure; the median counts.
    #[arg(long, default_value_t = 5, value_parser = rounds)]
    pub rounds: usize,
    /// Check in a few seconds that every measurement works; judges no time.
    #[arg(long)]
    pub small: bool,
    /// Measure these lines only; `tenfold` compares with ten times the routes, `replicas` needs `--database`.
    #[arg(long, num_args = 1.., value_name = "ROW", value_parser = names())]
    pub only: Vec<String>,
    /// The address of an empty database of PostgreSQL, for `--only replicas`.
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// Write the table to a JSON file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Work in this folder, which must be new, and keep it.
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// Write the corpus to a new folder and measure nothing.
    #[arg(long, value_name = "FOLDER")]
    pub corpus: Option<PathBuf>,
    /// Serve the bytes of a file.
    #[arg(long = "static", hide = true, value_name = "FILE")]
    pub fixed: Option<PathBuf>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    #[allow(dead_code)]
    pub bench: bool,
}

fn routes(text: &str) -> Result<usize, String> {
    let routes: usize = text.parse().map_err(|_| "not a number".to_owned())?;
    let fits = routes >= FEWEST && routes.is_multiple_of(GROUP);
    fits.then_some(routes).ok_or_else(|| format!("must be a multiple of {GROUP}, at least {FEWEST}"))
}

fn rounds(text: &str) -> Result<usize, String> {
    let rounds: usize = text.parse().map_err(|_| "not a number".to_owned())?;
    (rounds > 0).then_some(rounds).ok_or_else(|| "must be at least 1".into())
}

fn names() -> clap::builder::PossibleValuesParser {
    let names = MEASURES.iter().chain(&ON_REQUEST).map(|(name, _)| *name);
    clap::builder::PossibleValuesParser::new(names.collect::<Vec<_>>())
}

impl Options {
    /// Replaces the size and the rounds by small ones.
    pub(crate) fn reduced(self) -> Self {
        Self { routes: FEWEST, rounds: 1, small: true, ..self }
    }

    /// The parameters of the corpus.
    pub(crate) fn shape(&self) -> Shape {
        Shape { routes: self.routes, seed: self.seed, prefix: "e", certificates: true }
    }

    /// How long a load lasts.
    pub(crate) fn load_time(&self) -> Duration {
        if self.small { Duration::from_millis(300) } else { Duration::from_secs(3) }
    }

    /// The measurements to make.
    pub(crate) fn measures(&self) -> Vec<(&'static str, Measure)> {
        let is_asked_for = |name: &str| self.only.iter().any(|only| only == name);
        let mut found: Vec<(&'static str, Measure)> = MEASURES.to_vec();
        found.extend(ON_REQUEST.iter().filter(|(name, _)| is_asked_for(name)));
        found.retain(|(name, _)| self.only.is_empty() || is_asked_for(name));
        found
    }
}
