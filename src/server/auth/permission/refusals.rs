//! Refusals in words: what a caller may not do, and whom to ask for more.

use crate::server::auth::caller::Caller;
use crate::server::prelude::*;

/// Refuses to do something with a source.
pub(super) fn source_refusal(caller: &Caller, verb: &str, source: &str, current: &Snapshot) -> Fault {
    forbidden(caller, &format!("{verb} source `{}`", printable(source)), current).at("source")
}

/// Refuses what the scope of a key does not grant.
pub(super) fn forbidden(caller: &Caller, what: &str, current: &Snapshot) -> Fault {
    refusal(format!("the scope of {} does not allow it to {what}", caller.described()), current)
}

/// Refuses what the scope of a key would allow with a right that it lacks.
pub(super) fn needs(caller: &Caller, right: &str, what: &str, current: &Snapshot) -> Fault {
    refusal(format!("the scope of {} needs {right} to {what}", caller.described()), current)
}

/// Refuses what an admin can do.
pub(super) fn refusal(message: impl Into<String>, current: &Snapshot) -> Fault {
    Fault::new(Code::Forbidden, message).help(ask_an_admin(current))
}

/// Says whom to ask for more.
pub(super) fn ask_an_admin(current: &Snapshot) -> String {
    match rules::some_admins(current).as_slice() {
        [] => "ask an admin".to_owned(),
        admins => format!("ask an admin: {}", admins.join(", ")),
    }
}
