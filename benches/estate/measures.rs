//! The measurements of the command line: one function for each line, or pair of lines, of the table.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    corpus::{FEWEST, GROUP, Shape},
    estate::{Estate, UNCACHED},
    http::Client,
    options::Options,
    process::{Finished, Server},
    requests::GetLoad,
    table::{Row, median, memory, time},
};

/// How long a followed folder must be quiet before a run (`QUIET` in `src/reconcile/sync_loop/mod.rs`).
const DEBOUNCE: f64 = 0.150;
/// The pause between two changes of a followed folder.
const PAUSE: Duration = Duration::from_millis(400);
/// The fewest changes of a followed folder: each is short.
const FEWEST_CHANGES: usize = 5;
/// The longest wait until a change can be read.
const PATIENCE: Duration = Duration::from_secs(300);
const NOTHING: &str = "No changes: ";
const ONE_CHANGE: &str = "0 to create, 1 to change, 0 to replace, 0 to delete";

/// What all measurements share.
pub(crate) struct Run {
    /// The options of the command line.
    pub options: Options,
    /// The estate of the size that was asked for.
    pub estate: Estate,
}

impl Run {
    /// Writes the corpus and applies it.
    pub(crate) fn new(options: Options, scratch: &Path) -> Self {
        let estate = Estate::new(&scratch.join("estate"), options.shape(), options.rounds);
        Self { options, estate }
    }

    /// Whether a target is met. A small run judges none.
    pub(crate) fn judge(&self, met: bool) -> Option<bool> {
        (!self.options.small).then_some(met)
    }

    /// A row with a time that is judged as a multiple of that of a reference point.
    pub(crate) fn multiple(
        &self,
        title: impl Into<String>,
        ours: f64,
        (reference, theirs): (&str, f64),
        most: u32,
        figures: Value,
    ) -> Row {
        Row {
            title: title.into(),
            now: time(ours),
            ratio: format!("{:.2} × {reference} ({})", ours / theirs, time(theirs)),
            target: format!("≤ {most} × {reference}"),
            met: self.judge(ours <= f64::from(most) * theirs),
            figures,
        }
    }

    pub(crate) fn rounds(&self) -> std::ops::Range<usize> {
        0..self.options.rounds
    }

    /// An estate of another size.
    fn sized(&self, name: &str, routes: usize) -> Estate {
        let folder = self.estate.scratch().with_file_name(name);
        Estate::new(&folder, Shape { routes, ..self.options.shape() }, self.options.rounds)
    }

    /// A line for a time whose target is a multiple of the time to parse.
    fn against_parse(&self, title: String, runs: &Runs, target: f64) -> Row {
        let ratio = runs.wall / self.estate.parse;
        Row {
            title,
            now: runs.told(),
            ratio: format!("{ratio:.2} × parse"),
            target: format!("≤ {target} × parse"),
            met: self.judge(ratio <= target),
            figures: runs.figures(),
        }
    }

    fn memory(&self, title: &str, peak: Option<u64>, most: u64) -> Row {
        Row {
            title: title.into(),
            now: memory(peak),
            ratio: String::new(),
            target: format!("≤ {} MB", most / 1_000_000),
            met: peak.and_then(|peak| self.judge(peak <= most)),
            figures: json!({"peak_bytes": peak}),
        }
    }
}

/// Several runs of one command.
struct Runs {
    wall: f64,
    user: Option<f64>,
    peak: Option<u64>,
}

impl Runs {
    fn from_finished(runs: impl Iterator<Item = Finished>) -> Self {
        let runs: Vec<Finished> = runs.collect();
        let user: Option<Vec<f64>> = runs.iter().map(|run| run.user).collect();
        Self {
            wall: median(runs.iter().map(|run| run.wall).collect()),
            user: user.map(median),
            peak: runs.iter().filter_map(|run| run.peak).max(),
        }
    }

    fn told(&self) -> String {
        match self.user {
            Some(user) => format!("{} ({} user)", time(self.wall), time(user)),
            None => time(self.wall),
        }
    }

    fn figures(&self) -> serde_json::Value {
        json!({"seconds": self.wall, "user_seconds": self.user, "peak_bytes": self.peak})
    }
}

