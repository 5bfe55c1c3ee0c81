//! The ID of an existing resource that a document adopts.

use crate::model::external_id::ExternalKind;
use crate::model::id::is_opaque_id;
use crate::model::{Code, Fault, KindInfo};

/// Returns what is wrong with the ID that a document adopts, if anything.
pub(in crate::manifest) fn id_fault(id: &str, info: &KindInfo) -> Option<Fault> {
    let Some(external) = ExternalKind::from_implicit(info.kind) else {
        let fault = || Fault::new(Code::InvalidFormat, format!("invalid {} ID", info.name));
        let good = is_opaque_id(id) && id.starts_with(info.prefix);
        return (!good).then(|| fault().help(format!("use an ID that starts with `{}`", info.prefix)));
    };
    // The children of a subscription name it by its name or ID, and no name has a `_` (D26).
    if info.children.is_some() && is_opaque_id(id) && !id.contains('_') {
        let fault = Fault::new(Code::InvalidFormat, format!("the ID of {} must contain `_`", external.what));
        return Some(fault.help(format!("use an ID such as `{}1`: one without `_` could be a name", external.prefix)));
    }
    external.id_fault(id)
}
