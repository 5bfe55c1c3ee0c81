//! Every error code with its status, cause and cure.

mod manifests;
mod service;

use super::list::{Code, CodeInfo, info};

/// Every code, in the enum's order.
pub const REGISTRY: &[CodeInfo] = &joined::<{ manifests::MANIFESTS.len() + service::SERVICE.len() }>();

/// Joins the parts when the program is compiled.
#[allow(clippy::indexing_slicing)] // an index that is out of range does not compile
const fn joined<const COUNT: usize>() -> [CodeInfo; COUNT] {
    let mut all = [info(Code::Internal, "", 500, "", ""); COUNT];
    let (mut at, first) = (0, manifests::MANIFESTS);
    while at < COUNT {
        all[at] = if at < first.len() { first[at] } else { service::SERVICE[at - first.len()] };
        at += 1;
    }
    all
}
