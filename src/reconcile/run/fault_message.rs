//! The message of a fault outside the manifests.

use crate::model::{Fault, Key, Path};

/// Returns a fault's message, prefixed with the resource unless the message names it.
pub(crate) fn fault_message(key: &Key, fault: &Fault) -> String {
    let subject = key.to_string();
    if fault.message.contains(&subject) || fault.message.contains(&format!("({})", key.id)) {
        return fault.message.clone();
    }
    let place = if fault.path == Path::root() { String::new() } else { format!(" at {}", fault.path) };
    format!("{subject}{place}: {}", fault.message)
}
