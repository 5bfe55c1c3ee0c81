//! The measurements of what is said about requests: route tests, invariants, and the behaviour of a change.

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use serde_json::json;

use crate::{
    measures::Run,
    process::Finished,
    table::{Row, median, time},
};

/// The files beside the manifests.
const TESTS: &str = "route-tests.yaml";
const INVARIANTS: &str = "invariants.yaml";
/// The requests of one test.
const REQUESTS: usize = 100;
const MOST_TEST: f64 = 1.3;
const MOST_PROVE: f64 = 2.0;
const MOST_BEHAVIOUR: f64 = 0.1;
const FOLDER: &str = "compared";
/// Three invariants that hold for each route: of TLS, of paths and clients, and of what a change may take away.
const RULES: &str = "\
apiVersion: edgewright/v1
kind: Invariant
metadata: {name: modern-tls}
spec: {description: Every host uses TLS 1.2 or newer, min_tls_version: '1.2'}
---
apiVersion: edgewright/v1
kind: Invariant
metadata: {name: admin-from-offices}
spec: {description: Admin pages are reachable from offices only, scope: {path_prefixes: [/admin]}, only_from: [ipp_offices]}
---
apiVersion: edgewright/v1
kind: Invariant
metadata: {name: tokens-stay-checked}
spec: {description: No request loses the check of its token, keeps: [jwt_validation]}
";

/// Returns the median time of several runs, which say this in their last line.
fn times(run: &Run, command: impl Fn() -> Finished, expected: &str) -> f64 {
    let times = run.rounds().map(|_| {
        let finished = command();
        finished.assert_says(expected);
        finished.wall
    });
    median(times.collect())
}

/// A row with a time that is judged as a multiple of that of `validate`.
fn against_validate(run: &Run, title: String, ours: f64, validate: f64, most: f64) -> Row {
    Row {
        title,
        now: time(ours),
        ratio: format!("{:.2} × validate ({})", ours / validate, time(validate)),
        target: format!("≤ {most} × validate"),
        met: run.judge(ours <= most * validate),
        figures: json!({"seconds": ours, "validate_seconds": validate}),
    }
}

/// Route tests, invariants, and the behaviour of a change of one file.
pub(crate) fn routing(run: &Run) -> Vec<Row> {
    let estate = &run.estate;
    let requests = &estate.corpus.requests;
    let mut tests = String::new();
    for (number, some) in requests.chunks(REQUESTS).enumerate() {
        writeln!(tests, "---\napiVersion: edgewright/v1\nkind: RouteTest\nmetadata: {{name: test-{number}}}").unwrap();
        tests += "spec:\n  requests:\n";
        for request in some {
            let (edge, route) = (&request.edge, &request.route);
            writeln!(tests, "    - {{url: 'https://{}', expect: {{edge: {edge}, route: {route}}}}}", request.url)
                .unwrap();
        }
    }
    fs::write(estate.scratch().join(TESTS), tests).unwrap();
    fs::write(estate.scratch().join(INVARIANTS), RULES).unwrap();

    let validate = median(run.rounds().map(|_| estate.validate().wall).collect());
    let passed = format!("{} passed", requests.len());
    let test = times(run, || estate.run(&["test", "manifests", TESTS], &[]), &passed);
    let prove = times(run, || estate.run(&["prove", "manifests", INVARIANTS], &[]), "");
    vec![
        against_validate(run, format!("`test` of {} requests", requests.len()), test, validate, MOST_TEST),
        against_validate(run, "`prove` of three invariants".into(), prove, validate, MOST_PROVE),
        behaviour(run),
    ]
}

/// What the behaviour of a change of one file costs a server's plan.
fn behaviour(run: &Run) -> Row {
    let estate = &run.estate;
    estate.copy(FOLDER);
    let server = estate.serve(FOLDER, false);
    let url = format!("http://{}", server.address);
    let plan = |more: &[&str]| {
        let mut arguments = vec!["plan", "manifests", "--server", &url];
        arguments.extend(more);
        let began = Instant::now();
        estate.run(&arguments, &[("EDGEWRIGHT_TOKEN", &estate.token)]);
        began.elapsed().as_secs_f64()
    };
    estate.corpus.change();
    // The server keeps the files of an earlier plan.
    plan(&[]);
    let pairs: Vec<(f64, f64)> = run.rounds().map(|_| (plan(&[]), plan(&["--behaviour"]))).collect();
    estate.corpus.restore();
    server.stop();
    estate.remove(FOLDER);
    let without = median(pairs.iter().map(|(without, _)| *without).collect());
    let more = median(pairs.iter().map(|(without, with)| with - without).collect());
    Row {
        title: "`plan --server --behaviour` of a change of one file, more than without".into(),
        now: time(more.max(0.0)),
        ratio: format!("the plan itself: {}", time(without)),
        target: format!("≤ {}", time(MOST_BEHAVIOUR)),
        met: run.judge(more <= MOST_BEHAVIOUR),
        figures: json!({"seconds": more, "plan_seconds": without}),
    }
}
