//! What a trace says is what nginx does: `examples/nginx` renders random estates, and random requests are forwarded, changed
//! and refused as their traces say. Routes that nginx cannot serve are closed.
//!
//! `EDGEWRIGHT_NGINX_SEED` repeats a run, and `EDGEWRIGHT_NGINX_ESTATES` sets its length.

mod estate;
mod fate;
mod gateway;
mod request;

use std::collections::BTreeMap;

use edgewright::trace;
use rand::{SeedableRng, rngs::StdRng};

use crate::support::program::{has_nginx, number_in, rounds};
use estate::Estate;
use gateway::Gateway;

/// How many requests each estate gets.
const REQUESTS: usize = 150;
/// What nginx rejects itself, whatever an edge says.
const UNREADABLE: [(&str, u16); 5] =
    [("GET /..", 400), ("GET /a//../..", 400), ("GET /%00", 400), ("GET /%zz", 400), ("TRACE /", 405)];

#[test]
fn nginx_does_what_a_trace_says() {
    if !has_nginx("traces compared with what nginx does") {
        return;
    }
    let seed = number_in("EDGEWRIGHT_NGINX_SEED", 1);
    let mut random = StdRng::seed_from_u64(seed);
    let gateway = Gateway::start();
    let mut statuses = BTreeMap::<String, usize>::new();
    for number in 0..number_in("EDGEWRIGHT_NGINX_ESTATES", rounds(8, 80)) {
        let estate = Estate::random(&mut random, number, gateway.ports);
        let snapshot = gateway.serve(&estate);
        for _ in 0..REQUESTS {
            let request = estate.request(&mut random);
            let traced = trace(&snapshot, &request.traced());
            let seen = fate::seen(&gateway.send(&request));
            let expected = fate::traced(&traced, &request);
            let place = format!("seed {seed}, estate {number}");
            assert_eq!(seen, expected, "{place}: {request:?}\n{traced:#?}\n{}", estate.manifests);
            *statuses.entry(seen["status"].clone()).or_default() += 1;
        }
        for (line, status) in UNREADABLE {
            assert_eq!(gateway.answer(estate.hostports[0].1, line).status, status, "{line}");
        }
    }
    println!("seed {seed}: {statuses:?}");
    assert!(statuses.len() > 3, "too much came to the same");
}
