//! Operations, the only way to change state. A REST handler creates one, the planner creates many, and both go through
//! the same commit.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::claim::Claim;
use super::json::JsonError;
use super::key::Key;
use super::kind::Kind;
use super::module::{AnyModule, Slot};
use super::resource::any_resource::AnyResource;
use super::secrets::{Secret, Secrets};

/// A change of state.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Creates a resource with all its fields and modules.
    Create {
        /// The key; its ID is already chosen (D11).
        key: Key,
        /// The Spec.
        spec: Arc<dyn AnyResource>,
        /// The claim of the source that declares the resource, if any.
        claim: Option<Arc<Claim>>,
        /// For an API key, the hash of its token.
        token: Option<Secret>,
    },
    /// Sets fields; a module among them is replaced as a whole.
    Patch {
        /// The resource.
        key: Key,
        /// A Spec with the new values.
        spec: Arc<dyn AnyResource>,
        /// The fields to set, in the Spec's order.
        fields: Vec<String>,
    },
    /// Sets a module, and replaces the former one as a whole (D21).
    PutModule {
        /// The host.
        host: Key,
        /// The host's slot.
        slot: &'static Slot,
        /// The module.
        module: Arc<dyn AnyModule>,
    },
    /// Removes a module.
    DeleteModule {
        /// The host.
        host: Key,
        /// The host's slot.
        slot: &'static Slot,
    },
    /// Deletes a resource.
    Delete {
        /// The resource.
        key: Key,
        /// Whether to delete the children too; otherwise there must be none (D35).
        with_children: bool,
    },
    /// Sets or removes a source's ownership of a resource, without changing the resource itself.
    Claim {
        /// The resource.
        key: Key,
        /// The new claim.
        claim: Option<Arc<Claim>>,
    },
}

impl Operation {
    /// Creates a resource that no source owns.
    pub(crate) fn create(key: Key, spec: Arc<dyn AnyResource>) -> Self {
        Operation::Create { key, spec, claim: None, token: None }
    }

    /// Returns the key of the resource that changes.
    pub fn key(&self) -> &Key {
        match self {
            Operation::Create { key, .. }
            | Operation::Patch { key, .. }
            | Operation::Delete { key, .. }
            | Operation::Claim { key, .. } => key,
            Operation::PutModule { host, .. } | Operation::DeleteModule { host, .. } => host,
        }
    }

    /// Returns the Spec of a creation or patch as its concrete type.
    pub(crate) fn spec_as<R: 'static>(&self) -> Option<&R> {
        match self {
            Operation::Create { spec, .. } | Operation::Patch { spec, .. } => spec.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Returns the equivalent API call as method and path. Changes of ownership and internal kinds have none.
    pub fn call(&self) -> Option<(&'static str, String)> {
        if self.key().kind == Kind::Owner {
            return None;
        }
        Some(match self {
            Operation::Create { key, .. } => ("POST", key.collection_path()),
            Operation::Patch { key, .. } => ("PATCH", key.path()),
            Operation::PutModule { host, slot, .. } => ("PUT", format!("{}/{}", host.path(), slot.name)),
            Operation::DeleteModule { host, slot } => ("DELETE", format!("{}/{}", host.path(), slot.name)),
            Operation::Delete { key, .. } => ("DELETE", key.path()),
            Operation::Claim { .. } => return None,
        })
    }

    /// Returns the body of the call.
    pub fn body(&self, secrets: Secrets<'_>) -> Result<Value, JsonError> {
        Ok(match self {
            Operation::Create { spec, .. } => Value::Object(spec.to_json(secrets)?),
            Operation::Patch { spec, fields, .. } => {
                let mut given = spec.to_json(secrets)?;
                given.retain(|field, _| fields.contains(field));
                // A field that is not written when it is unset.
                for field in fields.iter().filter(|field| spec.slots().iter().all(|slot| slot.name != field.as_str())) {
                    given.entry(field.as_str()).or_insert(Value::Null);
                }
                Value::Object(given)
            }
            Operation::PutModule { module, .. } => module.to_json(secrets)?,
            Operation::DeleteModule { .. } | Operation::Delete { .. } | Operation::Claim { .. } => Value::Null,
        })
    }
}

/// Displays the call as `METHOD path`, or a description of an operation without one.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.call(), self) {
            (Some((method, path)), _) => write!(f, "{method} {path}"),
            (None, Operation::Claim { key, claim: Some(claim) }) => {
                write!(f, "({key}: owned by source `{}` as `{}`", claim.source, claim.name)?;
                match claim.receiver() {
                    Some(to) => write!(f, ", offered to source `{to}`)"),
                    None => f.write_str(")"),
                }
            }
            (None, Operation::Claim { key, claim: None }) => write!(f, "({key}: no longer owned by a source)"),
            (None, other) => match other.body(Secrets::Masked) {
                Ok(body) => write!(f, "({} {body})", other.key()),
                // `to_string` panics if `fmt` returns an error.
                Err(_) => write!(f, "({})", other.key()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::Id;

    #[test]
    fn an_offered_claim_is_displayed_with_its_receiver() {
        let claim = Claim { transfer_to: Some("pay".into()), ..Claim::new("shop", "a") };
        let key = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
        let told = Operation::Claim { key, claim: Some(Arc::new(claim)) }.to_string();
        assert!(told.ends_with("owned by source `shop` as `a`, offered to source `pay`)"), "{told}");
    }
}
