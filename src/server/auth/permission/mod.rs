//! Permissions: the one place that decides who may do what (D101).
//!
//! # The problem
//!
//! A key has a role, perhaps a scope, and both can change while a request waits. If each handler decided by itself, one
//! would forget a case, and a new endpoint would start without any rule.
//!
//! # The idea
//!
//! An operation declares its [`Intent`], and [`allows`] answers for it, with the role of the caller and the scope of
//! its key at the revision that the request is about. What changes resources is asked again with its operations, inside
//! the commit, at the revision that it changes: `allows_operations` for plans, rollbacks and transfers,
//! [`allows_request`] for a single resource. Which operations reach another source is decided by `tenancy::rights`, and
//! in the same way for followed sources.
//!
//! For example, a key with `apply: [docs]` sends a PATCH of a route. The intent `Change` passes, since its role is
//! editor. Inside the commit, the operation is judged: the route belongs to `shop`, and the answer is 403 with the
//! owners who are admins.
//!
//! Which secrets a caller sees is decided here, too ([`SecretVisibility`]), resource by resource.
//!
//! # What it never does
//!
//! Nothing is allowed that a scope does not list, and no change that a handler has not asked for. A test asks
//! every endpoint of the OpenAPI document as each role and scope.

mod key_administration;
mod refusals;
#[cfg(test)]
mod tests;
mod visibility;
mod writes;

use std::borrow::Borrow;

use super::caller::Caller;
use crate::model::Operation;
use crate::server::prelude::*;
use refusals::{ask_an_admin, forbidden, needs, only_admins, refusal, source_refusal};
pub(in crate::server) use visibility::SecretVisibility;

