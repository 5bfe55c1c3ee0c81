//! Refusals in words: what a caller may not do, and whom to ask for more.

use crate::model::KeyScope;
use crate::reconcile::DEFAULT_SOURCE;
use crate::server::auth::caller::Caller;
use crate::server::prelude::*;

/// The most sources of a scope that a message names.
const MOST_NAMED: usize = 3;

/// Refuses to do something with a source. Names no sources but those that the key may use.
pub(super) fn source_refusal(caller: &Caller, scope: &KeyScope, verb: &str, source: &str, current: &Snapshot) -> Fault {
    let what = format!("{verb} source `{}`; {}", printable(source), granted(scope));
    let fault = forbidden(caller, &what, current).at("source");
    // Whoever names no source means the default one.
    match scope.apply.iter().chain(&scope.plan).find(|name| !name.ends_with('*')) {
        Some(own) if source == DEFAULT_SOURCE => {
            let own = printable(own);
            fault
                .help(format!("name a source, with `--source {own}` on the command line, or {}", ask_an_admin(current)))
        }
        _ => fault,
    }
}

/// The sources that a scope grants, in words.
fn granted(scope: &KeyScope) -> String {
    let named = |verb: &str, sources: &[String]| {
        let names: Vec<String> = sources.iter().take(MOST_NAMED).map(|name| format!("`{}`", printable(name))).collect();
        let more = if sources.len() > MOST_NAMED { ", …" } else { "" };
        (!sources.is_empty()).then(|| format!("{verb} {}{more}", names.join(", ")))
    };
    let granted: Vec<String> = named("apply", &scope.apply).into_iter().chain(named("plan", &scope.plan)).collect();
    if granted.is_empty() { "it may plan no source".to_owned() } else { format!("it may {}", granted.join(" and ")) }
}

/// The message for others than admins who create a key for an owner.
pub(super) fn only_admins(owner: &str) -> String {
    format!("only admins can create keys for `{}`", printable(owner))
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
