//! Plain YAML, next to serde_yaml.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| edgewright::fuzzing::plain_yaml(bytes));
