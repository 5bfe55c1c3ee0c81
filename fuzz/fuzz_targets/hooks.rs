//! The payloads of webhooks of Git forges.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| edgewright::fuzzing::hook_payloads(bytes));
