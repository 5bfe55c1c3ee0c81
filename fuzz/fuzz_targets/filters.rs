//! The filters of lists, and the expressions of policies.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| edgewright::fuzzing::filters(bytes));