/// A dry run when nothing has changed, and its memory.
pub(crate) fn dry_run(run: &Run) -> Vec<Row> {
    // The first run is remembered.
    run.estate.plan(&[], NOTHING);
    let runs = Runs::from_finished(run.rounds().map(|_| run.estate.plan(&[], NOTHING)));
    let target = (4.0 * run.estate.read).max(0.06);
    let first = Row {
        title: "dry run, nothing changed, whole process".into(),
        now: runs.told(),
        ratio: format!("{:.2} × parse, {:.1} × read", runs.wall / run.estate.parse, runs.wall / run.estate.read),
        target: format!("≤ {} (4 × read, at least 60 ms)", time(target)),
        met: run.judge(runs.wall <= target),
        figures: runs.figures(),
    };
    vec![first, run.memory("its memory", runs.peak, 200_000_000)]
}

/// A dry run that no earlier run answers.
pub(crate) fn no_cache(run: &Run) -> Vec<Row> {
    let runs = Runs::from_finished(run.rounds().map(|_| run.estate.plan(&UNCACHED, NOTHING)));
    vec![run.against_parse("dry run, not remembered".into(), &runs, 1.5)]
}

/// The validation of all manifests.
pub(crate) fn validate(run: &Run) -> Vec<Row> {
    run.estate.assert_clean();
    let runs = Runs::from_finished(run.rounds().map(|_| run.estate.validate()));
    vec![run.against_parse("`validate` with every lint".into(), &runs, 1.1)]
}

fn first_applies(run: &Run, estate: &Estate) -> Runs {
    Runs::from_finished(run.rounds().map(|_| {
        let applied = estate.apply("first");
        estate.remove("first");
        applied
    }))
}

/// The first apply to a new store, and its growth with the size of the estate.
pub(crate) fn first_apply(run: &Run) -> Vec<Row> {
    let routes = run.estate.corpus.routes;
    let runs = first_applies(run, &run.estate);
    let mut row = run.against_parse("first apply, durable, the plan written out".into(), &runs, 2.2);
    row.now += &format!(", {}", memory(runs.peak));

    let fewer = (routes / 10 / GROUP * GROUP).max(FEWEST);
    let tenth = run.sized("tenth", fewer);
    let small = first_applies(run, &tenth);
    let (growth, size) = (runs.wall / small.wall, routes as f64 / fewer as f64);
    let growth = Row {
        title: format!("first apply, {routes} routes against {fewer}"),
        now: format!("{} against {}", time(runs.wall), time(small.wall)),
        ratio: format!("{growth:.1} × for {size:.0} ×"),
        target: format!("≤ {:.0} ×", 1.1 * size),
        met: run.judge(growth <= 1.1 * size),
        figures: json!({"growth": growth, "size": size, "small_seconds": small.wall}),
    };
    vec![row, growth]
}

/// The start of a server on an existing store.
fn start(run: &Run, title: &str, with_manifests: bool, targets: (f64, u64)) -> Vec<Row> {
    let starts: Vec<(f64, Option<u64>)> = run
        .rounds()
        .map(|_| {
            let server = run.estate.serve("state", with_manifests);
            let found = (server.ready, server.peak);
            server.stop();
            found
        })
        .collect();
    let ready = median(starts.iter().map(|(ready, _)| *ready).collect());
    let peak = starts.iter().filter_map(|(_, peak)| *peak).max();
    let runs = Runs { wall: ready, user: None, peak };
    vec![run.against_parse(title.to_owned(), &runs, targets.0), run.memory("its memory", peak, targets.1)]
}

/// The start of a server that follows the manifests.
pub(crate) fn serve_manifests(run: &Run) -> Vec<Row> {
    // The first run is remembered.
    run.estate.plan(&[], NOTHING);
    start(run, "`serve --manifests`: start to ready on an existing store", true, (0.6, 450_000_000))
}

/// The start of a server without manifests.
pub(crate) fn serve(run: &Run) -> Vec<Row> {
    start(run, "`serve` without manifests: start to ready", false, (0.3, 250_000_000))
}

/// A server that follows the manifests of an estate.
struct Followed<'e> {
    estate: &'e Estate,
    server: Server,
    client: Client,
    /// The path of the route that changes.
    path: String,
}

