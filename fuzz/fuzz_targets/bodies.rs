//! The bodies of requests, for every kind.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| edgewright::fuzzing::bodies(bytes));