/// The intent of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Intent<'a> {
    /// Reads anything but secrets.
    Read,
    /// Follows changes.
    Watch,
    /// Asks who it is.
    Identify,
    /// Reads the gateway configuration, with every secret.
    ReadFeed,
    /// Sends a request whose body says whether it is a dry run.
    Propose,
    /// Changes something. The operations decide.
    Change,
    /// Plans a source.
    Plan(&'a str),
    /// Plans a rollback of a source, or of everything.
    PlanRollback(Option<&'a str>),
    /// Applies, suspends or resumes a source.
    Apply(&'a str),
    /// Reads the owners of keys, or changes their roles.
    Owners,
    /// Creates a key for an owner, and sets the role of the owner.
    KeyFor(&'a str),
    /// Reads everything in the store, as a backup.
    Backup,
    /// Encrypts the store with new keys.
    Rekey,
}

impl<'a> Intent<'a> {
    /// The intent of a request whose path has this parameter: `Apply` is about the source that it names.
    pub(in crate::server) fn about(self, parameter: &'a str) -> Self {
        if matches!(self, Intent::Apply(_)) { Intent::Apply(parameter) } else { self }
    }

    /// The callers that [`allows`] permits, for the API reference.
    pub(in crate::server) fn callers(self) -> &'static str {
        match self {
            Intent::Watch | Intent::Identify => "every API key",
            Intent::Read => "every role except `gateway`",
            Intent::ReadFeed => "`gateway`; a key with a scope needs `secrets`",
            Intent::Propose => {
                "every role except `gateway` for a dry run of what the key may plan; `editor` and `admin` to apply, within the scope of the key"
            }
            Intent::Change => "`editor` and `admin`, within the scope of the key",
            Intent::Plan(_) | Intent::PlanRollback(_) => {
                "every role except `gateway`, for sources that the key may plan"
            }
            Intent::Apply(_) => "`editor` and `admin`, for sources that the key may apply",
            Intent::Owners | Intent::KeyFor(_) | Intent::Rekey => "`admin`, with a key that has no scope",
            Intent::Backup => "`admin`; a key with a scope needs `secrets`",
        }
    }
}

/// Whether a caller may do something.
pub(crate) fn allows(caller: &Caller, intent: &Intent<'_>, current: &Snapshot) -> Result<(), Fault> {
    let scope = caller.scope.as_deref();
    match intent {
        Intent::Watch | Intent::Identify => Ok(()),
        Intent::ReadFeed => match caller.role {
            Role::Gateway if scope.is_none_or(|scope| scope.secrets) => Ok(()),
            Role::Gateway => Err(needs(caller, "`secrets`", "read the gateway configuration", current)),
            _ => Err(Fault::new(
                Code::Forbidden,
                "only the role `gateway` can read the gateway configuration, which contains private keys and secrets",
            )),
        },
        Intent::Read | Intent::Propose => reader(caller),
        Intent::Change => editor(caller, current),
        Intent::Plan(source) => {
            reader(caller)?;
            match scope.filter(|scope| !scope.may_plan(source)) {
                None => Ok(()),
                Some(scope) => Err(source_refusal(caller, scope, "plan", source, current)),
            }
        }
        Intent::PlanRollback(source) => {
            reader(caller)?;
            match (scope, source) {
                (None, _) => Ok(()),
                (Some(scope), Some(source)) if scope.may_plan(source) => Ok(()),
                (Some(scope), None) if scope.may_plan_all() => Ok(()),
                (Some(scope), Some(source)) => {
                    Err(source_refusal(caller, scope, "plan a rollback of", source, current))
                }
                (Some(_), None) => {
                    let help =
                        format!("name one source, with `--source` on the command line, or {}", ask_an_admin(current));
                    Err(forbidden(caller, "plan a rollback of every source", current).help(help))
                }
            }
        }
        Intent::Apply(source) => {
            editor(caller, current)?;
            match scope.filter(|scope| !scope.may_apply(source)) {
                None => Ok(()),
                Some(scope) => Err(source_refusal(caller, scope, "apply", source, current)),
            }
        }
        Intent::Owners => admin(caller, "only admins can read owners and change their roles", current),
        Intent::KeyFor(owner) => admin(caller, &only_admins(owner), current),
        Intent::Rekey => admin(caller, "only admins can encrypt the store with new keys", current),
        Intent::Backup => match scope {
            Some(scope) if caller.role == Role::Admin && !scope.secrets => {
                Err(needs(caller, "`secrets`", "make backups", current))
            }
            _ if caller.role == Role::Admin => Ok(()),
            _ => Err(refusal("only admins may make backups, which contain the whole store", current)),
        },
    }
}

/// Whether a caller may make the operations of a request for a single resource from an address. The scope of its key may
/// have been narrowed while the request waited.
pub(in crate::server) fn allows_request<O: Borrow<Operation>>(
    caller: &Caller,
    address: Option<IpAddr>,
    operations: &[O],
    current: &Snapshot,
) -> Result<(), Fault> {
    if let Ok(caller) = caller.at(current) {
        allows_address(&caller, address)?;
    }
    allows_operations(caller, operations, None, current)
}

/// Checks whether a caller may make the operations of a change. The role and scope at the revision that changes count,
/// since they may be taken away while a request waits. `stated` are the event sources whose manifests state the ID of
/// their subscription, if the operations are a plan.
pub(crate) fn allows_operations<O: Borrow<Operation>>(
    caller: &Caller,
    operations: &[O],
    stated: Option<&BTreeSet<Key>>,
    current: &Snapshot,
) -> Result<(), Fault> {
    let is_administrative = |operation: &O| key_administration::concerns(Borrow::<Operation>::borrow(operation));
    let caller = match caller.at(current) {
        Ok(caller) => caller,
        // The request was admitted before its key was deleted.
        Err(_) if caller.scope.is_none() && !operations.iter().any(is_administrative) => return Ok(()),
        Err(fault) => return Err(fault),
    };
    // Its scope may have got an earlier end.
    if let Some(message) = caller.expiry() {
        return Err(Fault::new(Code::Unauthenticated, message));
    }
    editor(&caller, current)?;
    key_administration::check(&caller, current, operations)?;
    match &caller.scope {
        Some(scope) => writes::check(&caller, scope, current, operations, stated),
        None => Ok(()),
    }
}

/// Whether a key can be used from the address of a client.
pub(super) fn allows_address(caller: &Caller, address: Option<IpAddr>) -> Result<(), Fault> {
    let Some(scope) = &caller.scope else { return Ok(()) };
    if scope.allows_address(address) {
        return Ok(());
    }
    let from = address.map_or_else(|| "an unknown address".to_owned(), |address| address.to_canonical().to_string());
    let fault = Fault::new(Code::Forbidden, format!("{} cannot be used from {from}", caller.described()));
    Err(fault.help("use it from one of the `addresses` of its scope"))
}

/// Refuses gateways.
fn reader(caller: &Caller) -> Result<(), Fault> {
    match caller.role {
        Role::Gateway => Err(Fault::new(
            Code::Forbidden,
            "the role `gateway` can read only `/gateway/configuration` and `/watch`; use a key with another role",
        )),
        _ => Ok(()),
    }
}

/// Refuses those who only read and plan.
fn editor(caller: &Caller, current: &Snapshot) -> Result<(), Fault> {
    reader(caller)?;
    match caller.role {
        Role::Editor | Role::Admin => Ok(()),
        role => {
            let role = role.as_str();
            let message = format!("the role `{role}` may only read and plan; this request requires an editor or admin");
            Err(refusal(message, current))
        }
    }
}

/// Refuses all but admins, and keys with a scope: what they do concerns every source.
fn admin(caller: &Caller, message: &str, current: &Snapshot) -> Result<(), Fault> {
    reader(caller)?;
    match (caller.role, &caller.scope) {
        (Role::Admin, None) => Ok(()),
        (Role::Admin, Some(_)) => {
            Err(Fault::new(Code::Forbidden, message).help("use an API key of an admin that has no scope"))
        }
        _ => Err(refusal(message, current)),
    }
}
