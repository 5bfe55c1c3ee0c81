//! Texts that nobody but their reader may see: how they are masked, and what of a manifest can be shown.
//!
//! A secret leaks through what prints it by accident: a log, an error, a plan, an excerpt of a file. So a [`Secret`] masks
//! itself wherever it is formatted or serialized, and `redact` hides everything of a text that the schemas do not declare to be
//! public:
//!
//! ```text
//! client_secret: hunter2   # old one: hunter1
//! client_secret: *******   #*****************
//! ```
//!
//! Only [`Secret::expose`] and the serializers of `model::json` reveal a secret; nothing is decrypted or stored here.

pub(crate) mod digest_key;
pub(crate) mod redact;
pub(crate) mod secret;
pub(crate) mod secret_spans;
pub(crate) mod serialization_mode;
pub(crate) mod text;
pub(crate) mod unknown_value;

pub(crate) use self::secret::{MASK, Secret};
pub(crate) use self::serialization_mode::Secrets;
pub(crate) use self::text::{Reading, Text};
