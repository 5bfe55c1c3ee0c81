//! Lines of access logs, and compressed logs.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| edgewright::fuzzing::access_logs(bytes));
