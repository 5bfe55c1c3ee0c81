//! Notations that others have defined: CEL expressions, PEM and X.509, XML, YAML, access logs, and the quoting of text. Nothing
//! in this room knows a resource; each file could be used by another program.

pub(crate) mod access_log;
pub(crate) mod cel;
pub(crate) mod text;
pub(crate) mod x509;
pub(crate) mod xml;
pub(crate) mod yaml;
