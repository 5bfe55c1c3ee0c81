//! Frames of journals, and the records in them.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| edgewright::fuzzing::records(bytes));
