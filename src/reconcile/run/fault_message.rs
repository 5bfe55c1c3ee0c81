//! The message of a fault outside the manifests.

use crate::model::{Diagnostic, Fault, Key, Path};

/// Returns a fault's message, prefixed with the resource unless the message names it.
pub(crate) fn fault_message(key: &Key, fault: &Fault) -> String {
    let subject = key.to_string();
    if fault.message.contains(&subject) || fault.message.contains(&format!("({})", key.id)) {
        return fault.message.clone();
    }
    let place = if fault.path == Path::root() { String::new() } else { format!(" at {}", fault.path) };
    format!("{subject}{place}: {}", fault.message)
}

/// Returns a fault outside the manifests as an error.
pub(super) fn unplaced(key: &Key, fault: &Fault) -> Diagnostic {
    let found = Diagnostic::error(fault.code, fault_message(key, fault));
    Diagnostic { help: fault.help.clone(), invariant: fault.invariant.clone(), ..found }
}
