//! Texts that nobody but their reader may see: how they are masked, and what of a manifest can be shown.

pub(crate) mod digest_key;
pub(crate) mod redact;
pub(crate) mod secret;
pub(crate) mod secret_spans;
