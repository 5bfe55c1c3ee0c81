//! Errors in an input: faults at fields, diagnostics with places in files, and the registry of codes.
//!
//! A rule knows the field but not its place in the text. So it reports a [`Fault`] with a [`Path`], and the code that
//! has the text turns it into a [`Diagnostic`]:
//!
//! ```text
//! faults.report(Fault::required("match").help("set a path"))
//! → error[ERR_EDGEWRIGHT_REQUIRED]: `match` is required, at shop.yaml:7:3
//! ```
//!
//! All faults of an input are reported at once, up to a hundred. A fault has a [`Code`] from one table, a message that
//! says what is wrong, and a help that says how to fix it. A fault never contains a secret.

pub(crate) mod check;
pub(crate) mod code;
pub(crate) mod diagnostic;
pub(crate) mod fault;
pub(crate) mod invariant_finding;
pub(crate) mod suggestions;

pub(crate) use self::code::Code;
pub(crate) use self::diagnostic::{Cause, Diagnostic, Name, Place, Severity, SourceFile};
pub(crate) use self::fault::{
    Check, Fault, FaultTarget, Faults, MOST_FAULTS, Path, Path as FieldPath, Segment, nearest, suggest,
};
