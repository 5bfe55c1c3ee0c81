//! Descriptions of changes that the scope of a key does not allow (D101). The decision is `tenancy::rights`.

use std::{borrow::Borrow, collections::BTreeSet};

use super::refusals::{forbidden, needs, source_refusal};
use crate::model::{Fault, Key, KeyScope, Operation, Path, Snapshot};
use crate::server::auth::caller::Caller;
use crate::syntax::text::printable;
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
    let forbidden = |what: String| forbidden(caller, &what, current);
    let needs = |right: &str, what: String| needs(caller, right, &what, current);
    match denied {
        Denied::Source(verb, source) => source_refusal(caller, verb, source, current).at(Path::root()),
        Denied::Unowned(verb, kind) => forbidden(format!("{verb} resources of kind {kind} that no source owns")),
        Denied::Global(verb, kind) => {
            needs("`global`", format!("{verb} resources of kind {kind}, which act on every source"))
        }
        Denied::Certificate => needs("`global`", "change a certificate that no source owns".to_owned()),
        Denied::Secret(key, module) => {
            needs("`secrets`", format!("replace `{module}` of {key}, which has a secret and no source"))
        }
        Denied::Secrets(key) => needs("`secrets`", format!("adopt {key}, which has secrets")),
        Denied::Stated(key) => {
            let what = format!("declare {key} by its ID, which its source did not have before");
            needs(&format!("`{}` in `kinds`", key.kind), what)
        }
        Denied::Former(key, source) => {
            let what = format!("create {key}, whose ID that source was the last to have");
            needs(&format!("the right to apply source `{}`", printable(source)), what)
        }
        Denied::Action(verb) => forbidden(format!("{verb} single resources")),
        Denied::Host(host) => forbidden(format!("serve `{}`, which is not in `hosts`", printable(host))),
    }
}
