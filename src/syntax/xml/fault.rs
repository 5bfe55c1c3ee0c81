//! Why a document is rejected.

use crate::syntax::text::printable;

/// Why a text is rejected.
pub(super) enum XmlFault {
    /// Not well-formed XML.
    Malformed(String),
    /// XML that is not accepted.
    Refused(String),
}

pub(super) fn malformed(reason: impl Into<String>) -> XmlFault {
    XmlFault::Malformed(reason.into())
}

pub(super) fn unknown_reference(name: &str) -> XmlFault {
    malformed(format!("unknown reference `&{};`", printable(name)))
}
