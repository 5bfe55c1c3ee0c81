//! The API against a model of its specification: random calls, reconciliations, kills and reads of earlier revisions,
//! by one client and by several at once. Every answer and every later read must be what the model expects.
//!
//! `EDGEWRIGHT_MODEL_SEED` repeats a run, and `EDGEWRIGHT_MODEL_CASES` sets its length. A case that fails is made
//! smaller before it is shown. What several clients do at once depends on the time, too.

mod bodies;
mod case;
mod client;
mod concurrent;
mod linearizability;
mod manifests;
mod modules;
mod resources;
mod specification;
mod state;

use crate::support::program::{number_in, rounds};
use case::{Case, Counts};
use client::Difference;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// The steps of a case.
const STEPS: usize = 120;
/// How often a failed case is tried with fewer steps.
const ATTEMPTS: usize = 60;

fn seed() -> u64 {
    number_in("EDGEWRIGHT_MODEL_SEED", 1)
}

fn cases() -> u64 {
    number_in("EDGEWRIGHT_MODEL_CASES", rounds(3, 24))
}

/// The steps of a case.
fn steps(seed: u64, number: u64) -> Vec<u64> {
    let mut random = StdRng::seed_from_u64(seed.wrapping_mul(1 << 32).wrapping_add(number));
    (0..STEPS).map(|_| random.random()).collect()
}

/// Runs a case. A failure has the number of steps that were begun.
fn run(steps: &[u64]) -> Result<Counts, (usize, Difference)> {
    let mut case = Case::start();
    for (index, step) in steps.iter().enumerate() {
        case.step(*step).map_err(|difference| (index + 1, difference))?;
    }
    case.check_history().map_err(|difference| (steps.len(), difference))?;
    Ok(case.counts)
}

/// Leaves out steps, half of them first and single ones at last, as long as the case fails.
fn shrunk(mut steps: Vec<u64>, mut difference: Difference) -> (Vec<u64>, Difference) {
    let (mut length, mut attempts) = (steps.len() / 2, 0);
    while length > 0 {
        let mut start = 0;
        while start < steps.len() && attempts < ATTEMPTS {
            attempts += 1;
            let fewer: Vec<u64> = steps.iter().take(start).chain(steps.iter().skip(start + length)).copied().collect();
            match run(&fewer) {
                Ok(_) => start += length,
                Err((begun, found)) => {
                    steps = fewer;
                    steps.truncate(begun);
                    difference = found;
                }
            }
        }
        length /= 2;
    }
    (steps, difference)
}

#[test]
fn one_client_gets_the_answers_of_the_specification() {
    let seed = seed();
    println!("EDGEWRIGHT_MODEL_SEED={seed}");
    let mut sum = Counts::default();
    for number in 0..cases() {
        let mut steps = steps(seed, number);
        match run(&steps) {
            Ok(counts) => {
                sum.calls += counts.calls;
                sum.reconciles += counts.reconciles;
                sum.restarts += counts.restarts;
            }
            Err((begun, first)) => {
                steps.truncate(begun);
                let text = first.to_string();
                let (steps, least) = shrunk(steps, first);
                panic!("seed {seed}, case {number}, step {begun}: {text}\n\nafter {} steps: {least}", steps.len());
            }
        }
    }
    let Counts { calls, reconciles, restarts } = sum;
    println!("model: {calls} calls, {reconciles} reconciles, {restarts} restarts, seed {seed}: no difference");
    assert!(calls > 0 && reconciles > 0);
}

#[test]
fn what_several_clients_see_at_once_happened_in_one_order() {
    let seed = seed();
    println!("EDGEWRIGHT_MODEL_SEED={seed}");
    let calls = concurrent::play(seed, cases());
    println!("model: {calls} concurrent calls, seed {seed}: linearizable");
}
