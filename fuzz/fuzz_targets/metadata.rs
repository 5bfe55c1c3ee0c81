//! The metadata of SAML identity providers.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| edgewright::fuzzing::metadata(bytes));
