//! What is wrong with an input: faults at fields, diagnostics with places in files, and the registry of codes.

pub(crate) mod check;
pub(crate) mod code;
pub(crate) mod diagnostic;
pub(crate) mod fault;
pub(crate) mod suggestions;

pub(crate) use self::{
    code::Code,
    diagnostic::{Cause, Diagnostic, Name, Place, Severity, SourceFile},
    fault::{Aim, Fault, Faults, Path, Segment},
};
