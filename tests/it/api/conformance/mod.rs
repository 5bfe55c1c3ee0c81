//! The API specification, row by row: what every endpoint answers, and how it refuses.
//!
//! A theme is a file with a function `rows`; a row is a sentence and the calls that prove it (see [`support::row`]). All rows of a
//! theme run on one server, and all that do not hold are reported together. What a row cannot say, such as a walk
//! through pages, is a test of its own beside them.

mod operations;
mod resources;
mod support;

use std::collections::BTreeSet;

use edgewright::server::endpoints;
use support::row::{Expect, Row, Step};

/// Every row but those of `access`, which ask the same of all endpoints.
fn all_rows() -> Vec<Row> {
    [resources::rows(), operations::rows()].concat()
}

/// What is asked of no kind of resource, and so is no [`Endpoint`](edgewright::server::Endpoint).
const BESIDE: [&str; 24] = [
    "POST /reconciliations",
    "GET /reconciliations",
    "GET /reconciliations/{id}",
    "POST /rollbacks",
    "GET /history",
    "GET /history/{revision}",
    "GET /history/blame",
    "GET /sources",
    "GET /sources/{name}",
    "POST /sources/{name}/suspend",
    "POST /sources/{name}/resume",
    "POST /sources/{name}/sync",
    "POST /hooks/git",
    "GET /owners",
    "GET /owners/{id}",
    "PATCH /owners/{id}",
    "POST /store/rekey",
    "POST /sources/{name}/destroy",
    "GET /whoami",
    "GET /export",
    "POST /trace",
    "GET /routing",
    "GET /proofs",
    "POST /transfers",
];

/// The endpoint that a step calls, as `METHOD path`.
fn call(step: &Step) -> Option<String> {
    if let Some(endpoint) = step.endpoint() {
        return Some(format!("{} {}", endpoint.method, endpoint.path));
    }
    let path = step.path.split('?').next().unwrap_or_default();
    let path = match path {
        "/history/blame" => path,
        _ if path.starts_with("/reconciliations/") => "/reconciliations/{id}",
        _ if path.starts_with("/history/") => "/history/{revision}",
        _ if path.starts_with("/sources/") && path.ends_with("/suspend") => "/sources/{name}/suspend",
        _ if path.starts_with("/sources/") && path.ends_with("/resume") => "/sources/{name}/resume",
        _ if path.starts_with("/sources/") && path.ends_with("/sync") => "/sources/{name}/sync",
        _ if path.starts_with("/sources/") && path.ends_with("/destroy") => "/sources/{name}/destroy",
        _ if path.starts_with("/sources/") => "/sources/{name}",
        _ if path.starts_with("/owners/") => "/owners/{id}",
        _ => path,
    };
    Some(format!("{} {path}", step.method)).filter(|call| BESIDE.contains(&call.as_str()))
}

#[test]
fn every_endpoint_has_a_row_that_succeeds_and_one_that_fails() {
    let (mut succeeds, mut fails) = (BTreeSet::new(), BTreeSet::new());
    let rows = [all_rows(), operations::revisions::known_rows(), operations::sources::rows()].concat();
    for step in rows.iter().flat_map(|row| &row.steps) {
        let Some(call) = call(step) else { continue };
        match step.expect {
            Expect::Success(200..300, _) => succeeds.insert(call),
            Expect::Failure(..) => fails.insert(call),
            _ => false,
        };
    }
    let endpoints = endpoints();
    let calls = endpoints.iter().map(|it| format!("{} {}", it.method, it.path));
    let calls: Vec<String> = calls.chain(BESIDE.map(str::to_owned)).collect();
    let without = |rows: &BTreeSet<String>| calls.iter().filter(|call| !rows.contains(*call)).cloned().collect();
    let (no_success, no_failure): (Vec<String>, Vec<String>) = (without(&succeeds), without(&fails));
    assert!(no_success.is_empty() && no_failure.is_empty(), "no success: {no_success:#?}\nno failure: {no_failure:#?}");
}

#[test]
fn every_row_has_a_name_of_its_own_and_expects_something() {
    let mut names = BTreeSet::new();
    for row in all_rows() {
        let expects = row.steps.iter().any(|step| !matches!(step.expect, Expect::Given));
        assert!(expects, "`{}` expects nothing", row.name);
        assert!(names.insert(row.name.clone()), "two rows are called `{}`", row.name);
    }
}