impl<'e> Followed<'e> {
    fn start(estate: &'e Estate) -> Self {
        estate.corpus.change();
        let plan = estate.plan(&[], ONE_CHANGE).output();
        let call = plan.lines().find_map(|line| line.trim_start().strip_prefix("PATCH "));
        let path = call.expect("the call of the change").to_owned();
        estate.corpus.restore();
        estate.copy("followed");
        let server = estate.serve("followed", true);
        let client = estate.client(&server);
        Self { estate, server, client, path }
    }

    /// Returns the time from the save of a file until the change can be read over REST, in seconds.
    fn saved_to_readable(&mut self) -> f64 {
        thread::sleep(PAUSE);
        let began = Instant::now();
        let expected = self.estate.corpus.change();
        while !String::from_utf8_lossy(&self.client.get(&self.path)).contains(&expected) {
            assert!(began.elapsed() < PATIENCE, "the change is not applied");
            thread::sleep(Duration::from_micros(200));
        }
        began.elapsed().as_secs_f64()
    }

    fn stop(self) {
        let Self { estate, server, client, path: _ } = self;
        drop(client);
        server.stop();
        estate.corpus.restore();
        estate.remove("followed");
    }
}

/// The number of changes of a followed folder.
fn changes(rounds: usize) -> std::ops::Range<usize> {
    0..rounds.max(FEWEST_CHANGES)
}

/// Returns the median time from the save of a file until the change can be read over REST, in seconds.
fn saved_to_readable(estate: &Estate, rounds: usize) -> f64 {
    let mut followed = Followed::start(estate);
    let times = changes(rounds).map(|_| followed.saved_to_readable()).collect();
    followed.stop();
    median(times)
}

/// A saved file of a followed folder.
pub(crate) fn saved(run: &Run) -> Vec<Row> {
    let few = run.sized("few", FEWEST);
    let fewest = saved_to_readable(&few, run.options.rounds);
    let whole = saved_to_readable(&run.estate, run.options.rounds);
    let past = whole - DEBOUNCE;
    vec![Row {
        title: "one file saved → readable over REST".into(),
        now: format!("{}, {} past the debounce", time(whole), time(past.max(0.0))),
        ratio: format!("{} with {FEWEST} routes", time(fewest)),
        target: "≤ 60 ms past the debounce, ≤ 250 ms with it".into(),
        met: run.judge(past <= 0.060 && whole <= 0.250),
        figures: json!({"seconds": whole, "past_debounce_seconds": past, "seconds_with_few_routes": fewest}),
    }]
}

/// Returns the median of the ratios between two figures that are measured in each round.
fn growth(rounds: std::ops::Range<usize>, mut measure: impl FnMut() -> [f64; 2]) -> f64 {
    let ratio = |_| {
        let [large, small] = measure();
        large / small
    };
    median(rounds.map(ratio).collect())
}

/// What grows with ten times the routes: a dry run and a saved file read all files, and the latter waits for the debounce, too. A
/// GET reads none.
pub(crate) fn tenfold(run: &Run) -> Vec<Row> {
    let large = run.sized("tenfold", 10 * run.estate.corpus.routes);
    // One right after the other in each round: the machine's speed changes less meanwhile.
    let sizes = [&large, &run.estate];
    for estate in sizes {
        estate.plan(&[], NOTHING);
    }
    let dry = growth(run.rounds(), || sizes.map(|estate| estate.plan(&[], NOTHING).wall));
    let mut followed = sizes.map(Followed::start);
    let saved = growth(changes(run.options.rounds), || followed.each_mut().map(Followed::saved_to_readable));
    followed.into_iter().for_each(Followed::stop);
    let servers = sizes.map(|estate| GetLoad::start(estate, run));
    let get = 1.0 / growth(run.rounds(), || servers.each_ref().map(GetLoad::rate));
    servers.into_iter().for_each(GetLoad::stop);
    vec![Row {
        title: format!("{} routes against {}", large.corpus.routes, run.estate.corpus.routes),
        now: format!("no-op dry run {dry:.1} ×, one file saved {saved:.2} ×, time of a GET {get:.2} ×"),
        ratio: String::new(),
        target: "≤ 11 × for the dry run, 2 × for the saved file, 1.25 × for the GET".into(),
        met: run.judge(dry <= 11.0 && saved <= 2.0 && get <= 1.25),
        figures: json!({"dry_run": dry, "saved": saved, "get": get}),
    }]
}
