//! Descriptions of changes that the scope of a key does not allow (D101). The decision is `tenancy::rights`.

use std::borrow::Borrow;

use super::refusals::{forbidden, needs};
use crate::model::{KeyScope, Operation};
use crate::server::auth::caller::Caller;
use crate::server::prelude::*;
use crate::tenancy::{ChangeOrigin, Denied, Rights};

/// Checks the operations of a caller whose key has a scope.
pub(super) fn check<O: Borrow<Operation>>(
    caller: &Caller,
    scope: &KeyScope,
    current: &Snapshot,
    operations: &[O],
    stated: Option<&BTreeSet<Key>>,
) -> Result<(), Fault> {
    let origin = if stated.is_some() { ChangeOrigin::Plan } else { ChangeOrigin::Request };
    Rights { scope, origin, stated: stated.unwrap_or(&BTreeSet::new()) }
        .check(current, operations)
        .map_err(|(_, denied)| refused(caller, &denied, current))
}

fn refused(caller: &Caller, denied: &Denied, current: &Snapshot) -> Fault {
    let needs = |right: &str, what: &str| needs(caller, right, what, current);
    let what = denied.to_string();
    match denied {
        Denied::Source(verb, source) => forbidden(caller, &format!("{verb} source `{}`", printable(source)), current),
        Denied::Unowned(..) | Denied::Action(_) | Denied::Host(_) => forbidden(caller, &what, current),
        Denied::Global(..) | Denied::Certificate => needs("`global`", &what),
        Denied::Secret(..) | Denied::Secrets(_) => needs("`secrets`", &what),
        Denied::Stated(key) => {
            needs(&format!("`{}` in `kinds`", key.kind), &format!("{what}, which its source did not have before"))
        }
        Denied::Former(key, source) => {
            let what = format!("create {key}, whose ID that source was the last to have");
            needs(&format!("the right to apply source `{}`", printable(source)), &what)
        }
    }
}
