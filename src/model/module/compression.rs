//! The `compression` module: compresses responses with gzip.

use super::prelude::*;

module! {
    /// Compresses responses for clients that accept it.
    pub struct Compression {}
}

impl Check for Compression {}

impl Module for Compression {
    const SLOT: &'static str = "compression";
    const EMPTY_IS_HARMLESS: bool = true;
    type View = Self;

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        vec![Step::new(Stage::Encoding, StepEffect::Passes, "for clients that accept it")]
    }
}
