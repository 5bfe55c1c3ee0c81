//! Immutable secrets that the caller of a reconciliation does not see (D101).

use crate::{
    model::{operation::Operation, resource::AnyResource, secret::Secrets},
    plan::Plan,
};

/// Whether a plan creates a resource with an immutable secret. That it does, instead of adopting an existing one, may tell
/// that a guess of the secret is wrong.
pub(super) fn creates_with_secret(plan: &Plan) -> bool {
    plan.each_operation().into_iter().any(|operation| match operation {
        Operation::Create { spec, .. } => has_immutable_secret(spec.as_ref()),
        _ => false,
    })
}

fn has_immutable_secret(spec: &dyn AnyResource) -> bool {
    let fixed = spec.kind().info().fixed;
    if fixed.is_empty() {
        return false;
    }
    match (spec.to_json(Secrets::Revealed), spec.to_json(Secrets::Masked)) {
        (Ok(revealed), Ok(masked)) => fixed.iter().any(|field| revealed.get(*field) != masked.get(*field)),
        _ => true,
    }
}
