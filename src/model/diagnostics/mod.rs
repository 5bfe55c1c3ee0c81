//! What is wrong with an input: faults at fields, diagnostics with places in files, and the registry of codes.
//!
//! Whoever checks something knows the field and not where it was written. So rules report a [`Fault`] with a [`Path`], and
//! whoever has the text makes a [`Diagnostic`] of it:
//!
//! ```text
//! faults.report(Fault::required("match").help("set a path"))
//! → error[ERR_EDGEWRIGHT_REQUIRED]: `match` is required, at shop.yaml:7:3
//! ```
//!
//! All faults of an input are reported at once, up to a hundred. A fault has a [`Code`] from one table, a message that says
//! what is wrong, and a help that says how to cure it. It never contains a secret.

pub(crate) mod check;
pub(crate) mod code;
pub(crate) mod diagnostic;
pub(crate) mod fault;
pub(crate) mod suggestions;

pub(crate) use self::{
    code::Code,
    diagnostic::{Cause, Diagnostic, Name, Place, Severity, SourceFile},
    fault::{Aim, Check, Fault, Faults, MOST_FAULTS, Path, Path as FieldPath, Segment, nearest},
};
